"""One side of the contest: `worker.py LIBRARY CORES`. Answers the commands below."""

from __future__ import annotations

import os
import pathlib
import resource
import shutil
import sys
import time
import zlib

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import contest
from plmcore.data import Corpus, read_text, sentences, write_corpus
from plmcore.tokenizers import load_tokenizer

# Characters of one call of the library: large enough for its threads, small enough for memory.
CHUNK = 4 << 20


class Library:
    """The tokenizer library with ready texts in memory and its own threads; its results are thrown away."""

    def load(self, text: str, tokenizer: str, family: str, cut: str) -> None:
        backend = load_tokenizer(tokenizer, family=family).backend
        self.chunks, size = [[]], 0
        for document in read_text(text):
            self.chunks[-1] += [document] if cut == "document" else sentences.split(document)
            size += len(document)
            if size >= CHUNK:
                self.chunks.append([])
                size = 0
        if hasattr(backend, "native"):
            self.forms = [lambda texts: backend.native.encode_batch_fast(texts, add_special_tokens=False)]
        else:
            kinds = ({}, {"return_type": "numpy"})
            self.forms = [
                lambda texts, kind=kind: backend.processor.encode(texts, num_threads=CORES, **kind)
                for kind in kinds
            ]

    def time(self, form: int = 0) -> float:
        start = time.perf_counter()
        for texts in self.chunks:
            self.forms[form](texts)
        return time.perf_counter() - start

    def checksum(self) -> tuple[int, int]:
        """And puts the quickest form first."""
        taken = [min(self.time(k), self.time(k)) for k in range(len(self.forms))]
        self.forms = [self.forms[int(np.argmin(taken))]]
        number, found = 0, 0
        for row in (row for texts in self.chunks for row in self.forms[0](texts)):
            ids = np.asarray(getattr(row, "ids", row), np.uint32)
            number, found = number + len(ids), zlib.crc32(ids, found)
        return number, found


class Plmcore:
    """Files to a corpus on disk, with everything that belongs to it."""

    def load(self, text: str, tokenizer: str, family: str, cut: str) -> None:
        self.text, self.tokenizer, self.cut = text, load_tokenizer(tokenizer, family=family), cut
        self.out = pathlib.Path(text).with_name(f"{family}-{cut}")

    def time(self) -> float:
        shutil.rmtree(self.out, ignore_errors=True)
        start = time.perf_counter()
        write_corpus(self.out, self.text, self.tokenizer, sentences=self.cut, workers=CORES)
        return time.perf_counter() - start

    def checksum(self) -> tuple[int, int]:
        self.time()
        ids = Corpus.open(self.out).ids
        found = 0
        for begin in range(0, len(ids), 1 << 20):
            found = zlib.crc32(ids[begin : begin + (1 << 20)].astype(np.uint32), found)
        return len(ids), found


def memory() -> float:
    """The most that this process and the largest of its workers ever had, in megabytes."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(resource.getrusage(who).ru_maxrss for who in kinds) * 1024 / 1e6


def cpu() -> float:
    """Seconds that this process and its workers have computed; other programs beside them do not count."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def timed() -> tuple[float, float]:
    before = cpu()
    return side.time(), cpu() - before


if __name__ == "__main__":
    CORES = int(sys.argv[2])
    os.environ["RAYON_NUM_THREADS"] = str(CORES)
    side = Library() if sys.argv[1] == "library" else Plmcore()
    contest.serve({"load": side.load, "time": timed, "checksum": side.checksum, "memory": memory})
