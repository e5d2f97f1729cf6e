import datetime
import subprocess
import sys

import numpy as np
import plmcore as plm
import pytest
from plmcore.data import tables

ROWS = [{"text": "a lovely film", "label": 1}, {"text": 'é\n"b"', "label": 0}]
COLUMNS = {key: [row[key] for row in ROWS] for key in ("text", "label")}


class Dataset:
    """Columns by name, as Hugging Face's datasets have them."""

    column_names = ["text", "label"]

    def __getitem__(self, name):
        return COLUMNS[name]


@pytest.mark.parametrize("table", [
    ROWS, tuple(ROWS), iter(ROWS), COLUMNS, {k: tuple(v) for k, v in COLUMNS.items()},
    {k: np.array(v) for k, v in COLUMNS.items()},
    {"text": np.array(COLUMNS["text"], object), "label": [np.int64(1), np.int8(0)]}, Dataset(),
], ids=["list", "tuple", "iterator", "dict", "tuples", "arrays", "objects", "dataset"])  # fmt: skip
def test_kinds_of_tables(table):
    assert tables.is_table(table)
    found = tables.rows(table, "train")
    assert found == ROWS and [type(row["label"]) for row in found] == [int, int]
    assert (
        tables.dumps(found)
        == '{"text": "a lovely film", "label": 1}\n{"text": "é\\n\\"b\\"", "label": 0}\n'.encode()
    )


def test_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(ROWS, index=[7, 3])
    assert tables.is_table(frame) and tables.rows(frame, "train") == ROWS
    assert tables.rows(frame.astype({"label": "category"}), "train") == ROWS
    assert tables.rows(frame.convert_dtypes(), "train") == ROWS
    frame["label"] = pd.array([None, 3], "Int64")
    frame["score"] = [float("nan"), 0.5]
    assert tables.rows(frame, "train") == [
        {"text": "a lovely film", "label": None, "score": None},
        {"text": ROWS[1]["text"], "label": 3, "score": 0.5},
    ]
    assert tables.rows(pd.DataFrame([["a", "b"]]), "train") == [{"0": "a", "1": "b"}]
    with pytest.raises(plm.ArgumentError, match="two columns of one name: text, text"):
        tables.rows(pd.DataFrame([["a", "b"]], columns=["text", "text"]), "train")


def test_pyarrow():
    pa = pytest.importorskip("pyarrow")
    table = pa.table(COLUMNS | {"tokens": [["a", "b"], None]})
    assert tables.is_table(table)
    assert tables.rows(table, "train") == [{**ROWS[0], "tokens": ["a", "b"]}, {**ROWS[1], "tokens": None}]


def test_lists_in_columns():
    row = {
        "tokens": np.array(["a", "b"]),
        "answers": {"text": ("x",), "answer_start": np.array([3])},
        "none": None,
    }
    assert tables.rows([row], "train") == [
        {"tokens": ["a", "b"], "answers": {"text": ["x"], "answer_start": [3]}, "none": None}
    ]


@pytest.mark.parametrize(
    "table, message",
    [
        ([], "train: the table has no rows"),
        ({}, "train: the table has no rows"),
        ({"text": []}, "train: the table has no rows"),
        ([{"text": "a"}, "b"], "train, row 2: each row must be a dict, got a str"),
        ([("a", "b")], "train, row 1: each row must be a dict, got a tuple"),
        (3, "train must be a file or a table .*, got a int"),
        ({"text": "abc"}, "train: column 'text' must be a list, got a str"),
        (
            {"text": ["a", "b"], "label": [1]},
            "train: all columns must have as many rows, got text 2, label 1",
        ),
        (
            [{"text": datetime.date(2020, 1, 1)}],
            "train, row 1: text must be text, a number or a list of them, got a date",
        ),
        (
            [{"text": "a"}, {"text": "\ud800b"}],
            "train, row 2: text has half of a surrogate pair at character 0",
        ),
        (np.zeros((2, 2)), "train must be a file or a table"),
    ],
)
def test_what_is_no_table(table, message):
    with pytest.raises(plm.ArgumentError if "surrogate" not in message else plm.FormatError, match=message):
        tables.rows(table, "train")


def test_paths_are_no_tables(tmp_path):
    assert not any(map(tables.is_table, (None, "train.tsv", tmp_path, ["a.txt", tmp_path])))


def test_pandas_and_pyarrow_are_not_imported():
    code = (
        "import sys, plmcore as plm; from plmcore.data import tables; tables.rows([{'a': 1}], 't'); "
        "plm.finetune; print({'pandas', 'pyarrow'} & {*sys.modules})"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
