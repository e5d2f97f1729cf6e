"""What decoders share: embeddings, the run through the blocks,
and heads that read the next or the last token.

Shapes: B batch, T length, C width, V vocabulary. Rows as in plmcore.models.padding.
"""

from __future__ import annotations

from typing import Any

from plmcore import nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models import causal_attention, heads, padding
from plmcore.models.cache import KeyValues
from plmcore.models.config import Config
from plmcore.models.declaration import Size
from plmcore.models.generates import Decodes
from plmcore.models.labels import NEXT, TEXT, placed
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded, Layout, rows_at


class Embeddings(nn.Module):
    """token + position, and the token that names the segment where types are given.  ids [B, T] -> rows"""

    def __init__(
        self, vocab_size: int, positions: int, width: int, dropout: float, weight_init: nn.init.Init
    ):
        self.tokens = nn.Embedding(vocab_size, width, weight_init=weight_init)
        self.positions = nn.Embedding(positions, width, weight_init=weight_init)
        self.dropout = nn.Dropout(dropout)

    def __call__(self, layout: Layout, ids: Tensor, types: Tensor | None, positions: Tensor | None) -> Tensor:
        positions = (
            layout.positions() if positions is None else layout.pack(ops.broadcast_to(positions, ids.shape))
        )
        x = ops.add(self.tokens(layout.pack(ids)), self.positions(positions))  # [B, T, C] or [N, C]
        if types is not None:
            x = ops.add(x, self.tokens(layout.pack(types)))
        return self.dropout(x)


class Decoder(nn.Module):
    """The base of bodies: embeddings and blocks; a subclass may have a last norm."""

    FUTURE: float | None = None  # of causal_attention.AdditiveMask
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
        cache: KeyValues | None = None,
    ) -> Encoded:
        """cache: as in models.cache; a new one is filled."""
        most = self.embeddings.positions.weight.shape[0]
        padding.check_ids(input_ids, most, token_type_ids=token_type_ids, attention_mask=attention_mask)
        where = causal_attention.layout(
            input_ids, attention_mask, reads, output_attentions, cache=cache, future=self.FUTURE,
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
    places = ops.reshape(ops.arange(0, T, like=positions), (1, T))
    here = ops.equal(places, ops.reshape(positions, (positions.shape[0], 1)))
    return ops.where(here, *(ops.full((), n, "int64", like=positions) for n in (0, -100)))


def last_token(input_ids: Tensor, pad_token_id: int | None) -> Tensor:
    """The position of the last token that is not padding, whichever side that is on;
    0 where all is padding. [B, T] -> [B]
    """
    B, T = input_ids.shape
    places = ops.broadcast_to(ops.reshape(ops.arange(0, T, like=input_ids), (1, T)), (B, T))
    if pad_token_id is None:
        if isinstance(B, int) and B != 1:
            raise ArgumentError(
                f"{B} sequences, and the config has no pad_token_id to tell where they end; load the "
                f"model with pad_token_id="
            )
        return ops.max(places, 1)
    text = input_ids != pad_token_id
    return ops.max(ops.mul(places, ops.cast(text, "int64")), 1)


class CausalLM(heads.Predicts, Decodes):
    """logits [B, T, V] of the token that follows each."""

    LABELS: tuple[str, ...] = (NEXT,)

    def __init__(self, config: Config, body: Decoder, weight_init: nn.init.Init):
        tokens = body.embeddings.tokens.weight
        V, C = tokens.shape
        self.config, self.body = config, body
        self.lm_head = nn.Linear(
            C, V, bias=False, weight=tokens if config.tie_word_embeddings else None, weight_init=weight_init
        )

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        padding.check_ids(input_ids, labels=labels)
        return super().__call__(input_ids, labels=labels, **inputs)

    def decode(
        self, ids: Tensor, mask: Tensor | None, cache: KeyValues, encoded: Encoded | None = None
    ) -> Encoded:
        return self.body.encode(ids, mask, cache=cache)

    def logits(self, rows: Tensor) -> Tensor:
        return self.lm_head(rows)


class LastTokenClassification(nn.Module):
    """logits [B, L] of each sequence, from its last token.

    input_ids [B, K, T]: K readings of each, as of a pair in either order, whose last states are added.
    lm_labels: out.losses has also the loss of the next token, with the token table as output layer (GPT-1).
    """

    LABELS = (TEXT,)

    def __init__(self, config: Config, body: Decoder, width: int, weight_init: nn.init.Init):
        self.config, self.body = config, body
        self.score = nn.Linear(width, config.num_labels, bias=False, weight_init=weight_init)

    def __call__(
        self,
        input_ids: Tensor,
        *,
        labels: Tensor | None = None,
        lm_labels: Tensor | None = None,
        **inputs: Any,
    ) -> Output:
        readings = input_ids.shape[:2] if input_ids.ndim == 3 else None
        if readings is not None:
            input_ids, lm_labels, *others = map(flat, (input_ids, lm_labels, *inputs.values()))
            inputs = dict(zip(inputs, others, strict=True))
        padding.check_ids(input_ids)
        last = last_token(input_ids, self.config.pad_token_id)
        following = placed(NEXT, lm_labels)
        encoded = self.body.encode(input_ids, **inputs, reads=(marks(last, input_ids.shape[1]), following))
        states = rows_at(encoded, last)  # [B, C] or [B K, C]
        if readings is not None:
            states = ops.sum(ops.reshape(states, (*readings, states.shape[1])), 1)
        logits = self.score(states)  # [B, L]
        losses = {}
        if labels is not None:
            losses["labels"] = heads.classification_loss(self.config, logits, labels)
        if following is not None:
            tokens = self.body.embeddings.tokens.weight
            project = lambda rows: ops.linear(rows, tokens)
            losses["lm_labels"] = heads.labelled_loss(encoded, following, project)
        return encoded.output(logits=logits, loss=losses.get("labels"), losses=losses)


def flat(x: Any) -> Any:
    """[B, K, T] -> [B K, T]; what has no such shape stays."""
    if not isinstance(x, Tensor) or x.ndim != 3:
        return x
    B, K, T = x.shape
    return ops.reshape(x, (B * K, T))


def sized(s: Size) -> dict[str, Any]:
    """The keys of GPT's configs for a size."""
    return dict(n_layer=s.layers, n_embd=s.width, n_head=s.heads, n_positions=s.length,
                resid_pdrop=s.dropout, embd_pdrop=s.dropout, attn_pdrop=s.dropout)  # fmt: skip
