"""One side of the contest: `worker.py LIBRARY CORES`. Answers the commands below."""

from __future__ import annotations

import os
import pathlib
import resource
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import contest
from plmcore.data import Corpus, read_text, sentences, write_corpus
from plmcore.tokenizers import load_tokenizer

CHUNK = 4 << 20  # characters of one call of the library: large enough for its threads, small enough for memory


class Library:
    """The tokenizer library with ready texts in memory and its own threads; its results are thrown away."""

    def load(self, text: str, tokenizer: str, family: str, cut: str) -> None:
        self.tokenizer = load_tokenizer(tokenizer, family=family)
        self.chunks, size = [[]], 0
        for document in read_text(text):
            self.chunks[-1] += [document] if cut == "document" else sentences.split(document)
            size += len(document)
            if size >= CHUNK:
                self.chunks.append([])
                size = 0

    def run(self, texts: list[str]) -> object:
        backend = self.tokenizer.backend
        if hasattr(backend, "native"):
            return backend.native.encode_batch_fast(texts, add_special_tokens=False)
        return backend.processor.encode(texts, num_threads=CORES)

    def time(self) -> float:
        start = time.perf_counter()
        for texts in self.chunks:
            self.run(texts)
        return time.perf_counter() - start

    def tokens(self) -> int:
        return sum(len(ids) for texts in self.chunks for ids in self.tokenizer.encode_ids(texts))

    def memory(self) -> dict[str, float]:
        return {}


class Plmcore:
    """Files to a corpus on disk, with everything that belongs to it."""

    def load(self, text: str, tokenizer: str, family: str, cut: str) -> None:
        self.text, self.tokenizer, self.cut = text, load_tokenizer(tokenizer, family=family), cut
        self.folder = pathlib.Path(tempfile.mkdtemp())

    def time(self) -> float:
        start = time.perf_counter()
        out = self.folder / "corpus"
        write_corpus(out, self.text, self.tokenizer, sentences=self.cut, workers=CORES, overwrite=True)
        return time.perf_counter() - start

    def tokens(self) -> int:
        self.time()
        tokens = len(Corpus.open(self.folder / "corpus").ids)
        shutil.rmtree(self.folder)
        return tokens

    def memory(self) -> dict[str, float]:
        """The most that this process and the largest of its workers ever had, in megabytes."""
        kinds = {"parent": resource.RUSAGE_SELF, "worker": resource.RUSAGE_CHILDREN}
        return {name: resource.getrusage(who).ru_maxrss * 1024 / 1e6 for name, who in kinds.items()}


def cpu() -> float:
    """Seconds that this process and its workers have computed: of use where other programs run beside them."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def timed() -> tuple[float, float]:
    before = cpu()
    return side.time(), cpu() - before


if __name__ == "__main__":
    CORES = int(sys.argv[2])
    os.environ["RAYON_NUM_THREADS"] = str(CORES)
    side = Library() if sys.argv[1] == "library" else Plmcore()
    contest.serve({"load": side.load, "time": timed, "tokens": side.tokens, "memory": side.memory})
