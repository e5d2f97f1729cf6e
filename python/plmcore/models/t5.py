"""T5: every task as text to text, by an encoder and a decoder whose positions are biases
of attention (Raffel et al. 2019).

Blocks are pre-norm with RMS norms; no layer has a bias, and scores are not divided by sqrt(D). Version 1.1
gates the feed-forward layer and has an output layer of its own.

Shapes: B batch, S source length, T target length, C width, H heads, D head width, V vocabulary; source rows
[B, S, C], or [N, C] where padding was dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import causal_attention, heads, padding, seq2seq
from plmcore.models.cache import KeyValues, Step
from plmcore.models.causal_attention import self_attend
from plmcore.models.config import ACTIVATIONS, Config
from plmcore.models.declaration import SENTENCES, Finetuning, Recipe, Size, TokenizerFormat
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded
from plmcore.models.position_buckets import PositionBias


@dataclass(frozen=True, kw_only=True)
class T5Config(Config):
    model_type: str = "t5"
    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_decoder_layers: int | None = None
    num_heads: int = 8
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.1
    classifier_dropout: float = 0.0
    layer_norm_epsilon: float = 1e-6
    initializer_factor: float = 1.0
    feed_forward_proj: str = "relu"
    pad_token_id: int | None = 0
    eos_token_id: int | None = 1
    decoder_start_token_id: int | None = 0
    tie_word_embeddings: bool = True
    scale_decoder_outputs: bool | None = None  # before the output layer; None: if that is tied

    def check(self) -> None:
        self.at_least(1, "vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_heads")
        if self.num_decoder_layers is not None:
            self.at_least(1, "num_decoder_layers")
        self.at_least(4, "relative_attention_num_buckets")
        self.at_least(self.relative_attention_num_buckets // 2 + 1, "relative_attention_max_distance")
        self.at_least(0, "initializer_factor")
        self.probability("dropout_rate", "classifier_dropout")
        self.one_of("feed_forward_proj", (*ACTIVATIONS, *(f"gated-{name}" for name in ACTIVATIONS)))

    def to_dict(self) -> dict[str, Any]:
        derived = {"scale_decoder_outputs": self.scales, "num_decoder_layers": self.decoder_layers}
        return {
            k: v
            for k, v in (super().to_dict() | derived).items()
            if k not in ("dense_act_fn", "is_gated_act")
        }

    def fitted(self, tensors: Mapping[str, Tensor]) -> Self:
        """A file without an output layer has a tied one, whatever config.json says."""
        if self.tie_word_embeddings or "lm_head.weight" in tensors:
            return self
        return self.replace(tie_word_embeddings=True, scale_decoder_outputs=self.scales)

    @property
    def decoder_layers(self) -> int:
        return self.num_layers if self.num_decoder_layers is None else self.num_decoder_layers

    @property
    def scales(self) -> bool:
        return self.tie_word_embeddings if self.scale_decoder_outputs is None else self.scale_decoder_outputs

    @property
    def gated(self) -> bool:
        return self.feed_forward_proj.startswith("gated-")

    @property
    def activation(self) -> str:
        name = self.feed_forward_proj.removeprefix("gated-")
        return ACTIVATIONS["gelu_new" if self.gated and name == "gelu" else name]

    def normal(self, variance: float) -> nn.init.Init:
        return nn.init.normal(self.initializer_factor * math.sqrt(variance))

    @property
    def token_init(self) -> nn.init.Init:
        return self.normal(1.0)

    @property
    def head_init(self) -> nn.init.Init:
        return self.normal(1 / self.d_model)

    def norm(self) -> nn.RMSNorm:
        gamma = nn.init.constant(self.initializer_factor)
        return nn.RMSNorm(self.d_model, self.layer_norm_epsilon, gamma_init=gamma)

    def attention(self) -> dict[str, Any]:
        """What self- and cross-attention have in common."""
        C, H, D, p = self.d_model, self.num_heads, self.d_kv, self.dropout_rate
        out_init = self.normal(1 / (H * D))
        return dict(width=C, heads=H, depth=D, bias=False, scale=1.0, dropout=p, out_init=out_init)


class GatedFeedForward(nn.Module):
    """W_o (gelu(W_0 x) * W_1 x), of version 1.1.  [..., C] -> [..., C]"""

    def __init__(self, cfg: T5Config):
        C, F = cfg.d_model, cfg.d_ff
        self.gate = nn.Linear(C, F, bias=False, activation=cfg.activation, weight_init=cfg.normal(1 / C))
        self.value = nn.Linear(C, F, bias=False, weight_init=cfg.normal(1 / C))
        self.down = nn.Linear(F, C, bias=False, weight_init=cfg.normal(1 / F))
        self.dropout = nn.Dropout(cfg.dropout_rate)

    def __call__(self, x: Tensor) -> Tensor:
        return self.dropout(self.down(self.dropout(ops.mul(self.gate(x), self.value(x)))))


def self_attention(cfg: T5Config, causal: bool) -> nn.SelfAttention:
    q, k = cfg.normal(1 / (cfg.d_model * cfg.d_kv)), cfg.normal(1 / cfg.d_model)
    return nn.SelfAttention(**cfg.attention(), causal=causal, weight_init=nn.init.rows(q, k, k))


def feed_forward(cfg: T5Config) -> nn.Module:
    if cfg.gated:
        return GatedFeedForward(cfg)
    C, F, p = cfg.d_model, cfg.d_ff, cfg.dropout_rate
    draws = dict(weight_init=cfg.normal(1 / C), down_init=cfg.normal(1 / F))
    return nn.MLP(C, F, cfg.activation, p, bias=False, inner_dropout=p, **draws)


class EncoderBlock(nn.Module):
    def __init__(self, cfg: T5Config):
        self.norm1, self.attn = cfg.norm(), self_attention(cfg, causal=False)
        self.norm2, self.mlp = cfg.norm(), feed_forward(cfg)

    def __call__(self, x: Tensor, bias: Tensor, layout: padding.Layout) -> Tensor:
        x = ops.add(x, self.attn(self.norm1(x), bias=bias, **layout.attention))
        return ops.add(x, self.mlp(self.norm2(x)))


class DecoderBlock(nn.Module):
    def __init__(self, cfg: T5Config):
        q, k = cfg.normal(1 / (cfg.d_model * cfg.d_kv)), cfg.normal(1 / cfg.d_model)
        self.norm1, self.attn = cfg.norm(), self_attention(cfg, causal=True)
        self.norm2, self.cross = cfg.norm(), nn.CrossAttention(**cfg.attention(), weight_init=k, q_init=q)
        self.norm3, self.mlp = cfg.norm(), feed_forward(cfg)

    def __call__(self, x: Tensor, bias: Tensor, layout: padding.Layout, source: seq2seq.Source) -> Tensor:
        x = ops.add(x, self_attend(self.attn, self.norm1(x), layout, bias))
        x = ops.add(x, seq2seq.cross_attend(self.cross, self.norm2(x), layout, source))
        return ops.add(x, self.mlp(self.norm3(x)))


class Stack(nn.Module):
    """ids [B, T] -> rows, and with `keep` those after each layer. The stacks share their tokens."""

    def __init__(
        self, cfg: T5Config, shared: nn.Embedding, block: Callable[[T5Config], nn.Module], layers: int
    ):
        self.tokens = nn.Embedding(cfg.vocab_size, cfg.d_model, weight=shared.weight)
        n, most, init = (
            cfg.relative_attention_num_buckets,
            cfg.relative_attention_max_distance,
            cfg.normal(1 / cfg.d_model),
        )
        self.bias = PositionBias(n, most, cfg.num_heads, block is DecoderBlock, init)
        self.blocks = nn.ModuleList(block(cfg) for _ in range(layers))
        self.norm = cfg.norm()
        self.dropout = nn.Dropout(cfg.dropout_rate)

    def __call__(
        self, ids: Tensor, layout: padding.Layout, keep: bool, *source: seq2seq.Source | None
    ) -> tuple[Tensor, list[Tensor] | None]:
        x = self.dropout(self.tokens(layout.pack(ids)))  # [B, T, C] or [N, C]
        bias = self.bias.step(layout) if isinstance(layout, Step) else self.bias(layout.T, layout.T)
        states = []
        for block in self.blocks:
            states += [x] if keep else []
            x = block(x, bias, layout, *source)
        x = self.dropout(self.norm(x))
        return x, [*states, x] if keep else None


class T5Encoder(nn.Module):
    """The encoder alone."""

    def __init__(self, config: T5Config):
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, config.d_model, weight_init=config.token_init)
        self.encoder = Stack(config, self.tokens, EncoderBlock, config.num_layers)

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
    ) -> Encoded:
        padding.check_ids(input_ids)
        layout = padding.layout(input_ids, attention_mask, reads, output_attentions, gapless=True)
        rows, states = self.encoder(input_ids, layout, output_hidden_states)
        return Encoded(rows, layout, states)

    def __call__(self, input_ids: Tensor, attention_mask: Tensor | None = None, **asked: Any) -> Output:
        encoded = self.encode(input_ids, attention_mask, **asked)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


class T5(T5Encoder, seq2seq.EncoderDecoder):  # type: ignore[misc]  # encode takes fewer arguments
    __call__ = seq2seq.EncoderDecoder.__call__  # pyright: ignore[reportAssignmentType]

    def __init__(self, config: T5Config):
        super().__init__(config)
        self.decoder = Stack(config, self.tokens, DecoderBlock, config.decoder_layers)

    def decode(
        self,
        decoder_input_ids: Tensor,
        encoded: Encoded | None,
        decoder_attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
        cache: KeyValues | None = None,
    ) -> seq2seq.Decoded:
        """cache: as in models.cache; a new one is filled."""
        padding.check_ids(decoder_input_ids, called="decoder_input_ids")
        layout = causal_attention.layout(
            decoder_input_ids,
            decoder_attention_mask,
            reads,
            output_attentions,
            cache=cache,
            gapless=True,
        )
        source = seq2seq.source_of(encoded, output_attentions, cache)
        rows, states = self.decoder(decoder_input_ids, layout, output_hidden_states, source)
        return seq2seq.Decoded(rows, layout, states, encoded, None if source is None else source.collected)


class T5Seq2SeqLM(seq2seq.Seq2SeqLM):
    PREFIX = ""  # this head's body is published without one

    def __init__(self, config: T5Config):
        C, V, tied = config.d_model, config.vocab_size, config.tie_word_embeddings
        self.config, self.body = config, T5(config)
        shared = self.body.tokens.weight if tied else None
        self.lm_head = nn.Linear(C, V, bias=False, weight=shared, weight_init=config.token_init)

    def logits(self, rows: Tensor) -> Tensor:
        if self.config.scales:
            rows = ops.affine(rows, self.config.d_model**-0.5, 0)
        return self.lm_head(rows)  # [..., V]


T5SequenceClassification = heads.bound(
    "T5SequenceClassification",
    seq2seq.SequenceClassification,
    T5,
    "d_model classifier_dropout head_init",
    NAMES={"dense": "classification_head.dense", "classifier": "classification_head.out_proj"},
)
T5TokenClassification = heads.bound(
    "T5TokenClassification", heads.TokenClassification, T5Encoder, "d_model classifier_dropout token_init"
)
T5QuestionAnswering = heads.bound(
    "T5QuestionAnswering", seq2seq.QuestionAnswering, T5, "d_model head_init", PREFIX=""
)

CONFIG = T5Config
MODEL_TYPES = {"t5": "T5"}
HEADS = {
    "base": T5,
    "base-encoder": T5Encoder,
    "seq2seq-lm": T5Seq2SeqLM,
    "sequence-classification": T5SequenceClassification,
    "token-classification": T5TokenClassification,
    "question-answering": T5QuestionAnswering,
}
ARCHITECTURES = {
    "T5Model": "base",
    "T5EncoderModel": "base-encoder",
    "T5ForConditionalGeneration": "seq2seq-lm",
    "T5WithLMHeadModel": "seq2seq-lm",  # its first name
    "T5ForSequenceClassification": "sequence-classification",
    "T5ForTokenClassification": "token-classification",
    "T5ForQuestionAnswering": "question-answering",
}
PREFIX = "transformer."
DROPPED = (r"EncDecAttention\.relative_attention_bias\.weight$",)  # in the first files, never used


def _stack(side: str, mlp: int) -> dict[str, str]:
    """Of a stack whose feed-forward layers have this number within their block."""
    ours, theirs = side + ".blocks.{i}", side + ".block.{i}.layer"
    return {
        f"{side}.tokens": f"{side}.embed_tokens",
        f"{side}.bias.table": f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias",
        f"{ours}.norm1": f"{theirs}.0.layer_norm",
        f"{ours}.attn.qkv": f"{theirs}.0.SelfAttention.{{q,k,v}}",
        f"{ours}.attn.out": f"{theirs}.0.SelfAttention.o",
        f"{ours}.norm2": f"{theirs}.1.layer_norm",
        f"{ours}.mlp.up": f"{theirs}.{mlp}.DenseReluDense.wi",
        f"{ours}.mlp.gate": f"{theirs}.{mlp}.DenseReluDense.wi_0",
        f"{ours}.mlp.value": f"{theirs}.{mlp}.DenseReluDense.wi_1",
        f"{ours}.mlp.down": f"{theirs}.{mlp}.DenseReluDense.wo",
        f"{side}.norm": f"{side}.final_layer_norm",
    }


NAMES = {
    "tokens": "shared",
    **_stack("encoder", mlp=1),
    **_stack("decoder", mlp=2),
    "decoder.blocks.{i}.cross.q": "decoder.block.{i}.layer.1.EncDecAttention.q",
    "decoder.blocks.{i}.cross.kv": "decoder.block.{i}.layer.1.EncDecAttention.{k,v}",
    "decoder.blocks.{i}.cross.out": "decoder.block.{i}.layer.1.EncDecAttention.o",
    "decoder.blocks.{i}.norm3": "decoder.block.{i}.layer.2.layer_norm",
    "lm_head": "lm_head",
    "classifier": "classifier",
    "span": "qa_outputs",
}
TOKENIZERS = (
    TokenizerFormat(
        "t5",
        "T5Tokenizer",
        dict(pad="<pad>", eos="</s>", unk="<unk>"),
        "A eos",
        "A eos B eos",
        extra=tuple(f"<extra_id_{i}>" for i in reversed(range(100))),
        kinds=("unigram",),
        usual=True,
        told=True,
        shows=("span-corruption", "translation", "text-to-text"),
        pieces=dict(sentinels=True),
        layout=dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
    ),
)


def sized(s: Size) -> dict[str, Any]:
    layers = s.layers if s.vocab is None else max(2, s.layers // 2)
    return dict(
        d_model=s.width,
        num_layers=layers,
        num_heads=s.heads,
        d_kv=64 if s.width >= 512 else s.width // s.heads,
        d_ff=4 * s.width,
    )


ADAFACTOR = dict(kind="adafactor", betas=None, eps=None, weight_decay=0.0, clip_norm=None)
RECIPES = {
    "t5": Recipe(
        model=sized,
        head="seq2seq-lm",
        objective=dict(name="span-corruption"),
        tokenizer="unigram",
        vocab=32_100,
        lr=1.0,
        steps=524_288,
        warmup=0.0,
        optim=ADAFACTOR,
        schedule=dict(kind="inverse_sqrt"),
        data=SENTENCES,
        small_lr=1.0,
        mixes=True,
        sizes={
            "small": Size(6, 512, 8, 512, 16, 8, None, None),
            "base": Size(12, 768, 12, 512, 8, 16, None, None),
            "large": Size(24, 1024, 16, 512, 4, 32, None, None),
        },
        decoder_start="pad",
    )
}
FINETUNING = Finetuning(lr=1e-3, small_lr_times=1.0, warmup_share=0.0, optim=ADAFACTOR, schedule="constant")
