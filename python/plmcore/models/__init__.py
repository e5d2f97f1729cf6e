"""Model families, one module each, found by the `model_type` and `architectures` of a config.json.

What a family's module declares: plmcore.models.declaration.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from plmcore import nn
from plmcore._core import ArgumentError
from plmcore.models import declaration, sizes
from plmcore.models.config import Config

if TYPE_CHECKING:  # imported on first use
    from plmcore.models import (
        albert,
        awd_lstm,
        bart,
        bert,
        cnn,
        cove,
        cvt,
        distilbert,
        elmo,
        glm,
        gpt1,
        gpt2,
        gpt3,
        mass,
        mbart,
        nplm,
        rnn_seq2seq,
        roberta,
        t5,
        transfo_xl,
        transformer,
        xlnet,
    )

    class Model(nn.Module):
        """A model of some family, for those who do not know which: its parts have the family's names."""

        config: Config

        def __getattr__(self, name: str) -> Any: ...


__all__ = [
    "Config",
    "FAMILIES",
    "albert",
    "architecture_of",
    "awd_lstm",
    "bart",
    "bert",
    "build",
    "cnn",
    "config_from_dict",
    "count_parameters",
    "cove",
    "cvt",
    "distilbert",
    "elmo",
    "family",
    "glm",
    "gpt1",
    "gpt2",
    "gpt3",
    "head_name",
    "head_of",
    "mass",
    "mbart",
    "nplm",
    "register",
    "rnn_seq2seq",
    "roberta",
    "t5",
    "transfo_xl",
    "transformer",
    "xlnet",
]


# model_type -> module of this package, or whole name of a registered one
FAMILIES = {
    "albert": "albert",
    "awd-lstm": "awd_lstm",
    "bart": "bart",
    "bert": "bert",
    "cnn": "cnn",
    "cove": "cove",
    "cvt": "cvt",
    "distilbert": "distilbert",
    "elmo": "elmo",
    "glm": "glm",
    "gpt2": "gpt2",
    "gpt3": "gpt3",
    "marian": "transformer",
    "mass": "mass",
    "mbart": "mbart",
    "nplm": "nplm",
    "openai-gpt": "gpt1",
    "rnn-seq2seq": "rnn_seq2seq",
    "roberta": "roberta",
    "t5": "t5",
    "transfo-xl": "transfo_xl",
    "transformer": "transformer",
    "xlm-roberta": "roberta",
    "xlnet": "xlnet",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType:
        if name in FAMILIES.values() and "." not in name:  # found in globals() from now on
            return import_module(f"plmcore.models.{name}")
        raise AttributeError(f"module 'plmcore.models' has no attribute {name!r}")


def register(module: ModuleType) -> None:
    """Makes a family of a module that declares one, as docs/adding-a-model.md shows: everything that takes a
    model takes its models from now on, in this process. An installed package needs no call: its module is an
    entry point of the group plmcore.families.
    """
    known = declaration.complete(module)
    for model_type in known.MODEL_TYPES:
        if FAMILIES.get(model_type, module.__name__) != module.__name__:
            raise ArgumentError(
                f"{module.__name__}.MODEL_TYPES must be of its own: {model_type!r} is of "
                f"{FAMILIES[model_type]}"
            )
    FAMILIES.update(dict.fromkeys(known.MODEL_TYPES, module.__name__))
    _MODULES[module.__name__] = module


GROUP = "plmcore.families"  # the entry points of packages that bring families
_MODULES: dict[str, ModuleType] = {}  # the families that were used so far


def family(model_type: str | Config) -> ModuleType:
    """The module of a family, with all constants of plmcore.models.declaration."""
    model_type = model_type.model_type if isinstance(model_type, Config) else model_type
    if model_type not in FAMILIES:
        register_installed()
    if model_type not in FAMILIES:
        raise ArgumentError(f"there is no model_type {model_type!r}; one of {', '.join(sorted(FAMILIES))}")
    return _module(FAMILIES[model_type])


def _module(name: str) -> ModuleType:
    if name not in _MODULES:
        _MODULES[name] = declaration.complete(import_module(f"plmcore.models.{name}"))
    return _MODULES[name]


def families(near: str = "") -> Iterator[ModuleType]:
    """Every family's module, each once, imported when its turn comes: first those whose model_type is in
    `near`, last those of installed packages that were not used so far.
    """
    near = near.lower()
    names = dict.fromkeys(FAMILIES[k] for k in sorted(FAMILIES, key=lambda k: k.replace("-", "") not in near))
    yield from map(_module, names)
    register_installed()
    yield from map(_module, [name for name in dict.fromkeys(FAMILIES.values()) if name not in names])


@functools.cache
def register_installed() -> None:
    """Registers the families of installed packages, once."""
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        try:
            module = point.load()
        except ImportError as e:
            package = point.dist.name if point.dist else "?"
            raise ArgumentError(
                f"the family {point.value!r} of the installed package {package!r} cannot be imported: {e}; "
                f"repair the package, or uninstall it"
            ) from e
        register(module)


def config_from_dict(values: Mapping[str, Any], **changes: Any) -> Config:
    """The config of the family that config.json's `model_type` names."""
    if not isinstance(values.get("model_type"), str):
        raise ArgumentError(
            f"config.json must have a model_type, one of {', '.join(sorted(FAMILIES))}; got "
            f"{values.get('model_type')!r}"
        )
    return config_class(values["model_type"]).from_dict(values, **changes)


def config_class(model_type: str) -> type[Config]:
    """The class of a family's config."""
    known = family(model_type)
    kind: type[Config] = known.CONFIGS.get(model_type, known.CONFIG)
    return kind


def head_of(config: Config) -> str:
    """The head that the config's `architectures` names; base when it names none."""
    if not config.architectures:
        return "base"
    known = family(config).ARCHITECTURES
    if config.architectures[0] not in known:
        raise ArgumentError(
            f"config.json: the architecture {config.architectures[0]!r} is not one of "
            f"{', '.join(known)}; choose a head yourself: "
            f"head= one of {', '.join(family(config).HEADS)}"
        )
    return known[config.architectures[0]]


def architecture_of(config: Config, head: str) -> str:
    """The published class name of a head."""
    known = family(config)
    start = known.MODEL_TYPES[config.model_type]
    names = [name for name, h in known.ARCHITECTURES.items() if h == head and name.startswith(start)]
    same = [name for name in config.architectures if name in names]
    return (same or names)[0]


def build(config: Config, head: str = "base") -> Model:
    """A model with fresh weights, drawn as published; inside nn.init.skipped() without weights."""
    kind = head_class(config, head)
    if not nn.init.is_skipped():
        sizes.check_memory(config, kind)
    model: Model = kind(config)
    return model


def head_class(config: Config, head: str) -> Any:
    heads = family(config).HEADS
    if head not in heads:
        raise ArgumentError(f"{config.model_type} has no head {head!r}; one of {', '.join(heads)}")
    return heads[head]


def head_name(model: Model) -> str:
    """The head that a model is: one of its family's, or one that goes with every family and names itself."""
    heads = family(model.config).HEADS
    found = next((head for head, kind in heads.items() if kind is type(model)), getattr(model, "HEAD", None))
    if found is None:
        raise ArgumentError(
            f"{type(model).__name__} is no head of {model.config.model_type}: it has {', '.join(heads)}"
        )
    return found


def count_parameters(config: Config, head: str = "base") -> int:
    """Without making them. Shared parameters count once."""
    return sizes.count(config, head_class(config, head))
