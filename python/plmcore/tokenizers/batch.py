"""Rows of ids as arrays: cut to a length, padded to another."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plmcore._core import ArgumentError
from plmcore.tokenizers.added import Row
from plmcore.tokenizers.format import Format

MISSING = 4  # the character of a token that stands for no text
TRUNCATIONS = ("longest_first", "only_first", "only_second")


class Batch(Mapping[str, np.ndarray]):
    """Arrays by name, [B, T] for texts and [T] for one text: input_ids, attention_mask, token_type_ids.

    Apart from these, found when first asked for, of the same shape: `offsets` [..., 2], from which to which
    character of its text a token goes; `word_ids`, the number of its word; `sequence_ids`, 0 and 1 for the
    first and second text, -1 for special tokens and padding (so are the word ids). `sample` [B] is the text
    that a row comes from, for overflow rows.
    """

    input_ids: np.ndarray
    attention_mask: np.ndarray
    token_type_ids: np.ndarray

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        sample: np.ndarray,
        detail: Callable[[], Mapping[str, np.ndarray]],
    ):
        self._arrays, self._find, self.sample = dict(arrays), detail, sample

    @functools.cached_property
    def _detail(self) -> Mapping[str, np.ndarray]:
        return self._find()

    @property
    def offsets(self) -> np.ndarray:
        """Start and end of each token in its text, in characters, [B, T, 2]; computed on first access."""
        return self._detail["offsets"]

    @property
    def word_ids(self) -> np.ndarray:
        """The number of each token's word, [B, T]; -1 for special tokens and padding."""
        return self._detail["word_ids"]

    @property
    def sequence_ids(self) -> np.ndarray:
        """0 for tokens of the text, 1 for those of its pair, -1 for special tokens and padding, [B, T]."""
        return self._detail["sequence_ids"]

    def __getitem__(self, name: str) -> np.ndarray:
        """The array of this name."""
        return self._arrays[name]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> np.ndarray:
            if name.startswith("_") or name not in self._arrays:
                raise AttributeError(f"Batch has no {name!r}")
            return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"Batch({', '.join(f'{name} {list(a.shape)}' for name, a in self._arrays.items())})"


@dataclass(frozen=True)
class Window:
    """Which tokens of a text, and of its second text, make a row."""

    sample: int
    a: slice
    b: slice | None

    def part(self, text: int) -> slice:
        return self.b if text and self.b is not None else self.a

    def __len__(self) -> int:
        return sum(s.stop - s.start for s in (self.a, self.b) if s is not None)


@dataclass(frozen=True)
class Truncation:
    """How rows are cut: at most `length` tokens with the special ones;
    with a stride the rest becomes further rows.
    """

    length: int | None
    truncation: str = "longest_first"
    stride: int | None = None

    def __post_init__(self) -> None:
        if self.truncation not in TRUNCATIONS:
            raise ArgumentError(
                f"truncation must be one of {', '.join(TRUNCATIONS)}, got {self.truncation!r}"
            )
        if self.length is not None and self.length < 1:
            raise ArgumentError(f"max_length must be at least 1, got {self.length}")
        if self.stride is not None and (self.length is None or self.stride < 0):
            raise ArgumentError(
                f"stride must be at least 0 and needs a max_length, got {self.stride} and {self.length}"
            )

    def windows(self, sample: int, n: int, m: int | None, added: int) -> list[Window]:
        """For a text of n tokens and, maybe, a second one of m."""
        whole = Window(sample, slice(0, n), None if m is None else slice(0, m))
        if self.length is None or len(whole) + added <= self.length:
            return [whole]
        room = self.length - added
        if room < 0:
            raise ArgumentError(f"max_length={self.length} has no room for the {added} special tokens")
        if m is None:
            if self.truncation == "only_second":
                raise ArgumentError("truncation='only_second' needs a second text")
            return [Window(sample, s, None) for s in self._slices(n, room)]
        if self.truncation == "longest_first":
            keep_n, keep_m = share(n, m, room)
        else:
            keep_n, keep_m = (room - m, m) if self.truncation == "only_first" else (n, room - n)
            if (keep_n if self.truncation == "only_first" else keep_m) <= 0:
                other = "second" if self.truncation == "only_first" else "first"
                raise ArgumentError(
                    f"truncation={self.truncation!r}: the {other} text of pair {sample} alone, "
                    f"{m if other == 'second' else n} tokens, and {added} special tokens fill "
                    f"max_length={self.length}"
                )
        seconds = self._slices(m, keep_m)
        rows = [Window(sample, a, b) for a in self._slices(n, keep_n) for b in seconds]
        return [rows[0], *rows[len(seconds) :], *rows[1 : len(seconds)]]  # the order of transformers

    def _slices(self, n: int, room: int) -> list[slice]:
        if n <= room:
            return [slice(0, n)]
        if self.stride is None:
            return [slice(0, room)]
        if self.stride >= room:
            raise ArgumentError(
                f"stride={self.stride} must be below the {room} tokens that a row has room for"
            )
        starts = range(0, n - self.stride, room - self.stride)
        return [slice(s, min(s + room, n)) for s in starts]


def share(n: int, m: int, room: int) -> tuple[int, int]:
    """Of two texts the longer loses tokens until they are equal, then both do; an odd one is the longer's."""
    short, long = min(n, m), max(n, m)
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short = room // 2
        long = short + room % 2
    return (short, long) if n <= m else (long, short)


@dataclass(frozen=True)
class Padding:
    id: int
    type: int
    side: str
    length: int | None = None
    multiple: int = 1

    def __post_init__(self) -> None:
        if self.side not in ("left", "right"):
            raise ArgumentError(f"padding_side must be left or right, got {self.side!r}")
        if self.multiple < 1:
            raise ArgumentError(f"multiple_of must be at least 1, got {self.multiple}")

    def width(self, longest: int) -> int:
        width = max(longest, self.length or 0)
        return -(-width // self.multiple) * self.multiple

    def start(self, width: int, n: int) -> int:
        return width - n if self.side == "left" else 0


def fill(
    windows: Sequence[Window],
    a: Sequence[np.ndarray],
    b: Sequence[np.ndarray] | None,
    format: Format,
    padding: Padding,
) -> dict[str, np.ndarray]:
    """input_ids, attention_mask and token_type_ids, int64 [B, T]."""
    parts, added = format.parts(b is not None), format.added(b is not None)
    B, T = len(windows), padding.width(max((len(w) + added for w in windows), default=0))
    ids = np.full((B, T), padding.id, np.int64)
    mask = np.zeros((B, T), np.int64)
    types = np.full((B, T), padding.type, np.int64)
    typed = padding.type != 0 or any(part.type for part in parts)
    for r, window in enumerate(windows):
        n = len(window) + added
        at = padding.start(T, n)
        mask[r, at : at + n] = 1
        for part in parts:
            if part.text is None:
                ids[r, at] = part.id
                end = at + 1
            else:
                piece = (b if part.text and b is not None else a)[window.sample][window.part(part.text)]
                end = at + len(piece)
                ids[r, at:end] = piece
            if typed:
                types[r, at:end] = part.type
            at = end
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def fill_detail(
    windows: Sequence[Window],
    a: Sequence[Row],
    b: Sequence[Row] | None,
    format: Format,
    padding: Padding,
    T: int,
) -> dict[str, np.ndarray]:
    """offsets, word_ids and sequence_ids of the same rows."""
    parts, added = format.parts(b is not None), format.added(b is not None)
    offsets = np.zeros((len(windows), T, 2), np.int64)
    words, sequences = (np.full((len(windows), T), -1, np.int64) for _ in range(2))
    for r, window in enumerate(windows):
        at = padding.start(T, len(window) + added)
        for part in parts:
            end = at + 1
            if part.text is not None:
                _, spans, numbers = (b if part.text and b is not None else a)[window.sample]
                chosen = window.part(part.text)
                end = at + chosen.stop - chosen.start
                offsets[r, at:end], words[r, at:end], sequences[r, at:end] = (
                    spans[chosen],
                    numbers[chosen],
                    part.text,
                )
            at = end
    return {"offsets": offsets, "word_ids": words, "sequence_ids": sequences}


def fill_spelled(
    windows: Sequence[Window],
    spelled: Sequence[Sequence[np.ndarray] | None],
    format: Format,
    padding: Padding,
    shape: Sequence[int],
) -> np.ndarray:
    """char_ids, int64 [B, T, W], of the same rows: spelled are the characters of the tokens of each first
    text, and of each second one, [n, W]. A special token is one MISSING character, padding none.
    """
    a, b = spelled
    assert a is not None
    parts, added = format.parts(b is not None), format.added(b is not None)
    width = a[0].shape[1] if a else 1
    out = np.zeros((*shape, width), np.int64)
    for r, window in enumerate(windows):
        at = padding.start(shape[1], len(window) + added)
        for part in parts:
            if part.text is None:
                out[r, at, 0], end = MISSING, at + 1
            else:
                piece = (b if part.text and b is not None else a)[window.sample][window.part(part.text)]
                end = at + len(piece)
                out[r, at:end] = piece
            at = end
    return out
