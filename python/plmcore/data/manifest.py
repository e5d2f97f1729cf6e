"""corpus.json: what a corpus directory holds, with a checksum for every block of its files."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from plmcore._core import ArgumentError, FormatError
from plmcore.data import mapped
from plmcore.files.whole import open_regular, read_json

FILE = "corpus.json"
VERSION = 1
BLOCK = 4 << 20  # bytes under one checksum
IDS, SENTENCES, DOCUMENTS, DOCUMENT_SENTENCES = (
    "ids.bin",
    "sentences.bin",
    "documents.bin",
    "document_sentences.bin",
)
OFFSETS = np.dtype("<i8")


class Checksums:
    """CRC-32 of each BLOCK bytes of a file that is written piece by piece."""

    def __init__(self) -> None:
        self.bytes = 0
        self._whole: list[int] = []
        self._part = 0

    def update(self, data: bytes | memoryview) -> None:
        data = memoryview(data).cast("B")
        while len(data):
            piece = data[: BLOCK - self.bytes % BLOCK]
            self._part = zlib.crc32(piece, self._part)
            self.bytes += len(piece)
            if self.bytes % BLOCK == 0:
                self._whole.append(self._part)
                self._part = 0
            data = data[len(piece) :]

    def entry(self) -> dict[str, Any]:
        return {"bytes": self.bytes, "crc32": self._whole + ([self._part] if self.bytes % BLOCK else [])}


def id_dtype(vocab_size: int) -> np.dtype:
    """The smallest of uint16 and uint32 that holds every id."""
    if not 1 <= vocab_size <= 2**32:
        raise ArgumentError(f"a vocabulary has 1 to 2**32 entries, got {vocab_size}")
    return np.dtype("<u2" if vocab_size <= 2**16 else "<u4")


def describe(
    vocab_size: int, tokenizer: dict[str, Any], source: dict[str, Any], files: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The content of corpus.json, from the entries of its files."""
    dtype = id_dtype(vocab_size)
    content = {
        "format": "plmcore corpus",
        "version": VERSION,
        "dtype": dtype.name,
        "vocab_size": vocab_size,
        "tokens": files[IDS]["bytes"] // dtype.itemsize,
        "sentences": files[SENTENCES]["bytes"] // OFFSETS.itemsize - 1,
        "documents": files[DOCUMENTS]["bytes"] // OFFSETS.itemsize - 1,
        "block_bytes": BLOCK,
        "files": files,
    }
    fingerprint = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return {**content, "fingerprint": fingerprint, "tokenizer": tokenizer, "source": source}


def read(folder: pathlib.Path) -> dict[str, Any]:
    """corpus.json, checked against itself and against the sizes of the files."""
    path = folder / FILE
    content = read_json(path, "; is it a corpus, and was its writing finished?")
    if content.get("format") != "plmcore corpus":
        raise FormatError(f"'{path}' cannot be read: it does not describe a corpus")
    if content.get("version") != VERSION:
        raise FormatError(
            f"'{path}' has version {content.get('version')!r}; this plmcore reads version {VERSION}"
        )
    try:
        expected = describe(content["vocab_size"], content["tokenizer"], content["source"], content["files"])
        differing = [key for key, value in expected.items() if content.get(key) != value]
        sizes = {
            name: content["files"][name]["bytes"] for name in (IDS, SENTENCES, DOCUMENTS, DOCUMENT_SENTENCES)
        }
        blocks = {name: len(content["files"][name]["crc32"]) for name in sizes}
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise FormatError(
            f"'{path}' cannot be read: it is incomplete or damaged ({type(e).__name__}: {e})"
        ) from None
    for key in ("tokenizer", "source"):
        if not isinstance(content[key], dict):
            raise FormatError(f"'{path}' is damaged: {key!r} must be an object, got {content[key]!r}")
    if not isinstance(content["tokenizer"].get("fingerprint", ""), str):
        raise FormatError(f"'{path}' is damaged: the tokenizer's fingerprint must be a text")
    if differing:
        raise FormatError(f"'{path}' is damaged: {differing[0]!r} does not agree with the rest of it")
    if sizes[DOCUMENTS] != sizes[DOCUMENT_SENTENCES]:
        raise FormatError(
            f"'{path}' is damaged: {DOCUMENTS} and {DOCUMENT_SENTENCES} must have the same size"
        )
    for name, size in sizes.items():
        found = os.path.getsize(folder / name) if (folder / name).exists() else None
        if found != size:
            what = "is missing" if found is None else f"has {found} bytes"
            raise FormatError(f"'{folder / name}' {what}, and {FILE} says {size}: was everything copied?")
        if blocks[name] != -(-size // BLOCK):
            raise FormatError(
                f"'{path}' is damaged: {name} needs {-(-size // BLOCK)} checksums, got {blocks[name]}"
            )
    return content


def verify(folder: pathlib.Path, content: dict[str, Any]) -> None:
    """Reads every block: its checksum must be right, ids below vocab_size,
    boundaries rising from 0 to the end.
    """
    tokens, sentences = content["tokens"], content["sentences"]
    dtype = np.dtype(content["dtype"])
    for at, block in _blocks(folder / IDS, content["files"][IDS]["crc32"]):
        ids = np.frombuffer(block, dtype)
        if ids.max() >= content["vocab_size"]:
            i = at // dtype.itemsize + int(ids.argmax())
            raise FormatError(
                f"'{folder / IDS}' has id {ids.max()} at token {i}; vocab_size is {content['vocab_size']}"
            )
    for name, end in ((SENTENCES, tokens), (DOCUMENTS, tokens), (DOCUMENT_SENTENCES, sentences)):
        last = -1
        for at, block in _blocks(folder / name, content["files"][name]["crc32"]):
            offsets = np.frombuffer(block, OFFSETS)
            if (at == 0 and offsets[0] != 0) or offsets[0] <= last or (np.diff(offsets) <= 0).any():
                raise FormatError(f"'{folder / name}' must rise from 0, and does not from byte {at} on")
            last = int(offsets[-1])
        if last != end:
            raise FormatError(f"'{folder / name}' must end with {end}, got {last}")
    _verify_documents(folder)


def _verify_documents(folder: pathlib.Path) -> None:
    ends, documents, last = (
        mapped.array(folder / name, OFFSETS) for name in (SENTENCES, DOCUMENTS, DOCUMENT_SENTENCES)
    )
    some = 1024  # each may bring 64 KiB of sentences into memory
    for at in range(0, len(documents), some):
        differing = np.flatnonzero(ends[last[at : at + some]] != documents[at : at + some])
        if len(differing):
            k = at + int(differing[0])
            raise FormatError(
                f"'{folder}' is damaged: document {k - 1} ends at token {documents[k]} by {DOCUMENTS}, "
                f"and its last sentence ends at token {ends[last[k]]}"
            )
        mapped.trim()


def _blocks(path: pathlib.Path, sums: list[int]) -> Iterator[tuple[int, bytes]]:
    with open_regular(path) as f:
        for k, expected in enumerate(sums):
            block = f.read(BLOCK)
            if zlib.crc32(block) != expected:
                raise FormatError(
                    f"'{path}' is damaged between bytes {k * BLOCK} and {k * BLOCK + len(block)}: "
                    f"its checksum is {zlib.crc32(block)}, expected {expected}"
                )
            yield k * BLOCK, block
