"""Backends of the `tokenizers` package: WordPiece, BPE, byte-level BPE, words, and any tokenizer.json."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plmcore._core import FormatError
from plmcore.tokenizers import guard, limits
from plmcore.tokenizers.added import Flat, Row
from plmcore.tokenizers.families import Family

WHITE_BYTES = "ĠĊĉčĈċČĀ"  # how byte-level BPE writes space, newline, tab and their kin


class Library:
    """A `tokenizers.Tokenizer` that neither pads nor cuts: that is done for all backends alike."""

    threaded = True

    def __init__(self, native: Any):
        self.native = native
        native.no_padding()
        native.no_truncation()

    @functools.cached_property
    def vocabulary(self) -> dict[str, int]:
        return self.native.get_vocab(with_added_tokens=True)

    @property
    def kind(self) -> str:
        model = type(self.native.model).__name__
        if model == "BPE":
            return "byte-bpe" if b'"ByteLevel"' in _state(self.native.pre_tokenizer) else "bpe"
        return {"WordPiece": "wordpiece", "Unigram": "unigram", "WordLevel": "words"}.get(model, model)

    @property
    def special(self) -> set[int]:
        return {id for id, token in self.native.get_added_tokens_decoder().items() if token.special}

    def flat(self, texts: Sequence[str]) -> Flat:
        with guard.encoding(texts):
            found = self.native.encode_batch_fast(texts, add_special_tokens=False)
            rows = [e.ids for e in found]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return np.fromiter(itertools.chain.from_iterable(rows), np.int32, int(lengths.sum())), lengths

    def rows(self, texts: Sequence[str]) -> list[Row]:
        with guard.encoding(texts):
            found = self.native.encode_batch(texts, add_special_tokens=False)
        rows = []
        for e in found:
            words = np.array(e.word_ids, np.float64)  # None, for added tokens, is nan
            words = np.where(np.isnan(words), -1, words).astype(np.int64)
            rows.append((np.array(e.ids, np.int32), np.array(e.offsets, np.int64).reshape(-1, 2), words))
        return rows

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        with guard.panics("decode"):
            return self.native.decode_batch([list(map(int, row)) for row in rows], skip_special_tokens=False)

    def starts_word(self, token: str) -> bool | None:
        """Whether a token begins a word; None where tokens say only where words end."""
        model = self.native.model
        if self.kind == "byte-bpe":
            return token[0] in WHITE_BYTES
        if self.kind == "unigram" or b'"Metaspace"' in _state(self.native.pre_tokenizer):
            return token.startswith("▁")
        if prefix := getattr(model, "continuing_subword_prefix", None):
            return not token.startswith(prefix)
        return None if getattr(model, "end_of_word_suffix", None) else True

    def word(self, word: str) -> str:
        """A word as it must be spelled to be encoded by itself as it would be inside a text."""
        return " " + word if self.kind == "byte-bpe" else word

    def add(self, tokens: Sequence[Any], special: bool) -> None:
        with guard.panics("add_tokens"):
            (self.native.add_special_tokens if special else self.native.add_tokens)(list(tokens))
        self.__dict__.pop("vocabulary", None)

    def add_special(self, tokens: Sequence[str], takes_space: str | None) -> None:
        """`takes_space`: the token that swallows the space before it."""
        from tokenizers import AddedToken

        self.add(
            [AddedToken(t, lstrip=t == takes_space, normalized=False, special=True) for t in tokens],
            special=True,
        )

    def identity(self) -> str:
        return self.native.to_str()

    def files(self) -> dict[str, bytes]:
        """By name: tokenizer.json, and the vocabulary files that the kind had before there was one."""
        files = {"tokenizer.json": self.native.to_str(pretty=True).encode()}
        model = json.loads(files["tokenizer.json"])["model"]
        if self.kind == "wordpiece":
            order = sorted(model["vocab"], key=model["vocab"].get)
            if list(map(model["vocab"].get, order)) == list(range(len(order))) and not any(
                "\n" in t for t in order
            ):
                files["vocab.txt"] = "".join(f"{token}\n" for token in order).encode()
        elif self.kind in ("bpe", "byte-bpe"):
            files["vocab.json"] = json.dumps(model["vocab"], ensure_ascii=False).encode()
            merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
            files["merges.txt"] = "".join(f"{m}\n" for m in ["#version: 0.2", *merges]).encode()
        return files

    def __getstate__(self) -> dict[str, str]:
        return {"tokenizer.json": self.native.to_str()}

    def __setstate__(self, state: Mapping[str, str]) -> None:
        import tokenizers

        self.native = tokenizers.Tokenizer.from_str(state["tokenizer.json"])


# ---- from files ----


def read_json(text: bytes, source: object) -> Library:
    import tokenizers

    with guard.reading(source):
        limits.check(text, source)
        return Library(tokenizers.Tokenizer.from_str(text.decode("utf-8")))


def read_wordpiece(text: bytes, source: object, settings: Mapping[str, Any], family: Family) -> Library:
    """vocab.txt: a token per line, its number the id."""
    with guard.reading(source):
        lines = text.decode("utf-8").split("\n")
    if lines[-1] == "":
        lines.pop()
    vocabulary = {line.rstrip("\r"): i for i, line in enumerate(lines)}
    return wordpiece(
        vocabulary,
        lower=bool(settings.get("do_lower_case", family.lower)),
        accents=settings.get("strip_accents"),
        chinese=bool(settings.get("tokenize_chinese_chars", True)),
        unknown=token_text(settings.get("unk_token")) or family.roles.get("unk", "[UNK]"),
    )


def read_bpe(
    vocabulary: Mapping[str, Any], merges: bytes, source: object, settings: Mapping[str, Any], family: Family
) -> Library:
    """vocab.json and merges.txt: a merge per line, first come first merged."""
    with guard.reading(source):
        ids = checked_ids(vocabulary)
    with guard.reading(f"{source} with merges.txt"):
        lines = merges.decode("utf-8").split("\n")
        if lines and lines[0].startswith("#version"):
            lines = lines[1:]
        pairs: list[tuple[Any, ...]] = [tuple(line.rstrip("\r").split(" ")) for line in lines if line.strip()]
        if bad := next((p for p in pairs if len(p) != 2), None):
            raise FormatError(f"'{source}': a line of merges.txt must be two tokens, got {' '.join(bad)!r}")
        for a, b in pairs:
            if not (a in ids and b in ids and a + b in ids):
                raise FormatError(f"'{source}' lacks a token of the merge {a + ' ' + b!r} in merges.txt")
        if "bpe" in family.kinds:
            return bpe(ids, pairs, token_text(settings.get("unk_token")) or family.roles["unk"])
        return byte_bpe(ids, pairs, bool(settings.get("add_prefix_space", False)))


def checked_ids(vocabulary: Mapping[str, Any]) -> dict[str, int]:
    if bad := next((t for t, id in vocabulary.items() if type(id) is not int or not 0 <= id < 2**31), None):
        raise ValueError(f"the id of {bad!r} is {vocabulary[bad]!r}")
    return dict(vocabulary)


def token_text(value: object) -> str | None:
    """A special token of a settings file: its text, or an object with its `content`."""
    value = value.get("content") if isinstance(value, Mapping) else value
    return value if isinstance(value, str) else None


# ---- parts ----


def wordpiece(
    vocabulary: Mapping[str, int],
    *,
    lower: bool = True,
    accents: bool | None = None,
    chinese: bool = True,
    unknown: str = "[UNK]",
) -> Library:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    native = Tokenizer(models.WordPiece(dict(vocabulary), unk_token=unknown))
    native.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=chinese, strip_accents=accents, lowercase=lower
    )
    native.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    native.decoder = decoders.WordPiece(prefix="##")
    return Library(native)


def bpe(vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]], unknown: str = "<unk>") -> Library:
    """Words as BERT splits them, lower-case, the end of a word marked </w>: GPT-1."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    native = Tokenizer(
        models.BPE(dict(vocabulary), list(merges), unk_token=unknown, end_of_word_suffix="</w>")
    )
    native.normalizer = normalizers.BertNormalizer(lowercase=True)
    native.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    native.decoder = decoders.BPEDecoder(suffix="</w>")
    return Library(native)


def byte_bpe(
    vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]], prefix_space: bool = False
) -> Library:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    native = Tokenizer(models.BPE(dict(vocabulary), list(merges)))
    native.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    native.decoder = decoders.ByteLevel()
    return Library(native)


WORD = r"\w+(?=n't\b)|n't\b|'(?:s|re|ve|ll|m|d)\b|\w+|[^\w\s]"


def words(
    vocabulary: Mapping[str, int], *, lower: bool = False, unknown: str = "<unk>", split: bool = False
) -> Library:
    """Whitespace-separated words; what the vocabulary lacks is `unknown`.

    split: of running text: in small letters, marks and the ends of contractions (n't, 's) on their own.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    native = Tokenizer(models.WordLevel(dict(vocabulary), unk_token=unknown))
    if lower or split:
        native.normalizer = normalizers.Lowercase()
    native.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if split:
        native.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), "removed", invert=True)
    return Library(native)


def _state(part: Any) -> bytes:
    return part.__getstate__() if part is not None else b""
