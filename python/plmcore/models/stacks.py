"""An encoder and a decoder of blocks, with the keys and heads that the Transformer, Marian, BART, mBART
and MASS have in common.

A block is called with (rows, layout), in a decoder with (rows, layout, source or None);
embeddings with (ids, layout).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from plmcore import nn
from plmcore._core import Tensor
from plmcore.models import causal_attention, heads, padding, seq2seq
from plmcore.models.cache import KeyValues
from plmcore.models.config import ACTIVATIONS, Config
from plmcore.models.declaration import Size
from plmcore.models.generates import Decodes
from plmcore.models.labels import FOLLOWING
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded
from plmcore.models.seq2seq import Decoded, Source


@dataclass(frozen=True, kw_only=True)
class StacksConfig(Config):
    vocab_size: int
    pad_token_id: int | None = 1
    eos_token_id: int | None = 2
    decoder_start_token_id: int | None = 2
    d_model: int = 1024
    max_position_embeddings: int = 1024
    encoder_layers: int = 12
    encoder_attention_heads: int = 16
    encoder_ffn_dim: int = 4096
    decoder_layers: int = 12
    decoder_attention_heads: int = 16
    decoder_ffn_dim: int = 4096
    activation_function: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    encoder_layerdrop: float = 0.0
    decoder_layerdrop: float = 0.0
    init_std: float = 0.02
    scale_embedding: bool = False
    tie_word_embeddings: bool = True

    def check(self) -> None:
        self.at_least(1, "vocab_size", "encoder_ffn_dim", "decoder_ffn_dim", "max_position_embeddings")
        self.at_least(0, "encoder_layers", "decoder_layers", "init_std")
        self.multiple("d_model", of="encoder_attention_heads")
        self.multiple("d_model", of="decoder_attention_heads")
        self.one_of("activation_function", ACTIVATIONS)
        self.probability("dropout", "attention_dropout", "activation_dropout")
        for key in ("encoder_layerdrop", "decoder_layerdrop"):
            if getattr(self, key) != 0:
                self.refuse(
                    key, f"must be 0 (whole layers are never dropped here; plm.load(dir, {key}=0) opens it)"
                )

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.normal(self.init_std)

    @property
    def token_init(self) -> nn.init.Init:
        return self.weight_init

    @property
    def position_init(self) -> nn.init.Init:
        """Of learned positions: as large as the scaled tokens that they are added to. With smaller ones a
        model hardly learns where tokens stand: Adam moves the scaled tokens sqrt(C) times as fast.
        """
        return nn.init.normal(self.init_std * self.embedding_scale)

    @property
    def embedding_scale(self) -> float:
        return math.sqrt(self.d_model) if self.scale_embedding else 1.0


# ---- the parts of blocks ----


def self_attention(cfg: StacksConfig, heads: int, causal: bool = False) -> nn.SelfAttention:
    draw = cfg.weight_init
    return nn.SelfAttention(
        cfg.d_model, heads, causal=causal, dropout=cfg.attention_dropout, out_dropout=cfg.dropout,
        weight_init=nn.init.rows(draw, draw, draw), out_init=draw,
    )  # fmt: skip


def feed_forward(cfg: StacksConfig, hidden: int) -> nn.MLP:
    return nn.MLP(
        cfg.d_model,
        hidden,
        ACTIVATIONS[cfg.activation_function],
        cfg.dropout,
        inner_dropout=cfg.activation_dropout,
        weight_init=cfg.weight_init,
    )


def cross_attention(cfg: StacksConfig) -> nn.CrossAttention:
    draw = cfg.weight_init
    return nn.CrossAttention(
        cfg.d_model, cfg.decoder_attention_heads, dropout=cfg.attention_dropout, out_dropout=cfg.dropout,
        weight_init=nn.init.rows(draw, draw), q_init=draw, out_init=draw,
    )  # fmt: skip


# ---- stacks ----


class Stack(nn.Module):
    """Embeddings, blocks, and a norm at the end where blocks are pre-norm."""

    def __init__(
        self, cfg: StacksConfig, embeddings: Any, blocks: Iterable[nn.Module], norm: nn.Module | None = None
    ):
        self.longest = cfg.max_position_embeddings
        self.embeddings, self.blocks, self.norm = embeddings, nn.ModuleList(blocks), norm

    def run(
        self, ids: Tensor, layout: padding.Layout, *source: Source | None, keep: bool, **beside: Tensor | None
    ) -> tuple[Tensor, list[Tensor] | None]:
        """The last rows, and with `keep` those of every layer from the embeddings on. beside: ids, for
        embeddings that take more.
        """
        x = self.embeddings(ids, layout, **beside)
        states = []
        for block in self.blocks:
            states += [x] if keep else []
            x = block(x, layout, *source)
        x = x if self.norm is None else self.norm(x)
        return x, [*states, x] if keep else None


class Encoder(Stack):
    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> Encoded:
        padding.check_ids(input_ids, self.longest)
        layout = padding.layout(input_ids, attention_mask, weights=output_attentions)
        x, states = self.run(input_ids, layout, keep=output_hidden_states)
        return Encoded(x, layout, states)


class Decoder(Stack):
    def __call__(
        self,
        input_ids: Tensor,
        encoded: Encoded | None = None,
        attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
        cache: KeyValues | None = None,
        **beside: Tensor | None,
    ) -> Decoded:
        """cache: as in models.cache; a new one is filled. beside: as for `run`."""
        alone = encoded is None
        side = "" if alone else "decoder_"
        padding.check_ids(
            input_ids, self.longest, f"{side}input_ids", **{f"{side}attention_mask": attention_mask}
        )
        layout = causal_attention.layout(input_ids, attention_mask, reads, output_attentions, cache=cache)
        source = seq2seq.source_of(encoded, output_attentions, cache)
        x, states = self.run(input_ids, layout, source, keep=output_hidden_states, **beside)
        return Decoded(x, layout, states, encoded, None if source is None else source.collected)


class Stacks(seq2seq.EncoderDecoder):
    """A body of an encoder and a decoder, which functions of (config, token table or None) make. share: they
    may have one table.
    """

    def __init__(
        self,
        config: StacksConfig,
        encoder: Callable[[Any, nn.Parameter | None], Encoder],
        decoder: Callable[[Any, nn.Parameter | None], Decoder],
        share: bool = True,
    ):
        V, C = config.vocab_size, config.d_model
        self.config = config
        self.shared = (
            nn.Embedding(V, C, config.pad_token_id, weight_init=config.token_init) if share else None
        )
        weight = self.shared.weight if self.shared is not None and config.tie_word_embeddings else None
        self.encoder, self.decoder = encoder(config, weight), decoder(config, weight)

    def encode(self, *args: Any, **asked: Any) -> Encoded:
        return self.encoder(*args, **asked)

    def decode(self, *args: Any, **asked: Any) -> Decoded:
        return self.decoder(*args, **asked)


# ---- heads ----


class StacksSeq2SeqLM(seq2seq.Seq2SeqLM):
    """Logits by the decoder's token table, plus a fixed bias, which is 0 unless a file has another."""

    def __init__(self, config: StacksConfig, body: Stacks):
        self.config, self.body = config, body
        self.output = output_layer(config, body.decoder)
        self.logits_bias = nn.Buffer.new(nn.init.zeros, self.output.weight.shape[:1])

    def logits(self, rows: Tensor) -> Tensor:
        return self.output(rows, self.logits_bias)


class DecoderAlone(nn.Module):
    """The body of a language model made of a decoder;
    `shared` is where files of the whole model have its token table.
    """

    def __init__(self, config: StacksConfig, decoder: Decoder):
        self.config, self.decoder = config, decoder
        weight = decoder.embeddings.tokens.weight
        self.shared = nn.Embedding(weight.shape[0], weight.shape[1], config.pad_token_id, weight=weight)


class StacksCausalLM(heads.Predicts, Decodes):
    """Labels are compared with the logits of their own position: shift them before."""

    LABELS = (FOLLOWING,)

    def __init__(self, config: StacksConfig, decoder: Decoder):
        self.config, self.body = config, DecoderAlone(config, decoder)
        self.output = output_layer(config, decoder)

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        *,
        labels: Tensor | None = None,
        **asked: Any,
    ) -> Output:
        encoded = None
        if encoder_hidden_states is not None:
            weights = asked.get("output_attentions", False)
            encoded = seq2seq.given(encoder_hidden_states, encoder_attention_mask, weights)
        decoded = self.body.decoder(input_ids, encoded, attention_mask, **asked, reads=(labels,))
        decoded.encoded = None  # is not of this model
        return heads.language_model_output(decoded, labels, self.output)

    def scored(self, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor) -> Encoded:
        return self.body.decoder(input_ids, None, attention_mask, reads=(labels,))

    def decode(
        self, ids: Tensor, mask: Tensor | None, cache: KeyValues, encoded: Encoded | None = None
    ) -> Encoded:
        return self.body.decoder(ids, None, mask, cache=cache)

    def logits(self, rows: Tensor) -> Tensor:
        return self.output(rows)


def output_layer(config: StacksConfig, decoder: Decoder) -> nn.Linear:
    tokens = decoder.embeddings.tokens.weight
    V, C = tokens.shape
    weight = tokens if config.tie_word_embeddings else None
    return nn.Linear(C, V, bias=False, weight=weight, weight_init=config.token_init)


def sized(s: Size) -> dict[str, Any]:
    half = max(2, s.layers // 2)
    return dict(d_model=s.width, encoder_layers=half, decoder_layers=half, encoder_attention_heads=s.heads,
                decoder_attention_heads=s.heads, encoder_ffn_dim=4 * s.width, decoder_ffn_dim=4 * s.width,
                max_position_embeddings=2 * s.length)  # fmt: skip
