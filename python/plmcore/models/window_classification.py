"""ULMFiT's classifier of whole documents (Howard and Ruder 2018) on a body of recurrent layers.

It reads windows of `bptt` tokens, between which no gradient flows, and pools those that begin in the last
`max_len` tokens:

    [last; max; mean] -> BatchNorm, dropout, linear, ReLU -> BatchNorm, dropout, linear

Shapes: B batch, T length, C width of the body, L labels.
"""

from __future__ import annotations

from typing import Any

from plmcore import nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models import heads, padding
from plmcore.models.columns import Columns, spread
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded

NEVER = -1e30  # is no maximum


class WindowClassification(nn.Module):
    """logits [B, L] of each text. A model that reads backward reads each text from its end."""

    LEAST_ROWS = 2  # of a batch to train on: BatchNorm
    PLAIN = True  # texts need no special tokens around them

    def __init__(self, config: Any, body: Any):
        self.config, self.body = config, body
        width, small = 3 * config.d_embed, nn.init.constant(1e-3)
        self.norm1, self.norm2 = nn.BatchNorm(width), nn.BatchNorm(config.head_width)
        for norm in (self.norm1, self.norm2):
            norm.beta = nn.Parameter.new(small, norm.beta.shape)
        self.dropout1 = nn.Dropout(config.dropouts(True)["output_p"])
        self.dropout2 = nn.Dropout(config.head_p)
        self.up = nn.Linear(width, config.head_width, bias=False, activation="relu")
        self.down = nn.Linear(config.head_width, config.num_labels, bias=False)

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        labels: Tensor | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> Output:
        padding.check_ids(input_ids)
        if attention_mask is None and self.config.pad_token_id is not None:
            attention_mask = ops.cast(input_ids != self.config.pad_token_id, "int64")
        layout = padding.layout(input_ids, attention_mask)
        columns = Columns(layout, self.config.backward)
        rows = self.body.embed(layout.pack(input_ids))
        outputs, pooled = self.read(columns.of(rows), columns)
        x = self.up(self.dropout1(self.norm1(pooled)))
        logits = self.down(self.dropout2(self.norm2(x)))  # [B, L]
        states = [rows, *map(columns.rows, outputs)] if output_hidden_states else None
        return Encoded(rows, layout, states).output(
            logits=logits,
            loss=None if labels is None else heads.classification_loss(self.config, logits, labels),
        )

    def read(self, x: Tensor, columns: Columns) -> tuple[list[Tensor], Tensor]:
        """The output of each layer, and the pooled vector [B, 3 C]. Windows matter where there are masks and
        gradients: else the text is read in one go.
        """
        state, lengths = self.body.begin(x, None), columns.lengths
        if not self.training:
            outputs, _ = self.body.run(x, state, lengths)
            return outputs, self.pool(outputs[-1], columns)
        W, T = self.config.bptt, x.shape[1]
        if not isinstance(T, int):
            raise ArgumentError("awd-lstm: trace a classifier in eval mode")
        parts: list[list[Tensor]] = []
        for begin in range(0, T, W):
            end = min(begin + W, T)
            inside = None if lengths is None else within(lengths, begin, end)
            outputs, state = self.body.run(ops.slice(x, 1, begin, end), state.detach(), inside)
            parts.append(outputs)
        whole = [ops.concat(layer, 1) for layer in zip(*parts)]
        return whole, self.pool(whole[-1], columns)

    def pool(self, top: Tensor, columns: Columns) -> Tensor:
        """[last; max; mean] over the windows that begin in the last max_len tokens.  [B, T, C] -> [B, 3 C]"""
        B, T, C = top.shape
        lengths, at = spread(columns.of_lengths(), T), columns.positions()
        window = ops.full((), self.config.bptt, "int64", like=at)
        begins = ops.mul(
            ops.cast(ops.div(ops.cast(at, "float64"), ops.cast(window, "float64")), "int64"), window
        )
        most = ops.full((), self.config.max_len, "int64", like=at)
        used = ops.logical_and(
            ops.less(at, lengths), ops.less_equal(ops.sub(lengths, begins), most)
        )  # [B, T]
        hidden = ops.reshape(ops.logical_not(used), (B, T, 1))
        n = ops.reshape(ops.sum(ops.cast(used, top.dtype), 1), (B, 1))
        empty = ops.equal(n, ops.full((), 0.0, top.dtype, like=top))
        largest = ops.max(ops.masked_fill(top, hidden, NEVER), 1)
        total = ops.sum(ops.masked_fill(top, hidden, 0.0), 1)
        mean = ops.div(total, ops.maximum(n, ops.full((), 1.0, top.dtype, like=top)))
        return ops.concat([columns.last(top), ops.masked_fill(largest, empty, 0.0), mean], 1)


def within(lengths: Tensor, begin: int, end: int) -> Tensor:
    """Of each text the tokens in [begin, end)."""
    low, high = (ops.full((), n, "int64", like=lengths) for n in (0, end - begin))
    return ops.minimum(ops.maximum(ops.affine(lengths, 1, -begin), low), high)
