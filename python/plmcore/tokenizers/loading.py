"""The tokenizer of a model directory."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import Any

from plmcore._core import ArgumentError, FormatError
from plmcore.directory import read_json
from plmcore.tokenizers import families, format, library
from plmcore.tokenizers.families import FAMILIES, ROLES, Family
from plmcore.tokenizers.tokenizer import Tokenizer

VERY_LONG = 1_000_000  # a model_max_length above is the published way to say "none"
PIECE_FILES = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model")


def load_tokenizer(
    folder: str | os.PathLike[str], *, family: str | None = None, language: str | None = None, **changes: Any
) -> Tokenizer:
    """The tokenizer of a directory, from the files it has: a sentencepiece model, tokenizer.json, vocab.txt, or vocab.json and merges.txt.

    `family` says what tokenizer_config.json or config.json otherwise would. `changes` replace keys of tokenizer_config.json, such as
    do_lower_case=False. `language`: the code that an mBART puts around texts.
    """
    folder = pathlib.Path(folder)
    settings = {
        **_optional(folder / "special_tokens_map.json"),
        **_optional(folder / "tokenizer_config.json"),
        **changes,
    }
    known = families.family(family) if family is not None else _family_of(folder, settings)
    files = {file.name: file for file in folder.iterdir() if file.is_file()} if folder.is_dir() else {}

    format_of_file = None
    if (folder / "source.spm") in files.values() and "vocab.json" in files:
        known = known or FAMILIES["marian"]
        raise ArgumentError("marian")
    elif "tokenizer.json" in files:
        backend = library.read_json(files["tokenizer.json"].read_bytes(), files["tokenizer.json"])
        known = known or families.of_vocabulary(backend.vocabulary, backend.kind)
        format_of_file = format.of_processor(backend.native.post_processor)
    elif "vocab.txt" in files:
        known = known or FAMILIES["bert"]
        backend = library.read_wordpiece(files["vocab.txt"].read_bytes(), files["vocab.txt"], settings, known)
    elif "vocab.json" in files and "merges.txt" in files:
        merges = files["merges.txt"].read_bytes()
        if known is None:
            known = FAMILIES["openai-gpt" if b"</w>" in merges[:100_000] else "gpt2"]
        backend = library.read_bpe(files["vocab.json"].read_bytes(), merges, files["vocab.json"], settings, known)
    else:
        raise FileNotFoundError(
            f"'{folder}' has no tokenizer.json and no vocab.txt, vocab.json with merges.txt, or {', '.join(PIECE_FILES)}"
        )
    roles = _roles(settings, known, backend.vocabulary)
    if format_of_file is None:
        _require(folder, known, roles)
        library_specials(backend, known, roles)
    tokenizer = Tokenizer(
        backend, known, roles, format=format_of_file, max_length=_limit(settings), padding_side=settings.get("padding_side"),
        language=language or settings.get("src_lang"), settings=settings,
    )  # fmt: skip
    if format_of_file is None:
        set_processor(tokenizer)
    return tokenizer


def library_specials(backend: library.Library, known: Family, roles: Mapping[str, str]) -> None:
    """Special tokens are found in texts. <mask> of the byte-level families takes the space before it."""
    from tokenizers import AddedToken

    lstrip = {roles.get("mask")} if known.name in ("roberta", "bart") else set()
    tokens = dict.fromkeys(roles.values())
    backend.add([AddedToken(t, lstrip=t in lstrip, normalized=False, special=True) for t in tokens], special=True)


def set_processor(tokenizer: Tokenizer) -> None:
    """What tokenizer.json needs to say for other readers; byte-level families with <s> trim their offsets."""
    from tokenizers import processors

    native, roles = tokenizer.backend.native, tokenizer.roles
    if tokenizer.family.name in ("roberta", "bart"):
        native.post_processor = processors.RobertaProcessing(
            (roles["sep"], tokenizer.sep_token_id), (roles["cls"], tokenizer.cls_token_id),
            trim_offsets=True, add_prefix_space=bool(tokenizer.settings.get("add_prefix_space", False)),
        )  # fmt: skip
    elif tokenizer.format != format.BARE:
        native.post_processor = format.processor_of(tokenizer.format, tokenizer.token_of)


def _optional(path: pathlib.Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _family_of(folder: pathlib.Path, settings: Mapping[str, Any]) -> Family | None:
    known = families.of_class(str(settings.get("tokenizer_class", "")))
    if known is None and (folder / "config.json").is_file():
        known = FAMILIES.get(str(read_json(folder / "config.json").get("model_type", "-")))
    return known


def _roles(settings: Mapping[str, Any], known: Family, vocabulary: Mapping[str, int]) -> dict[str, str]:
    """The special tokens that the settings name, else those of the family, as far as they are there."""
    named = {role: library.token_text(settings.get(f"{role}_token")) for role in ROLES}
    roles = {**known.roles, **{role: token for role, token in named.items() if token is not None}}
    return {role: token for role, token in roles.items() if token in vocabulary}


def _require(folder: pathlib.Path, known: Family, roles: Mapping[str, str]) -> None:
    if missing := sorted(known.needed - set(roles)):
        tokens = ", ".join(f"{known.roles[role]!r} ({role})" for role in missing)
        raise FormatError(f"the vocabulary in '{folder}' lacks special tokens of the family {known.name}: {tokens}")


def _limit(settings: Mapping[str, Any]) -> int | None:
    limit = settings.get("model_max_length")
    return limit if isinstance(limit, int) and 0 < limit < VERY_LONG else None
