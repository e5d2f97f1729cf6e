"""Between our parameter names and the published ones.

A family's table NAMES reads ours -> published, by module or by single parameter; {i}, {j} are numbers:

    "blocks.{i}.mlp.up": "encoder.layer.{i}.intermediate.dense"
        weight and bias; a norm's gamma and beta are published so too
    "blocks.{i}.attn.qkv": "encoder.layer.{i}.attention.self.{query,key,value}"
        published apart, here one below the other
    "blocks.{i}.attn.qkv": "h.{i}.attn.c_attn^T"
        matrices published as [in, out]
    "decoder.bias": "cls.predictions.bias | cls.predictions.decoder.bias"
        written under the first name, read under any, the last first
    "blocks.{i}.attn.out.weight": Stored(("layer.{i}.rel_attn.o",), shape=lambda c: (c.d_model, ...))
        of another shape

The parameters of a head's `body` are published under the family's PREFIX; files with and without it are read.
A parameter that several modules share is one tensor, found under the name of any of them; a file that holds
different values under two of these names unties them. With tie_word_embeddings false every name of a `|` is
written: the published classes then have them all. Shared parameters whose names match REPEATED (a pattern)
are written under each of them, for readers that know nothing of the sharing. Names that match DROPPED are not
parameters. RENAMED lists (pattern, replacement) for names of old files, JOINED (pattern, replacements) for
tensors that hold the rows of several. A head whose files differ from its family's has attributes NAMES
(further lines) or PREFIX of its own.

A family whose NAMES is None, as OWN, stands for files in which every parameter has our name
and lies as it does here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore import _core
from plmcore._core import Dim, Tensor, ops
from plmcore.models.config import Config
from plmcore.nn import Buffer, Module, Parameter
from plmcore.nn.parameter import Unset
from plmcore.runtime.autograd import no_grad

if TYPE_CHECKING:
    from plmcore.models import Model

RENAMED = ((r"LayerNorm\.gamma$", "LayerNorm.weight"), (r"LayerNorm\.beta$", "LayerNorm.bias"))
LEAVES = {"gamma": "weight", "beta": "bias"}
OWN = SimpleNamespace(NAMES=None, PREFIX="body.")
# bytes; such a tensor is copied: looking at it in a mapped file brings in what lies around it, too
SMALL = 1 << 16


@dataclass(frozen=True)
class Stored:
    """How one of our parameters lies in a file: its rows in several parts, each perhaps transposed, perhaps
    of another shape.
    """

    parts: tuple[str, ...]
    transposed: bool = False
    # Of each part in the file; None: that of our rows, or transposed.
    shape: Callable[[Any], tuple[int, ...]] | None = None
    aliases: tuple[str, ...] = ()  # other names of the one part

    def part_shape(self, ours: Sequence[int | Dim], config: Config) -> tuple[int | Dim, ...]:
        if self.shape is not None:
            return tuple(self.shape(config))
        rows = (ours[0] // len(self.parts), *ours[1:]) if ours else ()
        return rows[::-1] if self.transposed else rows

    def to_ours(self, parts: Sequence[Tensor], shape: Sequence[int | Dim]) -> Tensor:
        rows = (shape[0] // len(parts), *shape[1:]) if shape else ()
        if self.transposed and len(rows) > 1:
            parts = [ops.transpose(ops.reshape(p, rows[::-1]), (1, 0)) for p in parts]
        joined = ops.concat([ops.reshape(p, rows) for p in parts], 0) if len(parts) > 1 else parts[0]
        return ops.reshape(joined, shape)

    def to_parts(self, ours: Tensor, config: Config) -> Iterator[tuple[str, Tensor]]:
        n = len(self.parts)
        rows = ops.split(ours, [ours.shape[0] // n] * n, 0) if n > 1 else [ours]
        for name, part in zip(self.parts, rows):
            if self.transposed and part.ndim > 1:
                part = ops.transpose(part, (1, 0))
            yield name, ops.reshape(part, self.part_shape(ours.shape, config))


@dataclass(frozen=True)
class Slot:
    """An attribute that holds a parameter. Shared parameters have several."""

    name: str
    owner: Module
    attribute: str
    parameter: Parameter | Buffer
    stored: Stored


@dataclass
class Report:
    """What loading found, by published names."""

    missing: list[str] = field(default_factory=list)  # and drawn at random
    unexpected: list[str] = field(default_factory=list)
    misshaped: list[str] = field(default_factory=list)  # "name [4, 3], expected [4, 5]"; drawn at random
    unused: list[str] = field(default_factory=list)  # of another head of the family
    mistyped: list[str] = field(default_factory=list)  # "name int64"; drawn at random
    fresh: list[str] = field(default_factory=list)  # all that was drawn at random
    notes: list[str] = field(default_factory=list)  # sentences that plm.load warns with

    def problems(self) -> str:
        kinds = {
            "missing": self.missing,
            "unexpected": self.unexpected,
            "wrong shape": self.misshaped,
            "not floating point": self.mistyped,
        }
        return "; ".join(f"{kind}: {listed(names)}" for kind, names in kinds.items() if names)


@dataclass
class Found:
    """What a file has of one parameter: values by the names of its slots, and the published names that were
    used for them.
    """

    values: dict[str, Tensor]
    used: list[str]
    missing: list[str]
    misshaped: list[str]  # as in Report
    mistyped: list[str]


def slots(family: Any, model: Module) -> list[Slot]:
    """Every attribute of the model that holds a parameter, with what it is called in a file."""
    table = []
    if family.NAMES is not None:
        table = [
            (_pattern(key), value) for key, value in {**family.NAMES, **getattr(model, "NAMES", {})}.items()
        ]
    prefix, found = getattr(model, "PREFIX", family.PREFIX), []
    for path, module in model.named_modules():
        for attribute, value in module.members():
            if isinstance(value, (Parameter, Buffer)):
                name = f"{path}.{attribute}" if path else attribute
                found.append(Slot(name, module, attribute, value, _stored(family, table, prefix, name)))
    return found


def published(family: Any, model: Model, values: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
    """The parameters, or `values` by our names (gradients, say), as they stand in a file.

    Shared ones come once, unless REPEATED.
    """
    values = model.state_dict() if values is None else values
    repeated = getattr(family, "REPEATED", None)
    firsts: dict[int, str] = {}
    result: dict[str, Tensor] = {}
    untied = not getattr(model.config, "tie_word_embeddings", True)
    with no_grad():
        for slot in slots(family, model):
            first = firsts.setdefault(id(slot.parameter), slot.name)
            if first in values and (slot.name == first or (repeated and re.search(repeated, slot.name))):
                result.update(slot.stored.to_parts(values[first], model.config))
                if untied:
                    result.update((alias, result[slot.stored.parts[0]]) for alias in slot.stored.aliases)
    return result


def published_names(family: Any, model: Module) -> set[str]:
    """Every name under which a file may hold a parameter of the model."""
    return {name for slot in slots(family, model) for name in (*slot.stored.parts, *slot.stored.aliases)}


def groups(family: Any, model: Module) -> list[list[Slot]]:
    """The slots of each parameter."""
    found: dict[int, list[Slot]] = {}
    for slot in slots(family, model):
        found.setdefault(id(slot.parameter), []).append(slot)
    return list(found.values())


def read(
    family: Any, group: Sequence[Slot], tensors: Mapping[str, Tensor], config: Config, dtype: str
) -> Found:
    """One parameter from a file's tensors: the very tensors where dtype and layout fit, else converted
    copies, of large matrices on first use.
    """
    values: dict[str, Tensor] = {}
    used: list[str] = []
    wrong: list[str] = []
    mistyped: list[str] = []
    for slot in group:
        parts = find(slot.stored, tensors, family.PREFIX)
        used += [name for names in parts for name in names]
        if all(parts):
            chosen = {names[-1]: tensors[names[-1]] for names in parts}
            shape = slot.stored.part_shape(slot.parameter.shape, config)
            bad = [n for n, t in chosen.items() if tuple(t.shape) != shape]
            wrong += [f"{n} {list(chosen[n].shape)}, expected {list(shape)}" for n in bad]
            whole = (
                [] if _keeps_whole_numbers(slot) else [n for n, t in chosen.items() if "float" not in t.dtype]
            )
            mistyped += [f"{n} {chosen[n].dtype}" for n in whole]
            if not bad and not whole:
                values[slot.name] = _converted(slot, list(chosen.values()), dtype)
    missing: list[str] = []
    if (
        not values and not wrong and not mistyped and not isinstance(group[0].parameter, Buffer)
    ):  # a buffer may be absent
        stored = group[0].stored
        missing = [p for p, names in zip(stored.parts, find(stored, tensors, family.PREFIX)) if not names]
    return Found(values, used, missing, wrong, mistyped)


def load(family: Any, model: Model, tensors: Mapping[str, Tensor], dtype: str | None = None) -> Report:
    """Gives a model built inside nn.init.skipped() its weights: the very tensors where dtype and layout fit;
    else, and of small ones, copies, which large matrices that lie in parts or transposed become when somebody
    looks at them.

    Parameters that are not there are drawn as for a fresh model.
    """
    tensors = normal(family, tensors)
    report, used = Report(), set()
    dtype = dtype or _common_dtype(tensors.values())
    for group in groups(family, model):
        found = read(family, group, tensors, model.config, dtype)
        values = found.values
        used.update(found.used)
        report.missing += found.missing
        report.misshaped += found.misshaped
        report.mistyped += found.mistyped
        kind = _kind(group[0].parameter)
        first = next(iter(values.values())) if values else _drawn(group[0].parameter, dtype)
        shared = kind(first)
        for slot in group:
            value = values.get(slot.name, first)
            setattr(slot.owner, slot.attribute, shared if same(value, first) else kind(value))
    report.unexpected = [name for name in tensors if name not in used]
    release(tensors.values())  # again: pages come in large pieces, with parts that were released before
    return report


# ---- the table ----


def _pattern(key: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w)\\}", r"(?P<\1>\\d+)", re.escape(key)) + r"(?:\.(?P<leaf>\w+))?")


def _stored(family: Any, table: list[Any], prefix: str, name: str) -> Stored:
    if family.NAMES is None:
        return Stored((name,))
    inner = name.removeprefix("body.")
    prefix = prefix if inner != name else ""
    matches = [(m, value) for pattern, value in table if (m := pattern.fullmatch(inner))]
    if not matches:
        raise KeyError(f"{family.__name__}.NAMES has no entry for the parameter '{name}'")
    match, value = max(
        matches,
        key=lambda found: (found[0]["leaf"] is None, len(found[1] if isinstance(found[1], str) else "")),
    )
    numbers = {k: v for k, v in match.groupdict().items() if k != "leaf"}
    leaf = match["leaf"]
    ending = "" if leaf is None else "." + str(LEAVES.get(leaf, leaf))

    def full(text: str) -> str:
        for letter, number in numbers.items():
            text = text.replace("{" + letter + "}", number)
        return prefix + text + ending

    if isinstance(value, Stored):
        return Stored(
            tuple(map(full, value.parts)), value.transposed, value.shape, tuple(map(full, value.aliases))
        )
    main, *aliases = (text.strip() for text in value.split("|"))
    transposed = main.endswith("^T")
    main = main.removesuffix("^T")
    choice = re.search(r"\{([^{}]*,[^{}]*)\}", main)
    parts = (
        [main[: choice.start()] + w + main[choice.end() :] for w in choice[1].split(",")]
        if choice
        else [main]
    )
    return Stored(tuple(map(full, parts)), transposed, None, tuple(map(full, aliases)))


# ---- files ----


def normal(family: Any, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Without buffers, old names as new ones."""
    renamed = (*RENAMED, *getattr(family, "RENAMED", ()))
    dropped = [re.compile(pattern) for pattern in getattr(family, "DROPPED", ())]
    result: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if any(pattern.search(name) for pattern in dropped):
            continue
        for pattern, replacement in renamed:
            name = re.sub(pattern, replacement, name)
        result.update(_apart(family, name, tensor))
    return result


def _apart(family: Any, name: str, tensor: Tensor) -> Iterable[tuple[str, Tensor]]:
    """The tensors whose rows one of JOINED holds, else the tensor itself."""
    for pattern, several in getattr(family, "JOINED", ()):
        if re.search(pattern, name) and tensor.ndim and int(tensor.shape[0]) % len(several) == 0:
            rows = [tensor.shape[0] // len(several)] * len(several)
            return zip((re.sub(pattern, one, name) for one in several), ops.split(tensor, rows, 0))
    return [(name, tensor)]


def find(stored: Stored, tensors: Mapping[str, Tensor], prefix: str) -> list[list[str]]:
    """For each part the names under which the file has it,
    with or without the family's prefix; the last counts.
    """

    def spellings(name: str) -> tuple[str, ...]:
        return (name, name.removeprefix(prefix) if prefix and name.startswith(prefix) else prefix + name)

    return [
        [n for name in (part, *stored.aliases) for n in spellings(name) if n in tensors]
        for part in stored.parts
    ]


def _common_dtype(tensors: Any) -> str:
    """The widest float dtype: ops want one for all."""
    found = {t.dtype for t in tensors}
    return next((d for d in ("float64", "float32", "bfloat16", "float16") if d in found), "float32")


def _keeps_whole_numbers(slot: Slot) -> bool:
    """Weights of a quantised model; of another, whole numbers are the codes of some format
    that is not known here.
    """
    return "int" in (getattr(slot.parameter, "stored_as", None) or "")


def _kind(parameter: Parameter | Buffer) -> type:
    if isinstance(parameter, Unset):
        return parameter.kind
    return Buffer if isinstance(parameter, Buffer) else Parameter


def _converted(slot: Slot, parts: list[Tensor], dtype: str) -> Tensor:
    dtype = getattr(slot.parameter, "stored_as", None) or dtype
    with no_grad():
        if _waits(slot, parts, dtype):
            return _core.safetensors.laid_out_later(parts, slot.stored.transposed)
        value = slot.stored.to_ours([p.astype(dtype) for p in parts], slot.parameter.shape)
        if value.nbytes <= SMALL:
            value = ops.copy(value)
    release(parts)
    return value


def _waits(slot: Slot, parts: list[Tensor], dtype: str) -> bool:
    """Whether a weight that lies otherwise in the file is a matrix large enough
    to be put together on first use.
    """
    stored, large = slot.stored, sum(p.nbytes for p in parts) > SMALL
    otherwise = (stored.transposed or len(parts) > 1) and stored.shape is None and slot.parameter.ndim == 2
    return (
        otherwise
        and large
        and not isinstance(slot.parameter, Buffer)
        and all(p.dtype == dtype for p in parts)
    )


def release(tensors: Iterable[Tensor]) -> None:
    """What was copied from a mapped file need not stay in memory."""
    for tensor in tensors:
        _core.safetensors.release(tensor)


def _drawn(parameter: Parameter | Buffer, dtype: str) -> Tensor:
    drawn = parameter.drawn() if isinstance(parameter, Unset) else parameter
    return drawn.detach().astype(dtype)


def same(a: Tensor, b: Tensor) -> bool:
    return a is b or (tuple(a.shape) == tuple(b.shape) and np.array_equal(a.numpy(), b.numpy()))


def listed(names: Sequence[str], most: int = 12) -> str:
    """The first of them, and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
