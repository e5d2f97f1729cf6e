"""Layers whose weights have fewer bits than what they compute with: for inference.

They are made of a model's own layers, by `quantize_layer`, so that a model's file knows nothing of them. A
weight that two layers share stays shared. Activations are float32.
"""

from __future__ import annotations

from typing import Any

from plmcore._core import Tensor, ops
from plmcore.nn.embedding import Embedding
from plmcore.nn.linear import Linear
from plmcore.nn.module import Module
from plmcore.nn.parameter import Buffer, QuantizedWeight


class Quantized(Module):
    """weight: int8 [N, K] with scale float32 [N], which stands for weight * scale by rows; or bfloat16 [N, K]
    and scale None.
    """

    weight: Any  # a QuantizedWeight, where the layer had a Parameter
    scale: Buffer | None

    @property
    def fixed(self) -> str:  # type: ignore[override]
        return f"{self.weight.dtype} weights"

    def describe(self) -> str:
        return f"weight: {self.weight.dtype}{list(self.weight.shape)}"


class QuantizedLinear(Quantized, Linear):  # pyright: ignore[reportIncompatibleVariableOverride]
    """activation(x W^T scale + b).

    With int8 the rows of x are rounded, too, to 13 bits or 8, and the sums are exact.
    """

    bits = 13

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        bias = self.bias if bias is None else bias
        return ops.linear_quantized(x, self.weight, self.scale, bias, self.activation, self.bits)

    def part(self, x: Tensor, begin: int, size: int) -> Tensor:
        """`size` of the columns of x W^T from `begin` on."""
        return ops.slice(self(x), x.ndim - 1, begin, begin + size)


class QuantizedEmbedding(Quantized, Embedding):  # pyright: ignore[reportIncompatibleVariableOverride]
    """Rows of a table, times their scales."""

    dtype: Any = "float32"  # pyright: ignore

    def __call__(self, ids: Tensor) -> Tensor:
        """ids [...] -> rows of the table as float32 [..., C]."""
        return ops.embedding_quantized(self.weight, ids, self.scale)


def is_quantizable(layer: Module) -> bool:
    """Whether it computes as Linear or Embedding do, and nothing else."""
    return type(layer).__call__ in (Linear.__call__, Embedding.__call__)


def quantize_layer(
    layer: Module, weight: QuantizedWeight, scale: Buffer | None, bits: int = QuantizedLinear.bits
) -> None:
    """Turns a Linear or an Embedding into the layer that computes with this weight."""
    kind: Any = QuantizedLinear if isinstance(layer, Linear) else QuantizedEmbedding
    layer.__class__ = kind
    vars(layer).update(weight=weight, scale=scale)
    if isinstance(layer, QuantizedLinear):
        layer.bits = bits
