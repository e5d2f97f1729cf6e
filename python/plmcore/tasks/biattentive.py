"""The biattentive classification network (McCann et al. 2017): two texts, or one twice, read each other.

    A = X Y^T;  C_y = softmax(A) Y;  X|y = biLSTM [X; X - C_y; X * C_y], and the same for Y
    [max; mean; min; self-attentive sum] over either; three layers of maxout after batch norms

Shapes: B batch, T and S lengths, F features, H cells of a direction.
"""

from __future__ import annotations

from plmcore import nn
from plmcore._core import Tensor, ops

HIDDEN = -1e9  # the score of what is not there
PIECES = 4  # of a maxout
LAYERS = 3
REDUCE = 2  # how much narrower each of them is


class Maxout(nn.Module):
    """The largest of PIECES linear maps, after a batch norm.  [B, in] -> [B, out]"""

    def __init__(self, inputs: int, outputs: int):
        self.norm = nn.BatchNorm(inputs)
        self.maps = nn.Linear(inputs, outputs * PIECES)
        self.outputs = outputs

    def __call__(self, x: Tensor) -> Tensor:
        y = self.maps(self.norm(x) if self.training and x.shape[0] > 1 else self.by_running(x))
        return ops.max(ops.reshape(y, (x.shape[0], self.outputs, PIECES)), 2)

    def by_running(self, x: Tensor) -> Tensor:
        """Of one example, or in eval mode: by the running statistics."""
        return self.norm.scaled(ops.sub(x, self.norm.running_mean), self.norm.running_var)


class Biattentive(nn.Module):
    """Features of two texts -> logits.  x [B, T, F], y [B, S, F], their masks; -> [B, labels]"""

    def __init__(self, features: int, hidden: int, labels: int, dropout: float):
        H = hidden
        self.ffn = nn.Linear(features, H, activation="relu")
        self.encoder = nn.LSTM(H, H, bidirectional=True)
        self.integrate_x, self.integrate_y = (nn.LSTM(6 * H, H, bidirectional=True) for _ in range(2))
        self.attend_x, self.attend_y = nn.Linear(2 * H, 1), nn.Linear(2 * H, 1)
        self.dropout = nn.Dropout(dropout)
        widths = [16 * H // REDUCE**i for i in range(LAYERS)] + [labels]
        self.maxouts = nn.ModuleList(Maxout(a, b) for a, b in zip(widths, widths[1:]))

    def __call__(self, x: Tensor, x_mask: Tensor, y: Tensor, y_mask: Tensor) -> Tensor:
        """Masks are 1 where there are words, which stand first."""
        x, y = self.read(x, x_mask), self.read(y, y_mask)  # [B, T, 2 H], [B, S, 2 H]
        A = ops.matmul(x, ops.transpose(y, (0, 2, 1)))  # [B, T, S]
        of_y = ops.matmul(attention(A, y_mask), y)  # [B, T, 2 H]
        of_x = ops.matmul(attention(ops.transpose(A, (0, 2, 1)), x_mask), x)  # [B, S, 2 H]
        x, _ = self.integrate_x(beside(x, of_y), None, lengths(x_mask))
        y, _ = self.integrate_y(beside(y, of_x), None, lengths(y_mask))
        z = ops.concat([pooled(x, x_mask, self.attend_x), pooled(y, y_mask, self.attend_y)], 1)  # [B, 16 H]
        for maxout in self.maxouts:
            z = maxout(self.dropout(z))
        return z

    def read(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.encoder(self.ffn(self.dropout(x)), None, lengths(mask))[0]


def lengths(mask: Tensor) -> Tensor:
    return ops.sum(ops.cast(mask, "int64"), 1)


def beside(x: Tensor, other: Tensor) -> Tensor:
    return ops.concat([x, ops.sub(x, other), ops.mul(x, other)], 2)


def hidden_in(mask: Tensor) -> Tensor:
    return ops.logical_not(ops.cast(mask, "bool"))


def attention(scores: Tensor, mask: Tensor) -> Tensor:
    """softmax over the words that the mask has.  scores [B, T, S]; mask [B, S]"""
    B, S = mask.shape
    return ops.softmax(ops.masked_fill(scores, ops.reshape(hidden_in(mask), (B, 1, S)), HIDDEN))


def pooled(x: Tensor, mask: Tensor, attend: nn.Linear) -> Tensor:
    """[max; mean; min; self-attentive sum] over words.  [B, T, C] -> [B, 4 C]"""
    B, T, C = x.shape
    hidden = ops.reshape(hidden_in(mask), (B, T, 1))
    count = ops.reshape(ops.cast(lengths(mask), x.dtype), (B, 1))
    shares = ops.softmax(ops.masked_fill(ops.reshape(attend(x), (B, T)), hidden_in(mask), HIDDEN))
    return ops.concat(
        [
            ops.max(ops.masked_fill(x, hidden, HIDDEN), 1),
            ops.div(ops.sum(ops.masked_fill(x, hidden, 0.0), 1), count),
            ops.min(ops.masked_fill(x, hidden, -HIDDEN), 1),
            ops.reshape(ops.matmul(ops.reshape(shares, (B, 1, T)), x), (B, C)),
        ],
        1,
    )
