"""Checkpoints of the programs that families were published with, as model directories."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import Any

from plmcore import models, nn
from plmcore._core import ArgumentError, FormatError, Tensor
from plmcore.formats import registry, torch_file
from plmcore.formats.torch_pickle import Fields
from plmcore.language_model import directory
from plmcore.models import names
from plmcore.models.declaration import Checkpoint
from plmcore.tokenizers.fairseq import read_dictionary
from plmcore.tokenizers.word_list import read_words

VOCABULARIES = {"fairseq": read_dictionary, "list": read_words}


def convert_checkpoint(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    family: str,
    vocab: str | os.PathLike[str] | None = None,
    changes: Mapping[str, Any] | None = None,
    max_shard_bytes: int | None = None,
) -> None:
    """Writes the model directory of a checkpoint, with its tokenizer where `vocab` is given, a file of the
    kind that the family's CHECKPOINT names. `changes` replace keys of the config. Nothing of the files is
    run.
    """
    known = models.family(family)
    form = known.CHECKPOINT
    if form is None:
        able = sorted(m for k in models.families() if k.CHECKPOINT for m in k.MODEL_TYPES)
        raise ArgumentError(f"{family} has no checkpoints of its own: --family is one of {', '.join(able)}")
    source, out = pathlib.Path(source), pathlib.Path(out)
    if vocab is not None and not form.vocabulary:
        raise ArgumentError(f"{family} reads words as they are spelled and takes no --vocab")
    tensors, settings = opened(source, form)
    tokenizer = None if vocab is None else VOCABULARIES[form.vocabulary](vocab, family)
    ids: dict[str, int] = {}
    if tokenizer is not None:
        ids = {role: tokenizer.backend.vocabulary[token] for role, token in tokenizer.roles.items()}
        ids["size"] = len(tokenizer.backend.vocabulary)
    try:
        keys, tensors = form.read(tensors, settings, ids)
    except FormatError as e:
        raise FormatError(f"'{source}' cannot be converted: {e}") from None
    config = models.config_from_dict({"model_type": family, **keys}, **(changes or {}))
    head = form.head or known.RECIPES[family].head
    if config.architectures:
        head = models.head_of(config)
    with nn.init.skipped():
        model = models.build(config, head)
    report = names.load(known, model, tensors)
    if problems := report.problems():
        raise FormatError(f"'{source}' does not fit {family} with the head {head}; {problems}")
    directory.write_model(model, out, max_shard_bytes)
    if tokenizer is not None:
        tokenizer.save(out)


def opened(source: pathlib.Path, form: Checkpoint) -> tuple[Mapping[str, Tensor], Mapping[str, Any]]:
    """The tensors of a checkpoint and the settings beside them."""
    if form.open is not None:
        return form.open(source)
    arrays, rest = torch_file.read_checkpoint(source, form.state)
    tensors = {name: registry.as_tensor("torch", name, array) for name, array in arrays.items()}
    return tensors, _settings(rest.get(form.settings))


def _settings(value: object) -> dict[str, Any]:
    """The single values among a program's settings."""
    values = value.values if isinstance(value, Fields) else value
    if not isinstance(values, dict):
        return {}
    return {k: v for k, v in values.items() if isinstance(k, str) and isinstance(v, (str, int, float))}
