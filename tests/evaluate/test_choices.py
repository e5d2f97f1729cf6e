import math

import numpy as np
import plmcore as plm
import pytest
from plmcore.evaluate import choose, continuations, last_words
from small_models import GPT2, MASKED, SEQ2SEQ, TEXT, log_softmax, sharp


@pytest.fixture(scope="module")
def lm():
    tokenizer = plm.tokenizers.train_tokenizer(texts=[TEXT], kind="byte-bpe", vocab_size=290)
    return sharp(dict(GPT2, n_positions=32), "causal-lm", tokenizer)


@pytest.fixture(scope="module")
def wordpiece():
    return plm.tokenizers.train_tokenizer(texts=[TEXT], kind="wordpiece", vocab_size=60)


def by_hand(lm, context, continuation):
    """ln p of what the continuation adds to the context's tokens, and whether greedy decoding writes it."""
    whole, before = (lm.tokenizer.encode_ids([text])[0] for text in (context + continuation, context))
    assert np.array_equal(whole[: len(before)], before)
    total, greedy = 0.0, True
    for i in range(len(before), len(whole)):
        with plm.no_grad():
            logp = log_softmax(lm(input_ids=whole[None, max(0, i - 32) : i]).logits)[0, -1]
        total, greedy = total + logp[whole[i]], greedy and logp.argmax() == whole[i]
    return total, len(whole) - len(before), greedy


def test_continuations(lm):
    pairs = [
        ("the cat sat", " on the mat"),
        ("the dog", " ran"),
        ("the cat", " sat on the mat and the dog ran far"),
    ]
    for found, pair in zip(continuations(lm, pairs, batch_tokens=20), pairs, strict=True):
        want = by_hand(lm, *pair)
        assert found.log_prob == pytest.approx(want[0], rel=1e-5) and (found.tokens, found.greedy) == want[1:]


def test_a_greedy_continuation_is_found():
    tokenizer = plm.tokenizers.train_tokenizer(texts=[TEXT], kind="characters", vocab_size=None)
    lm = sharp(dict(GPT2, n_positions=32), "causal-lm", tokenizer)
    found = 0
    for n in range(3, 30):
        ids = tokenizer.encode_ids([TEXT[:n]])[0].tolist()
        for _ in range(2):
            with plm.no_grad():
                ids.append(int(lm(input_ids=[ids]).logits.numpy()[0, -1].argmax()))
        if not np.isin(ids, tokenizer.special_ids).any():
            rest = tokenizer.decode(ids[n:])
            other = rest[0] + ("a" if rest[1] != "a" else "e")
            assert [c.greedy for c in continuations(lm, [(TEXT[:n], rest), (TEXT[:n], other)])] == [
                True,
                False,
            ]
            found += 1
    assert found > 3


def test_a_long_context_loses_its_beginning(lm):
    long = continuations(lm, [(TEXT + "the dog", " ran far")])[0]
    asked = long.tokens
    ids = lm.tokenizer.encode_ids([TEXT + "the dog ran far"])[0][-33:]
    with plm.no_grad():
        logp = log_softmax(lm(input_ids=ids[None, :-1]).logits)[0]
    want = sum(logp[i - 1, ids[i]] for i in range(33 - asked, 33))
    assert long.log_prob == pytest.approx(want, rel=1e-5)


def test_a_token_that_joins_both_is_scored(lm):
    # " ma" and "t" are written with the token " mat" when they meet
    whole, before = lm.tokenizer.encode_ids(["on the mat", "on the ma"])
    shared = next((i for i, (a, b) in enumerate(zip(whole, before)) if a != b), min(len(whole), len(before)))
    assert shared < len(before)
    assert continuations(lm, [("on the ma", "t")])[0].tokens == len(whole) - shared


def test_start(lm):
    with pytest.raises(ValueError, match="the first token needs something before it"):
        continuations(lm, [("", "the cat")])
    found = continuations(lm, [("", "the cat")], start=5)[0]
    assert found.tokens == len(lm.tokenizer.encode_ids(["the cat"])[0])


RECORDS = [
    {"context": "the cat", "choices": [" sat on the mat", " ran", " see the other cat"], "label": 1},
    {"context": "the dog ran far", "choices": [" away", " zoo"], "label": 0},
]


@pytest.mark.parametrize("normalise", ["sum", "tokens", "characters", "bytes", "context"])
def test_choose(lm, normalise):
    got = choose(lm, RECORDS, normalise)
    right = []
    for record, scores, prediction in zip(RECORDS, got.scores, got.predictions):
        want = []
        for choice in record["choices"]:
            total, tokens, _ = by_hand(lm, record["context"], choice)
            size = {"tokens": tokens, "characters": len(choice) - 1, "bytes": len(choice) - 1}.get(
                normalise, 1
            )
            without = by_hand(lm, "Answer:", choice)[0] if normalise == "context" else 0
            want.append(total / size - without)
        np.testing.assert_allclose(scores, want, rtol=1e-4, atol=1e-4)
        assert prediction == np.argmax(want)
        right.append(prediction == record["label"])
    assert got.accuracy == np.mean(right)


def test_choose_in_the_middle_and_without_labels(lm):
    got = choose(lm, [{"contexts": ["the cat", "the dog"], "continuation": " sat on the mat"}])
    want = [by_hand(lm, c, " sat on the mat")[0] for c in ("the cat", "the dog")]
    np.testing.assert_allclose(got.scores[0], want, rtol=1e-5)
    assert got.accuracy is None


def test_seq2seq_choices(wordpiece):
    lm = sharp(SEQ2SEQ["t5"], "seq2seq-lm", wordpiece)
    found = continuations(lm, [("the cat sat", "on the mat"), ("the dog", "ran")])
    for c, (source, target) in zip(found, [("the cat sat", "on the mat"), ("the dog", "ran")]):
        labels = wordpiece(target).input_ids[None]
        with plm.no_grad():
            loss = lm(input_ids=wordpiece(source).input_ids[None], labels=labels).loss.item()
        assert c.log_prob == pytest.approx(-loss * labels.size, rel=1e-5) and c.tokens == labels.size


def test_last_words(lm):
    texts = ["the cat sat on the mat", "the dog\nran far  away \n"]
    got = last_words(lm, texts)
    want = [by_hand(lm, "the cat sat on the", " mat"), by_hand(lm, "the dog ran far", " away")]
    np.testing.assert_allclose(got.log_probs, [w[0] for w in want], rtol=1e-5)
    assert got.right.tolist() == [w[2] for w in want] and got.accuracy == np.mean([w[2] for w in want])
    assert got.perplexity == pytest.approx(math.exp(-np.mean([w[0] for w in want])), rel=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda lm: choose(lm, RECORDS, "mean"),
            "normalise must be one of sum, tokens, characters, bytes, context, got 'mean'",
        ),
        (lambda lm: choose(lm, []), "there are no records"),
        (
            lambda lm: choose(lm, [{"text": "a"}]),
            "record 0 must have context and choices, or contexts and continuation; it has text",
        ),
        (lambda lm: choose(lm, [{"context": "a", "choices": ["b"]}]), "record 0 has 1 choices"),
        (lambda lm: choose(lm, [dict(RECORDS[0], label=3)]), "label of record 0 must be from 0 to 2, got 3"),
        (lambda lm: choose(lm, [dict(RECORDS[0], label="b")]), "got 'b'"),
        (lambda lm: continuations(lm, [("the cat", "")]), "must have tokens of its own, got ''"),
        (lambda lm: continuations(lm, [("the", TEXT)]), "does not fit the 32 positions"),
        (lambda lm: last_words(lm, ["word"]), "text 0 has no context before its last word: 'word'"),
        (lambda lm: last_words(lm, []), "there are no texts"),
    ],
)
def test_bad_input(lm, call, message):
    with pytest.raises(ValueError, match=message):
        call(lm)


def test_models_that_do_not_continue(wordpiece):
    with pytest.raises(ValueError, match="a masked model does not continue texts"):
        continuations(sharp(MASKED["bert"], "masked-lm", wordpiece), [("a", " b")])
    with pytest.raises(ValueError, match="this model has no tokenizer"):
        continuations(sharp(GPT2, "causal-lm"), [("a", " b")])
