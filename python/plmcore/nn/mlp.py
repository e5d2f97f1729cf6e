from __future__ import annotations

from plmcore._core import Tensor
from plmcore.nn.dropout import Dropout
from plmcore.nn.init import Init
from plmcore.nn.linear import TORCH_DEFAULT, Linear
from plmcore.nn.module import Module


class MLP(Module):
    """Two linear layers with an activation between: the position-wise part of a Transformer block.
    [..., C] -> [..., C]

    dropout falls on the result, inner_dropout on what is between. down_init draws the second weight,
    weight_init both unless it is given.
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        act: str = "gelu",
        dropout: float = 0.0,
        bias: bool = True,
        *,
        inner_dropout: float = 0.0,
        weight_init: Init = TORCH_DEFAULT,
        down_init: Init | None = None,
    ):
        self.up = Linear(width, hidden, bias, activation=act, weight_init=weight_init)
        self.down = Linear(hidden, width, bias, weight_init=down_init or weight_init)
        self.inner_dropout = Dropout(inner_dropout)
        self.dropout = Dropout(dropout)

    def __call__(self, x: Tensor) -> Tensor:
        """x [..., C] -> [..., C]."""
        return self.dropout(self.down(self.inner_dropout(self.up(x))))
