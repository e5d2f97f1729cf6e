"""GLM: a decoder that fills the blanks of a text (Du et al. 2021), not the later GLM-4.

The text with its masks, part A, is seen by all; the pieces for the masks follow it, part B, and there a token
sees those before it. A token has two positions: in the text, which for a piece is the place of its mask, and
in the piece, 0 in the text.

Shapes: B batch, T length, C width, V vocabulary. Rows are [B, T, C], or [N, C] where padding was dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from plmcore import nn
from plmcore._core import ArgumentError, IndexRangeError, Tensor, ops
from plmcore.models import heads, megatron, padding
from plmcore.models.blanks import Fills
from plmcore.models.cache import KeyValues, Step
from plmcore.models.causal_attention import self_attend
from plmcore.models.config import Config
from plmcore.models.declaration import CLS_SEP, SENTENCES, Checkpoint, Recipe, Size, TokenizerFormat
from plmcore.models.labels import BLANKS
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded, Layout
from plmcore.models.relative import count

EPS = 1e-5  # the published code has no key for it


@dataclass(frozen=True, kw_only=True)
class GLMConfig(Config):
    """attention_scale, which the largest models have, keeps float16 scores small and changes no result."""

    model_type: str = "glm"
    vocab_size: int = 30592
    num_layers: int = 24
    hidden_size: int = 1024
    num_attention_heads: int = 16
    intermediate_size: int | None = None
    max_sequence_length: int = 512
    embedding_dropout_prob: float = 0.1
    attention_dropout_prob: float = 0.1
    output_dropout_prob: float = 0.1
    initializer_range: float = 0.02
    block_position_encoding: bool = True
    relative_encoding: bool = False
    pad_token_id: int | None = None

    def check(self) -> None:
        self.at_least(1, "vocab_size", "num_layers", "max_sequence_length")
        self.at_least(0, "initializer_range")
        self.multiple("hidden_size", of="num_attention_heads")
        if self.intermediate_size is not None:
            self.at_least(1, "intermediate_size")
        self.probability("embedding_dropout_prob", "attention_dropout_prob", "output_dropout_prob")
        self.one_of("block_position_encoding", (True,))
        self.one_of("relative_encoding", (False,))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], **changes: Any) -> Self:
        """GLM-4 calls itself glm too."""
        if "block_position_encoding" not in {**values, **changes}:
            raise ArgumentError(
                "config.json: a glm of 2021 must have block_position_encoding, and this one has none: it is "
                "of the later GLM-4, which plmcore does not have"
            )
        return super().from_dict(values, **changes)

    @property
    def longest(self) -> int:
        """Of the text; the tables have one row more, and pieces need no positions of their own."""
        return self.max_sequence_length

    @property
    def depth(self) -> int:
        return self.num_layers

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.normal(self.initializer_range)

    @property
    def residual_init(self) -> nn.init.Init:
        """Of what is added to the stream, 2 num_layers times."""
        return nn.init.normal(self.initializer_range / math.sqrt(2 * self.num_layers))


class Embeddings(nn.Module):
    """token + position in the text + position in the piece.  ids [B, T] -> rows"""

    def __init__(self, cfg: GLMConfig):
        rows, C, init = cfg.max_sequence_length + 1, cfg.hidden_size, cfg.weight_init
        self.tokens = nn.Embedding(cfg.vocab_size, C, weight_init=init)
        self.positions = nn.Embedding(rows, C, weight_init=init)
        self.blocks = nn.Embedding(rows, C, weight_init=init)
        self.dropout = nn.Dropout(cfg.embedding_dropout_prob)

    def __call__(self, layout: Layout, ids: Tensor, places: Tensor | None, blocks: Tensor | None) -> Tensor:
        places = layout.positions() if places is None else layout.pack(places)
        zeros = ops.full(places.shape, 0, "int64", like=ids) if blocks is None else layout.pack(blocks)
        positions = ops.add(self.positions(places), self.blocks(zeros))
        return self.dropout(ops.add(self.tokens(layout.pack(ids)), positions))  # [B, T, C] or [N, C]


class Block(nn.Module):
    def __init__(self, cfg: GLMConfig):
        C, init, residual = cfg.hidden_size, cfg.weight_init, cfg.residual_init
        self.norm1 = nn.LayerNorm(C, EPS)
        self.attn = nn.SelfAttention(
            C,
            cfg.num_attention_heads,
            causal=True,
            dropout=cfg.attention_dropout_prob,
            out_dropout=cfg.output_dropout_prob,
            weight_init=init,
            out_init=residual,
        )
        self.norm2 = nn.LayerNorm(C, EPS)
        inner, dropout = cfg.intermediate_size or 4 * C, cfg.output_dropout_prob
        self.mlp = nn.MLP(C, inner, "gelu_tanh", dropout, weight_init=init, down_init=residual)

    def __call__(self, x: Tensor, layout: Layout) -> Tensor:
        h, x = self.norm2.with_sum(self_attend(self.attn, self.norm1(x), layout), x)
        return ops.add(x, self.mlp(h))


class GLM(nn.Module):
    """Without positions: 0, 1, ..., all of them in the text; without source_lengths: each token sees those
    before it.
    """

    def __init__(self, config: GLMConfig):
        self.config = config
        self.embeddings = Embeddings(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.hidden_size, EPS)

    def encode(
        self,
        input_ids: Tensor,
        position_ids: Tensor | None = None,
        block_position_ids: Tensor | None = None,
        source_lengths: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
        cache: KeyValues | None = None,
    ) -> Encoded:
        """source_lengths [B]: the columns of part A. cache: as in models.cache; a new one is filled."""
        where: Layout
        if cache is not None and cache.slots:
            where = Step(cache, input_ids)
        else:
            self._check(input_ids, position_ids, block_position_ids, source_lengths, attention_mask)
            where = padding.layout(input_ids, attention_mask, reads, output_attentions)
            where.cache = cache
            if source_lengths is not None:
                where.attention["prefix"] = where.rows_before(source_lengths)
        x = self.embeddings(where, input_ids, position_ids, block_position_ids)
        states = [x] if output_hidden_states else None
        for block in self.blocks:
            x = block(x, where)
            if states is not None:
                states.append(x)
        x = self.norm(x)
        if states is not None:
            states[-1] = x
        return Encoded(x, where, states)

    def _check(
        self, ids: Tensor, places: Tensor | None, blocks: Tensor | None, sources: Tensor | None, mask: Any
    ) -> None:
        rows = self.config.max_sequence_length
        most = self.config.longest if places is None else None
        padding.check_ids(ids, most, position_ids=places, block_position_ids=blocks, attention_mask=mask)
        _check_range("position_ids", places, rows, "the last row of the table")
        _check_range("block_position_ids", blocks, rows, "the last row of the table")
        if sources is not None:
            padding.check_shape("source_lengths", sources, ids.shape[:1], "the batch")
            if isinstance(ids.shape[1], int):
                _check_range("source_lengths", sources, ids.shape[1], "the length of the rows")

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        encoded = self.encode(*args, **inputs)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


def _check_range(name: str, x: Tensor | None, most: int, what: str) -> None:
    seen = None if x is None else padding.values(x)
    if seen is not None and seen.size and not 0 <= seen.min() <= seen.max() <= most:
        bad = seen.min() if seen.min() < 0 else seen.max()
        raise IndexRangeError(f"{name} must be from 0 to {most}, {what}, got {bad}")


OTHERS = ("position_ids", "block_position_ids", "source_lengths", "attention_mask")  # as encode has them


class GLMCausalLM(heads.Predicts, Fills):
    """logits [B, T, V]: in part B of the token that follows in the piece."""

    LABELS = (BLANKS,)

    def __init__(self, config: GLMConfig):
        self.config, self.body = config, GLM(config)
        tokens = self.body.embeddings.tokens.weight
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False, weight=tokens)

    def __call__(
        self, input_ids: Tensor, *others: Tensor, labels: Tensor | None = None, **inputs: Any
    ) -> Output:
        padding.check_ids(input_ids, labels=labels)
        inputs |= dict(zip(OTHERS, others, strict=False))
        return super().__call__(input_ids, labels=labels, **inputs)

    def scored(self, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor) -> Encoded:
        return self.body.encode(input_ids, attention_mask=attention_mask, reads=(labels,))

    def decode(
        self, ids: Tensor, mask: Tensor | None, cache: KeyValues, encoded: Encoded | None = None
    ) -> Encoded:
        return self.body.encode(ids, attention_mask=mask, cache=cache)

    def logits(self, rows: Tensor) -> Tensor:
        return self.lm_head(rows)


class GLMSequenceClassification(heads.SequenceClassification):
    """logits [B, L] from the first token, which sees the whole row unless source_lengths says otherwise."""

    def __init__(self, config: GLMConfig):
        C, init = config.hidden_size, config.weight_init
        super().__init__(config, GLM(config), C, config.output_dropout_prob, init)
        self.dense = nn.Linear(C, C, activation="tanh", weight_init=init)

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        padding.check_ids(input_ids)
        if inputs.get("source_lengths") is None:
            B, T = input_ids.shape
            inputs["source_lengths"] = ops.broadcast_to(count(T, input_ids), (B,))
        return super().__call__(input_ids, labels=labels, **inputs)

    def pool(self, encoded: Encoded) -> Tensor:
        return self.dense(self.dropout(encoded.first()))  # [B, C]


CONFIG = GLMConfig
MODEL_TYPES = {"glm": "GLM"}
HEADS = {"base": GLM, "causal-lm": GLMCausalLM, "sequence-classification": GLMSequenceClassification}
ARCHITECTURES = {
    "GLMModel": "base",
    "GLMForConditionalGeneration": "causal-lm",
    "GLMForSequenceClassification": "sequence-classification",
}
PREFIX = "glm."
NAMES = {
    "embeddings.tokens": "word_embeddings",
    "embeddings.positions": "transformer.position_embeddings",
    "embeddings.blocks": "transformer.block_position_embeddings",
    "blocks.{i}.norm1": "transformer.layers.{i}.input_layernorm",
    "blocks.{i}.attn.qkv": "transformer.layers.{i}.attention.query_key_value",
    "blocks.{i}.attn.out": "transformer.layers.{i}.attention.dense",
    "blocks.{i}.norm2": "transformer.layers.{i}.post_attention_layernorm",
    "blocks.{i}.mlp.up": "transformer.layers.{i}.mlp.dense_h_to_4h",
    "blocks.{i}.mlp.down": "transformer.layers.{i}.mlp.dense_4h_to_h",
    "norm": "transformer.final_layernorm",
    "lm_head": "lm_head",
    "dense": "dense",
    "classifier": "out_proj",
}
PIECES = ("<|startofpiece|>", "<|endofpiece|>", "[gMASK]", "[sMASK]")
ENDED: dict[str, Any] = dict(single="cls A eos", pair="cls A eos B eos")
END = "<|endoftext|>"
TOKENIZERS = (
    TokenizerFormat(
        "glm",
        "GLMBertTokenizer",
        dict(pad="[PAD]", unk="[UNK]", cls="[CLS]", sep="[SEP]", mask="[MASK]"),
        **CLS_SEP,
        extra=PIECES,
        kinds=("wordpiece",),
        shows=("blank-infilling",),
    ),
    TokenizerFormat(
        "glm-gpt2",
        "GLMGPT2Tokenizer",
        dict(pad=END, unk=END, eos=END, cls="[CLS]", sep="[SEP]", mask="[MASK]"),
        **ENDED,
        extra=PIECES,
        kinds=("byte-bpe",),
    ),
    TokenizerFormat(
        "glm-pieces",
        "GLMChineseTokenizer",
        dict(pad=END, unk="<unk>", eos=END, cls="[CLS]", sep="[SEP]", mask="[MASK]"),
        **ENDED,
        extra=PIECES,
        kinds=("unigram",),
        file="cog-pretrain.model",
        layout=dict(control_symbols=[END, "[CLS]", "[SEP]", "[MASK]", *PIECES]),
    ),
)


def sized(s: Size) -> dict[str, Any]:
    return dict(num_layers=s.layers, hidden_size=s.width, num_attention_heads=s.heads,
                max_sequence_length=s.length, embedding_dropout_prob=s.dropout,
                attention_dropout_prob=s.dropout, output_dropout_prob=s.dropout)  # fmt: skip


RECIPES = {
    "glm": Recipe(
        model=sized,
        head="causal-lm",
        objective=dict(name="blank-infilling"),
        tokenizer="wordpiece",
        vocab=30_592,
        lr=4e-4,
        steps=150_000,
        warmup=0.05,
        optim=dict(kind="adamw", betas=[0.9, 0.98], eps=1e-6, weight_decay=0.1, clip_norm=1.0),
        schedule=dict(kind="cosine", floor=0.05),
        data=SENTENCES,
        sizes={"large": Size(24, 1024, 16, 512, 4, 256, None, None, 2e-4)},
    )
}
CHECKPOINT = Checkpoint(state="module", settings="args", read=megatron.read)
