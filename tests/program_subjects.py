"""Programs that fuzz_program_file.py damages: of the op declarations in tests/ops, and the golden file."""

from __future__ import annotations

import copy
import json
import pathlib
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from optest import TYPED_ERRORS, all_specs
from plmcore import Tensor, _core

MAGIC = b"\x89PLM\r\n\x1a\n"
GOLDEN = pathlib.Path(__file__).parent / "golden" / "block.plm"
TRACED = 4096  # elements of a case at most
PER_OP = 10  # subjects of an op


@dataclass
class Subject:
    """A header that is in order, and the arrays of its inputs by name."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]
    data: list[bytes] = field(default_factory=list)  # of the header's tensors

    @property
    def program(self) -> dict[str, Any]:
        return self.header["programs"][0]


# ---- files ----


def read(path: pathlib.Path) -> tuple[dict[str, Any], list[bytes]]:
    raw = path.read_bytes()
    (size,) = struct.unpack_from("<Q", raw, 16)
    header, start = json.loads(raw[24 : 24 + size]), -(-(24 + size) // 64) * 64
    return header, [raw[start + t["offset"] :][: t["bytes"]] for t in header["tensors"]]


def packed(header: dict[str, Any], data: list[bytes]) -> bytes:
    text = json.dumps(header).encode()
    raw = bytearray(MAGIC + struct.pack("<IIQ", 1, 0, len(text)) + text)
    for piece in data:
        raw += bytes(-len(raw) % 64) + piece
    return bytes(raw)


def add_constant(subject: Subject, value: int, spec: list[str], array: np.ndarray) -> None:
    """The array as a tensor of the file."""
    tensors, piece = subject.header["tensors"], np.ascontiguousarray(array).tobytes()
    start = -(-(tensors[-1]["offset"] + tensors[-1]["bytes"]) // 64) * 64 if tensors else 0
    tensors.append({"name": f"t{len(tensors)}", "spec": spec, "offset": start, "bytes": len(piece)})
    subject.data.append(piece)
    subject.program["constants"].append([value, len(tensors) - 1])


# ---- subjects ----


def traced(folder: pathlib.Path, ops: bool) -> list[Subject]:
    """Programs of the op declarations: whole with their symbolic sizes, or cut into single instructions."""
    found: dict[str, list[Subject]] = {}
    path = folder / "traced.plm"
    for declared in all_specs():
        spec = copy.copy(declared)
        if ops:
            spec.dims = None
        for k in range(len(spec.cases)):
            case, dtype = declared.case(k), spec.dtypes[k % len(spec.dtypes)]
            if sum(a.size for a in case.arrays.values()) > TRACED or (
                spec.dims and spec.program_key(case) is None
            ):
                continue
            for with_grad in (False, True):
                if with_grad and not spec.grad_names(case):
                    continue
                try:
                    program = spec.traced(case, dtype, with_grad)[0]
                except TYPED_ERRORS:  # an op that cannot be traced
                    continue
                _core.Model.save(str(path), [("main", program)])
                header, data = read(path)
                arrays = {n: a for n, a in case.rounded(dtype).items()}
                for s in singles(path, header, data, arrays) if ops else [Subject(header, arrays, data)]:
                    name = s.program["instructions"][0]["op"] if s.program["instructions"] else ""
                    found.setdefault(name, []).append(s)
    missing = sorted(set(_core.op_names()) - set(found))
    assert not ops or not missing, f"no declaration in tests/ops leads to {missing}"
    return [s for name in sorted(found) for s in spread(found[name])]


def spread(subjects: list[Subject]) -> list[Subject]:
    """At most PER_OP, those that differ in attributes, dtypes and ranks first."""
    kinds: dict[str, list[Subject]] = {}
    for s in subjects:
        step = s.program["instructions"][0] if s.program["instructions"] else {"attrs": [], "in": []}
        key = str(
            [step["attrs"], [bool(v) for v in step["in"]], [[v[0], len(v)] for v in s.program["values"]]]
        )
        kinds.setdefault(key, []).append(s)
    order = [
        s
        for group in zip(*(kinds[k] + [None] * len(subjects) for k in kinds))
        for s in group
        if s is not None
    ]
    step = max(1, len(kinds) // PER_OP)
    return order[: len(kinds)][::step][:PER_OP]


def singles(
    path: pathlib.Path, header: dict[str, Any], data: list[bytes], arrays: dict[str, np.ndarray]
) -> list[Subject]:
    """Each instruction of a program as a program of its own, with the values that it gets there."""
    whole = header["programs"][0]
    probe = copy.deepcopy(header)
    used = sorted({v for step in whole["instructions"] for v in step["in"] if v})
    probe["programs"][0]["outputs"] = [{"name": f"v{v}", "value": v} for v in used]
    path.write_bytes(packed(probe, data))
    _core.manual_seed(7)
    results = _core.Model.load(str(path)).program("main").run([Tensor(a) for a in arrays.values()])
    values = {v: np.array(t.numpy()) for v, t in zip(used, results)}
    found = []
    for step in whole["instructions"]:
        numbers: dict[int, int] = {0: 0}
        for v in [*step["in"], *step["out"]]:
            numbers.setdefault(v, len(numbers))
        given = [v for v in numbers if v in step["in"] and v]
        specs = {v: [values[v].dtype.name, *map(str, values[v].shape)] for v in given}
        program = {
            "name": "main",
            "values": [specs.get(v, whole["values"][v - 1]) for v in numbers if v],
            "inputs": [{"name": f"x{numbers[v]}", "value": numbers[v]} for v in given],
            "constants": [],
            "random": [],
            "guards": [],
            "instructions": [
                step | {"in": [numbers[v] for v in step["in"]], "out": [numbers[v] for v in step["out"]]}
            ],
            "outputs": [{"name": f"y{v}", "value": numbers[v]} for v in step["out"]],
        }
        found.append(
            Subject({"tensors": [], "programs": [program]}, {f"x{numbers[v]}": values[v] for v in given})
        )
    return found


def golden() -> list[Subject]:
    return [Subject(*[(h, {}, d) for h, d in [read(GOLDEN)]][0])]
