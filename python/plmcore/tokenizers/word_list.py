"""Vocabularies of fastai: a pickled list of words, whose places are their ids."""

from __future__ import annotations

import os

from plmcore._core import FormatError
from plmcore.files.whole import read_bytes
from plmcore.formats import torch_pickle
from plmcore.tokenizers import families, library
from plmcore.tokenizers.loading import dressed
from plmcore.tokenizers.tokenizer import Tokenizer

FILLER = "xxfake"  # makes the number of words a multiple of 8
OLD = dict(unk="_unk_", pad="_pad_")  # before fastai 1


def read_words(path: str | os.PathLike[str], family: str) -> Tokenizer:
    """The list is read as data: nothing of the pickle is run. Texts are split as the family does."""
    data = read_bytes(path)
    try:
        value, end = torch_pickle.load(data)
    except FormatError as e:
        raise FormatError(f"'{os.fspath(path)}' is no pickled list of words: {e}") from None
    if isinstance(value, tuple):
        value = list(value)
    if not isinstance(value, list) or not value or end != len(data):
        what = f"a {type(value).__name__}" if value else "nothing"
        raise FormatError(f"'{os.fspath(path)}' must hold a list of words and nothing else, got {what}")
    ids: dict[str, int] = {}
    for i, word in enumerate(value):
        if not isinstance(word, str):
            raise FormatError(f"'{os.fspath(path)}': word {i} must be a text, got a {type(word).__name__}")
        name = f"{FILLER}{i}" if word == FILLER else word
        if name in ids:
            raise FormatError(f"'{os.fspath(path)}' has the word {word!r} twice, as {ids[name]} and as {i}")
        ids[name] = i
    old = OLD["unk"] in ids
    known = families.family("words" if old else family)
    roles = OLD if old else known.roles
    return dressed(library.words(ids, unknown=roles["unk"], split=True), known, roles, path)
