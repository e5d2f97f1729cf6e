"""What decoders share: causal attention over a padded batch, and heads that read the next, the last or a chosen token.

Shapes: B batch, T length, S keys, C width, H heads, D head width, V vocabulary, K choices. Rows as in plmcore.models.padding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from plmcore import nn
from plmcore._core import ArgumentError, ShapeError, Tensor, ops
from plmcore.models import heads, padding
from plmcore.models.cache import Cache, Step
from plmcore.models.config import ACTIVATIONS, Config
from plmcore.models.outputs import Output
from plmcore.models.padding import EVERYWHERE, Encoded, Masked, Packed, Whole
from plmcore.nn.attention import attend

SUMMARIES = ("cls_index", "last", "first", "mean")
LOWEST = {"float64": -8e307, "float32": -1.6e38, "bfloat16": -1.6e38, "float16": -3e4}  # scores vanish beside these


class Blurred(Masked):
    """Padding runs too, and what a position may not see is pushed down, not left out: where all is, it looks at all alike.

    So published models treat a position that has nothing but padding before it. That matters where a head reads one: the first
    token of a text padded on the left is predicted from the padding before it.
    """

    def __init__(self, mask: Tensor, weights: bool, future: float | None):
        super().__init__(mask, weights)
        self.future = future

    def lower(self, scores: Tensor, band: int, stride: int) -> Tensor:
        """By LOWEST where a key is padding or out of reach; with `future` one out of reach has that as its score.  [B, H, T, T]"""
        B, T, dtype = self.B, self.T, scores.dtype
        zero, low = ops.full((), 0.0, dtype), ops.full((), LOWEST[dtype], dtype)
        hidden = ops.reshape(self.hidden, (B, 1, 1, T))
        reach = ops.reshape(in_reach(T, band, stride), (1, 1, T, T))
        if self.future is None:
            hidden = ops.logical_or(hidden, ops.logical_not(reach))  # [B, 1, T, T]
        else:
            scores = ops.where(reach, scores, ops.full((), self.future, dtype))
        return ops.add(scores, ops.where(hidden, low, zero))


def in_reach(T, band: int = 0, stride: int = 0) -> Tensor:
    """Whether query i may see key j: up to itself, of these the last `band` and each `stride`-th back.  bool [T, T]"""
    i, j = ops.reshape(ops.arange(0, T), (T, 1)), ops.reshape(ops.arange(0, T), (1, T))
    back = ops.sub(i, j)
    seen = ops.greater_equal(back, ops.full((), 0, "int64"))
    near = ops.less(back, ops.full((), band, "int64"))
    if stride:
        steps = ops.cast(ops.affine(ops.cast(back, "float64"), 1 / stride, 0.5 / stride), "int64")  # whole ones
        on = ops.equal(back, ops.mul(steps, ops.full((), stride, "int64")))
        near = ops.logical_or(near, on) if band else on
    return ops.logical_and(seen, near) if band or stride else seen


def layout(
    input_ids: Tensor,
    attention_mask: Tensor | None,
    reads: padding.Reads,
    weights: bool,
    *,
    sparse: bool = False,
    future: float | None = None,
) -> Whole:
    """As padding.layout, for causal attention. `sparse`: layers count distances, so that holes in a text must stay."""
    if attention_mask is not None:
        seen = padding.values(attention_mask)
        if any(_reads_blind(what, seen, sparse) for what in reads if what is not None):
            return Blurred(ops.cast(attention_mask, "bool"), weights, future)
        if sparse and (seen is None or _has_holes(seen)):
            return Masked(ops.cast(attention_mask, "bool"), weights)
    return padding.layout(input_ids.shape, attention_mask, reads, weights)


def _reads_blind(what: str | Tensor, seen: np.ndarray | None, sparse: bool) -> bool:
    """Whether a head may read a position that sees nothing but padding (with `sparse`: one that is padding)."""
    if seen is None:
        return True
    blind = seen == 0 if sparse else np.cumsum(seen != 0, 1) == 0
    read = np.ones_like(blind) if isinstance(what, str) else padding.values(what) != -100
    return bool((blind & read).any())


def _has_holes(seen: np.ndarray) -> bool:
    before = np.pad(seen != 0, ((0, 0), (1, 0)))[:, :-1]
    return bool((((seen != 0) & ~before).sum(1) > 1).any())


# ---- layers ----


class Attention(nn.SelfAttention):
    """Self-attention to the positions up to one's own.  rows -> rows"""

    def __call__(self, x: Tensor, layout: Whole) -> Tensor:
        qkv = ops.reshape(self.qkv(x), (*x.shape[:-1], 3, self.heads, self.depth))  # [B, T, 3, H, D]
        if layout.cache is not None:
            y = layout.cache.attend(self, qkv, layout)
        elif isinstance(layout, Blurred):
            y = self.blurred(qkv, layout)
        else:
            dropout = self.dropout if self.training else 0.0
            seen = {name: value for name, value in layout.attention.items() if name != "weights"}
            options = dict(causal=True, band=self.band, stride=self.stride, scale=self.scale, dropout=dropout, **seen)
            y = attend(layout.collected, qkv, **options)  # [B, T, H, D]
        return self.out_dropout(self.out(ops.reshape(y, (*x.shape[:-1], self.heads * self.depth))))  # rows

    def blurred(self, qkv: Tensor, layout: Blurred) -> Tensor:
        """Step by step: ops.attention keeps the log-sum of each row, which does not tell T scores as low as LOWEST from one, and
        its gradient would be wrong there.  [B, T, 3, H, D] -> [B, T, H, D]"""
        B, T, _, H, D = qkv.shape
        q, k, v = (ops.transpose(ops.reshape(x, (B, T, H, D)), (0, 2, 1, 3)) for x in ops.split(qkv, (1, 1, 1), 2))
        scores = ops.affine(ops.matmul(q, k, transpose_b=True), D**-0.5 if self.scale is None else self.scale)
        weights = ops.softmax(layout.lower(scores, self.band, self.stride))  # [B, H, T, T]
        if self.training and self.dropout:
            weights = ops.dropout(weights, self.dropout)
        if layout.collected is not None:
            layout.collected.append(weights)
        return ops.transpose(ops.matmul(weights, v), (0, 2, 1, 3))


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

    FUTURE: float | None = None  # of Blurred
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
        if cache is not None and cache.made >= 0:
            where: Whole = Step(cache)
        else:
            where = layout(
                input_ids, attention_mask, reads, output_attentions,
                sparse=any(block.attn.band or block.attn.stride for block in self.blocks), future=self.FUTURE,
            )  # fmt: skip
            where.cache = cache
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

    def __call__(self, *args, **inputs) -> Output:
        encoded = self.encode(*args, **inputs)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


# ---- heads ----


def marks(positions: Tensor, T) -> Tensor:
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

    def __init__(self, config: Config, body: Decoder, weight_init: nn.init.Init):
        tokens = body.embeddings.tokens.weight
        V, C = tokens.shape
        self.config, self.body = config, body
        self.lm_head = nn.Linear(
            C, V, bias=False, weight=tokens if config.tie_word_embeddings else None, weight_init=weight_init
        )

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs) -> Output:
        padding.check_ids(input_ids, labels=labels)
        labels = None if labels is None else heads.next_token_labels(labels)
        encoded = self.body.encode(input_ids, **inputs, reads=(labels,))
        return heads.language_model_output(encoded, labels, self.lm_head)


class LastTokenClassification(nn.Module):
    """logits [B, L] of each sequence, from its last token."""

    def __init__(self, config: Config, body: Decoder, width: int, weight_init: nn.init.Init):
        self.config, self.body = config, body
        self.score = nn.Linear(width, config.num_labels, bias=False, weight_init=weight_init)

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs) -> Output:
        padding.check_ids(input_ids)
        last = last_token(input_ids, self.config.pad_token_id)
        encoded = self.body.encode(input_ids, **inputs, reads=(marks(last, input_ids.shape[1]),))
        logits = self.score(rows_at(encoded, last))  # [B, L]
        return encoded.output(
            logits=logits, loss=None if labels is None else heads.classification_loss(self.config, logits, labels)
        )


class DoubleHeads(CausalLM):
    """The next token of each choice, and which choice is right: logits [B, K, T, V] and mc_logits [B, K].

    input_ids and what goes with them [B, K, T], or [K, T]; mc_token_ids: the token of each choice that speaks for it, the last
    unless given.
    """

    def __init__(self, config: Config, body: Decoder, width: int, weight_init: nn.init.Init):
        super().__init__(config, body, weight_init)
        self.choice = None
        if config.summary_use_proj:
            self.choice = nn.Linear(width, 1 if config.summary_proj_to_labels else width, weight_init=weight_init)
        self.activation = nn.Activation(ACTIVATIONS[config.summary_activation or "linear"])
        self.dropout = nn.Dropout(config.summary_first_dropout)

    def __call__(
        self,
        input_ids: Tensor,
        *,
        mc_token_ids: Tensor | None = None,
        labels: Tensor | None = None,
        mc_labels: Tensor | None = None,
        **inputs,
    ) -> Output:
        if input_ids.ndim not in (2, 3):
            raise ShapeError(
                f"double-heads: input_ids must be [batch, choices, length] or [choices, length], got {list(input_ids.shape)}"
            )
        *lead, T = input_ids.shape
        flat = (math.prod(lead), T)
        inputs = {k: ops.reshape(x, flat) if isinstance(x, Tensor) and x.ndim == 3 else x for k, x in inputs.items()}
        input_ids = ops.reshape(input_ids, flat)
        labels = None if labels is None else heads.next_token_labels(ops.reshape(labels, flat))
        speaker = self.speaker(input_ids, mc_token_ids)
        read = EVERYWHERE if speaker is None else marks(speaker, T)
        encoded = self.body.encode(input_ids, **inputs, reads=(read, labels))

        x = self.dropout(ops.mean(encoded.rows, 1) if speaker is None else rows_at(encoded, speaker))  # [B K, C]
        x = self.activation(x if self.choice is None else self.choice(x))
        choices = ops.reshape(x, lead if x.shape[1] == 1 else (*lead, x.shape[1]))
        mc_loss = None
        if mc_labels is not None:
            *rows, K = choices.shape
            rows = math.prod(rows)
            mc_loss = ops.cross_entropy(ops.reshape(choices, (rows, K)), ops.reshape(mc_labels, (rows,)))
        return self.output(encoded, lead, labels, mc_logits=choices, mc_loss=mc_loss)

    def output(self, encoded: Encoded, lead: Sequence, labels: Tensor | None, **fields) -> Output:
        """The language model's part by choices, as published: so are the last of the hidden states, and not the others."""

        def by_choice(rows: Tensor) -> Tensor:
            return ops.reshape(encoded.layout.unpack(rows), (*lead, encoded.layout.T, rows.shape[-1]))

        def logits() -> Tensor:
            return by_choice(self.lm_head(encoded.rows))  # [B, K, T, V]

        known, states, weights = labels is not None, encoded.states, encoded.layout.collected
        return Output(
            loss=heads.labelled_loss(encoded, labels, self.lm_head) if known else None,
            logits=logits if known else logits(),
            hidden_states=None if states is None else (*map(encoded.layout.unpack, states[:-1]), by_choice(states[-1])),
            attentions=None if weights is None else tuple(map(encoded.layout.unpack_weights, weights)),
            **fields,
        )

    def speaker(self, input_ids: Tensor, mc_token_ids: Tensor | None) -> Tensor | None:
        """The position that speaks for each choice; None: the mean of all.  [N]"""
        N, T = input_ids.shape
        kind = self.config.summary_type
        if kind == "mean":
            return None
        if kind == "cls_index" and mc_token_ids is not None:
            return ops.cast(ops.reshape(mc_token_ids, (N,)), "int64")
        places = ops.broadcast_to(ops.reshape(ops.arange(0, T), (1, T)), (N, T))
        return ops.min(places, 1) if kind == "first" else ops.max(places, 1)
