"""Backend of the `sentencepiece` package: a published .model, its pieces numbered as the family does."""

from __future__ import annotations

import functools
import itertools
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plmcore._core import FormatError, num_threads
from plmcore.tokenizers import guard
from plmcore.tokenizers.added import AddedTokens, Flat, Row
from plmcore.tokenizers.families import Family

SPACE = "▁"
# before the pieces of XLM-R and mBART, which start at 4
FAIRSEQ = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}


class Pieces:
    """A sentencepiece model.

    `numbers` [pieces]: the family's id of each piece; `extra`: tokens that are no pieces.

    `normalise` does what ALBERT and XLNet do to a text first (white space, quotes, accents, and with `lower`
    the case), and splits the comma off a piece that ends in a digit and one.
    """

    kind = "unigram"
    threaded = True

    def __init__(
        self,
        processor: Any,
        model: bytes,
        numbers: np.ndarray | None,
        extra: Mapping[str, int],
        *,
        normalise: bool = False,
        lower: bool = False,
    ):
        self.processor, self.model, self.numbers, self.normalise, self.lower = (
            processor,
            model,
            numbers,
            normalise,
            lower,
        )
        self.pieces: list[str] = processor.id_to_piece(list(range(len(processor))))
        ids = range(len(self.pieces)) if numbers is None else numbers.tolist()
        self.vocabulary = dict(extra) | {
            piece: id for piece, id in zip(self.pieces, ids) if piece not in extra
        }
        self.size = max(self.vocabulary.values(), default=-1) + 1
        control = {p: self.vocabulary[p] for i, p in enumerate(self.pieces) if processor.is_control(i)}
        self.added, self.special = AddedTokens({**control, **extra}), {*control.values(), *extra.values()}
        self._commas = np.array([len(p) > 1 and p[-1] == "," and p[-2].isdigit() for p in self.pieces], bool)
        self._starts = np.array([p.startswith(SPACE) for p in self.pieces], bool)

    # ---- text to ids ----

    def flat(self, texts: Sequence[str]) -> Flat:
        return self.added.flat_of(texts, self._flat)

    def _flat(self, texts: list[str]) -> Flat:
        with guard.encoding(texts):
            normalised = [normalise(text, self.lower) for text in texts] if self.normalise else texts
            rows = self.processor.encode(normalised, num_threads=num_threads(), return_type="numpy")
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        ids = np.concatenate([np.empty(0, np.int32), *rows])
        if self.normalise:
            ids, lengths = self._without_commas(ids, lengths)
        return ids if self.numbers is None else self.numbers[ids], lengths

    def rows(self, texts: Sequence[str]) -> list[Row]:
        return self.added.rows_of(texts, lambda parts: [self._row(part) for part in parts])

    def _row(self, text: str) -> Row:
        normalised, places = normalise_with_places(text, self.lower) if self.normalise else (text, None)
        with guard.encoding([text]):
            found = self.processor.encode(normalised, return_type="offset_mapping")
        ids, offsets = np.array(found["ids"], np.int32), np.array(found["offsets"], np.int64).reshape(-1, 2)
        if self.normalise and self._commas[ids].any():
            ids, offsets = self._split_commas(ids, offsets)
        # A piece carries the white space before it, its token does not; a bare ▁ is its word's first
        # character.
        for span in offsets:
            while span[0] < span[1] and normalised[span[0]].isspace():
                span[0] += 1
            if span[0] == span[1] < len(normalised):
                span[1] += 1
        words = np.maximum(np.cumsum(self._starts[ids]) - 1, 0)
        if places is not None:
            offsets = np.stack([places[offsets[:, 0], 0], places[np.maximum(offsets[:, 1] - 1, 0), 1]], 1)
        return ids if self.numbers is None else self.numbers[ids], offsets, words

    def _without_commas(self, ids: np.ndarray, lengths: np.ndarray) -> Flat:
        at = np.flatnonzero(self._commas[ids])
        new = [self._splits[i] for i in ids[at].tolist()]
        sizes = np.array([len(parts) for parts in new], np.int64)
        lengths = lengths.copy()
        np.add.at(lengths, np.searchsorted(np.cumsum(lengths), at, side="right"), sizes - 1)
        repeats = np.ones(len(ids), np.int64)
        repeats[at] = sizes
        starts = np.cumsum(repeats) - repeats
        ids = np.repeat(ids, repeats)
        for start, parts in zip(starts[at].tolist(), new):
            ids[start : start + len(parts)] = parts
        return ids, lengths

    @functools.cached_property
    def _splits(self) -> dict[int, list[int]]:
        """What becomes of pieces that end in a digit and a comma:
        the digits encoded by themselves, then the comma.
        """
        splits = {}
        for id in np.flatnonzero(self._commas).tolist():
            text = self.pieces[id]
            parts = self.processor.encode(text[:-1].replace(SPACE, ""), return_type=str)
            if text[0] != SPACE and parts[0][0] == SPACE:
                parts = parts[1:] if len(parts[0]) == 1 else [parts[0][1:], *parts[1:]]
            splits[id] = [self.processor.piece_to_id(part) for part in [*parts, ","]]
        return splits

    def _split_commas(self, ids: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        new_ids: list[int] = []
        spans: list[tuple[int, int]] = []
        for id, (start, end) in zip(ids.tolist(), offsets.tolist()):
            parts = self._splits.get(id, [id])
            widths = [len(self.pieces[p].lstrip(SPACE)) for p in parts[1:]]
            edges = [start, *(end - sum(widths[i:]) for i in range(len(widths))), end]
            new_ids += parts
            spans += zip(edges, edges[1:])
        return np.array(new_ids, np.int32), np.array(spans, np.int64).reshape(-1, 2)

    # ---- ids to text ----

    def decode(self, rows: Sequence[np.ndarray]) -> list[str]:
        return [self._decode([self._texts[i] for i in row.tolist() if i in self._texts]) for row in rows]

    @functools.cached_property
    def _texts(self) -> dict[int, tuple[str, bool]]:
        """Of each id its token, and whether that is an added one."""
        reserved = set(self.added.ids.values())
        return {id: (token, id in reserved) for token, id in self.vocabulary.items()}

    def _decode(self, tokens: Sequence[tuple[str, bool]]) -> str:
        """Runs of pieces as the library joins them, added tokens as they are,
        a space before each where one was.
        """
        text = ""
        for is_added, items in itertools.groupby(tokens, key=lambda item: item[1]):
            run = [token for token, _ in items]
            part = (
                " ".join(run)
                if is_added
                else self.processor.decode(run).replace(SPACE, " ").removeprefix(" ")
            )
            text += (" " if text and (is_added or run[0].startswith(SPACE)) else "") + part
        return text

    def starts_word(self, token: str) -> bool:
        return token.startswith(SPACE)

    def word(self, word: str) -> str:
        return word

    def add(self, tokens: Sequence[str], special: bool) -> None:
        top = max(self.vocabulary.values(), default=-1) + 1
        new: dict[str, int] = {}
        for token in map(str, tokens):
            new[token] = self.vocabulary.setdefault(token, top + len([t for t in new.values() if t >= top]))
        self.added = AddedTokens({**self.added.ids, **new})
        self.__dict__.pop("_texts", None)
        if special:
            self.special |= set(new.values())

    def identity(self) -> list[Any]:
        numbers = None if self.numbers is None else self.numbers.tolist()
        return [self.model.hex(), numbers, self.added.ids, self.normalise, self.lower]

    def files(self) -> dict[str, bytes]:
        return {"spiece.model" if self.numbers is None else "sentencepiece.bpe.model": self.model}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "processor"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self.processor = open_model(self.model, "a sentencepiece model")


def open_model(model: bytes, source: object) -> Any:
    import sentencepiece

    if not model:
        raise FormatError(f"'{source}' cannot be read: it is empty")
    with guard.reading(source):
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        processor.id_to_piece(list(range(len(processor))))  # are they UTF-8?
        return processor


def read(
    model: bytes, source: object, family: Family, lower: bool | None = None, sentinels: int = 100
) -> Pieces:
    """A family's published model: sentinels, language codes and <mask> follow the pieces; fairseq families
    put their own four first.
    """
    processor = open_model(model, source)
    n = len(processor)
    options: dict[str, Any] = dict(family.pieces)
    if lower is not None and "lower" in options:
        options["lower"] = bool(lower)
    if options.pop("fairseq", False):
        numbers = np.arange(1, n + 1, dtype=np.int32)
        for piece, id in FAIRSEQ.items():
            at = processor.piece_to_id(piece)
            if processor.id_to_piece(at) == piece:
                numbers[at] = id
        numbers[processor.unk_id()] = FAIRSEQ["<unk>"]
        after = [*family.languages, "<mask>"]
        return Pieces(
            processor, model, numbers, FAIRSEQ | {t: n + 1 + i for i, t in enumerate(after)}, **options
        )
    marks = family.extra[len(family.extra) - sentinels :] if options.pop("sentinels", False) else ()
    new = [token for token in marks if processor.piece_to_id(token) == processor.unk_id()]
    return Pieces(processor, model, None, {token: n + i for i, token in enumerate(new)}, **options)


class Marian(Pieces):
    """The pieces of one side of a translation pair, numbered by vocab.json, which has special tokens and
    codes (>>fr<<) besides.
    """

    def __init__(self, models: Mapping[str, bytes], side: str, source: object, vocabulary: Mapping[str, int]):
        processor = open_model(models[side], source)
        known = processor.id_to_piece(list(range(len(processor))))
        numbers = np.array([vocabulary.get(piece, vocabulary["<unk>"]) for piece in known], np.int32)
        codes = [token for token in vocabulary if token.startswith(">>") and token.endswith("<<")]
        extra = {
            token: vocabulary[token] for token in ("<unk>", "</s>", "<pad>", *codes) if token in vocabulary
        }
        super().__init__(processor, models[side], numbers, extra)
        self.models, self.vocabulary, self.size = dict(models), dict(vocabulary), max(vocabulary.values()) + 1

    def files(self) -> dict[str, bytes]:
        vocabulary = {token: id for token, id in self.vocabulary.items() if id < self.size}
        return {**self.models, "vocab.json": json.dumps(vocabulary, ensure_ascii=False, indent=0).encode()}


def normalise(text: str, lower: bool) -> str:
    """As ALBERT's and XLNet's own code prepares a text for their models."""
    text = " ".join(text.split()).replace("``", '"').replace("''", '"')
    if not text.isascii():
        text = _HIGH.sub(_without_marks, unicodedata.normalize("NFKD", text))
    return text.lower() if lower else text


_HIGH = re.compile("[\u0300-\U0010ffff]+")  # no character below combines


def _without_marks(found: re.Match[str]) -> str:
    return "".join(c for c in found[0] if not unicodedata.combining(c))


def normalise_with_places(text: str, lower: bool) -> tuple[str, np.ndarray]:
    """The same, and for each character where in `text` it comes from.  [n, 2]"""
    characters, places = [], []
    i = 0
    while i < len(text):
        start, c = i, text[i]
        i += 1
        if c.isspace():
            while i < len(text) and text[i].isspace():
                i += 1
            if start == 0 or i == len(text):
                continue
            c = " "
        elif c in "`'" and text[i : i + 1] == c:
            c, i = '"', i + 1
        for d in unicodedata.normalize("NFKD", c):
            if not unicodedata.combining(d):
                d = d.lower() if lower else d
                characters.append(d)
                places += [(start, i)] * len(d)
    return "".join(characters), np.array(places or [(0, 0)], np.int64)
