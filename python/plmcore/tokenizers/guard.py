"""The libraries underneath fail in their own ways; what leaves this package are exceptions of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from plmcore._core import ArgumentError, FormatError, KindError


class TokenizerError(RuntimeError):
    """A tokenizer library failed on a text."""


@contextlib.contextmanager
def reading(source: object) -> Iterator[None]:
    """Whatever goes wrong inside is the fault of the file `source`."""
    try:
        yield
    except (FormatError, KeyboardInterrupt, SystemExit, MemoryError, FileNotFoundError):
        raise
    except BaseException as e:  # a panic in Rust is none of Exception's children
        raise FormatError(f"'{source}' cannot be read: {_first_line(e)}") from None


@contextlib.contextmanager
def encoding(texts: Sequence[str]) -> Iterator[None]:
    """Names the text that a library does not take."""
    try:
        yield
    except (ArgumentError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as e:
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise KindError(
                    f"a tokenizer takes a str or a list of them, got {type(text).__name__} at {i}"
                ) from None
            try:
                text.encode()
            except UnicodeEncodeError as u:
                raise ArgumentError(
                    f"text {i} has half a surrogate pair, {text[u.start]!r}, at character {u.start}: "
                    f"not valid Unicode"
                ) from None
        raise TokenizerError(f"the tokenizer failed: {_first_line(e)}") from None


@contextlib.contextmanager
def panics(what: str) -> Iterator[None]:
    """Other calls into a library.

    Errors of ours that pass through it, out of an iterator, stay what they are.
    """
    try:
        yield
    except (ArgumentError, FormatError, OSError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as e:
        raise TokenizerError(f"{what}: {_first_line(e)}") from None


def _first_line(e: BaseException) -> str:
    return (str(e).strip() or type(e).__name__).splitlines()[0]
