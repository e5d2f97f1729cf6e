"""ALBERT: BERT with narrow token vectors and few parameters that all layers share (Lan et al. 2019).

Shapes as in bert.py; E width of the embeddings. The L layers fall into groups; the layers of a group are one
block, or inner_group_num blocks one after the other, applied again and again. The paper's modes of sharing,
as AlbertConfig.sharing(mode) sets them:

    all         num_hidden_groups = 1
    attention   num_hidden_groups = L, groups_share = "attention"
    ffn         num_hidden_groups = L, groups_share = "ffn"
    none        num_hidden_groups = L
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Self

from plmcore import nn
from plmcore._core import Tensor
from plmcore.models import bert, heads, padding
from plmcore.models.config import ACTIVATIONS, Config
from plmcore.models.declaration import CLS_SEP, SENTENCES, Recipe, Size, TokenizerFormat
from plmcore.models.labels import SENTENCE_ORDER
from plmcore.models.outputs import Output
from plmcore.models.padding import FIRST


@dataclass(frozen=True, kw_only=True)
class AlbertConfig(Config):
    model_type: str = "albert"
    vocab_size: int = 30000
    embedding_size: int = 128
    hidden_size: int = 4096
    num_hidden_layers: int = 12
    num_hidden_groups: int = 1
    num_attention_heads: int = 64
    intermediate_size: int = 16384
    inner_group_num: int = 1
    groups_share: str = "none"  # our own key: what all groups have in common; a file holds it once per group
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    def check(self) -> None:
        self.at_least(1, "vocab_size", "embedding_size", "intermediate_size", "max_position_embeddings")
        self.at_least(1, "type_vocab_size", "num_hidden_groups", "inner_group_num")
        self.at_least(0, "num_hidden_layers", "initializer_range")
        self.multiple("hidden_size", of="num_attention_heads")
        self.one_of("hidden_act", ACTIVATIONS)
        self.one_of("groups_share", ("none", "attention", "ffn", "all"))
        self.probability("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob")

    def sharing(self, mode: str) -> Self:
        """This config with what its layers share: "all", "attention", "ffn" or "none"."""
        parted = self.replace(groups_share=mode, num_hidden_groups=max(1, self.num_hidden_layers))
        return parted.replace(groups_share="none", num_hidden_groups=1) if mode == "all" else parted

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.truncated_normal(self.initializer_range)

    @property
    def is_decoder(self) -> bool:
        return False


class Embeddings(bert.Embeddings):
    """LN(token + segment type + position) of width E, widened to C.  ids [B, T] -> rows"""

    def __init__(self, cfg: AlbertConfig):
        super().__init__(cfg, cfg.embedding_size)
        self.widen = nn.Linear(cfg.embedding_size, cfg.hidden_size, weight_init=cfg.weight_init)

    def __call__(
        self, layout: padding.Layout, ids: Tensor, types: Tensor | None, positions: Tensor | None
    ) -> Tensor:
        return self.widen(super().__call__(layout, ids, types, positions))


class Group(nn.Module):
    """Blocks that are applied one after the other.

    `first`: the group whose attention or feed-forward this one shares.
    """

    def __init__(self, cfg: AlbertConfig, first: Group | None = None):
        self.blocks = nn.ModuleList(bert.Block(cfg) for _ in range(cfg.inner_group_num))
        for block, other in zip(self.blocks, first.blocks if first else ()):
            if cfg.groups_share in ("attention", "all"):
                block.attn, block.norm1 = other.attn, other.norm1
            if cfg.groups_share in ("ffn", "all"):
                block.mlp, block.norm2 = other.mlp, other.norm2


class Albert(bert.Bert):
    config: Any

    def __init__(self, config: AlbertConfig, pooler: bool = True):
        C, init = config.hidden_size, config.weight_init
        self.config = config
        self.embeddings = Embeddings(config)
        self.groups = nn.ModuleList()
        for i in range(config.num_hidden_groups):
            self.groups.append(Group(config, self.groups[0] if i else None))
        self.pooler = nn.Linear(C, C, activation="tanh", weight_init=init) if pooler else None

    @property
    def blocks(self) -> list[bert.Block]:  # type: ignore[override]
        """As they are applied."""
        L, G = self.config.num_hidden_layers, self.config.num_hidden_groups
        # Rounded as the published models round: i * G // L differs where L / G is not exact (18 layers in 14
        # groups).
        return [block for i in range(L) for block in self.groups[int(i / (L / G))].blocks]


class AlbertPretraining(heads.MaskedLM):
    """Masked tokens and the order of two segments (label 0: as in the text)."""

    LABELS = (SENTENCE_ORDER,)

    def __init__(self, config: AlbertConfig):
        super().__init__(config, Albert(config), bert.Predictions)
        self.dropout = nn.Dropout(config.classifier_dropout_prob)
        self.order = nn.Linear(config.hidden_size, 2, weight_init=config.weight_init)

    def __call__(
        self,
        input_ids: Tensor,
        *,
        labels: Tensor | None = None,
        sentence_order_label: Tensor | None = None,
        **inputs: Any,
    ) -> Output:
        encoded = self.body.encode(input_ids, **inputs, reads=(FIRST, labels))
        order = self.order(self.dropout(self.body.pool(encoded)))  # [B, 2]
        return encoded.output(
            **heads.two_losses(
                encoded, labels, self.predictions, order, sentence_order_label=sentence_order_label
            ),
            prediction_logits=lambda: encoded.layout.unpack(self.predictions(encoded.rows)),  # [B, T, V]
            sop_logits=order,
        )


bare = functools.partial(Albert, pooler=False)
AlbertMaskedLM = heads.bound("AlbertMaskedLM", heads.MaskedLM, bare, bert.Predictions)
AlbertSequenceClassification = heads.bound(
    "AlbertSequenceClassification",
    heads.SequenceClassification,
    Albert,
    "hidden_size classifier_dropout_prob weight_init",
)
AlbertTokenClassification = heads.bound(
    "AlbertTokenClassification",
    heads.TokenClassification,
    bare,
    "hidden_size classifier_dropout_prob weight_init",
)
AlbertQuestionAnswering = heads.bound(
    "AlbertQuestionAnswering", heads.QuestionAnswering, bare, "hidden_size weight_init"
)
AlbertMultipleChoice = heads.bound(
    "AlbertMultipleChoice", heads.MultipleChoice, Albert, "hidden_size classifier_dropout_prob weight_init"
)

CONFIG = AlbertConfig
MODEL_TYPES = {"albert": "Albert"}
HEADS = {
    "base": Albert,
    "pretraining": AlbertPretraining,
    "masked-lm": AlbertMaskedLM,
    "sequence-classification": AlbertSequenceClassification,
    "token-classification": AlbertTokenClassification,
    "question-answering": AlbertQuestionAnswering,
    "multiple-choice": AlbertMultipleChoice,
}
ARCHITECTURES = {
    "AlbertModel": "base",
    "AlbertForPreTraining": "pretraining",
    "AlbertForMaskedLM": "masked-lm",
    "AlbertForSequenceClassification": "sequence-classification",
    "AlbertForTokenClassification": "token-classification",
    "AlbertForQuestionAnswering": "question-answering",
    "AlbertForMultipleChoice": "multiple-choice",
}
PREFIX = "albert."
DROPPED = bert.DROPPED
REPEATED = r"^(body\.)?groups\."
GROUP = "encoder.albert_layer_groups.{i}.albert_layers.{j}"
NAMES = {
    "embeddings.tokens": "embeddings.word_embeddings",
    "embeddings.positions": "embeddings.position_embeddings",
    "embeddings.types": "embeddings.token_type_embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
    "embeddings.widen": "encoder.embedding_hidden_mapping_in",
    "groups.{i}.blocks.{j}.attn.qkv": f"{GROUP}.attention.{{query,key,value}}",
    "groups.{i}.blocks.{j}.attn.out": f"{GROUP}.attention.dense",
    "groups.{i}.blocks.{j}.norm1": f"{GROUP}.attention.LayerNorm",
    "groups.{i}.blocks.{j}.mlp.up": f"{GROUP}.ffn",
    "groups.{i}.blocks.{j}.mlp.down": f"{GROUP}.ffn_output",
    "groups.{i}.blocks.{j}.norm2": f"{GROUP}.full_layer_layer_norm",
    "pooler": "pooler",
    "predictions.dense": "predictions.dense",
    "predictions.norm": "predictions.LayerNorm",
    "predictions.decoder.weight": "predictions.decoder.weight",
    "predictions.decoder.bias": "predictions.bias | predictions.decoder.bias",
    "order": "sop_classifier.classifier",
    "classifier": "classifier",
    "span": "qa_outputs",
}
TOKENIZERS = (
    TokenizerFormat(
        "albert",
        "AlbertTokenizer",
        dict(pad="<pad>", unk="<unk>", cls="[CLS]", sep="[SEP]", mask="[MASK]", bos="[CLS]", eos="[SEP]"),
        **CLS_SEP,
        kinds=("unigram",),
        told=True,
        pieces=dict(normalise=True, lower=True),
        layout=dict(pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols=["[CLS]", "[SEP]", "[MASK]"]),
    ),
)


def sized(s: Size) -> dict[str, Any]:
    return bert.sized(s) | dict(embedding_size=min(128, s.width))


RECIPES = {
    "albert": Recipe(
        model=sized,
        head="pretraining",
        objective=dict(name="sentence-order", exact=True, unit="ngram"),
        tokenizer="unigram",
        vocab=30_000,
        lr=1.76e-3,
        steps=125_000,
        warmup=0.025,
        optim=dict(kind="lamb", weight_decay=0.01, eps=1e-6, clip_norm=1.0),
        schedule=dict(kind="linear"),
        data=SENTENCES,
        small_lr=1e-2,
        sizes={
            "base": Size(12, 768, 12, 512, 8, 512, None, None),
            "large": Size(24, 1024, 16, 512, 4, 1024, None, None),
            "xlarge": Size(24, 2048, 16, 512, 2, 2048, None, None),
            "xxlarge": Size(12, 4096, 64, 512, 1, 4096, None, None),
        },
    )
}
