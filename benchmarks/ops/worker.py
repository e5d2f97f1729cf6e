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

    def tensor(self, name: str, array: np.ndarray, train: bool):
        return self.lib.Tensor(array, requires_grad=train)

    def no_grad(self):
        return self.lib.no_grad()


class Torch:
    def __init__(self, threads: int):
        import torch

        torch.set_num_threads(threads)
        self.lib = torch

    def tensor(self, name: str, array: np.ndarray, train: bool):
        t = self.lib.from_numpy(array.copy())
        if name in ("q", "k", "v"):  # scaled_dot_product_attention takes [B, H, T, D]
            t = t.transpose(1, 2).contiguous()
        return t.requires_grad_(train)

    def no_grad(self):
        return self.lib.no_grad()


def to_numpy(name: str, t) -> np.ndarray:
    if str(t.dtype) == "torch.bfloat16":
        t = t.float()
    a = t.detach().numpy()
    return a.transpose(0, 2, 1, 3) if name in ("q", "k", "v", "attention") and "torch" in type(t).__module__ else a


def prepare(side, case, function):
    inputs = {n: side.tensor(n, a, n in case.train) for n, a in case.arrays(np.random.default_rng(7)).items()}
    if case.iterate:
        return function(side.lib, **inputs), None
    if not case.train:

        def forward():
            with side.no_grad():
                return function(side.lib, **inputs)

        return forward, lambda: [forward()]

    first = function(side.lib, **inputs)
    seed_array = np.random.default_rng(11).standard_normal(tuple(first.shape), dtype=np.float32)
    name = "q" if case.name.startswith("attention") else ""
    if name and isinstance(side, Torch):
        seed_array = np.random.default_rng(11).standard_normal(tuple(first.transpose(1, 2).shape), dtype=np.float32)
    seed = side.tensor(name, seed_array, False)
    wanted = [inputs[n] for n in case.train]

    def train():
        for t in wanted:
            t.grad = None
        function(side.lib, **inputs).backward(seed)

    def outputs():
        train()
        return [(n, inputs[n].grad) for n in case.train]

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
        attention = "attention" if self.case.name.startswith("attention") else ""
        return [contest.sample(to_numpy(*v) if isinstance(v, tuple) else to_numpy(attention, v)) for v in values]

    def time(self, seconds: float) -> float:
        return contest.measure(self.run, seconds)

    def unload(self) -> None:
        self.case = self.run = self.run_for_outputs = None


if __name__ == "__main__":
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    contest.serve({"load": worker.load, "outputs": worker.outputs, "time": worker.time, "unload": worker.unload})
