"""How a language model runs a step of a search: logits of the prompts, then of one token for each sequence.

Shapes: B prompts, L of them alive, n sequences of each, C width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore import _core, nn
from plmcore._core import ArgumentError, Packing, Search, Tensor, ops
from plmcore.models.generates import Generates
from plmcore.nn.state import State

WORTH_TRIMMING = 40 << 20  # bytes


class unpacked:
    """Weights stay in memory once, as they are: no packed copies are made of them.

    Steps have few rows and gain nothing from copies; what runs once, over a prompt or a source,
    loses a few percent.
    """

    def __enter__(self) -> None:
        self.before = _core.set_packing(Packing.found)

    def __exit__(self, *_: object) -> None:
        _core.set_packing(self.before)


def trim() -> None:
    """The steps need far less memory than the prompts.

    Asking for it anew would cost a small model more than it saves.
    """
    stats = _core.memory_stats()
    if stats["reserved"] - stats["in_use"] > WORTH_TRIMMING:
        _core.trim_memory()


class Steps:
    """Runs a model for a search: over the prompts, then over one token for each sequence.

    Prompts of a model that takes no padding run apart, those of one length together. limit: the most new
    tokens. A group: its places among the prompts of the last run, ascending, and its state.
    """

    def __init__(
        self,
        model: Generates,
        prompts: Sequence[np.ndarray],
        limit: int,
        sources: Sequence[np.ndarray] | None = None,
    ):
        self.model, self.prompts, self.limit, self.sources = model, prompts, limit, sources
        self.groups: list[tuple[list[int], State]] = []
        self.made = 0  # tokens of each sequence that were run

    def __call__(self, search: Search) -> Tensor:
        """The logits [L, n, V] that a search asks for; at first [B, V]."""
        with unpacked():
            if search.live is None or search.parents is None or search.tokens is None:
                logits = self.start()
                trim()
                return logits
            return self.step(search.live, search.parents, search.tokens)

    def start(self) -> Tensor:
        lengths = [len(p) for p in self.prompts]
        groups = [list(range(len(lengths)))]
        if not self.model.PADS:
            groups = [[i for i, n in enumerate(lengths) if n == T] for T in sorted(set(lengths))]
        return self.ran(groups, [self.model.prefill(**self.inputs(places)) for places in groups])

    def inputs(self, places: list[int]) -> dict[str, Any]:
        """Of the run over these prompts."""
        found: dict[str, np.ndarray] = {}
        sides = {"": self.prompts} if self.sources is None else {"": self.sources, "decoder_": self.prompts}
        for side, given in sides.items():
            ids, mask = padded([given[i] for i in places])
            found[f"{side}input_ids"] = ids
            if mask is not None:
                found[f"{side}attention_mask"] = mask
        return self.model.tensors(found)

    def step(self, live: Tensor, parents: Tensor, tokens: Tensor) -> Tensor:
        runs, self.made = self.limit - 1 - self.made, self.made + 1
        alive = live.numpy().tolist()
        device = self.model.device
        parents, tokens = parents.to(device), tokens.to(device)
        groups, found = [], []
        for places, state in self.groups:
            row = {place: k for k, place in enumerate(places)}
            now = [i for i, place in enumerate(alive) if place in row]
            if not now:
                continue
            continued, run = parents, tokens
            if len(now) < len(alive):
                mine = Tensor(np.array(now), device=device)
                continued, run = ops.index_select(parents, mine), ops.index_select(tokens, mine)
            kept = None
            if len(now) < len(places):
                kept = Tensor(np.array([row[alive[i]] for i in now]), device=device)
            state = state.select(kept, continued).reserve(int(parents.shape[1]), runs)
            groups.append(now)
            found.append(self.model.step(run, state))
        return self.ran(groups, found)

    def ran(self, groups: list[list[int]], found: list[tuple[Tensor, State]]) -> Tensor:
        """Keeps the states, and joins the logits."""
        self.groups = [(places, state) for places, (_, state) in zip(groups, found)]
        if len(found) == 1:
            return found[0][0]
        order = np.argsort(np.concatenate(groups))
        joined = ops.concat([logits for logits, _ in found], 0)
        return ops.index_select(joined, Tensor(order, device=joined.device))


def has_encoder(model: nn.Module) -> bool:
    return isinstance(model, Generates) and model.ENCODES


def steps_of(
    model: nn.Module, prompts: Sequence[np.ndarray], sources: Sequence[np.ndarray] | None, limit: int
) -> Steps:
    if not isinstance(model, Generates):
        raise ArgumentError(
            f"{type(model).__name__} makes no text: load a directory with head='causal-lm' or "
            f"head='seq2seq-lm'"
        )
    return Steps(model, prompts, limit, sources)


def padded(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of ids as one array with 0 after their ends, and where they are, unless that is everywhere.
    int64 [B, T], bool [B, T]
    """
    lengths = np.array([len(r) for r in rows])
    mask = np.arange(lengths.max())[None] < lengths[:, None]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = np.concatenate(rows)
    return ids, None if mask.all() else mask
