"""Perplexity of texts under a language model.

Causal models: a window slides over the text; each token is scored once, with as much context as the window
gives. Models with a memory or a state: window after window, each with that of those before it. Masked models:
each token is masked by itself and predicted from both sides (pseudo-perplexity, Salazar et al. 2020).
Sequence-to-sequence models: the target given its source.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from plmcore._core import ArgumentError, KindError
from plmcore.evaluate import scoring
from plmcore.evaluate.scoring import NONE, Row, Scores
from plmcore.evaluate.texts import pieces
from plmcore.nn import inference
from plmcore.runtime.kinds import checked

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel
    from plmcore.tokenizers import Tokenizer

WINDOW = 512  # of a model that takes any length
SEGMENT = 128  # of one that remembers those before, at most
PIECE = 1 << 16  # ids of an array that are copied at once


class Perplexity(float):
    """The perplexity e^(nll / tokens), a float with its parts.

    The numbers per word, byte and character do not depend on the tokenizer.
    """

    nll: float  # -ln p of all that was scored
    tokens: int  # that were scored
    words: int  # of the text, between white space
    bytes: int  # of the text in UTF-8
    characters: int

    def __new__(cls, nll: float, tokens: int, words: int = 0, bytes: int = 0, characters: int = 0) -> Self:
        self = super().__new__(cls, perplexity_of(nll / tokens) if tokens else math.nan)
        self.nll, self.tokens, self.words, self.bytes, self.characters = nll, tokens, words, bytes, characters
        return self

    def __getnewargs__(self) -> tuple[float, int, int, int, int]:  # type: ignore[override]
        return self.nll, self.tokens, self.words, self.bytes, self.characters

    @property
    def per_token(self) -> float:
        """e^(nll / tokens)."""
        return float(self)

    @property
    def per_word(self) -> float:
        """e^(nll / words)."""
        return perplexity_of(self.nll / self.words) if self.words else math.nan

    @property
    def per_byte(self) -> float:
        """e^(nll / bytes)."""
        return perplexity_of(self.nll / self.bytes) if self.bytes else math.nan

    @property
    def per_character(self) -> float:
        """e^(nll / characters)."""
        return perplexity_of(self.nll / self.characters) if self.characters else math.nan

    @property
    def bits_per_token(self) -> float:
        """nll / tokens in bits."""
        return self.nll / math.log(2) / self.tokens if self.tokens else math.nan

    @property
    def bits_per_byte(self) -> float:
        """nll / bytes in bits."""
        return self.nll / math.log(2) / self.bytes if self.bytes else math.nan

    @property
    def bits_per_character(self) -> float:
        """nll / characters in bits."""
        return self.nll / math.log(2) / self.characters if self.characters else math.nan

    def to_dict(self) -> dict[str, float]:
        """All numbers by name."""
        names = (
            "per_token",
            "per_word",
            "per_byte",
            "per_character",
            "bits_per_token",
            "bits_per_byte",
            "bits_per_character",
        )
        known = {name: getattr(self, name) for name in names}
        counts = {name: getattr(self, name) for name in ("nll", "tokens", "words", "bytes", "characters")}
        return {
            k: v
            for k, v in {**known, **counts}.items()
            if not math.isnan(v) and (v or k in ("nll", "tokens"))
        }

    def __repr__(self) -> str:
        return f"Perplexity({float(self):.4f}, {self.tokens} tokens, {self.words} words, {self.bytes} bytes)"


@checked
def perplexity(
    lm: LanguageModel,
    texts: Any,
    sources: str | Sequence[str] | None = None,
    *,
    window: int | None = None,
    stride: int | None = None,
    start: int | None = None,
    target_tokenizer: Tokenizer | None = None,
    batch_tokens: int = scoring.BATCH_TOKENS,
    errors: str = "strict",
    progress: Callable[[int], None] | None = None,
) -> Perplexity:
    """Computes the perplexity of a text, a file (a pathlib.Path), an array of ids, of several, or of the
    documents of a Corpus.

    window: the most tokens the model reads at once, as many as it has positions unless given.
    stride: by how much it moves on, half a window unless given; smaller gives more context and takes longer.
        A model with a memory reads on from the end of each window, and remembers config.mem_len tokens.
    start: the id that stands before a text; without one, and where the tokenizer puts none there, a text's
        first token is predicted from nothing and not scored.
    sources: what the targets `texts` of a sequence-to-sequence model were made of.
    target_tokenizer: that of the targets, where it is another (Marian, mBART).
    errors="replace": bytes of files that are not UTF-8 are read as U+FFFD.
    progress: called with the bytes read so far.
    """
    kind = scoring.kind_of(lm)
    count = _Count(lm, progress, errors)
    rows, found = None, None
    if kind == "seq2seq":
        rows = _seq2seq_rows(count, texts, sources, target_tokenizer)
    elif sources is not None:
        raise ArgumentError(f"perplexity: a {kind} model takes no sources")
    elif kind == "masked":
        rows = _masked_rows(lm, count, texts, window, stride)
    elif getattr(lm.model, "CARRIES", False):
        found = _carried_scores(lm, count, texts, window, stride, start)
    elif getattr(lm.model, "REMEMBERS", False) and lm.config.mem_len:
        found = _remembered_scores(lm, count, texts, window, stride, start)
    else:
        rows = _causal_rows(lm, count, texts, kind, window, stride, start)
    if found is None:
        found = scoring.score(lm, rows or (), batch_tokens, best=False)
    nll, tokens = 0.0, 0
    for scores in found:
        nll, tokens = nll - float(scores.log_probs.sum()), tokens + len(scores.log_probs)
        if math.isnan(nll):
            raise ArgumentError(
                f"perplexity: the model gives nan among the first {tokens} tokens; are its weights sound?"
            )
    if tokens == 0:
        raise ArgumentError(
            "perplexity: there are no tokens to score; a text needs at least two, or one and start="
        )
    return Perplexity(nll, tokens, count.words, count.bytes, count.characters)


# ---- rows of each kind of model ----


def _causal_rows(
    lm: Any, count: _Count, texts: Any, kind: str, window: int | None, stride: int | None, start: int | None
) -> Iterator[Row]:
    longest: int | None = lm.config.longest
    window = (longest or WINDOW) if window is None else window
    if window < 1:
        raise ArgumentError(f"perplexity: a window has at least 1 token, got {window}")
    if longest and window > longest:
        raise ArgumentError(
            f"perplexity: a window of {window} tokens is more than the {longest} positions of the model"
        )
    stride = max(1, window // 2) if stride is None else stride
    if not 1 <= stride <= window:
        raise ArgumentError(f"perplexity: stride must be from 1 to the window's {window}, got {stride}")
    before = [start] if start is not None else prefix(lm)
    for text in items(texts):
        for tokens, first in windows(count.ids(text), window, stride, before):
            labels = np.full(len(tokens), NONE, np.int64)
            labels[first:] = tokens[first:]
            # XLNet predicts a token at its own place, others at the place before it
            yield Row(tokens, labels) if kind == "permuted" else Row(tokens[:-1], labels[1:])


def _remembered_scores(
    lm: Any, count: _Count, texts: Any, window: int | None, stride: int | None, start: int | None
) -> Iterator[Scores]:
    """Each text from its beginning, after which nothing of it is left."""
    if stride is not None:
        raise ArgumentError(
            "perplexity: this model remembers what is before a window: its windows do not overlap, so that "
            "there is no stride; load it with mem_len= for more or less memory"
        )
    window = min(SEGMENT, lm.config.mem_len) if window is None else window
    return _onward(lm, count, texts, window, start, "mems", (), lambda encoded: encoded.mems())


def _carried_scores(
    lm: Any, count: _Count, texts: Any, window: int | None, stride: int | None, start: int | None
) -> Iterator[Scores]:
    """The same with the state of a recurrent model."""
    if stride is not None:
        raise ArgumentError(
            "perplexity: this model carries its state from window to window: they do not overlap, so that "
            "there is no stride"
        )
    window = WINDOW if window is None else window
    return _onward(lm, count, texts, window, start, "state", None, lambda encoded: encoded.state)


def _onward(
    lm: Any,
    count: _Count,
    texts: Any,
    window: int,
    start: int | None,
    kept: str,
    begin: Any,
    after: Callable[[Any], Any],
) -> Iterator[Scores]:
    """Window after window, each with what the body keeps of those before it under the name `kept`; from its
    end by a model that reads backward.
    """
    if window < 1:
        raise ArgumentError(f"perplexity: a window has at least 1 token, got {window}")
    before = [start] if start is not None else prefix(lm)
    body = lm.model.body
    for text in items(texts):
        ids: Iterable[np.ndarray] = count.ids(text)
        if getattr(lm.config, "backward", False):
            ids = [np.concatenate([np.zeros(0, np.int64), *ids])[::-1]]
        memory = begin
        for tokens, first in windows(ids, window, window, before):
            labels = np.full((1, len(tokens)), NONE, np.int64)
            labels[0, first:] = tokens[first:]
            with inference():
                encoded = body.encode(**body.tensors({"input_ids": tokens[None, :-1]}), **{kept: memory})
                memory = after(encoded)
                found = scoring.answers(lm, encoded, labels[:, 1:], False)
            yield from found


def windows(
    ids: Iterable[np.ndarray], window: int, stride: int, before: Sequence[int] = ()
) -> Iterator[tuple[np.ndarray, int]]:
    """Stretches of a stream of ids, and where in each the tokens begin that no stretch before it has scored.

    A stretch is a window and the token that follows it, and begins `stride` tokens after the one before.
    """
    have, first = np.array(before, np.int64), max(1, len(before))
    for new in ids:
        have = np.concatenate([have, new])
        while len(have) > window + 1:
            yield have[: window + 1], first
            have, first = have[stride:], window + 1 - stride
    if len(have) > first:
        yield have, first


def _masked_rows(lm: Any, count: _Count, texts: Any, window: int | None, stride: int | None) -> Iterator[Row]:
    tokenizer = count.tokenizer("perplexity")
    mask = tokenizer.mask_token_id
    if mask is None:
        raise ArgumentError(
            "perplexity: the tokenizer of a masked model needs a mask token, and this has none"
        )
    if stride is not None:
        raise ArgumentError(
            "perplexity: a masked model sees both sides of a token: its windows do not overlap, so "
            "there is no stride"
        )
    begin = len(prefix(lm))
    around = len(tokenizer.build(np.zeros(0, np.int64))[0])
    longest: int | None = lm.config.longest
    window = (longest or WINDOW) if window is None else window
    if window <= around or (longest and window > longest):
        raise ArgumentError(
            f"perplexity: a window must have more than {around} and at most {longest} tokens, got {window}"
        )
    for text in items(texts):
        for part in _parts(count.ids(text), window - around):
            ids = np.asarray(tokenizer.build(part)[0])
            for i in range(begin, begin + len(part)):
                hidden, labels = ids.copy(), np.full(len(ids), NONE, np.int64)
                hidden[i], labels[i] = mask, ids[i]
                yield Row(hidden, labels)


def _seq2seq_rows(
    count: _Count, texts: Any, sources: str | Sequence[str] | None, target_tokenizer: Tokenizer | None
) -> Iterator[Row]:
    if sources is None:
        raise ArgumentError(
            "perplexity: a sequence-to-sequence model needs sources=, what the texts were made of"
        )
    tokenizer = count.tokenizer("perplexity")
    texts, sources = ([side] if isinstance(side, str) else list(side) for side in (texts, sources))
    if len(texts) != len(sources):
        raise ArgumentError(f"perplexity: {len(texts)} texts and {len(sources)} sources")
    for text, source in zip(texts, sources):
        count.add(text)
        yield Row(tokenizer(source).input_ids, (target_tokenizer or tokenizer)(text).input_ids)


# ---- texts ----


def items(texts: Any) -> Iterable[Any]:
    """Texts, files or arrays of ids, one by one."""
    if isinstance(texts, (str, os.PathLike)) or (isinstance(texts, np.ndarray) and texts.ndim == 1):
        return [texts]
    if (documents := getattr(texts, "documents", None)) is not None:
        ids: Any = getattr(texts, "ids", None)
        return (ids[a:b] for a, b in zip(documents[:-1], documents[1:]))
    if isinstance(texts, Sequence) and texts and isinstance(texts[0], (int, np.integer)):
        return [np.asarray(texts)]
    if not isinstance(texts, Iterable) or isinstance(texts, (bytes, Mapping)):
        raise KindError(
            f"perplexity: texts must be a text, a path, ids, or a list of them, got a {type(texts).__name__}"
        )
    return texts


class _Count:
    """Texts to ids, counting what passes."""

    def __init__(self, lm: LanguageModel, progress: Callable[[int], None] | None, errors: str):
        self.lm, self.progress, self.errors = lm, progress, errors
        self.words = self.bytes = self.characters = 0

    def tokenizer(self, caller: str) -> Tokenizer:
        if self.lm.tokenizer is None:
            raise ArgumentError(
                f"{caller}: this model has no tokenizer; load it from a directory with tokenizer files"
            )
        return self.lm.tokenizer

    def add(self, text: str) -> None:
        self.words += len(text.split())
        self.bytes += len(text.encode("utf-8", "surrogatepass"))
        self.characters += len(text)
        if self.progress is not None:
            self.progress(self.bytes)

    def ids(self, text: str | os.PathLike[str] | np.ndarray) -> Iterator[np.ndarray]:
        if isinstance(text, (str, os.PathLike)):
            tokenizer = self.tokenizer("perplexity")
            for piece in pieces(text, errors=self.errors):
                self.add(piece)
                yield tokenizer.encode_ids([piece])[0]
            return
        ids = np.asarray(text)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise KindError(
                f"perplexity takes texts, paths of files and arrays of ids [n], got "
                f"{type(text).__name__} {ids.dtype} {ids.shape}"
            )
        for i in range(0, len(ids), PIECE):
            yield ids[i : i + PIECE].astype(np.int64)


def _parts(ids: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """A stream of ids in stretches of `size`; the last may be shorter."""
    have = np.zeros(0, np.int64)
    for new in ids:
        have = np.concatenate([have, new])
        while len(have) >= size:
            yield have[:size]
            have = have[size:]
    if len(have):
        yield have


def prefix(lm: LanguageModel) -> list[int]:
    """What the tokenizer puts before a text."""
    if lm.tokenizer is None:
        return []
    ids = np.asarray(lm.tokenizer.build(np.array([NONE]))[0])
    return ids[: int(np.flatnonzero(ids == NONE)[0])].tolist()


def perplexity_of(loss: float) -> float:
    """exp(loss); infinite where that is more than a number can be."""
    return math.inf if loss > 709 else math.exp(loss)
