"""The tokenizer of a model directory."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import Any

from plmcore import models
from plmcore._core import ArgumentError, FormatError
from plmcore.files.whole import read_bytes, read_json
from plmcore.models import spelling
from plmcore.runtime.kinds import checked
from plmcore.tokenizers import characters, families, format, guard, library, pieces
from plmcore.tokenizers.families import FAMILIES, ROLES, Family
from plmcore.tokenizers.spelled import SpelledTokenizer
from plmcore.tokenizers.tokenizer import Tokenizer

VERY_LONG = 1_000_000  # a model_max_length above is the published way to say "none"
PIECE_FILES = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "cog-pretrain.model")


@checked
def load_tokenizer(
    folder: str | os.PathLike[str], *, family: str | None = None, language: str | None = None, **changes: Any
) -> Tokenizer:
    """Loads the tokenizer of a directory: a sentencepiece model, tokenizer.json, vocab.txt,
    or vocab.json and merges.txt.

    `family` overrides tokenizer_config.json and config.json. `changes` replace keys of tokenizer_config.json,
    such as do_lower_case=False. `language` is the language code of mBART. side="target" loads the other side
    of a Marian pair.
    """
    folder = pathlib.Path(folder)
    if family is None and (spelled := _spelled(folder)) is not None:
        known, width = spelled
        try:
            words = _load(folder, None, language, changes)
        except FileNotFoundError:  # every word is known by its characters
            words = None
        return SpelledTokenizer(width, known, words)
    return _load(folder, family, language, changes)


def _spelled(folder: pathlib.Path) -> tuple[Family, int] | None:
    """The family of a model that reads the characters of words, and how many of each."""
    config = _optional(folder / "config.json")
    known = FAMILIES.get(str(config.get("model_type", "-")))
    if known is None or not known.spelled:
        return None
    width = config.get(known.spelled, getattr(models.config_class(known.name), known.spelled))
    if type(width) is not int or width < spelling.LEAST:
        raise FormatError(
            f"'{folder / 'config.json'}': {known.spelled} must be at least {spelling.LEAST}, got {width!r}"
        )
    return known, width


def _load(
    folder: pathlib.Path, family: str | None, language: str | None, changes: Mapping[str, Any]
) -> Tokenizer:
    settings = {
        **_optional(folder / "special_tokens_map.json"),
        **_optional(folder / "tokenizer_config.json"),
        **changes,
    }
    known = families.family(family) if family is not None else _family_of(folder, settings)
    files = {file.name: file for file in folder.iterdir() if file.is_file()} if folder.is_dir() else {}

    backend, known = _backend(folder, files, settings, known)
    _add_tokens(backend, folder, settings)
    roles = _roles(settings, known, backend.vocabulary)
    options: dict[str, Any] = dict(
        max_length=_limit(settings),
        padding_side=settings.get("padding_side"),
        language=language or settings.get("src_lang"),
        settings=settings,
    )
    if "tokenizer.json" in files and isinstance(backend, library.Library):
        # languages change it
        own = None if known.languages else format.of_processor(backend.native.post_processor)
        return Tokenizer(backend, known, roles, format=own, **options)
    return dressed(backend, known, roles, folder, **options)


def dressed(
    backend: Any, known: Family, roles: Mapping[str, str], source: object, **options: Any
) -> Tokenizer:
    """A bare vocabulary with the special tokens and formats of a family."""
    roles = {role: token for role, token in roles.items() if token in backend.vocabulary}
    if missing := sorted(known.needed - set(roles)):
        tokens = ", ".join(f"{known.roles[role]!r} ({role})" for role in missing)
        raise FormatError(
            f"the vocabulary in '{source}' lacks special tokens of the family {known.name}: {tokens}"
        )
    _make_special(backend, known, roles)
    tokenizer = Tokenizer(backend, known, roles, **options)
    if isinstance(backend, library.Library):
        _set_processor(tokenizer)
    return tokenizer


def _backend(
    folder: pathlib.Path, files: Mapping[str, pathlib.Path], settings: Mapping[str, Any], known: Family | None
) -> tuple[Any, Family]:
    """The first of the kinds of files that is there, read; and the family, which it may tell."""
    if "source.spm" in files and "vocab.json" in files:
        vocabulary = read_json(files["vocab.json"])
        with guard.reading(files["vocab.json"]):
            vocabulary = library.checked_ids(vocabulary)
            if "<unk>" not in vocabulary:
                raise ValueError("it has no '<unk>'")
        models = {name: read_bytes(files[name]) for name in ("source.spm", "target.spm") if name in files}
        side = f"{settings.get('side', 'source')}.spm"
        if side not in models:
            raise FileNotFoundError(f"'{folder}' has no {side}")
        known = known or families.of_file("source.spm") or FAMILIES[""]
        return pieces.Marian(models, side, folder / side, vocabulary), known
    file = next((files[name] for name in PIECE_FILES if name in files), None)
    if file is not None and (
        "tokenizer.json" not in files or (known is not None and "unigram" in known.kinds)
    ):
        known = known or _family_of_pieces(file)
        return pieces.read(
            read_bytes(file), file, known, settings.get("do_lower_case"), settings.get("extra_ids", 100)
        ), known
    if file := files.get("tokenizer.json"):
        if known is not None and "characters" in known.kinds:
            unknown = library.token_text(settings.get("unk_token")) or known.roles["unk"]
            return characters.read(read_bytes(file), file, unknown), known
        backend = library.read_json(read_bytes(file), file)
        return backend, known or families.of_vocabulary(backend.vocabulary, backend.kind)
    if file := files.get("vocab.txt"):
        known = known or families.of_kind("wordpiece")
        return library.read_wordpiece(read_bytes(file), file, settings, known), known
    if "vocab.json" in files and "merges.txt" in files:
        merges = read_bytes(files["merges.txt"])
        vocabulary = read_json(files["vocab.json"])
        if known is None:
            kind = "bpe" if b"</w>" in merges[:10_000] else "byte-bpe"
            known = families.of_vocabulary(vocabulary, kind)
            known = known if known.name else families.of_kind(kind)
        return library.read_bpe(vocabulary, merges, files["vocab.json"], settings, known), known
    raise FileNotFoundError(
        f"'{folder}' has no tokenizer.json and no vocab.txt, vocab.json with merges.txt, or "
        f"{', '.join(PIECE_FILES)}"
    )


def _family_of_pieces(file: pathlib.Path) -> Family:
    if (by_name := families.of_file(file.name)) is not None:
        return by_name
    processor = pieces.open_model(read_bytes(file), file)
    known = families.of_vocabulary(processor.id_to_piece(list(range(len(processor)))), "unigram")
    if not known.name:
        raise ArgumentError(
            f"'{file}' alone does not tell its family, nor does a config.json beside it: pass family="
        )
    return known


def _make_special(backend: Any, known: Family, roles: Mapping[str, str]) -> None:
    """Special tokens are found in texts."""
    tokens = list(dict.fromkeys([*roles.values(), *(t for t in known.extra if t in backend.vocabulary)]))
    if isinstance(backend, library.Library):
        backend.add_special(tokens, takes_space=roles.get("mask") if known.trims else None)
    else:
        backend.add(tokens, special=True)


def _add_tokens(backend: Any, folder: pathlib.Path, settings: Mapping[str, Any]) -> None:
    """Tokens of added_tokens.json and tokenizer_config.json that the vocabulary lacks,
    in the order of their ids.
    """
    with guard.reading(folder / "added_tokens.json"):
        added: dict[int, tuple[str | None, bool]] = {
            id: (token, False)
            for token, id in library.checked_ids(_optional(folder / "added_tokens.json")).items()
        }
    with guard.reading(folder / "tokenizer_config.json"):
        for id, token in (settings.get("added_tokens_decoder") or {}).items():
            added[int(id)] = library.token_text(token), bool(token.get("special"))
        special = [library.token_text(token) for token in settings.get("additional_special_tokens") or ()]
    for id, (token, is_special) in sorted(added.items()):
        if token and token not in backend.vocabulary:
            backend.add([token], is_special)
            if backend.vocabulary[token] != id:
                raise FormatError(
                    f"'{folder}': the added token {token!r} should have the id {id}, but "
                    f"{backend.vocabulary[token]} comes next"
                )
    if known := [token for token in special if token in backend.vocabulary]:
        backend.add(known, special=True)


def _set_processor(tokenizer: Tokenizer) -> None:
    """What tokenizer.json needs to say for other readers; byte-level families with <s> trim their offsets."""
    from tokenizers import processors

    native: Any = tokenizer.backend.native
    roles: Mapping[str, Any] = tokenizer.roles
    if tokenizer.family.trims:
        native.post_processor = processors.RobertaProcessing(
            (roles["sep"], tokenizer.sep_token_id or 0),
            (roles["cls"], tokenizer.cls_token_id or 0),
            trim_offsets=True,
            add_prefix_space=bool(tokenizer.settings.get("add_prefix_space", False)),
        )
    elif tokenizer.format != format.BARE:
        native.post_processor = format.processor_of(tokenizer.format, tokenizer.token_of)


def _optional(path: pathlib.Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _family_of(folder: pathlib.Path, settings: Mapping[str, Any]) -> Family | None:
    known = FAMILIES.get(settings["family"]) if isinstance(settings.get("family"), str) else None
    if known is None and settings.get("tokenizer_class"):
        known = families.of_class(str(settings["tokenizer_class"]))
    if known is None and (folder / "config.json").is_file():
        known = FAMILIES.get(str(read_json(folder / "config.json").get("model_type", "-")))
    return known


def _roles(settings: Mapping[str, Any], known: Family, vocabulary: Mapping[str, int]) -> dict[str, str]:
    """The special tokens that the settings name, else those of the family, as far as they are there."""
    named = {role: library.token_text(settings.get(f"{role}_token")) for role in ROLES}
    roles = {**known.roles, **{role: token for role, token in named.items() if token is not None}}
    return {role: token for role, token in roles.items() if token in vocabulary}


def _limit(settings: Mapping[str, Any]) -> int | None:
    limit = settings.get("model_max_length")
    return limit if type(limit) is int and 0 < limit < VERY_LONG else None
