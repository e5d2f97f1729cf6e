"""Words as vectors made of their characters (Kim et al. 2016; ELMo).

Shapes: W characters of a word, D their width, C numbers of all filters, P of a word.
"""

from __future__ import annotations

from collections.abc import Sequence

from plmcore import nn
from plmcore._core import Tensor, ops


class Highway(nn.Module):
    """(1 - g) x + g relu(W_t x + b_t),  g = sigmoid(W_c x + b_c)"""

    def __init__(self, width: int):
        draw = nn.init.normal(width**-0.5)
        self.transform = nn.Linear(width, width, activation="relu", weight_init=draw)
        self.carry = nn.Linear(width, width, weight_init=draw, bias_init=nn.init.constant(-2.0))

    def __call__(self, x: Tensor) -> Tensor:
        g = ops.sigmoid(self.carry(x))
        return ops.add(x, ops.mul(g, ops.sub(self.transform(x), x)))


class CharacterCNN(nn.Module):
    """Convolutions of several widths, the maximum over characters, highway layers, a projection.
    ids [..., W] -> [..., P]; id 0 is nothing

    filters: pairs of a width and a number. outputs: P, None without a projection.
    """

    def __init__(
        self,
        characters: int,
        width: int,
        filters: Sequence[tuple[int, int]],
        highways: int,
        outputs: int | None,
        activation: str = "relu",
    ):
        C = sum(n for _, n in filters)
        self.characters = nn.Embedding(characters, width, 0, weight_init=nn.init.uniform(-1.0, 1.0))
        self.convs = nn.ModuleList(nn.Conv1d(width, n, size) for size, n in filters)
        self.highways = nn.ModuleList(Highway(C) for _ in range(highways))
        draw = nn.init.normal(C**-0.5)
        self.projection = None if outputs is None else nn.Linear(C, outputs, weight_init=draw)
        self.activation = {"relu": ops.relu, "tanh": ops.tanh}[activation]

    def __call__(self, ids: Tensor) -> Tensor:
        *rows, W = ids.shape
        x = self.characters(ids)  # [..., W, D]
        x = ops.reshape(x, (rows[0] if len(rows) == 1 else rows[0] * rows[1], W, x.shape[-1]))
        x = ops.concat([self.activation(ops.max(conv(x), 1)) for conv in self.convs], 1)  # [N, C]
        for highway in self.highways:
            x = highway(x)
        if self.projection is not None:
            x = self.projection(x)  # [N, P]
        return ops.reshape(x, (*rows, x.shape[1]))
