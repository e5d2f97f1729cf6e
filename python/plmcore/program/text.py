"""The tokenizer of a model file: its vocabulary as tensors, its rules as numbers. plmcore::Text runs it.

WordPiece as of BERT and byte-level BPE as of GPT-2 are served. Of another kind the file has the name alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from plmcore._core import Tensor
from plmcore.tokenizers.format import Part
from plmcore.tokenizers.library import Library
from plmcore.tokenizers.tokenizer import Tokenizer

Found = tuple[dict[str, Any], dict[str, Tensor]]
BERT_DECODER = {"type": "WordPiece", "prefix": "##", "cleanup": True}
FLAGS = ("special", "lstrip", "rstrip", "single_word", "normalized")


def made(tokenizer: Tokenizer) -> Found:
    """The part "text" of a card, and the tensors that it names."""
    rules = None
    if isinstance(tokenizer.backend, Library):
        state = json.loads(tokenizer.backend.identity())
        rules = _wordpiece(state) or _byte_bpe(state)
    if rules is None:
        return {"kind": tokenizer.kind}, {}
    kind, settings, prefix = rules
    tokens = [(tokenizer.token_of(i) or "").encode() for i in range(tokenizer.vocab_size)]
    named: dict[str, np.ndarray] = {
        "tokens": np.frombuffer(b"".join(tokens), np.uint8),
        "ends": np.cumsum([len(t) for t in tokens], dtype=np.int64),
    }
    if kind == "byte-bpe":
        named["merges"] = _merges(state["model"])
    card: dict[str, Any] = {
        "kind": kind,
        **{name: f"text.{name}" for name in named},
        "added": [[a["id"], *(int(a[flag]) for flag in FLAGS)] for a in _added(state, tokenizer)],
        "single": _parts(tokenizer.format.single),
        "pair": _parts(tokenizer.format.pair),
        "settings": {**settings, "max_length": tokenizer.max_length or 0},
    }
    if prefix:
        card["prefix"] = prefix
    return card, {f"text.{name}": Tensor(array.copy()) for name, array in named.items()}


def _wordpiece(state: Mapping[str, Any]) -> tuple[str, dict[str, int], str] | None:
    model, normal = state["model"], state["normalizer"]
    usual = (
        model["type"] == "WordPiece"
        and normal is not None
        and normal["type"] == "BertNormalizer"
        and state["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and state["decoder"] == {**BERT_DECODER, "prefix": model["continuing_subword_prefix"]}
        and model["unk_token"] in model["vocab"]
    )
    if normal is None or not usual:
        return None
    lower, accents = normal["lowercase"], normal["strip_accents"]
    settings = {
        "clean": int(normal["clean_text"]),
        "chinese": int(normal["handle_chinese_chars"]),
        "accents": int(lower if accents is None else accents),
        "lower": int(lower),
        "unknown": model["vocab"][model["unk_token"]],
        "longest_word": model["max_input_chars_per_word"],
    }
    return "wordpiece", settings, model["continuing_subword_prefix"]


def _byte_bpe(state: Mapping[str, Any]) -> tuple[str, dict[str, int], str] | None:
    model, cut = state["model"], state["pre_tokenizer"]
    usual = (
        model["type"] == "BPE"
        and state["normalizer"] is None
        and cut is not None
        and cut["type"] == "ByteLevel"
        and cut.get("use_regex", True)
        and (state["decoder"] or {}).get("type") == "ByteLevel"
        and not any(
            model.get(key)
            for key in (
                "dropout",
                "unk_token",
                "continuing_subword_prefix",
                "end_of_word_suffix",
                "byte_fallback",
                "ignore_merges",
            )
        )
    )
    if cut is None or not usual:
        return None
    return "byte-bpe", {"prefix_space": int(cut["add_prefix_space"])}, ""


def _merges(model: Mapping[str, Any]) -> np.ndarray:
    ids = model["vocab"]
    pairs = (m.split(" ") if isinstance(m, str) else m for m in model["merges"])
    return np.array([[ids[a], ids[b], ids[a + b]] for a, b in pairs], np.int32).reshape(-1, 3)


def _added(state: Mapping[str, Any], tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Tokens that are looked for in texts; those that decoding skips count as special."""
    special = set(tokenizer.special_ids.tolist())
    return [{**a, "special": a["id"] in special} for a in state["added_tokens"]]


def _parts(parts: Iterable[Part]) -> list[list[int]]:
    return [[-1 if p.text is None else p.text, p.id, p.type] for p in parts]
