"""One contestant in its own process: answers ("load", case), ("outputs",), ("time", seconds), ("unload",)."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from ops import declared
from ops.cases import CASES


class Plmcore:
    def __init__(self, threads: int):
        import plmcore

        plmcore.set_num_threads(threads)
        self.lib = plmcore

    def tensor(self, array: np.ndarray, train: bool, heads_first: bool = False):
        return self.lib.Tensor(array, requires_grad=train)

    def no_grad(self):
        return self.lib.no_grad()


class Torch:
    def __init__(self, threads: int):
        import torch

        torch.set_num_threads(threads)
        self.lib = torch

    def tensor(self, array: np.ndarray, train: bool, heads_first: bool = False):
        t = self.lib.from_numpy(array.copy())
        if heads_first:
            t = t.transpose(1, 2).contiguous()
        return t.requires_grad_(train)

    def no_grad(self):
        return self.lib.no_grad()


def to_numpy(t, heads_first: bool) -> np.ndarray:
    if str(t.dtype) == "torch.bfloat16":
        t = t.float()
    a = t.detach().numpy()
    return a.transpose(0, 2, 1, 3) if heads_first and "torch" in type(t).__module__ else a


def prepare(side, case, function):
    arrays = case.arrays(np.random.default_rng(7))
    inputs = {n: side.tensor(a, n in case.train, case.heads_first) for n, a in arrays.items()}
    if case.iterate:
        return function(side.lib, **inputs), None
    if not case.train:

        def forward():
            with side.no_grad():
                return function(side.lib, **inputs)

        return forward, lambda: [forward()]

    first = function(side.lib, **inputs)
    swapped = case.heads_first and isinstance(side, Torch)
    shape = tuple(first.transpose(1, 2).shape if swapped else first.shape)
    seed = side.tensor(
        np.random.default_rng(11).standard_normal(shape, dtype=np.float32), False, case.heads_first
    )
    wanted = [inputs[n] for n in case.train]

    def train():
        for t in wanted:
            t.grad = None
        function(side.lib, **inputs).backward(seed)

    def outputs():
        train()
        return [t.grad for t in wanted]

    return train, outputs


class Worker:
    def __init__(self, library: str, threads: int):
        self.library = library
        self.side = (Plmcore if library == "plmcore" else Torch)(threads)
        self.unload()

    def load(self, name: str) -> None:
        self.case = CASES.get(name) or declared.cases()[name]
        function = self.case.plm if self.library == "plmcore" else self.case.torch
        self.run, self.run_for_outputs = prepare(self.side, self.case, function)

    def outputs(self) -> list[np.ndarray]:
        values = self.run_for_outputs() if self.run_for_outputs else self.run()
        values = values if isinstance(values, list) else [values]
        return [contest.sample(to_numpy(v, self.case.heads_first)) for v in values]

    def time(self, seconds: float) -> float:
        return contest.measure(self.run, seconds)

    def unload(self) -> None:
        self.case = self.run = self.run_for_outputs = None


if __name__ == "__main__":
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    contest.serve(
        {"load": worker.load, "outputs": worker.outputs, "time": worker.time, "unload": worker.unload}
    )
