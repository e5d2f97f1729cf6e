"""RoBERTa: BERT's body, trained longer and without sentence pairs (Liu et al. 2019);
XLM-R: the same in a hundred languages (Conneau et al. 2019).

Positions count the tokens that are not the padding token, from pad_token_id + 1. Shapes as in bert.py.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import bert, heads, padding
from plmcore.models.declaration import SENTENCES, Recipe, Size, TokenizerFormat
from plmcore.models.labels import NEXT
from plmcore.models.padding import Encoded


@dataclass(frozen=True, kw_only=True)
class RobertaConfig(bert.BertConfig):
    model_type: str = "roberta"
    vocab_size: int = 50265
    pad_token_id: int = 1

    def check(self) -> None:
        super().check()
        self.at_least(0, "pad_token_id")
        if self.pad_token_id >= min(self.vocab_size, self.max_position_embeddings - 1):
            self.refuse("pad_token_id", "must be below vocab_size and leave positions behind it")

    @property
    def longest(self) -> int:
        return self.max_position_embeddings - self.pad_token_id - 1

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.normal(self.initializer_range)


@dataclass(frozen=True, kw_only=True)
class XLMRobertaConfig(RobertaConfig):
    model_type: str = "xlm-roberta"
    vocab_size: int = 30522  # as the published class has it; the published models have 250,002


class Embeddings(bert.Embeddings):
    """LN(token + segment type + position).  ids [B, T] -> rows"""

    def __init__(self, cfg: RobertaConfig):
        super().__init__(cfg)
        self.pad = cfg.pad_token_id
        size = cfg.max_position_embeddings
        self.positions = nn.Embedding(size, cfg.hidden_size, self.pad, weight_init=cfg.weight_init)

    def __call__(
        self, layout: padding.Layout, ids: Tensor, types: Tensor | None, positions: Tensor | None
    ) -> Tensor:
        return super().__call__(layout, ids, types, self.count(ids) if positions is None else positions)

    def count(self, ids: Tensor) -> Tensor:
        """1, 2, ... over the tokens of each sequence, 0 at padding, all shifted by pad.  [B, T] -> [B, T]"""
        real = ops.cast(ids != self.pad, "int64")
        return ops.mul(ops.cumsum(real, 1), real) + self.pad


class Roberta(bert.Bert):
    def __init__(self, config: RobertaConfig, pooler: bool = True):
        C, init = config.hidden_size, config.weight_init
        self.config = config
        self.embeddings = Embeddings(config)
        self.blocks = bert.blocks(config)
        self.pooler = nn.Linear(C, C, activation="tanh", weight_init=init) if pooler else None


class Classifier(nn.Module):
    """x [B, C] -> [B, L]"""

    def __init__(self, cfg: RobertaConfig):
        C, init = cfg.hidden_size, cfg.weight_init
        self.dense = nn.Linear(C, C, activation="tanh", weight_init=init)
        self.dropout = nn.Dropout(cfg.head_dropout)
        self.out = nn.Linear(C, cfg.num_labels, weight_init=init)

    def __call__(self, x: Tensor) -> Tensor:
        return self.out(self.dropout(self.dense(x)))


class RobertaSequenceClassification(heads.SequenceClassification):
    """From <s>, the first token, itself."""

    def __init__(self, cfg: RobertaConfig):
        super().__init__(cfg, Roberta(cfg, pooler=False), cfg.hidden_size, cfg.head_dropout, cfg.weight_init)
        self.classifier: Any = Classifier(cfg)

    def pool(self, encoded: Encoded) -> Tensor:
        return encoded.first()  # [B, C]


def predictions(config: RobertaConfig, tokens: nn.Embedding) -> bert.Predictions:
    return bert.Predictions(config.replace(hidden_act="gelu"), tokens)


bare = functools.partial(Roberta, pooler=False)
RobertaMaskedLM = heads.bound("RobertaMaskedLM", heads.MaskedLM, bare, predictions)
# As BertCausalLM.
RobertaCausalLM = heads.bound("RobertaCausalLM", heads.MaskedLM, bare, predictions, LABELS=(NEXT,))
RobertaTokenClassification = heads.bound(
    "RobertaTokenClassification", heads.TokenClassification, bare, "hidden_size head_dropout weight_init"
)
RobertaQuestionAnswering = heads.bound(
    "RobertaQuestionAnswering", heads.QuestionAnswering, bare, "hidden_size weight_init"
)
RobertaMultipleChoice = heads.bound(
    "RobertaMultipleChoice", heads.MultipleChoice, Roberta, "hidden_size hidden_dropout_prob weight_init"
)

CONFIG = RobertaConfig
CONFIGS = {"xlm-roberta": XLMRobertaConfig}
MODEL_TYPES = {"roberta": "Roberta", "xlm-roberta": "XLMRoberta"}
HEADS = {
    "base": Roberta,
    "masked-lm": RobertaMaskedLM,
    "causal-lm": RobertaCausalLM,
    "sequence-classification": RobertaSequenceClassification,
    "token-classification": RobertaTokenClassification,
    "question-answering": RobertaQuestionAnswering,
    "multiple-choice": RobertaMultipleChoice,
}
ARCHITECTURES = {
    start + name: head
    for start in MODEL_TYPES.values()
    for name, head in {
        "Model": "base",
        "ForMaskedLM": "masked-lm",
        "ForCausalLM": "causal-lm",
        "ForSequenceClassification": "sequence-classification",
        "ForTokenClassification": "token-classification",
        "ForQuestionAnswering": "question-answering",
        "ForMultipleChoice": "multiple-choice",
    }.items()
}
PREFIX = "roberta."
DROPPED = bert.DROPPED
NAMES = {
    **{
        ours: name for ours, name in bert.NAMES.items() if ours.startswith(("embeddings", "blocks", "pooler"))
    },
    "predictions.dense": "lm_head.dense",
    "predictions.norm": "lm_head.layer_norm",
    "predictions.decoder.weight": "lm_head.decoder.weight",
    "predictions.decoder.bias": "lm_head.bias | lm_head.decoder.bias",
    "classifier.dense": "classifier.dense",
    "classifier.out": "classifier.out_proj",
    "classifier": "classifier",
    "span": "qa_outputs",
}
# in the order of their ids
SPECIAL = dict(bos="<s>", pad="<pad>", eos="</s>", unk="<unk>", mask="<mask>", cls="<s>", sep="</s>")
AROUND: Any = dict(single="cls A sep", pair="cls A sep sep B sep")
BYTES: Any = dict(kinds=("byte-bpe",), trims=True)
PIECES: Any = dict(
    kinds=("unigram",),
    pieces=dict(fairseq=True),
    layout=dict(unk_id=0, bos_id=1, eos_id=2, pad_id=-1),
    file="sentencepiece.bpe.model",
)
TOKENIZERS = (
    TokenizerFormat("roberta", "RobertaTokenizer", SPECIAL, **AROUND, **BYTES, told=True),
    TokenizerFormat("xlm-roberta", "XLMRobertaTokenizer", SPECIAL, **AROUND, **PIECES, told=True),
)


def sized(s: Size) -> dict[str, Any]:
    return bert.sized(s) | dict(
        max_position_embeddings=s.length + 2, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1
    )


RECIPES = {
    "roberta": Recipe(
        model=sized,
        head="masked-lm",
        objective=dict(name="masked-lm", exact=True, rounding="random", specials=False),
        tokenizer="byte-bpe",
        vocab=50_265,
        lr=6e-4,
        steps=500_000,
        warmup=0.048,
        optim=dict(kind="adamw", betas=[0.9, 0.98], weight_decay=0.01, eps=1e-6, clip_norm=None),
        schedule=dict(kind="linear"),
        data=SENTENCES,
        sizes={
            "base": Size(12, 768, 12, 512, 8, 1024, None, None),
            "large": Size(24, 1024, 16, 512, 4, 2048, None, None, 4e-4),
        },
    )
}
