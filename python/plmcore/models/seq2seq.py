"""What encoder-decoder families share: how a decoder sees its source, shifted labels, outputs, heads.

A family's body is an EncoderDecoder. Shapes: B batch, T target length, S source length, C width,
H heads, D head width.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from plmcore import nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models import heads, padding
from plmcore.models.cache import KeyValues
from plmcore.models.config import Config
from plmcore.models.generates import Decodes
from plmcore.models.labels import DECODER
from plmcore.models.outputs import Output
from plmcore.models.padding import EVERYWHERE, Encoded, Packed
from plmcore.nn.attention import attend
from plmcore.nn.state import State


def shift_right(ids: Tensor, start: int, pad: int) -> Tensor:
    """start, ids[:, 0], ids[:, 1], ... without the last; -100 becomes `pad`: a decoder's input from its
    labels.  [B, T]
    """
    ids = ops.where(ids == -100, ops.full((), pad, ids.dtype, like=ids), ids)
    return ops.pad(ops.slice(ids, 1, 0, ids.shape[1] - 1), [0, 1], [0, 0], start)


# ---- the source ----


class Source:
    """An encoder's rows as a decoder looks at them.

    `collected`: the weights of cross-attention [B, H, T, S], when they are asked for.
    """

    def __init__(self, encoded: Encoded, weights: bool = False):
        self.rows, self.layout = encoded.rows, encoded.layout
        self.collected: list[Tensor] | None = [] if weights else None
        self.attention = {k: v for k, v in self.layout.attention.items() if k == "mask"}
        self.places = None
        self.kept: dict[int, Tensor] | None = None  # keys and values by layer, for a decoder with a cache
        if isinstance(self.layout, Packed):
            # Keys have no order: moved to the front they need no more than lengths, unless masked rows
            # stayed.
            self.places = self.layout.places()
            self.attention = self.attention or {"lengths": self.layout.lengths}

    def keys_values(self, attn: nn.CrossAttention) -> Tensor:
        """[B, S, 2, H, D], made of the rows that are no padding."""
        if self.kept is not None and id(attn) in self.kept:
            return self.kept[id(attn)]
        kv = attn.project(self.rows)
        kv = kv if self.places is None else ops.unpack_rows(kv, self.places, self.layout.B, self.layout.T)
        if self.kept is not None:
            self.kept[id(attn)] = kv
        return kv

    def tensors(self) -> dict[str, Tensor]:
        """Of what is kept: for a State."""
        kept = {f"source.kv.{k}": kv for k, kv in enumerate((self.kept or {}).values())}
        return {f"source.{name}": x for name, x in self.attention.items()} | kept

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Source:
        source = copy.copy(self)
        source.kept = {layer: tensors[f"source.kv.{k}"] for k, layer in enumerate(self.kept or {})}
        source.attention = {name: tensors[f"source.{name}"] for name in self.attention}
        return source

    def select(self, live: Tensor) -> Source:
        return self.rebuilt({name: ops.index_select(x, live) for name, x in self.tensors().items()})


def source_of(encoded: Encoded | None, weights: bool, cache: KeyValues | None) -> Source | None:
    """What a decoder looks at; with a cache it is made once. None: it is alone."""
    if cache is None:
        return None if encoded is None else Source(encoded, weights)
    if cache.source is None and encoded is not None:
        cache.source = Source(encoded)
        cache.source.kept = {}
    return cache.source


def cross_attend(attn: nn.CrossAttention, x: Tensor, layout: padding.Layout, source: Source) -> Tensor:
    """Cross-attention of a decoder's rows, in whatever layout, over the source.  x, result: rows"""
    q = layout.spread(ops.reshape(attn.q(x), (*x.shape[:-1], attn.heads, attn.depth)))  # [B, T, H, D]
    y = attend(
        source.collected,
        q,
        source.keys_values(attn),
        scale=attn.scale,
        dropout=attn.dropout if attn.training else 0.0,
        **source.attention,
    )
    y = layout.pack(ops.reshape(y, (*y.shape[:2], attn.heads * attn.depth)))  # rows
    return attn.out_dropout(attn.out(y))


def given(encoder_outputs: Any, attention_mask: Tensor | None, weights: bool = False) -> Encoded:
    """An encoder's result from an earlier call: its Output, a tuple that begins with the states, or the
    states [B, S, C].
    """
    states = encoder_outputs
    if isinstance(states, Mapping):
        states = states.get("encoder_last_hidden_state", states.get("last_hidden_state"))
    elif isinstance(states, Sequence) and states:
        states = states[0]
    if not isinstance(states, Tensor) or states.ndim != 3:
        shape = list(states.shape) if isinstance(states, Tensor) else type(states).__name__
        raise ArgumentError(
            f"encoder_outputs must hold the encoder's states [batch, length, width], got {shape}"
        )
    layout = padding.layout(states, attention_mask, weights=weights)
    layout.collected = None
    return Encoded(layout.pack(states), layout, None)


# ---- results ----


@dataclass
class Decoded(Encoded):
    """A decoder's result as rows.

    `encoded` is None for a decoder without its encoder, `crossed` the weights over the source.
    """

    encoded: Encoded | None = None
    crossed: list[Tensor] | None = None

    def output(self, **fields: Any) -> Output:
        own = super().output()
        crossed = None if self.crossed is None else tuple(self.layout.unpack_weights(w) for w in self.crossed)
        if self.encoded is None:
            return Output(
                **fields, hidden_states=own.hidden_states, attentions=own.attentions, cross_attentions=crossed
            )
        source = self.encoded
        asked = source.output()
        return Output(
            **fields,
            decoder_hidden_states=own.hidden_states,
            decoder_attentions=own.attentions,
            cross_attentions=crossed,
            encoder_last_hidden_state=lambda: source.layout.unpack(source.rows),
            encoder_hidden_states=asked.hidden_states,
            encoder_attentions=asked.attentions,
        )


# ---- the body ----


class EncoderDecoder(nn.Module):
    """A family gives config, encode and decode, and target_of
    where the decoder can do without ids of its own.
    """

    ENCODES: ClassVar[bool] = True  # as of Generates: the decoder reads a target, the encoder a source
    config: Any

    def encode(self, input_ids: Any, attention_mask: Tensor | None = None, **asked: Any) -> Encoded:
        raise NotImplementedError

    def decode(
        self,
        decoder_input_ids: Tensor,
        encoded: Encoded,
        decoder_attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
    ) -> Decoded:
        raise NotImplementedError

    def shifted(self, ids: Tensor) -> Tensor:
        """The decoder's input for these labels."""
        start, pad = self.config.decoder_start_token_id, self.config.pad_token_id
        if start is None or pad is None:
            raise ArgumentError(
                "the config has no decoder_start_token_id or no pad_token_id: pass decoder_input_ids"
            )
        return shift_right(ids, start, pad)

    def target_of(self, input_ids: Tensor | None) -> Tensor:
        raise ArgumentError("decoder_input_ids are missing: pass them, or labels= to a head that has a loss")

    def run(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        *,
        reads: padding.Reads = (),
        **asked: Any,
    ) -> Decoded:
        """Both stacks.

        `asked`: output_hidden_states, output_attentions, and what a family's decoder takes beside ids, which
        is named decoder_...; `reads`: as for padding.layout, of the decoder.
        """
        if input_ids is None and encoder_outputs is None:
            raise ArgumentError("one of input_ids and encoder_outputs must be given")
        if decoder_input_ids is None:
            decoder_input_ids = self.target_of(input_ids)
        if encoder_outputs is None:
            both = {name: value for name, value in asked.items() if not name.startswith("decoder_")}
            encoded = self.encode(input_ids, attention_mask, **both)
        else:
            encoded = given(encoder_outputs, attention_mask, asked.get("output_attentions", False))
        return self.decode(decoder_input_ids, encoded, decoder_attention_mask, **asked, reads=reads)

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        decoded = self.run(*args, **inputs)
        return decoded.output(last_hidden_state=decoded.layout.unpack(decoded.rows))


# ---- heads ----


class Writes(heads.Predicts):
    """Loss and logits of what a decoder writes. A family gives config, body and logits(rows) -> [..., V]."""

    ENCODES: ClassVar[bool] = True
    LABELS = (DECODER,)
    PLACED: ClassVar[bool] = False  # the decoder takes decoder_position_ids

    def __call__(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        *args: Any,
        labels: Tensor | None = None,
        **inputs: Any,
    ) -> Output:
        if labels is not None and decoder_input_ids is None:
            padding.check_ids(labels, called="labels")
            decoder_input_ids = self.body.shifted(labels)
        decoded = self.body.run(
            input_ids, attention_mask, decoder_input_ids, *args, **inputs, reads=(labels,)
        )
        return heads.language_model_output(decoded, labels, self.logits)

    def scored(self, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor) -> Encoded:
        """The decoder writes the labels."""
        return self.body.run(input_ids, attention_mask, self.body.shifted(labels), reads=(labels,))


class Seq2SeqLM(Writes, Decodes):
    """A decoder that keeps keys and values."""

    def prefill(  # type: ignore[override]  # the encoder reads input_ids
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        decoder_input_ids: Tensor,
        decoder_attention_mask: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        encoded = self.body.encode(input_ids, attention_mask)
        return super().prefill(decoder_input_ids, decoder_attention_mask, encoded)

    def decode(
        self, ids: Tensor, mask: Tensor | None, cache: KeyValues, encoded: Encoded | None = None
    ) -> Encoded:
        return self.body.decode(ids, encoded, mask, cache=cache)


class SequenceClassification(nn.Module):
    """logits [B, L] from the decoder's state at the last end-of-sequence token; the decoder reads the same
    text, shifted.
    """

    def __init__(
        self, config: Config, body: EncoderDecoder, width: int, dropout: float, weight_init: nn.init.Init
    ):
        self.config, self.body = config, body
        self.dense = nn.Linear(width, width, activation="tanh", weight_init=weight_init)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, config.num_labels, weight_init=weight_init)

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        *args: Any,
        labels: Tensor | None = None,
        **inputs: Any,
    ) -> Output:
        padding.check_ids(input_ids)
        if decoder_input_ids is None:
            decoder_input_ids = self.body.shifted(input_ids)
        places = last_places(input_ids, self.config.eos_token_id)  # [B, T]
        last = ops.where(places < 0, ops.full((), -100, "int64", like=places), places)
        decoded = self.body.run(input_ids, attention_mask, decoder_input_ids, *args, **inputs, reads=(last,))
        x = decoded.layout.spread(decoded.rows)  # [B, T, C]
        B, T, C = x.shape
        x = ops.index_select(ops.reshape(x, (B * T, C)), ops.max(places, 1))  # [B, C]
        logits = self.classifier(self.dropout(self.dense(self.dropout(x))))  # [B, L]
        loss = None if labels is None else heads.classification_loss(self.config, logits, labels)
        return decoded.output(logits=logits, loss=loss)


def last_places(ids: Tensor, token: int) -> Tensor:
    """b * T + t where the last `token` of a row stands, -1 elsewhere.

    Every row must have it, and all equally often.  [B, T]
    """
    B, T = ids.shape
    found = ids == token
    seen = padding.values(found)
    if seen is not None and len(np.unique(counts := seen.sum(1))) > 1:
        raise ArgumentError(
            f"input_ids must have the same number of end-of-sequence tokens {token} in every row, got "
            f"{counts.tolist()}"
        )
    if seen is not None and not seen.any(1).all():
        raise ArgumentError(f"input_ids must have an end-of-sequence token {token} in every row, got none")
    count = ops.cumsum(ops.cast(found, "int64"), 1)
    last = ops.logical_and(found, ops.equal(count, ops.max(count, 1, True)))
    places, none = ops.arange(0, B * T, like=ids), ops.full((), -1, "int64", like=ids)
    return ops.where(last, ops.reshape(places, (B, T)), none)


class QuestionAnswering(nn.Module):
    """start_logits and end_logits [B, T] of an answer, over the decoder's states; the decoder reads the same
    text, shifted.
    """

    def __init__(self, config: Config, body: EncoderDecoder, width: int, weight_init: nn.init.Init):
        self.config, self.body = config, body
        self.span = nn.Linear(width, 2, weight_init=weight_init)

    def __call__(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        *args: Any,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **inputs: Any,
    ) -> Output:
        if decoder_input_ids is None and input_ids is not None:
            padding.check_ids(input_ids)
            decoder_input_ids = self.body.shifted(input_ids)
        decoded = self.body.run(
            input_ids, attention_mask, decoder_input_ids, *args, **inputs, reads=(EVERYWHERE,)
        )
        B, T = decoded.layout.B, decoded.layout.T
        start, end = (ops.reshape(x, (B, T)) for x in ops.split(self.span(decoded.rows), (1, 1), 2))
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = heads.span_loss(start, end, start_positions, end_positions)
        return decoded.output(loss=loss, start_logits=start, end_logits=end)
