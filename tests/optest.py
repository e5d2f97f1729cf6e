"""One declaration per op, every check from it: OpSpec.

    cases = [dict(a=(2, 3), b=(3,)), ...]
    spec = OpSpec(op=ops.add, ref=lambda a, b: a + b, cases=cases, dims={"a": "B 3", "b": "3"}, ...)
    test_all = spec.tests()

In a case a tuple is a tensor of that shape with random values, an ndarray is taken as it is (float arrays in
the dtype under test), a list of tuples or ndarrays is a list of tensors, and anything else is passed through.
The checks, each a test of its own:

    value        against the NumPy reference in float64, for each dtype; the reference sees the rounded inputs
    gradient     for each dtype against the reference's gradient; on the CPU also against central differences
                 in float64
    trace        one program with symbolic sizes, run at the sizes of several cases, equals eager bit for bit:
                 forward, and forward with gradients
    misaligned   value and gradient of inputs that start at an odd element
    threads      1, 2 and 3 threads give the same bits, forward and backward
    error        the message and the type; the op works afterwards

opbound.py says how far a value or a gradient may be off.

PLM_TEST_DEVICE=cuda runs the value and gradient checks on that device and skips what it has no kernel for.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from naive import evaluate, is_float
from opbound import GRADIENTS, ULPS, VALUES, Expected, assert_close, expect, numpy_dtype, rounded, unit
from optrace import SEED, Traced
from plmcore import Tensor, _core

DEVICE = os.environ.get("PLM_TEST_DEVICE", "cpu")
FLOATS = ("float64", "float32", "bfloat16", "float16")
TYPED_ERRORS = (
    _core.ShapeError,
    _core.ArgumentError,
    _core.IndexRangeError,
    _core.DTypeError,
    _core.DeviceError,
    _core.GraphError,
    _core.TraceError,
    _core.FormatError,
    _core.OutOfMemoryError,
)
DIFFERENCE_TOLERANCE = 1e-6  # of the largest gradient, and what a difference of rounded outputs cannot tell
STEP = 1e-5  # of the central difference
COORDINATES = int(os.environ.get("PLM_TEST_COORDINATES", "24"))  # of an input that are moved one by one
DIRECTION = 512  # of an input that are moved together

# Every spec with a `bench` case leaves an entry here; see all_specs().
BENCHMARKS: list[Benchmark] = []


def is_tensor(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (
        isinstance(value, tuple) and all(isinstance(n, int) for n in value)
    )


def as_tuple(result: Any) -> tuple:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


class Case:
    """The arguments of one call. A list of arrays `xs` is kept as xs[0], xs[1], ..."""

    def __init__(self, values: dict[str, Any], sample: dict[str, Callable], seed: str):
        rng = np.random.default_rng(zlib.crc32(seed.encode()))
        self.arrays: dict[str, np.ndarray] = {}
        self.lists: dict[str, list[str]] = {}
        self.attrs: dict[str, Any] = {}

        def draw(name: str, value: Any) -> np.ndarray:
            if isinstance(value, np.ndarray):
                return value
            return np.asarray(sample[name](rng, value) if name in sample else rng.standard_normal(value))

        for name, value in values.items():
            if is_tensor(value):
                self.arrays[name] = draw(name, value)
            elif isinstance(value, list) and value and all(is_tensor(v) for v in value):
                self.lists[name] = [f"{name}[{i}]" for i in range(len(value))]
                self.arrays |= {key: draw(name, v) for key, v in zip(self.lists[name], value)}
            else:
                self.attrs[name] = value

    def floats(self) -> list[str]:
        return [name for name, a in self.arrays.items() if is_float(a)]

    def rounded(self, dtype: str) -> dict[str, np.ndarray]:
        """The arrays with floats in `dtype`."""
        return rounded(self.arrays, dtype)

    def call(self, function: Callable, inputs: dict[str, Any], attrs: dict[str, Any] | None = None) -> tuple:
        inputs = dict(inputs)
        for name, members in self.lists.items():
            inputs[name] = [inputs.pop(m) for m in members]
        return as_tuple(function(**inputs, **(self.attrs if attrs is None else attrs)))


@dataclass
class Benchmark:
    """The op at a realistic size, and the same in torch where there is a twin."""

    name: str
    spec: OpSpec
    values: dict[str, Any]

    @property
    def torch(self) -> Callable | None:
        return self.spec.torch

    def case(self) -> Case:
        return Case(self.values, self.spec.sample, self.name)


@dataclass(eq=False)
class OpSpec(Traced):
    op: Callable
    ref: Callable
    cases: Sequence[dict[str, Any]]
    dims: dict[str, Any] | None = None
    errors: Sequence[tuple] = ()
    covers: Sequence[str] | None = None
    grad: Sequence[str] | None = None
    sample: dict[str, Callable] = field(default_factory=dict)
    outputs: Sequence[int] | None = None
    dtypes: Sequence[str] = FLOATS
    trace: bool = True
    bench: dict[str, Any] | Sequence[dict[str, Any]] | None = None
    torch: Callable | None = None
    # Exceptions to the rule of opbound.py. A declaration that makes one says why beside it.
    by_size: bool = True  # else all values of a tensor share a bound
    sums_in_order: bool = False  # the naive formula adds one value after the other, not by halves
    computes_in: dict[str, str] = field(default_factory=dict)  # another dtype than the output's
    off: float = 0.0  # what a kernel's approximation may be off, absolutely
    grad_ulps: float = ULPS  # units in the last place of each gradient
    grad_cancels: float = 0.0  # units in the last place of the case's largest gradient

    def __post_init__(self):
        if self.covers is None:
            name = self.op.__name__
            self.covers = [n for n in (name, name + "_grad") if n in _core.op_names()]
        self.name = self.covers[0]
        entries = [self.bench] if isinstance(self.bench, dict) else list(self.bench or [])
        self.benchmarks = [
            Benchmark(self.name if k == 0 else f"{self.name}.{k}", self, b) for k, b in enumerate(entries)
        ]
        BENCHMARKS.extend(self.benchmarks)

    # ---- what pytest sees ----

    def checks(self) -> list[tuple[str, Callable[[], None]]]:
        work = "float32" if "float32" in self.dtypes else self.dtypes[0]
        found = []
        for k in range(len(self.cases)):
            dtypes = self.dtypes if self.case(k).floats() else self.dtypes[:1]
            found += [(f"value-{k}-{t}", functools.partial(self.check_value, k, t)) for t in dtypes]
            if self.grad_names(self.case(k)):
                if DEVICE == "cpu":  # differences have checked the reference's gradient there
                    found.append((f"gradient-{k}", functools.partial(self.check_gradient, k)))
                found += [
                    (f"gradient-{k}-{t}", functools.partial(self.check_gradient_in, k, t)) for t in dtypes
                ]
        if DEVICE == "cpu":
            if self.trace:
                found += [
                    ("trace", functools.partial(self.check_trace, work, False)),
                    ("trace-gradient", functools.partial(self.check_trace, work, True)),
                ]
            found += [
                (f"misaligned-{k}", functools.partial(self.check_misaligned, k, work))
                for k in range(len(self.cases))
            ]
            found += [
                (f"threads-{k}", functools.partial(self.check_threads, self.case(k), work))
                for k in range(len(self.cases))
            ]
            found += [
                (f"threads-{b.name}", functools.partial(self.check_benchmark_threads, b, work))
                for b in self.benchmarks
            ]
            found += [
                (f"error-{k}", functools.partial(self.check_error, *error))
                for k, error in enumerate(self.errors)
            ]
        return found

    def tests(self) -> Callable:
        import pytest

        missing = [op for op in self.covers if not _core.has_kernel(op, DEVICE)] if DEVICE != "cpu" else []

        @pytest.mark.parametrize("check", [pytest.param(f, id=name) for name, f in self.checks()])
        def test(check):
            if missing:
                pytest.skip(f"{missing[0]} has no kernel on {DEVICE} yet")
            try:
                check()
            except _core.DeviceError as e:
                if "not on this device yet" not in str(e):
                    raise
                pytest.skip(str(e))

        return test

    # ---- the pieces ----

    @property
    def device(self) -> str:
        return DEVICE

    @functools.cache
    def case(self, k: int) -> Case:
        return Case(self.cases[k], self.sample, f"{self.name} {k}")

    def grad_names(self, case: Case) -> list[str]:
        if not any(_core.is_differentiable(op) for op in self.covers):
            return []
        floats = case.floats()
        if self.grad is None:
            return floats
        return [n for n in floats if n in self.grad or n.partition("[")[0] in self.grad]

    def picked(self, results: tuple) -> tuple:
        return (
            results
            if self.outputs is None or len(results) == len(self.outputs)
            else tuple(results[i] for i in self.outputs)
        )

    def run(self, case: Case, inputs: dict[str, Any]) -> tuple:
        _core.manual_seed(SEED)
        return self.picked(case.call(self.op, inputs))

    def forward(self, case: Case, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
        before = _core.set_grad_enabled(False)
        try:
            return [y.numpy() for y in self.run(case, tensors(arrays))]
        finally:
            _core.set_grad_enabled(before)

    def gradients(
        self, case: Case, inputs: dict[str, Tensor], weights: list[np.ndarray] | None
    ) -> dict[str, np.ndarray]:
        """Of the sum of weights * outputs; without weights, of half the sum of squares.

        What is not reached gets zeros.
        """
        names = self.grad_names(case)
        for name in names:
            inputs[name].requires_grad = True
        outputs = self.run(case, inputs)
        used = [k for k, y in enumerate(outputs) if y.requires_grad]
        assert used, f"{self.name}: no output is connected to {names}"
        seeds = [
            outputs[k].detach()
            if weights is None
            else Tensor(weights[k], dtype=outputs[k].dtype, device=DEVICE)
            for k in used
        ]
        found = _core.grad([outputs[k] for k in used], [inputs[n] for n in names], seeds)
        result = {}
        for name, g in zip(names, found):
            x = inputs[name]
            if g is None:
                result[name] = np.zeros(x.shape, numpy_dtype(x.dtype))
            elif g.is_row_sparse:
                result[name] = np.zeros(x.shape, g.values.numpy().dtype)
                result[name][g.rows.numpy()] = g.values.numpy()
            else:
                result[name] = g.numpy().copy()
            assert result[name].shape == tuple(x.shape), (
                f"the gradient of {name} is {result[name].shape}, {name} is {x.shape}"
            )
            assert g is None or g.dtype == x.dtype, (
                f"the gradient of {name} is {g.dtype}, {name} is {x.dtype}"
            )
        return result

    def weights(self, outputs: list[np.ndarray]) -> list[np.ndarray]:
        rng = np.random.default_rng(5)
        return [rng.standard_normal(y.shape) for y in outputs]

    # ---- the checks ----

    def check_value(self, k: int, dtype: str, place: Callable[[np.ndarray], Tensor] | None = None) -> None:
        actual = self.run(self.case(k), tensors(self.case(k).rounded(dtype), place))
        for i, y in enumerate(actual):
            expected = self.expected(k, dtype, y.dtype if y.dtype in FLOATS else dtype)
            assert len(actual) == len(expected), f"{len(actual)} outputs, the reference has {len(expected)}"
            what = f"{self.name} case {k} {dtype} output {i}"
            assert_close(y.numpy(), expected[i], VALUES, what, off=self.off)

    @functools.lru_cache(maxsize=2)
    def expected(self, k: int, dtype: str, out: str) -> list[Expected]:
        """Outputs of dtype `out` from inputs of another one."""
        out = self.computes_in.get(out, out)
        return expect(functools.partial(self.reference, k), self.case(k).rounded(dtype), out, self.by_size)

    @functools.lru_cache(maxsize=2)
    def expected_gradients(self, k: int, dtype: str) -> tuple[list[np.ndarray], dict[str, Expected]]:
        """The weights of the outputs, and the gradients of the weighted sum."""
        arrays, names = self.case(k).rounded(dtype), self.grad_names(self.case(k))
        weights = self.weights(self.reference(k, arrays, "float64"))
        weights = [w.astype(numpy_dtype(dtype)).astype(np.float64) for w in weights]
        compute = functools.partial(self.reference, k, wanted=names, weights=weights)
        return weights, dict(zip(names, expect(compute, arrays, dtype, self.by_size)))

    def reference(
        self, k: int, arrays: dict[str, np.ndarray], grid: str, **gradient: Any
    ) -> list[np.ndarray]:
        call = lambda x: self.picked(self.case(k).call(self.ref, x))
        return evaluate(call, arrays, grid, sums_in_order=self.sums_in_order, **gradient)

    def check_gradient(self, k: int) -> None:
        case = self.case(k)
        arrays = case.rounded("float64")
        outputs = self.forward(case, arrays)
        weights = self.weights(outputs)
        sizes = [np.linalg.norm(np.nan_to_num(w * y, posinf=0, neginf=0)) for w, y in zip(weights, outputs)]
        noise = 4 * np.finfo(float).eps * sum(sizes) / STEP

        def change(name: str, step: np.ndarray) -> float:
            ends = []
            for sign in (1, -1):
                outputs = self.forward(case, arrays | {name: arrays[name] + sign * step})
                ends.append([y.astype(np.float64) for y in outputs])
            # The difference before the sum: it keeps the digits that the sum would drown. Equal infinities
            # are no change.
            return sum(
                float((w * np.subtract(a, b, where=a != b, out=np.zeros(a.shape))).sum())
                for w, a, b in zip(weights, *ends)
            )

        analytic = self.gradients(case, tensors(arrays), weights)
        rng = np.random.default_rng(3)
        for name, g in analytic.items():
            if not g.size:
                continue
            allowed = DIFFERENCE_TOLERANCE * float(np.abs(g).max()) + noise
            spots = (
                np.arange(g.size) if g.size <= COORDINATES else rng.choice(g.size, COORDINATES, replace=False)
            )
            for spot in spots:
                step = np.zeros(g.size)
                step[spot] = STEP
                numeric = change(name, step.reshape(g.shape)) / (2 * STEP)
                error = abs(numeric - g.reshape(-1)[spot])
                assert error <= allowed, (
                    f"{self.name} case {k}: d/d{name}[{spot}] is {g.reshape(-1)[spot]}, by differences "
                    f"{numeric}"
                )
            # Not too many at once: one that steps over a kink (relu, max) would spoil the quotient.
            direction = np.zeros(g.size)
            direction[rng.permutation(g.size)[:DIRECTION]] = 1
            direction = rng.choice([-1.0, 1.0], g.shape) * direction.reshape(g.shape)
            numeric, expected = change(name, STEP * direction) / (2 * STEP), float((g * direction).sum())
            error = abs(numeric - expected)
            assert error <= DIFFERENCE_TOLERANCE * float(np.linalg.norm(g)) + noise, (
                f"{self.name} case {k}: along a direction of {name} the slope is {expected}, by "
                f"differences {numeric}"
            )

    def check_gradient_in(
        self, k: int, dtype: str, place: Callable[[np.ndarray], Tensor] | None = None
    ) -> None:
        weights, expected = self.expected_gradients(k, dtype)
        actual = self.gradients(self.case(k), tensors(self.case(k).rounded(dtype), place), weights)
        largest = max(float(np.abs(e.exact).max(initial=0)) for e in expected.values())
        off = self.grad_cancels * float(unit(np.array(largest), dtype))
        for name, g in actual.items():
            what = f"{self.name} case {k} {dtype}: gradient of {name}"
            assert_close(g, expected[name], GRADIENTS, what, self.grad_ulps, off)

    def check_misaligned(self, k: int, dtype: str) -> None:
        self.check_value(k, dtype, misaligned)
        if self.grad_names(self.case(k)):
            self.check_gradient_in(k, dtype, misaligned)

    def check_benchmark_threads(self, benchmark: Benchmark, dtype: str) -> None:
        case = benchmark.case()
        if sum(a.size for a in case.arrays.values()) <= 1 << 23:  # the larger ones belong to the benchmark
            self.check_threads(case, dtype)

    def check_threads(self, case: Case, dtype: str) -> None:
        before, first = _core.num_threads(), None
        try:
            for n in (1, 2, 3):
                _core.set_num_threads(n)
                inputs = tensors(case.rounded(dtype))
                found = [y.numpy() for y in self.run(case, inputs)]
                if self.grad_names(case):
                    found += self.gradients(case, inputs, None).values()
                if first is None:
                    first = found
                for a, b in zip(first, found):
                    assert a.tobytes() == b.tobytes(), f"{self.name}: {n} threads give other bits than 1"
        finally:
            _core.set_num_threads(before)

    def check_error(
        self, values: dict[str, Any], message: str, kind: type[BaseException] | None = None
    ) -> None:
        case = Case(values, self.sample, f"{self.name} error")
        inputs = {
            n: Tensor(a, dtype="float32" if isinstance(values.get(n), tuple) else None, device=DEVICE)
            for n, a in case.arrays.items()
        }
        try:
            for y in self.run(case, inputs):
                y.numpy()  # on some devices errors in data come with the next wait
        except Exception as e:  # noqa: BLE001  its type is what is tested
            assert isinstance(e, kind or TYPED_ERRORS), (
                f"{self.name}: {type(e).__name__} is not a typed error: {e}"
            )
            assert re.search(message, str(e)), (
                f"{self.name}: the message {str(e)!r} does not match {message!r}"
            )
        else:
            raise AssertionError(f"{self.name}: no error for {values}; expected {message!r}")
        self.run(self.case(0), tensors(self.case(0).rounded(self.dtypes[0])))


def tensors(
    arrays: dict[str, np.ndarray], place: Callable[[np.ndarray], Tensor] | None = None
) -> dict[str, Tensor]:
    place = place or functools.partial(Tensor, device=DEVICE)
    return {name: place(a) for name, a in arrays.items()}


def misaligned(array: np.ndarray) -> Tensor:
    """The same values in memory that starts one element after a 64-byte boundary."""
    buffer = np.empty(array.size + 64 // array.itemsize + 1, array.dtype)
    start = -(buffer.ctypes.data // array.itemsize) % (64 // array.itemsize) + 1
    view = buffer[start : start + array.size].reshape(array.shape)
    view[...] = array
    return _core.from_numpy(view)


@functools.cache
def all_specs() -> tuple[OpSpec, ...]:
    """The specs of tests/ops, in order of their files."""
    found = []
    for path in sorted((pathlib.Path(__file__).parent / "ops").glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"specs_of_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += [v for v in vars(module).values() if isinstance(v, OpSpec)]
        for v in vars(module).values():
            if isinstance(v, (list, tuple)):
                found += [s for s in v if isinstance(s, OpSpec)]
    return tuple(found)
