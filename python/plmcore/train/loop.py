"""The training loop.

    trainer = Trainer(
        model, batches, optim.AdamW(model.parameters()), steps=1000, schedule=schedules.cosine(steps=1000)
    )
    trainer.run()

A step is a function of the parameters, the optimiser's state, the seed and the step's number: batches are
asked for by number, and dropout draws from a stream that (seed, step) names. So a run that goes on from a
checkpoint has the bits of one that was never stopped, with any number of threads.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from plmcore import criteria, nn, optim
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.nn.state import State
from plmcore.runtime.autograd import STORED, stored_activations
from plmcore.train import batching, nonfinite, schedules
from plmcore.train.run_directory import RunDirectory
from plmcore.train.training import Metrics, Parts, Training


class Trainer(Training):
    """The training of a model by the gradients of a criterion. Options:

    criterion       what a step computes (plmcore.criteria); that of the model's labels unless given
    clip_norm       gradients count as scaled to this norm at most
    nonfinite       "stop" raises NonFiniteError; "skip" leaves the step out, at most `most_skips` times in a
                    row
    activations     "bfloat16" stores what the backward pass needs in half the memory; parameters and
                    optimiser stay float32
    average         an average of the parameters (optim.EMA, optim.TriggeredMean), which evaluation and the
                    result use
    directory       where metrics, checkpoints and the report go; without one nothing is written
    save_every      steps between checkpoints; `keep` of them stay, and the best
    evaluate        model -> {"loss": ...}, every `evaluate_every` steps; `patience` evaluations without a
                    lower loss end the run
    ends            steps after which everything is due that is due after the last one: where the run was to
                    end before it was made longer
    callbacks       called as callback(trainer, metrics) after every step; `trainer.stop(reason)` ends the run
    data            a text that changes when the data does: a checkpoint of other data is refused
    """

    REMEMBERED = {"skips": int}

    def __init__(
        self,
        model: nn.Module,
        batches: batching.Batches,
        optimizer: optim.Optimizer,
        *,
        steps: int,
        schedule: schedules.Schedule | None = None,
        seed: int = 0,
        criterion: criteria.Criterion | None = None,
        clip_norm: float | None = None,
        nonfinite: str = "stop",
        most_skips: int = 20,
        activations: str = "float32",
        average: optim.Average | None = None,
        directory: RunDirectory | None = None,
        save_every: int | None = None,
        keep: int = 2,
        log_every: int = 10,
        evaluate: Callable[[nn.Module], Metrics] | None = None,
        evaluate_every: int | None = None,
        patience: int | None = None,
        callbacks: Sequence[Callable[[Trainer, Mapping[str, float]], None]] = (),
        data: str = "",
        ends: Sequence[int] = (),
    ):
        if nonfinite not in ("stop", "skip"):
            raise ArgumentError(f"Trainer: nonfinite must be stop or skip, got {nonfinite!r}")
        if activations not in STORED:
            raise ArgumentError(f"Trainer: activations must be {' or '.join(STORED)}, got {activations!r}")
        super().__init__(
            steps=steps,
            seed=seed,
            directory=directory,
            save_every=save_every,
            keep=keep,
            log_every=log_every,
            evaluate=evaluate,
            evaluate_every=evaluate_every,
            patience=patience,
            callbacks=callbacks,
            data=data,
            ends=ends,
        )
        self.model, self.optimizer = model, optimizer
        self.batches: Any = batches  # some are to be closed
        self.base_lr, self.schedule = optimizer.lr, schedule or schedules.constant()
        self.criterion = criterion or criteria.of(model)
        self.squares = self.criterion.squares
        self.carried: State | None = None  # from batch to batch
        self.clip_norm, self.average, self.activations = clip_norm, average, activations
        self.nonfinite, self.most_skips, self.skips = nonfinite, most_skips, 0

    def run(self) -> None:
        """Runs to the last step. Raises Interrupted after a signal; the state is then saved."""
        self.model.train()
        super().run()

    def close(self) -> None:
        """Ends the thread that makes batches, where there is one."""
        if hasattr(self.batches, "close"):
            self.batches.close()

    # ---- a step ----

    def compute(self) -> Metrics:
        """Batch, gradients, parameters."""
        parts = batching.check_batch(self.batches[self.step])
        before = self.carried
        totals = self.group.sum(criteria.added(criteria.counted(self.criterion, part) for part in parts))
        self.optimizer.zero_grad()
        own = 0.0
        with stored_activations(self.activations):
            for part in parts:
                loss = self._loss(part, totals)
                if loss.requires_grad:
                    loss.backward()
                own += loss.item()
        if self.group.size > 1:
            params = [state.param for state in self.optimizer.states]
            for p, gradient in zip(params, self.group.sum_gradients([p.grad for p in params]), strict=True):
                p.grad = gradient
        whole = self.group.sum({"loss": own, "tokens": sum(map(batching.tokens_of, parts))})
        norm = self.optimizer.norm()
        size = norm.item()
        self.optimizer.lr = self.base_lr * self.schedule(self.step) * batching.rate_of(parts)
        if math.isfinite(whole["loss"]) and math.isfinite(size):
            self.optimizer.step(self.clip_norm, norm)
            self.skips = 0
            if self.average is not None:
                self.average.step()
        else:
            self._refuse(parts, totals, whole["loss"], before)
        return {"loss": whole["loss"], "lr": self.optimizer.lr, "norm": size, "tokens": whole["tokens"]}

    def _loss(self, part: criteria.Batch, totals: criteria.Counts) -> Tensor:
        """What a part brings to the loss of the step; what it carries goes to the next."""
        terms, self.carried = criteria.run(self.criterion, self.model, part, self.carried)
        return criteria.loss(terms, totals)

    def _refuse(
        self, parts: Sequence[criteria.Batch], totals: criteria.Counts, loss: float, before: State | None
    ) -> None:
        """`before`: what was carried into the step; the next one goes on from there."""

        def forward() -> None:
            self.carried = before
            with self._generator():
                for part in parts:
                    self._loss(part, totals)

        what = f"step {self.step + 1}: loss {loss:g}; {nonfinite.explain(self.model, forward)}"
        self.carried = before
        self.skips += 1
        if self.nonfinite == "stop" or self.skips > self.most_skips:
            raise nonfinite.NonFiniteError(
                what + (f"; {self.skips} steps in a row" if self.skips > 1 else "")
            )
        self._say(f"left out {what}")

    # ---- evaluation and checkpoints ----

    def evaluated(self) -> Metrics:
        """With the average where there is one."""
        self.model.eval()
        try:
            with self.average.averaged() if self.average is not None else contextlib.nullcontext():
                return super().evaluated()
        finally:
            self.model.train()

    def watch(self, loss: float) -> None:
        if not math.isfinite(loss) and (bad := nonfinite.first_bad(self.model.named_parameters())):
            raise nonfinite.NonFiniteError(
                f"step {self.step}: held-out loss {loss:g}; the parameter {bad} is not finite"
            )
        if self.average is not None:
            self.average.watch(loss)

    def tensors(self) -> Parts:
        parts: dict[str, Mapping[str, Any]] = {
            "weights": self.model.state_dict(),
            "optimizer": self.optimizer.live_state(),
        }
        if self.average is not None:
            parts["average"] = self.average.live_state()
        if self.carried is not None:
            if self.group.size > 1:
                raise ArgumentError(
                    f"Trainer: a checkpoint holds what one rank carries from batch to batch, and there are "
                    f"{self.group.size}: train without save_every, or with a criterion that carries nothing"
                )
            parts["carried"] = {name: t.numpy() for name, t in self.carried.tensors().items()}
        return parts

    def load(self, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        if ("average" in parts) != (self.average is not None):
            raise ArgumentError(f"it has {'an' if self.average is None else 'no'} average of the parameters")
        carried = parts.get("carried")
        state_after = self.criterion.state(self.model.tensors(carried)) if carried else None
        before = {name: ops.copy(t) for name, t in self.model.state_dict().items()}
        try:
            self.model.load_state_dict(parts["weights"])
            self.optimizer.load_state_dict(
                {
                    k: t.item() if t.ndim == 0 and (k == "lr" or k.endswith(".step")) else t
                    for k, t in parts["optimizer"].items()
                }
            )
            if self.average is not None:
                self.average.load_state_dict(parts["average"])
        except (KeyError, ValueError):
            self.model.load_state_dict(before)
            raise
        self.carried = state_after

    def adopt(self, weights: Mapping[str, Tensor | np.ndarray]) -> None:
        self.model.load_state_dict(weights)

    def settle(self, result: str = "last") -> None:
        """Gives the model the average of the parameters where there is one."""
        super().settle("last" if self.average is not None else result)
        if self.average is not None:
            self.average.apply()
