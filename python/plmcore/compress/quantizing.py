"""A model directory with weights of fewer bits from an ordinary one."""

from __future__ import annotations

import itertools
import os
import pathlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plmcore import models
from plmcore._core import ArgumentError, Tensor
from plmcore.compress.rounding import round_rows, row_scales
from plmcore.files.whole import atomic_directory, sync_file
from plmcore.formats import safetensors
from plmcore.language_model import directory
from plmcore.models import names, quantized
from plmcore.runtime.kinds import checked


@checked
def quantize(
    folder: str | os.PathLike[str],
    weights: str = "int8",
    *,
    out: str | os.PathLike[str],
    head: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pathlib.Path:
    """Writes a model with int8 or bfloat16 weights to the directory `out`,
    which plm.load opens; returns `out`.

    The weights of linear layers and the tables of tokens are quantised, shared ones once; all else becomes
    float32. config.json keeps its keys, and tokenizer files come along. `head`: the head to keep, where it is
    not the one that config.json names. One tensor at a time is in memory. The same directory gives the same
    bytes. progress: called with the number of tensors that are done, and of all.
    """
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    if weights not in quantized.WEIGHTS:
        raise ArgumentError(
            f"quantize: the weights must be one of {', '.join(quantized.WEIGHTS)}, got {weights!r}"
        )
    quantized.refuse(folder, directory.read_config(folder), "quantize")
    check_new(out)
    directory.companions(folder)
    source = Source(directory.open_model(folder, head), weights)
    config = source.opened.model.config
    config = config.replace(
        architectures=(models.architecture_of(config, source.opened.head),), dtype="float32"
    )
    done = itertools.count(1)

    def value(name: str) -> Tensor:
        made = source.value(name)
        if progress is not None:
            progress(next(done), len(source.specs))
        return made

    with atomic_directory(out) as partial:
        safetensors.write_each(partial / safetensors.FILE, source.specs, value, {"format": "pt"})
        directory.write_config(quantized.with_weights(config, weights), partial)
        directory.copy_companions(folder, partial)
        for file in partial.rglob("*"):
            if file.is_file():
                sync_file(file)
    return out


def check_new(out: pathlib.Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(f"quantize: '{out}' must be a new directory or an empty one")


@dataclass
class Source:
    """What the tensors of the new file are made of: `specs` (dtype, shape) and `value` by our names."""

    opened: directory.Opened
    weights: str
    specs: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model, family = self.opened.model, self.opened.family
        self.tensors = names.normal(family, self.opened.tensors)
        self.groups: dict[str, list[names.Slot]] = {}  # by the names of the new file
        self.scales: dict[str, np.ndarray] = {}
        report, used = names.Report(), set()
        for group in names.groups(family, model):
            found = self.read(group)
            used.update(found.used)
            report.missing += found.missing
            report.misshaped += found.misshaped
            report.mistyped += found.mistyped
            few = quantized.quantizable(model, group)
            for name in different(found.values):
                self.groups[name] = group
                shape = tuple(group[0].parameter.shape)
                self.specs[name] = (self.weights if few else "float32", shape)
                if few and self.weights == "int8":
                    self.specs[quantized.scale_name(name)] = ("float32", shape[:1])
        report.unexpected = [name for name in self.tensors if name not in used]
        self.opened.settle(report)

    def read(self, group: list[names.Slot]) -> names.Found:
        return names.read(self.opened.family, group, self.tensors, self.opened.model.config, "float32")

    def value(self, name: str) -> Tensor:
        if name in self.groups:
            found = self.read(self.groups[name]).values[name]
            dtype = self.specs[name][0]
            return (
                Tensor(round_rows(found.numpy(), self.scale(name, found)))
                if dtype == "int8"
                else found.astype(dtype)
            )
        weight = name.removesuffix("scale") + "weight"
        return Tensor(self.scale(weight, None))

    def scale(self, name: str, weight: Tensor | None) -> np.ndarray:
        if name not in self.scales:
            weight = self.read(self.groups[name]).values[name] if weight is None else weight
            scale = row_scales(weight.numpy())
            if not np.isfinite(scale).all():
                raise ArgumentError(
                    f"quantize: '{name}' has values that are not finite; are the weights sound?"
                )
            self.scales[name] = scale
        return self.scales[name]


def different(values: dict[str, Tensor]) -> list[str]:
    """The names whose values are not those of the first."""
    first: Any = next(iter(values.values()), None)
    return [name for i, (name, value) in enumerate(values.items()) if i == 0 or not names.same(value, first)]
