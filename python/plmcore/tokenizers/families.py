"""What each family puts around its texts: special tokens, formats, segment ids, padding."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from plmcore._core import ArgumentError

GENERIC = "PreTrainedTokenizerFast"  # what transformers calls a tokenizer.json of no family of its own
ROLES = ("pad", "unk", "cls", "sep", "mask", "bos", "eos")

MBART_LANGUAGES = tuple(
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX ro_RO "
    "ru_RU si_LK tr_TR vi_VN zh_CN".split()
)
MBART50_LANGUAGES = MBART_LANGUAGES + tuple(
    "af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN "
    "th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI".split()
)


@dataclass(frozen=True)
class Family:
    """`single` and `pair` are read from left to right: A and B are the texts, `language` the code of a translation family, any
    other word the role of a special token; `:1` after a word is its segment id.
    """

    name: str
    class_name: str  # what transformers calls its tokenizer
    roles: Mapping[str, str]
    single: str = "A"
    pair: str = "A B"
    padding_side: str = "right"
    pad_type: int = 0
    extra: tuple[str, ...] = ()  # special tokens without a role, in the order of their ids
    languages: tuple[str, ...] = ()
    lower: bool = True  # WordPiece: where tokenizer_config.json does not say
    pieces: Mapping[str, object] = field(default_factory=dict)  # how its sentencepiece model is read, see pieces.py

    @property
    def needed(self) -> set[str]:
        """The roles without which nothing can be encoded."""
        words = {word.partition(":")[0] for word in f"{self.single} {self.pair}".split()}
        return (words & set(self.roles)) | ({"unk"} & set(self.roles))


def _roles(**roles: str) -> dict[str, str]:
    return roles


_BERT = _roles(pad="[PAD]", unk="[UNK]", cls="[CLS]", sep="[SEP]", mask="[MASK]")
# in the order of their ids
_ROBERTA = _roles(bos="<s>", pad="<pad>", eos="</s>", unk="<unk>", mask="<mask>", cls="<s>", sep="</s>")
_GPT2 = _roles(unk="<|endoftext|>", bos="<|endoftext|>", eos="<|endoftext|>")
_CLS_SEP: dict[str, Any] = dict(single="cls A sep", pair="cls A sep B:1 sep:1")
_S_S: dict[str, Any] = dict(single="cls A sep", pair="cls A sep sep B sep")

FAMILIES = {
    family.name: family
    for family in (
        Family("bert", "BertTokenizer", _BERT, **_CLS_SEP),
        Family("distilbert", "DistilBertTokenizer", _BERT, **_CLS_SEP),
        Family("roberta", "RobertaTokenizer", _ROBERTA, **_S_S),
        Family("bart", "BartTokenizer", _ROBERTA, **_S_S),
        Family("xlm-roberta", "XLMRobertaTokenizer", _ROBERTA, **_S_S, pieces=dict(fairseq=True)),
        Family(
            "mbart", "MBartTokenizer", _ROBERTA, "A eos language", "A B eos language",
            languages=MBART_LANGUAGES, pieces=dict(fairseq=True),
        ),
        Family(
            "mbart50", "MBart50Tokenizer", _ROBERTA, "language A eos", "language A B eos",
            languages=MBART50_LANGUAGES, pieces=dict(fairseq=True),
        ),
        Family("openai-gpt", "OpenAIGPTTokenizer", _roles(unk="<unk>")),
        Family("gpt2", "GPT2Tokenizer", _GPT2),
        Family("gpt3", "GPT2Tokenizer", _GPT2),
        Family(
            "albert", "AlbertTokenizer",
            _roles(pad="<pad>", unk="<unk>", cls="[CLS]", sep="[SEP]", mask="[MASK]", bos="[CLS]", eos="[SEP]"),
            **_CLS_SEP, pieces=dict(tidy=True, lower=True),
        ),
        Family(
            "xlnet", "XLNetTokenizer",
            _roles(pad="<pad>", unk="<unk>", cls="<cls>", sep="<sep>", mask="<mask>", bos="<s>", eos="</s>"),
            "A sep cls:2", "A sep B:1 sep:1 cls:2", "left", 3, ("<eop>", "<eod>"), pieces=dict(tidy=True, lower=False),
        ),
        Family(
            "t5", "T5Tokenizer", _roles(pad="<pad>", eos="</s>", unk="<unk>"), "A eos", "A eos B eos",
            extra=tuple(f"<extra_id_{i}>" for i in reversed(range(100))),
        ),
        Family("marian", "MarianTokenizer", _roles(pad="<pad>", eos="</s>", unk="<unk>"), "A eos", "A B eos"),
        Family(
            "transformer", GENERIC, _roles(bos="<s>", pad="<pad>", eos="</s>", unk="<unk>"),
            "A eos", "A eos B eos",
        ),
        Family("words", GENERIC, _roles(unk="<unk>", pad="<pad>", bos="<s>", eos="</s>")),
        Family("characters", GENERIC, _roles(unk="<unk>")),
        Family("", GENERIC, {}),  # of a tokenizer.json that no other fits
    )
}  # fmt: skip


def family(name: str) -> Family:
    if name not in FAMILIES:
        raise ArgumentError(f"there is no tokenizer family {name!r}; one of {', '.join(n for n in FAMILIES if n)}")
    return FAMILIES[name]


def of_class(class_name: str) -> Family | None:
    """The family of a transformers class: BertTokenizer, BertTokenizerFast."""
    name = class_name.removesuffix("Fast")
    return next((f for f in FAMILIES.values() if f.class_name == name), None)


def of_vocabulary(tokens: Container[str], kind: str) -> Family:
    """The first family of a kind of tokenizer whose special tokens are all there."""
    candidates = {
        "wordpiece": ("bert",),
        "bpe": ("openai-gpt",),
        "byte-bpe": ("roberta", "gpt2"),
        "unigram": ("albert", "xlnet", "xlm-roberta", "t5"),
        "words": ("transformer",),
        "characters": ("characters",),
    }
    for name in candidates.get(kind, ()):
        if all(token in tokens for token in FAMILIES[name].roles.values()):
            return FAMILIES[name]
    return FAMILIES[""]
