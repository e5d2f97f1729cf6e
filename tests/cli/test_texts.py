import gzip
import io
import json
import sys

import plmcore as plm
import pytest
from plmcore.cli import texts


def test_texts_and_files_among_the_arguments(tmp_path):
    file, packed, lines = tmp_path / "a.txt", tmp_path / "b.txt.gz", tmp_path / "c.jsonl"
    file.write_text("one\r\n\ntwo")
    packed.write_bytes(gzip.compress(b"three\n"))
    lines.write_text("".join(json.dumps({"a": i, "b": str(i)}) + "\n" for i in "xy"))
    assert list(texts.given(["a text", str(file), str(packed), "x" * 5000], "strict")) == [
        "a text", "one", "", "two", "three", "x" * 5000,
    ]  # fmt: skip
    assert list(texts.given([str(lines)], "strict", ["a", "b"])) == [["x", "x"], ["y", "y"]]
    with pytest.raises(plm.FormatError, match="c.jsonl', line 1 has no 'c', only a, b"):
        list(texts.given([str(lines)], "strict", ["c"]))


def test_standard_input(monkeypatch):
    for arguments in ([], ["-"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n\ntwo\n")))
        assert list(texts.given(arguments, "strict")) == ["one", "", "two"]


def test_the_name_of_a_file_that_is_not_there_is_no_text():
    for name in ("reviws.txt", "no/such.jsonl", "x.tsv.gz"):
        with pytest.raises(FileNotFoundError, match=f"there is no file '{name}'"):
            list(texts.given([name], "strict"))
    with pytest.raises(FileNotFoundError, match="--field is for the lines"):
        list(texts.given(["a text"], "strict", ["a"]))
    assert list(texts.given(["I like it.", "see notes.txt", "e.g."], "strict")) == [
        "I like it.",
        "see notes.txt",
        "e.g.",
    ]


def test_an_argument_that_is_not_utf_8():
    text = b"caf\xe9".decode("utf-8", "surrogateescape")
    with pytest.raises(plm.FormatError, match="character 3: it is not UTF-8; the option --errors replace"):
        texts.argument(text, "strict")
    assert texts.argument(text, "replace") == "caf\ufffd" and texts.argument("café", "strict") == "café"
