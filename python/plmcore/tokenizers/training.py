"""New vocabularies from text."""

from __future__ import annotations

import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.files.text import Path, files_in
from plmcore.runtime import draws
from plmcore.runtime.kinds import checked
from plmcore.tokenizers import characters, families, guard, library, pieces
from plmcore.tokenizers.families import Family
from plmcore.tokenizers.loading import dressed
from plmcore.tokenizers.passages import passages
from plmcore.tokenizers.tokenizer import Tokenizer

KINDS = ("wordpiece", "bpe", "byte-bpe", "unigram", "characters", "words")
LONGEST_LINE = 4000  # bytes; sentencepiece leaves out longer ones


@checked
def train_tokenizer(
    files: Path | Iterable[Path] | None = None,
    *,
    texts: Iterable[str] | None = None,
    kind: str = "byte-bpe",
    vocab_size: int | None = 30_000,
    family: str | None = None,
    lower: bool | None = None,
    min_count: int | None = None,
    special_tokens: Sequence[str] = (),
    errors: str = "strict",
    sample_bytes: int = 200_000_000,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
) -> Tokenizer:
    """Trains a tokenizer on files, folders or texts. The same input gives the same tokenizer.

    kind: wordpiece, bpe (with </w>), byte-bpe, unigram (sentencepiece), characters or words.
    family: whose special tokens and formats it gets.
    vocab_size: counts all tokens; None, for characters and words, takes all.
    min_count: how often a pair, character or word must occur.
    sample_bytes: sentencepiece holds its text in memory, so of more than this it gets a random sample of
        lines.
    out: a directory to save to.
    """
    if kind not in KINDS:
        raise ArgumentError(f"there is no kind of tokenizer {kind!r}; one of {', '.join(KINDS)}")
    known = families.of_kind(kind) if family is None else families.FAMILIES.get(family)
    if known is None or kind not in known.kinds:
        able = (f.name for f in families.formats() if kind in f.kinds)
        raise ArgumentError(
            f"a {kind} tokenizer cannot be of the family {family!r}; one of {', '.join(able)}"
        )
    if (files is None) == (texts is None):
        raise ArgumentError("pass either files or texts")
    if vocab_size is None and kind not in ("characters", "words"):
        raise ArgumentError(f"a {kind} tokenizer needs a vocab_size")
    if vocab_size is not None and vocab_size < 1:
        raise ArgumentError(f"vocab_size must be at least 1, got {vocab_size}")
    text = _Text(files, texts, errors)
    plan = _Plan(text, kind, known, vocab_size, lower, min_count, special_tokens, sample_bytes, seed)
    try:
        tokenizer = {"unigram": _unigram, "characters": _characters}.get(kind, _library)(plan)
    finally:
        text.done()
    if special_tokens:
        tokenizer.add_tokens(special_tokens, special=True)
    if out is not None:
        tokenizer.save(out)
    return tokenizer


class _Text:
    """The training text from beginning to end, with a progress line."""

    def __init__(self, files: Path | Iterable[Path] | None, texts: Iterable[str] | None, errors: str):
        self.files = None if files is None else files_in(files)
        self.texts = list(texts) if isinstance(texts, Iterator) else texts  # read more than once
        self.errors = errors
        self.failure: Exception | None = None
        self.progress: Any = None
        self.bytes = sum(f.stat().st_size for f in self.files or ())

    def __iter__(self) -> Iterator[str]:
        empty = True
        try:
            for passage in self._passages():
                empty = empty and not passage.strip()
                yield passage
            if empty:
                raise ArgumentError(f"there is no text in {self}")
        except Exception as e:
            self.failure = e  # sentencepiece passes on only its text
            raise

    def _passages(self) -> Iterator[str]:
        if self.files is None:
            yield from self.texts or ()
            return
        from plmcore.runtime.progress import Progress

        self.progress = Progress(self.bytes, "B")
        yield from passages(self.files, errors=self.errors, told=self.progress.reach)
        self.progress.reach(self.bytes, note="all read, training")

    def done(self) -> None:
        if self.progress is not None:
            self.progress.close()

    def __str__(self) -> str:
        return "the texts" if self.files is None else ", ".join(map(str, self.files[:5]))


@dataclass(frozen=True)
class _Plan:
    text: _Text
    kind: str
    family: Family
    vocab_size: int | None
    lower: bool | None
    min_count: int | None
    special_tokens: Sequence[str]
    sample_bytes: int
    seed: int

    @property
    def specials(self) -> list[str]:
        return list(dict.fromkeys([*self.family.roles.values(), *self.family.extra, *self.special_tokens]))


def _library(plan: _Plan) -> Tokenizer:
    from tokenizers import pre_tokenizers, trainers

    kind, special, unknown = plan.kind, plan.specials, plan.family.roles["unk"]
    lower = plan.family.lower and kind == "wordpiece" if plan.lower is None else plan.lower
    settings: dict[str, Any] = {}
    options: dict[str, Any] = dict(
        special_tokens=special,
        show_progress=False,
        min_frequency=plan.min_count or (1 if kind == "words" else 2),
    )
    options["vocab_size"] = 2**31 - 1 if plan.vocab_size is None else plan.vocab_size
    trainer: Any
    if kind == "words":
        backend, trainer = (
            library.words({unknown: 0}, lower=lower, unknown=unknown, split=plan.family.splits),
            trainers.WordLevelTrainer(**options),
        )
    elif kind == "wordpiece":
        backend, settings = (
            library.wordpiece({unknown: 0}, lower=lower, unknown=unknown),
            {"do_lower_case": lower},
        )
        trainer = trainers.WordPieceTrainer(**options)
    elif kind == "bpe":
        backend, trainer = (
            library.bpe({unknown: 0}, [], unknown),
            trainers.BpeTrainer(end_of_word_suffix="</w>", **options),
        )
    else:
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        if options["vocab_size"] < len(alphabet) + len(special):
            raise ArgumentError(
                f"a byte-level vocabulary has {len(alphabet)} bytes and {len(special)} special tokens; "
                f"vocab_size={plan.vocab_size} is too small"
            )
        backend, trainer = library.byte_bpe({}, []), trainers.BpeTrainer(initial_alphabet=alphabet, **options)
    with guard.panics("train_tokenizer"):
        if kind in ("wordpiece", "bpe"):
            trainer.special_tokens = [*special, *_letters(backend, plan.text, kind)]
        backend.native.train_from_iterator(plan.text, trainer)
        if kind in ("wordpiece", "bpe"):  # without the letters among the special tokens
            model = json.loads(backend.native.to_str())["model"]
            merges = [tuple(m) for m in model.get("merges", [])]
            backend = (
                library.bpe(model["vocab"], merges, unknown)
                if kind == "bpe"
                else library.wordpiece(model["vocab"], lower=lower, unknown=unknown)
            )
    backend.__dict__.pop("vocabulary", None)
    return dressed(backend, plan.family, plan.family.roles, "the trained vocabulary", settings=settings)


def _letters(backend: library.Library, text: _Text, kind: str) -> list[str]:
    """The ##x or x</w> that words have, in order.

    The trainer numbers them as it comes across them, in the order of a hash table, and breaks ties between
    pairs by number: told them beforehand, it comes to the same vocabulary every time.
    """
    from tokenizers import Tokenizer, models, trainers

    counter = Tokenizer(models.WordLevel())
    counter.normalizer, counter.pre_tokenizer = backend.native.normalizer, backend.native.pre_tokenizer
    counter.train_from_iterator(text, trainers.WordLevelTrainer(vocab_size=2**31 - 1, show_progress=False))
    words = counter.get_vocab()
    if kind == "wordpiece":
        return sorted({"##" + c for c in set().union(*(word[1:] for word in words))})
    return sorted({word[-1] + "</w>" for word in words})


def _unigram(plan: _Plan) -> Tokenizer:
    import sentencepiece

    known, n = plan.family, plan.vocab_size or 0
    options: dict[str, Any] = dict(plan.family.pieces)
    lower = options.get("lower", False) if plan.lower is None else plan.lower
    layout: dict[str, Any] = dict(plan.family.layout)
    if options.get("fairseq"):
        n -= 2 + len(known.languages)  # the four of fairseq stand for the model's three, <mask> comes last
    elif options.get("sentinels"):
        n -= len(known.extra)
    if n < 10:
        raise ArgumentError(
            f"vocab_size={plan.vocab_size} leaves no room for pieces beside the special tokens of "
            f"{known.name}"
        )
    lines = _lines(plan.text, min(1.0, plan.sample_bytes / max(plan.text.bytes, 1)), plan.seed)
    if options.get("normalise"):
        lines = (pieces.normalise(line, lower) for line in lines)
    written = io.BytesIO()
    sentencepiece.set_random_generator_seed(plan.seed % 2**32)
    try:
        with guard.panics("train_tokenizer"):
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=lines,
                model_writer=written,
                vocab_size=n,
                model_type="unigram",
                max_sentence_length=2 * LONGEST_LINE,
                num_threads=16,
                minloglevel=2,
                **layout,
            )
    except guard.TokenizerError as e:
        if plan.text.failure is not None:
            raise plan.text.failure from None
        if found := re.search(r"too high.*<= (\d+)", str(e)):
            most = int(found[1]) + (plan.vocab_size or 0) - n
            raise ArgumentError(
                f"vocab_size={plan.vocab_size} is more than this text has pieces for: at most {most}"
            ) from None
        raise
    settings = {"do_lower_case": lower} if "lower" in options else {}
    backend = pieces.read(written.getvalue(), "the trained model", known, lower)
    return dressed(backend, known, known.roles, "the trained model", settings=settings)


def _lines(text: Iterable[str], keep: float, seed: int) -> Iterator[str]:
    """Lines of at most LONGEST_LINE bytes, a share `keep` of them."""
    number = 0
    for passage in text:
        for line in passage.splitlines():
            while line:
                cut = len(line)
                if cut * 4 > LONGEST_LINE and len(line.encode("utf-8", "replace")) > LONGEST_LINE:
                    cut = line.rfind(" ", 1, LONGEST_LINE // 4)
                    cut = cut if cut > 0 else LONGEST_LINE // 4
                number += 1
                if keep == 1.0 or draws.uniform(seed, number) < keep:
                    yield line[:cut]
                line = line[cut:]


def _characters(plan: _Plan) -> Tokenizer:
    counts: Counter[int] = Counter()
    for passage in plan.text:
        codes, n = np.unique(np.frombuffer(passage.encode("utf-32-le"), np.uint32), return_counts=True)
        counts.update(dict(zip(codes.tolist(), n.tolist())))
    room = len(counts) if plan.vocab_size is None else max(plan.vocab_size - len(plan.specials), 0)
    often = [
        code
        for code, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if n >= (plan.min_count or 1)
    ]
    tokens = [*plan.specials, *map(chr, sorted(often[:room]))]
    backend = characters.Characters({token: i for i, token in enumerate(tokens)}, plan.family.roles["unk"])
    return dressed(backend, plan.family, plan.family.roles, "the trained vocabulary")
