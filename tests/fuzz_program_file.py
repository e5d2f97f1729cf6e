"""Damages program files, loads and runs them: whatever a file says, that ends in a result or in a typed
error.

    python tests/fuzz_program_file.py --count 20000 --seed 1          the golden file and traced programs
    python tests/fuzz_program_file.py --count 20000 --seed 1 --ops    one instruction, for every op

The subjects come from the declarations in tests/ops, traced forward and with gradients. A damage changes what
the header means (inputs, specs, attributes, op names, other instructions), its JSON, the bytes of the file,
or the data. The cases run in a child process, which is started again after a crash; --only N repeats case N
in this process. Worth running under sanitizers: .ci/nightly.
"""

from __future__ import annotations

import argparse
import copy
import math
import os
import pathlib
import pickle
import random
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
from optest import TYPED_ERRORS, numpy_dtype
from plmcore import Tensor, _core
from program_subjects import Subject, add_constant, golden, packed, traced

DTYPES = ("float64", "float32", "bfloat16", "float16", "int64", "int32", "int8", "uint8", "bool")
INTS = (
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    9,
    16,
    63,
    64,
    255,
    2**31 - 1,
    2**31,
    2**32,
    2**62,
    2**63 - 1,
    -1,
    -2,
    -8,
    -(2**31),
    -(2**63),
)
FLOATS = (0.0, 1.0, -1.0, 0.5, 2.0, 1e-30, 65504.0, 1e30, 1e300, -1e300, 2.0**63, "nan", "inf", "-inf")
SIZES = (
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "9",
    "16",
    "17",
    "64",
    "65",
    "1024",
    "65536",
    "4294967296",
    "4611686018427387904",
)
EXPRESSIONS = (
    "B",
    "T",
    "2*B",
    "B+T",
    "B*T",
    "B-T",
    "T-1",
    "3*B*B-2*T+1",
    "B-9",
    "9223372036854775807",
    "-1",
    "B*B*B*B*B*B",
)
JUNK = (None, True, -1, 0, 1.5, 2**64, 1e308, "", "x", "\x00", "é" * 600, [], {}, [[]], [None], {"name": 1})
LARGEST = 1 << 16  # elements of an input at most
CAP = 128 << 20  # bytes that a program may have
SLOW = 300  # seconds after which a case counts as hanging


# ---- damage ----


class Damage:
    """Changes a subject in place."""

    def __init__(self, rng: random.Random, subjects: list[Subject]):
        self.rng, self.subjects = rng, subjects

    def size(self) -> str:
        return self.rng.choice(SIZES if self.rng.random() < 0.8 else EXPRESSIONS)

    def step(self, s: Subject) -> dict[str, Any]:
        return self.rng.choice(s.program["instructions"])

    def inputs(self, s: Subject) -> None:
        """Swaps, drops, repeats, adds or clears inputs."""
        into, last = self.step(s)["in"], len(s.program["values"])
        i = self.rng.randrange(len(into) + 1)
        match self.rng.randrange(6):
            case 0:
                self.rng.shuffle(into)
            case 1:
                del into[i : i + 1]
            case 2:
                into[i:i] = into[:1] or [0]
            case 3:
                into[i : i + 1] = [0]
            case 4:
                into[i : i + 1] = [self.rng.randint(0, last)]
            case 5:
                into += [self.rng.choice([0, 1, last])] * self.rng.choice([1, 1, 2, 70])

    def spec(self, s: Subject) -> None:
        """Another dtype, size or rank of a value."""
        spec = self.rng.choice(s.program["values"])
        i = self.rng.randrange(len(spec))
        match self.rng.randrange(5):
            case 0:
                spec[0] = self.rng.choice(DTYPES)
            case 1 if i:
                spec[i] = self.size()
            case 2 if i:
                del spec[i]
            case 3:
                spec.insert(max(i, 1), self.size())
            case _ if i:  # in every place where it stands, so that the inputs may still fit together
                old, new = spec[i], self.size()
                for other in s.program["values"]:
                    other[1:] = [new if d == old else d for d in other[1:]]

    def attribute(self, s: Subject) -> None:
        attrs = self.step(s)["attrs"]
        if not attrs:
            return
        a = self.rng.choice(attrs)
        match self.rng.randrange(7):
            case 0:
                attrs.remove(a)
            case 1:
                a[1:] = self.value(self.rng.choice(["int", "float", "dims"]))
            case 2:
                b = self.rng.choice(attrs)
                a[1:], b[1:] = b[1:], a[1:]
            case 3 if a[1] == "dims" and a[2]:
                sizes = a[2]
                i = self.rng.randrange(len(sizes))
                sizes[i : i + self.rng.randint(0, 1)] = [self.size()] * self.rng.randint(0, 2)
            case 4 if a[1] == "int":
                a[2] += self.rng.choice([-1, 1])
            case _:
                a[1:] = self.value(a[1])

    def value(self, kind: str) -> list[Any]:
        if kind == "dims":
            return [kind, [self.size() for _ in range(self.rng.choice([0, 1, 1, 2, 3, 8]))]]
        return [kind, self.rng.choice(INTS if kind == "int" else FLOATS)]

    def op(self, s: Subject) -> None:
        """The name of another op, with its attributes or without; preferably of as many inputs."""
        step = self.step(s)
        others = [
            o
            for o in (self.rng.choice(self.subjects) for _ in range(24))
            if o.program["instructions"] and len(self.step(o)["in"]) == len(step["in"])
        ]
        other = self.rng.choice(others or self.subjects)
        if not other.program["instructions"]:
            return
        donor = other.program["instructions"][0]
        step["op"] = donor["op"]
        if self.rng.random() < 0.7:
            kept = step["attrs"] if self.rng.random() < 0.3 else []
            keys = {a[0] for a in kept}
            step["attrs"] = kept + [copy.deepcopy(a) for a in donor["attrs"] if a[0] not in keys]
        if self.rng.random() < 0.5:  # its outputs too: the op may then run
            self.outputs(s, step, len(donor["out"]), other)

    def outputs(self, s: Subject, step: dict[str, Any], count: int, like: Subject) -> None:
        values, program = s.program["values"], s.program
        while len(step["out"]) < count:
            spec = like.program["values"][like.program["instructions"][0]["out"][len(step["out"])] - 1]
            values.append(copy.deepcopy(spec))
            step["out"].append(len(values))
        if (
            step is program["instructions"][-1]
            and len(step["out"]) > count
            and len(values) == step["out"][-1]
        ):
            while len(step["out"]) > count:
                gone = step["out"].pop()
                del values[gone - 1]
                program["outputs"] = [o for o in program["outputs"] if o["value"] != gone]

    def follow(self, s: Subject) -> None:
        """One more instruction, on any of the values: views, memory that is shared and written."""
        other = self.rng.choice(self.subjects)
        if not other.program["instructions"]:
            return
        step, values = copy.deepcopy(other.program["instructions"][0]), s.program["values"]
        step["in"] = [v and self.rng.randint(1, len(values)) for v in step["in"]] if values else []
        specs = [other.program["values"][v - 1] for v in step["out"]]
        step["out"] = list(range(len(values) + 1, len(values) + 1 + len(specs)))
        values += copy.deepcopy(specs)
        s.program["instructions"].append(step)

    def state(self, s: Subject) -> None:
        """The random state, and guards."""
        last = len(s.program["values"])
        if self.rng.random() < 0.5:
            s.program["guards"].append([self.size(), self.size()])
        elif s.program["inputs"]:
            first = s.program["inputs"].pop(self.rng.randrange(len(s.program["inputs"])))["value"]
            s.program["random"] = [first, self.rng.randint(1, last)]
            if self.rng.random() < 0.7:
                s.program["values"][first - 1] = ["int64", "2"]

    def node(self, s: Subject) -> None:
        """Junk in the place of some part of the JSON."""
        node: Any = s.header
        while isinstance(node, (dict, list)) and node:
            key = self.rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
            if self.rng.random() < 0.25 or not isinstance(node[key], (dict, list)) or not node[key]:
                if self.rng.random() < 0.3:
                    del node[key]
                else:
                    node[key] = copy.deepcopy(self.rng.choice(JUNK))
                return
            node = node[key]

    def constants(self, s: Subject) -> None:
        """Inputs become tensors of the file, which ends where the last of them does."""
        kept = []
        for entry in s.program["inputs"]:
            spec = s.program["values"][entry["value"] - 1]
            if self.rng.random() < 0.5 or not all(d.isdigit() for d in spec[1:]):
                kept.append(entry)
                continue
            array = sized_input(s.arrays.get(entry["name"]), spec[0], [int(d) for d in spec[1:]], self.rng)
            if [*array.shape] == [int(d) for d in spec[1:]]:
                add_constant(s, entry["value"], spec, array)
            else:
                kept.append(entry)
        s.program["inputs"] = kept

    def semantic(self, s: Subject) -> None:
        kinds = [self.inputs, self.spec, self.attribute, self.op, self.follow, self.state, self.node]
        for damage in self.rng.choices(
            kinds, weights=[3, 4, 5, 2, 1, 0.5, 0.5], k=self.rng.choice([0, 1, 1, 1, 2, 3])
        ):
            try:
                damage(s)
            except (TypeError, KeyError, AttributeError, IndexError, ValueError):  # junk came before it
                pass


def bytewise(rng: random.Random, raw: bytes) -> bytes:
    raw = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 8])):
        i = rng.randrange(max(len(raw), 1))
        match rng.randrange(5):
            case 0:
                raw[i : i + 1] = bytes([rng.randrange(256)])
            case 1:
                raw[i : i + 1] = bytes([raw[i] ^ 1 << rng.randrange(8)]) if raw else b""
            case 2:
                del raw[i : i + rng.choice([1, 1, 8, 1000])]
            case 3:
                raw[i:i] = raw[i // 2 : i // 2 + rng.choice([1, 4, 64])]
            case 4:
                raw[rng.choice([8, 12, 16, 20]) :][:4] = rng.randbytes(4)
    return bytes(raw)


# ---- running ----


def sized_input(array: np.ndarray | None, dtype: str, shape: list[int], rng: random.Random) -> np.ndarray:
    """The subject's own array where it fits, now and then with other values in it; otherwise a new one."""
    kind = numpy_dtype(dtype)
    if array is None or array.dtype != kind or list(array.shape) != shape:
        # 2**59 is NumPy's limit for empty arrays.
        if math.prod(shape) > LARGEST or math.prod(n or 1 for n in shape) >= 2**59:
            shape = [min(n, 2) for n in shape]
        numbers = np.random.default_rng(rng.randrange(2**32))
        array = np.zeros(shape, kind)
        if 0 not in shape:
            whole = kind.kind in "iub"
            array = (numbers.integers(0, 4, shape) if whole else numbers.standard_normal(shape)).astype(kind)
    elif rng.random() < 0.6:
        return array
    array = array.copy()
    if array.size and rng.random() < 0.5:
        flat = array.reshape(-1)
        for _ in range(rng.choice([1, 1, 3])):
            i = rng.randrange(flat.size)
            if kind.kind == "b":
                flat.view(np.uint8)[i] = rng.choice([0, 1, 2, 255])
            elif kind.kind in "iu":
                flat[i : i + 1] = np.array([rng.choice(INTS) & 2**64 - 1], np.uint64).astype(kind)
            else:
                with np.errstate(over="ignore"):
                    flat[i] = float(rng.choice(FLOATS))
    return array


def outcome_of(subject: Subject, path: pathlib.Path, rng: random.Random) -> str:
    """Loads and runs the file: "ran", "refused: ..." or, for an error that is not of the library, "failed:
    ...".
    """
    sizes = {name: rng.choice([0, 1, 2, 3, 4, 5, 8, 17]) for name in "BTNMUWPS"}
    try:
        model = _core.Model.load(str(path))
        for name in model.names:
            program = model.program(name)
            repr(program)
            inputs = []
            for given, shape, dtype in program.inputs:
                numbers = [n if isinstance(n, int) else sizes.get(str(n), rng.randrange(5)) for n in shape]
                inputs.append(Tensor(sized_input(subject.arrays.get(given), dtype, numbers, rng)))
            for y in program.run(inputs):
                y.numpy().tobytes()  # reads all of it
    except TYPED_ERRORS as e:
        return f"refused: {type(e).__name__}: {e}"
    except Exception as e:  # noqa: BLE001 anything else is what this looks for
        return f"failed: {type(e).__name__}: {e}"
    return "ran"


def run_case(subjects: list[Subject], seed: int, k: int, path: pathlib.Path) -> str:
    """What became of case k."""
    rng = random.Random(f"{seed} {k}")
    subject = copy.deepcopy(rng.choice(subjects))
    damage = Damage(rng, subjects)
    damage.semantic(subject)
    if rng.random() < 0.3:
        try:
            damage.constants(subject)
        except (TypeError, KeyError, AttributeError, IndexError, ValueError):
            pass
    raw = packed(subject.header, subject.data)
    path.write_bytes(bytewise(rng, raw) if rng.random() < 0.1 else raw)
    return outcome_of(subject, path, rng)


def run_cases(subjects: list[Subject], seed: int, first: int, count: int, folder: pathlib.Path) -> None:
    """The child: writes the number of each case before it starts, and its outcome."""
    _core.set_memory_cap(CAP)
    _core.set_num_threads(2)
    with open(folder / "log", "a", buffering=1) as log:
        for k in range(first, count):
            log.write(f"case {k}\n")
            outcome = run_case(subjects, seed, k, folder / "case.plm")
            if not outcome.startswith("refused"):
                log.write(f"{outcome}\n")


def supervise(folder: pathlib.Path, args: argparse.Namespace) -> tuple[int, list[str]]:
    """Runs all cases in child processes: how many ran to their end, and the failures."""
    failures: list[str] = []
    ran, first, log = 0, 0, folder / "log"
    while first < args.count and len(failures) < args.most:
        log.write_text("")
        command = [sys.executable, __file__, "--seed", str(args.seed), "--count", str(args.count)]
        with (
            open(folder / "stderr", "w+", errors="replace") as err,
            subprocess.Popen([*command, "--child", str(folder), "--first", str(first)], stderr=err) as child,
        ):
            seen, since = "", time.monotonic()
            while True:
                try:
                    child.wait(1)
                    break
                except subprocess.TimeoutExpired:
                    now = str(log.stat().st_size)
                    if now != seen:
                        seen, since = now, time.monotonic()
                    elif time.monotonic() - since > SLOW:
                        child.kill()
            lines, case = log.read_text().splitlines(), None
            for line in lines:
                if line.startswith("case "):
                    case = int(line[5:])
                elif line == "ran":
                    ran += 1
                else:
                    failures.append(f"case {case} {line}")
            if child.returncode == 0:
                break
            err.seek(0)
            report = err.read().strip().splitlines()
            told = [
                x for x in report if "ERROR" in x or "runtime error" in x or "SUMMARY" in x or " #" in x[:8]
            ][:12]
            failures.append(
                "\n    ".join([f"case {case} ended the process: {child.returncode}", *(told or report[-12:])])
            )
            if case is None:
                break
            first = case + 1
    return ran, failures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000, help="damaged files to run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ops", action="store_true", help="programs of one instruction, for every op")
    parser.add_argument("--only", type=int, help="repeat this case here")
    parser.add_argument("--most", type=int, default=20, help="failures after which to stop")
    parser.add_argument("--child", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        with open(args.child / "subjects", "rb") as f:
            subjects = pickle.load(f)
        run_cases(subjects, args.seed, args.first, args.count, args.child)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        start = time.monotonic()
        subjects = traced(folder, args.ops) + ([] if args.ops else golden())
        for s in subjects if args.ops else []:  # what is refused as it is tests nothing
            (folder / "case.plm").write_bytes(packed(s.header, s.data))
            _core.Model.load(str(folder / "case.plm")).program("main").run(
                [Tensor(a) for a in s.arrays.values()]
            )
        if args.only is not None:
            _core.set_memory_cap(CAP)
            print(run_case(subjects, args.seed, args.only, pathlib.Path("case.plm")))
            return 0
        with open(folder / "subjects", "wb") as f:
            pickle.dump(subjects, f)
        ran, failures = supervise(folder, args)
    print("\n".join(failures))
    print(
        f"{args.count} damaged files of {len(subjects)} programs in {time.monotonic() - start:.0f} s: "
        f"{ran} ran, {len(failures)} failures"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    sys.exit(main())
