"""Arguments of a wrong kind: what does not fit a signature, in a sentence that names the function, the
argument and both kinds.

The native functions ask for the sentence when no signature of theirs fits (bindings/kinds.cpp); functions
that users call are `checked`.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from plmcore._core import Dim, KindError, Tensor

F = TypeVar("F", bound=Callable[..., Any])
PLAIN = (TypeError, AttributeError, ValueError, KeyError, IndexError, OverflowError, ZeroDivisionError)


def _single(value: Any) -> bool:
    """Not an array of several numbers, which has the methods of one."""
    return getattr(value, "ndim", 0) == 0 and getattr(getattr(value, "dtype", None), "kind", "f") != "c"


def _named(name: str) -> Callable[[Any], bool]:
    """Whether a value is of a class of this name, which need not be imported."""
    return lambda v: any(kind.__name__ == name for kind in type(v).__mro__)


# By the last part of an annotation's name: what to call it, and whether a value is one. Names that are not
# here fit everything.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Tensor": (
        "a tensor or an array",
        lambda v: isinstance(v, (Tensor, list)) or hasattr(v, "__array_interface__"),
    ),
    "ndarray": ("a NumPy array", lambda v: hasattr(v, "__array_interface__")),
    "int": (
        "a whole number",
        lambda v: isinstance(v, numbers.Integral) or (hasattr(v, "__index__") and _single(v)),
    ),
    "float": ("a number", lambda v: isinstance(v, numbers.Real) or (hasattr(v, "__float__") and _single(v))),
    "bool": ("True or False", lambda v: isinstance(v, bool)),
    "str": ("a text", lambda v: isinstance(v, str)),
    "bytes": ("bytes", lambda v: isinstance(v, bytes)),
    "PathLike": ("a path", lambda v: isinstance(v, os.PathLike)),
    "Path": ("a path", lambda v: isinstance(v, os.PathLike)),
    "Dim": ("a size", lambda v: isinstance(v, Dim) or hasattr(v, "__index__")),
    "Callable": ("a function", callable),
    "Sequence": (
        "a list",
        lambda v: (
            isinstance(v, Sequence) and not isinstance(v, (str, bytes)) or hasattr(v, "__array_interface__")
        ),
    ),
    "Iterable": ("a list", lambda v: hasattr(v, "__iter__") and not isinstance(v, (str, bytes))),
    "list": ("a list", lambda v: isinstance(v, list)),
    "tuple": ("a tuple", lambda v: isinstance(v, tuple)),
    "dict": ("a dict", lambda v: isinstance(v, dict)),
    "Mapping": ("a dict", lambda v: isinstance(v, Mapping)),
    "None": ("None", lambda v: v is None),
    **{
        name: (f"a {name}", _named(name))
        for name in ("Config", "LanguageModel", "Format", "Module", "Program", "Spec", "Tokenizer")
    },
}


def fits(value: Any, annotation: str) -> bool:
    """Whether a value is of the kind that the text of an annotation names; True where that is not known."""
    options = _split(annotation, "|")
    if len(options) > 1:
        return any(fits(value, option) for option in options)
    name, _, inner = annotation.strip().rstrip("]").partition("[")
    kind = _KINDS.get(name.split(".")[-1])
    if kind is None:
        return True
    if not kind[1](value):
        return False
    if (
        inner
        and name.split(".")[-1] in ("Sequence", "Iterable", "list", "tuple")
        and isinstance(value, (list, tuple))
    ):
        parts = [part for part in _split(inner, ",") if part.strip() != "..."]
        return len(parts) != 1 or all(fits(v, parts[0]) for v in value[:100])
    return True


def spoken(annotation: str) -> str:
    """The kinds that an annotation allows, as one says them."""
    words = []
    for option in _split(annotation, "|"):
        name, _, inner = option.strip().rstrip("]").partition("[")
        word = _KINDS.get(name.split(".")[-1], (name.split(".")[-1], None))[0]
        if word == "a list" and inner:
            word = "a list, each " + spoken(inner).removesuffix(" or None")
        if word not in words:
            words.append(word)
    return " or ".join(words)


def given(value: Any) -> str:
    """A value and its kind, short."""
    if value is None:
        return "None"
    if isinstance(value, (list, tuple)):
        return (
            f"a {type(value).__name__} with {given(value[0])}"
            if len(value) == 1
            else f"a {type(value).__name__}"
        )
    if isinstance(value, (str, int, float, bool)):
        text = repr(value)
        return f"{text[:60]}{'...' if len(text) > 60 else ''} ({type(value).__name__})"
    return f"a {type(value).__name__}"


def misfit(function: Any, args: tuple[Any, ...], named: Mapping[str, Any], said: str) -> str:
    """What is wrong with a call of a native function; where all arguments fit, what was `said`."""
    name = _name(function, args)
    found: list[Any] = []
    method = False
    for entry in getattr(function, "__nb_signature__", ()):
        parameters = list(_parameters(entry[0]))
        method = bool(parameters) and parameters[0][0] == "self"
        if method and not args:
            return f"{name}: a method needs its object"
        found.append(_wrong(name, parameters[method:], args[method:], named))
    if any(f is None for f in found) or not found:
        if "incompatible function arguments" not in said:
            return said if said.startswith(f"{name}: ") else f"{name}: {said}"
        if method and not args[1:] and not named:
            return f"{name}: cannot be called on {given(args[0])}"
        values = [*map(given, args[method:]), *(f"{key}={given(v)}" for key, v in named.items())]
        return f"{name}: cannot take {', '.join(values)}; a number may be too large or of the wrong sign"
    return max(found, key=lambda f: f[0])[1]  # the signature that fits furthest


def _name(function: Any, args: tuple[Any, ...]) -> str:
    """Of a native function; a constructor has its class's, a setter its property's."""
    if function.__name__ == "__init__" and args:
        return type(args[0]).__name__
    if not function.__name__ and args:
        members = {key: value for kind in type(args[0]).__mro__ for key, value in vars(kind).items()}
        return next((key for key, value in members.items() if getattr(value, "fset", None) is function), "")
    return function.__name__


def checked(function: F) -> F:
    """A function whose plain errors are looked into: where an argument is not of the kind that its annotation
    has, a KindError says so.

    A call that is right costs nothing: the arguments are looked at when there was an error.
    """

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except PLAIN as e:
            if type(e) in PLAIN and (wrong := _wrong_call(function, args, named)):
                raise KindError(wrong) from e
            raise

    return cast(F, call)


def _wrong_call(function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> str | None:
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters: list[tuple[str, str, bool]] = []
    keywords = False
    for p in inspect.signature(function).parameters.values():
        if (
            p.kind is p.KEYWORD_ONLY
            and not keywords
            and not any(name.startswith("*") for name, *_ in parameters)
        ):
            parameters.append(("*", "", True))
        keywords = keywords or p.kind is p.KEYWORD_ONLY
        annotation = "" if p.annotation is p.empty else str(p.annotation)
        parameters.append((stars.get(p.kind, "") + p.name, annotation, p.default is not p.empty))
    method = bool(parameters) and parameters[0][0] == "self"
    found = _wrong(function.__name__, parameters[method:], args[method:], named)
    return None if found is None else found[1]


def _wrong(
    function: str, parameters: Sequence[tuple[str, str, bool]], args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[int, str] | None:
    """How many arguments fit and what is wrong with the next; None where all do."""
    plain = [p for p in parameters if not p[0].startswith("*") and p[0] != "/"]
    rest = any(p[0].startswith("*") and p[0] != "*" and not p[0].startswith("**") for p in parameters)
    any_name = any(p[0].startswith("**") for p in parameters)
    before = next(
        (i for i, p in enumerate(parameters) if p[0] == "*" or p[0].startswith("*")), len(parameters)
    )
    by_place = [p for p in parameters[:before] if p[0] != "/"]
    call = f"{function}({', '.join(p[0] for p in parameters)})"
    if len(args) > len(by_place) and not rest:
        return 0, f"{function}: takes {len(by_place)} arguments by place, got {len(args)}: {call}"
    values = dict(zip((p[0] for p in by_place), args))
    for key in named:
        if key in values:
            return 0, f"{function}: the argument {key} is there twice"
        if not any_name and key not in {p[0] for p in plain}:
            return 0, f"{function}: there is no argument {key!r}: {call}"
    values |= named
    for place, (name, annotation, optional) in enumerate(plain):
        if name not in values:
            if not optional:
                return place, f"{function}: the argument {name} is missing: {call}"
        elif annotation and not fits(values[name], annotation):
            return (
                place,
                f"{function}: {name} must be {spoken(annotation)}, got "
                f"{_misfit_in(values[name], annotation)}",
            )
    for name, annotation, _ in parameters:
        if rest and name.startswith("*") and not name.startswith("**") and annotation:
            for value in args[len(by_place) :]:
                if not fits(value, annotation):
                    return len(
                        plain
                    ), f"{function}: {name[1:]} must be {spoken(annotation)}, got {given(value)}"
    return None


def _misfit_in(value: Any, annotation: str) -> str:
    """A value that does not fit; of a list the first member that is to blame."""
    for option in _split(annotation, "|"):
        name, _, inner = option.strip().rstrip("]").partition("[")
        if name.split(".")[-1] in ("Sequence", "Iterable", "list", "tuple") and isinstance(
            value, (list, tuple)
        ):
            for member in value[:100]:
                if not fits(member, inner):
                    return f"a {type(value).__name__} with {_misfit_in(member, inner)}"
    return given(value)


def _parameters(signature: str) -> Iterator[tuple[str, str, bool]]:
    """Name, annotation and whether there is a default, of each parameter in a native signature's text."""
    found = re.match(r"def \w*\((.*)\)(?: -> .*)?$", signature.strip(), re.S)
    for part in _split(found[1], ",") if found else ():
        declared, equals, _ = part.partition("=")
        name, _, annotation = declared.partition(":")
        if name.strip():
            yield name.strip(), annotation.strip(), bool(equals)


def _split(text: str, by: str) -> list[str]:
    """At a character that stands in no brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "[({") - (c in "])}")
        if c == by and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts
