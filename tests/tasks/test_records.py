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
        (
            "classification",
            [("id", "stars", "words"), ("7", "x", "a b")],
            ["text=words", "label=stars"],
            {"text": "a b", "label": "x"},
        ),
        ("classification", [("a b",)], None, {"text": "a b", "label": None}),
        (
            "pair",
            [("premise", "hypothesis", "gold_label"), ("a", "b", "x")],
            None,
            {"text": "a", "pair": "b", "label": "x"},
        ),
        ("pair", [("a", "b", "x")], None, {"text": "a", "pair": "b", "label": "x"}),
        ("regression", [("a", "b", "2.5")], None, {"text": "a", "pair": "b", "label": "2.5"}),
        ("regression", [("a", "2.5")], None, {"text": "a", "label": "2.5"}),
        ("seq2seq", [("a", "b")], None, {"source": "a", "target": "b"}),
        ("seq2seq", [("summary", "document"), ("s", "d")], None, {"source": "d", "target": "s"}),
    ],
)
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
    assert read(tmp_path / "t.txt", "tagging", ["tokens", "tags", "-"])[1] == {
        "tokens": ["c"],
        "tags": ["VB"],
    }
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
    with pytest.raises(plm.FormatError, match="line 2: there is no column 'words', only a, b"):
        read(table("t.tsv", [("a", "b"), ("x", "y")]), "classification", ["text=words", "label=b"])
    with pytest.raises(plm.FormatError, match="there is no column 'c', only a, b"):
        read(table("t.tsv", [("a", "b"), ("x", "y")]), "classification", ["text=a", "label=c"])


def test_json_lines_of_tags_and_of_questions(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"tokens": ["a", "b"], "tags": ["O", "X"]}\n{"tokens": ["c"], "tags": [1]}\n')
    assert read(path, "tagging") == [
        {"tokens": ["a", "b"], "tags": ["O", "X"]},
        {"tokens": ["c"], "tags": ["1"]},
    ]
    context = {"context": "the cat sat", "question": "who?"}
    rows = [
        {**context, "id": "q", "answers": [{"text": "cat", "answer_start": 4}]},
        {**context, "answers": {"text": ["cat"], "answer_start": [4]}},
        {**context, "answers": []},
        context,
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read(path, "qa")
    assert [r["answers"] for r in found] == [[{"text": "cat", "start": 4}]] * 2 + [[], []]
    assert [r["impossible"] for r in found] == [False, False, True, False]
    assert [r["id"] for r in found] == ["q", "line 2", "line 3", "line 4"]


@pytest.mark.parametrize(
    ("kind", "row", "columns", "message"),
    [
        (
            "classification",
            {"body": "a", "stars": 1},
            None,
            r"t.jsonl', line 1: there is no column for the text, only body, stars; --columns text=NAME",
        ),
        (
            "classification",
            {"text": "a", "stars": 1},
            None,
            r"there is no column for the label, only text, stars; --columns label=NAME",
        ),
        (
            "classification",
            {"text": "a", "stars": 1},
            ["label=class"],
            "there is no column 'class', only text, stars",
        ),
        ("classification", {"text": 3, "label": 1}, None, "text must be a text, got 3"),
        (
            "classification",
            {"text": "a", "label": 1},
            ["label", "text"],
            "columns say which is which, as text=review,label=stars; got label,text",
        ),
        ("seq2seq", {"source": "a"}, None, "there is no column for the target, only source"),
        (
            "tagging",
            {"words": ["a"], "tags": ["O"]},
            None,
            "there is no column for the tokens, only words, tags",
        ),
        ("tagging", {"tokens": ["a"], "tags": ["O", "O"]}, None, "1 tokens need as many tags, got 2"),
        ("tagging", {"tokens": "a b", "tags": ["O", "O"]}, None, "tokens must be a list of texts, got 'a b'"),
        (
            "qa",
            {"context": "a", "question": "b"},
            None,
            "there is no column for the answers, only context, question",
        ),
        (
            "qa",
            {"context": "a", "question": "b", "answers": ["a"]},
            None,
            "an answer has a text and an answer_start, got 'a'",
        ),
    ],
)
def test_columns_that_are_not_there_are_named_with_those_that_are(tmp_path, kind, row, columns, message):
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises((plm.FormatError, plm.ArgumentError), match=message):
        records.read(tmp_path / "t.jsonl", kind, columns, labelled=True)
