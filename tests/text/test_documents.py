import re

import numpy as np
import pytest
from plmcore._core import text as native

BLANK = re.compile(r"\n(?:[ \t\r\f\v]*\n)+")
MARKS = ["\n", "\n", "\n", " ", "\t", "\f", "\v", "a", "é", "\0", "日"]


def by_regex(text, continues):
    parts = BLANK.split((text if continues else "\n" + text) + "\n")
    stripped = [part.strip("\n") for part in parts]
    if continues:
        stripped[0] = parts[0].rstrip("\n")
    return [part for k, part in enumerate(stripped) if part or (k == 0 and continues)]


@pytest.mark.parametrize("continues", [False, True])
def test_what_lies_between_blank_lines(continues):
    random = np.random.default_rng(int(continues))
    for _ in range(3000):
        text = "".join(random.choice(MARKS, random.integers(0, 14)))
        text = "\n" + text if continues else text  # where a block ends inside a document
        assert native.documents(text.encode(), continues) == by_regex(text, continues), repr(text)


def test_not_utf8():
    with pytest.raises(UnicodeDecodeError):
        native.documents(b"good\n\ncaf\xe9\n", False)
    with pytest.raises(UnicodeDecodeError):
        native.documents(b"cut \xe2\x82\n\nnext", False)
