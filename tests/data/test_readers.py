import csv
import gzip
import io
import json

import numpy as np
import plmcore as plm
import pytest
from plmcore.data import (
    read_conll,
    read_conllu,
    read_jsonl,
    read_parallel,
    read_parquet,
    read_squad,
    read_table,
    read_text,
)


def file(folder, content, name="f.txt"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "options, content, documents",
    [
        ({}, "a\nb\n\n \t\n\nc", ["a\nb", "c"]),
        ({}, "\n\na\r\nb\r\n\r\nc\r\n", ["a\nb", "c"]),
        ({}, "\ufeffa\u2028b\x0bc\n", ["a\u2028b\x0bc"]),  # only \n ends a line
        ({}, "a\0b\n", ["a\0b"]),
        ({}, "", []),
        ({"documents": "line"}, "a\n\nb \n", ["a", "b "]),
        ({"documents": "file"}, "a\n\nb\n\n", ["a\n\nb"]),
        ({"documents": "file"}, " \n", []),
    ],
)
def test_text(tmp_path, options, content, documents):
    assert list(read_text(file(tmp_path, content), **options)) == documents
    assert (
        list(read_text(file(tmp_path, gzip.compress(content.encode()), "any-name"), **options)) == documents
    )


def test_invalid_utf8(tmp_path):
    path = file(tmp_path, "é\n\nb".encode() + b"\xff\n")
    with pytest.raises(
        plm.FormatError, match=r"f.txt', line 3, byte 5: 0xff is not UTF-8 \(invalid start byte\)"
    ):
        list(read_text(path))
    assert list(read_text(path, errors="replace")) == ["é", "b\ufffd"]
    with pytest.raises(plm.FormatError, match="line 3, byte 5"):
        list(read_text(path, documents="file"))
    with pytest.raises(plm.FormatError, match="line 1, byte 0: 0xff .*it looks like UTF-16"):
        list(read_text(file(tmp_path, "hello".encode("utf-16"))))
    with pytest.raises(plm.FormatError, match="line 2, byte 2: 0xe2 is not UTF-8 .unexpected end of data"):
        list(read_text(file(tmp_path, "a\n€".encode()[:-1])))
    with pytest.raises(ValueError, match="errors must be 'strict' or 'replace', got 'ignore'"):
        list(read_text(path, errors="ignore"))


def test_a_damaged_gzip_file(tmp_path):
    packed = gzip.compress(np.random.default_rng(0).bytes(1000).hex().encode())
    with pytest.raises(plm.FormatError, match="f.txt' cannot be unpacked: .*ended before"):
        list(read_text(file(tmp_path, packed[:-30])))
    wrong = bytearray(packed)
    wrong[-6] ^= 1
    with pytest.raises(plm.FormatError, match="cannot be unpacked: CRC check failed"):
        list(read_text(file(tmp_path, bytes(wrong))))


def test_jsonl(tmp_path):
    assert list(read_jsonl(file(tmp_path, '{"a": 1}\r\n\n{"b": "\\u00e9"}'))) == [{"a": 1}, {"b": "é"}]
    for content, message in [
        ('{"a": 1}\n{"a" 1}', "line 2: not valid JSON"),
        ("[1]", "line 1: one JSON object to a line, got a list"),
        ("[" * 100_000, "line 1: not valid JSON"),
    ]:
        with pytest.raises(plm.FormatError, match=message):
            list(read_jsonl(file(tmp_path, content)))


def test_table(tmp_path):
    path = file(tmp_path, 'a\tb\n1\t"x\n\n2\t\n', "t.tsv")
    assert list(read_table(path)) == [{"a": "1", "b": '"x'}, {"a": "2", "b": ""}]
    assert list(read_table(path, header=False))[0] == {"0": "a", "1": "b"}
    assert next(read_table(path, header=["c", "d"])) == {"c": "a", "d": "b"}
    assert list(read_table(file(tmp_path, "a;b\n1;2\n"), delimiter=";")) == [{"a": "1", "b": "2"}]
    packed = file(tmp_path, gzip.compress(b'a,b\n"1,0",2\n'), "t.csv.gz")
    assert list(read_table(packed)) == [{"a": "1,0", "b": "2"}]
    assert list(read_table(file(tmp_path, ""))) == []


@pytest.mark.parametrize(
    "content, message",
    [
        ("a,b\n1\n", r"line 2: 2 fields expected \(a, b\), got 1"),
        ("a,a\n1,2\n", "line 1: the header names a column twice"),
        ('a,b\n1,2\n3,"4\n5\n', "line 3: a quoted field that begins here does not end"),
        ('a,b\n"1"x,"2"\n', "line 2: text behind the closing quote"),
    ],
)
def test_damaged_tables(tmp_path, content, message):
    with pytest.raises(plm.FormatError, match=message):
        list(read_table(file(tmp_path, content, "t.csv")))


def test_ragged_rows(tmp_path):
    path = file(tmp_path, "a\tb\n1\n2\t3\n4\t5\t6\n")
    assert list(read_table(path, ragged="skip")) == [{"a": "2", "b": "3"}]
    assert list(read_table(path, ragged="fit")) == [{"a": "1"}, {"a": "2", "b": "3"}, {"a": "4", "b": "5"}]
    with pytest.raises(ValueError, match="ragged must be 'error', 'skip' or 'fit', got 'pad'"):
        list(read_table(path, ragged="pad"))


@pytest.mark.parametrize("seed", range(30))
def test_csv_as_python_reads_it(tmp_path, seed):
    random = np.random.default_rng(seed)
    rows = [
        ["".join(random.choice(list('a,"\n é'), random.integers(0, 8))) for _ in range(3)] for _ in range(20)
    ]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["x", "y", "z"], *rows])
    found = list(read_table(file(tmp_path, text.getvalue(), "t.csv")))
    assert [list(row.values()) for row in found] == rows


def test_a_long_line(tmp_path):
    word = "x" * 10_000_000
    assert next(read_table(file(tmp_path, f'a,b\n"{word}",1\n', "t.csv")))["a"] == word
    assert next(read_text(file(tmp_path, word))) == word


def test_conll(tmp_path):
    path = file(tmp_path, "-DOCSTART- -X-\n\n\na X\nb Y\n \nc Z")
    assert list(read_conll(path, ["tokens", "tags"])) == [
        {"tokens": ["a", "b"], "tags": ["X", "Y"]},
        {"tokens": ["c"], "tags": ["Z"]},
    ]
    assert next(read_conll(path, ["tokens", None], skip=None)) == {"tokens": ["-DOCSTART-"]}
    tabs = file(tmp_path, "New York\tX\n")
    assert next(read_conll(tabs, ["tokens", "tags"], separator="\t")) == {
        "tokens": ["New York"],
        "tags": ["X"],
    }
    with pytest.raises(plm.FormatError, match="line 4: 3 columns expected, got 2: 'a X'"):
        list(read_conll(file(tmp_path, "q r s\n\n\na X\n"), ["a", "b", "c"]))


CONLLU = """# sent_id = 1
# text = vámonos al
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tVB\tMood=Imp\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
2.1\tal\t_\t_\t_\t_\t_\t_\t_\t_

1\ta\ta\tX\t_\t_\t_\t_\t_\t_
"""


def test_conllu(tmp_path):
    first, second = read_conllu(file(tmp_path, CONLLU))
    assert (
        first["tokens"] == ["vamos", "nos"] and first["upos"] == ["VERB", "PRON"] and first["heads"] == [0, 1]
    )
    assert first["relations"] == ["root", "obj"] and first["lemmas"] == ["ir", "nosotros"]
    assert first["comments"] == {"sent_id": "1", "text": "vámonos al"}
    assert second["heads"] == [None] and second["comments"] == {}
    for changed, message in [
        (CONLLU.replace("2\tnos", "3\tnos"), "line 5: word 2 of the sentence expected, got '3'"),
        (CONLLU.replace("\tobj\t_", "\tobj"), "line 5: 10 columns separated by tabs expected, got 9"),
        (CONLLU.replace("\t1\tobj", "\tx\tobj"), "line 5: the head must be the number of a word, got 'x'"),
    ]:
        with pytest.raises(plm.FormatError, match=message):
            list(read_conllu(file(tmp_path, changed)))


def squad(**changes):
    asked = {"id": "1", "question": "Q?", "answers": [{"text": "b", "answer_start": 2}]} | changes
    return {"data": [{"title": "T", "paragraphs": [{"context": "a b", "qas": [asked]}]}]}


def test_squad(tmp_path):
    [record] = read_squad(file(tmp_path, json.dumps(squad())))
    assert record["answers"] == [{"text": "b", "start": 2}] and not record["impossible"]
    [record] = read_squad(file(tmp_path, json.dumps(squad(is_impossible=True, answers=[]))))
    assert record["answers"] == [] and record["impossible"]
    for content, message in [
        ("{", "f.txt' is not valid JSON: .*line 1 column 2"),
        ("[]", "it must be an object with a list 'data'"),
        (
            json.dumps(squad(answers=[{"text": "b"}])),
            r"KeyError 'answer_start' at or behind data\[0\].paragraphs\[0\].qas\[0\]",
        ),
        ('{"data": [{"paragraphs": 3}]}', "TypeError"),
        ('{"data": "x"}', "is no SQuAD file"),
    ]:
        with pytest.raises(plm.FormatError, match=message):
            list(read_squad(file(tmp_path, content)))


def test_parallel(tmp_path):
    source, target = file(tmp_path, "a\n\nb\n", "s"), file(tmp_path, "x\ny\nz", "t")
    assert [tuple(r.values()) for r in read_parallel(source, target)] == [("a", "x"), ("", "y"), ("b", "z")]
    with pytest.raises(plm.FormatError, match="t', line 3: the file ends, and '.*s' goes on"):
        list(read_parallel(source, file(tmp_path, "x\ny\n", "t")))


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet is an extra")
    import pyarrow.parquet

    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pa.table({"text": ["a", "é"], "n": [1, None]}), path)
    assert list(read_parquet(path)) == [{"text": "a", "n": 1}, {"text": "é", "n": None}]
    assert list(read_parquet(path, columns=["n"])) == [{"n": 1}, {"n": None}]
    with pytest.raises(plm.FormatError, match="has no column 'body', only"):
        list(read_parquet(path, columns=["body"]))
    with pytest.raises(plm.FormatError, match="cannot be read"):
        list(read_parquet(file(tmp_path, path.read_bytes()[:-20])))


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'plmcore\[parquet\]'"):
        list(read_parquet(file(tmp_path, b"")))


@pytest.mark.parametrize("read", [read_text, read_jsonl, read_table, read_conllu, read_squad])
def test_absent(tmp_path, read):
    with pytest.raises(FileNotFoundError, match="absent.txt"):
        list(read(tmp_path / "absent.txt"))
    with pytest.raises(IsADirectoryError):
        list(read(tmp_path))
