"""Blocks of text to ids: what the workers of write_corpus do."""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, cast

import numpy as np

from plmcore._core import text as native
from plmcore.data import readers, sentences
from plmcore.data.blocks import Block
from plmcore.data.manifest import id_dtype
from plmcore.files.text import BOM, decode, is_blank, whole

CHARACTERS = 1 << 18  # of one call of the tokenizer, whose results take a hundred times the space of the ids
AHEAD = 4  # calls for each thread that are ready while the oldest block is waited for

_BLANK = re.compile(r"\n(?:[ \t\r\f\v]*\n)+")


class Encoded(NamedTuple):
    """Ids of whole sentences, in order.

    `documents` may begin with 0: nothing of the document that goes on from the block before.
    """

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
        counts, calls = self._cut(block)
        return self._joined(block.continues, counts, [self._encode(texts) for texts in calls])

    def in_threads(self, blocks: Iterable[Block], count: int) -> Iterator[Encoded]:
        """The same of every block, in order.

        This thread cuts blocks into texts while `count` others encode them.
        """
        waiting: deque[tuple[bool, list[int], list[Future[Any]]]] = deque()
        threads = ThreadPoolExecutor(count, thread_name_prefix="encoding")
        try:
            for block in blocks:
                counts, calls = self._cut(block)
                waiting.append(
                    (block.continues, counts, [threads.submit(self._encode, texts) for texts in calls])
                )
                while sum(len(futures) for _, _, futures in waiting) - len(waiting[0][2]) >= AHEAD * count:
                    continues, counts, futures = waiting.popleft()
                    yield self._joined(continues, counts, [future.result() for future in futures])
            for continues, counts, futures in waiting:
                yield self._joined(continues, counts, [future.result() for future in futures])
        finally:
            threads.shutdown(cancel_futures=True)

    def _cut(self, block: Block) -> tuple[list[int], list[list[str]]]:
        """The number of sentences of each document, and all sentences in lists for one call
        of the tokenizer each.
        """
        counts: list[int] = []
        calls: list[list[str]] = [[]]
        size = 0
        for document in self.texts(block):
            found = self.split(document)
            counts.append(len(found))
            # a long document takes several calls
            step = max(1, len(found) * CHARACTERS // max(1, len(document)))
            for begin in range(0, len(found), step):
                if size >= CHARACTERS:
                    calls.append([])
                    size = 0
                calls[-1] += found[begin : begin + step]
                size += len(document) * min(step, len(found) - begin) // len(found)
        return counts, calls

    def _encode(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids on end, and how many of each text."""
        size = self.tokenizer.vocab_size
        if hasattr(self.tokenizer, "encode_flat"):
            ids, lengths = self.tokenizer.encode_flat(texts)
            rows = [ids]
        else:
            rows = self.tokenizer.encode_ids(texts)
            lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        joined = np.empty(int(lengths.sum()), id_dtype(size))
        native.join(rows, size, joined)
        return joined, lengths

    def _joined(
        self, continues: bool, counts: list[int], parts: list[tuple[np.ndarray, np.ndarray]]
    ) -> Encoded:
        tokens = np.concatenate([lengths for _, lengths in parts])
        ends = np.concatenate([[0], np.cumsum(tokens > 0)])[
            np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        ]
        return Encoded(
            np.concatenate([ids for ids, _ in parts]),
            tokens[tokens > 0].astype(np.int32),
            np.diff(ends).astype(np.int32),
            continues,
        )

    def texts(self, block: Block) -> Iterator[str]:
        """The documents of a block."""
        if block.kind == "records":
            yield from cast(list[str], block.data)
            return
        data = cast(bytes, block.data)
        if self.documents == "blank" and block.kind == "text" and b"\r" not in data:
            try:
                yield from native.documents(
                    data.removeprefix(BOM) if block.at == 0 else data, block.continues
                )
                return
            except UnicodeDecodeError:
                pass  # what follows says where, or replaces it
        text = decode(data, self.errors, block.path, block.line, block.at)
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
