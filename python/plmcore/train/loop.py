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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from plmcore import _core, criteria, nn, optim
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.nn.state import State
from plmcore.runtime import draws
from plmcore.runtime.autograd import STORED, stored_activations
from plmcore.runtime.generator import Generator
from plmcore.train import batching, checkpoint, nonfinite, schedules
from plmcore.train.interrupts import Interrupted, Interrupts
from plmcore.train.run_directory import RunDirectory
from plmcore.train.snapshot import Snapshot

Metrics = dict[str, float]


class Trainer:
    """One run: `step` steps of `steps` are done. Options:

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
        counts = dict(
            steps=steps,
            save_every=save_every,
            keep=keep,
            log_every=log_every,
            evaluate_every=evaluate_every,
            patience=patience,
        )
        for name, value in counts.items():
            if value is not None and value < 1:
                raise ArgumentError(f"Trainer: {name} must be at least 1, got {value}")
        self.model, self.optimizer, self.steps = model, optimizer, steps
        self.batches: Any = batches  # some are to be closed
        self.base_lr, self.schedule, self.seed = optimizer.lr, schedule or schedules.constant(), seed
        self.criterion = criterion or criteria.of(model)
        self.carried: State | None = None  # from batch to batch
        self.clip_norm, self.nonfinite, self.most_skips, self.average = (
            clip_norm,
            nonfinite,
            most_skips,
            average,
        )
        self.activations = activations
        self.directory, self.save_every, self.keep, self.log_every = directory, save_every, keep, log_every
        self.evaluate, self.evaluate_every, self.patience = evaluate, evaluate_every, patience
        self.callbacks, self.data, self.ends = callbacks, data, ends
        # What a checkpoint remembers beside tensors
        self.step = self.tokens = self.skips = self.stale = 0
        self.seconds = 0.0
        self.score: float | None = None  # of the evaluation after the last step, where it was finite
        self.best: float | None = None
        self.recent = [0.0, 0, 0, 0.0]  # since the last line of metrics: losses, steps, tokens, seconds
        self.first: float | None = None  # loss of the first step
        self.last: float | None = None  # of the last line of metrics
        self.stopped: str | None = None
        self._saved: int | None = None
        self._snapshot = Snapshot()

    # ---- the loop ----

    def run(self) -> None:
        """Runs to the last step. Raises Interrupted after a signal; the state is then saved."""
        with Interrupts() as interrupts, self._finishing():
            self.model.train()
            while self.step < self.steps and self.stopped is None:
                self.advance()
                if interrupts.number is not None:
                    self.save(due=self.step == self.steps or self.stopped is not None)
                    raise Interrupted(self.step, interrupts.number)
            self.save()

    def check_converged(self) -> None:
        """DivergedError where the last loss, of training or of an evaluation, is that of a diverged run."""
        for loss in (self.last, self.score):
            if nonfinite.diverged(self.first, loss, self.criterion.squares):
                raise nonfinite.DivergedError(
                    f"the run has diverged: its first loss was {self.first:.4g}, and after step "
                    f"{self.step} it is {loss:.4g}; {nonfinite.ADVICE}"
                )

    def advance(self) -> Metrics:
        """One step with everything that is due after it."""
        with self._generator():
            return self._advance()

    def _advance(self) -> Metrics:
        start = time.perf_counter()
        metrics = self._update()
        metrics["seconds"] = time.perf_counter() - start
        self.step += 1
        self.seconds += metrics["seconds"]
        if self.directory is not None and self.save_every is not None and not self._snapshot.prepared:
            self._snapshot.prepare({k: v for k, v in self._live().items() if isinstance(v, Tensor)})
        if self.step == 1:
            self.first = metrics["loss"]
        for i, key in enumerate(("loss", None, "tokens", "seconds")):
            self.recent[i] += metrics[key] if key else 1
        self.score = None
        if self._due(self.log_every):
            self.log(metrics)
        if self.evaluate is not None and self._due(self.evaluate_every):
            self.assess()
        for callback in self.callbacks:
            callback(self, metrics)
        improved = self.score is not None and self.score == self.best
        if self.save_every is not None and (
            self.step % self.save_every == 0 or improved or self.step in self.ends
        ):
            self.save()
        if self.directory is not None:
            self.directory.show(self.step, self.steps, metrics)
        return metrics

    def update(self) -> Metrics:
        """Batch, gradients, parameters."""
        with self._generator():
            return self._update()

    def _update(self) -> Metrics:
        parts = batching.check_batch(self.batches[self.step])
        before = self.carried
        # Of the whole step: the counts of all ranks meet here, their gradients where the norm is taken.
        totals = criteria.added(criteria.counted(self.criterion, part) for part in parts)
        self.optimizer.zero_grad()
        total = 0.0
        with stored_activations(self.activations):
            for part in parts:
                loss = self._loss(part, totals)
                if loss.requires_grad:
                    loss.backward()
                total += loss.item()
        norm = self.optimizer.norm()
        size = norm.item()
        self.optimizer.lr = self.base_lr * self.schedule(self.step)
        if math.isfinite(total) and math.isfinite(size):
            self.optimizer.step(self.clip_norm, norm)
            self.skips = 0
            if self.average is not None:
                self.average.step()
        else:
            self._refuse(parts, totals, total, before)
        tokens = sum(map(batching.tokens_of, parts))
        self.tokens += tokens
        return {"loss": total, "norm": size, "lr": self.optimizer.lr, "tokens": tokens}

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

    def _generator(self) -> Generator:
        """Dropout's stream of this step, and that of callbacks."""
        return Generator(int(draws.bits(self.seed, self.step) >> np.uint64(1)))

    def stop(self, reason: str) -> None:
        """Ends the run after this step."""
        self.stopped = reason

    # ---- evaluation and metrics ----

    def assess(self) -> Metrics:
        """Evaluates, with the average where there is one."""
        self.model.eval()
        try:
            with self.average.averaged() if self.average is not None else contextlib.nullcontext():
                found = self.evaluate(self.model) if self.evaluate is not None else {}
        finally:
            self.model.train()
        if "loss" not in found:
            raise ArgumentError(f"Trainer: evaluate must give a loss, got {', '.join(found)}")
        loss = found["loss"]
        self.score = loss if math.isfinite(loss) else None
        if self.score is None and (bad := nonfinite.first_bad(self.model.named_parameters())):
            raise nonfinite.NonFiniteError(
                f"step {self.step}: held-out loss {loss:g}; the parameter {bad} is not finite"
            )
        if self.average is not None:
            self.average.watch(loss)
        if self.score is not None and (self.best is None or self.score < self.best):
            self.best, self.stale = self.score, 0
        else:
            self.stale += 1
            if self.patience is not None and self.stale >= self.patience:
                self.stop(f"no lower loss in {self.stale} evaluations")
        if self.directory is not None:
            self.directory.record(
                {"step": self.step, **{f"eval_{name}": value for name, value in found.items()}}
            )
        self._say(f"step {self.step}: " + ", ".join(f"{name} {value:.4g}" for name, value in found.items()))
        return found

    def log(self, metrics: Metrics) -> None:
        """Writes a line of metrics."""
        losses, count, tokens, seconds = self.recent
        before, self.last = self.last, losses / count
        if nonfinite.diverged(self.first, self.last, self.criterion.squares) and not nonfinite.diverged(
            self.first, before, self.criterion.squares
        ):
            self._say(
                f"step {self.step}: the loss is {self.last:.4g}, and the first was {self.first:.4g}: "
                f"the run diverges; {nonfinite.ADVICE}"
            )
        self.recent = [0.0, 0, 0, 0.0]
        if self.directory is not None:
            self.directory.record(
                {
                    "step": self.step,
                    "loss": self.last,
                    "lr": metrics["lr"],
                    "norm": metrics["norm"],
                    "tokens": self.tokens,
                    "tokens_per_second": tokens / max(seconds, 1e-9),
                    "seconds": self.seconds,
                }
            )

    def _due(self, every: int | None) -> bool:
        return (
            self.step == self.steps
            or self.step in self.ends
            or (every is not None and self.step % every == 0)
        )

    def _say(self, text: str) -> None:
        if self.directory is not None:
            self.directory.say(text)

    # ---- checkpoints ----

    def save(self, due: bool = True) -> None:
        """Writes a checkpoint in the background. An error of the writing is raised by the next checkpoint.

        A checkpoint that is not `due` exists only because the run was stopped. It never becomes a part of the
        result.
        """
        if self.directory is None or self.save_every is None or self._saved == self.step:
            return
        self.directory.finish()  # the last copy is in the same memory
        live = self._live()
        taken = self._snapshot.take({key: v for key, v in live.items() if isinstance(v, Tensor)})
        parts: dict[str, dict[str, Tensor | np.ndarray]] = {part: {} for part, _ in live}
        for (part, name), value in live.items():
            parts[part][name] = taken.get((part, name), value)
        self.directory.save(self.step, parts, self.state() | {"due": due}, self.keep)
        self._saved = self.step

    def _live(self) -> dict[tuple[str, str], Tensor | np.ndarray]:
        """What a checkpoint holds, by file and name: the tensors themselves, and numbers as arrays."""
        parts = {"weights": self.model.state_dict(), "optimizer": self.optimizer.live_state()}
        if self.average is not None:
            parts["average"] = self.average.live_state()
        if self.carried is not None:
            parts["carried"] = {name: np.array(t.numpy()) for name, t in self.carried.tensors().items()}
        return {
            (part, name): v if isinstance(v, Tensor) else np.asarray(v)
            for part, values in parts.items()
            for name, v in values.items()
        }

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the tensors."""
        return {
            "seed": self.seed,
            "data": self.data,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "skips": self.skips,
            "stale": self.stale,
            "score": self.score,
            "best": self.best,
            "recent": self.recent,
            "first": self.first,
            "last": self.last,
            "stopped": self.stopped,
            "lines": None if self.directory is None else self.directory.lines(),
            "machine": machine(),
        }

    def restore(self, saved: checkpoint.Checkpoint) -> None:
        """Continues from a checkpoint.

        A checkpoint of another model, optimiser, seed or corpus is an error and changes nothing.
        """
        state, where = saved.state, f"checkpoint '{saved.path}'"
        checkpoint.check_state(state, where)
        if state.get("seed") != self.seed:
            raise ArgumentError(f"{where} is of seed {state.get('seed')}, this run of {self.seed}")
        if state.get("data") != self.data:
            raise ArgumentError(f"{where} was trained on other data: the corpus has changed since")
        if ("average" in saved.parts) != (self.average is not None):
            raise ArgumentError(
                f"{where} has {'an' if self.average is None else 'no'} average of the parameters"
            )
        carried = saved.parts.get("carried")
        state_after = self.criterion.state(carried) if carried else None
        before = _copies(self.model.state_dict())
        try:
            self.model.load_state_dict(saved.parts["weights"])
            self.optimizer.load_state_dict(
                {
                    k: t.item() if t.ndim == 0 and _scalar(k) else t
                    for k, t in saved.parts["optimizer"].items()
                }
            )
            if self.average is not None:
                self.average.load_state_dict(saved.parts["average"])
        except (KeyError, ValueError) as e:
            self.model.load_state_dict(before)
            raise ArgumentError(f"{where} is of another model: {e}") from None
        self.carried = state_after
        self.step = self._saved = saved.step
        for name in ("tokens", "seconds", "skips", "stale", "score", "best", "recent", "stopped"):
            setattr(self, name, state[name])
        self.first, self.last = state.get("first"), state.get("last")
        if self.directory is not None:
            self.directory.forget_after(self.step, state.get("lines"))
        if (then := state.get("machine") or machine()) != machine():
            self._say(
                f"step {self.step} was computed with {_described(then)}, from here on it is "
                f"{_described(machine())}: "
                "the bits will differ from those of a run on one of them"
            )

    @contextlib.contextmanager
    def _finishing(self) -> Iterator[None]:
        """Waits for the checkpoint that is being written, also when the loop fails."""
        try:
            yield
        finally:
            if self.directory is not None:
                self.directory.finish()


def machine() -> dict[str, str]:
    """What decides how sums are rounded: the same everywhere gives the same bits."""
    return {"isa": _core.isa(), "blas": _core.blas()}


def _described(machine: Mapping[str, str]) -> str:
    return f"the instruction set {machine.get('isa')} and {machine.get('blas')}"


def _copies(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: ops.copy(t) for name, t in state.items()}


def _scalar(key: str) -> bool:
    return key == "lr" or key.endswith(".step")
