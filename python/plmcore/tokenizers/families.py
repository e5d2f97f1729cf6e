"""What stands around the texts of a tokenizer, by name: the formats that model families declare, and those of
no family.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from plmcore import models
from plmcore._core import ArgumentError
from plmcore.models.declaration import GENERIC
from plmcore.models.declaration import TokenizerFormat as Family

__all__ = ["FAMILIES", "GENERIC", "ROLES", "Family"]

ROLES = ("pad", "unk", "cls", "sep", "mask", "bos", "eos")
WORDS = dict(unk="<unk>", pad="<pad>", bos="<s>", eos="</s>")
OWN = {
    family.name: family
    for family in (
        Family("words", GENERIC, WORDS, kinds=("words",), usual=True),
        Family("characters", GENERIC, dict(unk="<unk>"), kinds=("characters",), usual=True, told=True),
        Family("", GENERIC, {}),  # of a tokenizer.json that no other fits
    )
}


def formats(near: str = "") -> Iterator[Family]:
    """All of them; first those of no family, then those of families whose name is in `near`."""
    yield from OWN.values()
    for module in models.families(near):
        yield from module.TOKENIZERS


class _Families(Mapping[str, Family]):
    def __getitem__(self, name: str) -> Family:
        found = next((f for f in formats(name.replace("-", "")) if f.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (f.name for f in formats())

    def __len__(self) -> int:
        return sum(1 for _ in formats())


FAMILIES = _Families()


def family(name: str) -> Family:
    found = FAMILIES.get(name)
    if found is None:
        raise ArgumentError(
            f"there is no tokenizer family {name!r}; one of {', '.join(n for n in FAMILIES if n)}"
        )
    return found


def of_class(class_name: str) -> Family | None:
    """The family of a transformers class: BertTokenizer, BertTokenizerFast."""
    name = class_name.removesuffix("Fast")
    return next((f for f in formats(name) if f.class_name == name), None)


def of_kind(kind: str) -> Family:
    """The one that a kind of tokenizer has unless another is named."""
    return next(f for f in formats() if f.usual and kind in f.kinds)


def of_objective(name: str) -> Family:
    """The one whose special tokens examples of an objective are shown with."""
    return next(f for f in formats() if name in f.shows)


def of_file(name: str) -> Family | None:
    """The one that a file is known by."""
    found = [f for f in formats() if f.file == name]
    return next((f for f in found if f.told), found[0] if found else None)


def of_vocabulary(tokens: Collection[str], kind: str) -> Family:
    """The family of a kind of tokenizer whose special tokens are all there; the one with the most."""
    fit = [f for f in formats() if f.told and kind in f.kinds]
    fit = [f for f in fit if all(token in tokens for token in f.roles.values())]
    return max(fit, key=lambda f: len(set(f.roles.values())), default=FAMILIES[""])
