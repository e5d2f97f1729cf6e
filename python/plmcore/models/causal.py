"""What decoders share: embeddings, the run through the blocks, and heads that read the next or the last token.

Shapes: B batch, T length, C width, V vocabulary. Rows as in plmcore.models.padding.
"""

from __future__ import annotations

from typing import Any

from plmcore import nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models import causal_attention, heads, padding
from plmcore.models.cache import Cache
from plmcore.models.config import Config
from plmcore.models.labels import NEXT
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded, Packed, Whole


class Embeddings(nn.Module):
    """token + position, and the token that names the segment where types are given.  ids [B, T] -> rows"""

    def __init__(self, vocab_size: int, positions: int, width: int, dropout: float, weight_init: nn.init.Init):
        self.tokens = nn.Embedding(vocab_size, width, weight_init=weight_init)
        self.positions = nn.Embedding(positions, width, weight_init=weight_init)
        self.dropout = nn.Dropout(dropout)

    def __call__(self, layout: Whole, ids: Tensor, types: Tensor | None, positions: Tensor | None) -> Tensor:
        positions = layout.positions() if positions is None else layout.pack(ops.broadcast_to(positions, ids.shape))
        x = ops.add(self.tokens(layout.pack(ids)), self.positions(positions))  # [B, T, C] or [N, C]
        if types is not None:
            x = ops.add(x, self.tokens(layout.pack(types)))
        return self.dropout(x)


class Decoder(nn.Module):
    """The base of bodies: embeddings and blocks; a subclass may have a last norm."""

    FUTURE: float | None = None  # of causal_attention.Blurred
    config: Config
    embeddings: Embeddings
    blocks: nn.ModuleList
    norm: nn.LayerNorm | None = None

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
        cache: Cache | None = None,
    ) -> Encoded:
        """cache: as in models.cache; a new one is filled."""
        most = self.embeddings.positions.weight.shape[0]
        padding.check_ids(input_ids, most, token_type_ids=token_type_ids, attention_mask=attention_mask)
        where = causal_attention.layout(
            input_ids.shape, attention_mask, reads, output_attentions, cache=cache, future=self.FUTURE,
            sparse=any(block.attn.band or block.attn.stride for block in self.blocks),
        )  # fmt: skip
        x = self.embeddings(where, input_ids, token_type_ids, position_ids)
        states = [x] if output_hidden_states else None
        for block in self.blocks:
            x = block(x, where)
            if states is not None:
                states.append(x)
        if self.norm is not None:
            x = self.norm(x)
            if states is not None:
                states[-1] = x
        return Encoded(x, where, states)

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        encoded = self.encode(*args, **inputs)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


# ---- heads ----


def marks(positions: Tensor, T: Any) -> Tensor:
    """Labels [B, T] on one position of each sequence, for `reads`.  positions int64 [B]"""
    here = ops.equal(ops.reshape(ops.arange(0, T), (1, T)), ops.reshape(positions, (positions.shape[0], 1)))
    return ops.where(here, ops.full((), 0, "int64"), ops.full((), -100, "int64"))


def rows_at(encoded: Encoded, positions: Tensor) -> Tensor:
    """The row of one position of each sequence, which the head's `reads` must have.  positions int64 [B] -> [B, C]"""
    layout, rows = encoded.layout, encoded.rows
    B, T, C = layout.B, layout.T, rows.shape[-1]
    if isinstance(layout, Packed):
        numbers = ops.unpack_rows(ops.arange(0, rows.shape[0]), layout.index, B, T)
    else:
        rows, numbers = ops.reshape(rows, (B * T, C)), ops.reshape(ops.arange(0, B * T), (B, T))
    return ops.index_select(rows, ops.reshape(ops.gather(numbers, ops.reshape(positions, (B, 1)), 1), (B,)))


def last_token(input_ids: Tensor, pad_token_id: int | None) -> Tensor:
    """The position of the last token that is not padding, whichever side that is on; 0 where all is padding.  [B, T] -> [B]"""
    B, T = input_ids.shape
    places = ops.broadcast_to(ops.reshape(ops.arange(0, T), (1, T)), (B, T))
    if pad_token_id is None:
        if isinstance(B, int) and B != 1:
            raise ArgumentError(
                f"{B} sequences, and the config has no pad_token_id to tell where they end; load the model with pad_token_id="
            )
        return ops.max(places, 1)
    text = ops.not_equal(input_ids, ops.full((), pad_token_id, input_ids.dtype))
    return ops.max(ops.mul(places, ops.cast(text, "int64")), 1)


class CausalLM(nn.Module):
    """logits [B, T, V] of the token that follows each."""

    LABELS = (NEXT,)

    def __init__(self, config: Config, body: Decoder, weight_init: nn.init.Init):
        tokens = body.embeddings.tokens.weight
        V, C = tokens.shape
        self.config, self.body = config, body
        self.lm_head = nn.Linear(
            C, V, bias=False, weight=tokens if config.tie_word_embeddings else None, weight_init=weight_init
        )

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        padding.check_ids(input_ids, labels=labels)
        labels = None if labels is None else heads.next_token_labels(labels)
        encoded = self.body.encode(input_ids, **inputs, reads=(labels,))
        return heads.language_model_output(encoded, labels, self.lm_head)


class LastTokenClassification(nn.Module):
    """logits [B, L] of each sequence, from its last token."""

    def __init__(self, config: Config, body: Decoder, width: int, weight_init: nn.init.Init):
        self.config, self.body = config, body
        self.score = nn.Linear(width, config.num_labels, bias=False, weight_init=weight_init)

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        padding.check_ids(input_ids)
        last = last_token(input_ids, self.config.pad_token_id)
        encoded = self.body.encode(input_ids, **inputs, reads=(marks(last, input_ids.shape[1]),))
        logits = self.score(rows_at(encoded, last))  # [B, L]
        return encoded.output(
            logits=logits, loss=None if labels is None else heads.classification_loss(self.config, logits, labels)
        )
