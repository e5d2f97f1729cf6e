from __future__ import annotations

from plmcore._core import Tensor
from plmcore.nn.dropout import Dropout
from plmcore.nn.linear import Linear
from plmcore.nn.module import Module


class MLP(Module):
    """Two linear layers with an activation between: the position-wise part of a Transformer block.  [..., C] -> [..., C]"""

    def __init__(self, width: int, hidden: int, act: str = "gelu", dropout: float = 0.0, bias: bool = True):
        self.up = Linear(width, hidden, bias, activation=act)
        self.down = Linear(hidden, width, bias)
        self.dropout = Dropout(dropout)

    def __call__(self, x: Tensor) -> Tensor:
        return self.dropout(self.down(self.up(x)))
