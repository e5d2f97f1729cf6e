"""What a family's module declares, as constants at its end. docs/adding-a-model.md shows a whole one.

    CONFIG          the class of its config
    MODEL_TYPES     model_type -> how its published class names begin
    HEADS           head -> class, made of a config; "base" is the body. What the labels of a head mean says
                    its LABELS: see plmcore.models.labels
    ARCHITECTURES   published class name -> head
    PREFIX, NAMES   the names of parameters in files: see plmcore.models.names, as for DROPPED, RENAMED,
                    JOINED, REPEATED

A module may also have

    CONFIGS         model_type -> class of the config, where it is not CONFIG
    TOKENIZERS      the formats of its tokenizers
    RECIPES         model_type -> how it is pre-trained
    FINETUNING      how it is fine-tuned
    ALIASES         other names of its recipes -> model_type
    CHECKPOINT      files of the program that it was published with
    VECTORS         which of the body's parameters holds word vectors
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from plmcore._core import ArgumentError, Tensor
from plmcore.models.config import Config

GENERIC = "PreTrainedTokenizerFast"  # what transformers calls a tokenizer.json of no family of its own
CLS_SEP: dict[str, Any] = dict(single="cls A sep", pair="cls A sep B:1 sep:1")
SENTENCES = dict(documents="blank", sentences="rule", unwrap=True)
TEXT = dict(documents="file", sentences="rule", unwrap=False)


@dataclass(frozen=True)
class TokenizerFormat:
    """What a family puts around its texts. `single` and `pair` are read from left to right: A and B are
    the texts, `language` the code of a translation family, any other word the role of a special token;
    `:1` after a word is its segment id.
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
    splits: bool = False  # words are those of running text, see tokenizers/library.py
    kinds: tuple[str, ...] = ()  # of tokenizers that it goes with: wordpiece, bpe, byte-bpe, unigram, words
    usual: bool = False  # the one of these kinds where nobody names another
    told: bool = False  # by the special tokens of a vocabulary, where nothing else tells the family
    file: str | None = None  # by which it is known, where there is nothing else
    shows: tuple[str, ...] = ()  # objectives whose examples `plmcore show` prints with its special tokens
    # its words are spelled as characters: the key of config.json with the width of a word
    spelled: str = ""
    trims: bool = False  # offsets have no space; that before the mask belongs to it
    characters: int = 0  # of each token that batches have beside its id, as char_ids
    # how its sentencepiece model is read, see tokenizers/pieces.py
    pieces: Mapping[str, object] = field(default_factory=dict)
    # where a new sentencepiece model has its special tokens
    layout: Mapping[str, object] = field(default_factory=dict)

    @property
    def needed(self) -> set[str]:
        """The roles without which nothing can be encoded."""
        words = {word.partition(":")[0] for word in f"{self.single} {self.pair}".split()}
        return (words & set(self.roles)) | ({"unk"} & set(self.roles))


@dataclass(frozen=True)
class Size:
    """Of a model and of its batches: `batch` rows of `length` tokens at a time,
    `accumulate` times for one step.
    """

    layers: int
    width: int
    heads: int
    length: int
    batch: int
    accumulate: int
    vocab: int | None  # None: the published vocabulary's
    steps: int | None  # None: the published number
    lr: float | None = None  # None: the published one
    dropout: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """`model` gives the keys of the family's config for a size;
    other fields are defaults of tables of config.toml.
    """

    model: Callable[[Size], dict[str, Any]]
    head: str
    objective: Mapping[str, Any]
    tokenizer: str
    vocab: int
    lr: float
    steps: int
    warmup: float  # share of the steps
    optim: Mapping[str, Any] = field(default_factory=dict)
    schedule: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=lambda: TEXT)
    train: Mapping[str, Any] = field(default_factory=dict)
    small_lr: float | None = None  # of sizes below base; None: that of the size
    sizes: Mapping[str, Size] = field(default_factory=dict)  # where the published base differs
    mixes: bool = False  # supervised tasks with the text
    spells: bool = False  # every word of the text is read; the data.vocab most frequent are predicted
    lacks: tuple[str, ...] = ()  # sizes that were not published
    derive: Callable[[dict[str, dict[str, Any]]], None] = lambda chosen: None  # fills in what follows
    special_tokens: str | None = None  # whose format a new tokenizer has; None: the family's own
    decoder_start: str = "eos"  # the role of the token that the decoder's input begins with


@dataclass(frozen=True, kw_only=True)
class Finetuning:
    """Defaults of tables of a fine-tuning's config.toml."""

    lr: float = 3e-5
    small_lr_times: float = 10.0  # for models narrower than any that was published
    warmup_share: float = 0.1
    most_warmup: int | None = None  # steps; None: any number
    optim: Mapping[str, Any] = field(default_factory=dict)
    schedule: str = "linear"
    epochs: int = 3
    unfreeze_every: float | None = None  # epochs after which classifiers learn with one layer more
    # tables of the task lm, where they differ
    text: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    label_smoothing: float = 0.0  # where it writes text
    lm_weight: float = 0.0  # of the next token, beside classes and choices
    data: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    # of a body that gives features (adapt.layers, adapt.freeze, adapt.encoder, adapt.dropout)
    layers: str | None = None
    freeze: str | None = None
    encoder: int = 0
    dropout: float = 0.1


@dataclass(frozen=True)
class WordVectors:
    """Where a family keeps a vector of each word: a parameter of its body, and the key of its width."""

    parameter: str
    width: str


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A file of the program that a family was published with, which `plmcore convert --family` reads.

    state, settings: the keys, in a file of torch.save, of its tensors and of the settings of the run; a file
    may also hold the tensors alone. open: path -> tensors and settings, of files of another kind. read:
    (tensors, settings, ids) -> keys of the config, and tensors by names that NAMES and RENAMED know. ids: of
    the special tokens of the vocabulary, by role, and its `size`; empty where none was given. head: that
    the tensors are of; None: that of the recipe. vocabulary: what its file is: "fairseq", a dict.txt; "list",
    a pickled list of words; "" where there is none.
    """

    state: str = ""
    settings: str = ""
    open: Callable[[pathlib.Path], tuple[Mapping[str, Tensor], Mapping[str, Any]]] | None = None
    head: str | None = None
    read: Callable[
        [Mapping[str, Tensor], Mapping[str, Any], Mapping[str, int]],
        tuple[dict[str, Any], Mapping[str, Tensor]],
    ]
    vocabulary: str = "fairseq"


DECODER_FINETUNING = Finetuning(lr=6.25e-5, warmup_share=0.002)
OPTIONAL: dict[str, Any] = dict(
    CONFIGS={},
    DROPPED=(),
    RENAMED=(),
    JOINED=(),
    REPEATED=None,
    TOKENIZERS=(),
    RECIPES={},
    FINETUNING=Finetuning(),
    ALIASES={},
    CHECKPOINT=None,
    VECTORS=None,
)
NEEDED = dict(
    CONFIG="the class of its config",
    MODEL_TYPES="model_type -> how its published class names begin",
    HEADS='head -> class, "base" among them',
    ARCHITECTURES="published class name -> head",
    PREFIX="of the body's parameters in a head's file",
    NAMES="our names of parameters -> the published ones",
)


def complete(module: ModuleType) -> ModuleType:
    """The module, with the defaults of what it leaves out. ArgumentError for one that is no family's."""
    absent = [f"{key} ({what})" for key, what in NEEDED.items() if not hasattr(module, key)]
    if absent:
        raise ArgumentError(
            f"{module.__name__} declares no family: add {', '.join(absent)}; docs/adding-a-model.md shows how"
        )
    for key, usual in OPTIONAL.items():
        vars(module).setdefault(key, usual)
    for key, holds, rule in _rules(module):
        if not holds:
            raise ArgumentError(
                f"{module.__name__}.{key} must be {rule}, got {getattr(module, key)!r:.200}; "
                f"docs/adding-a-model.md shows one"
            )
    return module


def _rules(m: Any) -> list[tuple[str, bool, str]]:
    """(constant, whether it is as it must be, how it must be); first of what they are, then how they fit."""
    starts = m.MODEL_TYPES
    kinds = [
        ("CONFIG", _is_config(m.CONFIG), "a class derived from plmcore.models.Config"),
        ("MODEL_TYPES", _table(starts, str) and bool(starts), "model types with beginnings of class names"),
        ("HEADS", _table(m.HEADS) and all(map(callable, m.HEADS.values())), "heads with their classes"),
        ("HEADS", _table(m.HEADS) and "base" in m.HEADS, 'heads with their classes, "base" among them'),
        ("ARCHITECTURES", _table(m.ARCHITECTURES, str), "published class names with heads"),
        ("PREFIX", isinstance(m.PREFIX, str), "a text"),
        ("NAMES", _table(m.NAMES), "our names of parameters with the published ones"),
        ("CONFIGS", _table(m.CONFIGS) and all(map(_is_config, m.CONFIGS.values())), "classes like CONFIG"),
        ("TOKENIZERS", _all(m.TOKENIZERS, TokenizerFormat), "a tuple of TokenizerFormat"),
        ("RECIPES", _table(m.RECIPES, Recipe), "model types with a Recipe each"),
        ("FINETUNING", isinstance(m.FINETUNING, Finetuning), "a Finetuning"),
        ("ALIASES", _table(m.ALIASES, str), "names with model types"),
        ("CHECKPOINT", isinstance(m.CHECKPOINT, Checkpoint | None), "a Checkpoint"),
        ("VECTORS", isinstance(m.VECTORS, WordVectors | None), "a WordVectors"),
    ]
    if not all(holds for _, holds, _ in kinds):
        return kinds
    configs = {name: m.CONFIGS.get(name, m.CONFIG) for name in starts}
    published = {
        (start, head)
        for start in starts.values()
        for name, head in m.ARCHITECTURES.items()
        if name.startswith(start)
    }
    missing = sorted({(start, head) for start in starts.values() for head in m.HEADS} - published)
    recipes = [name in starts and recipe.head in m.HEADS for name, recipe in m.RECIPES.items()]
    return [
        ("CONFIG", all(c.model_type == name for name, c in configs.items()), "of one of MODEL_TYPES"),
        ("ARCHITECTURES", not missing, f"published names of all HEADS, also of {missing[:1]}"),
        ("ARCHITECTURES", set(m.ARCHITECTURES.values()) <= set(m.HEADS), "of no head but HEADS"),
        ("RECIPES", all(recipes), "for some of MODEL_TYPES, each with one of HEADS"),
        ("ALIASES", set(m.ALIASES.values()) <= set(m.RECIPES), "other names of RECIPES"),
    ]


def _is_config(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Config)


def _table(value: object, kind: type = object) -> bool:
    return isinstance(value, Mapping) and _all((*value,), str) and _all((*value.values(),), kind)


def _all(values: object, kind: type) -> bool:
    return isinstance(values, tuple) and all(isinstance(v, kind) for v in values)
