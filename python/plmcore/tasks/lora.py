"""LoRA: frozen linear layers with a trained update of low rank, W + alpha / r B A, in the files that PEFT
reads and writes.

    adapter/    adapter_config.json  adapter_model.safetensors

Where a family publishes queries, keys and values apart, each of the parts has an A and a B of its own, as
PEFT has them.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore import models, nn
from plmcore._core import ArgumentError, FormatError, Tensor, assign, ops
from plmcore.files.whole import atomic_write, read_json
from plmcore.formats import safetensors
from plmcore.models import names, quantized
from plmcore.nn.linear import TORCH_DEFAULT

if TYPE_CHECKING:
    from plmcore.models import Model

CONFIG, WEIGHTS, PREFIX = "adapter_config.json", "adapter_model.safetensors", "base_model.model."
TASK_TYPES = {
    "sequence-classification": "SEQ_CLS",
    "token-classification": "TOKEN_CLS",
    "question-answering": "QUESTION_ANS",
    "causal-lm": "CAUSAL_LM",
    "seq2seq-lm": "SEQ_2_SEQ_LM",
    "base": "FEATURE_EXTRACTION",
}


class LoraLinear(nn.Linear):
    """A linear layer with an update. lora_a [n r, in]; lora_b [out, r], of whose n parts each goes with r
    rows of lora_a.
    """

    parts: int
    scale: float
    transposed: bool
    lora_a: nn.Parameter
    lora_b: nn.Parameter

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        bias = self.bias if bias is None else bias
        y = ops.add(ops.linear(x, self.weight, bias, "none"), ops.affine(self.update(x), self.scale, 0.0))
        return y if self.activation == "none" else nn.Activation(self.activation)(y)

    def update(self, x: Tensor) -> Tensor:
        """What the adapter adds to the output of the layer."""
        low = ops.linear(x, self.lora_a)  # [..., n r]
        if self.parts == 1:
            return ops.linear(low, self.lora_b)
        rank, out = self.lora_b.shape[1], self.lora_b.shape[0] // self.parts
        lows = ops.split(low, [rank] * self.parts, low.ndim - 1)
        bs = ops.split(self.lora_b, [out] * self.parts, 0)
        return ops.concat([ops.linear(a, b) for a, b in zip(lows, bs, strict=True)], low.ndim - 1)


def attach(model: Model, rank: int, alpha: float, targets: Sequence[str]) -> None:
    """Freezes the body and gives the linear layers whose names end in one of `targets` an update,
    which is 0 at first.
    """
    found = linear_slots(model)
    chosen = {name: slot for name, slot in found.items() if name.endswith(tuple(f".{t}" for t in targets))}
    if not chosen:
        endings = sorted({".".join(name.split(".")[-2:]) for name in found})
        raise ArgumentError(
            f"adapt.lora_targets: no layer is called {' or '.join(targets)}; there are {', '.join(endings)}"
        )
    if rank < 1:
        raise ArgumentError(f"adapt.lora_rank must be at least 1, got {rank}")
    getattr(model, "body", model).requires_grad_(False)
    for slot in chosen.values():
        layer: Any = slot.owner
        n = len(slot.stored.parts)
        out, width = layer.weight.shape
        layer.__class__ = LoraLinear
        layer.parts, layer.scale, layer.transposed = n, alpha / rank, slot.stored.transposed
        layer.lora_a = nn.Parameter.new(TORCH_DEFAULT, (n * rank, width))
        layer.lora_b = nn.Parameter.new(nn.init.zeros, (out, rank))


def merge(model: nn.Module) -> None:
    """Adds the updates to the weights, and leaves the layers as they were."""
    for layer in model.modules():
        if isinstance(layer, LoraLinear):
            assign(layer.weight, Tensor(layer.weight.numpy() + delta(layer)))
            layer.__class__ = nn.Linear  # type: ignore[assignment]
            for name in ("lora_a", "lora_b", "parts", "scale", "transposed"):
                delattr(layer, name)


def delta(layer: LoraLinear) -> np.ndarray:
    """alpha / r B A of all parts.  [out, in]"""
    a, b = (np.split(t.numpy(), layer.parts) for t in (layer.lora_a, layer.lora_b))
    return layer.scale * np.concatenate([y @ x for x, y in zip(a, b, strict=True)])


def save(model: Model, folder: str | os.PathLike[str], base: str) -> None:
    """Updates and what was trained whole: the head, and parts of the body that were drawn at random.

    `base` is the directory that they belong to.
    """
    folder = pathlib.Path(folder)
    tensors: dict[str, np.ndarray] = {}
    targets: set[str] = set()
    layer: Any = None
    for name, slot in linear_slots(model).items():
        owner: Any = slot.owner
        layer = owner if isinstance(owner, LoraLinear) else layer
        if owner is not layer:
            continue
        for k, part in enumerate(slot.stored.parts):
            key = PREFIX + part.removesuffix(".weight")
            tensors[f"{key}.lora_A.weight"] = np.split(owner.lora_a.numpy(), owner.parts)[k].copy()
            tensors[f"{key}.lora_B.weight"] = np.split(owner.lora_b.numpy(), owner.parts)[k].copy()
            targets.add(key.rpartition(".")[2])
    if layer is None:
        raise ArgumentError("this model has no LoRA layers")
    body = {id(p) for p in getattr(model, "body", model).parameters()}
    heads: dict[str, np.ndarray] = {}
    for slot in plain_slots(model):
        if id(slot.parameter) not in body or slot.parameter.requires_grad:
            heads |= {
                name: t.numpy() for name, t in slot.stored.to_parts(slot.parameter.detach(), model.config)
            }
    tensors |= {PREFIX + name: np.ascontiguousarray(a) for name, a in heads.items()}
    prefix = models.family(model.config).PREFIX
    config = {
        "peft_type": "LORA",
        "task_type": TASK_TYPES.get(models.head_name(model)),
        "base_model_name_or_path": base,
        "inference_mode": True,
        "r": layer.lora_b.shape[1],
        "lora_alpha": layer.scale * layer.lora_b.shape[1],
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": layer.transposed,
        "target_modules": sorted(targets),
        "modules_to_save": sorted({name.removeprefix(prefix).split(".")[0] for name in heads}) or None,
        "init_lora_weights": True,
    }
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.write(folder / WEIGHTS, tensors, {"format": "pt"})
    with atomic_write(folder / CONFIG) as f:
        f.write((json.dumps(config, indent=2, sort_keys=True) + "\n").encode())


def load(model: Model, folder: str | os.PathLike[str]) -> None:
    """Adds an adapter, ours or PEFT's, to the weights of a model with the head it was trained with."""
    folder = pathlib.Path(folder)
    config = read_json(folder / CONFIG)
    if config.get("peft_type") != "LORA" or not isinstance(config.get("r"), int) or config["r"] < 1:
        raise FormatError(f"'{folder / CONFIG}' is not the config of a LoRA adapter")
    scale = config.get("lora_alpha", config["r"]) / (
        config["r"] ** 0.5 if config.get("use_rslora") else config["r"]
    )
    tensors = {name.removeprefix(PREFIX): t for name, t in safetensors.read(folder / WEIGHTS)[0].items()}
    unused, new = set(tensors), {}
    for slot in plain_slots(model):
        value = np.array(slot.parameter.numpy())
        for k, part in enumerate(slot.stored.parts):
            key, rows = (
                part.removesuffix(".weight"),
                np.split(value, len(slot.stored.parts))[k] if value.ndim else value,
            )
            found = [f"{key}.lora_{side}.weight" for side in "AB"]
            if set(found) <= unused:
                a, b = (tensors[name].numpy().astype(value.dtype) for name in found)
                if b.shape[0] != rows.shape[0] or a.shape[1:] != rows.shape[1:] or a.shape[0] != b.shape[1]:
                    raise FormatError(
                        f"'{folder}': {key} is {list(rows.shape)}, its update {list(b.shape)} x "
                        f"{list(a.shape)}"
                    )
                rows += scale * b @ a
                unused -= set(found)
                new[slot.name] = value
            elif part in unused and len(slot.stored.parts) == 1:
                new[slot.name] = slot.stored.to_ours([tensors[part]], slot.parameter.shape).numpy()
                unused.discard(part)
    if unused:
        raise FormatError(
            f"'{folder}' is of another model: it has no place for {', '.join(sorted(unused)[:5])}"
        )
    model.load_state_dict(new, strict=False)


def plain_slots(model: Model) -> list[names.Slot]:
    """The parameters that are published: without updates."""
    if weights := quantized.weights_in(model):
        raise ArgumentError(
            f'LoRA: the model has {weights} weights; plm.load(dir, dtype="float32") makes ones that '
            f"take updates"
        )
    kept: dict[LoraLinear, Mapping[str, Any]] = {}
    for layer in list(model.modules()):
        if isinstance(layer, LoraLinear):
            kept[layer] = {name: vars(layer).pop(name) for name in ("lora_a", "lora_b")}
    found = names.slots(models.family(model.config), model)
    for layer, values in kept.items():
        vars(layer).update(values)
    return found


def linear_slots(model: Model) -> dict[str, names.Slot]:
    """The linear layers of the body, by their names."""
    found = plain_slots(model)
    return {
        s.name.removesuffix(".weight"): s
        for s in found
        if isinstance(s.owner, nn.Linear) and s.attribute == "weight"
    }
