import fakes
import numpy as np
import pytest
from plmcore.data import Corpus
from plmcore.objectives import packing
from plmcore.objectives.text import Text

TOKENIZER = fakes.Numbers()


def runs(made):
    starts, lengths = made.runs(np.arange(made.count))
    return list(zip(starts.tolist(), (starts + lengths).tolist()))


def test_windows_are_full_and_in_order():
    text = Text(Corpus.from_ids([np.arange(20, 43)], 100))
    assert runs(packing.Windows(text, 5)) == [(0, 5), (5, 10), (10, 15), (15, 20)]
    assert runs(packing.Windows(text, 5, stride=9)) == [(0, 5), (9, 14), (18, 23)]
    assert runs(packing.Windows(text, 50)) == [(0, 23)]  # a short text is one example


def test_streams_continue_row_by_row():
    text = Text(Corpus.from_ids([np.arange(100, 200)], 1000))
    made = packing.Windows(text, 7, streams=4)  # parts of 25
    assert made.count == 4 * 3
    found = runs(made)
    for row in range(4):
        windows = found[row::4]
        assert windows == [(25 * row + 7 * k, 25 * row + 7 * k + 7) for k in range(3)]
    assert packing.Windows(text, 25, streams=4).count == 4
    with pytest.raises(
        ValueError, match="4 streams of a text of 100 tokens are 25 tokens long: no window of 26"
    ):
        packing.Windows(text, 26, streams=4)


def test_documents_in_pieces():
    corpus = Corpus.from_ids([np.full(n, 20) for n in (3, 10, 4, 1)], 100)
    made = packing.Documents(Text(corpus), 4)
    assert runs(made) == [(0, 3), (3, 7), (7, 11), (11, 13), (13, 17), (17, 18)]
    assert made.lengths().tolist() == [3, 4, 4, 2, 4, 1]


@pytest.mark.parametrize("block", [1, 7, packing.BLOCK])
@pytest.mark.parametrize("across, separator", [(True, 6), (True, None), (False, None)])
@pytest.mark.parametrize("length", [1, 9, 25, 1000])
def test_whole_sentences_one_at_a_time(monkeypatch, block, across, separator, length):
    """Against the rule applied to a list of sentences."""
    monkeypatch.setattr(packing, "BLOCK", block)
    corpus = fakes.corpus(TOKENIZER, documents=15, sentences=(1, 5), words=(1, 14))
    pieces, closed = [], []
    for d in range(len(corpus)):
        for s in range(corpus.document_sentences[d], corpus.document_sentences[d + 1]):
            n = int(corpus.sentences[s + 1] - corpus.sentences[s])
            pieces += [length] * ((n - 1) // length) + [(n - 1) % length + 1]
            closed += [False] * ((n - 1) // length) + [s + 1 == corpus.document_sentences[d + 1]]
    expected, start, end, after = [], 0, 0, 0  # the run so far, and a separator after it
    for n, last in zip(pieces, closed):
        if end + after + n - start > length and end > start:
            expected.append((start, end))
            start = end + after
        end += after + n
        after = int(last and separator is not None)
        if last and not across:
            expected.append((start, end))
            start = end
    expected += [(start, end)] if end > start else []
    assert runs(packing.Sentences(Text(corpus, separator), length, across)) == expected


def test_settings_that_do_not_fit():
    corpus = fakes.corpus(TOKENIZER)
    for changes in ({"stride": 4}, {"streams": 2}):
        with pytest.raises(
            ValueError, match="stride and streams are for packing='windows', got packing='documents'"
        ):
            packing.pack(corpus, "documents", 10, None, **changes)
    with pytest.raises(ValueError, match="stride must be at least 1, got 0"):
        packing.pack(corpus, "windows", 10, None, stride=0)
    with pytest.raises(ValueError, match="streams must be at least 1, got 0"):
        packing.pack(corpus, "windows", 10, None, streams=0)
