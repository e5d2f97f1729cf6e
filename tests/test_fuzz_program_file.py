"""A short run of fuzz_program_file.py, and the kinds of damage that it once found, by name."""

import copy
import pathlib
import subprocess
import sys

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, _core
from program_subjects import Subject, add_constant, packed

FUZZ = pathlib.Path(__file__).parent / "fuzz_program_file.py"


@pytest.mark.parametrize("options", [["--ops", "--count", "1500"], ["--count", "300"]])
def test_a_short_run(options):
    done = subprocess.run(
        [sys.executable, FUZZ, "--seed", "1", *options], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def subject(op, specs, outs, attrs=(), arrays=None):
    """A program of one instruction: specs of its inputs and outputs, attributes as in the file."""
    n = len(specs)
    program = {
        "name": "main",
        "values": [list(map(str, s)) for s in [*specs, *outs]],
        "inputs": [{"name": f"x{i + 1}", "value": i + 1} for i in range(n)],
        "constants": [],
        "random": [],
        "guards": [],
        "instructions": [
            {
                "op": op,
                "in": list(range(1, n + 1)),
                "out": list(range(n + 1, n + 1 + len(outs))),
                "attrs": [list(a) for a in attrs],
            }
        ],
        "outputs": [{"name": f"y{i}", "value": n + 1 + i} for i in range(len(outs))],
    }
    return Subject({"tensors": [], "programs": [program]}, arrays or {})


def run(s, folder):
    path = folder / "x.plm"
    path.write_bytes(packed(s.header, s.data))
    program = plm.load_program(path)
    inputs = [
        s.arrays[name] if name in s.arrays else Tensor(np.ones(shape, dtype))
        for name, shape, dtype in program.inputs
    ]
    return program.run(inputs)


X = ["float32", 2, 3]
FLAGS = [["axes", "int", 2], ["keepdims", "int", 0]]


@pytest.mark.parametrize(
    ("s", "error", "message"),
    [
        # attributes: missing, of another kind, outside their range
        (subject("sum", [X], [X], FLAGS[:1]), plm.ArgumentError, "sum: the attribute 'keepdims' is missing"),
        (
            subject("sum", [X], [X], [["axes", "float", 1.0], FLAGS[1]]),
            plm.ArgumentError,
            "sum: the attribute 'axes' must be int, got float",
        ),
        (
            subject("sum", [X], [X], [["axes", "int", 4], FLAGS[1]]),
            plm.IndexRangeError,
            "must be bits of 2 axes, got 4",
        ),
        (
            subject("max", [X], [X], [["axis", "int", -1], FLAGS[1]]),
            plm.IndexRangeError,
            "axis -1 is out of range",
        ),
        (
            subject("cast", [X], [X], [["dtype", "int", 9]]),
            plm.ArgumentError,
            "'dtype' must be from 0 to 8, got 9",
        ),
        (
            subject(
                "linear", [X, X, ["float32", 2]], [X], [["activation", "int", 7], ["keep_sum", "int", 0]]
            ),
            plm.ArgumentError,
            "linear: the attribute 'activation' must be from 0 to 6, got 7",
        ),
        (
            subject("topk", [X], [X, X], [["k", "dims", []]]),
            plm.ArgumentError,
            r"'k' must be one size, got \[\]",
        ),
        (
            subject("split_rows", [X], [X, X], [["sizes", "dims", ["1", "2"]], ["axis", "int", 1]]),
            plm.ArgumentError,
            "split_rows: the axis must be 0",
        ),
        # inputs: too few, too many, none
        (subject("add", [X], [X]), plm.ArgumentError, "add: must have 2 inputs, got 1"),
        (subject("exp", [X] * 70, [X]), plm.ArgumentError, "exp: must have 1 inputs, got 70"),
        (subject("attention", [X], [X]), plm.ArgumentError, "attention: must have 10 inputs, got 1"),
        # gradients check what they are given, as their ops do
        (
            subject("linear_grad", [X, X, X, X], [X], [["activation", "int", 1], ["want", "int", 1]]),
            plm.ShapeError,
            r"linear_grad: dy must be \[2, 2\], got \[2, 3\]",
        ),
        (
            subject("layer_norm_grad", [X, ["float32", 3], ["float32", 2], ["float32", 1], X], [X]),
            plm.ShapeError,
            r"layer_norm_grad: rstd must be \[2\], got \[1\]",
        ),
        (
            subject("embedding_grad", [X, ["int64", 3]], [X], [["rows", "dims", ["4"]]]),
            plm.ShapeError,
            r"embedding_grad: dy must be \[..., C\] and ids \[...\]",
        ),
        # memory
        (
            subject("cache_append", [X, X], [], [["position", "dims", ["0"]]]),
            plm.ArgumentError,
            "input 0 is written and must not share memory with input 1",
        ),
        (
            subject(
                "full", [], [X], [["shape", "dims", ["2"]], ["value", "float", 1e300], ["dtype", "int", 4]]
            ),
            plm.ArgumentError,
            "full: value must be a number that int64 can hold, got 1e\\+300",
        ),
    ],
)
def test_refused_by_the_shape_rule(tmp_path, s, error, message):
    s = copy.deepcopy(s)
    if s.program["instructions"][0]["op"] == "cache_append":
        s.program["instructions"][0]["in"] = [1, 1]
    with pytest.raises(error, match=message):
        run(s, tmp_path)


def test_an_input_that_is_not_given(tmp_path):
    s = subject("exp", [X], [X])
    s.program["instructions"][0]["in"] = [0]
    with pytest.raises(plm.ArgumentError, match="exp: input 0 is missing"):
        run(s, tmp_path)


def test_the_random_state_is_two_numbers_at_both_ends(tmp_path):
    s = subject("copy", [["int64", 2]], [["int64", 2]])
    s.program["inputs"] = []
    s.program["random"] = [1, 2]
    seed, offset = _core.random_state()
    assert run(s, tmp_path)[0].tolist() == [seed, offset]
    s = subject("copy", [["int64", 2], ["int8"]], [["int64", 2]])
    s.program["inputs"], s.program["random"] = s.program["inputs"][1:], [1, 2]
    s.program["instructions"][0]["in"] = [1]
    with pytest.raises(plm.FormatError, match=r"random: the random state must be int64\[2\], got int8"):
        run(s, tmp_path)


def test_empty_tensors_of_enormous_sizes(tmp_path):
    x = {"x1": plm.ops.full([2**40, 2**40, 0], 0.0)}
    huge = ["float32", *x["x1"].shape]
    assert run(subject("exp", [huge], [huge], arrays=x), tmp_path)[0].shape == x["x1"].shape
    s = subject("sum", [huge], [["float32"]], [["axes", "int", 7], ["keepdims", "int", 0]], x)
    with pytest.raises(plm.ShapeError, match="sum: the sizes of .* are too large"):
        run(s, tmp_path)


def test_a_mask_of_other_bytes_than_0_and_1(tmp_path):
    s = subject("where", [["bool", 3], ["float32", 3], ["float32", 3]], [["float32", 3]])
    add_constant(s, 1, ["bool", "3"], np.array([0, 2, 255], np.uint8))
    del s.program["inputs"][0]
    s.arrays = {"x2": Tensor(np.full(3, 5, np.float32))}
    assert run(s, tmp_path)[0].tolist() == [1, 5, 5]
