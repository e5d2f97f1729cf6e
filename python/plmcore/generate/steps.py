"""How each kind of language model runs a step of a search: logits of the prompts, then of one token for each sequence.

Shapes: B prompts, L of them alive, n sequences of each, C width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plmcore import nn
from plmcore._core import ArgumentError, Tensor
from plmcore.models import causal, seq2seq, stacks
from plmcore.models.cache import Cache


class Steps:
    """`start` gives the logits [B, V] that follow the prompts, `step` those [L, n, V] after the tokens of a search."""

    def __init__(self, model: nn.Module, prompts: Sequence[np.ndarray]):
        self.model, self.prompts = model, prompts
        self.lengths = np.array([len(p) for p in prompts])
        self.cache = Cache(self.lengths)

    def __call__(self, search) -> Tensor:
        if search.tokens is None:
            return self.start()
        self.cache.advance(search.live.numpy(), search.parents.numpy())
        return self.step(search.tokens)

    def start(self) -> Tensor:
        ids, mask = padded(self.prompts)
        last = Tensor(self.lengths - 1)
        encoded = self.run(Tensor(ids), None if mask.all() else Tensor(mask), (causal.marks(last, ids.shape[1]),))
        return self.logits(causal.rows_at(encoded, last))

    def step(self, tokens: Tensor) -> Tensor:
        return self.logits(self.run(tokens).rows)


class CausalSteps(Steps):
    def run(self, ids, mask=None, reads=()):
        return self.model.body.encode(ids, mask, reads=reads, cache=self.cache)

    def logits(self, rows: Tensor) -> Tensor:
        return self.model.lm_head(rows)


class StacksCausalSteps(Steps):
    def run(self, ids, mask=None, reads=()):
        return self.model.body.decoder(ids, None, mask, reads=reads, cache=self.cache)

    def logits(self, rows: Tensor) -> Tensor:
        return self.model.output(rows)


class Seq2SeqSteps(Steps):
    """The prompts are the decoder's; sources the encoder's."""

    def __init__(self, model: nn.Module, prompts: Sequence[np.ndarray], sources: Sequence[np.ndarray]):
        super().__init__(model, prompts)
        ids, mask = padded(sources)
        self.encoded = model.body.encode(Tensor(ids), None if mask.all() else Tensor(mask))

    def run(self, ids, mask=None, reads=()):
        return self.model.body.decode(ids, self.encoded, mask, reads=reads, cache=self.cache)

    def logits(self, rows: Tensor) -> Tensor:
        return self.model.logits(rows)


def has_encoder(model: nn.Module) -> bool:
    return isinstance(model, seq2seq.Seq2SeqLM)


def steps_of(model: nn.Module, prompts: Sequence[np.ndarray], sources: Sequence[np.ndarray] | None) -> Steps:
    if has_encoder(model):
        return Seq2SeqSteps(model, prompts, sources)
    for kind, steps in ((causal.CausalLM, CausalSteps), (stacks.StacksCausalLM, StacksCausalSteps)):
        if isinstance(model, kind):
            return steps(model, prompts)
    raise ArgumentError(
        f"{type(model).__name__} makes no text: load a directory with head='causal-lm' or head='seq2seq-lm'"
    )


def padded(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ids as one array with 0 after their ends, and where they are.  int64 [B, T], bool [B, T]"""
    lengths = np.array([len(r) for r in rows])
    mask = np.arange(lengths.max())[None] < lengths[:, None]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = np.concatenate(rows)
    return ids, mask
