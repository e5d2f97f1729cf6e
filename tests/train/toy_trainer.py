"""A trainer without a tape and without a model class: how often each byte follows another, counted by threads
over random places of a text. A Run trains it as it trains every other.
"""

import concurrent.futures
import hashlib
import pathlib

import numpy as np
from plmcore.files.whole import atomic_directory
from plmcore.formats import safetensors
from plmcore.runtime import draws
from plmcore.train.run import Run
from plmcore.train.training import Training

THREADS = 2


class Counts(Training):
    """Its model: counts float32 [256, 256], which each step changes in place."""

    REMEMBERED = {"seen": int}

    def __init__(self, text: bytes, batch: int, **options):
        super().__init__(data=hashlib.sha256(text).hexdigest(), **options)
        self.text, self.batch = np.frombuffer(text, np.uint8), batch
        self.model = np.ones((256, 256), np.float32)
        self.seen = 0

    def compute(self):
        places = draws.below(len(self.text) - 1, self.seed, self.step, np.arange(self.batch))
        a, b = self.text[places], self.text[places + 1]
        loss = -np.log(self.model[a, b] / self.model[a].sum(-1)).mean()

        def add(part):  # rows of its own for each thread
            own = a % THREADS == part
            np.add.at(self.model, (a[own], b[own]), 1)

        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(add, range(THREADS)))
        self.seen += len(np.unique(places))
        return {"loss": float(loss), "rows": int((self.model.sum(-1) > 256).sum()), "tokens": self.batch}

    def tensors(self):
        return {"weights": {"counts": self.model}}

    def load(self, parts):
        counts = parts["weights"]["counts"].numpy()
        if counts.shape != self.model.shape:
            raise ValueError(f"counts must be {list(self.model.shape)}, got {list(counts.shape)}")
        self.model[:] = counts


class Counting(Run):
    def defaults(self, stored):
        return {"data": {"text": "", "batch": 32}, "train": {"steps": 40}}

    def training(self):
        self.record_settings()
        text = pathlib.Path(self.settings["data"]["text"]).read_bytes()
        evaluate = lambda counts: {"loss": float(-np.log(counts / counts.sum(-1, keepdims=True)).mean())}
        return Counts(text, self.settings["data"]["batch"], **self.options(evaluate=evaluate))

    def announcement(self, training):
        return f"pairs of bytes; {len(training.text)} bytes of text"

    @property
    def title(self):
        return "pairs of bytes"

    def facts(self, training):
        return {"pairs": f"{np.count_nonzero(training.model > 1):,}"}

    def finish(self, training):
        with atomic_directory(self.directory.final) as folder:
            safetensors.write(folder / "counts.safetensors", {"counts": training.model})


def count(out, text=None, *, steps=None, save_every=None, **options):
    given = {"data": {"text": text and str(text)}, "train": {"steps": steps, "save_every": save_every}}
    return Counting(out, given, quiet=True, **options)()
