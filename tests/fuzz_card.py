"""Damages what a model file says of its model, and its tokenizer: that ends in a result or in a typed error.

    python tests/fuzz_card.py --count 2000 --seed 1

A damage changes a member of the card, or bytes of the tokenizer's tensors; the checksum of the header is that
of the damaged one, so that the reader goes on. A case that takes more than SLOW seconds counts as hanging.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import pathlib
import random
import struct
import sys
import tempfile
import zlib
from typing import Any

import plmcore as plm
from optest import TYPED_ERRORS
from plmcore import _core

GOLDEN = pathlib.Path(__file__).parent / "golden" / "card.plm"
JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 7, 1.5, 2**31, 2**63, 2**64, 1e308, "", "x", "mean", "text.ends", "é" * 600,
    [], {}, [[]], [None], {"name": 1}, [0, 1, 2], [[0, 0, 0]], [[-1, 10**9, 0], [0, 0, 0]], "byte-bpe",
)  # fmt: skip
SLOW = 60  # seconds
TEXTS = ("the cat", "", "a\u0000b \U0001f600" * 9, "x" * 300, "[CLS] [MASK] é")


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every member of an object or a list, at any depth: where it is, and its key."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found += [(value, key), *places(value[key])]
    return found


def damaged(raw: bytes, rng: random.Random) -> bytes:
    (size,) = struct.unpack_from("<Q", raw, 16)
    header, data = json.loads(raw[24 : 24 + size]), bytearray(raw[-(-(24 + size) // 64) * 64 :])
    for _ in range(rng.choice([1, 1, 2, 4])):
        kind = rng.randrange(4)
        if kind == 0:  # bytes of the tokenizer
            t = rng.choice([t for t in header["tensors"] if t["name"].startswith("text.")])
            for _ in range(rng.choice([1, 3, 30])):
                data[t["offset"] + rng.randrange(t["bytes"])] = rng.randrange(256)
            continue
        inside, key = rng.choice(places(header["model"]))
        if kind == 1 and isinstance(inside, dict):
            del inside[key]
        elif kind == 2 and isinstance(inside[key], int):
            inside[key] = rng.choice([inside[key] + 1, inside[key] - 1, -inside[key], 10**6])
        else:
            inside[key] = rng.choice(JUNK)
    text = json.dumps(header).encode()
    start = raw[:8] + struct.pack("<IIQ", 2, zlib.crc32(text), len(text)) + text
    return start + bytes(-len(start) % 64) + bytes(data)


def used(path: pathlib.Path) -> None:
    """All that a program may do with a file."""
    model = _core.Model.load(str(path))
    session = _core.Session(model)
    rows = [[2, 5, 3]]
    calls = [lambda: session.classify(rows), lambda: session.encode(rows), lambda: session.tag(rows)]
    calls.append(lambda: session.generate(rows, model.card.generation))
    if _core.Text.serves(model):
        text = _core.Text(model)
        for t in TEXTS:
            calls += [lambda t=t: text.encode(t), lambda t=t: text.encode_pair(t, "b", 9)]
            calls.append(lambda t=t: text.decode(text.ids(t)))
        calls.append(lambda: text.decode(list(range(text.size))))
    for call in calls:
        try:
            call()
        except TYPED_ERRORS:
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    faulthandler.enable()
    raw, refused = GOLDEN.read_bytes(), 0
    plm.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.plm"
        for i in range(args.count):
            path.write_bytes(damaged(raw, random.Random(f"{args.seed} {i}")))
            faulthandler.dump_traceback_later(SLOW, exit=True)
            try:
                used(path)
            except TYPED_ERRORS:
                refused += 1
            except BaseException:
                print(f"case {i} of seed {args.seed}", file=sys.stderr)
                raise
            faulthandler.cancel_dump_traceback_later()
    print(f"{args.count} cases, {refused} refused")


if __name__ == "__main__":
    main()
