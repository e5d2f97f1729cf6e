import fakes
import numpy as np
import pytest
from plmcore.data import Corpus
from plmcore.objectives import MaskedLM, choosing

BERT = fakes.Numbers()
IGNORED = -100


def everything(objective, seed=0, epoch=0):
    return objective.batch(np.arange(len(objective)), seed=seed, epoch=epoch)


def large(**settings):
    return MaskedLM(fakes.corpus(BERT, documents=600), BERT, length=128, **settings)


def test_frequencies():
    objective = large()
    batch = everything(objective)
    ids, labels = batch["input_ids"], batch["labels"]
    chosen = labels != IGNORED
    tokens = np.where(chosen, labels, ids)
    text = tokens >= BERT.first
    n = chosen.sum()
    fakes.assert_share(n, text.sum(), 0.15)
    fakes.assert_share((ids[chosen] == BERT.mask_token_id).sum(), n, 0.8 + 0.1 / BERT.vocab_size)
    fakes.assert_share((ids[chosen] == labels[chosen]).sum(), n, 0.1 + 0.1 / BERT.vocab_size)
    random = ids[chosen & (ids != labels) & (ids != BERT.mask_token_id)]
    counts = np.bincount(random * 10 // BERT.vocab_size, minlength=10)
    assert abs(counts - len(random) / 10).max() < 4 * np.sqrt(len(random) * 0.09)
    assert len(np.unique(random)) > 300
    assert text[chosen].all()  # special tokens are never chosen
    assert (np.isin(tokens, BERT.special_ids) == (tokens < BERT.first)).all()


def test_labels_put_back_are_the_text():
    for settings in ({}, {"unit": "word"}, {"unit": "ngram", "exact": True}, {"packing": "windows"}):
        objective = large(**settings)
        batch = everything(objective)
        restored = np.where(batch["labels"] != IGNORED, batch["labels"], batch["input_ids"])
        found = [i for row in restored for i in fakes.text_of(row, BERT)]
        assert found == fakes.stream(objective.corpus)[: len(found)].tolist()
        assert len(found) > len(objective.corpus.ids) - 128


def test_full_sentences_put_a_separator_between_documents():
    objective = large()
    row = objective.batch([0], seed=0, epoch=0)["input_ids"][0]
    batch = objective.batch([0], seed=0, epoch=0)
    restored = np.where(batch["labels"] != IGNORED, batch["labels"], batch["input_ids"])[0]
    assert restored[0] == BERT.cls_token_id and restored[-1] == BERT.sep_token_id
    inner = restored[1:-1]
    first = np.asarray(objective.corpus[0]).tolist()
    assert inner[: len(first)].tolist() == first and inner[len(first)] == BERT.sep_token_id
    assert row[len(first) + 1] == BERT.sep_token_id


def test_exact_counts_follow_berts_rule():
    batch = everything(large(exact=True, packing="documents"))
    lengths = batch["attention_mask"].sum(1)
    expected = np.maximum(1, np.rint(lengths * 0.15))
    assert ((batch["labels"] != IGNORED).sum(1) == expected).all() and len(np.unique(expected)) > 10
    capped = everything(large(exact=True, most=5, packing="documents"))
    assert ((capped["labels"] != IGNORED).sum(1) == np.minimum(expected, 5)).all()


def test_exact_choice_takes_every_token_alike():
    counts = np.zeros(32)
    objective = MaskedLM(
        Corpus.from_ids([np.arange(100, 130)] * 400, 1000), BERT, length=32, packing="documents", exact=True
    )
    for epoch in range(5):
        counts += (everything(objective, epoch=epoch)["labels"] != IGNORED).sum(0)
    assert counts[0] == counts[-1] == 0
    expected = 2000 * 5 / 30  # round(0.15 * 32) = 5 of 30
    assert abs(counts[1:-1] - expected).max() < 4 * np.sqrt(expected * 5 / 6)


def words_of(tokens):
    """The word of each column: a number that goes up where one begins."""
    return np.cumsum(BERT.word_starts[tokens] | (tokens < BERT.first), 1)


@pytest.mark.parametrize("exact", [False, True])
def test_words_are_chosen_as_wholes(exact):
    batch = everything(large(unit="word", exact=exact))
    chosen = batch["labels"] != IGNORED
    tokens = np.where(chosen, batch["labels"], batch["input_ids"])
    text, word = tokens >= BERT.first, words_of(tokens)
    word[:, 1:][~text[:, :-1]] += 10_000  # the first piece of a row begins a word whatever it is
    for row in range(len(tokens)):
        for w in np.unique(word[row][chosen[row]]):
            inside = (word[row] == w) & text[row]
            assert chosen[row][inside].all()
    if exact:
        lengths = batch["attention_mask"].sum(1)
        assert (chosen.sum(1) <= np.maximum(1, np.rint(lengths * 0.15))).all()
        # One too large is passed over, a smaller one found.
        assert (chosen.sum(1) >= np.rint(lengths * 0.15) - 2).all()
    else:
        assert abs(chosen.sum() / text.sum() - 0.15) < 0.01


def test_exact_units_equal_the_greedy_rule():
    rng = np.random.default_rng(0)
    from plmcore.objectives.rng import Rng

    for _ in range(30):
        T = 40
        starts = rng.random((6, T)) < 0.4
        starts[:, 0] = True
        able = np.ones((6, T), bool)
        counts = rng.integers(1, 12, 6)
        own = Rng(int(rng.integers(1000)), 0, np.arange(6))
        found = choosing.exact_units(starts, able, counts, own)
        keys = own.uniform("choose", T)
        for row in range(6):
            unit = np.cumsum(starts[row]) - 1
            left, expected = counts[row], set()
            for u in np.argsort(keys[row, : unit[-1] + 1]):
                size = (unit == u).sum()
                if size <= left:
                    left -= size
                    expected.add(u)
            assert found[row].tolist() == np.isin(unit, list(expected)).tolist()


def test_ngram_lengths_fall_as_one_over_n():
    """Of words that are single tokens: runs of starts are the n-grams."""
    from plmcore.objectives.rng import Rng

    starts = able = np.ones((2000, 60), bool)
    found = choosing.ngram_starts(starts, able, 3, Rng(0, 0, np.arange(2000)))
    sizes = np.concatenate([np.diff(np.flatnonzero(row)) for row in found])
    weights = np.array([1, 1 / 2, 1 / 3])
    counts, expected = np.bincount(sizes, minlength=4)[1:], weights / weights.sum() * len(sizes)
    assert counts.sum() == len(sizes) and (abs(counts - expected) < 0.02 * len(sizes)).all()


def test_ngrams_of_albert():
    batch = everything(large(unit="ngram", exact=True))
    chosen = batch["labels"] != IGNORED
    assert (chosen.sum(1) <= np.rint(batch["attention_mask"].sum(1) * 0.15)).all()
    assert not (chosen & (np.where(chosen, batch["labels"], batch["input_ids"]) < BERT.first)).any()
    runs = np.diff(np.flatnonzero(np.diff(np.pad(chosen, ((0, 0), (1, 1))).astype(int).ravel())))[::2]
    assert runs.max() > 3  # several pieces of several words


def test_marked_spans_are_chosen_as_wholes():
    spans = np.array([[k * 20 + 3, k * 20 + 3 + 2 + k % 7] for k in range(100)])
    objective = MaskedLM(
        Corpus.from_ids([np.full(3000, BERT.first)], BERT.vocab_size),
        BERT,
        length=130,
        packing="windows",
        unit="span",
        spans=spans,
    )
    hits = 0
    for epoch in range(20):
        batch = everything(objective, epoch=epoch)
        chosen = (batch["labels"] != IGNORED)[:, 1:-1].ravel()  # windows of 128 on end
        for start, end in spans:
            if end <= len(chosen) and start // 128 == (end - 1) // 128:
                assert chosen[start:end].all() or not chosen[start:end].any()
                hits += chosen[start]
    assert hits > 200


def test_settings_are_checked():
    c = fakes.corpus(BERT)
    for settings, message in (
        ({"rate": 0.0}, "rate must be above 0 and up to 1, got 0.0"),
        ({"rate": 1.5}, "got 1.5"),
        ({"unit": "page"}, "unit must be one of 'token', 'word', 'ngram', 'span', got 'page'"),
        ({"shares": (0.8, 0.1)}, "three numbers"),
        ({"shares": (0.8, 0.1, 0.2)}, r"add up to 1, got \[0.8, 0.1, 0.2\]"),
        ({"unit": "span"}, "got unit='span' and no spans"),
        ({"spans": [[0, 1]]}, "got unit='token' and spans"),
        ({"unit": "span", "spans": [[3, 3]]}, "in order, not empty"),
        ({"unit": "span", "spans": [3, 4]}, r"must be \[n, 2\], got \[2\]"),
        ({"most": 5}, "most limits the tokens of exact=True"),
        ({"longest": 0}, "longest must be at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            MaskedLM(c, BERT, **settings)
    no_mask = fakes.Numbers()
    no_mask.mask_token_id = None
    with pytest.raises(ValueError, match="masking needs a mask token, and this tokenizer has none"):
        MaskedLM(c, no_mask)


def test_counts_and_random_tokens_of_roberta():
    """fairseq: int(0.15 n + u) of n tokens, and random tokens that are never special."""
    objective = large(exact=True, rounding="random", specials=False, shares=(0.0, 1.0, 0.0))
    batch = everything(objective)
    chosen, n = batch["labels"] != IGNORED, batch["attention_mask"].sum(1)
    counts = chosen.sum(1)
    assert ((counts == np.floor(0.15 * n)) | (counts == np.floor(0.15 * n) + 1)).all()
    up, expected = (counts > np.floor(0.15 * n)), 0.15 * n % 1
    assert abs(up.sum() - expected.sum()) < 4 * np.sqrt((expected * (1 - expected)).sum())
    random = batch["input_ids"][chosen]
    assert not np.isin(random, BERT.special_ids).any()
    counts = np.bincount((random - BERT.first) * 10 // (BERT.vocab_size - BERT.first), minlength=10)
    assert abs(counts - len(random) / 10).max() < 4 * np.sqrt(len(random) * 0.09)  # all others alike
    any_token = everything(large(exact=True, shares=(0.0, 1.0, 0.0)))
    assert np.isin(any_token["input_ids"][any_token["labels"] != IGNORED], BERT.special_ids).any()  # BERT's


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"rounding": "up", "exact": True}, "rounding must be 'nearest' or 'random', got 'up'"),
        ({"rounding": "random"}, "rounding is that of exact=True"),
    ],
)
def test_roundings_that_there_are_not(settings, message):
    with pytest.raises(ValueError, match=message):
        large(**settings)
