"""What is done to a model before and while it learns a task: which parts learn, what they begin from."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from plmcore import models, nn
from plmcore._core import ArgumentError, Tensor, assign
from plmcore.models import names
from plmcore.runtime import draws
from plmcore.tasks import lora
from plmcore.tasks.features import Features
from plmcore.train import groups
from plmcore.train.training import Training

if TYPE_CHECKING:
    from plmcore.models import Model

ADAPTER = "adapter"
NOISE = 0x6E6F697365  # keeps these draws apart


def prepare(model: nn.Module, table: Mapping[str, Any], seed: int, fresh: Collection[str] = ()) -> None:
    """In this order: noise on the weights, fresh top layers, frozen parts, updates of low rank.

    Parameters that were drawn at random, those named as `fresh` (as a pooler that the directory has no
    weights for) and those of fresh layers, learn in any case.
    """
    fresh = set(fresh)
    if table["noise"]:
        add_noise(model, table["noise"], seed)
    if table["reinit"]:
        fresh |= reinitialise(model, table["reinit"])
    freeze(model, table["freeze"], fresh)
    if table["lora_rank"]:
        if table["freeze"] is not None or table["unfreeze_every"] is not None:
            raise ArgumentError(
                "adapt.lora_rank freezes the body itself: leave adapt.freeze and adapt.unfreeze_every"
            )
        learning = [p for name, p in model.named_parameters() if name in fresh]
        lora.attach(published(model), table["lora_rank"], table["lora_alpha"], table["lora_targets"])
        for p in learning:
            p.requires_grad = True


def finish(model: nn.Module, table: Mapping[str, Any], folder: pathlib.Path, source: str) -> None:
    """Before the result is saved: the updates go into a directory of their own, and into the weights."""
    if table["lora_rank"]:
        lora.save(published(model), folder / ADAPTER, source)
        lora.merge(model)


def add_noise(model: nn.Module, strength: float, seed: int) -> None:
    """NoisyTune: W + U(-strength / 2, strength / 2) std(W), for every tensor W of the pre-trained body
    as it is published: query, key and value apart where they are, though they are one parameter here.
    One that is constant stays.
    """
    if not strength >= 0:
        raise ArgumentError(f"adapt.noise must be at least 0, got {strength}")
    whole = published(model)
    parts = {id(s.parameter): len(s.stored.parts) for s in names.slots(models.family(whole.config), whole)}
    for number, (_, p) in enumerate(body_of(model).named_parameters()):
        values = p.numpy()
        drawn = draws.uniform(seed, NOISE, number, np.arange(values.size)).reshape(values.shape) - 0.5
        widths = [strength * spread(w) for w in np.split(values, parts[id(p)])] if values.ndim else [0.0]
        rows = np.repeat(widths, len(values) // len(widths)) if values.ndim else np.zeros(())
        assign(p, Tensor((values + drawn * rows.reshape(-1, *[1] * (values.ndim - 1))).astype(values.dtype)))


def spread(values: np.ndarray) -> float:
    """The standard deviation, exactly 0 for values that are all the same."""
    return 0.0 if not values.size or values.min() == values.max() else float(values.std(dtype=np.float64))


def reinitialise(model: nn.Module, layers: int) -> set[str]:
    """Draws the top `layers` layers, and the pooler where there is one, afresh, as for pre-training; returns
    the names of what it drew.
    """
    top = highest(model)
    if not 0 < layers <= top:
        raise ArgumentError(f"adapt.reinit must be from 0 to the {top} layers of the model, got {layers}")
    if isinstance(model, Features):
        fresh = {
            f"body.{name}": p for name, p in cast(Any, type(model.body))(model.config).named_parameters()
        }
    else:
        kind: Any = type(model)
        fresh = dict(kind(cast("Model", model).config).named_parameters())
    drawn = set()
    for name, p in model.named_parameters():
        layer = groups.layer_of(name)
        if (layer is not None and layer > top - layers) or ".pooler." in f".{name}.":
            assign(p, fresh[name])
            drawn.add(name)
    return drawn


def freeze(model: nn.Module, what: str | int | None, fresh: Collection[str] = ()) -> None:
    """None; body: all but the head; embeddings; or a number: the embeddings and so many of the lowest layers.

    What is named as `fresh` learns.
    """
    top = highest(model)
    if what is None:
        return
    if what not in ("body", "embeddings") and not (str(what).isdigit() and int(what) <= top):
        raise ArgumentError(
            f"adapt.freeze must be none, embeddings, body or a number of layers up to {top}, got {what!r}"
        )
    body = {id(p) for p in body_of(model).parameters()}
    for name, p in model.named_parameters():
        if (
            id(p) in body
            and name not in fresh
            and (what == "body" or groups.depth(name, top + 1) <= (0 if what == "embeddings" else int(what)))
        ):
            p.requires_grad = False
            p.grad = None


def unfreezing(
    model: nn.Module, table: Mapping[str, Any], per_epoch: int
) -> Callable[[Training, Mapping[str, float]], None] | None:
    """Gradual unfreezing (ULMFiT): the head alone first, then one layer more, from the top, every
    `unfreeze_every` epochs.

    A callback of the loop, and a function of the step alone.
    """
    every = table["unfreeze_every"]
    if every is None:
        return None
    if not every > 0 or table["freeze"] is not None:
        raise ArgumentError("adapt.unfreeze_every must be above 0, and adapt.freeze not set")
    top = highest(model)

    def thaw(training: Training, metrics: Mapping[str, float]) -> None:
        lowest = top + 1 - int(training.step / (every * per_epoch))
        for name, p in model.named_parameters():
            p.requires_grad = groups.depth(name, top + 1) >= lowest
            if not p.requires_grad:
                p.grad = None

    return thaw


def published(model: nn.Module) -> Model:
    """The model that has a name elsewhere: what reads the features of a body is our own."""
    return cast("Model", model.body if isinstance(model, Features) else model)


def body_of(model: nn.Module) -> nn.Module:
    return getattr(model, "body", model)


def highest(model: nn.Module) -> int:
    """The number of the top layer, from 1."""
    found = [groups.layer_of(name) for name, _ in model.named_parameters()]
    return max((d for d in found if d is not None), default=0)
