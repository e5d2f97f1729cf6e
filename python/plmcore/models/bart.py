"""BART: the Transformer as a denoising auto-encoder, with learned positions, GELU and a norm of the
embeddings (Lewis et al. 2019).

Shapes: B batch, S source length, T target length, C width, V vocabulary; rows are [B, T, C], or [N, C] where
padding was dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import heads, padding, roberta, seq2seq, stacks, transformer
from plmcore.models.declaration import SENTENCES, Finetuning, Recipe, Size, TokenizerFormat
from plmcore.models.names import Stored
from plmcore.models.stacks import Decoder, Encoder, Stacks, StacksCausalLM, StacksConfig, StacksSeq2SeqLM
from plmcore.models.transformer import DecoderBlock, EncoderBlock

FIRST_POSITION = 2  # rows 0 and 1 of the table are not used; padding counts


@dataclass(frozen=True, kw_only=True)
class BartConfig(StacksConfig):
    model_type: str = "bart"
    num_labels: int = 3
    vocab_size: int = 50265
    classifier_dropout: float = 0.0
    forced_last: ClassVar[int | None] = 2

    def check(self) -> None:
        super().check()
        self.probability("classifier_dropout")


class Embeddings(nn.Module):
    """LN(token + position), tokens times sqrt(C) where the config says so.  ids [B, T] -> rows"""

    def __init__(self, cfg: BartConfig, weight: nn.Parameter | None = None):
        C, init = cfg.d_model, cfg.weight_init
        self.tokens = nn.Embedding(cfg.vocab_size, C, cfg.pad_token_id, weight=weight, weight_init=init)
        self.positions = nn.Embedding(
            FIRST_POSITION + cfg.max_position_embeddings, C, weight_init=cfg.position_init
        )
        self.scale = cfg.embedding_scale
        self.norm = nn.LayerNorm(C)
        self.dropout = nn.Dropout(cfg.dropout)

    def __call__(self, ids: Tensor, layout: padding.Layout) -> Tensor:
        x = self.tokens(layout.pack(ids))
        x = x if self.scale == 1 else ops.affine(x, self.scale, 0.0)
        positions = layout.positions() + FIRST_POSITION
        return self.dropout(self.norm(ops.add(x, self.positions(positions))))


def encoder(cfg: BartConfig, weight: nn.Parameter | None = None) -> Encoder:
    return Encoder(cfg, Embeddings(cfg, weight), (EncoderBlock(cfg) for _ in range(cfg.encoder_layers)))


def decoder(cfg: BartConfig, weight: nn.Parameter | None = None) -> Decoder:
    return Decoder(cfg, Embeddings(cfg, weight), (DecoderBlock(cfg) for _ in range(cfg.decoder_layers)))


class Bart(Stacks):
    """Without decoder_input_ids the decoder reads the source, shifted: it is to restore it."""

    def __init__(self, config: BartConfig):
        super().__init__(config, encoder, decoder)

    def target_of(self, input_ids: Tensor | None) -> Tensor:
        if input_ids is None:
            return super().target_of(None)
        padding.check_ids(input_ids)
        return self.shifted(input_ids)


BartSeq2SeqLM = heads.bound("BartSeq2SeqLM", StacksSeq2SeqLM, Bart)
BartCausalLM = heads.bound("BartCausalLM", StacksCausalLM, decoder)
BartSequenceClassification = heads.bound(
    "BartSequenceClassification",
    seq2seq.SequenceClassification,
    Bart,
    "d_model classifier_dropout weight_init",
)
BartQuestionAnswering = heads.bound(
    "BartQuestionAnswering", seq2seq.QuestionAnswering, Bart, "d_model weight_init"
)

CONFIG = BartConfig
MODEL_TYPES = {"bart": "Bart"}
HEADS = {
    "base": Bart,
    "seq2seq-lm": BartSeq2SeqLM,
    "causal-lm": BartCausalLM,
    "sequence-classification": BartSequenceClassification,
    "question-answering": BartQuestionAnswering,
}
ARCHITECTURES = {
    "BartModel": "base",
    "BartForConditionalGeneration": "seq2seq-lm",
    "BartForCausalLM": "causal-lm",
    "BartForSequenceClassification": "sequence-classification",
    "BartForQuestionAnswering": "question-answering",
}
PREFIX = "model."
DROPPED = transformer.DROPPED
NAMES = {
    **transformer.NAMES,
    "encoder.embeddings.norm": "encoder.layernorm_embedding",
    "decoder.embeddings.norm": "decoder.layernorm_embedding",
    "logits_bias": Stored(("final_logits_bias",), shape=lambda config: (1, config.vocab_size)),
    "dense": "classification_head.dense",
    "classifier": "classification_head.out_proj",
    "span": "qa_outputs",
}
SHOWS = ("denoising", "fragment", "masked-seq2seq")
TOKENIZERS = (
    TokenizerFormat("bart", "BartTokenizer", roberta.SPECIAL, **roberta.AROUND, **roberta.BYTES, shows=SHOWS),
)
RECIPES = {
    "bart": Recipe(
        model=stacks.sized,
        head="seq2seq-lm",
        objective=dict(name="denoising"),
        tokenizer="byte-bpe",
        vocab=50_265,
        lr=4e-4,
        steps=500_000,
        warmup=0.02,
        optim=dict(kind="adamw", betas=[0.9, 0.98], weight_decay=0.01, eps=1e-6, clip_norm=0.1),
        schedule=dict(kind="polynomial"),
        data=SENTENCES,
        sizes={
            "base": Size(12, 768, 12, 512, 8, 1000, None, None),
            "large": Size(24, 1024, 16, 512, 4, 2000, None, None),
        },
        mixes=True,
    )
}
FINETUNING = Finetuning(label_smoothing=0.1)
