"""What every objective promises: rows of seed, epoch and index alone; errors that name the value."""

import pickle

import fakes
import numpy as np
import pytest
from plmcore import objectives
from plmcore.data import Batches, Corpus

CASES = {
    "causal-lm": ("gpt", {}),
    "causal-lm documents": ("bart", {"packing": "documents"}),
    "causal-lm streams": ("gpt", {"streams": 4, "length": 20}),
    "bidirectional-lm": ("bart", {}),
    "masked-lm": ("bert", {}),
    "masked-lm words": ("bert", {"unit": "word", "packing": "documents"}),
    "masked-lm ngrams": ("bert", {"unit": "ngram", "exact": True}),
    "masked-lm spans": ("bert", {"unit": "span", "spans": [[3, 9], [11, 14], [100, 130]]}),
    "next-sentence": ("bert", {}),
    "sentence-order": ("bert", {"unit": "ngram", "exact": True}),
    "permutation-lm": ("xlnet", {"block": 32}),
    "denoising": ("bart", {"insert": 0.05, "rotate": 0.5, "random": 0.1}),
    "fragment": ("bart", {"positions": True}),
    "span-corruption": ("t5", {"packing": "documents"}),
    "blank-infilling": ("bert", {"modes": (1, 1, 1)}),
    "masked-seq2seq": ("bart", {}),
    "contrastive": ("bert", {"negatives": True}),
}
NOISELESS = ("causal-lm", "bidirectional-lm")


def made(case, **changes):
    family, settings = CASES[case]
    tokenizer = fakes.Numbers(family, sentinels=100)
    settings = {"length": 64} | settings | changes
    return objectives.make(case.split()[0], fakes.corpus(tokenizer), tokenizer, **settings)


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("case", CASES)
def test_a_row_does_not_depend_on_the_other_rows(case):
    objective = made(case)
    indices = np.array([5, 0, 11, 3, 11])
    together = objective.batch(indices, seed=3, epoch=2)
    for k, i in enumerate(indices):
        alone = objective.batch([i], seed=3, epoch=2)
        assert alone.keys() == together.keys()
        for name, value in alone.items():
            row = together[name][k]
            corner = tuple(slice(n) for n in value[0].shape)
            assert np.array_equal(row[corner], value[0]), name
            padding = np.ones(row.shape, bool)
            padding[corner] = False
            assert len(np.unique(row[padding])) < 2, name  # one fill value


@pytest.mark.parametrize("case", CASES)
def test_seed_and_epoch_change_the_noise_and_nothing_else_does(case):
    objective = made(case)
    indices = np.arange(12)
    first = objective.batch(indices, seed=3, epoch=0)
    assert same(first, made(case).batch(list(indices), seed=3, epoch=0))
    others = [objective.batch(indices, seed=4, epoch=0), objective.batch(indices, seed=3, epoch=1)]
    assert all(same(first, other) == case.startswith(NOISELESS) for other in others)
    assert same(first, pickle.loads(pickle.dumps(objective)).batch(indices, seed=3, epoch=0))


@pytest.mark.parametrize("case", CASES)
def test_arrays_are_what_models_take(case):
    batch = made(case).batch(np.arange(12), seed=0, epoch=0)
    for name, value in batch.items():
        expected = np.float32 if name in ("perm_mask", "target_mapping") else np.int64
        assert value.dtype == expected and len(value) == 12 and value.flags.c_contiguous, name
    for name in set(batch) - {"perm_mask", "target_mapping"}:
        assert batch[name].min() >= (-100 if "label" in name else 0) and batch[name].max() < 1111 + 11, name


@pytest.mark.parametrize("case", CASES)
def test_lengths_are_those_of_the_inputs(case):
    objective = made(case)
    lengths = objective.lengths(0)
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=0)
    if lengths is None:
        return
    assert len(lengths) == len(objective)
    if case.startswith(("denoising", "blank-infilling")):  # noise makes them shorter or longer
        return
    real = batch["attention_mask"].sum(1)
    assert (
        (real <= lengths).all()
        if case in ("next-sentence", "sentence-order")
        else np.array_equal(real, lengths)
    )


@pytest.mark.parametrize("case", ["masked-lm", "next-sentence", "denoising"])
def test_copies_repeat_their_noise(case):
    objective = made(case, copies=3)
    batches = [objective.batch(np.arange(10), seed=0, epoch=e) for e in range(7)]
    assert same(batches[0], batches[3]) and same(batches[0], batches[6]) and same(batches[1], batches[4])
    assert not same(batches[0], batches[1]) and not same(batches[1], batches[2])


def test_batches_over_an_objective_resume_and_shard():
    objective = made("masked-lm")
    whole = Batches(objective, 8, seed=7)
    resumed = Batches(made("masked-lm"), 8, seed=7)
    assert all(same(whole[s], resumed[s]) for s in (11, 4, 30))
    halves = [Batches(objective, 4, seed=7, rank=r, ranks=2)[9] for r in (0, 1)]
    rows = {tuple(fakes.text_of(row, objective.tokenizer)) for half in halves for row in half["input_ids"]}
    assert rows == {tuple(fakes.text_of(row, objective.tokenizer)) for row in whole[9]["input_ids"]}


@pytest.mark.parametrize("case", ["masked-lm ngrams", "next-sentence", "denoising", "blank-infilling"])
def test_any_number_of_workers_makes_the_same_batches(case):
    steps = [Batches(made(case), 8, seed=7)[s] for s in range(3, 10)]
    for workers in (0, 1, 3):
        stream = Batches(made(case), 8, seed=7).stream(3, workers=workers)
        assert all(same(next(stream), expected) for expected in steps)
        stream.close()


def test_wrong_indices():
    objective = made("masked-lm")
    n = len(objective)
    with pytest.raises(IndexError, match=f"has {n} examples in epoch 0, got index {n}"):
        objective.batch([0, n], seed=0, epoch=0)
    with pytest.raises(IndexError, match="got index -1"):
        objective.batch([-1], seed=0, epoch=0)
    for wrong in ([], [[0]], [0.5]):
        with pytest.raises(ValueError, match="indices must be a list of one or more whole numbers"):
            objective.batch(wrong, seed=0, epoch=0)


def test_wrong_data():
    tokenizer = fakes.Numbers()
    with pytest.raises(ValueError, match="the corpus has no text"):
        objectives.MaskedLM(Corpus.from_ids([], 1000), tokenizer)
    with pytest.raises(ValueError, match=r"another tokenizer: its fingerprint is abcdefabcdef\.\.\."):
        written = Corpus.from_ids([[20]], 1000, tokenizer={"fingerprint": "abcdef" * 10})
        objectives.MaskedLM(written, tokenizer)
    with pytest.raises(ValueError, match="the corpus has ids up to 5000, and the tokenizer 1011 tokens"):
        objectives.MaskedLM(Corpus.from_ids([[20]], 5000), tokenizer)
    with pytest.raises(ValueError, match="length leaves 0 tokens"):
        objectives.MaskedLM(fakes.corpus(tokenizer), tokenizer, length=2)
    with pytest.raises(ValueError, match="packing must be one of .*'full-sentences', got 'pages'"):
        objectives.MaskedLM(fakes.corpus(tokenizer), tokenizer, packing="pages")
    with pytest.raises(ValueError, match="copies must be at least 1, got 0"):
        objectives.MaskedLM(fakes.corpus(tokenizer), tokenizer, copies=0)


def test_make_knows_names():
    assert objectives.NAMES == tuple(dict.fromkeys(objectives.NAMES)) and len(objectives.NAMES) == 14
    with pytest.raises(ValueError, match="no objective 'mlm'; there are causal-lm, .*masked-lm"):
        objectives.make("mlm")
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        objectives.Nothing
    assert set(objectives.__all__) >= {"MaskedLM", "SpanCorruption", "make", "info_nce"}
