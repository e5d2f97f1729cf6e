import itertools

import fakes
import numpy as np
import pytest
from plmcore.data import Corpus
from plmcore.objectives import Denoising
from plmcore.objectives.denoising import NOISES
from plmcore.objectives.rng import Rng
from plmcore.train import recipes

BART = fakes.Numbers("bart")
MASK = BART.mask_token_id


def made(noise, documents=100, **settings):
    return Denoising(
        fakes.corpus(BART, documents=documents), BART, 128, noise, packing="sentences", **settings
    )


def examples(objective, epoch=0):
    """(input, original) of every example, without padding and special tokens around them."""
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=epoch)
    for ids, mask, labels in zip(batch["input_ids"], batch["attention_mask"], batch["labels"]):
        seen, target = ids[mask == 1], labels[labels != -100]
        assert seen[0] == target[0] == BART.bos_token_id and seen[-1] == target[-1] == BART.eos_token_id
        yield seen[1:-1], target[1:-1]


def is_subsequence(short, long):
    rest = iter(long.tolist())
    return all(token in rest for token in short.tolist())


def test_labels_are_the_text():
    for noise in NOISES:
        objective = made(noise)
        found = np.concatenate([target for _, target in examples(objective)])
        assert found.tolist() == fakes.stream(objective.corpus).tolist()


def test_token_masking():
    hidden = total = 0
    for seen, target in examples(made("masking")):
        assert len(seen) == len(target)
        masked = seen == MASK
        assert np.array_equal(seen[~masked], target[~masked])
        assert masked.sum() == np.ceil(0.3 * len(target))
        hidden, total = hidden + masked.sum(), total + len(target)
    assert abs(hidden / total - 0.3) < 0.01


def test_token_deletion():
    for seen, target in examples(made("deletion")):
        assert len(seen) == len(target) - np.ceil(0.3 * len(target)) and MASK not in seen
        assert is_subsequence(seen, target)


def test_words_deleted_whole():
    for seen, target in examples(made("deletion", span="word")):
        words = [w.tolist() for w in np.split(target, np.flatnonzero(BART.word_starts[target]))]
        rest = iter(words)
        kept = [w.tolist() for w in np.split(seen, np.flatnonzero(BART.word_starts[seen]))]
        assert all(word in rest for word in kept)
        # words[0] is what precedes the first word.
        assert len(words) - len(kept) == np.ceil(0.3 * (len(words) - 1))


def test_infilling():
    """Each span is one mask; what is left is the text in order; masks between words stand for nothing."""
    spans = words = hidden = 0
    for epoch in range(4):
        for seen, target in examples(made("infilling", documents=300), epoch):
            assert is_subsequence(seen[seen != MASK], target)
            budget = np.ceil(0.3 * BART.word_starts[target].sum())
            gone = BART.word_starts[target].sum() - BART.word_starts[seen[seen != MASK]].sum()
            assert gone <= budget  # overlapping spans hide less
            spans += (seen == MASK).sum()
            hidden, words = hidden + gone, words + BART.word_starts[target].sum()
    assert 0.24 < hidden / words < 0.31
    # budget / mean spans, e^-3 of them of length 0; overlaps join some
    assert 0.07 < spans / words < 0.14


def test_span_lengths_are_poisson_up_to_the_budget():
    objective = made("infilling")
    from plmcore.objectives.rng import Rng

    budget = np.full(3000, 200)
    sizes, inserted = objective.span_sizes(budget, Rng(0, 0, np.arange(3000)))
    assert (sizes.sum(1) == 200).all()
    count = np.count_nonzero(sizes, axis=1) + inserted
    fakes.assert_share(inserted.sum(), count.sum() - 3000, np.exp(-3))  # the last, cut one is never 0
    inner = np.concatenate([s[s > 0][:-1] for s in sizes])
    for k in (1, 2, 3, 5):
        p = np.exp(-3) * 3**k / np.prod(np.arange(1, k + 1)) / (1 - np.exp(-3))
        assert abs((inner == k).mean() - p) < 0.006


def test_one_mask_for_each_hidden_token():
    for seen, target in examples(made("infilling", replace=-1, mean=30.0)):
        if len(seen) == len(target):  # no mask was put between words
            assert ((seen == target) | (seen == MASK)).all()


def test_sentence_permutation():
    objective = made("permutation")
    corpus, text = objective.corpus, fakes.stream(objective.corpus)
    at, changed, total = 0, 0, 0
    for seen, target in examples(objective):
        ends = corpus.sentences[(corpus.sentences > at) & (corpus.sentences < at + len(target))] - at
        sentences = [s.tolist() for s in np.split(text[at : at + len(target)], ends)]
        left = list(sentences)
        rest = seen.tolist()
        while rest:  # made of the same sentences, each whole
            match = next(s for s in left if rest[: len(s)] == s)
            left.remove(match)
            rest = rest[len(match) :]
        assert not left
        changed, total = changed + (not np.array_equal(seen, target)), total + (len(sentences) > 2)
        at += len(target)
    assert changed > 0.7 * total


def test_a_share_of_the_sentences_moves():
    moved = [0, 0]
    for k, share in enumerate((0.3, 1.0)):
        for seen, target in examples(made("permutation", permute_sentences=share)):
            moved[k] += (seen != target).mean()
    assert 0 < moved[0] < 0.6 * moved[1]


def published_sentences(tokens, stop):
    """The rule of fairseq in plain Python: the last token counts as a stop, and the first of several stops
    ends a sentence.
    """
    stops = [token == stop for token in tokens[:-1]] + [True]
    ends = [i + 1 for i, is_stop in enumerate(stops) if is_stop and not (i and stops[i - 1])]
    return [tokens[a:b] for a, b in zip([0, *ends], ends)], tokens[ends[-1] :]


@pytest.mark.parametrize(
    "text", ["a..b.c", "a...", "a.b..", ".a.b", "ab.cd", "a", ".", "..", "ab...cd..e.", "a.b"]
)
def test_sentences_that_end_with_a_full_stop(text):
    """Several stops: the first ends its sentence, the others begin the next; what has no end of its own stays
    last.
    """
    stop = BART.first + 1
    objective = made("permutation", full_stop=stop)
    tokens = [stop if c == "." else 30 + ord(c) for c in text]
    ids, lengths = np.array([tokens]), np.array([len(tokens)])
    starts, fixed = objective.sentences(np.array([0]), ids, lengths)
    sentences, tail = published_sentences(tokens, stop)
    found = [part.tolist() for part in np.split(ids[0], np.flatnonzero(starts[0]))[1:]]
    assert found == sentences + ([tail] if tail else []) and bool(fixed[0]) == bool(tail)
    seen = set()
    for example in range(20):
        rng = Rng(0, 0, np.array([example]))
        moved, _ = objective.permute_sentences(ids, ids > 0, lengths, starts, fixed, rng)
        seen.add(tuple(moved[0].tolist()))
    orders = itertools.permutations(sentences)
    assert seen <= {tuple(token for part in (*order, tail) for token in part) for order in orders}
    assert len(seen) > 1 or len(sentences) < 2


def test_examples_do_not_cross_documents():
    corpus = fakes.corpus(BART, documents=30)
    objective = Denoising(corpus, BART, 128)
    runs = objective.packing.runs(np.arange(len(objective)))
    documents = [
        np.searchsorted(corpus.documents, at, side="right") for at in (runs[0], runs[0] + runs[1] - 1)
    ]
    assert np.array_equal(*documents) and len(np.unique(documents[0])) == 30
    assert "packing" not in recipes.recipe("bart").objective  # so that `plmcore pretrain bart` has it, too


def test_rotation():
    offsets = []
    for seen, target in examples(made("rotation")):
        fits = [k for k in range(len(target)) if np.array_equal(np.roll(target, -k), seen)]
        assert fits
        offsets.append(fits[0] / len(target))
    assert abs(np.mean(offsets) - 0.5) < 0.1
    turned = [not np.array_equal(*pair) for pair in examples(made("rotation", rotate=0.25, documents=400))]
    assert abs(np.mean(turned) - 0.25) < 0.06


def test_insertion():
    places = []
    for seen, target in examples(made("masking", mask=0.0, insert=0.1)):
        assert np.array_equal(seen[seen != MASK], target)
        assert (seen == MASK).sum() == np.ceil(0.1 * (len(target) + 2))
        places += ((np.flatnonzero(seen == MASK) + 0.5) / len(seen)).tolist()
    assert abs(np.mean(places) - 0.5) < 0.03


def test_no_input_is_longer_than_the_length():
    full = Corpus.from_ids([np.full(10, BART.first)] * 300, BART.vocab_size)
    for settings in ({"mask": 0.1, "mean": 0.3}, {"mask": 0.0, "insert": 0.5}):
        objective = Denoising(full, BART, 12, "infilling", packing="documents", **settings)
        assert objective.batch(np.arange(300), seed=0, epoch=0)["input_ids"].shape[1] == 12


def test_some_masks_are_random_tokens():
    random = masks = 0
    for seen, target in examples(made("masking", random=0.25)):
        random += ((seen != target) & (seen != MASK)).sum()
        masks += (seen == MASK).sum()
    fakes.assert_share(random, random + masks, 0.25 * (1 - 2 / BART.vocab_size))


def test_settings_are_checked():
    for settings, message in (
        ({"noise": "loud"}, "noise must be one of 'bart', .*got 'loud'"),
        ({"mask": 1.1}, "mask must be from 0 up to 1, got 1.1"),
        ({"span": "line"}, "span must be 'poisson', 'word' or 'token', got 'line'"),
        ({"replace": 2}, "replace must be 1, 0 or -1, got 2"),
        ({"mean": 0}, "mean must be from 0.1 to 100, got 0"),
        ({"mean": 1e-6}, "mean must be from 0.1 to 100, got 1e-06"),
        ({"mean": 1e4}, "mean must be from 0.1 to 100, got 10000.0"),
    ):
        with pytest.raises(ValueError, match=message):
            made(**{"noise": "bart"} | settings)
    with pytest.raises(TypeError, match="unexpected keyword argument 'masks'"):
        made("bart", masks=0.5)
