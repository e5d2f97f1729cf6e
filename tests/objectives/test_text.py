import fakes
import numpy as np
import pytest
from plmcore.objectives.text import Text

TOKENIZER = fakes.Numbers()


@pytest.mark.parametrize("separator", [None, 6])
def test_take_is_a_slice_of_all_documents_on_end(separator):
    corpus = fakes.corpus(TOKENIZER, documents=12, sentences=(1, 3), words=(1, 5))
    text, expected = Text(corpus, separator), fakes.stream(corpus, separator)
    assert text.size == len(expected)
    starts = np.arange(text.size)
    lengths = np.minimum(17 - starts % 5, text.size - starts)
    found = text.take(starts, lengths, -7)
    for row, start, length in zip(found, starts, lengths):
        assert row[:length].tolist() == expected[start : start + length].tolist()
        assert (row[length:] == -7).all()


@pytest.mark.parametrize("separator", [None, 6])
def test_sentences_begin_where_the_corpus_says(separator):
    corpus = fakes.corpus(TOKENIZER, documents=6, sentences=(1, 4), words=(1, 5))
    text = Text(corpus, separator)
    begins = np.zeros(text.size, bool)  # of the whole text
    at = 0
    for d in range(len(corpus)):
        for s in range(corpus.document_sentences[d], corpus.document_sentences[d + 1]):
            begins[at] = True
            at += corpus.sentences[s + 1] - corpus.sentences[s]
        at += separator is not None
    starts = np.arange(text.size)
    lengths = np.minimum(13 - starts % 3, text.size - starts)
    found = text.sentence_starts(starts, lengths)
    for row, start, length in zip(found, starts, lengths):
        expected = begins[start : start + length].copy()
        expected[0] = True
        assert row[:length].tolist() == expected.tolist() and not row[length:].any()
