"""Text in pieces, so that a file of any size needs little memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from plmcore.files.text import check_errors, decoded, opened

PIECE = 1 << 16
_WHOLE_WORDS = re.compile(r".*\S(?=\s)", re.DOTALL)


def pieces(text: str | os.PathLike[str], size: int = PIECE, errors: str = "strict") -> Iterator[str]:
    """A text, or the text of a file (UTF-8, perhaps packed by gzip), in pieces of about `size` characters.
    errors="replace" reads what is not UTF-8 as U+FFFD.

    A piece ends with a word and the next begins with the white space after it:
    there every tokenizer cuts, so that the tokens are those of the whole text.
    A stretch of 64 pieces without white space is cut all the same.
    """
    left = ""
    for block in _blocks(text, size, errors):
        left += block
        if whole := _WHOLE_WORDS.match(left):
            yield left[: whole.end()]
            left = left[whole.end() :]
        elif len(left) >= 64 * size:
            yield left
            left = ""
    if left:
        yield left


def _blocks(text: str | os.PathLike[str], size: int, errors: str) -> Iterator[str]:
    if isinstance(text, str):
        yield from (text[i : i + size] for i in range(0, len(text), size))
        return
    check_errors(errors)
    with opened(text) as f:
        yield from decoded(f, size, errors, text)
