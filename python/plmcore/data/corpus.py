from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError, IndexRangeError
from plmcore.data import manifest, mapped


class Corpus:
    """A tokenised corpus: ids without special tokens, and where its sentences and documents begin.

    ids: uint16 or uint32 [tokens]
    sentences: int64 [sentences + 1]; sentence i is ids[sentences[i]:sentences[i + 1]]
    documents: int64 [documents + 1]; the same for documents, which end where sentences end
    document_sentences: int64 [documents + 1]; document i has the sentences document_sentences[i] up to
        document_sentences[i + 1]

    No document and no sentence is empty. Arrays of an opened corpus are mapped, not loaded.
    """

    def __init__(
        self,
        ids: np.ndarray,
        sentences: np.ndarray,
        documents: np.ndarray,
        document_sentences: np.ndarray,
        content: dict[str, Any],
        path: pathlib.Path | None = None,
    ):
        self.ids, self.sentences, self.documents, self.document_sentences = (
            ids,
            sentences,
            documents,
            document_sentences,
        )
        self.path = path
        self.vocab_size: int = content["vocab_size"]
        self.tokenizer: dict[str, Any] = content["tokenizer"]
        self.source: dict[str, Any] = content["source"]
        self.fingerprint: str = content["fingerprint"]

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = True) -> Corpus:
        """A corpus directory. verify=True reads it once, about a second for a gigabyte, and checks it block
        by block; without it only sizes are checked.
        """
        folder = pathlib.Path(path)
        content = manifest.read(folder)
        if verify:
            manifest.verify(folder, content)
        arrays: list[Any] = [mapped.array(folder / manifest.IDS, np.dtype(content["dtype"]))]
        for name in (manifest.SENTENCES, manifest.DOCUMENTS, manifest.DOCUMENT_SENTENCES):
            arrays.append(mapped.array(folder / name, manifest.OFFSETS))
        ids, sentences, documents, firsts = arrays
        return cls(ids, sentences, documents, firsts, content, folder)

    @classmethod
    def from_ids(
        cls,
        documents: Sequence[Sequence[int] | np.ndarray],
        vocab_size: int,
        sentences: Sequence[Sequence[int]] | None = None,
        tokenizer: dict[str, Any] | None = None,
    ) -> Corpus:
        """A corpus in memory.

        `sentences` has the lengths of each document's sentences; without it a document is one sentence.
        """
        arrays = [np.asarray(d) for d in documents]
        if sentences is None:
            sentences = [[len(d)] for d in arrays]
        if len(sentences) != len(arrays):
            raise ArgumentError(
                f"{len(arrays)} documents need as many lists of sentence lengths, got {len(sentences)}"
            )
        for i, (ids, lengths) in enumerate(zip(arrays, sentences)):
            if ids.ndim != 1 or len(ids) == 0 or ids.dtype.kind not in "iu":
                raise ArgumentError(
                    f"document {i} must be a list of at least one id, got {ids.dtype} {list(ids.shape)}"
                )
            if ids.min() < 0 or ids.max() >= vocab_size:
                raise ArgumentError(
                    f"document {i} has ids from {ids.min()} to {ids.max()}; vocab_size is {vocab_size}"
                )
            if min(lengths, default=0) < 1 or sum(lengths) != len(ids):
                raise ArgumentError(
                    f"the sentences of document {i} must have {len(ids)} ids in all, got {list(lengths)}"
                )
        dtype = manifest.id_dtype(vocab_size)
        values: dict[str, Any] = {
            manifest.IDS: np.concatenate([np.empty(0, dtype), *(ids.astype(dtype) for ids in arrays)]),
            manifest.SENTENCES: _ends([n for lengths in sentences for n in lengths]),
            manifest.DOCUMENTS: _ends([len(ids) for ids in arrays]),
            manifest.DOCUMENT_SENTENCES: _ends([len(lengths) for lengths in sentences]),
        }
        files = {}
        for name, value in values.items():
            sums = manifest.Checksums()
            sums.update(value.tobytes())
            files[name] = sums.entry()
        ids, *ends = values.values()
        content = manifest.describe(vocab_size, tokenizer or {}, {}, files)
        return cls(ids, ends[0], ends[1], ends[2], content)

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.documents) - 1

    def __getitem__(self, i: int) -> np.ndarray:
        """The ids of document i."""
        if not 0 <= i < len(self):
            raise IndexRangeError(f"a corpus of {len(self)} documents has no document {i}")
        return self.ids[self.documents[i] : self.documents[i + 1]]

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else f"'{self.path}'"
        counts = f"{len(self.ids):,} tokens, {len(self.sentences) - 1:,} sentences, {len(self):,} documents"
        return f"Corpus({where}: {counts}, vocabulary {self.vocab_size:,})"

    def __reduce__(self) -> Any:
        if self.path is not None:
            return _reopen, (str(self.path), self.fingerprint)
        return super().__reduce__()


def _reopen(path: str, fingerprint: str) -> Corpus:
    corpus = Corpus.open(path, verify=False)
    if corpus.fingerprint != fingerprint:
        raise ArgumentError(
            f"the corpus '{path}' has changed: it had the fingerprint {fingerprint}, now {corpus.fingerprint}"
        )
    return corpus


def _ends(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(manifest.OFFSETS)
