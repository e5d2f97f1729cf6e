"""MASS: the Transformer that restores a fragment which its encoder does not see (Song et al. 2019).

Positions are fairseq's: learned, counted over the tokens that are not padding, the first at row pad + 1. The
decoder of a fragment gets the places of its tokens in the source.

Shapes: B batch, T length, C width; rows are [B, T, C], or [N, C] where padding was dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore import nn
from plmcore._core import ArgumentError, FormatError, IndexRangeError, Tensor, ops
from plmcore.models import bart, heads, padding, stacks, transformer
from plmcore.models.cache import Step
from plmcore.models.declaration import GENERIC, Checkpoint, Finetuning, Recipe, Size, TokenizerFormat
from plmcore.models.stacks import Decoder, Encoder, Stacks, StacksConfig, StacksSeq2SeqLM
from plmcore.models.transformer import DecoderBlock, EncoderBlock


@dataclass(frozen=True, kw_only=True)
class MassConfig(StacksConfig):
    model_type: str = "mass"
    vocab_size: int = 30522
    pad_token_id: int = 0
    eos_token_id: int | None = 102
    decoder_start_token_id: int | None = 102
    d_model: int = 768
    max_position_embeddings: int = 512
    encoder_layers: int = 6
    encoder_attention_heads: int = 12
    encoder_ffn_dim: int = 3072
    decoder_layers: int = 6
    decoder_attention_heads: int = 12
    decoder_ffn_dim: int = 3072
    attention_dropout: float = 0.1
    activation_dropout: float = 0.1
    scale_embedding: bool = True

    def check(self) -> None:
        super().check()
        if self.pad_token_id >= self.vocab_size:
            self.refuse("pad_token_id", f"must be below vocab_size = {self.vocab_size}")


class Embeddings(nn.Module):
    """LN(sqrt(C) * token + position).  ids [B, T] -> rows"""

    def __init__(self, cfg: MassConfig, weight: nn.Parameter | None = None):
        C, pad, init = cfg.d_model, cfg.pad_token_id, cfg.weight_init
        self.pad, self.length, self.scale = pad, cfg.max_position_embeddings, cfg.embedding_scale
        self.tokens = nn.Embedding(cfg.vocab_size, C, pad, weight=weight, weight_init=init)
        self.positions = nn.Embedding(pad + 1 + self.length, C, pad, weight_init=cfg.position_init)
        self.norm = nn.LayerNorm(C)
        self.dropout = nn.Dropout(cfg.dropout)

    def __call__(
        self, ids: Tensor, layout: padding.Layout, decoder_position_ids: Tensor | None = None
    ) -> Tensor:
        x = ops.affine(self.tokens(layout.pack(ids)), self.scale, 0.0)
        positions = self.positions(self.rows(ids, layout, decoder_position_ids))
        return self.dropout(self.norm(ops.add(x, positions)))

    def rows(self, ids: Tensor, layout: padding.Layout, places: Tensor | None) -> Tensor:
        """Of the table: pad + 1 for the first token or place, pad for padding."""
        if places is not None:
            self.check(places, ids)
            return layout.pack(places) + (self.pad + 1)
        if isinstance(layout, Step):  # what is made is no padding
            return layout.positions() + (self.pad + 1)
        real = ops.cast(ids != self.pad, "int64")
        return layout.pack(ops.mul(ops.cumsum(real, 1), real) + self.pad)

    def check(self, places: Tensor, ids: Tensor) -> None:
        padding.check_ids(places, None, "decoder_position_ids")
        padding.check_shape("decoder_position_ids", places, ids.shape, "decoder_input_ids")
        known = padding.values(places)
        if known is not None and known.size and not 0 <= known.min() <= known.max() < self.length:
            raise IndexRangeError(
                f"decoder_position_ids must be from 0 to {self.length - 1}, got {known.min()} to "
                f"{known.max()}"
            )


def encoder(cfg: MassConfig, weight: nn.Parameter | None = None) -> Encoder:
    return Encoder(cfg, Embeddings(cfg, weight), (EncoderBlock(cfg) for _ in range(cfg.encoder_layers)))


def decoder(cfg: MassConfig, weight: nn.Parameter | None = None) -> Decoder:
    return Decoder(cfg, Embeddings(cfg, weight), (DecoderBlock(cfg) for _ in range(cfg.decoder_layers)))


class Mass(Stacks):
    """decoder_position_ids [B, T]: where in the source, from 0, the decoder's tokens stand. Without them it
    counts its own tokens.
    """

    def __init__(self, config: MassConfig):
        super().__init__(config, encoder, decoder)


MassSeq2SeqLM = heads.bound("MassSeq2SeqLM", StacksSeq2SeqLM, Mass, PLACED=True)

CONFIG = MassConfig
MODEL_TYPES = {"mass": "Mass"}
HEADS = {"base": Mass, "seq2seq-lm": MassSeq2SeqLM}
ARCHITECTURES = {"MassModel": "base", "MassForConditionalGeneration": "seq2seq-lm"}
PREFIX = "model."
DROPPED = bart.DROPPED
RENAMED, JOINED = transformer.RENAMED, transformer.JOINED
NAMES = {
    **{ours: name for ours, name in bart.NAMES.items() if ours not in ("dense", "classifier", "span")},
    "encoder.embeddings.norm": "encoder.emb_layer_norm",
    "decoder.embeddings.norm": "decoder.emb_layer_norm",
}
TOKENIZERS = (
    TokenizerFormat(
        "mass",
        GENERIC,
        dict(
            pad="[PAD]",
            unk="[UNK]",
            cls="[CLS]",
            sep="[SEP]",
            mask="[MASK]",
            bos="[CLS]",
            eos="[SEP]",
        ),
        "A sep",
        "A sep B sep",
        kinds=("wordpiece",),
    ),
)


def sized(s: Size) -> dict[str, Any]:
    names = ("dropout", "attention_dropout", "activation_dropout")
    return stacks.sized(s) | dict(max_position_embeddings=512) | dict.fromkeys(names, s.dropout)


RECIPES = {
    "mass": Recipe(
        model=sized,
        head="seq2seq-lm",
        objective=dict(name="fragment", positions=True),
        tokenizer="wordpiece",
        vocab=30_522,
        lr=5e-4,
        steps=125_000,
        warmup=0.08,
        optim=dict(kind="adamw", betas=[0.9, 0.98], weight_decay=0.01, eps=1e-6, clip_norm=None),
        schedule=dict(kind="polynomial"),
        sizes={
            "base": Size(12, 768, 12, 512, 8, 16, None, None),
            "middle": Size(12, 1024, 16, 512, 4, 32, None, None),
        },
        lacks=("large",),
    )
}
FINETUNING = Finetuning(label_smoothing=0.1)


# ---- files of fairseq ----

ARGUMENTS = dict(
    encoder_attention_heads="encoder_attention_heads",
    decoder_attention_heads="decoder_attention_heads",
    activation_fn="activation_function",
    dropout="dropout",
    attention_dropout="attention_dropout",
    activation_dropout="activation_dropout",
)  # args of a checkpoint -> keys of the config; the other keys are seen in the tensors
HEAD_WIDTH = 64  # of every published model
TABLES = (
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "decoder.embed_out",
    "decoder.output_projection.weight",
)


def of_fairseq(
    tensors: Mapping[str, Tensor], args: Mapping[str, Any], ids: Mapping[str, int]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The keys of the config, and the tensors, whose table of tokens has one name where it is one.

    args: of the file, none where it is a state dict alone.
    """
    if "pad" not in ids:
        raise ArgumentError(
            "a checkpoint of MASS needs the dict.txt that it was trained with: --vocab dict.txt"
        )
    source, places = (_needed(tensors, f"encoder.embed_{what}.weight") for what in ("tokens", "positions"))
    tables = {name: tensors[name] for name in TABLES if name in tensors}
    for name, table in tables.items():
        if table.shape[0] != ids["size"]:
            raise FormatError(
                f"the dictionary has {ids['size']} tokens, and {name} has {table.shape[0]} rows: they are of "
                f"two models"
            )
    C, pad = int(source.shape[1]), ids["pad"]
    config: dict[str, Any] = dict(
        vocab_size=ids["size"],
        d_model=C,
        max_position_embeddings=int(places.shape[0]) - pad - 1,
        pad_token_id=pad,
        eos_token_id=ids["eos"],
        decoder_start_token_id=ids["eos"],
    )
    for side in ("encoder", "decoder"):
        start = f"{side}.layers."
        layers = {name[len(start) :].partition(".")[0] for name in tensors if name.startswith(start)}
        config |= {f"{side}_layers": len(layers), f"{side}_attention_heads": max(1, C // HEAD_WIDTH)}
        config[f"{side}_ffn_dim"] = int(_needed(tensors, f"{start}0.fc1.weight").shape[0])
    config |= {key: args[name] for name, key in ARGUMENTS.items() if args.get(name) is not None}
    first, *others = (np.asarray(table) for table in tables.values())
    if all(np.array_equal(first, other) for other in others):
        return config, {n: t for n, t in tensors.items() if n not in tables} | {"shared.weight": source}
    target = _needed(tensors, "decoder.embed_tokens.weight")
    apart = {"shared.weight": source, "lm_head.weight": target}
    return config | {"tie_word_embeddings": False}, apart | dict(tensors)


def _needed(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in tensors:
        raise FormatError(f"it has no tensor {name}: it is no checkpoint of MASS")
    return tensors[name]


CHECKPOINT = Checkpoint(state="model", settings="args", read=of_fairseq)
