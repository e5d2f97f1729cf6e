from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np

from plmcore._core import ArgumentError, FormatError, KindError
from plmcore.runtime.kinds import checked
from plmcore.tokenizers import format as formats
from plmcore.tokenizers.added import Row
from plmcore.tokenizers.batch import Batch, Padding, Truncation, Window, fill, fill_detail, fill_spelled
from plmcore.tokenizers.families import OWN, ROLES, Family
from plmcore.tokenizers.format import Format
from plmcore.tokenizers.word_characters import TaggerCharacters

MOST_TOKENS = 1 << 24  # that a text is padded to


class Tokenizer:
    """Turns text into ids and ids into text, for all families and backends.

    `family` decides the special tokens. `pad_token`, `pad_token_id` and so on for pad, unk, cls, sep, mask,
    bos, eos are None where there is no such token.
    """

    spells = False  # whether input_ids are the characters of words

    pad_token: str | None
    unk_token: str | None
    cls_token: str | None
    sep_token: str | None
    mask_token: str | None
    bos_token: str | None
    eos_token: str | None
    pad_token_id: int | None
    unk_token_id: int | None
    cls_token_id: int | None
    sep_token_id: int | None
    mask_token_id: int | None
    bos_token_id: int | None
    eos_token_id: int | None

    def __init__(
        self,
        backend: Any,
        family: Family = OWN[""],
        roles: Mapping[str, str] | None = None,
        *,
        format: Format | None = None,
        max_length: int | None = None,
        padding_side: str | None = None,
        language: str | None = None,
        settings: Mapping[str, Any] = {},
    ):
        self.backend, self.family, self.max_length = backend, family, max_length
        self.padding_side, self.settings = padding_side or family.padding_side, dict(settings)
        self.roles = {
            role: t
            for role, t in (family.roles if roles is None else roles).items()
            if self.id_of(t) is not None
        }
        if family.languages:
            language = language or "en_XX"
        self._format, self._language = format, language
        self.changed = False  # since it was loaded or made
        self._settle()

    def _settle(self) -> None:
        """Everything that follows from vocabulary, roles and language."""
        for name in ("word_starts", "special_ids", "fingerprint", "_tokens"):
            self.__dict__.pop(name, None)
        for role in ROLES:
            token = self.roles.get(role)
            setattr(self, f"{role}_token", token)
            setattr(self, f"{role}_token_id", None if token is None else self.id_of(token))
        ids = self.backend.vocabulary.values()
        self.vocab_size: int = max(ids, default=-1) + 1
        if self.vocab_size > 16 * len(ids) + 65536:
            raise FormatError(
                f"the vocabulary has {len(ids)} tokens, and one of them the id {self.vocab_size - 1}"
            )
        self.format = self._format or formats.of_family(self.family, self._id_in_format)
        self.format.check(self.vocab_size)

    def _id_in_format(self, name: str) -> int:
        token = self._language if name == "language" else self.roles.get(name)
        id = None if token is None else self.id_of(token)
        if id is None:
            wanted = token or self.family.roles.get(name)
            raise FormatError(
                f"the vocabulary has no {wanted!r}, which a tokenizer of the family {self.family.name} needs"
            )
        return id

    # ---- the vocabulary ----

    @property
    def kind(self) -> str:
        """The kind of the vocabulary: wordpiece, bpe, byte-bpe, unigram, characters or words."""
        return self.backend.kind

    @property
    def threaded(self) -> bool:
        """Whether texts are encoded outside of Python's lock, so that threads can share the work."""
        return self.backend.threaded

    @checked
    def id_of(self, token: str) -> int | None:
        """The id of a token; None for an unknown one."""
        return self.backend.vocabulary.get(token)

    @checked
    def token_of(self, id: int) -> str | None:
        """The token of an id; None for an unknown one."""
        return self._tokens[id] if 0 <= id < self.vocab_size else None

    @functools.cached_property
    def _tokens(self) -> list[str | None]:
        tokens: list[str | None] = [None] * self.vocab_size
        for token, id in self.backend.vocabulary.items():
            tokens[id] = token
        return tokens

    @functools.cached_property
    def special_ids(self) -> np.ndarray:
        """All ids that stand for no text, sorted.  int64 [n]"""
        found = {
            self.id_of(t) for t in (*self.roles.values(), *self.family.extra, *self.family.languages)
        } - {None}
        found |= {part.id for part in self.format.single + self.format.pair if part.text is None}
        return np.array(sorted(found | self.backend.special), np.int64)

    @functools.cached_property
    def word_starts(self) -> np.ndarray:
        """Does this id begin a new word? Special tokens do.  bool [vocab_size]"""
        found = [token is None or token == "" or self.backend.starts_word(token) for token in self._tokens]
        if None in found:
            raise ArgumentError(
                "a BPE with </w> marks where words end, not where they start: it has no word_starts"
            )
        starts = np.array(found, bool)
        starts[self.special_ids] = True
        return starts

    @functools.cached_property
    def fingerprint(self) -> str:
        """sha256 of what determines ids: equal for tokenizers that agree on every text."""
        parts = [(p.text, p.id, p.type) for p in self.format.single + self.format.pair]
        return hashlib.sha256(
            json.dumps([self.backend.identity(), parts, self.roles], sort_keys=True).encode()
        ).hexdigest()

    @property
    def language(self) -> str | None:
        """The code around texts of a translation family; may be set."""
        return self._language

    @language.setter
    def language(self, code: str) -> None:
        if code not in self.family.languages:
            raise ArgumentError(
                f"there is no language {code!r}; one of {', '.join(self.family.languages) or 'none'}"
            )
        self._language = code
        self._settle()

    def beyond(self, ids: int) -> str:
        """What is wrong where a model has only so many ids; empty where all tokens have one."""
        more = [token for token in self._tokens[ids:] if token is not None] if self.vocab_size > ids else []
        if not more:
            return ""
        shown = ", ".join(map(repr, more[:5])) + (f" and {len(more) - 5} more" if len(more) > 5 else "")
        return f"the tokenizer has {self.vocab_size} ids and the model {ids}: it has no place for {shown}"

    @checked
    def add_tokens(self, tokens: Iterable[str], *, special: bool = False) -> int:
        """Adds tokens that are matched before all others; returns the number of new ones."""
        tokens = [tokens] if isinstance(tokens, str) else list(tokens)
        if bad := [t for t in tokens if not isinstance(t, str) or not t.strip()]:
            raise ArgumentError(f"a token must be a text of more than white space, got {bad[0]!r}")
        before = len(self.backend.vocabulary)
        self.backend.add(list(dict.fromkeys(tokens)), special)
        self.changed = True
        self._settle()
        return len(self.backend.vocabulary) - before

    @checked
    def set_special(self, role: str, token: str) -> None:
        """Gives a role to a token, and adds a new token: set_special("pad", "<pad>") for batches of GPT-2."""
        if role not in ROLES:
            raise ArgumentError(f"there is no role {role!r}; one of {', '.join(ROLES)}")
        self.add_tokens([token], special=True)
        self.roles[role] = token
        self._settle()

    @checked
    def set_format(self, format: Format) -> None:
        """Puts other special tokens, whose ids there must be, around texts from now on."""
        native = getattr(self.backend, "native", None)
        if native is None:
            raise ArgumentError(f"a tokenizer of the kind {self.kind} keeps the format of its family")
        native.post_processor = formats.processor_of(format, self.token_of)
        self._format, self.changed = format, True
        self._settle()

    # ---- text to ids ----

    @checked
    def encode_ids(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Returns the ids of every text, without special tokens and truncation.  int32 [n] each"""
        if isinstance(texts, str):
            raise KindError("encode_ids takes a list of texts, got one str")
        ids, lengths = self.encode_flat(texts)
        ends = itertools.accumulate(lengths.tolist(), initial=0)
        return [ids[begin:end] for begin, end in itertools.pairwise(ends)]

    @checked
    def encode_flat(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of all texts in one array, and the number of ids of each text: the fast path for
        corpora.  int32 [n], int64 [texts]
        """
        return self.backend.flat(texts if isinstance(texts, list) else list(texts))

    @checked
    def tokenize(self, text: str) -> list[str | None]:
        """The tokens of a text, to look at."""
        return [self._tokens[i] for i in self.encode_ids([text])[0]]

    @checked
    def build(
        self, ids_a: Sequence[int] | np.ndarray, ids_b: Sequence[int] | np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Adds special tokens to ids; returns ids and token_type_ids.  int64 [n]"""
        return self.format.build(ids_a, ids_b)

    @checked
    def __call__(
        self,
        text: str | Sequence[str] | Sequence[Sequence[str]],
        pair: str | Sequence[str] | Sequence[Sequence[str]] | None = None,
        *,
        max_length: int | None = None,
        truncation: str = "longest_first",
        stride: int | None = None,
        pad_to: int | None = None,
        multiple_of: int = 1,
        padding_side: str | None = None,
        add_special_tokens: bool = True,
        words: bool = False,
    ) -> Batch:
        """Returns the ids of one text or of several, padded to the longest, to `pad_to` or to a multiple.

        Texts longer than max_length are cut; with a stride what was cut makes further rows, each with the
        last `stride` tokens of the row before. words=True: a text is a list of words, `word_ids` their
        numbers and `offsets` count within words.
        """
        one = isinstance(text, str) or (words and len(text) > 0 and isinstance(text[0], str))
        texts: list[Any] = [text] if one else list(text)
        pairs: list[Any] | None = None
        if pair is not None:
            pairs = [pair] if one else list(pair)
        if pairs is not None and len(pairs) != len(texts):
            raise ArgumentError(f"{len(texts)} texts need {len(texts)} second texts, got {len(pairs)}")
        cut = Truncation(self.max_length if max_length is None else max_length, truncation, stride)
        format = self.format if add_special_tokens else formats.BARE
        for name, n in (("pad_to", pad_to), ("multiple_of", multiple_of)):
            if n is not None and n > MOST_TOKENS:
                raise ArgumentError(f"{name} must be at most {MOST_TOKENS}, got {n}")
        pad_id = 0 if self.pad_token_id is None else self.pad_token_id
        padding = Padding(
            pad_id, self.family.pad_type, padding_side or self.padding_side, pad_to, multiple_of
        )

        encode = self._word_ids_of if words else self.encode_ids
        a, b = encode(_texts(texts, words)), None if pairs is None else encode(_texts(pairs, words))
        added = format.added(b is not None)
        windows: list[Window] = []
        for i, ids in enumerate(a):
            windows += cut.windows(i, len(ids), None if b is None else len(b[i]), added)
        arrays = fill(windows, a, b, format, padding)
        if self.family.characters:
            spelled = [None if t is None else self._spelled(t, words) for t in (texts, pairs)]
            arrays["char_ids"] = fill_spelled(windows, spelled, format, padding, arrays["input_ids"].shape)
        squeeze = one and stride is None

        def detail() -> dict[str, np.ndarray]:
            rows = self._word_rows_of if words else self.backend.rows
            found = fill_detail(
                windows,
                rows(texts),
                None if pairs is None else rows(pairs),
                format,
                padding,
                arrays["input_ids"].shape[1],
            )
            return {name: x[0] for name, x in found.items()} if squeeze else found

        sample = np.array([w.sample for w in windows], np.int64)
        return Batch({name: x[0] for name, x in arrays.items()} if squeeze else arrays, sample, detail)

    def _spelled(self, texts: Sequence[Any], words: bool) -> list[np.ndarray]:
        """The characters of every token of each text.  uint8 [n, characters]"""
        rows = self._word_rows_of(texts) if words else self.backend.rows(list(texts))
        parts = [
            [(text[w] if words else text)[begin:end] for w, (begin, end) in zip(numbers, offsets.tolist())]
            for text, (_, offsets, numbers) in zip(texts, rows, strict=True)
        ]
        return TaggerCharacters().spelled(parts, self.family.characters)

    def _word_ids_of(self, texts: Sequence[Sequence[str]]) -> list[np.ndarray]:
        return [ids for ids, _, _ in self._word_rows_of(texts)]

    def _word_rows_of(self, texts: Sequence[Sequence[str]]) -> list[Row]:
        vocabulary = dict.fromkeys(word for text in texts for word in text)
        spelled = [self.backend.word(word) for word in vocabulary]
        known = {}
        for word, spelling, (ids, offsets, _) in zip(vocabulary, spelled, self.backend.rows(spelled)):
            known[word] = ids, np.maximum(offsets - (len(spelling) - len(word)), 0)
        rows = []
        for text in texts:
            found = [known[word] for word in text]
            lengths = [len(ids) for ids, _ in found]
            rows.append(
                (
                    np.concatenate([np.zeros(0, np.int32), *(ids for ids, _ in found)]),
                    np.concatenate([np.zeros((0, 2), np.int64), *(offsets for _, offsets in found)]),
                    np.repeat(np.arange(len(found)), lengths),
                )
            )
        return rows

    # ---- ids to text ----

    @overload
    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str: ...
    @overload
    def decode(
        self, ids: Sequence[Sequence[int]] | Sequence[np.ndarray], skip_special_tokens: bool = True
    ) -> list[str]: ...
    @overload
    def decode(self, ids: np.ndarray, skip_special_tokens: bool = True) -> Any: ...  # by its axes
    @checked
    def decode(
        self,
        ids: Sequence[int] | Sequence[Sequence[int]] | Sequence[np.ndarray] | np.ndarray,
        skip_special_tokens: bool = True,
    ) -> Any:
        """Returns the text of one row of ids, or of several."""
        many = getattr(ids, "ndim", None) == 2 or (
            not hasattr(ids, "ndim") and len(ids) > 0 and np.ndim(ids[0]) == 1
        )
        rows = [np.asarray(row, np.int64).reshape(-1) for row in (ids if many else [ids])]
        for row in rows:
            if len(row) and not 0 <= row.min() <= row.max() < self.vocab_size:
                bad = row.min() if row.min() < 0 else row.max()
                raise ArgumentError(f"decode: there is no id {bad}; the vocabulary has {self.vocab_size}")
        if skip_special_tokens:
            rows = [row[~np.isin(row, self.special_ids)] for row in rows]
        texts = self.backend.decode(rows)
        return texts if many else texts[0]

    @checked
    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the files that load_tokenizer and transformers read."""
        from plmcore.tokenizers import saving

        saving.save(self, folder)

    def __repr__(self) -> str:
        return f"Tokenizer({self.family.name or 'own format'}, {self.kind}, {self.vocab_size:,} tokens)"


def _texts(texts: Sequence[Any], words: bool) -> Sequence[Any]:
    for text in texts:
        if words and (isinstance(text, str) or not all(isinstance(word, str) for word in text)):
            raise KindError(f"words=True takes lists of words, got {text!r:.60}")
        if not words and not isinstance(text, str):
            raise KindError(
                f"a tokenizer takes a str or a list of them, got {[type(t).__name__ for t in texts][:10]}"
            )
    return texts
