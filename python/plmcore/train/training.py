"""A training: its steps, and what is due after them.

A subclass says what a step computes (`compute`), what a checkpoint keeps of it (`tensors`) and how it goes on
from there (`load`). Lines of metrics, evaluations, checkpoints, signals and resuming are here.
docs/adding-a-trainer.md has an example.
"""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from plmcore import _core
from plmcore._core import ArgumentError, Tensor
from plmcore.runtime import draws
from plmcore.runtime.generator import Generator
from plmcore.train import checkpoint, nonfinite, ranks
from plmcore.train.interrupts import Interrupted, Interrupts
from plmcore.train.run_directory import RunDirectory
from plmcore.train.snapshot import Snapshot

RESULTS = ("last", "best", "mean")

Metrics = dict[str, float]
Parts = Mapping[str, Mapping[str, Any]]  # of a checkpoint: tensors and numbers by file and name


class Recent(NamedTuple):
    """Sums over the steps since the last line of metrics; a list in state.json."""

    losses: float = 0.0
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0


class Training:
    """`step` steps of `steps` are done. Trainer has the meaning of the options.

    A step must be a function of what `tensors` gives, the seed and the step's number: then a run that goes on
    from a checkpoint has the bits of one that was never stopped.
    """

    model: Any  # what is trained, for evaluations and the result
    squares = False  # whether the loss is a mean of squares, not of negative log-probabilities
    nonfinite = "stop"  # at a step whose loss is no number; "skip" where compute leaves it out itself
    # Attributes that state.json has, too, with their kinds
    REMEMBERED: Mapping[str, Any] = {}

    def __init__(
        self,
        *,
        steps: int,
        seed: int = 0,
        directory: RunDirectory | None = None,
        save_every: int | None = None,
        keep: int = 2,
        log_every: int = 10,
        evaluate: Callable[[Any], Metrics] | None = None,
        evaluate_every: int | None = None,
        patience: int | None = None,
        callbacks: Sequence[Callable[[Any, Mapping[str, float]], None]] = (),
        data: str = "",
        ends: Sequence[int] = (),
    ):
        self.steps, self.seed, self.group = steps, seed, ranks.current()
        self.directory, self.save_every, self.keep, self.log_every = directory, save_every, keep, log_every
        self.evaluate, self.evaluate_every, self.patience = evaluate, evaluate_every, patience
        self.callbacks, self.data, self.ends = callbacks, data, ends
        for name in ("steps", "save_every", "keep", "log_every", "evaluate_every", "patience"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ArgumentError(f"{type(self).__name__}: {name} must be at least 1, got {value}")
        # What a checkpoint remembers beside tensors
        self.step = self.tokens = self.stale = 0
        self.seconds = 0.0
        self.score: float | None = None  # of the evaluation after the last step, where it was finite
        self.best: float | None = None
        self.recent = Recent()
        self.first: float | None = None  # loss of the first step
        self.last: float | None = None  # of the last line of metrics
        self.stopped: str | None = None
        self._saved: int | None = None
        self._writes = directory is not None and self.group.rank == 0
        self._snapshot = Snapshot()

    # ---- what a subclass says ----

    def compute(self) -> Metrics:
        """The work of one step: its loss, its tokens, and further numbers for the line of metrics."""
        raise NotImplementedError

    def tensors(self) -> Parts:
        """What a checkpoint keeps, by file and name; `weights` is the file that a result can be made of."""
        raise NotImplementedError

    def load(self, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Takes what `tensors` gave. KeyError or ValueError, and nothing changed, where it does not fit."""
        raise NotImplementedError

    def adopt(self, weights: Mapping[str, Tensor | np.ndarray]) -> None:
        """Makes these the result, for train.result=best and mean."""
        raise ArgumentError(
            f"{type(self).__name__} has the result of its last step: train.result must be last"
        )

    def evaluated(self) -> Metrics:
        """What an evaluation finds."""
        return self.evaluate(self.model) if self.evaluate is not None else {}

    def watch(self, loss: float) -> None:
        """Called with the loss of each evaluation."""

    def close(self) -> None:
        """Called when a run is over."""

    # ---- the loop ----

    def run(self) -> None:
        """Runs to the last step. Raises Interrupted after a signal; the state is then saved."""
        with Interrupts() as interrupts, contextlib.ExitStack() as ending:
            if self.directory is not None:
                ending.callback(self.directory.finish)  # also when a step fails
            while self.step < self.steps and self.stopped is None:
                self.advance()
                if self.group.sum({"signals": interrupts.number is not None})["signals"]:
                    self.save(due=self.step == self.steps or self.stopped is not None)
                    raise Interrupted(self.step, interrupts.number or signal.SIGTERM)
            self.save()
        self.group.barrier()  # the last checkpoint is there for all

    def advance(self) -> Metrics:
        """One step with everything that is due after it."""
        with self._generator():
            return self._advance()

    def update(self) -> Metrics:
        """The step alone."""
        with self._generator():
            return self.compute()

    def _advance(self) -> Metrics:
        start = time.perf_counter()
        metrics = self._checked(self.compute())
        metrics["seconds"] = time.perf_counter() - start
        self.step += 1
        self.tokens += int(metrics["tokens"])
        self.seconds += metrics["seconds"]
        if self._writes and self.save_every is not None and not self._snapshot.prepared:
            self._snapshot.prepare({k: v for k, v in self._live().items() if isinstance(v, Tensor)})
        if self.step == 1:
            self.first = metrics["loss"]
        losses, steps, tokens, seconds = self.recent
        self.recent = Recent(
            losses + metrics["loss"], steps + 1, tokens + int(metrics["tokens"]), seconds + metrics["seconds"]
        )
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

    def _checked(self, metrics: Metrics) -> Metrics:
        if missing := [name for name in ("loss", "tokens") if name not in metrics]:
            raise ArgumentError(
                f"{type(self).__name__}: compute must give loss and tokens, got no {missing[0]} but "
                f"{', '.join(metrics) or 'nothing'}"
            )
        if self.nonfinite == "stop" and not math.isfinite(metrics["loss"]):
            raise nonfinite.NonFiniteError(f"step {self.step + 1}: loss {metrics['loss']:g}")
        return metrics

    def _generator(self) -> Generator:
        """The random numbers of this step, and those of callbacks; each rank has its own."""
        place = (self.step, self.group.rank) if self.group.rank else (self.step,)
        return Generator(int(draws.bits(self.seed, *place) >> np.uint64(1)))

    def stop(self, reason: str) -> None:
        """Ends the run after this step."""
        self.stopped = reason

    # ---- evaluation and metrics ----

    def assess(self) -> Metrics:
        """Evaluates."""
        found = self.evaluated()
        if "loss" not in found:
            raise ArgumentError(
                f"{type(self).__name__}: evaluate must give a loss, got {', '.join(found) or 'nothing'}"
            )
        loss = found["loss"]
        self.score = loss if math.isfinite(loss) else None
        self.watch(loss)
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
        recent, self.recent = self.recent, Recent()
        before, self.last = self.last, recent.losses / recent.steps
        if nonfinite.diverged(self.first, self.last, self.squares) and not nonfinite.diverged(
            self.first, before, self.squares
        ):
            self._say(
                f"step {self.step}: the loss is {self.last:.4g}, and the first was {self.first:.4g}: "
                f"the run diverges; {nonfinite.ADVICE}"
            )
        if self.directory is not None:
            self.directory.record(
                {
                    "step": self.step,
                    "loss": self.last,
                    **{k: v for k, v in metrics.items() if k not in ("loss", "tokens", "seconds")},
                    "tokens": self.tokens,
                    "tokens_per_second": recent.tokens / max(recent.seconds, 1e-9),
                    "seconds": self.seconds,
                }
            )

    def check_converged(self) -> None:
        """DivergedError where the last loss, of training or of an evaluation, is that of a diverged run."""
        for loss in (self.last, self.score):
            if nonfinite.diverged(self.first, loss, self.squares):
                raise nonfinite.DivergedError(
                    f"the run has diverged: its first loss was {self.first:.4g}, and after step "
                    f"{self.step} it is {loss:.4g}; {nonfinite.ADVICE}"
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
        if self.save_every is None or self._saved == self.step:
            return
        self.group.barrier()
        if self.directory is not None and self._writes:
            self.directory.finish()  # the last copy is in the same memory
            live = self._live()
            taken = self._snapshot.take({key: v for key, v in live.items() if isinstance(v, Tensor)})
            parts: dict[str, dict[str, Tensor | np.ndarray]] = {part: {} for part, _ in live}
            for (part, name), value in live.items():
                parts[part][name] = taken[part, name] if isinstance(value, Tensor) else np.array(value)
            self.directory.save(self.step, parts, self.state() | {"due": due}, self.keep)
        self._saved = self.step

    def _live(self) -> dict[tuple[str, str], Any]:
        """What a checkpoint holds, by file and name: the tensors themselves, and numbers."""
        return {(part, name): v for part, values in self.tensors().items() for name, v in values.items()}

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the tensors."""
        return {
            "seed": self.seed,
            "data": self.data,
            "tokens": self.tokens,
            "seconds": self.seconds,
            **{name: getattr(self, name) for name in self.REMEMBERED},
            "stale": self.stale,
            "score": self.score,
            "best": self.best,
            "recent": self.recent,
            "first": self.first,
            "last": self.last,
            "stopped": self.stopped,
            "lines": None if self.directory is None else self.directory.lines(),
            "machine": self.machine(),
        }

    def machine(self) -> dict[str, str]:
        """What decides how sums are rounded: the same everywhere gives the same bits."""
        device = getattr(self.model, "device", "cpu")
        return {"isa": _core.isa(), "blas": _core.blas()} | ({} if device == "cpu" else {"device": device})

    def restore(self, saved: checkpoint.Checkpoint) -> None:
        """Continues from a checkpoint.

        A checkpoint of another model, optimiser, seed or corpus is an error and changes nothing.
        """
        state, where = saved.state, f"checkpoint '{saved.path}'"
        checkpoint.check_state(state, where, self.REMEMBERED)
        if state.get("seed") != self.seed:
            raise ArgumentError(f"{where} is of seed {state.get('seed')}, this run of {self.seed}")
        if state.get("data") != self.data:
            raise ArgumentError(f"{where} was trained on other data: the corpus has changed since")
        try:
            self.load(saved.parts)
        except KeyError as e:
            raise ArgumentError(f"{where} is of another model: it has no {e}") from None
        except ValueError as e:
            raise ArgumentError(f"{where} is of another model: {e}") from None
        self.step = self._saved = saved.step
        for name in ("tokens", "seconds", *self.REMEMBERED, "stale", "score", "best", "stopped"):
            setattr(self, name, state[name])
        self.recent = Recent(*state["recent"])
        self.first, self.last = state.get("first"), state.get("last")
        if self.directory is not None:
            self.directory.forget_after(self.step, state.get("lines"))
        now = self.machine()
        if (then := state.get("machine") or now) != now:
            self._say(
                f"step {self.step} was computed with {_described(then)}, from here on it is "
                f"{_described(now)}: the bits will differ from those of a run on one of them"
            )

    def settle(self, result: str = "last") -> None:
        """What the training ends with: the last step, or of the checkpoints that are kept the best or the
        mean.
        """
        if result != "best" or self.best is None:
            self.check_converged()
        kept = [] if self.directory is None else checkpoint.steps_in(self.directory.checkpoints)
        if result == "mean":
            last = checkpoint.due(kept)[-self.keep :]
            self.adopt(checkpoint.average(last))
            self._say(
                f"the result is the mean of steps {', '.join(str(checkpoint.step_of(path)) for path in last)}"
            )
        elif result == "best" and self.best is not None:
            scored = [c for c in map(checkpoint.read, kept) if c.state["score"] is not None]
            best = min(scored, key=lambda c: c.state["score"])
            self.adopt(best.parts["weights"])
            self._say(f"the result is that of step {best.step}")


def _described(machine: Mapping[str, str]) -> str:
    where = f" on the device {machine['device']}" if "device" in machine else ""
    return f"the instruction set {machine.get('isa')} and {machine.get('blas')}{where}"
