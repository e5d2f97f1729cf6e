"""Learning rates over a run. A schedule gives the factor of the rate for a step, counted from 0:

    rate = schedules.cosine(steps=2000, warmup=100, floor=0.1)
    opt.lr = 1e-3 * rate(step)

Warm-up never gives a rate of 0, and neither does the last step:
the first of w warm-up steps has 1/w of what follows them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from plmcore._core import ArgumentError

Schedule = Callable[[int], float]

# How the factor rises, over x from 0 (before the first step) to 1.
RISES = {
    "linear": lambda x: x,
    "cosine": lambda x: 0.5 - 0.5 * math.cos(math.pi * x),
    "exponential": lambda x: 100.0 ** (x - 1),
    "square root": math.sqrt,
}


def constant(*, warmup: int = 0, rise: str = "linear") -> Schedule:
    return warmed(lambda step: 1.0, warmup, rise)


def linear(*, steps: int, warmup: int = 0, floor: float = 0.0, rise: str = "linear") -> Schedule:
    """Down to `floor` in equal parts (BERT, RoBERTa, XLNet)."""
    return polynomial(steps=steps, warmup=warmup, floor=floor, power=1.0, rise=rise)


def polynomial(
    *, steps: int, warmup: int = 0, floor: float = 0.0, power: float = 1.0, rise: str = "linear"
) -> Schedule:
    """floor + (1 - floor) (1 - x)^power over the steps after warm-up."""
    return warmed(lambda step: floor + (1 - floor) * (1 - _share(step, steps, warmup)) ** power, warmup, rise)


def cosine(*, steps: int, warmup: int = 0, floor: float = 0.0, rise: str = "linear") -> Schedule:
    """Half a wave down to `floor` (GPT-1; GPT-3 with floor 0.1)."""

    def rest(step: int) -> float:
        return floor + (1 - floor) * (0.5 + 0.5 * math.cos(math.pi * _share(step, steps, warmup)))

    return warmed(rest, warmup, rise)


def noam(*, width: int, warmup: int = 4000) -> Schedule:
    """width^-1/2 min(s^-1/2, s warmup^-3/2), s counted from 1 (the Transformer; the rate itself for lr=1)."""
    _at_least(1, width=width, warmup=warmup)
    return lambda step: width**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)


def inverse_sqrt(*, hold: int = 10_000, warmup: int = 0, rise: str = "linear") -> Schedule:
    """1 / sqrt(max(s, hold)), s counted from 1 (T5; the rate itself for lr=1)."""
    _at_least(1, hold=hold)
    return warmed(lambda step: max(step + 1, hold) ** -0.5, warmup, rise)


def slanted(*, steps: int, cut: float = 0.1, ratio: float = 32.0) -> Schedule:
    """Slanted triangle (ULMFiT): up over the first `cut` of the steps, down over the rest,
    from and to 1 / ratio.
    """
    _at_least(1, steps=steps)
    top = max(1, math.floor(steps * cut))

    def factor(step: int) -> float:
        up = (step + 1) / top if step < top else 1 - (step + 1 - top) / max(1, steps - top)
        return (1 + max(0.0, up) * (ratio - 1)) / ratio

    return factor


def halving(*, every: int, start: int = 0, warmup: int = 0, rise: str = "linear") -> Schedule:
    """Half as much from step `start` on, and again every `every` steps
    (seq2seq: after epoch 5, each half epoch).
    """
    _at_least(1, every=every)
    return warmed(lambda step: 1.0 if step < start else 0.5 ** ((step - start) // every + 1), warmup, rise)


def slowing(*, warmup: int = 5000, slope: float = 0.005) -> Schedule:
    """min(s, warmup) / warmup / (1 + slope sqrt(s)), s counted from 1 (cross-view training)."""
    _at_least(1, warmup=warmup)
    return lambda step: min(step + 1, warmup) / warmup / (1 + slope * math.sqrt(step + 1))


KINDS = {
    f.__name__: f
    for f in (constant, linear, polynomial, cosine, noam, inverse_sqrt, slanted, halving, slowing)
}


def warmed(rest: Schedule, warmup: int, rise: str = "linear") -> Schedule:
    """A rise over `warmup` steps to where `rest` begins, then `rest`."""
    _at_least(0, warmup=warmup)
    if rise not in RISES:
        raise ArgumentError(f"schedule: a rise is one of {', '.join(RISES)}, got {rise!r}")

    def factor(step: int) -> float:
        return rest(step) if step >= warmup else rest(warmup) * RISES[rise]((step + 1) / warmup)

    return factor


def _share(step: int, steps: int, warmup: int) -> float:
    """How much of the steps after warm-up is behind."""
    return min(1.0, (step - warmup) / max(1, steps - warmup))


def _at_least(least: int, **values: int) -> None:
    for name, value in values.items():
        if value < least:
            raise ArgumentError(f"schedule: {name} must be at least {least}, got {value}")
