"""Cross-View Training of a recurrent translation model: two decoders that see less learn to write what the
primary decoder writes.

    attention   some of its weights over the source are dropped
    future      the state that the primary decoder predicts token t from predicts token t + 1

Both share the embeddings and the recurrent layers with the primary decoder. An attention and an output layer
are their own.

Shapes: B batch, T target length, M tokens that count, H width of the decoder.
"""

from __future__ import annotations

from typing import Any

from plmcore import losses, nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models.alignment import Alignment
from plmcore.models.config import Config
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded
from plmcore.models.rnn_seq2seq import Projection, RNNSeq2SeqConfig

VIEWS = ("attention", "future")
DROPPED = 0.2  # of the weights over the source


def check(config: Config) -> None:
    """ArgumentError for a model whose decoder has no part that such views could share."""
    if not isinstance(config, RNNSeq2SeqConfig):
        raise ArgumentError(f"text without translations is for rnn-seq2seq, and this is {config.model_type}")
    if config.attention == "none" or config.fed_width:
        raise ArgumentError(
            "text without translations needs a decoder whose states do not depend on its attention: "
            f"attention dot, general or concat, without input feeding; this is {config.attention}"
            f"{' with input feeding' if config.input_feeding else ''}"
        )


class View(nn.Module):
    """An attention and an output layer over the states of a decoder."""

    def __init__(self, config: RNNSeq2SeqConfig, dropped: float = 0.0):
        self.attn = Alignment(config.attention, config.width, config.source_width, config.weight_init)
        self.out = Projection(config)
        self.dropped = dropped

    def __call__(self, states: Tensor, encoded: Encoded) -> Tensor:
        """What each state says.  [B, T, H] -> [B, T, H]"""
        memory = self.attn.memory(encoded)
        context, weights = self.attn(states, memory)
        if self.training and self.dropped:
            context = ops.matmul(ops.dropout(weights, self.dropped), memory.values)
        return self.attn.combined(context, states)


class TranslationViews(nn.Module):
    """A translation model with auxiliary decoders, while it trains. A call is one of the primary model."""

    def __init__(self, primary: Any):
        check(primary.config)
        self.config, self.primary = primary.config, primary
        self.auxiliary = nn.ModuleDict(
            {view: View(self.config, DROPPED if view == "attention" else 0.0) for view in VIEWS}
        )

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        return self.primary(*args, **inputs)

    def unlabelled_sums(
        self, input_ids: Tensor, attention_mask: Tensor | None, targets: Tensor
    ) -> dict[str, Tensor]:
        """Of each view the sum over sentences of the mean -log p of what the primary decoder wrote.

        targets [B, T]: its tokens, -100 behind them
        """
        encoded = self.primary.encode(input_ids, attention_mask)
        decoded = self.primary.decode(self.primary.shifted(targets), encoded)
        states = decoded.layout.unpack(decoded.tops)  # [B, T, H]
        B, T = targets.shape
        none = ops.full((B, 1), -100, targets.dtype, like=targets)
        ahead = ops.concat([ops.slice(targets, 1, 1, T), none], 1)
        return {
            view: of_sentences(module, module(states, encoded), ahead if view == "future" else targets)
            for view, module in self.auxiliary.items()
        }


def of_sentences(view: View, rows: Tensor, targets: Tensor) -> Tensor:
    """The sum over sentences of the mean -log p of their tokens.  rows [B, T, H]; targets [B, T]"""
    counts = ops.cast(targets != -100, rows.dtype)
    n = ops.maximum(ops.sum(counts, 1, True), ops.full((), 1.0, rows.dtype, like=rows))
    share = ops.reshape(ops.div(counts, n), (targets.shape[0] * targets.shape[1],))
    found, wanted, index = ops.select_labelled(rows, targets)  # [M, H], [M], [M]
    apart = losses.cross_entropy(view.out(found), wanted, reduction="none")
    return ops.sum(ops.mul(apart, ops.index_select(share, index)))
