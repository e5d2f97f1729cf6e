import json

import plmcore as plm
import pytest
from plmcore.tasks import records


def read(path, kind, columns=None):
    return [{k: v for k, v in r.items() if k != "line"} for r in records.read(path, kind, columns)]


@pytest.mark.parametrize(
    ("kind", "rows", "columns", "first"),
    [
        ("classification", [("a b", "x")], None, {"text": "a b", "label": "x"}),
        ("classification", [("label", "sentence"), ("x", "a b")], None, {"text": "a b", "label": "x"}),
        ("classification", [("x", "7", "a b")], ["label", "-", "text"], {"text": "a b", "label": "x"}),
        ("classification", [("id", "stars", "words"), ("7", "x", "a b")], ["text=words", "label=stars"], {"text": "a b", "label": "x"}),
        ("classification", [("a b",)], None, {"text": "a b", "label": None}),
        ("pair", [("premise", "hypothesis", "gold_label"), ("a", "b", "x")], None, {"text": "a", "pair": "b", "label": "x"}),
        ("pair", [("a", "b", "x")], None, {"text": "a", "pair": "b", "label": "x"}),
        ("regression", [("a", "b", "2.5")], None, {"text": "a", "pair": "b", "label": "2.5"}),
        ("regression", [("a", "2.5")], None, {"text": "a", "label": "2.5"}),
        ("seq2seq", [("a", "b")], None, {"source": "a", "target": "b"}),
        ("seq2seq", [("summary", "document"), ("s", "d")], None, {"source": "d", "target": "s"}),
    ],
)  # fmt: skip
def test_tables(table, kind, rows, columns, first):
    assert read(table("t.tsv", rows), kind, columns)[0] == first


def test_choices(table, tmp_path):
    expected = {"context": "c", "question": "q", "choices": ["x", "y"], "label": "1"}
    header = ("context", "question", "choice0", "choice1", "label")
    assert read(table("t.tsv", [header, ("c", "q", "x", "y", "1")]), "multiple-choice") == [expected]
    (tmp_path / "t.jsonl").write_text(json.dumps({**expected, "label": 1}) + "\n")
    assert read(tmp_path / "t.jsonl", "multiple-choice") == [expected]
    with pytest.raises(plm.FormatError, match="line 2: at least two choices expected"):
        read(table("t.tsv", [("context", "choice0", "label"), ("c", "x", "0")]), "multiple-choice")


def test_commas_and_quotes(tmp_path):
    (tmp_path / "t.csv").write_text('"a, b",x\n"c ""d""",y\n')
    assert read(tmp_path / "t.csv", "classification") == [
        {"text": "a, b", "label": "x"},
        {"text": 'c "d"', "label": "y"},
    ]


def test_columns_of_tags(tmp_path):
    (tmp_path / "t.txt").write_text("a DT O\nb NN B-X\n\nc VB O\n")
    assert read(tmp_path / "t.txt", "tagging")[0] == {"tokens": ["a", "b"], "tags": ["O", "B-X"]}
    assert read(tmp_path / "t.txt", "tagging", ["tokens", "tags", "-"])[1] == {"tokens": ["c"], "tags": ["VB"]}
    with pytest.raises(ValueError, match="must name the tokens"):
        read(tmp_path / "t.txt", "tagging", ["-", "tags", "-"])
    (tmp_path / "t.txt").write_text("a DT O\nb NN\n")
    with pytest.raises(plm.FormatError, match="line 2: 3 columns expected, got 2"):
        read(tmp_path / "t.txt", "tagging")


def test_treebanks(tmp_path):
    row = "1\tthe\tthe\tDET\tDT\t_\t0\troot\t_\t_\n"
    (tmp_path / "t.conllu").write_text(row + "\n")
    assert read(tmp_path / "t.conllu", "tagging") == [{"tokens": ["the"], "tags": ["DET"]}]
    assert read(tmp_path / "t.conllu", "tagging", ["tags=xpos"])[0]["tags"] == ["DT"]
    with pytest.raises(ValueError, match="no column 'pos' for tags"):
        read(tmp_path / "t.conllu", "tagging", ["tags=pos"])


def test_a_column_that_is_not_there(table):
    with pytest.raises(plm.FormatError, match="line 2 has no 'words', only a, b"):
        read(table("t.tsv", [("a", "b"), ("x", "y")]), "classification", ["text=words", "label=b"])
    with pytest.raises(plm.FormatError, match="there is no column 'c', only a, b"):
        read(table("t.tsv", [("a", "b"), ("x", "y")]), "classification", ["text=a", "label=c"])
