import numpy as np
from plmcore.tokenizers.added import AddedTokens


def encode(parts):
    return [np.array([ord(c) for c in part], np.int32) for part in parts]


def rows(parts):
    return [
        (ids, np.stack([np.arange(len(ids)), np.arange(len(ids)) + 1], 1), np.zeros(len(ids), np.int64))
        for ids in encode(parts)
    ]


def test_tokens_are_cut_out_the_longest_first():
    added = AddedTokens({"<a>": 1, "<a><b>": 2, "x+": 3})
    assert added.cut("p<a>q<a><b>x+") == [
        (0, "p", None),
        (1, "<a>", 1),
        (4, "q", None),
        (5, "<a><b>", 2),
        (11, "x+", 3),
    ]
    found = added.ids_of(["p<a>", "", "q", "<a>"], encode)
    assert [row.tolist() for row in found] == [[112, 1], [], [113], [1]]
    assert AddedTokens().ids_of(["<a>"], encode)[0].tolist() == [60, 97, 62]


def test_rows_keep_their_places():
    added = AddedTokens({"<a>": 1})
    (ids, offsets, words), (empty, *_) = added.rows_of(["pq<a>r", "<a>"[3:]], rows)
    assert ids.tolist() == [112, 113, 1, 114] and offsets.tolist() == [[0, 1], [1, 2], [2, 5], [5, 6]]
    assert words.tolist() == [0, 0, 1, 2] and len(empty) == 0


def test_texts_without_added_tokens_stay_whole():
    added, calls = AddedTokens({"<a>": 1}), []

    def listening(parts):
        calls.append(parts)
        return rows(parts)

    texts = ["plain text", "with <a> one", "", "<a>", "more"]
    found = added.rows_of(texts, listening)
    assert calls == [["with ", " one", "plain text", "", "more"]]  # one call, and nothing but the one text cut
    for text, (ids, offsets, _) in zip(texts, found):
        assert [text[a:b] for a, b in offsets.tolist()] == [chr(i) if i > 1 else "<a>" for i in ids.tolist()]
