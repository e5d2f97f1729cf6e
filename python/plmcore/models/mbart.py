"""mBART: BART for many languages, with pre-norm blocks and a norm at the end of each stack (Liu et al. 2020).

A text ends with its language's token, and the decoder's input begins with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from plmcore import nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models import bart, heads, padding, roberta, seq2seq, stacks
from plmcore.models.bart import Bart, BartConfig, Embeddings
from plmcore.models.causal_attention import self_attend
from plmcore.models.declaration import TokenizerFormat
from plmcore.models.seq2seq import Source
from plmcore.models.stacks import Decoder, Encoder, Stacks, StacksCausalLM, StacksSeq2SeqLM


@dataclass(frozen=True, kw_only=True)
class MBartConfig(BartConfig):
    model_type: str = "mbart"
    num_labels: int = 2
    decoder_start_token_id: int | None = None


class EncoderBlock(nn.Module):
    def __init__(self, cfg: MBartConfig):
        self.norm1 = nn.LayerNorm(cfg.d_model)
        self.attn = stacks.self_attention(cfg, cfg.encoder_attention_heads)
        self.norm2 = nn.LayerNorm(cfg.d_model)
        self.mlp = stacks.feed_forward(cfg, cfg.encoder_ffn_dim)

    def __call__(self, x: Tensor, layout: padding.Layout) -> Tensor:
        y, x = self.norm2.with_sum(self.attn(self.norm1(x), **layout.attention), x)
        return ops.add(x, self.mlp(y))


class DecoderBlock(nn.Module):
    """Without a source it is the block of a decoder alone."""

    def __init__(self, cfg: MBartConfig):
        self.norm1 = nn.LayerNorm(cfg.d_model)
        self.attn = stacks.self_attention(cfg, cfg.decoder_attention_heads, causal=True)
        self.norm2 = nn.LayerNorm(cfg.d_model)
        self.cross = stacks.cross_attention(cfg)
        self.norm3 = nn.LayerNorm(cfg.d_model)
        self.mlp = stacks.feed_forward(cfg, cfg.decoder_ffn_dim)

    def __call__(self, x: Tensor, layout: padding.Layout, source: Source | None) -> Tensor:
        y = self_attend(self.attn, self.norm1(x), layout)
        if source is not None:
            seen, x = self.norm2.with_sum(y, x)
            y = seq2seq.cross_attend(self.cross, seen, layout, source)
        y, x = self.norm3.with_sum(y, x)
        return ops.add(x, self.mlp(y))


def encoder(cfg: MBartConfig, weight: nn.Parameter | None = None) -> Encoder:
    blocks = (EncoderBlock(cfg) for _ in range(cfg.encoder_layers))
    return Encoder(cfg, Embeddings(cfg, weight), blocks, nn.LayerNorm(cfg.d_model))


def decoder(cfg: MBartConfig, weight: nn.Parameter | None = None) -> Decoder:
    blocks = (DecoderBlock(cfg) for _ in range(cfg.decoder_layers))
    return Decoder(cfg, Embeddings(cfg, weight), blocks, nn.LayerNorm(cfg.d_model))


class MBart(Bart):
    def __init__(self, config: MBartConfig):
        Stacks.__init__(self, config, encoder, decoder)

    def shifted(self, ids: Tensor) -> Tensor:
        """The last token that is no padding, then the others.  [B, T]"""
        if self.config.pad_token_id is None:
            raise ArgumentError("the config has no pad_token_id: pass decoder_input_ids")
        pad = ops.full((), self.config.pad_token_id, ids.dtype, like=ids)
        ids = ops.where(ids == -100, pad, ids)
        count = ops.sum(ops.cast(ops.not_equal(ids, pad), "int64"), 1, True)  # [B, 1]
        last = ops.gather(ids, count - 1, 1)
        return ops.concat([last, ops.slice(ids, 1, 0, ids.shape[1] - 1)], 1)


MBartSeq2SeqLM = heads.bound("MBartSeq2SeqLM", StacksSeq2SeqLM, MBart)
MBartCausalLM = heads.bound("MBartCausalLM", StacksCausalLM, decoder)
MBartSequenceClassification = heads.bound(
    "MBartSequenceClassification",
    seq2seq.SequenceClassification,
    MBart,
    "d_model classifier_dropout weight_init",
)
MBartQuestionAnswering = heads.bound(
    "MBartQuestionAnswering", seq2seq.QuestionAnswering, MBart, "d_model weight_init"
)

CONFIG = MBartConfig
MODEL_TYPES = {"mbart": "MBart"}
HEADS = {
    "base": MBart,
    "seq2seq-lm": MBartSeq2SeqLM,
    "causal-lm": MBartCausalLM,
    "sequence-classification": MBartSequenceClassification,
    "question-answering": MBartQuestionAnswering,
}
ARCHITECTURES = {f"M{name}": head for name, head in bart.ARCHITECTURES.items()}
PREFIX = "model."
DROPPED = bart.DROPPED
NAMES = {**bart.NAMES, "encoder.norm": "encoder.layer_norm", "decoder.norm": "decoder.layer_norm"}
LANGUAGES = tuple(
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV "
    "my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN".split()
)
LANGUAGES50 = LANGUAGES + tuple(
    "af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX "
    "sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI".split()
)
TOKENIZERS = (
    TokenizerFormat(
        "mbart",
        "MBartTokenizer",
        roberta.SPECIAL,
        "A eos language",
        "A B eos language",
        languages=LANGUAGES,
        **roberta.PIECES,
    ),
    TokenizerFormat(
        "mbart50",
        "MBart50Tokenizer",
        roberta.SPECIAL,
        "language A eos",
        "language A B eos",
        languages=LANGUAGES50,
        **roberta.PIECES,
    ),
)
