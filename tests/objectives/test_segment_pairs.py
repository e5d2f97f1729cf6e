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
    labels = []
    for corpus, row, a, b, label in pairs(NextSentence):
        labels.append(label)
        assert len(a) and len(b) and (np.diff(a) == 1).all() and (np.diff(b) == 1).all()
        same = document_of(corpus, a) == document_of(corpus, b)
        assert same == (label == 0)
        if label == 0:
            assert b[0] == a[-1] + 1 and b[0] in corpus.sentences
    fakes.assert_share(sum(labels), len(labels), 0.5)
    assert len(labels) > 500


def test_sentence_order():
    labels = []
    for corpus, _, a, b, label in pairs(SentenceOrder):
        labels.append(label)
        first, second = (b, a) if label else (a, b)
        assert document_of(corpus, a) == document_of(corpus, b)
        assert second[0] > first[-1] and (np.diff(a) == 1).all() and (np.diff(b) == 1).all()
    fakes.assert_share(sum(labels), len(labels), 0.5)


@pytest.mark.parametrize("kind", [NextSentence, SentenceOrder])
def test_pairs_fit_and_are_of_whole_sentences(kind):
    for corpus, row, a, b, _ in pairs(kind, epochs=4):
        assert 2 <= len(a) + len(b) <= 61
        for places in (a, b):  # no sentence is longer than half of an example, so that none is cut
            assert places[0] in corpus.sentences and places[-1] + 1 in corpus.sentences


@pytest.mark.parametrize("kind", [NextSentence, SentenceOrder])
@pytest.mark.parametrize("words", [(3, 25), (20, 90)])
def test_an_epoch_uses_the_text(kind, words):
    """Sentences that another document's text displaced come elsewhere, and so do those behind a short example
    and the parts of long ones.
    """
    corpus, tokenizer = numbered(documents=300, words=words)
    objective = kind(corpus, tokenizer, length=64, masking=False)
    for epoch in range(2):
        ids = objective.batch(np.arange(len(objective)), seed=1, epoch=epoch)["input_ids"]
        times = np.bincount(ids[ids >= tokenizer.first] - tokenizer.first, minlength=len(corpus.ids))
        assert (times > 0).mean() > 0.95 and times.max() <= 3 and (times == 1).mean() > 0.85


def test_two_chunks_change_their_segments():
    """What one example has of another document, the other has of its own."""
    corpus, tokenizer = numbered(documents=300)
    objective = NextSentence(corpus, tokenizer, length=64, masking=False)
    batch = objective.batch(np.arange(len(objective)), seed=1, epoch=0)
    found = [
        segments(row, types, tokenizer) for row, types in zip(batch["input_ids"], batch["token_type_ids"])
    ]
    random = batch["next_sentence_label"] == 1
    begins = {int(corpus.sentences[i]) for i in objective.first}
    chunk = lambda places: max(b for b in begins if b <= places[0])  # noqa: E731
    owners = {chunk(a): chunk(b) for (a, b), r in zip(found, random) if r}
    mutual = [owners.get(b) == a for a, b in owners.items()]
    assert np.mean(mutual) > 0.85


def test_lengths_tell_little_about_the_label():
    totals: dict[int, list[int]] = {0: [], 1: []}
    for _, _, a, b, label in pairs(NextSentence, epochs=20):
        totals[label].append(len(a) + len(b))
    assert abs(np.mean(totals[0]) - np.mean(totals[1])) < 0.5 * np.std(totals[0])


def test_one_large_document_beside_a_small_one():
    """Most chunks meet one of their own document; half of the pairs are random all the same."""
    tokenizer = fakes.Numbers(plain=2000)
    docs = [tokenizer.first + np.arange(1500), tokenizer.first + np.arange(1500, 1540)]
    corpus = Corpus.from_ids(docs, tokenizer.vocab_size, [[10] * 150, [10] * 4])
    objective = NextSentence(corpus, tokenizer, length=64, masking=False)
    labels = []
    for epoch in range(30):
        batch = objective.batch(np.arange(len(objective)), seed=0, epoch=epoch)
        labels += batch["next_sentence_label"].tolist()
        for row, types, label in zip(
            batch["input_ids"], batch["token_type_ids"], batch["next_sentence_label"]
        ):
            a, b = segments(row, types, tokenizer)
            assert (document_of(corpus, a) != document_of(corpus, b)) == bool(label)
    fakes.assert_share(sum(labels), len(labels), 0.5)


def test_short_examples():
    totals = np.array([len(a) + len(b) for _, _, a, b, _ in pairs(SentenceOrder, short=1.0)])
    assert totals.min() < 15 and totals.mean() < 40
    usual = np.array([len(a) + len(b) for _, _, a, b, _ in pairs(SentenceOrder, short=0.0)])
    assert np.median(usual) > 45


def test_long_sentences_are_several():
    edges = np.array([0, 5, 25, 26, 61])
    assert segment_pairs.cut(edges, 10).tolist() == [0, 5, 15, 25, 26, 34, 43, 52, 61]
    assert segment_pairs.cut(edges, 35) is edges


@pytest.mark.parametrize("block", [1, 5, segment_pairs.BLOCK])
def test_chunks_against_the_rule(monkeypatch, block):
    monkeypatch.setattr(segment_pairs, "BLOCK", block)
    corpus, _ = numbered(sentences=(1, 12), words=(3, 21))
    expected = []
    for d in range(len(corpus)):
        begin, end = (int(corpus.document_sentences[d + k]) for k in (0, 1))
        i = begin
        while i < end:
            if end - i == 1:  # alone: with the one before it
                expected += [(i - 1, end)] if i > begin else []
                break
            j = i + 2
            while j < end and corpus.sentences[j + 1] - corpus.sentences[i] <= 40:
                j += 1
            expected.append((i, j))
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
        np.array_equal(a["token_type_ids"], b["token_type_ids"])
        and (b["input_ids"][chosen] >= tokenizer.first).all()
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
