"""Text in pieces, so that a file of any size needs little memory."""

from __future__ import annotations

import codecs
import gzip
import os
import pathlib
import re
from collections.abc import Iterator

from plmcore._core import FormatError

PIECE = 1 << 16
_WHOLE_WORDS = re.compile(r".*\S(?=\s)", re.DOTALL)


def pieces(text: str | os.PathLike[str], size: int = PIECE) -> Iterator[str]:
    """A text, or the text of a file (UTF-8, perhaps .gz), in pieces of about `size` characters.

    A piece ends with a word and the next begins with the white space after it: there every tokenizer cuts, so that the tokens are
    those of the whole text. A stretch of 64 pieces without white space is cut all the same.
    """
    left = ""
    for block in _blocks(text, size):
        left += block
        if whole := _WHOLE_WORDS.match(left):
            yield left[: whole.end()]
            left = left[whole.end() :]
        elif len(left) >= 64 * size:
            yield left
            left = ""
    if left:
        yield left


def _blocks(text: str | os.PathLike[str], size: int) -> Iterator[str]:
    if isinstance(text, str):
        yield from (text[i : i + size] for i in range(0, len(text), size))
        return
    path = pathlib.Path(text)
    decoder = codecs.getincrementaldecoder("utf-8")()
    read = 0
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as f:
        while True:
            try:
                block = f.read(size)
            except (gzip.BadGzipFile, EOFError) as e:
                raise FormatError(f"'{path}' cannot be read: {e}") from None
            begin = read - len(decoder.getstate()[0])
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as e:
                raise FormatError(f"'{path}' is not UTF-8: {e.reason} at byte {begin + e.start}") from None
            if not block:
                return
            read += len(block)
            if text:
                yield text
