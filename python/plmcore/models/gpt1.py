"""GPT: a decoder with learned positions and post-norm blocks,
for pre-training and fine-tuning (Radford et al. 2018).

Shapes: B batch, T length, C width, V vocabulary. Rows are [B, T, C], or [N, C] where padding was dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from plmcore import nn
from plmcore._core import Tensor
from plmcore.models import causal, heads
from plmcore.models.causal_attention import self_attend
from plmcore.models.config import ACTIVATIONS, Config
from plmcore.models.declaration import Finetuning, Recipe, Size, TokenizerFormat
from plmcore.models.double_heads import SUMMARIES, DoubleHeads
from plmcore.models.padding import Layout

# this family means the tanh form by gelu
AFN = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}


@dataclass(frozen=True, kw_only=True)
class GPT1Config(Config):
    model_type: str = "openai-gpt"
    vocab_size: int = 40478
    n_positions: int = 512
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    afn: str = "gelu"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    summary_type: str = "cls_index"
    summary_use_proj: bool = True
    summary_activation: str | None = None
    summary_proj_to_labels: bool = True
    summary_first_dropout: float = 0.1
    pad_token_id: int | None = None
    tie_word_embeddings: bool = True

    def check(self) -> None:
        self.at_least(1, "vocab_size", "n_positions")
        self.at_least(0, "n_layer", "initializer_range")
        self.multiple("n_embd", of="n_head")
        self.one_of("afn", AFN)
        self.one_of("summary_type", SUMMARIES)
        self.one_of("summary_activation", (None, *ACTIVATIONS))
        self.probability("resid_pdrop", "embd_pdrop", "attn_pdrop", "summary_first_dropout")

    @property
    def max_position_embeddings(self) -> int:
        return self.n_positions

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.normal(self.initializer_range)


class Block(nn.Module):
    def __init__(self, cfg: GPT1Config):
        C, init = cfg.n_embd, cfg.weight_init
        self.attn = nn.SelfAttention(
            C, cfg.n_head, causal=True, dropout=cfg.attn_pdrop, out_dropout=cfg.resid_pdrop, weight_init=init
        )
        self.norm1 = nn.LayerNorm(C, cfg.layer_norm_epsilon)
        self.mlp = nn.MLP(C, 4 * C, AFN[cfg.afn], cfg.resid_pdrop, weight_init=init)
        self.norm2 = nn.LayerNorm(C, cfg.layer_norm_epsilon)

    def __call__(self, x: Tensor, layout: Layout) -> Tensor:
        x = self.norm1(self_attend(self.attn, x, layout), residual=x)
        return self.norm2(self.mlp(x), residual=x)


class GPT1(causal.Decoder):
    # the score of what is to come: above that of padding, so that it is seen where there is nothing else
    FUTURE = -1e4

    def __init__(self, config: GPT1Config):
        self.config = config
        self.embeddings = causal.Embeddings(
            config.vocab_size, config.n_positions, config.n_embd, config.embd_pdrop, config.weight_init
        )
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))


GPT1CausalLM = heads.bound("GPT1CausalLM", causal.CausalLM, GPT1, "weight_init")
GPT1DoubleHeads = heads.bound("GPT1DoubleHeads", DoubleHeads, GPT1, "n_embd weight_init")
GPT1SequenceClassification = heads.bound(
    "GPT1SequenceClassification", causal.LastTokenClassification, GPT1, "n_embd weight_init"
)

CONFIG = GPT1Config
MODEL_TYPES = {"openai-gpt": "OpenAIGPT"}
HEADS = {
    "base": GPT1,
    "causal-lm": GPT1CausalLM,
    "double-heads": GPT1DoubleHeads,
    "sequence-classification": GPT1SequenceClassification,
}
ARCHITECTURES = {
    "OpenAIGPTModel": "base",
    "OpenAIGPTLMHeadModel": "causal-lm",
    "OpenAIGPTDoubleHeadsModel": "double-heads",
    "OpenAIGPTForSequenceClassification": "sequence-classification",
}
PREFIX = "transformer."
DROPPED = (r"\bh\.\d+\.attn\.bias$", r"\bposition_ids$")
NAMES = {
    "embeddings.tokens": "tokens_embed",
    "embeddings.positions": "positions_embed",
    "blocks.{i}.attn.qkv": "h.{i}.attn.c_attn^T",
    "blocks.{i}.attn.out": "h.{i}.attn.c_proj^T",
    "blocks.{i}.norm1": "h.{i}.ln_1",
    "blocks.{i}.mlp.up": "h.{i}.mlp.c_fc^T",
    "blocks.{i}.mlp.down": "h.{i}.mlp.c_proj^T",
    "blocks.{i}.norm2": "h.{i}.ln_2",
    "lm_head": "lm_head",
    "choice": "multiple_choice_head.summary",
    "score": "score",
}
SPECIAL = dict(unk="<unk>")
TOKENIZERS = (
    TokenizerFormat("openai-gpt", "OpenAIGPTTokenizer", SPECIAL, kinds=("bpe",), usual=True, told=True),
)
ALIASES = {"gpt": "openai-gpt", "gpt1": "openai-gpt"}
RECIPES = {
    "openai-gpt": Recipe(
        model=causal.sized,
        head="causal-lm",
        objective=dict(name="causal-lm"),
        tokenizer="bpe",
        vocab=40_478,
        lr=2.5e-4,
        steps=1_600_000,
        warmup=0.00125,
        optim=dict(kind="adamw", weight_decay=0.01, clip_norm=1.0),
        schedule=dict(kind="cosine"),
        sizes={"base": Size(12, 768, 12, 512, 8, 8, None, None)},
        lacks=("large",),
    )
}
FINETUNING = Finetuning(lr=6.25e-5, warmup_share=0.002, lm_weight=0.5)
