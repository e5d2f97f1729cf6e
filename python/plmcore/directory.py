"""Model directories: config.json and safetensors files, as the rest of the world writes them."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import warnings
from typing import Any

from plmcore import models, nn, safetensors
from plmcore._core import FormatError
from plmcore.files import atomic_write, read_json
from plmcore.models import names
from plmcore.models.config import Config

CONFIG = "config.json"
# What a directory may hold beside config and weights, and a saved copy needs too.
COMPANIONS = (
    "added_tokens.json", "config_sentence_transformers.json", "generation_config.json", "merges.txt", "modules.json",
    "sentence_bert_config.json", "sentencepiece.bpe.model", "source.spm", "special_tokens_map.json", "spiece.model", "target.spm",
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt", "1_Pooling/config.json",
)  # fmt: skip


def read_config(folder: str | os.PathLike[str], **changes: Any) -> Config:
    folder = pathlib.Path(folder)
    return models.config_from_dict(read_json(folder / CONFIG, "; is it a model directory?"), **changes)


def read_model(
    folder: str | os.PathLike[str],
    head: str | None = None,
    dtype: str | None = None,
    strict: bool = True,
    **changes: Any,
) -> tuple[nn.Module, names.Report]:
    """The model of a directory and what loading found. Without `head` config.json decides. `changes` replace keys of the config.

    A head that the directory was not saved with is drawn fresh, with a warning; tensors of other heads are left aside. Anything
    else that is missing, unexpected or of a wrong shape is an error, or with strict=False an entry of the report.
    """
    folder = pathlib.Path(folder)
    tensors, _ = safetensors.read(folder)
    config = read_config(folder, **changes).fitted(tensors)
    family = models.family(config)
    if head is None:
        head = own = models.head_of(config)
    else:
        own = family.ARCHITECTURES.get(next(iter(config.architectures), ""), "base")
    with nn.init.skipped():
        model = models.build(config, head)
    report = names.load(family, model, tensors, dtype)
    fresh = _separate_heads(config, head, own, report)
    if strict and (problems := report.problems()):
        raise FormatError(
            f"the weights in '{folder}' do not fit {config.model_type} with the head {head}; {problems}. strict=False loads what fits"
        )
    fresh += [*report.missing, *(text.partition(" ")[0] for text in report.misshaped)]
    if fresh:
        warnings.warn(
            f"'{folder}' has no weights for {', '.join(fresh)}: they are drawn at random and want training",
            stacklevel=3,
        )
    model.config = config.replace(dtype=next((p.dtype for p in model.parameters()), None))
    return model, report


def write_model(model: nn.Module, folder: str | os.PathLike[str], max_shard_bytes: int | None = None) -> None:
    """config.json and the weights, in the dtype they have."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config, head = model.config, models.head_name(model)
    config = config.replace(
        architectures=(models.architecture_of(config, head),),
        dtype=next((p.dtype for p in model.parameters()), None),
    )
    tensors = names.published(models.family(config), model)
    safetensors.write(folder / safetensors.FILE, tensors, {"format": "pt"}, max_shard_bytes)
    with atomic_write(folder / CONFIG) as f:
        f.write((json.dumps(config.to_dict(), indent=2, sort_keys=True) + "\n").encode())


def copy_companions(source: pathlib.Path, folder: pathlib.Path) -> None:
    """Tokenizer and pooling files from one model directory to another."""
    if source.resolve() == folder.resolve():
        return
    for name in COMPANIONS:
        if (source / name).is_file():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source / name, folder / name)


def _separate_heads(config: Config, head: str, own: str, report: names.Report) -> list[str]:
    """Takes out of the report what comes of loading another head than the file's; returns the names that are fresh for it."""
    if not report.missing and not report.unexpected:
        return []
    family = models.family(config)

    def known(head: str) -> set[str]:
        with nn.init.skipped():
            return names.published_names(family, models.build(config, head))

    fresh: list[str] = []
    if own != head:
        expected = {name.removeprefix(family.PREFIX) for name in known(own)}
        fresh = [name for name in report.missing if name.removeprefix(family.PREFIX) not in expected]
        report.missing = [name for name in report.missing if name not in fresh]
    if report.unexpected:
        others = {name.removeprefix(family.PREFIX) for other in family.HEADS for name in known(other)}
        report.unused = [name for name in report.unexpected if name.removeprefix(family.PREFIX) in others]
        report.unexpected = [name for name in report.unexpected if name not in report.unused]
    return fresh
