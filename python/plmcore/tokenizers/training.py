"""New vocabularies from text."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from plmcore import draws
from plmcore._core import ArgumentError
from plmcore.tokenizers import characters, families, guard, library, pieces
from plmcore.tokenizers.families import Family
from plmcore.tokenizers.loading import dressed
from plmcore.tokenizers.text_files import Paths, files_of, passages
from plmcore.tokenizers.tokenizer import Tokenizer

# kind -> the family whose special tokens it has unless another is asked for, and those it can have
KINDS = {
    "wordpiece": ("bert", ("bert", "distilbert")),
    "bpe": ("openai-gpt", ("openai-gpt",)),
    "byte-bpe": ("gpt2", ("gpt2", "gpt3", "roberta", "bart")),
    "unigram": ("t5", ("t5", "albert", "xlnet", "xlm-roberta", "mbart", "mbart50")),
    "characters": ("characters", ("characters",)),
    "words": ("words", ("words", "transformer")),
}
LONGEST_LINE = 4000  # bytes; sentencepiece leaves out longer ones


def train_tokenizer(
    files: Paths | None = None,
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
    """A tokenizer trained on files, folders of them, or texts. The same input gives the same tokenizer.

    kind: wordpiece, bpe (with </w>), byte-bpe, unigram (sentencepiece), characters or words; family: whose special tokens and
    formats it gets. vocab_size counts all tokens; None, for characters and words, takes all. `min_count`: how often a pair,
    character or word must occur. `sample_bytes`: sentencepiece holds its text in memory, so of more than this it gets a
    random sample of lines. `out`: a directory to save to.
    """
    if kind not in KINDS:
        raise ArgumentError(f"there is no kind of tokenizer {kind!r}; one of {', '.join(KINDS)}")
    name = family or KINDS[kind][0]
    if name not in KINDS[kind][1]:
        raise ArgumentError(f"a {kind} tokenizer cannot be of the family {name!r}; one of {', '.join(KINDS[kind][1])}")
    if (files is None) == (texts is None):
        raise ArgumentError("pass either files or texts")
    if vocab_size is None and kind not in ("characters", "words"):
        raise ArgumentError(f"a {kind} tokenizer needs a vocab_size")
    if vocab_size is not None and vocab_size < 1:
        raise ArgumentError(f"vocab_size must be at least 1, got {vocab_size}")
    text = _Text(files, texts, errors)
    known = families.family(name)
    train = {"unigram": _unigram, "characters": _characters}.get(kind, _library)
    tokenizer = train(text, kind, known, vocab_size, lower, min_count, special_tokens, sample_bytes, seed)
    if text.empty:
        raise ArgumentError(f"there is no text in {text}")
    if out is not None:
        tokenizer.save(out)
    return tokenizer


class _Text:
    """The training text, once from beginning to end, with a progress line."""

    def __init__(self, files: Paths | None, texts: Iterable[str] | None, errors: str):
        self.files = None if files is None else files_of(files)
        self.texts, self.errors, self.empty = texts, errors, True
        self.bytes = sum(f.stat().st_size for f in self.files or ())

    def __iter__(self) -> Iterator[str]:
        for passage in self._passages():
            self.empty = self.empty and not passage.strip()
            yield passage

    def _passages(self) -> Iterator[str]:
        if self.files is None:
            yield from self.texts
            return
        from plmcore.cli.progress import Progress

        progress = Progress(-(-self.bytes // 10**6), "megabyte")
        yield from passages(self.files, errors=self.errors, told=lambda n: progress.update(n // 10**6, "read"))
        progress.clear()

    def __str__(self) -> str:
        return "the texts" if self.files is None else ", ".join(map(str, self.files[:5]))


def _specials(known: Family, more: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*known.roles.values(), *known.extra, *more]))


def _library(text, kind, known, vocab_size, lower, min_count, more, sample_bytes, seed) -> Tokenizer:
    from tokenizers import pre_tokenizers, trainers

    special, unknown = _specials(known, more), known.roles["unk"]
    lower = known.lower and kind == "wordpiece" if lower is None else lower
    settings: dict[str, Any] = {}
    common = dict(special_tokens=special, show_progress=False)
    if kind == "words":
        backend = library.words({unknown: 0}, lower=lower, unknown=unknown)
        trainer = trainers.WordLevelTrainer(vocab_size=vocab_size or 2**31 - 1, min_frequency=min_count or 1, **common)
    elif kind == "wordpiece":
        backend, settings = library.wordpiece({unknown: 0}, lower=lower, unknown=unknown), {"do_lower_case": lower}
        trainer = trainers.WordPieceTrainer(vocab_size=vocab_size, min_frequency=min_count or 2, **common)
    elif kind == "bpe":
        backend = library.bpe({unknown: 0}, [], unknown)
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size, min_frequency=min_count or 2, end_of_word_suffix="</w>", **common
        )
    else:
        backend, alphabet = library.byte_bpe({}, []), pre_tokenizers.ByteLevel.alphabet()
        if vocab_size < len(alphabet) + len(special):
            raise ArgumentError(
                f"a byte-level vocabulary has {len(alphabet)} bytes and {len(special)} special tokens; vocab_size={vocab_size} is too small"
            )
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size, min_frequency=min_count or 2, initial_alphabet=alphabet, **common
        )
    with guard.panics("train_tokenizer"):
        backend.native.train_from_iterator(text, trainer)
    backend.__dict__.pop("vocabulary", None)
    return dressed(backend, known, known.roles, "the trained vocabulary", settings=settings)


def _unigram(text, kind, known, vocab_size, lower, min_count, more, sample_bytes, seed) -> Tokenizer:
    import sentencepiece

    options = dict(known.pieces)
    lower = options.get("lower", False) if lower is None else lower
    layout, n = dict(unk_id=0, bos_id=1, eos_id=2, pad_id=-1), vocab_size
    if options.get("fairseq"):
        n -= 2 + len(known.languages)  # the four of fairseq stand for the model's three, <mask> comes last
    elif known.name == "t5":
        layout, n = dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1), n - len(known.extra)
    elif known.name == "albert":
        layout = dict(pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols=["[CLS]", "[SEP]", "[MASK]"])
    else:
        layout |= dict(control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"])
    if n < 10:
        raise ArgumentError(
            f"vocab_size={vocab_size} leaves no room for pieces beside the special tokens of {known.name}"
        )
    keep = min(1.0, sample_bytes / max(text.bytes, 1))
    lines = _lines(text, keep, seed)
    if options.get("tidy"):
        lines = (pieces.tidy(line, lower) for line in lines)
    written = io.BytesIO()
    sentencepiece.set_random_generator_seed(seed % 2**32)
    with guard.panics("train_tokenizer"):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines, model_writer=written, vocab_size=n, model_type="unigram", max_sentence_length=2 * LONGEST_LINE,
            num_threads=16, minloglevel=2, **layout,
        )  # fmt: skip
    backend = pieces.read(written.getvalue(), "the trained model", known, lower)
    tokenizer = dressed(
        backend,
        known,
        known.roles,
        "the trained model",
        settings={"do_lower_case": lower} if "lower" in options else {},
    )
    if more:
        tokenizer.add_tokens(more, special=True)
    return tokenizer


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


def _characters(text, kind, known, vocab_size, lower, min_count, more, sample_bytes, seed) -> Tokenizer:
    counts: Counter[int] = Counter()
    for passage in text:
        codes, n = np.unique(np.frombuffer(passage.encode("utf-32-le"), np.uint32), return_counts=True)
        counts.update(dict(zip(codes.tolist(), n.tolist())))
    special = _specials(known, more)
    room = len(counts) if vocab_size is None else vocab_size - len(special)
    often = [code for code, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n >= (min_count or 1)]
    tokens = [*special, *map(chr, sorted(often[: max(room, 0)]))]
    backend = characters.Characters({token: i for i, token in enumerate(tokens)}, known.roles["unk"])
    return dressed(backend, known, known.roles, "the trained vocabulary")
