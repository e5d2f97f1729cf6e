import gzip
import io

import plmcore as plm
import pytest
from plmcore.files import text

TEXT = "One é\r\ntwo 東京\n\n😀 three" * 20


def test_files_of_folders(tmp_path):
    for name in ("b.txt", "a/c.txt", ".hidden", ".git/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [f.name for f in text.files_in(tmp_path)] == ["c.txt", "b.txt"]
    assert text.files_in([tmp_path / "b.txt", str(tmp_path / "a")]) == [
        tmp_path / "b.txt",
        tmp_path / "a" / "c.txt",
    ]
    with pytest.raises(FileNotFoundError, match="no file or folder '.*absent'"):
        text.files_in(tmp_path / "absent")
    for nothing in ([], tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(FileNotFoundError, match="there are no files in"):
            text.files_in(nothing)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64, 10_000])
def test_decoded_is_the_text_without_its_mark(size):
    for mark in (b"", text.BOM):
        assert "".join(text.decoded(io.BytesIO(mark + TEXT.encode()), size, "strict", "f")) == TEXT


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"\xffab", "line 1, byte 0: 0xff"),
        ("é\n東\n".encode() + b"a\xe9b", "line 3, byte 8: 0xe9"),
        (b"abc\n" * 9 + b"\xe6\x9d", "line 10, byte 36: 0xe6"),
    ],
)
def test_what_is_not_text_is_named_with_its_place(size, data, where):
    with pytest.raises(
        plm.FormatError, match=f"'f', {where} is not UTF-8 .*--errors replace, in Python errors=\"replace\""
    ):
        list(text.decoded(io.BytesIO(data), size, "strict", "f"))
    with pytest.raises(plm.FormatError, match=f"{where} is not UTF-8"):
        text.decode(data, "strict", "f", 1, 0)
    with pytest.raises(plm.FormatError, match=f"{where} is not UTF-8"):
        list(text.lines_of(io.BytesIO(data), "strict", "f"))
    assert "".join(text.decoded(io.BytesIO(data), size, "replace", "f")) == data.decode("utf-8", "replace")


def test_utf16_is_guessed():
    with pytest.raises(plm.FormatError, match="it looks like UTF-16"):
        text.decode("text".encode("utf-16"), "strict", "f", 1, 0)


def test_lines_of_plain_and_packed_files(tmp_path):
    (tmp_path / "f").write_bytes(TEXT.encode())
    (tmp_path / "f.gz").write_bytes(gzip.compress(TEXT.encode()))
    for name in ("f", "f.gz"):
        found = list(text.lines(tmp_path / name))
        assert [line for _, line in found] == TEXT.replace("\r\n", "\n").split("\n")
        assert [number for number, _ in found] == list(range(1, len(found) + 1))
    (tmp_path / "f.gz").write_bytes(gzip.compress(TEXT.encode())[:-9])
    with pytest.raises(plm.FormatError, match="cannot be unpacked"):
        list(text.lines(tmp_path / "f.gz"))
    with pytest.raises(ValueError, match="errors must be 'strict' or 'replace'"):
        list(text.lines(tmp_path / "f", "ignore"))


def test_files_without_text(tmp_path):
    (tmp_path / "a").write_text(" \n")
    (tmp_path / "b").write_text("\t\u00a0")
    with pytest.raises(
        plm.ArgumentError, match=r"there is no text in '.*a', '.*b': nothing, or blanks alone"
    ):
        text.check_text(tmp_path)
    (tmp_path / "c").write_text(" " * 100_000 + "x")
    text.check_text(tmp_path)
