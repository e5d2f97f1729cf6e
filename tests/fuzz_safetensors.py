"""Damages safetensors files at random: python tests/fuzz_safetensors.py --count 100000 --seed 1.

A file must be read, and then every value with it, or refused with a FormatError. Anything else ends the run
with the file's bytes; run it under sanitizers to see reads outside the mapping.
"""

import argparse
import json
import pathlib
import random
import struct
import tempfile

import numpy as np
import plmcore as plm
from hostile_safetensors import GOOD, HOSTILE, entry, pack
from plmcore import safetensors

WORDS = [
    b'"dtype"',
    b'"shape"',
    b'"data_offsets"',
    b'"__metadata__"',
    b'"BF16"',
    b'"BOOL"',
    b'"F64"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
]
NUMBERS = [0, 1, 2, 4, 7, 8, 12, 2**31, 2**32, 2**46, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -1]
DTYPES = ["F64", "F32", "F16", "BF16", "I64", "I32", "I8", "U8", "BOOL", "I16"]
SEEDS = [GOOD] + [data for data, _ in HOSTILE.values() if 8 < len(data) < 2000]


def header_at_random(rng: random.Random) -> bytes:
    """Right in form, with sizes and offsets that may not fit: deeper into the reader than flipped bits."""
    tensors, at = {}, 0
    for k in range(rng.randrange(5)):
        dtype, shape = rng.choice(DTYPES), [rng.randrange(4) for _ in range(rng.randrange(4))]
        size = int(np.prod(shape)) * {"6": 2, "2": 4, "4": 8}.get(dtype[-1], 1)
        begin, end = at, at + size
        if rng.random() < 0.1:
            begin += rng.choice([-1, 1, 4, 2**63])
        if rng.random() < 0.1:
            end = rng.choice([*NUMBERS, end + 1])
        if rng.random() < 0.05:
            shape.append(rng.choice(NUMBERS))
        tensors[rng.choice(["x", f"t{k}", "__metadata__"]) if rng.random() < 0.1 else f"t{k}"] = entry(
            dtype, shape, (begin, end)
        )
        at += size
    text = json.dumps(tensors) + " " * rng.randrange(9)
    return pack(text, rng.randbytes(max(0, at + rng.choice([0, 0, 0, 0, 0, -1, 1]))))


def damaged(rng: random.Random, data: bytes) -> bytes:
    """One to four changes; most files keep a true length of the header, so that more than the length is
    looked at.
    """
    length = int.from_bytes(data[:8], "little")
    header, values = bytearray(data[8 : 8 + length]), data[8 + length :]
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(header) + 1)
        match rng.randrange(7):
            case 0 if header:
                header[at % len(header)] ^= 1 << rng.randrange(8)
            case 1:
                del header[at : at + rng.randrange(1, 9)]
            case 2:
                header[at:at] = rng.choice(WORDS)
            case 3:
                header[at:at] = str(rng.choice(NUMBERS)).encode()
            case 4:
                values = values[: rng.randrange(len(values) + 1)] + rng.randbytes(rng.randrange(9))
            case 5:
                digits = [i for i, c in enumerate(header) if 48 <= c < 58]
                if digits:
                    header[rng.choice(digits)] = 48 + rng.randrange(10)
            case _:
                header[at:at] = header[at // 2 : at]
    length = (
        len(header)
        if rng.random() < 0.9
        else rng.choice([n for n in (*NUMBERS, len(header) + 1) if 0 <= n < 2**64])
    )
    out = struct.pack("<Q", length) + header + values
    return out[: rng.randrange(len(out) + 1)] if rng.random() < 0.05 else out


def use(tensors: dict[str, plm.Tensor]) -> None:
    for t in tensors.values():
        values = t.numpy()
        assert values.flags.aligned and values.nbytes == t.nbytes
        if t.dtype == "bool":
            assert t.size == 0 or values.view(np.uint8).max() <= 1
        values.tobytes()


def run(count: int, seed: int) -> tuple[int, int]:
    """How many files were read, how many refused."""
    rng = random.Random(seed)
    read = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "f.safetensors"
        for i in range(count):
            data = header_at_random(rng) if rng.random() < 0.3 else damaged(rng, rng.choice(SEEDS))
            # Cutting the old one short makes some file systems write to the disk.
            path.unlink(missing_ok=True)
            path.write_bytes(data)
            try:
                use(safetensors.read(path)[0])
                read += 1
            except plm.FormatError:
                refused += 1
            except BaseException:
                print(f"seed {seed}, file {i}: {data!r}")
                raise
    return read, refused


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print("seed {}: {} files read, {} refused".format(args.seed, *run(args.count, args.seed)))
