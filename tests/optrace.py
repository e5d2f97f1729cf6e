"""The trace checks of an op's declaration (optest.py): a program traced with symbolic sizes equals eager, bit
for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from plmcore import Tensor, _core

SEED = 7  # of the generator before every call of a random op


class Traced:
    """What OpSpec can do with its cases as programs."""

    def check_trace(self, dtype: str, with_grad: bool) -> None:
        groups: dict[str, list[int]] = {}
        for k in range(len(self.cases)):
            key = self.program_key(self.case(k))
            if key is not None:
                groups.setdefault(key, []).append(k)
        several = [
            g
            for g in groups.values()
            if len(
                {str({n: a.shape for n, a in self.case(k).arrays.items()} | self.case(k).attrs) for k in g}
            )
            > 1
        ]
        assert several or not self.dims, (
            f"{self.name}: `dims` {self.dims} must fit at least two cases of different sizes that "
            f"agree in everything else"
        )
        for group in groups.values():
            if with_grad and not self.grad_names(self.case(group[0])):
                continue
            program, reached = self.traced(self.case(group[0]), dtype, with_grad)
            for k in group:
                case = self.case(k)
                inputs = {name: Tensor(a, device=self.device) for name, a in case.rounded(dtype).items()}
                if with_grad:
                    expected = [
                        g for name, g in self.gradients(case, inputs, None).items() if name in reached
                    ]
                else:
                    expected = [y.numpy() for y in self.run(case, inputs)]
                _core.manual_seed(SEED)
                actual = [y.numpy() for y in program.run(list(inputs.values()))]
                for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
                    assert a.shape == b.shape, (
                        f"{self.name} case {k}: traced output {i} is {a.shape}, eager {b.shape}"
                    )
                    assert a.tobytes() == b.tobytes(), (
                        f"{self.name} case {k}: traced output {i} differs from eager by "
                        f"{np.abs(a.astype(float) - b).max()}"
                    )

    def pattern(self, name: str) -> list[str] | None:
        """The symbolic sizes of an argument, as words."""
        base, _, index = (self.dims or {}).get(name), *name.partition("[")[1:]
        if base is None and index:
            base = (self.dims or {}).get(name.partition("[")[0])
            if isinstance(base, (list, tuple)):
                base = base[int(index[:-1])] if int(index[:-1]) < len(base) else None
        return None if base is None else base.split()

    def program_key(self, case) -> str | None:
        """Cases with the same key run the same program; None where the symbolic sizes do not fit the case."""
        symbols: dict[str, int] = {}
        sized: list[tuple[list[str], list[int]]] = []
        fixed: dict[str, Any] = {}
        for name, a in case.arrays.items():
            words = self.pattern(name)
            fixed[name] = (len(a.shape), a.dtype.name) if words is not None else (a.shape, a.dtype.name)
            if words is not None:
                sized.append((words, list(a.shape)))
        for name, value in case.attrs.items():
            words = self.pattern(name)
            if words is None:
                fixed[name] = value
            else:
                sized.append((words, [value] if isinstance(value, int) else list(value)))
        for words, sizes in sized:
            if len(words) != len(sizes):
                return None
            for word, size in zip(words, sizes):
                if word.isidentifier():
                    symbols.setdefault(word, size)
        if any(eval(word, {}, symbols) != size for words, sizes in sized for word, size in zip(words, sizes)):
            return None
        return str(fixed)

    def traced(self, case, dtype: str, with_grad: bool) -> tuple[_core.Program, list[str]]:
        """The program of a case, and the inputs whose gradients are its outputs."""

        def sizes(words: list[str]) -> list:
            return [int(w) if w.isdigit() else _core.Dim(w) for w in words]

        tracer = _core.Tracer()
        try:
            inputs = {}
            for name, a in case.rounded(dtype).items():
                words = self.pattern(name)
                shape = list(a.shape) if words is None else sizes(words)
                inputs[name] = tracer.input(name, shape, a.dtype.name, self.device)
            attrs = dict(case.attrs)
            for name, value in case.attrs.items():
                words = self.pattern(name)
                if words is not None:
                    attrs[name] = sizes(words)[0] if isinstance(value, int) else sizes(words)
            names = self.grad_names(case) if with_grad else []
            for name in names:
                inputs[name].requires_grad = True
            outputs = self.picked(case.call(self.op, inputs, attrs))
            if with_grad:
                used = [y for y in outputs if y.requires_grad]
                found = _core.grad(used, [inputs[n] for n in names], [y.detach() for y in used])
                names = [n for n, g in zip(names, found) if g is not None]
                outputs = [g for g in found if g is not None]
            return tracer.finish([], list(outputs)), names
        finally:
            del tracer  # a failed trace must not stay the running one
