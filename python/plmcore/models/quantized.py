"""Model directories whose weights have fewer bits (docs/adr/0010).

config.json says so under quantization_config. Tensors have our own names and lie as the layers want them, so
that the mapped file is what they compute with:

    body.blocks.0.attn.qkv.weight   int8 [N, K]     for int8, with
    body.blocks.0.attn.qkv.scale    float32 [N]     the row n is weight[n] * scale[n]
    body.blocks.0.attn.qkv.weight   bfloat16 [N, K] for bfloat16

All that is not quantised is float32. Which layers are quantised is what the file has of them.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore._core import ArgumentError, FormatError, Tensor
from plmcore.models import names
from plmcore.models.config import Config
from plmcore.nn import Linear, Module, init
from plmcore.nn.parameter import UnsetBuffer, UnsetQuantizedWeight
from plmcore.nn.quantized import Quantized, is_quantizable, quantize_layer

if TYPE_CHECKING:
    from plmcore.models import Model

KEY = "quantization_config"
# under "method": without a quant_method transformers refuses the directory; one that it does not know it
# passes over, with fresh weights
METHOD = "plmcore"
WEIGHTS = ("int8", "bfloat16")


# ---- config.json ----


def weights_of(config: Config) -> str | None:
    """The dtype of the quantised weights that a config tells of; None for an ordinary directory."""
    settings = config.extra.get(KEY)
    if not isinstance(settings, Mapping) or settings.get("method") != METHOD:
        return None
    if settings.get("weights") not in WEIGHTS:
        raise FormatError(
            f"config.json: the weights of {KEY} must be one of {', '.join(WEIGHTS)}, got "
            f"{settings.get('weights')!r}"
        )
    return settings["weights"]


def with_weights(config: Config, weights: str | None) -> Config:
    """The config of a directory with such weights, or with ordinary ones."""
    extra: dict[str, Any] = dict(config.extra)
    if weights is not None:
        extra[KEY] = {"method": METHOD, "weights": weights}
    elif weights_of(config) is not None:
        del extra[KEY]
    return config.replace(extra=extra)


# ---- models ----


def weights_in(model: Module) -> str | None:
    """The dtype of a model's quantised weights, if it has any."""
    return next((layer.weight.dtype for layer in model.modules() if isinstance(layer, Quantized)), None)


def quantizable(model: Model, group: list[names.Slot]) -> bool:
    """Whether a parameter is the weight of linear layers, or a table of tokens, or both: positions and
    segments have few rows and add to every one, so that rounding them saves nothing worth its error.
    """
    if any(slot.attribute != "weight" or not is_quantizable(slot.owner) for slot in group):
        return False
    config, rows = model.config, group[0].parameter.shape[0]
    sizes = (config.vocab_size, getattr(config, "decoder_vocab_size", None))
    return any(isinstance(slot.owner, Linear) for slot in group) or rows in sizes


def activation_bits(head: str) -> int:
    """Beside int8 weights.

    A step of generation waits for the weights, so that 13 bits cost nothing; an encoder multiplies many rows,
    and 8 bits take half the time on processors that multiply bytes. What a head has, it has on every
    processor and for any number of rows.
    """
    return 13 if head in ("causal-lm", "seq2seq-lm") else 8


def prepare(model: Model, head: str, tensors: Mapping[str, Tensor], weights: str) -> Model:
    """Makes quantised layers of those of a model built inside nn.init.skipped() whose
    weights the file has so.
    """
    for group in names.groups(names.OWN, model):
        shape = tuple(group[0].parameter.shape)
        spelled = [
            name
            for slot in group
            for found in names.find(slot.stored, tensors, names.OWN.PREFIX)
            for name in found
        ]
        if not any(tensors[n].dtype == weights and tuple(tensors[n].shape) == shape for n in spelled):
            continue
        if not all(slot.attribute == "weight" and is_quantizable(slot.owner) for slot in group):
            if weights == "int8":
                raise FormatError(
                    f"'{spelled[0]}' must not be int8: it is not the weight of a linear layer or a table"
                )
            continue
        weight = UnsetQuantizedWeight(init.zeros, shape, stored_as=weights)
        scale = UnsetBuffer(init.zeros, shape[:1], stored_as="float32") if weights == "int8" else None
        for slot in group:
            quantize_layer(slot.owner, weight, scale, activation_bits(head))
    return model


# ---- tensors ----


def scale_name(weight: str) -> str:
    return weight.removesuffix("weight") + "scale"


def check(folder: pathlib.Path, tensors: Mapping[str, Tensor]) -> None:
    """Every int8 weight must have its scales, and sound ones."""
    for name, tensor in tensors.items():
        if tensor.dtype != "int8":
            continue
        scale = tensors.get(scale_name(name))
        if scale is None:
            raise FormatError(
                f"'{folder}' cannot be read: '{name}' is int8 and '{scale_name(name)}' is missing"
            )
        if scale.dtype != "float32" or tensor.ndim != 2 or tuple(scale.shape) != tuple(tensor.shape[:1]):
            raise FormatError(
                f"'{folder}' cannot be read: '{scale_name(name)}' must be float32, "
                f"one for each row of '{name}' {list(tensor.shape)}, got {scale.dtype} {list(scale.shape)}"
            )
        values = scale.numpy()
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise FormatError(
                f"'{folder}' cannot be read: '{scale_name(name)}' must be finite and not negative"
            )


def plain(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The values that quantised tensors stand for, in float32."""
    scales = {scale_name(name) for name, t in tensors.items() if t.dtype == "int8"}
    result = {name: t for name, t in tensors.items() if name not in scales}
    for name, t in result.items():
        if t.dtype == "int8":
            result[name] = Tensor(t.numpy() * tensors[scale_name(name)].numpy()[:, None])
    return result


def refuse(folder: pathlib.Path, config: Config, what: str) -> None:
    if (weights := weights_of(config)) is not None:
        raise ArgumentError(f"{what}: '{folder}' has {weights} weights; take the directory it was made from")
