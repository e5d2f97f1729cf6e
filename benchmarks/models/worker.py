"""One contestant in its own process.

Answers ("load", case, folder), ("outputs",), ("time", seconds), ("memory",), ("first", case, folder).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from models.cases import CASES, SIZES, Forward, Train

STEPS = 3  # training steps whose losses are compared
LEARNING_RATE = 5e-5
# Before a forward case is timed: weights are laid out and packed in the first calls.
WARM_CALLS, WARM_SECONDS = (
    10,
    6.0,
)


class Plmcore:
    def __init__(self, threads: int):
        import plmcore

        plmcore.set_num_threads(threads)
        self.plm = plmcore

    def forward(self, case: Forward, folder: Path):
        lm = self.plm.load(folder / "transformers")
        inputs = {
            name: self.plm.Tensor(a)
            for name, a in case.inputs().items()
            if name == "input_ids" or case.padded > 1
        }

        def run():
            with self.plm.no_grad():
                return lm.model(**inputs).last_hidden_state

        return run, lambda: run().numpy()

    def train(self, case: Train, folder: Path):
        lm = self.plm.load(folder / "transformers", **case.changes())
        inputs = {name: self.plm.Tensor(a) for name, a in case.inputs().items()}
        optimizer = self.plm.optim.AdamW(lm.parameters(), lr=LEARNING_RATE, weight_decay=0.01)

        def evaluate():
            with self.plm.no_grad():
                out = lm.eval().model(**inputs)
                return float(out.loss.numpy()), out.logits.numpy()

        def step():
            lm.train()
            optimizer.zero_grad()
            out = lm.model(**inputs)
            out.loss.backward()
            optimizer.step()
            return float(out.loss.numpy())

        return step, evaluate

    def first(self, case, folder: Path):
        inputs = case.inputs()
        from plmcore import load  # the imports are not timed

        start = time.perf_counter()
        lm = load(folder / "transformers")
        with self.plm.no_grad():
            out = lm(**inputs)
        return first_field(out).numpy(), time.perf_counter() - start


class Transformers:
    """Eager PyTorch with its fused attention.

    AdamW is the fused one, the faster of torch's, unless the environment says otherwise.
    """

    def __init__(self, threads: int):
        import torch
        import transformers

        torch.set_num_threads(threads)
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self.torch, self.transformers = torch, transformers

    def model(self, case, folder: Path, **changes):
        kind = getattr(self.transformers, SIZES[case.size].architecture)
        try:
            return kind.from_pretrained(folder / "transformers", attn_implementation="sdpa", **changes)
        except ValueError:  # not every family has sdpa
            return kind.from_pretrained(folder / "transformers", **changes)

    def tensors(self, inputs: dict) -> dict:
        return {name: self.torch.from_numpy(a) for name, a in inputs.items()}

    def forward(self, case: Forward, folder: Path):
        model = self.model(case, folder).eval()
        inputs = self.tensors(case.inputs())
        if case.padded == 1:
            del inputs["attention_mask"]

        def run():
            with self.torch.inference_mode():
                return model(**inputs).last_hidden_state

        return run, lambda: run().numpy()

    def train(self, case: Train, folder: Path):
        torch, model = self.torch, self.model(case, folder, **case.changes())
        inputs = self.tensors(case.inputs())
        fused = os.environ.get("BENCHMARK_TORCH_ADAMW", "fused") == "fused"
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=LEARNING_RATE, weight_decay=0.01, fused=fused or None
        )

        def evaluate():
            with torch.no_grad():
                out = model.eval()(**inputs)
                return out.loss.item(), out.logits.numpy()

        def step():
            model.train()
            optimizer.zero_grad()
            out = model(**inputs)
            out.loss.backward()
            optimizer.step()
            return out.loss.item()

        return step, evaluate

    def first(self, case, folder: Path):
        inputs = case.inputs()
        getattr(self.transformers, SIZES[case.size].architecture)  # the imports are not timed
        start = time.perf_counter()
        model = self.model(case, folder).eval()
        with self.torch.inference_mode():
            out = model(**self.tensors(inputs))
        return first_field(out).numpy(), time.perf_counter() - start


class OnnxRuntime:
    def __init__(self, threads: int):
        import onnxruntime

        self.ort, self.threads = onnxruntime, threads

    def forward(self, case: Forward, folder: Path):
        options = self.ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.graph_optimization_level = self.ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        name = "masked" if case.padded > 1 else "plain"
        path = folder / "onnxruntime" / f"{name}.onnx"
        session = self.ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        inputs = {i.name: case.inputs()[i.name] for i in session.get_inputs()}
        run = lambda: session.run(["last_hidden_state"], inputs)[0]
        return run, run


class CTranslate2:
    def __init__(self, threads: int):
        import ctranslate2

        self.ct2, self.threads = ctranslate2, threads

    def forward(self, case: Forward, folder: Path):
        path = str(folder / "ctranslate2" / "model")
        encoder = self.ct2.Encoder(
            path, device="cpu", compute_type="float32", inter_threads=1, intra_threads=self.threads
        )
        arrays = [case.inputs()["input_ids"].astype(np.int32), np.asarray(case.lengths, np.int32)]
        views = [self.ct2.StorageView.from_array(a) for a in arrays]

        def run(keep=arrays):  # the views borrow the arrays' memory
            return encoder.forward_batch(*views).last_hidden_state

        return run, lambda: np.array(run())


LIBRARIES = {
    "plmcore": Plmcore,
    "transformers": Transformers,
    "onnxruntime": OnnxRuntime,
    "ctranslate2": CTranslate2,
}


def first_field(out):
    return out.logits if getattr(out, "logits", None) is not None else out.last_hidden_state


def peak_memory() -> int:
    """Bytes this process has had resident at most.

    The resource module would count what its parent had at the fork.
    """
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


class Worker:
    def __init__(self, library: str, threads: int):
        self.side = LIBRARIES[library](threads)

    def load(self, name: str, folder: Path) -> None:
        self.case, self.last = CASES[name], 0.0
        make = self.side.forward if isinstance(self.case, Forward) else self.side.train
        self.run, self.check = make(self.case, folder)

    def outputs(self) -> list[np.ndarray]:
        """Forward: the hidden states of tokens that are no padding.

        Training: logits and loss in eval mode; without dropout also the losses of the first steps and the one
        after them.
        """
        if isinstance(self.case, Forward):
            real = self.case.inputs()["attention_mask"] > 0
            start = time.perf_counter()
            output = self.check()
            self.last = time.perf_counter() - start
            for _ in range(WARM_CALLS):
                if time.perf_counter() - start < WARM_SECONDS:
                    self.run()
            return [contest.sample(output[real])]
        loss, logits = self.check()
        values = [contest.sample(logits), np.array([loss])]
        if self.case.dropout:
            if abs(self.run() - loss) < 1e-5 * abs(loss):
                raise ValueError(
                    f"dropout {self.case.dropout} changes nothing: the loss is {loss} with and without it"
                )
            return values
        steps = [self.run() for _ in range(STEPS)]
        if not steps[-1] < steps[0] * (1 - 1e-3):
            raise ValueError(f"the steps do not train: losses {steps}")
        return [*values, np.array([*steps, self.check()[0]])]

    def time(self, seconds: float) -> float:
        """Per call. One call that does not count comes first, unless calls are long and there was one."""
        warm = isinstance(self.case, Forward) and self.last < seconds
        self.last = contest.measure(self.run, seconds, warm)
        return self.last

    def unload(self) -> None:
        self.case = self.run = self.check = None

    def first(self, name: str, folder: Path) -> tuple[list[np.ndarray], float]:
        output, seconds = self.side.first(CASES[name], folder)
        return [contest.sample(output)], seconds

    def memory(self) -> int:
        return peak_memory()


if __name__ == "__main__":
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    commands = ("load", "outputs", "time", "memory", "first", "unload")
    contest.serve({name: getattr(worker, name) for name in commands})
