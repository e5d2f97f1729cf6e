import numpy as np
import pytest
from plmcore.data import Corpus


def test_from_ids():
    corpus = Corpus.from_ids([[1, 2, 3], np.array([4, 5], np.int64)], 10, sentences=[[1, 2], [2]])
    assert corpus.ids.dtype == np.uint16 and corpus.ids.tolist() == [1, 2, 3, 4, 5]
    assert corpus.sentences.tolist() == [0, 1, 3, 5]
    assert corpus.documents.tolist() == [0, 3, 5] and corpus.document_sentences.tolist() == [0, 2, 3]
    assert len(corpus) == 2 and corpus[1].tolist() == [4, 5]
    assert repr(corpus) == "Corpus(in memory: 5 tokens, 3 sentences, 2 documents, vocabulary 10)"
    assert Corpus.from_ids([[70_000]], 70_001).ids.dtype == np.uint32
    assert len(Corpus.from_ids([], 10)) == 0


def test_fingerprint_follows_the_content():
    same = [Corpus.from_ids([[1, 2, 3], [4, 5]], 10).fingerprint for _ in range(2)]
    others = [
        Corpus.from_ids([[1, 2, 3], [4, 6]], 10),
        Corpus.from_ids([[1, 2], [3, 4, 5]], 10),
        Corpus.from_ids([[1, 2, 3], [4, 5]], 11),
        Corpus.from_ids([[1, 2, 3], [4, 5]], 10, sentences=[[1, 2], [2]]),
    ]
    assert len({*same, *(c.fingerprint for c in others)}) == 5


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([[1], []], 10), "document 1 must be a list of at least one id, got float64"),
        (([[1.5]], 10), "document 0 must be a list of at least one id, got float64"),
        (([[[1]]], 10), r"document 0 .* got int64 \[1, 1\]"),
        (([[1, 10]], 10), "document 0 has ids from 1 to 10; vocab_size is 10"),
        (([[-1]], 10), "ids from -1 to -1"),
        (([[1]], 0), "vocab_size is 0"),
        (([[1, 2]], 10, [[1]]), r"sentences of document 0 must have 2 ids in all, got \[1\]"),
        (([[1, 2]], 10, [[2, 0]]), r"got \[2, 0\]"),
        (([[1, 2]], 10, []), "1 documents need as many lists of sentence lengths, got 0"),
    ],
)
def test_bad_ids(arguments, message):
    with pytest.raises(ValueError, match=message):
        Corpus.from_ids(*arguments)


def test_document_outside():
    with pytest.raises(IndexError, match="corpus of 1 documents has no document 1"):
        Corpus.from_ids([[1]], 10)[1]
