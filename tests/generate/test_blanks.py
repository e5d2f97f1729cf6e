"""lm.fill_blanks and lm.score_blanks, with tokenizers of three kinds."""

import numpy as np
import plmcore as plm
import pytest
from plmcore.generate import Filled, blanks
from plmcore.models.glm import GLMConfig

WORDS = "the cat sat on a mat and it was good or bad dog ran far home then old dark time once upon".split()
LINES = [" ".join(np.random.default_rng(i).permutation(WORDS)) + "." for i in range(40)]
KINDS = {"wordpiece": "glm", "byte-bpe": "glm-gpt2", "unigram": "glm-pieces"}
SIZES = {"wordpiece": 90, "byte-bpe": 300, "unigram": 52}


@pytest.fixture(scope="module", params=KINDS)
def lm(request):
    kind = request.param
    tokenizer = plm.train_tokenizer(texts=LINES, kind=kind, family=KINDS[kind], vocab_size=SIZES[kind])
    return made(tokenizer)


def made(tokenizer, **changes):
    plm.seed(1)
    config = GLMConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=16,
        num_layers=2,
        num_attention_heads=2,
        max_sequence_length=24,
        initializer_range=0.3,
        **changes,
    )
    return plm.LanguageModel(plm.from_config(config, "causal-lm").model.eval(), tokenizer)


TEXT = "the cat [MASK] on a [sMASK]."


def test_pieces_of_texts_are_special_tokens(lm):
    tokens = lm.tokenizer.tokenize("the [MASK] a [gMASK] cat [sMASK]")
    assert [t for t in tokens if t in ("[MASK]", "[gMASK]", "[sMASK]")] == ["[MASK]", "[gMASK]", "[sMASK]"]
    assert lm.tokenizer.id_of("<|startofpiece|>") in lm.tokenizer.special_ids
    assert lm.tokenizer.decode(lm.tokenizer("the cat")["input_ids"]) == "the cat"


TEXTS = ["the [MASK] sat.", TEXT, "[MASK] the dog [MASK] ran [gMASK]"]


def full_pass(lm, text, pieces):
    """The log-probabilities [M, V] where tokens of the pieces and their ends are predicted, and which those
    are, from the objective's own inputs.
    """
    _, start, end = blanks.needed(lm, "test")
    row = blanks.blanks_of(lm, text, "test")
    given = blanks.with_pieces(row, [np.array(p, np.int64) for p in pieces], start, end)
    labels = given.pop("labels")
    out = lm(**{k: v[None] for k, v in given.items()}, source_lengths=[len(row.ids)])
    logits = out.logits.numpy()[0].astype(np.float64)[labels != -100]
    return logits - np.log(np.exp(logits).sum(1, keepdims=True)), labels[labels != -100]


@pytest.mark.parametrize("text", TEXTS)
def test_greedy_pieces_are_those_of_one_pass(lm, text):
    found = lm.fill_blanks(text, max_new_tokens=4)
    assert isinstance(found, Filled) and len(found.pieces) == len(found.tokens) == text.count("MASK]")
    log_probs, wanted = full_pass(lm, text, found.tokens)
    places = [place for piece in found.tokens for place in range(len(piece) + 1)]
    free = np.array(places) < 4  # after four tokens a piece has to end
    assert (log_probs.argmax(1) == wanted)[free].all()
    assert found.score == pytest.approx(log_probs[np.arange(len(wanted)), wanted][free].sum(), abs=1e-4)


@pytest.mark.parametrize("text", TEXTS)
def test_beams_find_nothing_worse(lm, text):
    scores = [lm.fill_blanks(text, num_beams=n, max_new_tokens=4).score for n in (1, 3, 8)]
    assert scores[1] >= scores[0] - 1e-5 and scores[2] >= scores[0] - 1e-5


def test_beams_find_the_best_of_all(lm):
    """With room for every piece of one token."""
    found = lm.fill_blanks("the [MASK] sat.", num_beams=lm.config.vocab_size, max_new_tokens=1)
    best = []
    for token in range(lm.config.vocab_size):
        log_probs, wanted = full_pass(lm, "the [MASK] sat.", [[token]])
        best.append(log_probs[0, wanted[0]])
    end = blanks.needed(lm, "test")[2]
    best[end] = full_pass(lm, "the [MASK] sat.", [[]])[0][0, end]
    assert found.score == pytest.approx(max(best), abs=1e-5)
    assert (found.tokens[0] or [end]) == [int(np.argmax(best))]


def test_several_texts_are_each_as_alone(lm):
    together = lm.fill_blanks(TEXTS, num_beams=2, max_new_tokens=3)
    for text, found in zip(TEXTS, together, strict=True):
        alone = lm.fill_blanks(text, num_beams=2, max_new_tokens=3)
        assert found.tokens == alone.tokens and found.score == pytest.approx(alone.score, abs=1e-4)
    assert lm.fill_blanks([]) == []


def test_the_text_has_the_pieces_in_its_blanks(lm):
    tokenizer = lm.tokenizer
    row = blanks.blanks_of(lm, TEXT, "test")
    sat, mat = blanks.pieces_of(tokenizer, row, ["sat", "mat"])
    end = blanks.needed(lm, "test")[2]
    found = blanks.filled(tokenizer, row, [*sat, end, *mat, end], -1.0, end)
    assert found.pieces == ["sat", "mat"]
    assert found.text.replace(" .", ".") == "the cat sat on a mat."  # sentencepiece parts what follows a mask


def test_sampling_follows_its_seed(lm):
    options = dict(do_sample=True, top_k=0, max_new_tokens=4)
    a, b, c = (lm.fill_blanks(TEXT, seed=seed, **options) for seed in (1, 1, 2))
    assert a == b and a.tokens != c.tokens


# ---- scores ----


def test_scores_are_those_of_one_pass(lm):
    answers = ["good", "bad and old", "dark"]
    found = lm.score_blanks("it was [MASK].", answers)
    assert found.dtype == np.float64 and found.shape == (3,)
    for answer, score in zip(answers, found, strict=True):
        row = blanks.blanks_of(lm, "it was [MASK].", "test")
        pieces = blanks.pieces_of(lm.tokenizer, row, [answer])
        log_probs, wanted = full_pass(lm, "it was [MASK].", pieces)
        each = log_probs[np.arange(len(wanted)), wanted]
        assert score == pytest.approx(each.sum(), abs=1e-4)
        (without,) = lm.score_blanks("it was [MASK].", [answer], end=False)
        assert without == pytest.approx(each[:-1].sum(), abs=1e-4)


def test_scores_of_several_blanks(lm):
    both = lm.score_blanks(TEXT, [["sat", "mat"], ["ran", "dark dog"]])
    assert both.shape == (2,) and (both < 0).all() and both[0] != both[1]
    assert lm.score_blanks(TEXT, []).shape == (0,)


def test_all_answers_of_one_token_make_less_than_one():
    """The probabilities of pieces are those of one distribution."""
    lm = made(plm.train_tokenizer(texts=LINES, kind="wordpiece", family="glm", vocab_size=90))
    row = blanks.blanks_of(lm, "it was [MASK].", "test")
    _, start, end = blanks.needed(lm, "test")
    given = blanks.with_pieces(row, [np.zeros(0, np.int64)], start, end)
    labels = given.pop("labels")
    first = lm(**{k: v[None] for k, v in given.items()}, source_lengths=[len(row.ids)]).logits.numpy()[0, -1]
    first = np.exp(first.astype(np.float64) - first.max())
    shares = np.exp(lm.score_blanks("it was [MASK].", WORDS))
    assert 0 < shares.sum() < 1 - first[end] / first.sum() and labels[-1] == end


def test_classes_by_their_answers(lm):
    answers = {"positive": "good", "negative": "bad and old"}
    texts = ["the cat sat.", "a dog ran", "once upon a time"]
    found = lm.classify_blanks(texts, answers, "{} it was [MASK].", batch_size=4)
    for text, one in zip(texts, found, strict=True):
        scores = lm.score_blanks(f"{text} it was [MASK].", list(answers.values()))
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        assert one["probabilities"] == pytest.approx(dict(zip(answers, shares)), abs=1e-5)
        assert one["label"] == list(answers)[shares.argmax()] and one["probability"] == max(
            one["probabilities"].values()
        )
    assert lm.classify_blanks([], answers) == []
    with pytest.raises(plm.ArgumentError, match="has no {} for the text"):
        lm.classify_blanks(texts, answers, "it was [MASK].")
    with pytest.raises(plm.ArgumentError, match="an answer for each class"):
        lm.classify_blanks(texts, {})


def test_classes_are_learnt_from_examples(lm):
    """The loss of lm(**batch) is that of the answers."""
    lm = made(lm.tokenizer, embedding_dropout_prob=0.0, attention_dropout_prob=0.0, output_dropout_prob=0.0)
    texts, answers = ["the cat was [MASK].", "the dog was [MASK]."], ["good", "bad"]
    optimizer = plm.optim.AdamW(lm.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        lm(**blanks.batch(lm, texts, answers)).loss.backward()
        optimizer.step()
    found = lm.classify_blanks(["cat", "dog"], {"+": "good", "-": "bad"}, "the {} was [MASK].")
    assert [one["label"] for one in found] == ["+", "-"]
    assert [f.pieces for f in lm.fill_blanks(texts, max_new_tokens=3)] == [["good"], ["bad"]]


# ---- what does not fit ----


def test_a_text_without_a_blank(lm):
    for call in (lm.fill_blanks, lambda text: lm.score_blanks(text, ["a"])):
        with pytest.raises(plm.ArgumentError, match=r"the text has no blank, \[MASK\].*: 'no blank here'"):
            call("no blank here")


def test_a_tokenizer_without_the_pieces():
    bare = made(plm.train_tokenizer(texts=LINES, kind="wordpiece", vocab_size=90))
    with pytest.raises(plm.ArgumentError, match="no <|startofpiece|> and no <|endofpiece|>.*add_tokens"):
        bare.fill_blanks(TEXT)
    with pytest.raises(plm.ArgumentError, match="no tokenizer"):
        plm.LanguageModel(bare.model).score_blanks(TEXT, ["a"])


def test_what_does_not_fit(lm):
    with pytest.raises(plm.ArgumentError, match="max_new_tokens must be from 1 to 23"):
        lm.fill_blanks(TEXT, max_new_tokens=24)
    with pytest.raises(plm.ArgumentError, match="the text has [0-9]+ tokens, and the model 24 positions"):
        lm.fill_blanks("[MASK] " + "cat " * 30)
    with pytest.raises(plm.ArgumentError, match="has 2 blanks, so an answer is 2 texts: 'sat'"):
        lm.score_blanks(TEXT, ["sat"])
    with pytest.raises(plm.ArgumentError, match="an answer needs [0-9]+ positions"):
        lm.score_blanks("a [MASK]", ["cat " * 40])
    with pytest.raises(plm.ArgumentError, match="leave num_return_sequences out"):
        lm.fill_blanks(TEXT, 2, 8, num_return_sequences=2)
    gpt2 = plm.from_config(dict(model_type="gpt2", vocab_size=9, n_embd=4, n_layer=1, n_head=1), "causal-lm")
    with pytest.raises(plm.ArgumentError, match="gpt2 with the head causal-lm writes no pieces for blanks"):
        gpt2.fill_blanks(TEXT)
