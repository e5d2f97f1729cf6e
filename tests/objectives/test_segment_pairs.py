import fakes
import numpy as np
import pytest
from plmcore.data import Corpus
from plmcore.objectives import NextSentence, SentenceOrder, segment_pairs

BERT = fakes.Numbers()


def numbered(documents=60, seed=0, sentences=(2, 12), words=(3, 25)):
    """A corpus whose token values tell their places: first + place."""
    rng = np.random.default_rng(seed)
    lengths = [rng.integers(*words, size=rng.integers(*sentences)).tolist() for _ in range(documents)]
    total = sum(map(sum, lengths))
    tokenizer = fakes.Numbers(plain=total)
    sizes = np.cumsum([0, *map(sum, lengths)])
    docs = [tokenizer.first + np.arange(a, b) for a, b in zip(sizes, sizes[1:])]
    return Corpus.from_ids(docs, tokenizer.vocab_size, lengths), tokenizer


def segments(row, types, tokenizer):
    """Places of A and B in the corpus."""
    text = row >= tokenizer.first
    return [row[text & (types == k)] - tokenizer.first for k in (0, 1)]


def pairs(kind, epochs=10, **settings):
    corpus, tokenizer = numbered()
    objective = kind(corpus, tokenizer, length=64, masking=False, **settings)
    for epoch in range(epochs):
        batch = objective.batch(np.arange(len(objective)), seed=1, epoch=epoch)
        label = batch["next_sentence_label" if kind is NextSentence else "sentence_order_label"]
        for row, types, mark in zip(batch["input_ids"], batch["token_type_ids"], label):
            yield corpus, row, *segments(row, types, tokenizer), int(mark)


def document_of(corpus, places):
    found = np.unique(np.searchsorted(corpus.documents, places, side="right") - 1)
    assert len(found) == 1
    return int(found[0])


def test_next_sentence():
    labels, gaps = [], []
    for corpus, row, a, b, label in pairs(NextSentence):
        labels.append(label)
        assert len(a) and len(b) and (np.diff(a) == 1).all() and (np.diff(b) == 1).all()
        same = document_of(corpus, a) == document_of(corpus, b)
        assert same == (label == 0)
        if label == 0:
            assert b[0] > a[-1]
            gaps.append(b[0] - a[-1])
            if len(row) and len(a) + len(b) < 61 - 25:  # nothing was cut, the row being far from full
                assert b[0] == a[-1] + 1 and b[0] in corpus.sentences
    fakes.assert_share(sum(labels), len(labels), 0.5)
    assert min(gaps) == 1 and len(labels) > 500


def test_sentence_order():
    labels = []
    for corpus, _, a, b, label in pairs(SentenceOrder):
        labels.append(label)
        first, second = (b, a) if label else (a, b)
        assert document_of(corpus, a) == document_of(corpus, b)
        assert second[0] > first[-1] and (np.diff(a) == 1).all() and (np.diff(b) == 1).all()
    fakes.assert_share(sum(labels), len(labels), 0.5)


def test_a_pair_fits_and_loses_tokens_of_the_longer_segment():
    seen = [0, 0]
    for corpus, row, a, b, _ in pairs(SentenceOrder, epochs=4, short=0.0):
        assert len(a) + len(b) <= 61
        if len(a) + len(b) == 61:
            for k, places in enumerate((a, b)):
                front = places[0] not in corpus.sentences
                back = places[-1] + 1 not in corpus.sentences
                seen[0] += front
                seen[1] += back
                if (front or back) and len((b, a)[k]) > len(
                    places
                ) + 1:  # the other is longer: it should have been cut instead
                    raise AssertionError((len(a), len(b)))
    assert min(seen) > 50 and 0.7 < seen[0] / seen[1] < 1.4  # from either end


def test_trimming_is_one_token_at_a_time_from_the_longer():
    corpus, tokenizer = numbered()
    objective = SentenceOrder(corpus, tokenizer, length=23, masking=False)  # room for 20
    from plmcore.objectives.chance import Chance

    sizes = np.array([(a, b) for a in range(1, 40) for b in range(1, 40)])
    zero = np.zeros(len(sizes), np.int64)
    batch = objective.pair(
        (zero, zero + sizes[:, 0]), (zero + 100, zero + 100 + sizes[:, 1]), Chance(0, 0, np.arange(len(sizes)))
    )
    for row, types, (a, b) in zip(batch["input_ids"], batch["token_type_ids"], sizes.tolist()):
        while a + b > 20:
            if a > b:
                a -= 1
            else:
                b -= 1
        assert [len(s) for s in segments(row, types, tokenizer)] == [a, b]


def test_short_examples():
    totals = np.array([len(a) + len(b) for _, _, a, b, _ in pairs(NextSentence, short=1.0)])
    assert totals.min() < 15 and totals.mean() < 50
    usual = np.array([len(a) + len(b) for _, _, a, b, _ in pairs(NextSentence, short=0.0)])
    assert np.median(usual) > 55


@pytest.mark.parametrize("block", [1, 5, segment_pairs.BLOCK])
def test_chunks_against_the_rule(monkeypatch, block):
    monkeypatch.setattr(segment_pairs, "BLOCK", block)
    corpus, _ = numbered(sentences=(1, 12))
    expected = []
    for d in range(len(corpus)):
        i, end = (int(corpus.document_sentences[d + k]) for k in (0, 1))
        while i < end:
            j = i
            while j < end and (j - i < 2 or corpus.sentences[j] - corpus.sentences[i] < 40):
                j += 1
            j = end if end - j == 1 else j
            expected += [(i, j)] if j - i > 1 else []
            i = j
    first, last = segment_pairs.chunks(corpus.sentences, corpus.document_sentences, 40)
    assert list(zip(first.tolist(), last.tolist())) == expected


def test_masks_leave_the_pair_otherwise_as_it_is():
    corpus, tokenizer = numbered()
    masked, plain = (NextSentence(corpus, tokenizer, length=64, **s) for s in ({}, {"masking": False}))
    a, b = (o.batch(np.arange(len(o)), seed=1, epoch=0) for o in (masked, plain))
    chosen = a["labels"] != -100
    assert np.array_equal(np.where(chosen, a["labels"], a["input_ids"]), b["input_ids"])
    assert (
        np.array_equal(a["token_type_ids"], b["token_type_ids"]) and (b["input_ids"][chosen] >= tokenizer.first).all()
    )
    fakes.assert_share(chosen.sum(), (b["input_ids"] >= tokenizer.first).sum(), 0.15)


def test_what_cannot_be_paired():
    single = Corpus.from_ids([[20, 21], [22]], 1000)
    with pytest.raises(ValueError, match="no document of two sentences"):
        SentenceOrder(single, BERT)
    alone = Corpus.from_ids([[20, 21, 22]], 1000, [[1, 2]])
    SentenceOrder(alone, BERT)
    with pytest.raises(ValueError, match="text of another document, and the corpus has one"):
        NextSentence(alone, BERT)
    with pytest.raises(ValueError, match="length 4 leaves 1 tokens for two segments beside 3 special ones"):
        SentenceOrder(alone, BERT, length=4)
    with pytest.raises(ValueError, match="masking=False, but settings of masks: rate"):
        SentenceOrder(alone, BERT, masking=False, rate=0.1)
    with pytest.raises(ValueError, match="short must be from 0 up to 1, got 2"):
        SentenceOrder(alone, BERT, short=2)
