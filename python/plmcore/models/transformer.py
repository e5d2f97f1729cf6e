"""The Transformer: an encoder and a decoder of attention alone,
with sinusoids for positions (Vaswani et al. 2017).

Marian and fairseq lay the sinusoids out in other ways; Marian's published models add a fixed bias to the
logits. Blocks are post-norm.

Shapes: B batch, S source length, T target length, C width, V vocabulary; rows are [B, T, C], or [N, C] where
padding was dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import heads, padding, seq2seq, stacks
from plmcore.models.causal_attention import self_attend
from plmcore.models.declaration import GENERIC, Recipe, Size, TokenizerFormat
from plmcore.models.names import Stored
from plmcore.models.seq2seq import Source
from plmcore.models.sinusoids import SINUSOIDS
from plmcore.models.stacks import Decoder, Encoder, Stacks, StacksCausalLM, StacksConfig, StacksSeq2SeqLM


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(StacksConfig):
    """Vaswani's base model. position_embedding_type: how sinusoids lie
    in a position's vector, a key of SINUSOIDS.
    """

    model_type: str = "transformer"
    vocab_size: int = 37000
    decoder_vocab_size: int | None = None
    share_encoder_decoder_embeddings: bool = True
    position_embedding_type: str = "vaswani"
    d_model: int = 512
    encoder_layers: int = 6
    encoder_attention_heads: int = 8
    encoder_ffn_dim: int = 2048
    decoder_layers: int = 6
    decoder_attention_heads: int = 8
    decoder_ffn_dim: int = 2048
    activation_function: str = "relu"
    scale_embedding: bool = True
    pad_token_id: int | None = 1
    eos_token_id: int | None = 2
    decoder_start_token_id: int | None = 2

    def check(self) -> None:
        super().check()
        self.one_of("position_embedding_type", SINUSOIDS)
        if self.share_encoder_decoder_embeddings and self.target_size != self.vocab_size:
            self.refuse(
                "decoder_vocab_size", f"must be vocab_size = {self.vocab_size} where embeddings are shared"
            )

    @property
    def target_size(self) -> int:
        return self.decoder_vocab_size or self.vocab_size

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.xavier_uniform()

    @property
    def token_init(self) -> nn.init.Init:
        return nn.init.normal(self.d_model**-0.5)


@dataclass(frozen=True, kw_only=True)
class MarianConfig(TransformerConfig):
    model_type: str = "marian"
    vocab_size: int = 58101
    position_embedding_type: str = "marian"
    d_model: int = 1024
    encoder_layers: int = 12
    encoder_attention_heads: int = 16
    encoder_ffn_dim: int = 4096
    decoder_layers: int = 12
    decoder_attention_heads: int = 16
    decoder_ffn_dim: int = 4096
    activation_function: str = "gelu"
    scale_embedding: bool = False
    pad_token_id: int | None = 58100
    eos_token_id: int | None = 0
    decoder_start_token_id: int | None = 58100
    forced_last: ClassVar[int | None] = 0

    weight_init = StacksConfig.weight_init  # pyright: ignore[reportIncompatibleMethodOverride]
    token_init = StacksConfig.token_init  # pyright: ignore[reportIncompatibleMethodOverride]


class Embeddings(nn.Module):
    """sqrt(C) * token + sinusoid.  ids [B, T] -> rows"""

    def __init__(self, cfg: TransformerConfig, size: int, weight: nn.Parameter | None):
        self.tokens = nn.Embedding(
            size, cfg.d_model, cfg.pad_token_id, weight=weight, weight_init=cfg.token_init
        )
        kind = cfg.position_embedding_type
        self.positions = SINUSOIDS[kind](
            cfg.max_position_embeddings, cfg.d_model, kind, cfg.pad_token_id or 0
        )
        self.scale = cfg.embedding_scale
        self.dropout = nn.Dropout(cfg.dropout)

    def __call__(self, ids: Tensor, layout: padding.Layout) -> Tensor:
        x = self.tokens(layout.pack(ids))
        x = x if self.scale == 1 else ops.affine(x, self.scale, 0.0)
        return self.dropout(ops.add(x, self.positions(ids, layout)))


class EncoderBlock(nn.Module):
    def __init__(self, cfg: StacksConfig):
        self.attn = stacks.self_attention(cfg, cfg.encoder_attention_heads)
        self.norm1 = nn.LayerNorm(cfg.d_model)
        self.mlp = stacks.feed_forward(cfg, cfg.encoder_ffn_dim)
        self.norm2 = nn.LayerNorm(cfg.d_model)

    def __call__(self, x: Tensor, layout: padding.Layout) -> Tensor:
        x = self.norm1(self.attn(x, **layout.attention), residual=x)
        return self.norm2(self.mlp(x), residual=x)


class DecoderBlock(nn.Module):
    """Without a source it is the block of a decoder alone."""

    def __init__(self, cfg: StacksConfig):
        self.attn = stacks.self_attention(cfg, cfg.decoder_attention_heads, causal=True)
        self.norm1 = nn.LayerNorm(cfg.d_model)
        self.cross = stacks.cross_attention(cfg)
        self.norm2 = nn.LayerNorm(cfg.d_model)
        self.mlp = stacks.feed_forward(cfg, cfg.decoder_ffn_dim)
        self.norm3 = nn.LayerNorm(cfg.d_model)

    def __call__(self, x: Tensor, layout: padding.Layout, source: Source | None) -> Tensor:
        x = self.norm1(self_attend(self.attn, x, layout), residual=x)
        if source is not None:
            x = self.norm2(seq2seq.cross_attend(self.cross, x, layout, source), residual=x)
        return self.norm3(self.mlp(x), residual=x)


def encoder(cfg: TransformerConfig, weight: nn.Parameter | None = None) -> Encoder:
    blocks = (EncoderBlock(cfg) for _ in range(cfg.encoder_layers))
    return Encoder(cfg, Embeddings(cfg, cfg.vocab_size, weight), blocks)


def decoder(cfg: TransformerConfig, weight: nn.Parameter | None = None) -> Decoder:
    blocks = (DecoderBlock(cfg) for _ in range(cfg.decoder_layers))
    return Decoder(cfg, Embeddings(cfg, cfg.target_size, weight), blocks)


class Transformer(Stacks):
    def __init__(self, config: TransformerConfig):
        super().__init__(config, encoder, decoder, config.share_encoder_decoder_embeddings)


TransformerSeq2SeqLM = heads.bound("TransformerSeq2SeqLM", StacksSeq2SeqLM, Transformer)
TransformerCausalLM = heads.bound("TransformerCausalLM", StacksCausalLM, decoder)

CONFIG = TransformerConfig
CONFIGS = {"transformer": TransformerConfig, "marian": MarianConfig}
MODEL_TYPES = {"transformer": "Transformer", "marian": "Marian"}
HEADS = {"base": Transformer, "seq2seq-lm": TransformerSeq2SeqLM, "causal-lm": TransformerCausalLM}
ARCHITECTURES = {
    "TransformerModel": "base",
    "TransformerForConditionalGeneration": "seq2seq-lm",
    "TransformerForCausalLM": "causal-lm",
    "MarianModel": "base",
    "MarianMTModel": "seq2seq-lm",
    "MarianForCausalLM": "causal-lm",
}
PREFIX = "model."
# Of fairseq's files; the old ones hold query, key and value in one.
DROPPED = (r"(encoder|decoder)\.version$", r"embed_positions\._float_tensor$")
RENAMED = ((r"^(model\.)?decoder\.(output_projection\.weight|embed_out)$", "lm_head.weight"),)
JOINED = ((r"\.in_proj_(weight|bias)$", (r".q_proj.\1", r".k_proj.\1", r".v_proj.\1")),)
NAMES = {
    "shared": "shared",
    "encoder.embeddings.tokens": "encoder.embed_tokens",
    "encoder.embeddings.positions": "encoder.embed_positions",
    "encoder.blocks.{i}.attn.qkv": "encoder.layers.{i}.self_attn.{q_proj,k_proj,v_proj}",
    "encoder.blocks.{i}.attn.out": "encoder.layers.{i}.self_attn.out_proj",
    "encoder.blocks.{i}.norm1": "encoder.layers.{i}.self_attn_layer_norm",
    "encoder.blocks.{i}.mlp.up": "encoder.layers.{i}.fc1",
    "encoder.blocks.{i}.mlp.down": "encoder.layers.{i}.fc2",
    "encoder.blocks.{i}.norm2": "encoder.layers.{i}.final_layer_norm",
    "decoder.embeddings.tokens": "decoder.embed_tokens",
    "decoder.embeddings.positions": "decoder.embed_positions",
    "decoder.blocks.{i}.attn.qkv": "decoder.layers.{i}.self_attn.{q_proj,k_proj,v_proj}",
    "decoder.blocks.{i}.attn.out": "decoder.layers.{i}.self_attn.out_proj",
    "decoder.blocks.{i}.norm1": "decoder.layers.{i}.self_attn_layer_norm",
    "decoder.blocks.{i}.cross.q": "decoder.layers.{i}.encoder_attn.q_proj",
    "decoder.blocks.{i}.cross.kv": "decoder.layers.{i}.encoder_attn.{k_proj,v_proj}",
    "decoder.blocks.{i}.cross.out": "decoder.layers.{i}.encoder_attn.out_proj",
    "decoder.blocks.{i}.norm2": "decoder.layers.{i}.encoder_attn_layer_norm",
    "decoder.blocks.{i}.mlp.up": "decoder.layers.{i}.fc1",
    "decoder.blocks.{i}.mlp.down": "decoder.layers.{i}.fc2",
    "decoder.blocks.{i}.norm3": "decoder.layers.{i}.final_layer_norm",
    "output": "lm_head",
    "logits_bias": Stored(("final_logits_bias",), shape=lambda config: (1, config.target_size)),
}
TOKENIZERS = (
    TokenizerFormat(
        "transformer",
        GENERIC,
        dict(bos="<s>", pad="<pad>", eos="</s>", unk="<unk>"),
        "A eos",
        "A eos B eos",
        kinds=("words",),
        told=True,
        shows=("bidirectional-lm",),
    ),
    TokenizerFormat(
        "marian",
        "MarianTokenizer",
        dict(pad="<pad>", eos="</s>", unk="<unk>"),
        "A eos",
        "A B eos",
        file="source.spm",
    ),
)
RECIPES = {
    "transformer": Recipe(
        model=stacks.sized,
        head="seq2seq-lm",
        objective=dict(name="translation"),
        tokenizer="byte-bpe",
        special_tokens="bart",
        vocab=37_000,
        lr=1.0,
        steps=100_000,
        warmup=0.04,
        optim=dict(kind="adam", betas=[0.9, 0.98], eps=1e-9, weight_decay=0.0, clip_norm=None),
        schedule=dict(kind="noam"),
        data=dict(documents="line", sentences="document", unwrap=False),
        train=dict(label_smoothing=0.1),
        small_lr=1.0,
        sizes={
            "base": Size(12, 512, 8, 128, 64, 12, None, None),
            "large": Size(12, 1024, 16, 128, 32, 24, None, None),
        },
    )
}
