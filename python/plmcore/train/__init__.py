"""Training: the loop and what goes with it."""

from plmcore.train.batching import Accumulated, ramp
from plmcore.train.groups import parameter_groups
from plmcore.train.interrupts import Interrupted
from plmcore.train.loop import Trainer
from plmcore.train.nonfinite import DivergedError, NonFiniteError
from plmcore.train.run import Run
from plmcore.train.run_directory import RunDirectory
from plmcore.train.training import Training

__all__ = [
    "Accumulated",
    "DivergedError",
    "Interrupted",
    "NonFiniteError",
    "Run",
    "RunDirectory",
    "Trainer",
    "Training",
    "parameter_groups",
    "ramp",
]
