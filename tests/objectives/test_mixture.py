import fakes
import numpy as np
import pytest
from plmcore.data import Batches
from plmcore.objectives import MaskedLM, Mixture, NextSentence, Objective, SpanCorruption
from plmcore.objectives.mixture import shares_of

T5 = fakes.Numbers("t5", sentinels=20)


class Marked(Objective):
    """n examples; row i is [mark, i, epoch] and `extra` more."""

    def __init__(self, mark, n, extra=0):
        self.mark, self.n, self.extra = mark, n, extra

    def examples(self, epoch):
        return self.n

    def build(self, examples, rng):
        rows = np.stack([np.full(len(examples), self.mark), examples, np.full(len(examples), rng.epoch)], 1)
        rows = np.pad(rows, ((0, 0), (0, self.extra)), constant_values=99)
        return {"input_ids": rows, "attention_mask": np.ones_like(rows), "labels": rows[:, :2]}


def rows_of(mixture, epochs, seed=0):
    """[n, 3] of all examples of the epochs, in the order of their numbers."""
    batches = [mixture.batch(np.arange(mixture.examples(e)), seed=seed, epoch=e) for e in epochs]
    return np.concatenate([b["input_ids"][:, :3] for b in batches])


def test_every_part_goes_through_its_examples_before_one_comes_again():
    mixture = Mixture(
        {"a": Marked(1, 30), "b": Marked(2, 7), "c": Marked(3, 100)}, T5, rates={"a": 0.5, "b": 0.2}
    )
    assert mixture.examples(0) == 30 + 12 + 18
    rows = rows_of(mixture, range(5))
    for mark, n, count in ((1, 30, 30), (2, 7, 12), (3, 100, 18)):
        own = rows[rows[:, 0] == mark]
        assert len(own) == 5 * count
        for epoch in range(5 * count // n):  # whole passes
            assert sorted(own[own[:, 2] == epoch, 1]) == list(range(n))
        assert len(set(map(tuple, own.tolist()))) == len(own)
    first, second = (rows[rows[:, 2] == e][:, :2] for e in (0, 1))
    a = [x[x[:, 0] == 1, 1].tolist() for x in (first, second)]
    assert a[0] != a[1] and a[0] != sorted(a[0])


def test_batches_have_the_parts_by_their_rates():
    """Rows of 200 batches, within three standard deviations; every batch is a function of the step."""
    parts = {"a": Marked(1, 5000), "b": Marked(2, 300), "c": Marked(3, 1200)}
    for settings, shares in (
        (dict(), [5000 / 6500, 300 / 6500, 1200 / 6500]),
        (dict(limit=1000), [1000 / 2300, 300 / 2300, 1000 / 2300]),
        (dict(temperature=1e9), [1 / 3, 1 / 3, 1 / 3]),
        (dict(temperature=2.0), list(np.sqrt([5000, 300, 1200]) / np.sqrt([5000, 300, 1200]).sum())),
        (dict(rates={"b": 0.5}), [0.5 * 5000 / 6200, 0.5, 0.5 * 1200 / 6200]),
        (dict(rates={"a": 0.2, "b": 0.3, "c": 0.5}), [0.2, 0.3, 0.5]),
    ):
        batches = Batches(Mixture(parts, T5, **settings), 8, seed=3)
        marks = np.concatenate([batches[step]["input_ids"][:, 0] for step in range(200)])
        for mark, share in enumerate(shares, 1):
            fakes.assert_share(int((marks == mark).sum()), len(marks), share)
    again = Batches(Mixture(parts, T5, **settings), 8, seed=3)
    for step in (199, 0, 57):
        assert all((again[step][k] == v).all() for k, v in batches[step].items())
    other = Batches(Mixture(parts, T5, **settings), 8, seed=4)
    assert (other[0]["input_ids"] != batches[0]["input_ids"]).any()


@pytest.mark.parametrize("family", ["t5", "xlnet"])
def test_rows_are_padded_to_the_widest(family):
    tokenizer = fakes.Numbers(family, sentinels=20)
    mixture = Mixture({"a": Marked(1, 4), "b": Marked(2, 4, extra=3)}, tokenizer)
    batch = mixture.batch(np.arange(8), seed=0, epoch=0)
    assert batch["input_ids"].shape == batch["attention_mask"].shape == (8, 6) and batch["labels"].shape == (
        8,
        2,
    )
    short = batch["attention_mask"].sum(1) == 3
    assert short.sum() == 4
    padding, own = (slice(0, 3), slice(3, 6)) if family == "xlnet" else (slice(3, 6), slice(0, 3))
    assert (batch["input_ids"][short][:, padding] == tokenizer.pad_token_id).all()
    assert (batch["attention_mask"][short][:, padding] == 0).all() and (
        batch["input_ids"][short][:, own][:, 0] == 1
    ).all()
    assert (batch["input_ids"][~short][:, 0] == 2).all()


def test_a_row_does_not_depend_on_the_others():
    corpus = fakes.corpus(T5)
    mixture = Mixture({"text": SpanCorruption(corpus, T5, 32), "twice": SpanCorruption(corpus, T5, 32)}, T5)
    n = mixture.examples(0)
    whole = mixture.batch(np.arange(n), seed=0, epoch=1)
    for i in (0, n // 2, n - 1):
        row = mixture.batch([i], seed=0, epoch=1)
        width = row["labels"].shape[1]
        assert (whole["labels"][i, :width] == row["labels"][0]).all() and (
            whole["labels"][i, width:] == -100
        ).all()
    halves = [
        sorted(map(tuple, whole["input_ids"][s].tolist())) for s in (slice(0, n // 2), slice(n // 2, n))
    ]
    assert halves[0] != halves[1]  # the same text, with noise of its own


def test_what_cannot_be_mixed():
    bert = fakes.Numbers("bert")
    corpus = fakes.corpus(bert)
    mixture = Mixture({"a": MaskedLM(corpus, bert, 32), "b": NextSentence(corpus, bert, 32)}, bert)
    with pytest.raises(
        ValueError, match="must give the same of input_ids, .*; got .* and .*next_sentence_label"
    ):
        mixture.batch(np.arange(mixture.examples(0)), seed=0, epoch=0)
    with pytest.raises(ValueError, match="needs objectives, got none"):
        Mixture({}, T5)

    class Growing(Marked):
        def examples(self, epoch):
            return self.n + epoch

    mixture = Mixture({"a": Marked(1, 4), "b": Growing(2, 3)}, T5)
    mixture.batch(np.arange(7), seed=0, epoch=0)
    with pytest.raises(ValueError, match="b has another number of examples in each epoch"):
        mixture.batch(np.arange(7), seed=0, epoch=1)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(rates={"c": 0.5}), "a rate for 'c', and the parts are a, b"),
        (dict(rates={"a": 0}), "above 0 and at most 1, got 0 for a"),
        (dict(rates={"a": 1.0}), "make 1 together and leave nothing for b"),
        (dict(rates={"a": 0.7, "b": 0.7}), "must make 1 together, got 1.4"),
        (dict(rates={"a": 0.2, "b": 0.2}), "must make 1 together, got 0.4"),
        (dict(temperature=0), "temperature must be above 0 and limit at least 1, got 0 and 524288"),
        (dict(limit=0), "got 1.0 and 0"),
    ],
)
def test_bad_rates(arguments, message):
    with pytest.raises(ValueError, match=message):
        Mixture({"a": Marked(1, 4), "b": Marked(2, 4)}, T5, **arguments)


def test_shares():
    """T5: min(examples, K), to the power 1 / T."""
    sizes = {"a": 1 << 20, "b": 1 << 10}
    assert shares_of(sizes, {}, 1 << 19, 1.0) == {"a": 512 / 513, "b": 1 / 513}
    shares = shares_of(sizes, {}, 1 << 20, 2.0)
    np.testing.assert_allclose(shares["a"] / shares["b"], 32)
