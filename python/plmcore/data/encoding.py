"""A block of text to ids: what each worker of write_corpus does."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from plmcore._core import text as native
from plmcore.data import readers, sentences
from plmcore.data.blocks import Block
from plmcore.data.manifest import id_dtype
from plmcore.text_files import decode, is_blank, whole

CHARACTERS = 1 << 18  # of one call of the tokenizer, whose results take a hundred times the space of the ids

_BLANK = re.compile(r"\n(?:[ \t\r\f\v]*\n)+")


class Encoded(NamedTuple):
    """Ids of whole sentences, in order. `documents` may begin with 0: nothing of the document that goes on from the block before."""

    ids: np.ndarray  # uint16 or uint32
    sentences: np.ndarray  # int32: tokens of each
    documents: np.ndarray  # int32: sentences of each
    continues: bool


@dataclasses.dataclass
class Encoder:
    tokenizer: Any
    documents: str = "blank"
    sentences: str = "rule"
    unwrap: bool = False
    field: str = "text"
    errors: str = "strict"

    def __call__(self, block: Block) -> Encoded:
        counts: list[int] = []  # sentences of each document
        lengths: list[np.ndarray] = []
        ids: list[np.ndarray] = []
        waiting: list[str] = []
        size = 0
        for document in self.texts(block):
            found = self.split(document)
            counts.append(len(found))
            waiting += found
            size += len(document)
            if size >= CHARACTERS:
                self._encode(waiting, size, ids, lengths)
                waiting, size = [], 0
        self._encode(waiting, size, ids, lengths)
        tokens = np.concatenate([np.empty(0, np.int32), *lengths])
        ends = np.concatenate([[0], np.cumsum(tokens > 0)])[np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])]
        dtype = id_dtype(self.tokenizer.vocab_size)
        return Encoded(
            np.concatenate([np.empty(0, dtype), *ids], dtype=dtype, casting="unsafe"),
            tokens[tokens > 0],
            np.diff(ends).astype(np.int32),
            block.continues,
        )

    def texts(self, block: Block) -> Iterator[str]:
        """The documents of a block."""
        if block.kind == "records":
            yield from block.data
            return
        text = decode(block.data, self.errors, block.path, block.line, block.at)
        if "\r" in text:
            text = text.replace("\r\n", "\n")
        if block.kind == "jsonl":
            for number, line in enumerate(text.split("\n"), block.line):
                if not is_blank(line):
                    record = readers.json_object(line, block.path, number)
                    found = readers.text_field(record, self.field, block.path, f"line {number}")
                    yield whole(found, self.errors, block.path, f"line {number}")
        elif self.documents == "line":
            yield from (line for line in text.split("\n") if not is_blank(line))
        elif self.documents == "file":
            yield text if block.continues else text.lstrip("\n")
        else:
            for k, document in enumerate(_BLANK.split((text if block.continues else "\n" + text) + "\n")):
                yield document.rstrip("\n") if k == 0 and block.continues else document.strip("\n")

    def split(self, document: str) -> list[str]:
        if self.sentences == "lines":
            found = sentences.split_lines(document)
            return [s.replace("\n", " ") for s in found] if self.unwrap else found
        if self.unwrap:
            document = document.replace("\n", " ")
        return [document] if self.sentences == "document" else sentences.split(document)

    def _encode(self, texts: list[str], size: int, ids: list[np.ndarray], lengths: list[np.ndarray]) -> None:
        dtype = id_dtype(self.tokenizer.vocab_size)
        step = max(1, len(texts) * CHARACTERS // max(1, size))  # a long document takes several calls
        for begin in range(0, len(texts), step):
            found = self.tokenizer.encode_ids(texts[begin : begin + step])
            lengths.append(np.fromiter(map(len, found), np.int32, len(found)))
            ids.append(np.empty(int(lengths[-1].sum(dtype=np.int64)), dtype))
            native.join(found, self.tokenizer.vocab_size, ids[-1])
