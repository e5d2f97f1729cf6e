from __future__ import annotations

import numpy as np

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.nn import init
from plmcore.nn.module import Module
from plmcore.nn.parameter import Parameter

NEVER = -1e30  # the logit of a class that is drawn and right at once


class SampledSoftmax(Module):
    """-ln softmax(x W^T + b) of labels, while it trains over the label and `samples` other classes alone, the
    same for all rows of a call.  x [N, C]; weight [V, C]; bias [V]

    Classes are drawn as TensorFlow's log-uniform sampler does, each once: class k with the probability
    ln((k + 2) / (k + 1)) / ln(V + 1), so that they must be in the order of their frequency. A logit loses the
    logarithm of how often its class was to be expected among the draws.
    """

    def __init__(self, width: int, vocab_size: int, samples: int, *, weight_init: init.Init | None = None):
        if samples < 1:
            raise ArgumentError(f"SampledSoftmax: samples must be at least 1, got {samples}")
        self.weight = Parameter.new(weight_init or init.normal(width**-0.5), (vocab_size, width))
        self.bias = Parameter.new(init.zeros, (vocab_size,))
        self.samples = samples

    def logits(self, x: Tensor) -> Tensor:
        """x [..., C] -> [..., V]"""
        return ops.linear(x, self.weight, self.bias)

    def __call__(self, x: Tensor, labels: Tensor) -> Tensor:
        """The mean over rows; in eval mode, and where as many classes are drawn as there are, over all
        classes.  x [N, C]; labels int64 [N]
        """
        V, C = (int(n) for n in self.weight.shape)
        if not self.training or self.samples >= V:
            return ops.cross_entropy(self.logits(x), labels)
        wanted = labels.numpy()
        if wanted.size and not 0 <= wanted.min() <= wanted.max() < V:
            bad = wanted.min() if wanted.min() < 0 else wanted.max()
            raise ArgumentError(f"SampledSoftmax: there is no class {bad}; there are {V}")
        drawn, tries = draw(V, self.samples)
        S, N = len(drawn), len(wanted)
        rows = Tensor(np.concatenate([wanted, drawn]), device=x.device)
        table = ops.embedding(self.weight, rows, True)  # [N + S, C]
        shift = Tensor(-np.log(expected(rows.numpy(), V, tries)).astype(np.float32), device=x.device)
        bias = ops.add(ops.reshape(ops.embedding(ops.reshape(self.bias, (V, 1)), rows), (N + S,)), shift)
        right, others = ops.split(table, (N, S), 0)
        of_right, of_others = ops.split(bias, (N, S), 0)
        hits = Tensor(wanted[:, None] == drawn[None, :], device=x.device)
        first = ops.add(ops.sum(ops.mul(x, right), 1), of_right)  # [N]
        rest = ops.masked_fill(ops.linear(x, others, of_others), hits, NEVER)  # [N, S]
        both = ops.concat([ops.reshape(first, (N, 1)), rest], 1)
        return ops.cross_entropy(both, ops.full((N,), 0, "int64", like=labels))

    def describe(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}, samples={self.samples}"


def draw(V: int, samples: int) -> tuple[np.ndarray, int]:
    """`samples` classes, each once, and how many draws that took.  int64 [samples]"""
    drawn = np.zeros(0, np.int64)
    while True:
        high, low = ops.uniform((2, 2 * samples), 0.0, 1.0).numpy().astype(np.float64)
        u = (np.floor(high * (1 << 24)) + low) / (1 << 24)  # finer than float32
        classes = np.floor(np.exp(u * np.log(V + 1.0))).astype(np.int64) - 1
        drawn = np.concatenate([drawn, np.clip(classes, 0, V - 1)])
        first = np.sort(np.unique(drawn, return_index=True)[1])
        if len(first) >= samples:
            return drawn[first[:samples]], int(first[samples - 1]) + 1


def expected(classes: np.ndarray, V: int, tries: int) -> np.ndarray:
    """How often a class is to be expected among those of `tries` draws, each counted once."""
    p = np.log((classes + 2.0) / (classes + 1.0)) / np.log(V + 1.0)
    return -np.expm1(tries * np.log1p(-p))
