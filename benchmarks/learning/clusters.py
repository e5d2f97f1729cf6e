"""The adaptive softmax beside the full one: a small Transformer-XL on the words of WikiText-2, sorted by
frequency, and the perplexity of its validation text.
"""

from __future__ import annotations

import gzip
import math
import pathlib
from collections import Counter

import numpy as np
import plmcore as plm
from markov import States
from plmcore import criteria, data, models, objectives, optim, train
from plmcore.train import batching, schedules

SIZE = 10_000  # words, the last for all others
CUTOFFS = {"adaptive": (2_000, 5_000), "full": ()}
WIDTH, LENGTH, BATCH, STEPS, LR = 128, 65, 16, 400, 2e-3


class Words(States):
    """A tokenizer of words, the most frequent first; the last stands for all others."""

    def __init__(self, text: str, size: int):
        super().__init__("gpt2", size)
        common = Counter(text.split()).most_common(size - 1)
        self.words = {word: self.first + i for i, (word, _) in enumerate(common)}

    def __call__(self, text: str) -> np.ndarray:
        return np.array([self.words.get(word, self.vocab_size - 1) for word in text.split()])


def texts(source: pathlib.Path) -> tuple[str, str]:
    """To learn from and to be tested on."""
    packed = (source / "wikitext-2" / "train.recovered.txt.gz").read_bytes()
    return gzip.decompress(packed).decode(), (source / "wikitext-2" / "valid.txt").read_text()


def batches(words: Words, text: str, seed: int, shuffle: bool = True) -> data.Batches:
    corpus = data.Corpus.from_ids([words(text)], words.vocab_size)
    objective = objectives.make("causal-lm", corpus, words, length=LENGTH)
    return data.Batches(objective, BATCH, seed=seed, shuffle=shuffle)


def perplexity(text: str, held_out: str, cutoffs: tuple[int, ...], seed: int, size: int, steps: int) -> float:
    words = Words(text, size)
    plm.seed(seed)
    config = models.config_from_dict(
        dict(
            model_type="transfo-xl",
            vocab_size=words.vocab_size,
            cutoffs=list(cutoffs),
            div_val=1,
            d_model=WIDTH,
            d_embed=WIDTH,
            n_head=4,
            d_head=WIDTH // 4,
            d_inner=4 * WIDTH,
            n_layer=2,
            mem_len=0,
            clamp_len=-1,
            same_length=False,
            dropout=0.0,
        )
    )
    model = models.build(config, "causal-lm")
    ahead = batching.Ahead(batches(words, text, seed))
    optimizer = optim.AdamW(train.parameter_groups(model, lr=LR, weight_decay=0.01), lr=LR)
    schedule = schedules.cosine(steps=steps, warmup=steps // 10)
    train.Trainer(model, ahead, optimizer, steps=steps, schedule=schedule, seed=seed, clip_norm=1.0).run()
    ahead.close()
    sums, criterion, unseen = criteria.Sums(), criteria.of(model.eval()), batches(words, held_out, 0, False)
    for i in range(unseen.steps_per_epoch(0)):
        with plm.no_grad():
            sums.add(criteria.run(criterion, model, unseen[i])[0])
    return math.exp(sums.loss())


def run(
    source: pathlib.Path, folder: pathlib.Path, seed: int, *, size: int = SIZE, steps: int = STEPS
) -> dict[str, float]:
    """Perplexity with both, and by how much the adaptive one is worse."""
    text, held_out = texts(source)
    found = {
        kind: perplexity(text, held_out, tuple(c for c in cutoffs if c < size), seed, size, steps)
        for kind, cutoffs in CUTOFFS.items()
    }
    worse = found["adaptive"] / found["full"] - 1
    return {kind: round(p, 2) for kind, p in found.items()} | {"worse": round(worse, 4)}
