import numpy as np
import pytest
from plmcore.tokenizers import WordCharacters


def test_words_as_bytes():
    batch = WordCharacters()(["Hé x", "a"])
    assert batch.input_ids.shape == (2, 4, 50) and batch.attention_mask.tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert batch.input_ids[0, 0, :4].tolist() == [259, 257, 260, 261]  # the sentence's start, between a word's
    assert batch.input_ids[0, 1, :6].tolist() == [259, ord("H") + 1, 0xC3 + 1, 0xA9 + 1, 260, 261]
    assert batch.input_ids[0, 3, :3].tolist() == [259, 258, 260] and (batch.input_ids[1, 3] == 0).all()
    assert batch.input_ids.max() < WordCharacters.vocab_size


def test_long_words_and_lists():
    tokenizer = WordCharacters()
    row = tokenizer(["x" * 100], words=True, add_special_tokens=False).input_ids
    assert row.shape == (1, 50) and row[0, 0] == 259 and row[0, -1] == 260 and (row[0, 1:49] == ord("x") + 1).all()
    assert np.array_equal(tokenizer("a b").input_ids, tokenizer(["a", "b"], words=True).input_ids)
    assert tokenizer.decode(tokenizer("Hé  東京").input_ids) == "Hé 東京" and tokenizer([]).input_ids.shape == (
        0,
        0,
        50,
    )
    with pytest.raises(ValueError, match="half a surrogate"):
        tokenizer("\ud800")
