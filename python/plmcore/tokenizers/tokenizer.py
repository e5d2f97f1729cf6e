from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from plmcore._core import FormatError


class Batch(Mapping):
    """Arrays by name, [B, T] for texts and [T] for one text: input_ids, attention_mask, token_type_ids; `offsets` [..., 2] apart."""

    def __init__(self, arrays: Mapping[str, np.ndarray], offsets: np.ndarray):
        self._arrays, self.offsets = dict(arrays), offsets

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_") or name not in self._arrays:
            raise AttributeError(f"Batch has no {name!r}")
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class Tokenizer:
    """A tokenizer of the `tokenizers` package with the padding token and length limit of its directory."""

    def __init__(self, native, pad_token: str | None = None, max_length: int | None = None):
        self.native, self.max_length = native, max_length
        self.native.no_padding()
        self.native.no_truncation()
        known = (t for t in (pad_token, "[PAD]", "<pad>") if t is not None and self.id_of(t) is not None)
        self.pad_token = next(known, None)
        self.pad_token_id = 0 if self.pad_token is None else self.id_of(self.pad_token)

    @property
    def vocab_size(self) -> int:
        return self.native.get_vocab_size()

    def __call__(
        self,
        text: str | Sequence[str],
        pair: str | Sequence[str] | None = None,
        *,
        max_length: int | None = None,
        add_special_tokens: bool = True,
    ) -> Batch:
        """The ids of one text, or of several, padded on the right to the longest. Texts longer than max_length are cut."""
        texts = [text] if isinstance(text, str) else list(text)
        if not all(isinstance(t, str) for t in texts):
            raise TypeError(f"a tokenizer takes a str or a list of them, got {[type(t).__name__ for t in texts]}")
        pairs = None if pair is None else [pair] if isinstance(pair, str) else list(pair)
        if pairs is not None and len(pairs) != len(texts):
            raise ValueError(f"{len(texts)} texts need {len(texts)} second texts, got {len(pairs)}")
        limit = max_length or self.max_length
        if limit:
            self.native.enable_truncation(limit)
        else:
            self.native.no_truncation()
        inputs = texts if pairs is None else list(zip(texts, pairs))
        found = self.native.encode_batch(inputs, add_special_tokens=add_special_tokens)
        B, T = len(found), max((len(e) for e in found), default=0)
        arrays = {
            "input_ids": np.full((B, T), self.pad_token_id, np.int64),
            "attention_mask": np.zeros((B, T), np.int64),
            "token_type_ids": np.zeros((B, T), np.int64),
        }
        offsets = np.zeros((B, T, 2), np.int64)
        for b, e in enumerate(found):
            n = len(e)
            arrays["input_ids"][b, :n], arrays["attention_mask"][b, :n] = e.ids, 1
            arrays["token_type_ids"][b, :n] = e.type_ids
            offsets[b, :n] = e.offsets
        if isinstance(text, str):
            return Batch({name: a[0] for name, a in arrays.items()}, offsets[0])
        return Batch(arrays, offsets)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        return self.native.decode([int(i) for i in ids], skip_special_tokens=skip_special_tokens)

    def id_of(self, token: str) -> int | None:
        return self.native.token_to_id(token)


def load_tokenizer(folder: str | os.PathLike[str]) -> Tokenizer:
    """The tokenizer of a model directory: tokenizer.json, or vocab.txt of a BERT."""
    folder = pathlib.Path(folder)
    settings = {}
    if (folder / "tokenizer_config.json").exists():
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    native = _native(folder, settings)
    if native is None:
        raise FileNotFoundError(f"'{folder}' has no tokenizer.json and no vocab.txt")
    pad = settings.get("pad_token")
    limit = settings.get("model_max_length")
    return Tokenizer(
        native,
        pad.get("content") if isinstance(pad, dict) else pad,
        limit if isinstance(limit, int) and limit < 1_000_000 else None,  # larger is the published way to say "none"
    )


def _native(folder: pathlib.Path, settings: Mapping):
    import tokenizers  # on first use: it takes a while to import

    if (folder / "tokenizer.json").exists():
        try:
            return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as e:
            raise FormatError(f"'{folder / 'tokenizer.json'}' cannot be read: {e}") from None
    if (folder / "vocab.txt").exists():
        return tokenizers.BertWordPieceTokenizer(
            str(folder / "vocab.txt"), lowercase=bool(settings.get("do_lower_case", True))
        )._tokenizer
    return None
