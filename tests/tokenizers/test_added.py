import numpy as np
from plmcore.tokenizers.added import AddedTokens


def encode(parts):
    return np.array([ord(c) for part in parts for c in part], np.int32), np.array(
        [len(part) for part in parts]
    )


def rows(parts):
    return [
        (
            encode([part])[0],
            np.stack([np.arange(len(part)), np.arange(len(part)) + 1], 1),
            np.zeros(len(part), np.int64),
        )
        for part in parts
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
    ids, lengths = added.flat_of(["p<a>", "", "q", "<a>", "<a>x+rs<a>", "<a"], encode)
    assert ids.tolist() == [112, 1, 113, 1, 1, 3, 114, 115, 1, 60, 97] and lengths.tolist() == [
        2,
        0,
        1,
        1,
        5,
        2,
    ]
    assert AddedTokens().flat_of(["<a>"], encode)[0].tolist() == [60, 97, 62]


def test_a_token_across_two_texts_is_none():
    added = AddedTokens({"\n": 1, "a\nb": 2})
    assert [part.tolist() for part in added.flat_of(["a", "b", "a\nb"], encode)] == [[97, 98, 2], [1, 1, 1]]


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
    # One call, and nothing but the one text cut.
    assert calls == [["with ", " one", "plain text", "", "more"]]
    for text, (ids, offsets, _) in zip(texts, found):
        assert [text[a:b] for a, b in offsets.tolist()] == [chr(i) if i > 1 else "<a>" for i in ids.tolist()]
