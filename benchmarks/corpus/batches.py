"""Random batches from a large corpus: `batches.py MEGABYTES STEPS WORKERS`.

Prints as JSON how long opening took, batches per second and the most memory that was resident.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import pathlib
import sys
import tempfile
import time

import numpy as np
from plmcore.data import Batches, Corpus, manifest, mapped
from plmcore.runtime import draws

VOCABULARY, DOCUMENT, SENTENCE = 50_000, 1000, 25


class Windows:
    """Rows of 512 tokens and the token behind each: what a causal model trains on."""

    length = 512

    def __init__(self, corpus: Corpus):
        self.ids = corpus.ids

    def __len__(self) -> int:
        return (len(self.ids) - 1) // self.length

    def batch(self, indices: np.ndarray, *, seed: int, epoch: int) -> dict[str, np.ndarray]:
        rows = self.ids[indices[:, None] * self.length + np.arange(self.length + 1)].astype(np.int64)
        return {"input_ids": rows[:, :-1], "labels": rows[:, 1:]}


def make(folder: pathlib.Path, megabytes: int) -> None:
    """A corpus of random ids, written block by block."""
    tokens = megabytes * 500_000 // DOCUMENT * DOCUMENT
    steps = {
        manifest.SENTENCES: SENTENCE,
        manifest.DOCUMENTS: DOCUMENT,
        manifest.DOCUMENT_SENTENCES: DOCUMENT // SENTENCE,
    }
    files = {}

    def write(name: str, count: int, values) -> None:
        sums = manifest.Checksums()
        with open(folder / name, "wb") as f:
            for begin in range(0, count, 1 << 20):
                data = values(np.arange(begin, min(begin + (1 << 20), count))).tobytes()
                sums.update(data)
                f.write(data)
        files[name] = sums.entry()

    write(manifest.IDS, tokens, lambda at: draws.below(VOCABULARY, 1, at).astype(np.uint16))
    for name, step in steps.items():
        count = tokens // (SENTENCE if name == manifest.SENTENCES else DOCUMENT) + 1
        write(name, count, lambda at, step=step: at * step)
    content = manifest.describe(VOCABULARY, {}, {}, files)
    (folder / manifest.FILE).write_text(json.dumps(content))


def main(megabytes: int, steps: int, workers: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder, megabytes))
        maker.start()  # apart, since the memory of this process is what is measured
        maker.join()
        before = mapped.peak() / 1e6
        start = time.perf_counter()
        corpus = Corpus.open(folder)
        opened = time.perf_counter() - start
        batches = Batches(Windows(corpus), 64, seed=1)
        start = time.perf_counter()
        for batch in itertools.islice(batches.stream(1000, workers=workers), steps):
            batch["labels"].sum()
        rate = steps / (time.perf_counter() - start)
        found = {
            "megabytes": megabytes,
            "opened": opened,
            "rate": rate,
            "resident": mapped.peak() / 1e6,
            "before": before,
        }
        print(json.dumps(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
