"""New model directories for families that are not pre-trained: a vocabulary of words, and their vectors."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore import models
from plmcore._core import ArgumentError, Tensor, assign, manual_seed
from plmcore.files.whole import atomic_directory
from plmcore.language_model.model import LanguageModel, from_config
from plmcore.models.declaration import TokenizerFormat
from plmcore.runtime.kinds import checked
from plmcore.tokenizers import Tokenizer, library, train_tokenizer
from plmcore.tokenizers.loading import dressed

if TYPE_CHECKING:
    from plmcore.vectors import Vectors

Path = str | os.PathLike[str]


@checked
def new(
    model_type: str,
    *,
    out: Path,
    text: Path | Iterable[Path] | None = None,
    vectors: Path | Vectors | None = None,
    vocab_size: int | None = None,
    min_count: int = 2,
    lower: bool = True,
    errors: str = "strict",
    head: str = "base",
    seed: int = 0,
    **keys: Any,
) -> LanguageModel:
    """Writes the directory of an untrained model that reads words, for finetune; returns the model.

    The words are those of `text` (files or folders) that have a vector or are seen `min_count` times, at most
    `vocab_size`, the frequent ones first; without a text all that have a vector. A word without a vector gets
    a random one of the same size. `keys` are keys of the config, as d_uni=256. finetune brings a head of its
    own.
    """
    from plmcore.vectors import load_vectors

    known = models.family(model_type)
    format = next((f for f in known.TOKENIZERS if "words" in f.kinds), None)
    if format is None or known.VECTORS is None:
        able = sorted(m for f in models.families() if f.VECTORS is not None for m in f.MODEL_TYPES)
        raise ArgumentError(
            f"new makes models that read words ({', '.join(able)}), and {model_type} is none of them: "
            f"plmcore pretrain {model_type} makes one from text"
        )
    if text is None and vectors is None:
        raise ArgumentError("new needs words: a text (--text), word vectors (--vectors), or both")
    if min_count < 1:
        raise ArgumentError(f"new: min_count must be at least 1, got {min_count}")
    folder = pathlib.Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArgumentError(f"'{folder}' is there, and not empty; name another directory")
    table = load_vectors(vectors) if isinstance(vectors, str | os.PathLike) else vectors
    tokenizer = _tokenizer(format, text, table, vocab_size, min_count, lower, errors)
    known_keys = _keys(models.config_class(model_type), known.VECTORS.width, tokenizer, table, keys)
    manual_seed(seed)
    lm = from_config({"model_type": model_type}, head, **known_keys)
    if table is not None:
        _place(lm, known.VECTORS.parameter, table, tokenizer)
    lm.tokenizer = tokenizer
    with atomic_directory(folder) as made:
        lm.save(made)
    return lm.eval()


def _tokenizer(
    format: TokenizerFormat,
    text: Any,
    table: Vectors | None,
    vocab_size: int | None,
    min_count: int,
    lower: bool,
    errors: str,
) -> Tokenizer:
    special = [*dict.fromkeys([*format.roles.values(), *format.extra])]
    common: dict[str, Any] = dict(kind="words", family=format.name, lower=lower, errors=errors)
    if text is None:
        assert table is not None
        words = [*dict.fromkeys(word.lower() if lower else word for word in table.words)]
    else:
        text = [text] if isinstance(text, str | os.PathLike) else list(text)
        often = train_tokenizer(text, vocab_size=vocab_size, min_count=min_count, **common)
        if table is None:
            return often
        every = train_tokenizer(text, vocab_size=None, min_count=1, **common)
        by_id = sorted(every.backend.vocabulary, key=every.backend.vocabulary.__getitem__)
        words = [w for w in by_id if w in table or often.id_of(w) is not None]
    words = [*special, *(w for w in words if w not in special)][:vocab_size]
    vocabulary = {word: i for i, word in enumerate(words)}
    backend = library.words(vocabulary, lower=lower, unknown=format.roles["unk"])
    return dressed(backend, format, format.roles, "the words")


def _keys(
    kind: type[Any], width: str, tokenizer: Tokenizer, table: Vectors | None, asked: Mapping[str, Any]
) -> dict[str, Any]:
    """Of the config: what follows from vocabulary and vectors, and what is asked for."""
    keys: dict[str, Any] = {"vocab_size": tokenizer.vocab_size}
    fields = {f.name for f in dataclasses.fields(kind)}
    if unknown := [key for key in asked if key not in fields]:
        raise ArgumentError(f"new: there is no key {unknown[0]!r}; one of {', '.join(sorted(fields))}")
    for role in tokenizer.roles:
        if f"{role}_token_id" in fields:
            keys[f"{role}_token_id"] = getattr(tokenizer, f"{role}_token_id")
    if table is not None:
        keys[width] = table.matrix.shape[1]
    for key, value in asked.items():
        if keys.get(key, value) != value:
            raise ArgumentError(f"new: {key} is {keys[key]}, from words and vectors, not {value}")
    return keys | dict(asked)


def _place(lm: LanguageModel, name: str, table: Vectors, tokenizer: Tokenizer) -> None:
    """Gives words their vectors; those without one are drawn as large as the others."""
    parameter = dict(lm.named_parameters())[name]
    values = np.array(parameter.numpy())
    values *= table.matrix.std() / max(float(values.std()), 1e-12)
    for word, row in tokenizer.backend.vocabulary.items():
        if word in table:
            values[row] = table[word]
    assign(parameter, Tensor(values))
