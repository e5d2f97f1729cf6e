"""Writes unicode_tables.inc, the properties of characters that tokenizers go by, from Python's unicodedata.

    python cpp/embed/text/make_tables.py > cpp/embed/text/unicode_tables.inc

Ranges are [first, last]. Lower case and decompositions are whole: a character that becomes several lists them
in a pool.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable

HANGUL = range(0xAC00, 0xD7A4)  # decomposed by arithmetic
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
LINE = 100


def ranges(inside: Callable[[int], bool]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for c in POINTS:
        if not inside(c):
            continue
        if found and (found[-1][1] == c - 1 or (found[-1][1] == 0xD7FF and c == 0xE000)):
            found[-1] = (found[-1][0], c)
        else:
            found.append((c, c))
    return found


def wrapped(numbers: Iterable[str]) -> str:
    lines, line = [], "   "
    for number in numbers:
        if len(line) + len(number) + 2 > LINE:
            lines.append(line)
            line = "   "
        line += f" {number},"
    return "\n".join([*lines, line])


def table(name: str, inside: Callable[[int], bool]) -> str:
    pairs = [f"{{{a:#x}, {b:#x}}}" for a, b in ranges(inside)]
    return f"constexpr Range {name}[] = {{\n{wrapped(pairs)}\n}};\n"


def mapping(name: str, of: Callable[[int], str]) -> str:
    """(character, first of its pool, how many)"""
    pool: list[int] = []
    entries = []
    for c in POINTS:
        if c in HANGUL or (to := of(c)) == chr(c):
            continue
        entries.append(f"{{{c:#x}, {len(pool)}, {len(to)}}}")
        pool += map(ord, to)
    pool_text = wrapped(f"{c:#x}" for c in pool)
    return (
        f"constexpr char32_t {name}Pool[] = {{\n{pool_text}\n}};\n"
        f"constexpr Mapped {name}[] = {{\n{wrapped(entries)}\n}};\n"
    )


def category(*starts: str) -> Callable[[int], bool]:
    return lambda c: unicodedata.category(chr(c)).startswith(starts)


def main() -> None:
    sys.stdout.write(
        f"// Written by make_tables.py from Unicode {unicodedata.unidata_version}; do not edit.\n"
        + table("kLetters", category("L"))
        + table("kNumbers", category("N"))
        + table("kPunctuation_", category("P"))
        + table("kOther_", category("Cc", "Cf", "Co", "Cs"))
        + table("kNonspacing_", category("Mn"))
        + mapping("kLower", lambda c: chr(c).lower())
        + mapping("kDecomposed", lambda c: unicodedata.normalize("NFD", chr(c)))
    )


if __name__ == "__main__":
    main()
