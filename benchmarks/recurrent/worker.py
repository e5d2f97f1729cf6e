"""One contestant in its own process. Answers ("load", case, small), ("steps", n), ("memory",)."""

from __future__ import annotations

import math
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from recurrent.cases import CASES, CLIP, DECAY, RATE, Case, batch, small


class Plmcore:
    def __init__(self, threads: int):
        import plmcore

        plmcore.set_num_threads(threads)
        self.plm = plmcore

    def load(self, case: Case) -> None:
        plm = self.plm
        plm.seed(0)
        config = dict(model_type="awd-lstm", vocab_size=case.vocab, **case.config)
        self.model = plm.from_config(config, "causal-lm").model.train()
        ar, tar = case.penalties
        self.criterion, self.state = plm.criteria.Carried(ar=ar, tar=tar), None
        self.optimizer = plm.optim.SGD(self.model.parameters(), lr=RATE, weight_decay=DECAY)

    def step(self, ids) -> float:
        criteria, arrays = self.plm.criteria, {"input_ids": ids, "labels": ids}
        terms, self.state = criteria.run(self.criterion, self.model, arrays, self.state)
        loss = criteria.loss(terms, self.criterion.counts(arrays))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step(CLIP)
        return loss.item()


class Torch:
    """torch.nn.LSTM for the plain model, fastai's AWD_LSTM for the other."""

    def __init__(self, threads: int):
        import torch

        torch.set_num_threads(threads)
        self.torch = torch

    def load(self, case: Case) -> None:
        torch = self.torch
        torch.manual_seed(0)
        self.case, self.state = case, None
        if case.config:
            width = case.config["d_embed"]
            self.model = torch.nn.ModuleDict(
                dict(
                    tokens=torch.nn.Embedding(case.vocab, width),
                    lstm=torch.nn.LSTM(width, width, case.config["n_layers"], batch_first=True),
                    decoder=torch.nn.Linear(width, case.vocab),
                )
            )
        else:
            from fastai.text.models.awdlstm import AWD_LSTM
            from fastai.text.models.core import get_language_model

            self.model = get_language_model(AWD_LSTM, case.vocab).train()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE, weight_decay=DECAY)

    def outputs(self, ids):
        """logits, and the top layer before and after dropout"""
        if not self.case.config:
            return self.model(ids)  # keeps its state itself
        y, state = self.model["lstm"](self.model["tokens"](ids), self.state)
        self.state = tuple(s.detach() for s in state)
        return self.model["decoder"](y), y, y

    def step(self, ids) -> float:
        torch, (ar, tar) = self.torch, self.case.penalties
        ids = torch.from_numpy(ids)
        logits, raw, dropped = self.outputs(ids[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        if ar or tar:
            loss = loss + ar * dropped.pow(2).mean() + tar * (raw[:, 1:] - raw[:, :-1]).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        return loss.item()


class Worker:
    def __init__(self, library: str, threads: int):
        self.side = {"plmcore": Plmcore, "torch": Torch}[library](threads)

    def load(self, name: str, quick: bool) -> None:
        """The loss of the first step must be that of guessing. Memory counts from here on."""
        self.case, self.number = small(CASES[name]) if quick else CASES[name], 0
        if name.startswith("AWD") and isinstance(self.side, Torch):
            import fastai.text.models.core  # noqa: F401
        self.before = peak()
        self.side.load(self.case)
        loss, guess = self.steps(1)[1], math.log(self.case.vocab)
        if not abs(loss / guess - 1) < 0.1:
            raise ValueError(f"the first loss is {loss:.3f}, and guessing has {guess:.3f}")

    def steps(self, n: int) -> tuple[float, float]:
        """Seconds of a step, and the last loss."""
        batches = [batch(self.case, self.number + i) for i in range(n)]
        self.number += n
        start = time.perf_counter()
        for ids in batches:
            loss = self.side.step(ids)
        return (time.perf_counter() - start) / n, loss

    def memory(self) -> float:
        """Megabytes above what the process took before the model was made, at most."""
        return peak() - self.before


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    contest.serve({name: getattr(worker, name) for name in ("load", "steps", "memory")})
