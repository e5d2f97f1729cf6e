"""One contestant in its own process. Answers ("load", small), ("forward", x), ("time", n)."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

SIZE, SMALL = dict(width=512, cells=4096, batch=32, length=20), dict(width=8, cells=16, batch=2, length=3)
KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")


class Worker:
    """A bidirectional LSTM of two layers with a projection; texts of equal lengths."""

    def __init__(self, library: str, threads: int):
        self.library = library
        module = __import__(library)
        module.set_num_threads(threads)
        # of one thread other work on the machine does not count; of several, who waits busily would lose
        self.clock = time.process_time if threads == 1 else time.perf_counter

    def load(self, small: bool) -> None:
        n = SMALL if small else SIZE
        rng = np.random.default_rng(0)
        P, H = n["width"], n["cells"]
        self.x = rng.normal(size=(n["batch"], n["length"], P)).astype(np.float32)
        values = {}
        for layer in range(2):
            for end in ("", "_reverse"):
                shapes = ((4 * H, P * (1 + layer)), (4 * H, P), (4 * H,), (4 * H,), (P, H))
                for kind, shape in zip(KINDS, shapes, strict=True):
                    drawn = rng.uniform(-1, 1, shape) / np.sqrt(H)
                    values[f"{kind}_l{layer}{end}"] = drawn.astype(np.float32)
        if self.library == "plmcore":
            import plmcore as plm

            lstm = plm.nn.LSTM(P, H, 2, bidirectional=True, projection=P).eval()
            lstm.load_state_dict({k: plm.Tensor(v) for k, v in values.items()})
            x = plm.Tensor(self.x)

            def run() -> np.ndarray:
                with plm.nn.inference():
                    return lstm(x)[0].numpy()
        else:
            import torch

            peer = torch.nn.LSTM(P, H, 2, bidirectional=True, proj_size=P, batch_first=True).eval()
            peer.load_state_dict({k: torch.from_numpy(v) for k, v in values.items()})
            given = torch.from_numpy(self.x)

            def run() -> np.ndarray:
                with torch.inference_mode():
                    return peer(given)[0].numpy()

        self.run = run

    def forward(self) -> np.ndarray:
        return self.run()

    def time(self, count: int) -> float:
        """Seconds of a forward pass."""
        start = self.clock()
        for _ in range(count):
            self.run()
        return (self.clock() - start) / count


if __name__ == "__main__":
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    contest.serve({name: getattr(worker, name) for name in ("load", "forward", "time")})
