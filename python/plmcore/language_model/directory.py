"""Model directories: config.json and safetensors files, as the rest of the world writes them."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plmcore import models, nn
from plmcore._core import FormatError, Tensor
from plmcore.files.whole import atomic_write, check_inside, copy_inside, read_json
from plmcore.formats import registry, safetensors
from plmcore.models import names, quantized, sizes
from plmcore.models.config import Config

if TYPE_CHECKING:
    from plmcore.models import Model

CONFIG = "config.json"
TASK_HEADS = ("sequence-classification", "token-classification", "multiple-choice", "question-answering")
# parameters that a config may ask for beyond twice those of the files, before it counts as damaged
ROOM = 1 << 20
# What a directory may hold beside config and weights, and a saved copy needs too.
COMPANIONS = (
    "added_tokens.json",
    "cog-pretrain.model",
    "config_sentence_transformers.json",
    "generation_config.json",
    "merges.txt",
    "modules.json",
    "sentence_bert_config.json",
    "sentencepiece.bpe.model",
    "source.spm",
    "special_tokens_map.json",
    "spiece.model",
    "target.spm",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "1_Pooling/config.json",
)


def read_config(folder: str | os.PathLike[str], **changes: Any) -> Config:
    folder = pathlib.Path(folder)
    if not folder.exists():
        raise FileNotFoundError(
            f"there is no directory '{folder}'; nothing is downloaded: name one with {CONFIG} and "
            f"{safetensors.FILE}"
        )
    if not folder.is_dir():
        raise NotADirectoryError(f"'{folder}' is a file; name the model directory, here '{folder.parent}'")
    return models.config_from_dict(read_json(folder / CONFIG, "; is it a model directory?"), **changes)


@dataclass
class Opened:
    """A directory's tensors, and the model that they belong to, which has no weights yet."""

    folder: pathlib.Path
    model: Model
    head: str
    own: str  # the head that the directory was saved with
    family: Any  # the module, or names.OWN, that knows the names of the tensors
    tensors: Mapping[str, Tensor]
    weights: str | None  # the dtype of quantised ones
    build: Callable[[str], Model]  # another head of the same config
    left_aside: Collection[str] = ()  # names of the head whose tensors are not read

    def settle(self, report: names.Report, strict: bool = True) -> list[str]:
        """The published names that are fresh, after the report was cleared of what comes of another head.

        FormatError for the rest.
        """
        fresh = _separate_heads(self, report)
        if strict and (problems := report.problems()):
            raise FormatError(
                f"the weights in '{self.folder}' do not fit {self.model.config.model_type} with the "
                f"head {self.head}; {problems}. "
                "strict=False loads what fits"
            )
        wrong = [*report.misshaped, *report.mistyped]
        return fresh + [*report.missing, *(text.partition(" ")[0] for text in wrong)]


def open_model(
    folder: str | os.PathLike[str],
    head: str | None = None,
    dtype: str | None = None,
    mapped: bool = True,
    new_head: bool = False,
    strict: bool = True,
    **changes: Any,
) -> Opened:
    """Without `head` config.json decides. With a `dtype` quantised weights become ordinary ones.

    `changes` replace keys of the config.

    new_head: the weights of the directory's head are left aside; so are those for another task, which may
    have the same names.
    """
    folder = pathlib.Path(folder)
    config = read_config(folder, **changes)
    tensors, _ = registry.read(folder, mapped=mapped)
    family: Any = models.family(config)
    weights = quantized.weights_of(config)
    if weights is not None:
        quantized.check(folder, tensors)
        if dtype is not None:
            tensors, config, weights = quantized.plain(tensors), quantized.with_weights(config, None), None
        family = names.OWN
    config = config.fitted(tensors)
    if head is None:
        head = own = models.head_of(config)
    else:
        own = models.family(config).ARCHITECTURES.get(next(iter(config.architectures), ""), "base")
    there = sum(int(t.size) for t in tensors.values())
    if strict and (asked := models.count_parameters(config, own)) > 2 * there + ROOM:
        raise FormatError(
            f"the config of '{folder}' asks for {asked:,} parameters, and its files hold {there:,} "
            f"numbers: a size in it is wrong"
        )
    sizes.check_memory(config, models.head_class(config, head), there)

    def build(head: str) -> Model:
        with nn.init.skipped():
            model = models.build(config, head)
        return model if weights is None else quantized.prepare(model, head, tensors, weights)

    model = build(head)
    left: set[str] = set()
    if new_head or (own != head and own in TASK_HEADS and head in TASK_HEADS):
        left = _names_of_head(family, model)
        tensors = {name: t for name, t in tensors.items() if name.removeprefix(family.PREFIX) not in left}
    return Opened(folder, model, head, own, family, tensors, weights, build, left)


def _names_of_head(family: Any, model: nn.Module) -> set[str]:
    body = {id(p) for p in getattr(model, "body", model).parameters()}
    slots = [slot for slot in names.slots(family, model) if id(slot.parameter) not in body]
    return {name for slot in slots for name in (*slot.stored.parts, *slot.stored.aliases)}


def read_model(
    folder: str | os.PathLike[str],
    head: str | None = None,
    dtype: str | None = None,
    strict: bool = True,
    mapped: bool = True,
    new_head: bool = False,
    **changes: Any,
) -> tuple[Model, names.Report]:
    """The model of a directory and what loading found. Without `head` config.json decides.

    `changes` replace keys of the config.

    A head that the directory was not saved with, or with new_head=True any, is drawn fresh, with a note in
    the report; tensors of other heads are left aside. Anything else that is missing, unexpected or of a wrong
    shape is an error, or with strict=False an entry of the report.
    """
    opened = open_model(folder, head, dtype, mapped, new_head, strict, **changes)
    model = opened.model
    report = names.load(opened.family, model, opened.tensors, "float32" if opened.weights else dtype)
    report.fresh = opened.settle(report, strict)
    if report.fresh:
        has = "gets new" if new_head else "has no"
        report.notes.append(
            f"'{folder}' {has} weights for {names.listed(report.fresh)}: they are drawn at random and "
            f"want training"
        )
    if opened.weights is not None:
        model.requires_grad_(False)
    model.config = model.config.replace(dtype=next((p.dtype for p in model.parameters()), None))
    return model, report


def write_model(model: Model, folder: str | os.PathLike[str], max_shard_bytes: int | None = None) -> None:
    """config.json and the weights, in the dtype they have."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config, head, weights = model.config, models.head_name(model), quantized.weights_in(model)
    config = config.replace(
        architectures=(models.architecture_of(config, head),),
        dtype=next((p.dtype for p in model.parameters()), None),
    )
    tensors = model.state_dict() if weights else names.published(models.family(config), model)
    options = {"aligned": True} if weights else {}
    registry.write(folder, tensors, {"format": "pt"}, max_shard_bytes, **options)
    write_config(quantized.with_weights(config, weights), folder)


def write_config(config: Config, folder: pathlib.Path) -> None:
    with atomic_write(folder / CONFIG) as f:
        f.write((json.dumps(config.to_dict(), indent=2, sort_keys=True) + "\n").encode())


def copy_companions(source: pathlib.Path, folder: pathlib.Path) -> None:
    """Tokenizer and pooling files from one model directory to another."""
    if source.resolve() == folder.resolve():
        return
    for name in companions(source):
        copy_inside(source, name, folder)


def companions(source: pathlib.Path) -> list[str]:
    """The tokenizer and pooling files that a directory has. FormatError for one that lies outside of it."""
    found = [name for name in COMPANIONS if (source / name).is_file()]
    for name in found:
        check_inside(source, name)
    return found


def _separate_heads(opened: Opened, report: names.Report) -> list[str]:
    """Takes out of the report what comes of loading another head than the file's;
    returns the names that are fresh for it.
    """
    if not report.missing and not report.unexpected:
        return []
    prefix = opened.family.PREFIX

    def known(head: str) -> set[str]:
        found = names.published_names(opened.family, opened.build(head))
        return {name.removeprefix(prefix) for name in found}

    other = opened.own != opened.head
    expected = known(opened.own) if other else set()
    fresh = [
        name
        for name in report.missing
        if name in opened.left_aside or (other and name.removeprefix(prefix) not in expected)
    ]
    drawn = set(fresh)
    report.missing = [name for name in report.missing if name not in drawn]
    if report.unexpected:
        others: set[str] = set().union(*map(known, models.family(opened.model.config).HEADS))
        report.unused = [name for name in report.unexpected if name.removeprefix(prefix) in others]
        report.unexpected = [name for name in report.unexpected if name.removeprefix(prefix) not in others]
    return fresh
