import gzip

import numpy as np
import plmcore as plm
import pytest
from plmcore.evaluate import texts

TEXT = "Once  upon a time,\n\n there was naïve 猫.\tEnd \n" * 40


def test_pieces_are_the_text_cut_before_white_space():
    for size in (1, 2, 7, 64, 100_000):
        found = list(texts.pieces(TEXT, size))
        assert "".join(found) == TEXT
        for a, b in zip(found, found[1:]):
            assert not a[-1].isspace() and b[0].isspace()


def test_files(tmp_path):
    plain, packed = tmp_path / "a.txt", tmp_path / "a.txt.gz"
    plain.write_bytes(TEXT.encode())
    packed.write_bytes(gzip.compress(TEXT.encode()))
    for size in (1, 5, 100_000):
        assert list(texts.pieces(plain, size)) == list(texts.pieces(packed, size))
        assert "".join(texts.pieces(plain, size)) == TEXT  # line ends as they are
    empty = tmp_path / "empty"
    empty.touch()
    assert list(texts.pieces(empty)) == [] == list(texts.pieces(""))


def test_no_white_space_does_not_grow_without_end():
    found = list(texts.pieces("x" * 1000, 4))
    assert "".join(found) == "x" * 1000 and max(map(len, found)) == 256


@pytest.mark.parametrize("at", [0, 3, 4, 5, 4099])
def test_bad_utf8_says_where(tmp_path, at):
    file = tmp_path / "bad.txt"
    file.write_bytes(b"ab c" * (at // 4) + b"ab c"[: at % 4] + b"\xff" + b" de")
    for size in (1, 4, 100_000):
        with pytest.raises(
            plm.FormatError,
            match=rf"bad.txt', line 1, byte {at}: 0xff is not UTF-8 \(invalid start byte\); the option "
            rf"--errors replace",
        ):
            list(texts.pieces(file, size))
        assert "".join(texts.pieces(file, size, "replace")).count("\ufffd") == 1
    file.write_bytes("ab 猫".encode()[:-1])
    with pytest.raises(plm.FormatError, match="line 1, byte 3: 0xe7 is not UTF-8 .unexpected end of data"):
        list(texts.pieces(file, 4))


def test_damaged_gzip(tmp_path):
    file = tmp_path / "bad.gz"
    for data in (
        gzip.compress(b"")[:5],
        gzip.compress(TEXT.encode() + bytes(np.arange(256, dtype=np.uint8)) * 99)[:200],
    ):
        file.write_bytes(data)
        with pytest.raises(plm.FormatError, match="bad.gz' cannot be unpacked"):
            list(texts.pieces(file))


@pytest.mark.parametrize("kind", ["byte-bpe", "wordpiece", "bpe", "characters", "words"])
def test_tokens_are_those_of_the_whole_text(kind):
    tok = plm.tokenizers.train_tokenizer(texts=[TEXT], kind=kind, vocab_size=300)
    whole = tok.encode_ids([TEXT])[0]
    for size in (1, 5, 33):
        parts = tok.encode_ids(list(texts.pieces(TEXT, size)))
        assert np.array_equal(np.concatenate(parts), whole)
