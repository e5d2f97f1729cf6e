"""Transformer-XL: a decoder that reads a text segment by segment and remembers the states of those before
(Dai et al. 2019).

Positions count from each query backwards. A score is

    ((q + u) k + (q + v) W_r R[i - j]) / sqrt(D)

with sinusoids R of the distance; its second term is the bias of ops.attention. Keys and values are those of
[memory; segment]. The memory of a layer is its input, detached. With same_length a query sees itself and the
mem_len - 1 positions before it, so that all see equally many.

Without `mems` a text begins after mem_len zero vectors, which are looked at, as in transformers; after none
with mems=(), as in the original program.

Shapes: B batch, T length, P memory, S = P + T, C width, H heads, D head width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plmcore import nn
from plmcore._core import Dim, Tensor, ops
from plmcore.models import causal, heads, padding, relative
from plmcore.models.config import Config
from plmcore.models.declaration import DECODER_FINETUNING, Recipe, Size
from plmcore.models.labels import NEXT, placed
from plmcore.models.outputs import Output
from plmcore.models.padding import EVERYWHERE, Layout, Padded
from plmcore.models.recalling import Recalls, Remembered
from plmcore.models.segment_attention import SegmentAttention, View


@dataclass(frozen=True, kw_only=True)
class TransfoXLConfig(Config):
    model_type: str = "transfo-xl"
    vocab_size: int = 267735
    cutoffs: tuple[int, ...] = (20000, 40000, 200000)
    d_model: int = 1024
    d_embed: int = 1024
    n_head: int = 16
    d_head: int = 64
    d_inner: int = 4096
    div_val: int = 4
    pre_lnorm: bool = False
    n_layer: int = 18
    mem_len: int = 1600
    clamp_len: int = 1000
    same_length: bool = True
    proj_share_all_but_first: bool = True
    tie_projs: tuple[bool, ...] | None = None
    attn_type: int = 0
    sample_softmax: int = -1
    adaptive: bool = True
    dropout: float = 0.1
    dropatt: float = 0.0
    untie_r: bool = True
    init: str = "normal"
    init_range: float = 0.01
    proj_init_std: float = 0.01
    init_std: float = 0.02
    layer_norm_epsilon: float = 1e-5
    eos_token_id: int | None = 0
    pad_token_id: int | None = None
    tie_word_embeddings: bool = True

    def check(self) -> None:
        self.at_least(1, "vocab_size", "d_model", "d_embed", "n_head", "d_head", "d_inner", "n_layer")
        self.at_least(0, "mem_len", "init_range", "init_std", "proj_init_std", "layer_norm_epsilon")
        nn.Clusters.of("TransfoXLConfig", self.vocab_size, self.d_embed, self.cutoffs, self.div_val)
        if self.tie_projs is not None and len(self.tie_projs) != len(self.cutoffs) + 1:
            self.refuse("tie_projs", f"must have a value for each of the {len(self.cutoffs) + 1} clusters")
        if self.d_model % 2:
            self.refuse("d_model", "must be even, for sines and cosines")
        if self.same_length and not self.mem_len:
            self.refuse("mem_len", "must be at least 1 with same_length, the positions that a query sees")
        self.one_of("attn_type", (0,))
        self.one_of("init", ("normal", "uniform"))
        self.probability("dropout", "dropatt")

    @property
    def weight_init(self) -> nn.init.Init:
        return (
            nn.init.normal(self.init_std)
            if self.init == "normal"
            else nn.init.uniform(-self.init_range, self.init_range)
        )

    @property
    def projection_init(self) -> nn.init.Init:
        return nn.init.normal(self.proj_init_std)

    @property
    def ties(self) -> tuple[bool, ...]:
        """Whether the embedding and the softmax share the projection, of each cluster."""
        if self.tie_projs is not None:
            return self.tie_projs
        return (False, *[self.proj_share_all_but_first] * len(self.cutoffs))

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"tie_projs": list(self.ties)}


class Block(nn.Module):
    """The norms stand after the sums."""

    def __init__(self, cfg: TransfoXLConfig, u: nn.Parameter | None, v: nn.Parameter | None):
        C, init, eps = cfg.d_model, cfg.weight_init, cfg.layer_norm_epsilon
        self.attn = SegmentAttention(
            C, cfg.n_head, cfg.d_head, u, v, dropatt=cfg.dropatt, dropout=cfg.dropout, weight_init=init
        )
        self.norm1 = nn.LayerNorm(C, eps)
        self.up = nn.Linear(C, cfg.d_inner, activation="relu", weight_init=init)
        self.down = nn.Linear(cfg.d_inner, C, weight_init=init)
        self.norm2 = nn.LayerNorm(C, eps)
        self.dropout = nn.Dropout(cfg.dropout)

    def keys(self, memory: Tensor) -> Tensor:
        return self.attn.keys(memory)

    def __call__(self, x: Tensor, past: Tensor | None, view: View) -> tuple[Tensor, Tensor]:
        y, kv = self.attn(x, past, view)
        x = self.norm1(y, residual=x)
        return self.norm2(self.mlp(x), residual=x), kv

    def mlp(self, x: Tensor) -> Tensor:
        return self.dropout(self.down(self.dropout(self.up(x))))


class PreNormBlock(Block):
    """The norms stand before attention, memory included, and before the MLP."""

    def keys(self, memory: Tensor) -> Tensor:
        return self.attn.keys(self.norm1(memory))

    def __call__(self, x: Tensor, past: Tensor | None, view: View) -> tuple[Tensor, Tensor]:
        y, kv = self.attn(self.norm1(x), past, view)
        h, x = self.norm2.with_sum(y, x)
        return ops.add(x, self.mlp(h)), kv


class TransfoXL(nn.Module):
    def __init__(self, config: TransfoXLConfig):
        self.config = config
        self.embeddings = nn.AdaptiveEmbedding(
            config.vocab_size, config.d_model, config.cutoffs, config.div_val, embed_width=config.d_embed,
            weight_init=config.weight_init, projection_init=config.projection_init,
        )  # fmt: skip
        self.u = self.v = None
        if not config.untie_r:
            self.u, self.v = (
                nn.Parameter.new(config.weight_init, (config.n_head, config.d_head)) for _ in range(2)
            )
        kind = PreNormBlock if config.pre_lnorm else Block
        self.blocks = nn.ModuleList(kind(config, self.u, self.v) for _ in range(config.n_layer))
        self.dropout = nn.Dropout(config.dropout)

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        mems: Sequence[Tensor] | Tensor | None = None,
        *,
        use_mems: bool | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
    ) -> Remembered:
        """mems: [P, B, C] of each layer, as the last call gave them.
        use_mems=True: out.mems has the whole memory and segment, for a caller that chooses, and without mems
        there is nothing before the text.
        """
        cfg = self.config
        padding.check_ids(input_ids, attention_mask=attention_mask)
        B, T = input_ids.shape
        if mems is None and not use_mems and cfg.mem_len:
            mems = [ops.full((cfg.mem_len, B, cfg.d_model), 0.0, self.embeddings.dtype, like=input_ids)]
            mems *= cfg.n_layer
        memories = relative.by_batch(mems, cfg.n_layer, B, T, cfg.d_model)
        pasts = [None if m is None else block.keys(m) for block, m in zip(self.blocks, memories)]
        layout = padding.layout(input_ids, attention_mask, (EVERYWHERE,), output_attentions)
        encoded = self.run(input_ids, pasts, layout)
        encoded.states = [*encoded.content, encoded.rows] if output_hidden_states else None
        if use_mems or cfg.mem_len:
            # not `encoded`, which holds the function: no cycle keeps states and keys alive
            most, content = None if use_mems else cfg.mem_len, encoded.content
            encoded.mems = lambda: tuple(relative.next_memory(m, h, most) for m, h in zip(memories, content))
        return encoded

    def run(self, ids: Tensor, pasts: Sequence[Tensor | None], layout: Layout) -> Remembered:
        """pasts: keys and values of what is before the segment, of each layer.  [B, P, 2 H D]"""
        cfg, x = self.config, self.embeddings(ids)
        P: int | Dim = 0 if pasts[0] is None else pasts[0].shape[1]
        d = relative.distances(layout.T, P + layout.T, False, cfg.clamp_len, ids)
        mask = None
        if isinstance(layout, Padded):
            mask = ops.pad(layout.attention["mask"], (0, 0, 0, P), (0, 0, 0, 0), 1)  # all see the memory
        view = View(
            layout,
            self.dropout(relative.sinusoids(d, cfg.d_model, x.dtype)),
            mask,
            cfg.mem_len if cfg.same_length else 0,
        )
        x = self.dropout(ops.affine(x, cfg.d_model**0.5, 0.0))
        content, keys = [], []
        for block, past in zip(self.blocks, pasts):
            content.append(x)
            x, kv = block(x, past, view)
            keys.append(kv)
        return Remembered(self.dropout(x), layout, None, content, keys)

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        encoded = self.encode(*args, **inputs)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


class TransfoXLCausalLM(heads.Predicts, Recalls):
    """logits are log-probabilities [B, T, V] of the token that follows each."""

    LABELS = (NEXT,)
    REMEMBERS = True

    def __init__(self, config: TransfoXLConfig):
        self.config, self.body = config, TransfoXL(config)
        self.softmax = nn.AdaptiveSoftmax(
            config.d_model, config.vocab_size, config.cutoffs, config.div_val, embed_width=config.d_embed,
            tied=self.body.embeddings, tie_tables=config.tie_word_embeddings, tie_projections=config.ties,
            weight_init=config.weight_init, projection_init=config.projection_init,
        )  # fmt: skip

    def logits(self, rows: Tensor) -> Tensor:
        return self.softmax.log_probs(rows)

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        padding.check_ids(input_ids, labels=labels)
        encoded = self.body.encode(input_ids, **inputs)

        def logits() -> Tensor:
            return encoded.layout.unpack(self.logits(encoded.rows))  # [B, T, V]

        if labels is None:
            return encoded.output(logits=logits())
        rows, wanted = encoded.layout.labelled(encoded.rows, placed(NEXT, labels))
        return encoded.output(logits=logits, loss=self.softmax(rows, wanted).loss)


TransfoXLSequenceClassification = heads.bound(
    "TransfoXLSequenceClassification", causal.LastTokenClassification, TransfoXL, "d_model weight_init"
)

CONFIG = TransfoXLConfig
MODEL_TYPES = {"transfo-xl": "TransfoXL"}
HEADS = {
    "base": TransfoXL,
    "causal-lm": TransfoXLCausalLM,
    "sequence-classification": TransfoXLSequenceClassification,
}
ARCHITECTURES = {
    "TransfoXLModel": "base",
    "TransfoXLLMHeadModel": "causal-lm",
    "TransfoXLForSequenceClassification": "sequence-classification",
}
PREFIX = "transformer."
DROPPED = (r"\bpos_emb\.inv_freq$",)
REPEATED = r"^(body\.)?(blocks\.\d+\.attn\.)?[uv]$"
NAMES = {
    "embeddings.tables.{i}": "word_emb.emb_layers.{i}",
    "embeddings.projections.{i}.weight": "word_emb.emb_projs.{i}",
    "u": "r_w_bias",
    "v": "r_r_bias",
    "blocks.{i}.attn.qkv": "layers.{i}.dec_attn.qkv_net",
    "blocks.{i}.attn.r": "layers.{i}.dec_attn.r_net",
    "blocks.{i}.attn.out": "layers.{i}.dec_attn.o_net",
    "blocks.{i}.attn.u": "layers.{i}.dec_attn.r_w_bias",
    "blocks.{i}.attn.v": "layers.{i}.dec_attn.r_r_bias",
    "blocks.{i}.norm1": "layers.{i}.dec_attn.layer_norm",
    "blocks.{i}.up": "layers.{i}.pos_ff.CoreNet.0",
    "blocks.{i}.down": "layers.{i}.pos_ff.CoreNet.3",
    "blocks.{i}.norm2": "layers.{i}.pos_ff.layer_norm",
    "softmax.tables.{i}": "crit.out_layers.{i}",
    "softmax.projections.{i}.weight": "crit.out_projs.{i}",
    "softmax.others.weight": "crit.cluster_weight",
    "softmax.others.bias": "crit.cluster_bias",
    "score": "score",
}


def sized(s: Size) -> dict[str, Any]:
    """Below base the vocabulary is small, and `streams` gives it no clusters."""
    large = s.vocab is None
    return dict(n_layer=s.layers, d_model=s.width, d_embed=s.width, n_head=s.heads,
                d_head=s.width // s.heads, d_inner=2100 if s.width == 410 else 4 * s.width,
                cutoffs=[20_000, 40_000, 200_000] if large else None, div_val=4 if s.width >= 1024 else 1,
                mem_len=None, clamp_len=-1, same_length=False, dropout=s.dropout)  # fmt: skip


def streams(chosen: dict[str, dict[str, Any]]) -> None:
    """Rows go on from batch to batch; the last token of a segment is the first of the next, so that each is
    predicted once. The model keeps the memory that it was trained with.
    """
    data, objective, memory = chosen["data"], chosen["objective"], chosen["train"]["mem_len"]
    if memory and objective["name"] == "causal-lm":
        usual = dict(stride=max(1, data["length"] - 1), streams=data["batch"])
        objective |= {k: v for k, v in usual.items() if objective[k] is None}
    usual = dict(mem_len=memory, cutoffs=[])
    chosen["model"] |= {k: v for k, v in usual.items() if chosen["model"][k] is None}


RECIPES = {
    "transfo-xl": Recipe(
        model=sized,
        head="causal-lm",
        objective=dict(name="causal-lm"),
        tokenizer="byte-bpe",
        special_tokens="gpt2",
        vocab=267_735,
        lr=2.5e-4,
        steps=200_000,
        warmup=0.0,
        optim=dict(kind="adam", weight_decay=0.0, clip_norm=0.25),
        schedule=dict(kind="cosine"),
        sizes={
            "base": Size(16, 410, 10, 150, 60, 1, None, None),
            "large": Size(18, 1024, 16, 384, 8, 16, None, None, dropout=0.2),
        },
        train=dict(mem_len=512),  # as long as a segment
        derive=streams,
    )
}
FINETUNING = DECODER_FINETUNING
