"""GPT-3: GPT-2 with layers that alternate between dense
and sparse causal attention (Brown et al. 2020, after Child et al. 2019).

A dense layer sees all that came before, a banded one the last `attention_band` positions, a strided one each
`attention_stride`-th back, both with its own position among them. No weights were published: the names in a
file are GPT-2's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plmcore.models import causal, gpt2, heads
from plmcore.models.declaration import Recipe, Size, TokenizerFormat
from plmcore.models.double_heads import DoubleHeads

KINDS = ("dense", "banded", "strided", "banded+strided")


@dataclass(frozen=True, kw_only=True)
class GPT3Config(gpt2.GPT2Config):
    model_type: str = "gpt3"
    n_positions: int = 2048
    attention_layers: tuple[str, ...] = ("dense", "banded")  # over and over, from the first layer to the last
    attention_band: int = 256  # the paper does not say
    attention_stride: int = 128

    def check(self) -> None:
        super().check()
        self.at_least(1, "attention_band", "attention_stride")
        if not self.attention_layers or any(kind not in KINDS for kind in self.attention_layers):
            self.refuse("attention_layers", f"must list kinds of layers, each one of {', '.join(KINDS)}")

    def kind(self, layer: int) -> str:
        return self.attention_layers[layer % len(self.attention_layers)]


class Block(gpt2.Block):
    def __init__(self, cfg: GPT3Config, layer: int):
        super().__init__(cfg, layer)
        kind = cfg.kind(layer)
        self.attn.band = cfg.attention_band if "banded" in kind else 0
        self.attn.stride = cfg.attention_stride if "strided" in kind else 0


class GPT3(gpt2.GPT2):
    Block = Block


GPT3CausalLM = heads.bound("GPT3CausalLM", causal.CausalLM, GPT3, "weight_init")
GPT3DoubleHeads = heads.bound("GPT3DoubleHeads", DoubleHeads, GPT3, "n_embd weight_init")
GPT3SequenceClassification = heads.bound(
    "GPT3SequenceClassification", causal.LastTokenClassification, GPT3, "n_embd weight_init"
)
GPT3TokenClassification = heads.bound(
    "GPT3TokenClassification", heads.TokenClassification, GPT3, "n_embd head_dropout weight_init"
)
GPT3QuestionAnswering = heads.bound(
    "GPT3QuestionAnswering", heads.QuestionAnswering, GPT3, "n_embd weight_init"
)

# The paper's table, but for two widths that are no multiple of their heads there: 1.3B has 16 heads of 128,
# 13B a width of 5120.
SIZES = {
    "125M": dict(n_layer=12, n_embd=768, n_head=12),
    "350M": dict(n_layer=24, n_embd=1024, n_head=16),
    "760M": dict(n_layer=24, n_embd=1536, n_head=16),
    "1.3B": dict(n_layer=24, n_embd=2048, n_head=16),
    "2.7B": dict(n_layer=32, n_embd=2560, n_head=32),
    "6.7B": dict(n_layer=32, n_embd=4096, n_head=32),
    "13B": dict(n_layer=40, n_embd=5120, n_head=40),
    "175B": dict(n_layer=96, n_embd=12288, n_head=96),
}
CONFIG = GPT3Config
MODEL_TYPES = {"gpt3": "GPT3"}
HEADS = {
    "base": GPT3,
    "causal-lm": GPT3CausalLM,
    "double-heads": GPT3DoubleHeads,
    "sequence-classification": GPT3SequenceClassification,
    "token-classification": GPT3TokenClassification,
    "question-answering": GPT3QuestionAnswering,
}
ARCHITECTURES = {name.replace("GPT2", "GPT3"): head for name, head in gpt2.ARCHITECTURES.items()}
PREFIX, DROPPED, NAMES = gpt2.PREFIX, gpt2.DROPPED, gpt2.NAMES
TOKENIZERS = (TokenizerFormat("gpt3", "GPT2Tokenizer", gpt2.SPECIAL, kinds=("byte-bpe",)),)


def sized(s: Size) -> dict[str, Any]:
    return causal.sized(s) | dict(
        attention_band=min(256, s.length // 2), resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )


RECIPES = {
    "gpt3": Recipe(
        model=sized,
        head="causal-lm",
        objective=dict(name="causal-lm"),
        tokenizer="byte-bpe",
        vocab=50_257,
        lr=6e-4,
        steps=572_000,
        warmup=0.00125,
        optim=dict(kind="adamw", betas=[0.9, 0.95], weight_decay=0.1, clip_norm=1.0),
        schedule=dict(kind="cosine", floor=0.1),
        sizes=dict.fromkeys(("small", "base"), Size(12, 768, 12, 2048, 2, 122, None, None))
        | {
            "medium": Size(24, 1024, 16, 2048, 1, 244, None, None, 3e-4),
            "large": Size(24, 1536, 16, 2048, 1, 244, None, None, 2.5e-4),
            "xl": Size(24, 2048, 16, 2048, 1, 488, None, None, 2e-4),
        },
    )
}
FINETUNING = gpt2.FINETUNING
