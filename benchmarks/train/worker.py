"""One contestant in its own process.

Answers ("load", case, folder, layers), ("steps", n), and of plmcore also ("save",), ("overhead", n).
"""

from __future__ import annotations

import math
import queue
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from train.cases import CASES, CLIP, DECAY, LR, Case, small

MANY = 1_000_000  # steps: the run never ends by itself


class Plmcore:
    """What `plmcore pretrain` does, in a thread of its own that is held up after every step until the next
    one is asked for.
    """

    def __init__(self, threads: int):
        import plmcore

        plmcore.set_num_threads(threads)
        self.plm = plmcore
        self.commands: queue.Queue = queue.Queue()
        self.answers: queue.Queue = queue.Queue()

    def load(self, case: Case, folder: Path, layers: int) -> float:
        changes = [
            *case.settings,
            f"data.length={case.length}",
            f"data.batch={case.batch}",
            "data.accumulate=1",
            "data.held_out=0",
            "optim.kind=adamw",
            f"optim.lr={LR}",
            f"optim.weight_decay={DECAY}",
            f"optim.clip_norm={CLIP}",
            "schedule.kind=constant",
            "schedule.warmup=0",
            "schedule.floor=none",
            f"model.vocab_size={case.vocab}",
            "data.vocab=2000",
        ]
        changes += [f"model.{case.layers}={layers}"] if layers else []

        def body() -> None:
            try:
                self.plm.pretrain(
                    case.family,
                    text=[folder / "text.txt"],
                    size="base",
                    out=folder / f"run-{case.family}",
                    steps=MANY,
                    save_every=MANY,
                    changes=changes,
                    quiet=True,
                    callbacks=[self.gate],
                )
            except BaseException as e:
                self.answers.put(e)

        threading.Thread(target=body, daemon=True).start()
        return self.answer()

    def gate(self, trainer, metrics) -> None:
        """After every step, in the thread of the run."""
        self.trainer = trainer
        self.answers.put(metrics["loss"])
        while (command := self.commands.get()) != "step":
            start = time.perf_counter()
            trainer.save()
            blocked = time.perf_counter() - start
            if command == "save and wait":
                trainer.directory.finish()
            self.answers.put((blocked, time.perf_counter() - start))

    def answer(self):
        found = self.answers.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def steps(self, n: int) -> tuple[int, float, float]:
        """Tokens, seconds, and the loss of the last step."""
        tokens, start = self.trainer.tokens, time.perf_counter()
        for _ in range(n):
            self.commands.put("step")
        losses = [self.answer() for _ in range(n)]
        return self.trainer.tokens - tokens, time.perf_counter() - start, losses[-1]

    def save(self) -> tuple[float, float, float]:
        """How long the first checkpoint and a later one stop the training, and how long writing one takes in
        all.
        """
        self.commands.put("save and go on")
        first, _ = self.answer()
        self.steps(1)
        self.trainer.directory.finish()
        self.steps(1)
        self.commands.put("save and wait")
        return first, *self.answer()

    def overhead(self, n: int) -> float:
        """Seconds of a step without its model and optimiser: the loop, and making the batches, with nothing
        beside which that could be hidden.
        """
        from plmcore import _core
        from plmcore.train import batching

        class Nothing:
            lr = 1.0

            def zero_grad(self) -> None: ...
            def norm(self):
                return zero

            def step(self, *args) -> None: ...
            def shares(self, parts):
                return [(1.0, 1.0) for _ in parts]

            def __call__(self, part, share):
                return zero, None

        zero = _core.Tensor(np.zeros((), np.float32))
        real = self.trainer
        loop = type(real)(
            real.model,
            batching.Ahead(real.batches.batches),
            Nothing(),
            steps=MANY,
            schedule=real.schedule,
            seed=1,
            loss=Nothing(),
            log_every=real.log_every,
            directory=real.directory,
        )
        loop.advance()
        start = time.perf_counter()
        for _ in range(n):
            loop.advance()
        seconds = (time.perf_counter() - start) / n
        loop.batches.close()
        return seconds


class Transformers:
    """A plain loop: rows of ids from the same corpus, masks drawn by torch, the model in training mode, AdamW
    (the fused one), clipping.
    """

    def __init__(self, threads: int):
        import torch
        import transformers

        torch.set_num_threads(threads)
        transformers.utils.logging.set_verbosity_error()
        self.torch, self.transformers = torch, transformers

    def load(self, case: Case, folder: Path, layers: int) -> float:
        torch = self.torch
        torch.manual_seed(0)
        kind = getattr(self.transformers, case.architecture)
        changes = {case.layers: layers} if layers else {}
        self.case = case
        self.model = kind(kind.config_class(vocab_size=case.vocab, **changes)).train()
        ids = np.load(folder / f"{case.family}.npy")
        rows = torch.from_numpy(
            ids[: len(ids) // case.length * case.length].reshape(-1, case.length).astype(np.int64)
        )
        data = torch.utils.data.DataLoader(rows, batch_size=case.batch, shuffle=True, drop_last=True)
        self.batches = self.forever(data)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=LR, weight_decay=DECAY, fused=True)
        return self.step()[1]

    @staticmethod
    def forever(data):
        while True:
            yield from data

    def masked(self, ids):
        """80 % mask, 10 % any token, 10 % as it was, of 15 %."""
        torch = self.torch
        chosen = torch.rand(ids.shape) < 0.15
        labels = ids.masked_fill(~chosen, -100)
        kind = torch.rand(ids.shape)
        inputs = ids.masked_fill(chosen & (kind < 0.8), 4)
        random = chosen & (kind >= 0.9)
        return torch.where(random, torch.randint(self.case.vocab, ids.shape), inputs), labels

    def step(self) -> tuple[int, float]:
        ids = next(self.batches)
        inputs, labels = self.masked(ids) if self.case.family == "bert" else (ids, ids)
        self.optimizer.zero_grad()
        loss = self.model(input_ids=inputs, labels=labels).loss
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        return ids.numel(), loss.item()

    def steps(self, n: int) -> tuple[int, float, float]:
        start = time.perf_counter()
        found = [self.step() for _ in range(n)]
        return sum(tokens for tokens, _ in found), time.perf_counter() - start, found[-1][1]


class Worker:
    def __init__(self, library: str, threads: int):
        self.side = {"plmcore": Plmcore, "transformers": Transformers}[library](threads)

    def load(self, name: str, folder: Path, layers: int) -> None:
        """The loss of the first step must be that of guessing: both begin with fresh weights."""
        case = small(CASES[name]) if layers else CASES[name]
        loss, guess = self.side.load(case, folder, layers), math.log(case.vocab)
        if not abs(loss / guess - 1) < 0.1:
            raise ValueError(f"the first loss is {loss:.3f}, and guessing has {guess:.3f}")

    def steps(self, n: int) -> tuple[int, float, float]:
        return self.side.steps(n)

    def save(self) -> tuple[float, float, float]:
        return self.side.save()

    def overhead(self, n: int) -> float:
        return self.side.overhead(n)


if __name__ == "__main__":
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    contest.serve({name: getattr(worker, name) for name in ("load", "steps", "save", "overhead")})
