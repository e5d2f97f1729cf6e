"""BERT: a bidirectional encoder with learned positions,
segment types and post-norm blocks (Devlin et al. 2018).

Shapes: B batch, T length, N rows that are no padding, C width, V vocabulary. Rows are [B, T, C], or [N, C]
where padding was dropped.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import causal_attention, heads, padding
from plmcore.models.config import ACTIVATIONS, Config
from plmcore.models.declaration import CLS_SEP, SENTENCES, Recipe, Size, TokenizerFormat
from plmcore.models.labels import NEXT, NEXT_SENTENCE
from plmcore.models.outputs import Output
from plmcore.models.padding import FIRST, Encoded


@dataclass(frozen=True, kw_only=True)
class BertConfig(Config):
    model_type: str = "bert"
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    classifier_dropout: float | None = None
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True
    is_decoder: bool = False
    add_cross_attention: bool = False

    def check(self) -> None:
        self.at_least(1, "vocab_size", "intermediate_size", "max_position_embeddings", "type_vocab_size")
        self.at_least(0, "num_hidden_layers", "initializer_range")
        self.multiple("hidden_size", of="num_attention_heads")
        self.one_of("hidden_act", ACTIVATIONS)
        self.probability("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
        self.one_of("add_cross_attention", (False,))
        if self.extra.get("position_embedding_type", "absolute") != "absolute":
            self.refuse("extra", "must not ask for a position_embedding_type other than absolute")

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.truncated_normal(self.initializer_range)

    @property
    def head_dropout(self) -> float:
        return self.hidden_dropout_prob if self.classifier_dropout is None else self.classifier_dropout


class Embeddings(nn.Module):
    """LN(token + segment type + position).  ids [B, T] -> rows"""

    def __init__(self, cfg: Config, width: int | None = None):
        C, init = width or cfg.hidden_size, cfg.weight_init
        self.tokens = nn.Embedding(cfg.vocab_size, C, cfg.pad_token_id, weight_init=init)
        self.positions = nn.Embedding(cfg.max_position_embeddings, C, weight_init=init)
        self.types = nn.Embedding(cfg.type_vocab_size, C, weight_init=init)
        self.norm = nn.LayerNorm(C, cfg.layer_norm_eps)
        self.dropout = nn.Dropout(cfg.hidden_dropout_prob)

    def __call__(
        self, layout: padding.Layout, ids: Tensor, types: Tensor | None, positions: Tensor | None
    ) -> Tensor:
        positions = (
            layout.positions() if positions is None else layout.pack(ops.broadcast_to(positions, ids.shape))
        )
        types = ops.full(ids.shape, 0, "int64", like=ids) if types is None else types
        x = ops.add(self.tokens(layout.pack(ids)), self.types(layout.pack(types)))  # [B, T, C] or [N, C]
        return self.dropout(self.norm(ops.add(x, self.positions(positions))))


class Block(nn.Module):
    def __init__(self, cfg: Config):
        C, init = cfg.hidden_size, cfg.weight_init
        self.attn = nn.SelfAttention(
            C, cfg.num_attention_heads, weight_init=init,
            dropout=cfg.attention_probs_dropout_prob, out_dropout=cfg.hidden_dropout_prob,
        )  # fmt: skip
        self.norm1 = nn.LayerNorm(C, cfg.layer_norm_eps)
        self.mlp = nn.MLP(
            C, cfg.intermediate_size, ACTIVATIONS[cfg.hidden_act], cfg.hidden_dropout_prob, weight_init=init
        )
        self.norm2 = nn.LayerNorm(C, cfg.layer_norm_eps)

    def __call__(self, x: Tensor, layout: padding.Layout) -> Tensor:
        x = self.norm1(self.attend(x, layout), residual=x)
        return self.norm2(self.mlp(x), residual=x)

    def attend(self, x: Tensor, layout: padding.Layout) -> Tensor:
        return self.attn(x, **layout.attention)


class DecoderBlock(Block):
    """A position sees those up to itself."""

    def __init__(self, cfg: Config):
        super().__init__(cfg)
        self.attn.causal = True

    def attend(self, x: Tensor, layout: padding.Layout) -> Tensor:
        return causal_attention.self_attend(self.attn, x, layout)


def blocks(cfg: BertConfig) -> nn.ModuleList:
    kind = DecoderBlock if cfg.is_decoder else Block
    return nn.ModuleList(kind(cfg) for _ in range(cfg.num_hidden_layers))


class Bert(nn.Module):
    def __init__(self, config: BertConfig, pooler: bool = True):
        self.config = config
        self.embeddings = Embeddings(config)
        self.blocks = blocks(config)
        self.pooler: Any = None
        if pooler:
            C = config.hidden_size
            self.pooler = nn.Linear(C, C, activation="tanh", weight_init=config.weight_init)

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
    ) -> Encoded:
        padding.check_ids(input_ids, self.config.longest, token_type_ids=token_type_ids)
        kind = causal_attention if self.config.is_decoder else padding
        layout = kind.layout(input_ids, attention_mask, reads, output_attentions)
        x = self.embeddings(layout, input_ids, token_type_ids, position_ids)
        states = [x] if output_hidden_states else None
        for block in self.blocks:
            x = block(x, layout)
            if states is not None:
                states.append(x)
        return Encoded(x, layout, states)

    def pool(self, encoded: Encoded) -> Tensor:
        return self.pooler(encoded.first())  # [B, C]

    def __call__(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, *args: Any, **inputs: Any
    ) -> Output:
        pools = self.pooler is not None
        encoded = self.encode(input_ids, attention_mask, *args, **inputs, reads=(FIRST,) if pools else ())
        return encoded.output(
            last_hidden_state=encoded.layout.unpack(encoded.rows),
            pooler_output=self.pool(encoded) if pools else None,
        )


class Predictions(nn.Module):
    """Logits over the vocabulary: a transform, then the token table as the output layer.
    [..., C] -> [..., V]
    """

    def __init__(self, cfg: Config, tokens: nn.Embedding):
        (V, E), init = tokens.weight.shape, cfg.weight_init
        self.dense = nn.Linear(cfg.hidden_size, E, activation=ACTIVATIONS[cfg.hidden_act], weight_init=init)
        self.norm = nn.LayerNorm(E, cfg.layer_norm_eps)
        self.decoder = nn.Linear(
            E, V, weight=tokens.weight if cfg.tie_word_embeddings else None, weight_init=init
        )

    def __call__(self, x: Tensor) -> Tensor:
        return self.decoder(self.norm(self.dense(x)))


class BertPretraining(heads.MaskedLM):
    """Masked tokens and whether the second segment follows the first (label 0: it does)."""

    LABELS = (NEXT_SENTENCE,)

    def __init__(self, config: BertConfig):
        super().__init__(config, Bert(config), Predictions)
        self.next_sentence = nn.Linear(config.hidden_size, 2, weight_init=config.weight_init)

    def __call__(
        self, input_ids: Tensor, *, labels: Tensor | None = None, next_sentence_label: Tensor | None = None,
        **inputs: Any,
    ) -> Output:  # fmt: skip
        encoded = self.body.encode(input_ids, **inputs, reads=(FIRST, labels))
        follows = self.next_sentence(self.body.pool(encoded))  # [B, 2]
        return encoded.output(
            **heads.two_losses(
                encoded, labels, self.predictions, follows, next_sentence_label=next_sentence_label
            ),
            prediction_logits=lambda: encoded.layout.unpack(self.predictions(encoded.rows)),  # [B, T, V]
            seq_relationship_logits=follows,
        )


class BertNextSentence(nn.Module):
    def __init__(self, config: BertConfig):
        self.config = config
        self.body = Bert(config)
        self.next_sentence = nn.Linear(config.hidden_size, 2, weight_init=config.weight_init)

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        encoded = self.body.encode(input_ids, **inputs, reads=(FIRST,))
        logits = self.next_sentence(self.body.pool(encoded))  # [B, 2]
        loss = None if labels is None else ops.cross_entropy(logits, ops.reshape(labels, logits.shape[:1]))
        return encoded.output(logits=logits, loss=loss)


bare = functools.partial(Bert, pooler=False)
BertMaskedLM = heads.bound("BertMaskedLM", heads.MaskedLM, bare, Predictions)
# With is_decoder in the config a position sees those up to itself, and labels are compared with the position
# before.
BertCausalLM = heads.bound("BertCausalLM", heads.MaskedLM, bare, Predictions, LABELS=(NEXT,))
BertSequenceClassification = heads.bound(
    "BertSequenceClassification", heads.SequenceClassification, Bert, "hidden_size head_dropout weight_init"
)
BertTokenClassification = heads.bound(
    "BertTokenClassification", heads.TokenClassification, bare, "hidden_size head_dropout weight_init"
)
BertQuestionAnswering = heads.bound(
    "BertQuestionAnswering", heads.QuestionAnswering, bare, "hidden_size weight_init"
)
BertMultipleChoice = heads.bound(
    "BertMultipleChoice", heads.MultipleChoice, Bert, "hidden_size head_dropout weight_init"
)

CONFIG = BertConfig
MODEL_TYPES = {"bert": "Bert"}
HEADS = {
    "base": Bert,
    "pretraining": BertPretraining,
    "masked-lm": BertMaskedLM,
    "causal-lm": BertCausalLM,
    "next-sentence": BertNextSentence,
    "sequence-classification": BertSequenceClassification,
    "token-classification": BertTokenClassification,
    "question-answering": BertQuestionAnswering,
    "multiple-choice": BertMultipleChoice,
}
ARCHITECTURES = {
    "BertModel": "base",
    "BertForPreTraining": "pretraining",
    "BertForMaskedLM": "masked-lm",
    "BertLMHeadModel": "causal-lm",
    "BertForNextSentencePrediction": "next-sentence",
    "BertForSequenceClassification": "sequence-classification",
    "BertForTokenClassification": "token-classification",
    "BertForQuestionAnswering": "question-answering",
    "BertForMultipleChoice": "multiple-choice",
}
PREFIX = "bert."
DROPPED = (r"embeddings\.position_ids$",)
NAMES = {
    "embeddings.tokens": "embeddings.word_embeddings",
    "embeddings.positions": "embeddings.position_embeddings",
    "embeddings.types": "embeddings.token_type_embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
    "blocks.{i}.attn.qkv": "encoder.layer.{i}.attention.self.{query,key,value}",
    "blocks.{i}.attn.out": "encoder.layer.{i}.attention.output.dense",
    "blocks.{i}.norm1": "encoder.layer.{i}.attention.output.LayerNorm",
    "blocks.{i}.mlp.up": "encoder.layer.{i}.intermediate.dense",
    "blocks.{i}.mlp.down": "encoder.layer.{i}.output.dense",
    "blocks.{i}.norm2": "encoder.layer.{i}.output.LayerNorm",
    "pooler": "pooler.dense",
    "predictions.dense": "cls.predictions.transform.dense",
    "predictions.norm": "cls.predictions.transform.LayerNorm",
    "predictions.decoder.weight": "cls.predictions.decoder.weight",
    "predictions.decoder.bias": "cls.predictions.bias | cls.predictions.decoder.bias",
    "next_sentence": "cls.seq_relationship",
    "classifier": "classifier",
    "span": "qa_outputs",
}
SPECIAL = dict(pad="[PAD]", unk="[UNK]", cls="[CLS]", sep="[SEP]", mask="[MASK]")
TOKENIZERS = (
    TokenizerFormat(
        "bert",
        "BertTokenizer",
        SPECIAL,
        **CLS_SEP,
        kinds=("wordpiece",),
        usual=True,
        told=True,
        shows=("masked-lm", "next-sentence", "sentence-order", "contrastive"),
    ),
)


def sized(s: Size) -> dict[str, Any]:
    return dict(
        num_hidden_layers=s.layers,
        hidden_size=s.width,
        num_attention_heads=s.heads,
        intermediate_size=4 * s.width,
        max_position_embeddings=s.length,
    )


RECIPES = {
    "bert": Recipe(
        model=sized,
        head="pretraining",
        objective=dict(name="next-sentence", exact=True, most=80, copies=10),
        tokenizer="wordpiece",
        vocab=30_522,
        lr=1e-4,
        steps=1_000_000,
        warmup=0.01,
        optim=dict(kind="bertadam", weight_decay=0.01, clip_norm=1.0, eps=1e-6),
        schedule=dict(kind="linear"),
        data=SENTENCES,
    )
}
