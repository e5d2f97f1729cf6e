"""One contestant in its own process: a framework's spinning threads must not slow the other.

Reads pickled commands from standard input, answers on standard output: ("load", case), ("outputs",), ("time", seconds).
"""

import pickle
import sys
import time

import numpy as np


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
    a = t.detach().numpy()
    return a.transpose(0, 2, 1, 3) if name in ("q", "k", "v", "attention") and "torch" in type(t).__module__ else a


def sample(a: np.ndarray) -> np.ndarray:
    flat = np.ascontiguousarray(a).reshape(-1)
    return flat[:: max(1, flat.size // 100_003)].astype(np.float64)


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


def main() -> None:
    sys.path.insert(0, sys.argv[3])
    from ops.cases import CASES

    side = (Plmcore if sys.argv[1] == "plmcore" else Torch)(int(sys.argv[2]))
    answer = sys.stdout.buffer
    run = outputs = None
    case = None
    while True:
        try:
            command, *rest = pickle.load(sys.stdin.buffer)
        except EOFError:  # the other side has closed the pipe
            return
        result = None
        if command == "load":
            case = CASES[rest[0]]
            run, outputs = prepare(side, case, case.plm if sys.argv[1] == "plmcore" else case.torch)
        elif command == "outputs":
            values = outputs() if outputs else run()
            values = values if isinstance(values, list) else [values]
            attention = "attention" if case.name.startswith("attention") else ""
            result = [sample(to_numpy(*v) if isinstance(v, tuple) else to_numpy(attention, v)) for v in values]
        elif command == "time":
            result = measure(run, rest[0])
        elif command == "unload":
            run = outputs = None
        pickle.dump(result, answer)
        answer.flush()


def measure(run, seconds: float) -> float:
    """Seconds per call over at least `seconds`."""
    run()
    count, spent = 0, 0.0
    batch = 1
    while spent < seconds:
        start = time.perf_counter()
        for _ in range(batch):
            run()
        spent += time.perf_counter() - start
        count += batch
        if spent < seconds / 20:
            batch *= 4
    return spent / count


if __name__ == "__main__":
    main()
