"""dict.txt of fairseq."""

import plmcore as plm
import pytest
from plmcore.tokenizers.fairseq import read_dictionary

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat ##s".split()


def written(folder, lines):
    (folder / "dict.txt").write_text("\n".join(lines) + "\n")
    return folder / "dict.txt"


def test_word_pieces(tmp_path):
    """As MASS has them: the line is the id, [SEP] ends a text."""
    tokenizer = read_dictionary(written(tmp_path, [f"{t} 1" for t in PIECES]), "mass")
    assert tokenizer("The cats sat")["input_ids"].tolist() == [5, 6, 8, 7, 3]
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 2, 3)
    tokenizer.save(tmp_path)
    again = plm.load_tokenizer(tmp_path)
    assert again.family.name == "mass" and again("the cat")["input_ids"].tolist() == [5, 6, 3]


def test_words(tmp_path):
    """fairseq's own: four tokens stand before the first line."""
    tokenizer = read_dictionary(written(tmp_path, ["the 90", "cat 7", "été 1"]), "mass")
    assert tokenizer("the été dog")["input_ids"].tolist() == [4, 6, 3, 2]
    assert (tokenizer.pad_token_id, tokenizer.vocab_size) == (1, 7)


@pytest.mark.parametrize(
    "lines, message",
    [
        (["the 1", "cat"], "line 2: it must be a token and its count, got 'cat'"),
        (["the one"], "line 1: it must be a token and its count"),
        ([""], "line 1: it must be a token and its count, got ''"),
        (["the 1", "cat 1", "the 2"], "has the token 'the' more than once"),
        (["<pad> 1"], "has the token '<pad>' more than once"),
        (["[PAD] 1", "the 1"], "lacks special tokens of the family mass"),
    ],
)
def test_bad_dictionaries(tmp_path, lines, message):
    with pytest.raises(plm.FormatError, match=message):
        read_dictionary(written(tmp_path, lines), "mass")


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "dict.txt").write_bytes(b"\xff\xfe 1\n")
    with pytest.raises(plm.FormatError, match="dict.txt"):
        read_dictionary(tmp_path / "dict.txt", "mass")
