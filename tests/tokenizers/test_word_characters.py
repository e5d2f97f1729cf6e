import numpy as np
import plmcore as plm
import pytest
from plmcore.tokenizers import TaggerCharacters, WordCharacters


def test_words_as_bytes():
    batch = WordCharacters()(["Hé x", "a"])
    assert batch.input_ids.shape == (2, 4, 50) and batch.attention_mask.tolist() == [
        [1, 1, 1, 1],
        [1, 1, 1, 0],
    ]
    assert batch.input_ids[0, 0, :4].tolist() == [
        259,
        257,
        260,
        261,
    ]  # the sentence's start, between a word's
    assert batch.input_ids[0, 1, :6].tolist() == [259, ord("H") + 1, 0xC3 + 1, 0xA9 + 1, 260, 261]
    assert batch.input_ids[0, 3, :3].tolist() == [259, 258, 260] and (batch.input_ids[1, 3] == 0).all()
    assert batch.input_ids.max() < WordCharacters.vocab_size


def test_long_words_and_lists():
    tokenizer = WordCharacters()
    row = tokenizer(["x" * 100], words=True, add_special_tokens=False).input_ids
    assert (
        row.shape == (1, 50)
        and row[0, 0] == 259
        and row[0, -1] == 260
        and (row[0, 1:49] == ord("x") + 1).all()
    )
    assert np.array_equal(tokenizer("a b").input_ids, tokenizer(["a", "b"], words=True).input_ids)
    assert tokenizer.decode(tokenizer("Hé  東京").input_ids) == "Hé 東京" and tokenizer(
        []
    ).input_ids.shape == (
        0,
        0,
        50,
    )
    with pytest.raises(ValueError, match="half a surrogate"):
        tokenizer("\ud800")


def test_characters_of_a_tagger():
    tokenizer = TaggerCharacters()
    batch = tokenizer([["A!", "東z"], ["b"]], words=True)
    assert batch.input_ids.tolist() == [
        [[4, 0], [43, 5], [1, 94], [4, 0]],  # A is the 39th of the list, ! the first
        [[4, 0], [70, 0], [4, 0], [0, 0]],
    ]
    assert batch.attention_mask.tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert tokenizer.vocab_size == 109 and len(set(TaggerCharacters.CHARACTERS)) == 104
    assert tokenizer.encode(["’"]).tolist() == [[108]] and tokenizer.decode(batch.input_ids) == [
        "A! \ufffdz",
        "b",
    ]
    assert tokenizer("a b").input_ids.shape == (4, 1) and tokenizer([]).input_ids.shape[:2] == (0, 0)


@pytest.mark.parametrize(
    "words, spelled",
    [
        (["-LRB-", "-RSB-", "1\\/2", "\\*"], ["(", "]", "1/2", "*"]),
        (["Don", "'t", "go"], ["Do", "n't", "go"]),
        (["CAN", "'T"], ["CA", "N'T"]),
        (["do", "n't"], ["do", "n't"]),
        (["'t", "Fun", "'t"], ["'t", "Fun", "'t"]),
    ],
)
def test_words_as_treebanks_write_them(words, spelled):
    assert TaggerCharacters().prepared(words) == spelled


def test_words_with_ids_and_characters():
    """CVT's batches have both: characters as written, ids of the words in lower case."""
    tokenizer = plm.train_tokenizer(
        texts=["the cat ( sat"], kind="words", family="cvt", vocab_size=None, lower=True
    )
    batch = tokenizer(["The cat", "zebra"], ["-LRB- sat", "cat"], max_length=7)
    assert batch.input_ids.shape == (2, 7) and batch.char_ids.shape == (2, 7, 20)
    spelled = lambda word: [*TaggerCharacters().encode([word])[0].tolist()]
    rows = [[c for c in row.tolist() if c] for row in batch.char_ids[0]]
    special = [TaggerCharacters.MISSING]
    around = [special, spelled("The"), spelled("cat"), special, spelled("("), spelled("sat"), special]
    assert rows == around
    assert batch.char_ids[1, 5:].any(1).tolist() == [False, False]  # padding
    words = tokenizer([["The", "cat"], ["zebra"]], [["-LRB-", "sat"], ["cat"]], words=True, max_length=7)
    np.testing.assert_array_equal(words.char_ids, batch.char_ids)
    assert tokenizer("x" * 30).char_ids.shape == (3, 20)
    left = tokenizer(["the cat", "the"], padding_side="left")
    assert left.char_ids[1, 0].sum() == 0 and left.char_ids[1, 1, 0] == TaggerCharacters.MISSING
