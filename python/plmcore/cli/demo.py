"""plmcore demo: a character Transformer on the reference manual inside Python.

Shapes: B batch, T length, C width, V characters.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import time

import numpy as np

import plmcore as plm
from plmcore import Tensor, losses, nn, ops, optim
from plmcore.cli.progress import Progress
from plmcore.files import atomic_write


@dataclasses.dataclass(frozen=True)
class Config:
    characters: int
    length: int = 128
    width: int = 128
    heads: int = 4
    layers: int = 4
    dropout: float = 0.1


class Block(nn.Module):
    def __init__(self, cfg: Config):
        self.norm1 = nn.LayerNorm(cfg.width)
        self.attn = nn.SelfAttention(cfg.width, cfg.heads, causal=True, dropout=cfg.dropout)
        self.norm2 = nn.LayerNorm(cfg.width)
        self.mlp = nn.MLP(cfg.width, 4 * cfg.width, act="gelu_tanh", dropout=cfg.dropout)

    def __call__(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))  # [B, T, C]
        return x + self.mlp(self.norm2(x))


class CharTransformer(nn.Module):
    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.tokens = nn.Embedding(cfg.characters, cfg.width)
        self.positions = nn.Embedding(cfg.length, cfg.width)
        self.dropout = nn.Dropout(cfg.dropout)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.width)
        self.head = nn.Linear(cfg.width, cfg.characters, bias=False)

    def __call__(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions(ops.arange(0, ids.shape[1], "int64"))  # [B, T, C]
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))  # [B, T, V]


class Corpus:
    """The manual as character numbers. Paragraphs that several topics share are kept once, so that the last tenth, which is held out,
    was never seen in training."""

    def __init__(self, held_out: float = 0.1):
        from pydoc_data.topics import topics

        paragraphs = dict.fromkeys(p for name in sorted(topics) for p in topics[name].split("\n\n"))
        text = "\n\n".join(paragraphs)
        self.characters = sorted(set(text))
        number = {c: i for i, c in enumerate(self.characters)}
        ids = np.array([number[c] for c in text], np.int64)
        cut = int(len(ids) * (1 - held_out))
        self.train, self.held_out = ids[:cut], ids[cut:]

    def text(self, ids) -> str:
        return "".join(self.characters[i] for i in ids)

    def batch(self, rng: np.random.Generator, size: int, length: int) -> tuple[Tensor, Tensor]:
        """Random windows and the same moved on by one character, [B, T] each."""
        starts = rng.integers(0, len(self.train) - length, size)
        window = self.train[starts[:, None] + np.arange(length + 1)]
        return Tensor(window[:, :-1]), Tensor(window[:, 1:])

    def baselines(self) -> tuple[float, float]:
        """Bits per held-out character of the unigram and the bigram model of the training text (counts + 0.1)."""
        V = len(self.characters)
        unigrams = np.bincount(self.train, minlength=V) + 0.1
        bigrams = np.full((V, V), 0.1)
        np.add.at(bigrams, (self.train[:-1], self.train[1:]), 1)
        one, two = np.log2(unigrams / unigrams.sum()), np.log2(bigrams / bigrams.sum(1, keepdims=True))
        return float(-one[self.held_out].mean()), float(-two[self.held_out[:-1], self.held_out[1:]].mean())


def learning_rate(step: int, steps: int, peak: float = 3e-3) -> float:
    """Linear warm-up over the first tenth (at most 100 steps), then a cosine down to a tenth of the peak."""
    warmup = min(100, steps // 10 + 1)
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (0.55 + 0.45 * math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def bits_per_character(model: CharTransformer, ids: np.ndarray) -> float:
    """Over the whole text in windows, each seen alone."""
    T = model.cfg.length
    windows = (len(ids) - 1) // T
    x, y = ids[: windows * T].reshape(windows, T), ids[1 : windows * T + 1].reshape(windows, T)
    model.eval()
    with plm.no_grad():
        sums = [
            losses.cross_entropy(model(Tensor(x[i : i + 32])), Tensor(y[i : i + 32]), reduction="sum").item()
            for i in range(0, windows, 32)
        ]
    model.train()
    return sum(sums) / (windows * T) / math.log(2)


def sample(
    model: CharTransformer, start: np.ndarray, count: int, rng: np.random.Generator, temperature: float = 0.7
) -> np.ndarray:
    ids = list(start)
    model.eval()
    with plm.no_grad():
        for _ in range(count):
            logits = model(Tensor(np.array([ids[-model.cfg.length :]], np.int64))).numpy()[0, -1] / temperature
            ids.append(int((logits + rng.gumbel(size=logits.shape)).argmax()))
    return np.array(ids)


def run(steps: int, out: pathlib.Path | None, seed: int, batch: int = 16) -> dict[str, float]:
    """Trains, reports, samples; returns the held-out bits per character of the model and of the baselines."""
    plm.seed(seed)
    rng = np.random.default_rng(seed)
    corpus = Corpus()
    model = CharTransformer(Config(characters=len(corpus.characters)))
    opt = optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.1, betas=(0.9, 0.99))
    print(
        f"{len(corpus.train) + len(corpus.held_out):,} characters of the Python manual, {model.num_parameters():,} parameters, {plm.num_threads()} threads"
    )

    progress, start, recent = Progress(steps), time.monotonic(), []
    for step in range(steps):
        ids, labels = corpus.batch(rng, batch, model.cfg.length)
        opt.lr = learning_rate(step, steps)
        opt.zero_grad()
        loss = losses.cross_entropy(model(ids), labels)
        loss.backward()
        opt.step(clip_norm=1.0)
        recent.append(loss.item())
        progress.update(step + 1, f"loss {recent[-1]:.3f}")
        if (step + 1) * 10 // steps > step * 10 // steps:  # ten times in all
            progress.clear()
            print(
                f"step {step + 1:5}  loss {np.mean(recent):.3f}  {(step + 1) / (time.monotonic() - start):.1f} steps/s",
                flush=True,
            )
            recent = []

    unigram, bigram = corpus.baselines()
    result = {"unigram": unigram, "bigram": bigram, "model": bits_per_character(model, corpus.held_out)}
    print(
        f"\nheld out: {result['model']:.3f} bits per character; bigrams {bigram:.3f}, single characters {unigram:.3f}"
    )
    if out is not None:
        with atomic_write(out / "weights.npz") as f:
            np.savez(f, **model.state_dict())
        print(f"weights: {out / 'weights.npz'}")
    prompt = corpus.held_out[:40]
    print("\n" + corpus.text(sample(model, prompt, 400, rng)))
    return result
