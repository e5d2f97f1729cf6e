"""A model directory with fresh weights, for families that begin with a task and not with plain text."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from plmcore import models, nn, tokenizers
from plmcore._core import ArgumentError, Tensor, assign, manual_seed
from plmcore.files.whole import atomic_directory
from plmcore.language_model.model import LanguageModel, from_config
from plmcore.runtime.kinds import checked
from plmcore.tokenizers import families, library
from plmcore.tokenizers.loading import dressed
from plmcore.vectors.table import Vectors, load_vectors

Path = str | os.PathLike[str]


@checked
def new(
    family: str,
    *,
    out: Path,
    text: Iterable[Path] = (),
    vectors: Path | Vectors | None = None,
    vocab: int | None = None,
    lower: bool = False,
    head: str = "base",
    seed: int = 0,
    **keys: Any,
) -> LanguageModel:
    """Writes a model with fresh weights and a tokenizer of whole words to the directory `out`; returns it.

    The vocabulary is that of the text, its `vocab` most frequent words (None: all), or without a text that
    of the vectors. `vectors` (a file or plm.load_vectors of it) give the embeddings of the words that they
    have, the others are drawn. `keys` are keys of the config. plm.finetune trains the model for a task.
    """
    texts: list[Path] = list(text)
    known = vectors if isinstance(vectors, Vectors | None) else load_vectors(vectors)
    if not texts and known is None:
        raise ArgumentError("a vocabulary is needed: name text files, or vectors, whose words it has")
    tokenizer = _tokenizer(family, texts, known, vocab, lower)
    config = _config(family, tokenizer, known, keys)
    manual_seed(seed)
    lm = from_config(config, head)
    lm.tokenizer = tokenizer
    if known is not None:
        _embed(lm.model, tokenizer, known)
    with atomic_directory(out) as folder:
        lm.save(folder)
        tokenizer.save(folder)
    return lm


def _tokenizer(
    family: str, texts: list[Path], vectors: Vectors | None, vocab: int | None, lower: bool
) -> tokenizers.Tokenizer:
    """Of the text's words, or of those that have vectors."""
    format = families.FAMILIES.get(family)
    if format is None or "words" not in format.kinds:
        able = (f.name for f in families.formats() if "words" in f.kinds)
        raise ArgumentError(f"{family!r} has no tokenizer of whole words; one of {', '.join(able)}")
    if texts:
        return tokenizers.train_tokenizer(texts, kind="words", vocab_size=vocab, family=family, lower=lower)
    assert vectors is not None
    tokens = dict.fromkeys([*format.roles.values(), *vectors.words[:vocab]])
    backend = library.words(
        {token: i for i, token in enumerate(tokens)}, lower=lower, unknown=format.roles["unk"]
    )
    return dressed(backend, format, format.roles, "the vectors")


def _config(
    family: str, tokenizer: tokenizers.Tokenizer, vectors: Vectors | None, keys: Mapping[str, Any]
) -> models.Config:
    """The keys that were given, and what tokenizer and vectors know."""
    fields = {f.name for f in dataclasses.fields(models.config_class(family))}
    special = {f"{role}_token_id": getattr(tokenizer, f"{role}_token_id") for role in ("pad", "bos", "eos")}
    values: dict[str, Any] = {"model_type": family, "vocab_size": tokenizer.vocab_size}
    values |= {key: i for key, i in special.items() if key in fields and i is not None}
    if vectors is not None:
        dim = vectors.matrix.shape[1]
        if keys.get("d_embed", dim) != dim:
            raise ArgumentError(f"the vectors have {dim} numbers, and d_embed is {keys['d_embed']}")
        values["d_embed"] = dim
    if unknown := [key for key in keys if key not in fields]:
        raise ArgumentError(f"{family} has no key {unknown[0]!r}; one of {', '.join(sorted(fields))}")
    return models.config_from_dict(values | dict(keys))


def _embed(model: models.Model, tokenizer: tokenizers.Tokenizer, vectors: Vectors) -> None:
    """Gives the words that have a vector their row."""
    table = getattr(model, "embedding", None)
    if not isinstance(table, nn.Embedding):
        raise ArgumentError(f"{model.config.model_type} has no table of words that vectors could fill")
    rows = np.array(table.weight.numpy())
    for i in range(tokenizer.vocab_size):
        word = tokenizer.token_of(i)
        if word is not None and word in vectors:
            rows[i] = vectors[word]
    assign(table.weight, Tensor(rows))
