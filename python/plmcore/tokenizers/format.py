"""Special tokens around the ids of one text or two."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore._core import FormatError
from plmcore.tokenizers import guard
from plmcore.tokenizers.families import Family

MAX_PARTS = 256  # around and between two texts


@dataclass(frozen=True)
class Part:
    """A text (0 or 1), or a special token of that id; with its segment id."""

    text: int | None
    id: int
    type: int


@dataclass(frozen=True)
class Format:
    single: tuple[Part, ...]
    pair: tuple[Part, ...]

    def check(self, vocab_size: int) -> None:
        """Of a format that a file brings."""
        for parts, texts in ((self.single, [0]), (self.pair, [0, 1])):
            if sorted(part.text for part in parts if part.text is not None) != texts:
                raise FormatError(
                    f"the post-processor must have each of {len(texts)} texts once, got {parts}"
                )
            if len(parts) > MAX_PARTS:
                raise FormatError(
                    f"the post-processor has {len(parts)} parts, at most {MAX_PARTS} are allowed"
                )
            if wrong := [part.id for part in parts if part.text is None and not 0 <= part.id < vocab_size]:
                raise FormatError(
                    f"the post-processor adds the id {wrong[0]}; the vocabulary has {vocab_size}"
                )

    def parts(self, pair: bool) -> tuple[Part, ...]:
        return self.pair if pair else self.single

    def added(self, pair: bool) -> int:
        """How many special tokens there are."""
        return sum(part.text is None for part in self.parts(pair))

    def build(
        self, a: Sequence[int] | np.ndarray, b: Sequence[int] | np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """ids and segment ids, int64."""
        ids, types = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for part in self.parts(b is not None):
            piece = np.asarray([part.id] if part.text is None else (a, b)[part.text], np.int64)
            ids.append(piece)
            types.append(np.full(len(piece), part.type, np.int64))
        return np.concatenate(ids), np.concatenate(types)


BARE = Format((Part(0, -1, 0),), (Part(0, -1, 0), Part(1, -1, 0)))


def of_family(family: Family, id_of: Callable[[str], int]) -> Format:
    """`id_of` a role, or of "language"."""

    def read(template: str) -> tuple[Part, ...]:
        parts = []
        for word in template.split():
            name, _, type = word.partition(":")
            parts.append(
                Part(
                    "AB".find(name) if name in "AB" else None,
                    -1 if name in "AB" else id_of(name),
                    int(type or 0),
                )
            )
        return tuple(parts)

    return Format(read(family.single), read(family.pair))


def of_processor(processor: Any) -> Format:
    """What the post-processor of a tokenizer.json does."""
    if processor is None:
        return BARE
    with guard.reading("post_processor"):
        return _of_state(json.loads(processor.__getstate__()))


def _of_state(state: Mapping[str, Any]) -> Format:
    for state in state["processors"] if state["type"] == "Sequence" else [state]:
        if state["type"] == "TemplateProcessing":
            return Format(_template(state, "single"), _template(state, "pair"))
        if state["type"] in ("BertProcessing", "RobertaProcessing"):
            cls, sep, a = Part(None, state["cls"][1], 0), Part(None, state["sep"][1], 0), Part(0, -1, 0)
            if state["type"] == "RobertaProcessing":
                return Format((cls, a, sep), (cls, a, sep, sep, Part(1, -1, 0), sep))
            return Format((cls, a, sep), (cls, a, sep, Part(1, -1, 1), Part(None, state["sep"][1], 1)))
        if state["type"] != "ByteLevel":
            raise FormatError(f"tokenizer.json: there is no post-processor {state['type']!r}")
    return BARE


def _template(state: Mapping[str, Any], which: str) -> tuple[Part, ...]:
    parts = []
    for entry in state[which]:
        if "Sequence" in entry:
            parts.append(Part("AB".find(entry["Sequence"]["id"]), -1, entry["Sequence"]["type_id"]))
        else:
            special = entry["SpecialToken"]
            parts += [
                Part(None, id, special["type_id"]) for id in state["special_tokens"][special["id"]]["ids"]
            ]
    return tuple(parts)


def processor_of(format: Format, token_of: Callable[[int], str | None]) -> Any:
    """The post-processor that transformers will read."""
    from tokenizers import processors

    def spell(parts: tuple[Part, ...]) -> list[str]:
        return [f"{'$' + 'AB'[p.text] if p.text is not None else token_of(p.id)}:{p.type}" for p in parts]

    special = {p.id for p in format.single + format.pair if p.text is None}
    return processors.TemplateProcessing(
        single=spell(format.single),
        pair=spell(format.pair),
        special_tokens=[(token_of(i), i) for i in sorted(special)],
    )
