"""How each kind of language model runs a step of a search: logits of the prompts, then of one token for each sequence.

Shapes: B prompts, L of them alive, n sequences of each, C width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore import _core, nn
from plmcore._core import ArgumentError, Packing, Tensor, ops
from plmcore.models import causal, seq2seq, stacks, xlnet
from plmcore.models.cache import Cache

if TYPE_CHECKING:
    from plmcore.models import Model

WORTH_TRIMMING = 40 << 20  # bytes


class unpacked:
    """Weights stay in memory once, as they are: no packed copies are made of them. Steps have few rows and gain nothing from copies; what runs
    once, over a prompt or a source, loses a few percent."""

    def __enter__(self) -> None:
        self.before = _core.set_packing(Packing.found)

    def __exit__(self, *_: object) -> None:
        _core.set_packing(self.before)


def trim() -> None:
    """The steps need far less memory than the prompts. Asking for it anew would cost a small model more than it saves."""
    stats = _core.memory_stats()
    if stats["reserved"] - stats["in_use"] > WORTH_TRIMMING:
        _core.trim_memory()


class Steps:
    """`start` gives the logits [B, V] that follow the prompts, `step` those [L, n, V] after the tokens of a search.

    limit: the most new tokens.
    """

    def __init__(self, model: Model, prompts: Sequence[np.ndarray], limit: int):
        self.model, self.prompts = model, prompts
        self.lengths = np.array([len(p) for p in prompts])
        self.cache = Cache(self.lengths.tolist(), limit)

    def __call__(self, search: Any) -> Tensor:
        with unpacked():
            if search.tokens is None:
                logits = self.start()
                trim()
                return logits
            self.cache.advance(search.live.numpy(), search.parents.numpy())
            return self.step(search.tokens)

    def start(self) -> Tensor:
        ids, mask = padded(self.prompts)
        last = Tensor(self.lengths - 1)
        encoded = self.run(Tensor(ids), None if mask.all() else Tensor(mask), (causal.marks(last, ids.shape[1]),))
        return self.logits(causal.rows_at(encoded, last))

    def run(self, ids: Any, mask: Any = None, reads: Any = ()) -> Any:
        """The rows that the decoder makes of ids, with `reads` those that are read of them."""
        raise NotImplementedError

    def logits(self, rows: Tensor) -> Tensor:
        raise NotImplementedError

    def step(self, tokens: Tensor) -> Tensor:
        return self.logits(self.run(tokens).rows)


class CausalSteps(Steps):
    def run(self, ids: Any, mask: Any = None, reads: Any = ()) -> Any:
        return self.model.body.encode(ids, mask, reads=reads, cache=self.cache)

    def logits(self, rows: Tensor) -> Tensor:
        return self.model.lm_head(rows)


class StacksCausalSteps(Steps):
    def run(self, ids: Any, mask: Any = None, reads: Any = ()) -> Any:
        return self.model.body.decoder(ids, None, mask, reads=reads, cache=self.cache)

    def logits(self, rows: Tensor) -> Tensor:
        return self.model.output(rows)


class Seq2SeqSteps(Steps):
    """The prompts are the decoder's; sources the encoder's."""

    def __init__(self, model: Model, prompts: Sequence[np.ndarray], limit: int, sources: Sequence[np.ndarray]):
        super().__init__(model, prompts, limit)
        ids, mask = padded(sources)
        with unpacked():
            self.encoded = model.body.encode(Tensor(ids), None if mask.all() else Tensor(mask))

    def run(self, ids: Any, mask: Any = None, reads: Any = ()) -> Any:
        return self.model.body.decode(ids, self.encoded, mask, reads=reads, cache=self.cache)

    def logits(self, rows: Tensor) -> Tensor:
        return self.model.logits(rows)


class XLNetSteps(Steps):
    """The next token is a target after a stand-in for it, which nobody sees. As published, each run takes the last two tokens again: in a model that
    looks both ways they change with what follows them. Their past is the memory of earlier runs. Prompts of different lengths run apart.
    """

    def __init__(self, model: Model, prompts: Sequence[np.ndarray], limit: int):
        super().__init__(model, prompts, limit)
        self.groups: list[list[Any]] = [  # which prompts; their ids [B n, T]; memories [P, B n, C] by layer, or None
            [np.flatnonzero(self.lengths == T), None, None] for T in np.unique(self.lengths)
        ]

    def __call__(self, search: Any) -> Tensor:
        if search.tokens is None:
            for group in self.groups:
                group[1] = np.stack([self.prompts[i] for i in group[0]])
        else:
            self.advance(search.live.numpy(), search.parents.numpy(), search.tokens.numpy())
        B = sum(len(places) for places, _, _ in self.groups)
        with unpacked():
            found = [self.predict(group) for group in self.groups]  # [b n, V]
        order = np.argsort(np.concatenate([places for places, _, _ in self.groups]))
        rows = ops.concat(found, 0) if len(found) > 1 else found[0]
        rows = ops.reshape(rows, (B, rows.shape[0] // B, rows.shape[1]))
        return rows if len(found) == 1 else ops.index_select(rows, Tensor(order))  # [B, n, V]

    def advance(self, live: np.ndarray, parents: np.ndarray, tokens: np.ndarray) -> None:
        groups: list[list[Any]] = []
        for places, ids, memories in self.groups:
            now = np.flatnonzero(np.isin(live, places))
            if not len(now):
                continue
            n = len(ids) // len(places)
            rows = (np.searchsorted(places, live[now])[:, None] * n + parents[now]).ravel()
            ids = np.concatenate([ids[rows], tokens[now].reshape(-1, 1)], 1)
            if memories is not None:
                chosen = Tensor(rows)
                memories = [ops.index_select(ops.narrow(m, 0, max(m.shape[0] - 2, 0)), chosen, 1) for m in memories]
            groups.append([now, ids, memories])
        self.groups = groups

    def predict(self, group: list[Any]) -> Tensor:
        _, ids, memories = group
        ids = np.pad(ids if memories is None else ids[:, -2:], ((0, 0), (0, 1)))
        B, T = ids.shape
        hidden, target = np.zeros((B, T, T), np.float32), np.zeros((B, 1, T), np.float32)
        hidden[:, :, -1] = target[:, 0, -1] = 1
        out = self.model(
            Tensor(ids),
            perm_mask=Tensor(hidden),
            target_mapping=Tensor(target),
            mems=None if not memories else memories,
        )
        group[2] = out.mems
        return ops.reshape(out.logits, (B, out.logits.shape[-1]))


def has_encoder(model: nn.Module) -> bool:
    return isinstance(model, seq2seq.Seq2SeqLM)


def decoder_steps(model: nn.Module) -> type[Steps] | None:
    """How a model without an encoder is run step by step; None where it makes no text."""
    kinds = (
        (causal.CausalLM, CausalSteps), (stacks.StacksCausalLM, StacksCausalSteps), (xlnet.XLNetCausalLM, XLNetSteps)
    )  # fmt: skip
    return next((steps for kind, steps in kinds if isinstance(model, kind)), None)


def steps_of(model: Model, prompts: Sequence[np.ndarray], sources: Sequence[np.ndarray] | None, limit: int) -> Steps:
    if has_encoder(model):
        return Seq2SeqSteps(model, prompts, limit, sources or ())
    steps = decoder_steps(model)
    if steps is None:
        raise ArgumentError(
            f"{type(model).__name__} makes no text: load a directory with head='causal-lm' or head='seq2seq-lm'"
        )
    return steps(model, prompts, limit)


def padded(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ids as one array with 0 after their ends, and where they are.  int64 [B, T], bool [B, T]"""
    lengths = np.array([len(r) for r in rows])
    mask = np.arange(lengths.max())[None] < lengths[:, None]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = np.concatenate(rows)
    return ids, mask
