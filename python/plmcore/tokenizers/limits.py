"""What a tokenizer.json may ask of the library that reads it,
which ends the process where memory is not there.

The library believes the sizes that a file states, and applies its steps one after the other: thirty steps
that each double a text make gigabytes of a letter. Both are looked at here, before the library sees the file.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

from plmcore._core import FormatError

MAX_STEPS = 256  # of a normaliser, a pre-tokeniser, a decoder
MAX_DEPTH = 32  # of steps inside of steps
MAX_GROWTH = 256  # how many times as long all steps together may make a text
MAX_PREPENDED = 4096  # characters
MAX_WORD = 100_000  # characters of a word that a WordPiece looks at; the time grows with the square


def check(text: bytes, source: object) -> None:
    """FormatError for a tokenizer.json that asks for more than a real one does."""
    try:
        content = json.loads(text.decode("utf-8"), object_pairs_hook=_once)
    except FormatError as e:
        raise FormatError(f"'{source}' cannot be read: {e}") from None
    except (ValueError, RecursionError) as e:
        raise FormatError(f"'{source}' cannot be read: not valid JSON: {e}") from None
    if not isinstance(content, dict):
        raise FormatError(f"'{source}' cannot be read: it must hold one object")
    for part in ("normalizer", "pre_tokenizer", "decoder", "post_processor"):
        try:
            _check_steps(list(_steps(content.get(part))))
        except FormatError as e:
            raise FormatError(f"'{source}' cannot be read: {part}: {e}") from None
    model = content.get("model")
    longest = model.get("max_input_chars_per_word") if isinstance(model, dict) else None
    if isinstance(longest, int) and longest > MAX_WORD:
        raise FormatError(
            f"'{source}' cannot be read: max_input_chars_per_word must be at most {MAX_WORD}, got {longest}"
        )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):  # the library may read one, and others the other
        raise FormatError("a key is there twice")
    return members


def _steps(step: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The steps of a part in their order, without the sequences that hold them."""
    if depth > MAX_DEPTH:
        raise FormatError(f"steps are nested more than {MAX_DEPTH} deep")
    if not isinstance(step, dict):
        return
    inner = [
        v
        for v in step.values()
        if isinstance(v, list) and any(isinstance(x, dict) and "type" in x for x in v)
    ]
    if not inner:
        yield step
    for each in inner:
        for one in each:
            yield from _steps(one, depth + 1)


def _check_steps(steps: list[Mapping[str, Any]]) -> None:
    if len(steps) > MAX_STEPS:
        raise FormatError(f"it has {len(steps)} steps, at most {MAX_STEPS} are allowed")
    growth, prepended = 1.0, 0
    for step in steps:
        kind = step.get("type")
        if kind == "Precompiled":
            _check_charsmap(step.get("precompiled_charsmap"))
        elif kind == "Replace":
            growth *= _growth(step.get("pattern"), step.get("content"))
        elif kind == "Prepend":
            prepended += len(str(step.get("prepend", "")))
    if growth > MAX_GROWTH:
        raise FormatError(
            f"its steps may make a text {growth:.3g} times as long, at most {MAX_GROWTH} times is allowed"
        )
    if prepended > MAX_PREPENDED:
        raise FormatError(
            f"it puts {prepended} characters before a text, at most {MAX_PREPENDED} are allowed"
        )


def _growth(pattern: Any, content: Any) -> float:
    """How many times as long a replacement may make a text. What a regular expression finds may be empty."""
    text = pattern.get("String") if isinstance(pattern, dict) else None
    length = len(content.encode("utf-8", "replace")) if isinstance(content, str) else 0
    if isinstance(text, str) and text:
        return max(1.0, length / len(text.encode("utf-8", "replace")))
    return max(1.0, float(length))


def _check_charsmap(value: Any) -> None:
    """Four bytes with the size of a table, the table, whose entries have four bytes, and texts."""
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise FormatError("precompiled_charsmap must be bytes in base64") from None
    size = int.from_bytes(data[:4], "little")
    if len(data) < 4 or size > len(data) - 4 or size % 4:
        raise FormatError(
            f"precompiled_charsmap states a table of {size} bytes and has {max(0, len(data) - 4)}"
        )
