import pathlib

import plmcore as plm
import pytest
from plmcore.data import columns


def read(tmp_path, name, text, given=None, usual=()):
    path = tmp_path / name
    path.write_text(text)
    return list(columns.rows(path, given, usual))


def test_a_header_and_its_other_names(tmp_path):
    assert read(tmp_path, "a.tsv", "sentence\tlabel\nfine\t1\n\nbad\t0\n") == [
        (2, {"sentence": "fine", "label": "1", "text": "fine"}),
        (4, {"sentence": "bad", "label": "0", "text": "bad"}),
    ]


def test_a_table_without_a_header(tmp_path):
    usual = ["text", "label"]
    assert read(tmp_path, "a.tsv", "fine\t1\nbad\t0\n", None, usual)[0] == (1, {"text": "fine", "label": "1"})
    # A header, for its first name.
    assert read(tmp_path, "a.tsv", "sentence\tmark\nbad\t0\n", None, usual)[0][0] == 2
    # Three columns are not these two.
    assert read(tmp_path, "a.tsv", "a\tb\tc\nbad\t0\t1\n", None, usual)[0][0] == 2
    assert read(tmp_path, "a.tsv", "", None, usual) == []


def test_columns_that_are_named(tmp_path):
    assert read(tmp_path, "a.tsv", "x\t1\tfine\n", ["-", "label", "text"]) == [
        (1, {"-0": "x", "label": "1", "text": "fine"})
    ]
    [(line, row)] = read(tmp_path, "b.csv", 'a,b\n"x, y",2\n', ["text=a", "label=b"])
    assert line == 2 and row["text"] == "x, y" and row["label"] == "2"
    [(line, row)] = read(tmp_path, "c.jsonl", '\n{"q": "who", "label": 3}\n', ["text=q"])
    assert line == 2 and row["text"] == "who" and row["label"] == 3


@pytest.mark.parametrize(
    "name, text, given, message",
    [
        ("a.tsv", "text\tlabel\nfine\n", None, r"a\.tsv', line 2: 2 fields expected \(text, label\), got 1"),
        (
            "a.tsv",
            "text\tlabel\nfine\t1\n",
            ["text=sentence"],
            r"a\.tsv', line 2: there is no column 'sentence', only text, label",
        ),
        ("a.jsonl", "{}\n[1]\n", None, r"a\.jsonl', line 2: one JSON object to a line, got a list"),
        (
            "a.jsonl",
            '{"text": "a"}\n{"txt": "b"}\n',
            ["text=text"],
            r"a\.jsonl', line 2: there is no column 'text', only txt",
        ),
    ],
)
def test_what_is_wrong_in_which_line(tmp_path, name, text, given, message):
    with pytest.raises(plm.FormatError, match=message):
        read(tmp_path, name, text, given)


def test_a_file_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(columns.rows(pathlib.Path("nowhere.tsv")))
