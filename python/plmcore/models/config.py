"""Configurations: frozen dataclasses whose fields are the keys of the published config.json."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from plmcore._core import ArgumentError

# Published names of activations -> ours.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "linear": "none",
    "relu": "relu",
    "sigmoid": "sigmoid",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}


# A damaged or hostile config.json must not keep a machine busy with making layers.
MOST, MOST_LAYERS, MOST_LABELS = 2**31 - 1, 10_000, 1_000_000

WIDTHS = ("hidden_size", "n_embd", "d_model", "dim")  # as published configs call them
DEPTHS = ("num_hidden_layers", "n_layer", "n_layers")


@dataclass(frozen=True, kw_only=True)
class Config:
    """The base of every family's config.

    A key that the family does not know is kept in `extra` and written back.
    """

    model_type: str = ""
    architectures: tuple[str, ...] = ()
    dtype: str | None = None
    num_labels: int = 2
    problem_type: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    forced_last: ClassVar[int | None] = None  # token at the end of a text, unless generation_config.json says

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if not _fits(value, hints[f.name]):
                self.refuse(f.name, f"must be {_spoken(hints[f.name])}")
            most = MOST_LABELS if f.name == "num_labels" else MOST
            if "layer" in f.name or "group" in f.name:
                most = MOST_LAYERS
            if isinstance(value, int) and value > most:
                self.refuse(f.name, f"must be at most {most}")
            if "norm_eps" in f.name:
                self.at_least(0, f.name)
        for key in ("id2label", "label2id"):
            if not isinstance(self.extra.get(key, {}), (Mapping, types.NoneType)):
                raise ArgumentError(
                    f"{type(self).__name__}: {key} must be an object, got {self.extra[key]!r:.60}"
                )
        self.at_least(1, "num_labels")
        if getattr(self, "pad_token_id", None) is not None:
            self.at_least(0, "pad_token_id")
        self.one_of(
            "problem_type", (None, "regression", "single_label_classification", "multi_label_classification")
        )
        self.check()

    def check(self) -> None:
        """A family's own conditions, with the helpers below."""

    @property
    def longest(self) -> int | None:
        """The most tokens of a sequence that there are positions for; None: any number."""
        return getattr(self, "max_position_embeddings", None)

    @property
    def lengths(self) -> Mapping[str, int]:
        """The usual tokens of an example, of kinds of tasks for which they are the model's own."""
        return {}

    @property
    def width(self) -> int:
        """Of the vectors that the body gives. A family whose key is none of WIDTHS says it itself."""
        found = [getattr(self, key) for key in WIDTHS if hasattr(self, key)]
        if not found:
            raise ArgumentError(
                f"{type(self).__name__} must have one of {', '.join(WIDTHS)}, or a property width"
            )
        return found[0]

    @property
    def depth(self) -> int | None:
        """The number of layers; None where there is not one stack of them. As `width`, by DEPTHS."""
        return next((getattr(self, key) for key in DEPTHS if hasattr(self, key)), None)

    def fitted(self, tensors: Mapping[str, Any]) -> Self:
        """The config that the tensors of a file, by published names,
        ask for where they know better than config.json.
        """
        return self

    if TYPE_CHECKING:  # the keys that only some families have

        def __getattr__(self, name: str) -> Any: ...

    # ---- config.json ----

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], **changes: Any) -> Self:
        """From the keys of a config.json; `changes` replace some of them."""
        known = {f.name for f in dataclasses.fields(cls)} - {"extra"}
        if unknown := [key for key in changes if key not in known and key not in values]:
            raise ArgumentError(
                f"{cls.__name__} has no key {unknown[0]!r}; one of {', '.join(sorted(known))}"
            )
        values = {**values, **changes}
        values.setdefault("dtype", values.pop("torch_dtype", None))
        values["architectures"] = values.get("architectures") or ()
        if "num_labels" not in changes and isinstance(values.get("id2label"), Mapping):
            values["num_labels"] = len(values["id2label"])
        extra = {key: value for key, value in values.items() if key not in known}
        own: dict[str, Any] = {
            key: tuple(v) if isinstance(v, list) else v for key, v in values.items() if key in known
        }
        return cls(**own, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        """The keys of a config.json, those that were not understood among them."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "extra"}
        values |= self.extra
        values["architectures"] = list(self.architectures)
        labels, n = self.extra.get("id2label"), values.pop("num_labels")
        if n != (len(labels) if labels else type(self).num_labels):
            values["id2label"] = {str(i): f"LABEL_{i}" for i in range(n)}
            values["label2id"] = {f"LABEL_{i}": i for i in range(n)}
        for key in ("dtype", "problem_type"):
            if values[key] is None:
                del values[key]
        return values

    def replace(self, **changes: Any) -> Self:
        """The same config with other values."""
        return dataclasses.replace(self, **changes)

    # ---- checks ----

    def refuse(self, key: str, rule: str) -> None:
        """Raises an ArgumentError that names the config, the key and its value."""
        raise ArgumentError(f"{type(self).__name__}: {key} {rule}, got {getattr(self, key)!r}")

    def at_least(self, least: int, *keys: str) -> None:
        """Requires a value of at least `least` for each key."""
        for key in keys:
            if getattr(self, key) < least:
                self.refuse(key, f"must be at least {least}")

    def probability(self, *keys: str) -> None:
        """Requires a value of at least 0 and below 1 for each key."""
        for key in keys:
            if getattr(self, key) is not None and not 0 <= getattr(self, key) < 1:
                self.refuse(key, "must be in [0, 1)")

    def multiple(self, key: str, of: str) -> None:
        """`key` must be a multiple of the key `of`, as a width is of its heads."""
        self.at_least(1, key, of)
        if getattr(self, key) % getattr(self, of):
            self.refuse(key, f"must be a multiple of {of} = {getattr(self, of)}")

    def one_of(self, key: str, allowed: Any) -> None:
        """Requires one of these values for a key."""
        if getattr(self, key) not in allowed:
            self.refuse(key, f"must be one of {', '.join(map(str, allowed))}")


def _fits(value: Any, hint: Any) -> bool:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return any(_fits(value, option) for option in typing.get_args(hint))
    if hint is Any:
        return True
    if hint is int or hint is float:  # a JSON 0 is a fine probability; true is not a number
        kind = int if hint is int else (int, float)
        return isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
    kind = typing.get_origin(hint) or hint
    if kind is tuple and typing.get_args(hint):
        return isinstance(value, tuple) and all(_fits(v, typing.get_args(hint)[0]) for v in value)
    return isinstance(value, Mapping if kind is Mapping else kind)


def _spoken(hint: Any) -> str:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return " or ".join(_spoken(option) for option in typing.get_args(hint))
    words = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a text",
        types.NoneType: "null",
    }
    return words.get(hint, "an object" if typing.get_origin(hint) in (dict, Mapping) else "a list")
