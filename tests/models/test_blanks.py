"""Pieces written step by step, with the cache, against one pass over all of them."""

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, nn
from plmcore.models.blanks import Pieces
from plmcore.models.glm import GLMCausalLM, GLMConfig

START, END = 28, 29
CFG = GLMConfig(
    vocab_size=30,
    hidden_size=12,
    num_layers=2,
    num_attention_heads=3,
    max_sequence_length=12,
    initializer_range=0.4,
)


def model():
    plm.seed(2)
    return GLMCausalLM(CFG).eval()


TEXTS = [np.array([1, 4, 7, 4, 9, 2]), np.array([1, 4, 4, 2])]
PLACES = np.array([[1, 3], [1, 2]])
# of either text two sequences, each two pieces with their ends
WRITTEN = [[[5, 6, END, 8], [END, 5, 6, 7]], [[9, END, END, 3], [3, 3, 3, END]]]


def full(m, text, places, tokens):
    """The logits behind the text and the first tokens, in one pass."""
    ids, at, blocks = list(text), list(range(len(text))), [0] * len(text)
    blank, place = 0, 0
    for token in [START, *tokens]:
        if token == END:
            blank, place, token = min(blank + 1, 1), 0, START
        place += 1
        ids.append(token)
        at.append(int(places[blank]))
        blocks.append(place)
    given = m.tensors(
        dict(input_ids=np.array([ids]), position_ids=np.array([at]), block_position_ids=np.array([blocks]))
    )
    with nn.inference():
        return m(**given, source_lengths=Tensor(np.array([len(text)]))).logits.numpy()[0, -1]


def begun(m, texts=TEXTS, places=PLACES, limit=8):
    T = max(len(t) for t in texts) + 1
    ids, mask = np.zeros((len(texts), T), np.int64), np.zeros((len(texts), T), np.int64)
    for i, t in enumerate(texts):
        ids[i, : len(t) + 1], mask[i, : len(t) + 1] = [*t, START], 1
    lengths = np.array([len(t) for t in texts])
    given = dict(input_ids=ids, source_lengths=lengths, places=places)
    if not mask.all():
        given["attention_mask"] = mask.astype(bool)
    return m.read(**m.tensors(given), pieces=Pieces(START, END, limit))


def test_steps_are_the_full_pass():
    m = model()
    with nn.inference():
        logits, state = begun(m)
        for i, text in enumerate(TEXTS):
            np.testing.assert_allclose(logits.numpy()[i], full(m, text, PLACES[i], []), atol=2e-6)
        state = state.select(None, Tensor(np.zeros((2, 2), np.int64)))  # two sequences of each
        for step in range(4):
            tokens = np.array([[w[step] for w in rows] for rows in WRITTEN])
            logits, state = m.step(Tensor(tokens), state.reserve(2, 4 - step))
            for i, text in enumerate(TEXTS):
                for j, written in enumerate(WRITTEN[i]):
                    expected = full(m, text, PLACES[i], written[: step + 1])
                    np.testing.assert_allclose(logits.numpy()[i, j], expected, atol=5e-6)


def test_sequences_are_chosen_with_their_places():
    m = model()
    with nn.inference():
        _, state = begun(m)
        state = state.select(None, Tensor(np.zeros((2, 2), np.int64)))
        for step in range(3):
            tokens = np.array([[w[step] for w in rows] for rows in WRITTEN])
            _, state = m.step(Tensor(tokens), state.reserve(2))
        # of the second text alone, its sequences in the other order
        state = state.select(Tensor(np.array([1])), Tensor(np.array([[1, 0]]))).reserve(2)
        logits, state = m.step(Tensor(np.array([[4, 5]])), state)
    for j, before in enumerate(reversed(WRITTEN[1])):
        expected = full(m, TEXTS[1], PLACES[1], [*before[:3], [4, 5][j]])
        np.testing.assert_allclose(logits.numpy()[0, j], expected, atol=5e-6)
    assert state.batch == 1
    same = state.with_tensors(state.tensors())
    assert same.tensors().keys() == state.tensors().keys() and same.pieces == state.pieces


def test_after_the_limit_only_the_end_follows():
    m = model()
    with nn.inference():
        _, state = begun(m, TEXTS[:1], PLACES[:1], limit=2)
        logits, state = m.step(Tensor([[5]]), state.reserve(1))
        assert np.isfinite(logits.numpy()).all() and logits.numpy().min() > -1e6
        logits, state = m.step(Tensor([[6]]), state.reserve(1))
        assert logits.numpy().argmax() == END and np.sort(logits.numpy().ravel())[-2] < -1e30
        logits, _ = m.step(Tensor([[END]]), state.reserve(1))  # the next piece has its own
        np.testing.assert_allclose(logits.numpy()[0, 0], full(m, TEXTS[0], PLACES[0], [5, 6, END]), atol=5e-6)


def test_a_state_of_another_batch():
    m = model()
    with nn.inference(), pytest.raises(plm.ShapeError, match="the state is of 2 sequences, the batch has 1"):
        m.step(Tensor([[5]]), begun(m)[1])


def test_text_goes_on_as_that_of_any_decoder():
    """Without blanks, positions run on and all is causal."""
    lm = plm.LanguageModel(model())
    ids = lm.generate([[3, 4, 5]], max_new_tokens=6)
    for t in range(3, 9):
        assert lm(ids[:, :t]).logits.numpy()[0, -1].argmax() == ids[0, t]
