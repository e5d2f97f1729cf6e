"""GPT-2: a decoder with learned positions and pre-norm blocks (Radford et al. 2019).

Shapes: B batch, T length, C width, V vocabulary. Rows are [B, T, C], or [N, C] where padding was dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import causal, heads
from plmcore.models.causal_attention import self_attend
from plmcore.models.config import ACTIVATIONS, Config
from plmcore.models.declaration import DECODER_FINETUNING, Recipe, Size, TokenizerFormat
from plmcore.models.double_heads import SUMMARIES, DoubleHeads
from plmcore.models.padding import Layout


@dataclass(frozen=True, kw_only=True)
class GPT2Config(Config):
    model_type: str = "gpt2"
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    classifier_dropout: float | None = None
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    reorder_and_upcast_attn: bool = False  # scores are never narrower than float32 here
    summary_type: str = "cls_index"
    summary_use_proj: bool = True
    summary_activation: str | None = None
    summary_proj_to_labels: bool = True
    summary_first_dropout: float = 0.1
    pad_token_id: int | None = None
    tie_word_embeddings: bool = True
    add_cross_attention: bool = False

    def check(self) -> None:
        self.at_least(1, "vocab_size", "n_positions", "n_layer")
        self.at_least(0, "initializer_range")
        self.multiple("n_embd", of="n_head")
        if self.n_inner is not None:
            self.at_least(1, "n_inner")
        self.one_of("activation_function", ACTIVATIONS)
        self.one_of("summary_type", SUMMARIES)
        self.one_of("summary_activation", (None, *ACTIVATIONS))
        self.probability(
            "resid_pdrop", "embd_pdrop", "attn_pdrop", "classifier_dropout", "summary_first_dropout"
        )
        self.one_of("add_cross_attention", (False,))

    @property
    def max_position_embeddings(self) -> int:
        return self.n_positions

    @property
    def head_dropout(self) -> float:
        return 0.1 if self.classifier_dropout is None else self.classifier_dropout

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.normal(self.initializer_range)

    @property
    def residual_init(self) -> nn.init.Init:
        """Of what is added to the stream, 2 n_layer times."""
        return nn.init.normal(self.initializer_range / math.sqrt(2 * self.n_layer))


class Block(nn.Module):
    def __init__(self, cfg: GPT2Config, layer: int):
        C, init, residual = cfg.n_embd, cfg.weight_init, cfg.residual_init
        scale = (C // cfg.n_head) ** -0.5 if cfg.scale_attn_weights else 1.0
        self.norm1 = nn.LayerNorm(C, cfg.layer_norm_epsilon)
        self.attn = nn.SelfAttention(
            C,
            cfg.n_head,
            causal=True,
            scale=scale / (layer + 1) if cfg.scale_attn_by_inverse_layer_idx else scale,
            dropout=cfg.attn_pdrop,
            out_dropout=cfg.resid_pdrop,
            weight_init=init,
            out_init=residual,
        )
        self.norm2 = nn.LayerNorm(C, cfg.layer_norm_epsilon)
        self.mlp = nn.MLP(
            C,
            cfg.n_inner or 4 * C,
            ACTIVATIONS[cfg.activation_function],
            cfg.resid_pdrop,
            weight_init=init,
            down_init=residual,
        )

    def __call__(self, x: Tensor, layout: Layout) -> Tensor:
        h, x = self.norm2.with_sum(self_attend(self.attn, self.norm1(x), layout), x)
        return ops.add(x, self.mlp(h))


class GPT2(causal.Decoder):
    Block: Any = Block

    def __init__(self, config: GPT2Config):
        C = config.n_embd
        self.config = config
        self.embeddings = causal.Embeddings(
            config.vocab_size, config.n_positions, C, config.embd_pdrop, config.weight_init
        )
        self.blocks = nn.ModuleList(self.Block(config, i) for i in range(config.n_layer))
        self.norm = nn.LayerNorm(C, config.layer_norm_epsilon)


GPT2CausalLM = heads.bound("GPT2CausalLM", causal.CausalLM, GPT2, "weight_init")
GPT2DoubleHeads = heads.bound("GPT2DoubleHeads", DoubleHeads, GPT2, "n_embd weight_init")
GPT2SequenceClassification = heads.bound(
    "GPT2SequenceClassification", causal.LastTokenClassification, GPT2, "n_embd weight_init"
)
GPT2TokenClassification = heads.bound(
    "GPT2TokenClassification", heads.TokenClassification, GPT2, "n_embd head_dropout weight_init"
)
GPT2QuestionAnswering = heads.bound(
    "GPT2QuestionAnswering", heads.QuestionAnswering, GPT2, "n_embd weight_init"
)

CONFIG = GPT2Config
MODEL_TYPES = {"gpt2": "GPT2"}
HEADS = {
    "base": GPT2,
    "causal-lm": GPT2CausalLM,
    "double-heads": GPT2DoubleHeads,
    "sequence-classification": GPT2SequenceClassification,
    "token-classification": GPT2TokenClassification,
    "question-answering": GPT2QuestionAnswering,
}
ARCHITECTURES = {
    "GPT2Model": "base",
    "GPT2LMHeadModel": "causal-lm",
    "GPT2DoubleHeadsModel": "double-heads",
    "GPT2ForSequenceClassification": "sequence-classification",
    "GPT2ForTokenClassification": "token-classification",
    "GPT2ForQuestionAnswering": "question-answering",
}
PREFIX = "transformer."
DROPPED = (r"\bh\.\d+\.attn\.(bias|masked_bias)$",)
NAMES = {
    "embeddings.tokens": "wte",
    "embeddings.positions": "wpe",
    "blocks.{i}.norm1": "h.{i}.ln_1",
    "blocks.{i}.attn.qkv": "h.{i}.attn.c_attn^T",
    "blocks.{i}.attn.out": "h.{i}.attn.c_proj^T",
    "blocks.{i}.norm2": "h.{i}.ln_2",
    "blocks.{i}.mlp.up": "h.{i}.mlp.c_fc^T",
    "blocks.{i}.mlp.down": "h.{i}.mlp.c_proj^T",
    "norm": "ln_f",
    "lm_head": "lm_head",
    "choice": "multiple_choice_head.summary",
    "score": "score",
    "classifier": "classifier",
    "span": "qa_outputs",
}
SPECIAL = dict(unk="<|endoftext|>", bos="<|endoftext|>", eos="<|endoftext|>")
TOKENIZERS = (
    TokenizerFormat(
        "gpt2", "GPT2Tokenizer", SPECIAL, kinds=("byte-bpe",), usual=True, told=True, shows=("causal-lm",)
    ),
)
RECIPES = {
    "gpt2": Recipe(
        model=causal.sized,
        head="causal-lm",
        objective=dict(name="causal-lm"),
        tokenizer="byte-bpe",
        vocab=50_257,
        lr=6e-4,
        steps=600_000,
        warmup=0.05,
        optim=dict(kind="adamw", betas=[0.9, 0.99], weight_decay=0.1, clip_norm=1.0),
        schedule=dict(kind="cosine", floor=0.1),
        sizes=dict.fromkeys(("small", "base"), Size(12, 768, 12, 1024, 4, 128, None, None))
        | {
            "medium": Size(24, 1024, 16, 1024, 2, 256, None, None, 3e-4),
            "large": Size(36, 1280, 20, 1024, 1, 512, None, None, 2.5e-4),
            "xl": Size(48, 1600, 25, 1024, 1, 512, None, None, 2e-4),
        },
    )
}
FINETUNING = DECODER_FINETUNING
