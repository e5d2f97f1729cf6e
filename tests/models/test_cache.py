"""Token by token over a cache gives what one run over the whole sequences gives, whatever became of the other
sequences meanwhile.
"""

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, ops
from plmcore.models import bart, gpt1, gpt2, gpt3, mass, mbart, t5, transformer

GPT = dict(vocab_size=23, n_positions=400, n_embd=12, n_layer=2, n_head=3)
STACKS = dict(
    vocab_size=23,
    d_model=12,
    max_position_embeddings=400,
    encoder_layers=1,
    decoder_layers=2,
    encoder_attention_heads=3,
    decoder_attention_heads=3,
    encoder_ffn_dim=16,
    decoder_ffn_dim=16,
)
MODELS = {
    "gpt1": lambda: gpt1.GPT1CausalLM(gpt1.GPT1Config(**GPT)),
    "gpt2": lambda: gpt2.GPT2CausalLM(gpt2.GPT2Config(**GPT)),
    "banded": lambda: gpt3.GPT3CausalLM(gpt3.GPT3Config(**GPT, attention_band=3)),
    "strided": lambda: gpt3.GPT3CausalLM(
        gpt3.GPT3Config(
            **GPT, attention_layers=("strided", "banded+strided"), attention_band=2, attention_stride=3
        )
    ),
    "bart": lambda: bart.BartSeq2SeqLM(bart.BartConfig(**STACKS)),
    "bart decoder": lambda: bart.BartCausalLM(bart.BartConfig(**STACKS)),
    "mbart": lambda: mbart.MBartSeq2SeqLM(mbart.MBartConfig(**STACKS, decoder_start_token_id=2)),
    "mass": lambda: mass.MassSeq2SeqLM(mass.MassConfig(**STACKS, eos_token_id=2, decoder_start_token_id=2)),
    "transformer": lambda: transformer.TransformerSeq2SeqLM(transformer.TransformerConfig(**STACKS)),
    "fairseq": lambda: transformer.TransformerSeq2SeqLM(
        transformer.TransformerConfig(**STACKS, position_embedding_type="fairseq")
    ),
    "t5": lambda: t5.T5Seq2SeqLM(
        t5.T5Config(
            vocab_size=23,
            d_model=12,
            d_kv=4,
            d_ff=16,
            num_layers=2,
            num_heads=3,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=20,
        )
    ),  # fmt: skip
}
SOURCES = [np.array([5, 9, 2, 8, 11]), np.array([7, 3]), np.array([4, 4, 6])]
PROMPTS = [np.array([2, 7, 12, 3]), np.array([2]), np.array([2, 15])]


class Subject:
    """A model with its head, run over whole sequences or over a cache."""

    def __init__(self, name, dtype):
        plm.seed(3)
        self.model = MODELS[name]().to(dtype).eval()
        for p in self.model.parameters():  # far from 0, so that whatever is wrong shows
            plm._core.assign(
                p, Tensor((np.random.default_rng(p.size).normal(size=p.shape) * 0.5).astype(dtype))
            )
        self.encodes = hasattr(self.model.body, "decode")

    def padded(self, rows):
        lengths = np.array([len(r) for r in rows])
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = np.concatenate(rows)
        return Tensor(ids), None if mask.all() else Tensor(mask)

    def start(self, rows, prompts):
        """-> logits, the state"""
        given = dict(zip(("input_ids", "attention_mask"), self.padded(prompts)))
        if self.encodes:
            sources = self.padded([SOURCES[r] for r in rows])
            given = {f"decoder_{name}": x for name, x in given.items()}
            given |= dict(zip(("input_ids", "attention_mask"), sources))
        logits, state = self.model.prefill(**given)
        return logits.numpy(), state

    def step(self, live, parents, tokens, state):
        state = state.select(None if live is None else Tensor(np.array(live)), Tensor(parents))
        logits, state = self.model.step(Tensor(tokens), state.reserve(tokens.shape[1]))
        return logits.numpy(), state

    def whole(self, row, ids):
        """The logits after one sequence, alone."""
        ids = Tensor(ids[None])
        source = dict(input_ids=Tensor(SOURCES[row][None]), decoder_input_ids=ids)
        return (self.model(**source) if self.encodes else self.model(ids)).logits.numpy()[0, -1]


def used(state):
    return max(s.used for s in state.slots.values())


@pytest.mark.parametrize("dtype, atol", [("float32", 1e-5), ("float64", 1e-10)])
@pytest.mark.parametrize("name", MODELS)
def test_cached_equals_whole(name, dtype, atol):
    """Beams branch, die out and leave; buffers grow and are compacted."""
    rng = np.random.default_rng(5)
    subject = Subject(name, dtype)
    reference = Subject(name, dtype)
    with plm.no_grad():
        alive = [0, 1, 2]
        logits, state = subject.start(alive, PROMPTS)
        for row, prompt in enumerate(PROMPTS):
            np.testing.assert_allclose(logits[row], reference.whole(row, prompt), atol=atol, rtol=atol)
        sequences = {row: [prompt] for row, prompt in enumerate(PROMPTS)}
        steps, compacted, largest = 90, False, 0
        for step in range(steps):
            live = [i for i, row in enumerate(alive) if not (row == 1 and step == 12)]
            alive = [alive[i] for i in live]
            n = len(sequences[alive[0]])
            parents = np.sort(rng.integers(0, n, (len(alive), 3)), 1)
            tokens = rng.integers(3, 23, (len(alive), 3))
            for i, row in enumerate(alive):
                before = sequences[row]
                sequences[row] = [np.append(before[p], t) for p, t in zip(parents[i], tokens[i])]
            room = used(state)
            logits, state = subject.step(live, parents, tokens, state)
            compacted |= used(state) < room
            assert state.batch == len(alive)
            assert logits.shape == (len(alive), 3, 23)
            if step in (0, 1, 2, 11, 12, 13) or step > steps - 3:
                for i, row in enumerate(alive):
                    for j in range(3):
                        np.testing.assert_allclose(
                            logits[i, j], reference.whole(row, sequences[row][j]), atol=atol, rtol=atol
                        )
        largest = used(state)
    assert compacted and largest < 200  # of 274 slots


def test_a_band_bounds_the_buffers():
    subject = Subject("banded", "float32")
    with plm.no_grad():
        _, state = subject.start([0], [PROMPTS[0]])
        for _ in range(300):
            _, state = subject.step(None, np.zeros((1, 1), int), np.array([[5]]), state)
    rooms = {band: slots.size[1] for (band, _), slots in state.slots.items()}
    assert rooms[3] <= 200 and rooms[0] >= 304


def test_no_mask_where_all_is_seen():
    subject = Subject("gpt2", "float32")
    with plm.no_grad():
        _, state = subject.start([0], [PROMPTS[0]])
        _, state = subject.step(None, np.zeros((1, 1), int), np.array([[5]]), state)
    assert list(state.slots[0, 0].visible) == ["lengths"]
    assert ops.sum(state.slots[0, 0].visible["lengths"]).item() == 5


@pytest.mark.parametrize("name", ["gpt2", "banded", "t5"])
def test_a_state_by_its_tensors(name):
    """Out to tensors and in again, as exports and checkpoints do, it goes on as before."""
    subject = Subject(name, "float32")
    parents, tokens = np.array([[0, 0], [0, 0], [0, 0]]), np.array([[5, 6], [7, 8], [9, 10]])
    with plm.no_grad():
        found = []
        for copied in (False, True):
            _, state = subject.start([0, 1, 2], PROMPTS)
            if copied:
                state = state.with_tensors({k: Tensor(t.numpy()) for k, t in state.tensors().items()})
            logits, state = subject.step(None, parents, tokens, state)
            found.append(logits)
    np.testing.assert_array_equal(*found)
    assert state.nbytes == sum(t.nbytes for t in state.tensors().values()) > 0
    with pytest.raises(plm.ShapeError, match="KeyValues: the state is of 3 sequences, the batch has 2"):
        subject.model.step(Tensor(tokens[:2]), state)
