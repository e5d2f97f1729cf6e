"""Vocabularies of fairseq: dict.txt, a token and how often it was seen on each line."""

from __future__ import annotations

import os
import pathlib

from plmcore._core import FormatError
from plmcore.files.whole import read_bytes
from plmcore.tokenizers import families, guard, library
from plmcore.tokenizers.loading import dressed
from plmcore.tokenizers.tokenizer import Tokenizer

FIRST = ("<s>", "<pad>", "</s>", "<unk>")  # before the tokens of the file, unless it has BERT's


def read_dictionary(path: str | os.PathLike[str], pieces: str) -> Tokenizer:
    """One that holds [PAD] is a vocabulary of WordPiece, its line the id, read as the family `pieces` does;
    any other one of words between spaces, behind four tokens that fairseq adds.
    """
    path = pathlib.Path(path)
    with guard.reading(path):
        text = read_bytes(path).decode("utf-8")
    tokens = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        token, _, count = line.rstrip("\r").rpartition(" ")
        if not token or not count.isdecimal():
            raise FormatError(f"'{path}', line {number}: it must be a token and its count, got {line[:60]!r}")
        tokens.append(token)
    of_pieces = "[PAD]" in tokens
    tokens = tokens if of_pieces else [*FIRST, *tokens]
    ids = {token: i for i, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        twice = next(token for i, token in enumerate(tokens) if ids[token] != i)
        raise FormatError(f"'{path}' has the token {twice!r} more than once")
    known = families.family(pieces if of_pieces else "transformer")
    backend = library.wordpiece(ids) if of_pieces else library.words(ids)
    return dressed(backend, known, known.roles, path)
