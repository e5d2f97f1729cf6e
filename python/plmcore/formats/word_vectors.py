"""What the files of word vectors share: the tensors that are read from them and written to them.

`vectors` float32 [V, dim], `words` (their UTF-8 on end, a line end behind each) and, where they are known,
`counts` int64 [V].
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError, FormatError
from plmcore.files.whole import atomic_write

MAX_DIM = 100_000
NUMBERS = re.compile(rb"[-+0-9.eEnaifNAIF \r]*")


def packed(words: Sequence[bytes]) -> np.ndarray:
    """The tensor `words`."""
    return np.frombuffer(b"".join(word + b"\n" for word in words), np.uint8)


def unpacked(words: Any, what: str) -> list[str]:
    """The words of a tensor."""
    data = np.asarray(words, np.uint8).tobytes()
    try:
        return data.decode().split("\n")[:-1]
    except UnicodeDecodeError as e:
        raise FormatError(f"{what} cannot be read: its words are not UTF-8 at byte {e.start}") from None


def numbers_follow(start: bytes, point: bool = False) -> bool:
    """Whether a line that begins with `start` is a word and numbers; point: at least one has a point."""
    line = start.split(b"\n")[0]
    _, space, rest = line.partition(b" ")
    return bool(space) and NUMBERS.fullmatch(rest) is not None and (b"." in rest or not point)


def header(start: bytes) -> tuple[int, int] | None:
    """The numbers of words and dimensions of a first line as word2vec writes it."""
    found = re.match(rb"(\d{1,12}) (\d{1,6})[ \r]*\n", start)
    return (int(found[1]), int(found[2])) if found else None


def wrong(path: pathlib.Path, what: str) -> FormatError:
    return FormatError(f"'{path}' cannot be read: {what}")


def shown(word: bytes) -> str:
    return repr(word[:60].decode(errors="replace"))


def checked(path: pathlib.Path, words: list[bytes], matrix: np.ndarray) -> dict[str, np.ndarray]:
    """The tensors of a file, if each word is there once and each number is one."""
    seen: set[bytes] = set()
    for place, word in enumerate(words, 1):
        if not word or b"\n" in word:
            raise wrong(path, f"word {place} is empty or has a line end")
        if word in seen:
            raise wrong(path, f"the word {shown(word)} is there twice")
        seen.add(word)
    finite = np.isfinite(matrix).all(1)
    if not finite.all():
        raise wrong(
            path, f"the vector of {shown(words[int(finite.argmin())])} has a number that is not finite"
        )
    if not words:
        raise wrong(path, "it has no words")
    return {"vectors": matrix, "words": packed(words)}


def rows(
    path: pathlib.Path, lines: Iterator[bytes], dim: int, first: int, spaces: bool
) -> Iterator[tuple[bytes, Any]]:
    """Word and numbers of each line. spaces: words may have some."""
    for number, line in enumerate(lines, first):
        pieces = line.rstrip(b" \r\n").rsplit(b" ", dim)
        if len(pieces) != dim + 1:
            raise wrong(path, f"line {number} has {len(pieces) - 1} numbers, and the first one has {dim}")
        word = pieces[0]
        if b" " in word and (not spaces or _number(word.rpartition(b" ")[2])):
            raise wrong(
                path,
                f"line {number} has more than {dim} numbers, as the first one has, or a word with a space",
            )
        try:
            yield word, np.array(pieces[1:]).astype(np.float32)
        except ValueError:
            raise wrong(path, f"line {number} has something that is not a number") from None


def _number(text: bytes) -> bool:
    try:
        return np.isfinite(float(text)) and b"." in text
    except ValueError:
        return False


def to_write(tensors: Any, spaces: bool) -> tuple[list[bytes], np.ndarray]:
    """Words and vectors of tensors; refuses words that a format cannot tell apart."""
    if "vectors" not in tensors or "words" not in tensors:
        raise ArgumentError("a file of word vectors needs the tensors vectors and words")
    words = bytes(np.asarray(tensors["words"], np.uint8)).split(b"\n")[:-1]
    if not spaces:
        for word in words:
            if b" " in word or b"\t" in word:
                raise ArgumentError(
                    f"the word {shown(word)} has a space, which word2vec's formats cannot tell from the "
                    "end of a word; safetensors and glove can"
                )
    return words, np.ascontiguousarray(np.asarray(tensors["vectors"], np.float32))


def word2vec_writer(numbers: Callable[[np.ndarray], bytes]) -> Callable[..., list[pathlib.Path]]:
    """Writes a first line with the numbers of words and dimensions, and each word before its `numbers`."""

    def write(
        path: pathlib.Path,
        tensors: Mapping[str, Any],
        metadata: Mapping[str, str] | None = None,
        max_shard_bytes: int | None = None,
    ) -> list[pathlib.Path]:
        words, matrix = to_write(tensors, spaces=False)
        with atomic_write(path) as f:
            f.write(b"%d %d\n" % matrix.shape)
            for word, row in zip(words, matrix, strict=True):
                f.write(word + b" " + numbers(row) + b"\n")
        return [path]

    return write


def in_text(row: np.ndarray) -> bytes:
    """The shortest decimals that give a row's numbers again."""
    return " ".join(map(str, row)).encode()
