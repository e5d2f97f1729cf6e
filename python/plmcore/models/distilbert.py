"""DistilBERT: a BERT of half the depth that learned from BERT,
without segment types and pooler (Sanh et al. 2019).

Shapes as in bert.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import bert, heads, padding
from plmcore.models.config import ACTIVATIONS, Config
from plmcore.models.declaration import CLS_SEP, TokenizerFormat
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded

EPS = 1e-12  # of every norm


@dataclass(frozen=True, kw_only=True)
class DistilBertConfig(Config):
    model_type: str = "distilbert"
    vocab_size: int = 30522
    max_position_embeddings: int = 512
    sinusoidal_pos_embds: bool = False
    n_layers: int = 6
    n_heads: int = 12
    dim: int = 768
    hidden_dim: int = 3072
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation: str = "gelu"
    initializer_range: float = 0.02
    qa_dropout: float = 0.1
    seq_classif_dropout: float = 0.2
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    def check(self) -> None:
        self.at_least(1, "vocab_size", "hidden_dim", "max_position_embeddings")
        self.at_least(0, "n_layers", "initializer_range")
        self.multiple("dim", of="n_heads")
        self.one_of("activation", ACTIVATIONS)
        self.probability("dropout", "attention_dropout", "qa_dropout", "seq_classif_dropout")

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.normal(self.initializer_range)


def sinusoids(shape: tuple[int, int], dtype: str = "float32") -> Tensor:
    """Initial positions: sin(p / 10000^(2i / C)) in column 2i,
    the cosine of the same in column 2i + 1.  [T, C]
    """
    T, C = shape
    angles = np.arange(T)[:, None] / 10000.0 ** (np.arange(C) // 2 * 2 / C)
    return Tensor(np.where(np.arange(C) % 2, np.cos(angles), np.sin(angles)), dtype=dtype)


class Embeddings(nn.Module):
    """LN(token + position).  ids [B, T] -> rows"""

    def __init__(self, cfg: DistilBertConfig):
        C, init = cfg.dim, cfg.weight_init
        self.tokens = nn.Embedding(cfg.vocab_size, C, cfg.pad_token_id, weight_init=init)
        positions_init = sinusoids if cfg.sinusoidal_pos_embds else init
        self.positions = nn.Embedding(cfg.max_position_embeddings, C, weight_init=positions_init)
        self.norm = nn.LayerNorm(C, EPS)
        self.dropout = nn.Dropout(cfg.dropout)

    def __call__(self, layout: padding.Layout, ids: Tensor, positions: Tensor | None) -> Tensor:
        positions = (
            layout.positions() if positions is None else layout.pack(ops.broadcast_to(positions, ids.shape))
        )
        x = ops.add(self.tokens(layout.pack(ids)), self.positions(positions))  # [B, T, C] or [N, C]
        return self.dropout(self.norm(x))


class Block(bert.Block):
    """BERT's, without dropout behind the attention."""

    def __init__(self, cfg: DistilBertConfig):
        C, init = cfg.dim, cfg.weight_init
        self.attn = nn.SelfAttention(
            C, cfg.n_heads, dropout=cfg.attention_dropout, out_dropout=0.0, weight_init=init
        )
        self.norm1 = nn.LayerNorm(C, EPS)
        self.mlp = nn.MLP(C, cfg.hidden_dim, ACTIVATIONS[cfg.activation], cfg.dropout, weight_init=init)
        self.norm2 = nn.LayerNorm(C, EPS)


class DistilBert(nn.Module):
    def __init__(self, config: DistilBertConfig):
        self.config = config
        self.embeddings = Embeddings(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
    ) -> Encoded:
        padding.check_ids(input_ids, self.config.longest)
        layout = padding.layout(input_ids, attention_mask, reads, output_attentions)
        x = self.embeddings(layout, input_ids, position_ids)
        states = [x] if output_hidden_states else None
        for block in self.blocks:
            x = block(x, layout)
            if states is not None:
                states.append(x)
        return Encoded(x, layout, states)

    def __call__(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, *args: Any, **inputs: Any
    ) -> Output:
        encoded = self.encode(input_ids, attention_mask, *args, **inputs)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


class Predictions(bert.Predictions):
    def __init__(self, cfg: DistilBertConfig, tokens: nn.Embedding):
        (V, C), init = tokens.weight.shape, cfg.weight_init
        self.dense = nn.Linear(C, C, activation=ACTIVATIONS[cfg.activation], weight_init=init)
        self.norm = nn.LayerNorm(C, EPS)
        self.decoder = nn.Linear(
            C, V, weight=tokens.weight if cfg.tie_word_embeddings else None, weight_init=init
        )


class Pooler(nn.Linear):
    """Of the heads, as the body has none: relu(W h + b) of the first token."""

    def __init__(self, cfg: DistilBertConfig):
        super().__init__(cfg.dim, cfg.dim, activation="relu", weight_init=cfg.weight_init)


class DistilBertSequenceClassification(heads.SequenceClassification):
    def __init__(self, cfg: DistilBertConfig):
        super().__init__(cfg, DistilBert(cfg), cfg.dim, cfg.seq_classif_dropout, cfg.weight_init)
        self.pooler = Pooler(cfg)

    def pool(self, encoded: Encoded) -> Tensor:
        return self.pooler(encoded.first())  # [B, C]


class DistilBertMultipleChoice(heads.MultipleChoice):
    def __init__(self, cfg: DistilBertConfig):
        super().__init__(cfg, DistilBert(cfg), cfg.dim, cfg.seq_classif_dropout, cfg.weight_init)
        self.pooler = Pooler(cfg)

    def pool(self, encoded: Encoded) -> Tensor:
        return self.pooler(encoded.first())  # [B, C]


DistilBertMaskedLM = heads.bound("DistilBertMaskedLM", heads.MaskedLM, DistilBert, Predictions)
DistilBertTokenClassification = heads.bound(
    "DistilBertTokenClassification", heads.TokenClassification, DistilBert, "dim dropout weight_init"
)
DistilBertQuestionAnswering = heads.bound(
    "DistilBertQuestionAnswering", heads.QuestionAnswering, DistilBert, "dim weight_init qa_dropout"
)

CONFIG = DistilBertConfig
MODEL_TYPES = {"distilbert": "DistilBert"}
HEADS = {
    "base": DistilBert,
    "masked-lm": DistilBertMaskedLM,
    "sequence-classification": DistilBertSequenceClassification,
    "token-classification": DistilBertTokenClassification,
    "question-answering": DistilBertQuestionAnswering,
    "multiple-choice": DistilBertMultipleChoice,
}
ARCHITECTURES = {
    "DistilBertModel": "base",
    "DistilBertForMaskedLM": "masked-lm",
    "DistilBertForSequenceClassification": "sequence-classification",
    "DistilBertForTokenClassification": "token-classification",
    "DistilBertForQuestionAnswering": "question-answering",
    "DistilBertForMultipleChoice": "multiple-choice",
}
PREFIX = "distilbert."
DROPPED = bert.DROPPED
NAMES = {
    "embeddings.tokens": "embeddings.word_embeddings",
    "embeddings.positions": "embeddings.position_embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
    "blocks.{i}.attn.qkv": "transformer.layer.{i}.attention.{q_lin,k_lin,v_lin}",
    "blocks.{i}.attn.out": "transformer.layer.{i}.attention.out_lin",
    "blocks.{i}.norm1": "transformer.layer.{i}.sa_layer_norm",
    "blocks.{i}.mlp.up": "transformer.layer.{i}.ffn.lin1",
    "blocks.{i}.mlp.down": "transformer.layer.{i}.ffn.lin2",
    "blocks.{i}.norm2": "transformer.layer.{i}.output_layer_norm",
    "predictions.dense": "vocab_transform",
    "predictions.norm": "vocab_layer_norm",
    "predictions.decoder": "vocab_projector",
    "pooler": "pre_classifier",
    "classifier": "classifier",
    "span": "qa_outputs",
}
TOKENIZERS = (
    TokenizerFormat("distilbert", "DistilBertTokenizer", bert.SPECIAL, **CLS_SEP, kinds=("wordpiece",)),
)
