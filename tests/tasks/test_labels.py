import itertools

import plmcore as plm
import pytest
from plmcore.tasks import labels


def records(*values):
    return [{"label": v, "line": i} for i, v in enumerate(values, 1)]


def test_the_order_of_classes():
    assert labels.label_list(records("10", "9", "-1")) == ["-1", "9", "10"]
    assert labels.label_list(records("b", "a", "10")) == ["10", "a", "b"]
    assert labels.label_list([{"tags": ["I-X", "O", "B-X"]}], "tags") == ["O", "B-X", "I-X"]


def test_numbers_of_labels():
    assert labels.number(records("b", "a", "b"), ["a", "b"], "f") == [1, 0, 1]
    assert labels.number(records("b", None), ["a", "b"], "f", needed=False) == [1, None]
    with pytest.raises(plm.FormatError, match="'f', line 2: there is no label"):
        labels.number(records("b", None), ["a", "b"], "f")
    assert labels.values(records("1.5", "-2"), "f") == [1.5, -2.0]
    for bad in ("x", "nan", "inf", None):
        with pytest.raises(plm.FormatError, match="'f', line 1: the label must be a number"):
            labels.values(records(bad), "f")


def test_numbers_of_choices():
    rows = [
        {"choices": ["a", "b"], "label": "1", "line": 1},
        {"choices": ["a", "b", "c"], "label": "2", "line": 2},
    ]
    assert labels.choices(rows[:1], "f") == [1] and labels.choices(rows[1:], "f") == [2]
    with pytest.raises(plm.FormatError, match="'f', line 2: there are 3 choices, and 2 in the first record"):
        labels.choices(rows, "f")


def spans(tags):
    """(type, first, last) of the stretches of BIO tags, an I- that follows something else beginning one."""
    found = []
    for i, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        if prefix == "I" and found and found[-1][0] == kind and found[-1][2] == i - 1:
            found[-1] = kind, found[-1][1], i
        elif prefix != "O":
            found.append((kind, i, i))
    return found


def test_bioes_keeps_every_stretch():
    for tags in itertools.product(["O", "B-X", "I-X", "B-Y", "I-Y"], repeat=4):
        turned = labels.bioes(tags)
        assert spans(labels.bio(turned)) == spans(tags), tags
        for kind, first, last in spans(tags):
            if first == last:
                assert turned[first] == f"S-{kind}", tags
            else:
                assert (turned[first], turned[last]) == (f"B-{kind}", f"E-{kind}"), tags
                assert all(t == f"I-{kind}" for t in turned[first + 1 : last]), tags
    assert labels.bioes(["NOUN", "O"]) == ["NOUN", "O"]
