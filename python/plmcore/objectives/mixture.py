from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.objectives.objective import IGNORED, Objective
from plmcore.objectives.rng import Rng
from plmcore.runtime import draws

if TYPE_CHECKING:
    from plmcore.data import Order


class Mixture(Objective):
    """Examples of several objectives, each as often as its rate (T5: spans of text beside supervised tasks).

    `rates` are shares of the examples. What they leave is for the other parts, by their numbers of examples,
    of which at most `limit` count, to the power 1 / `temperature` (equal parts at a high one). An epoch has
    every example of the first part once, and so many of the others as that makes. Each part goes through all
    of its examples, in an order of its own, before one comes again, then with new noise.
    """

    def __init__(
        self,
        parts: Mapping[str, Objective],
        tokenizer: Any,
        *,
        rates: Mapping[str, float] | None = None,
        limit: int = 1 << 19,
        temperature: float = 1.0,
    ):
        if not parts:
            raise ArgumentError("a mixture needs objectives, got none")
        self.names, self.parts = tuple(parts), tuple(parts.values())
        self.labels = self.parts[0].labels
        self.sizes = np.array([p.examples(0) for p in self.parts])
        self.rates = shares_of(dict(zip(self.names, self.sizes.tolist())), rates or {}, limit, temperature)
        wanted = np.array([self.rates[name] for name in self.names])
        # of an epoch
        self.counts = np.maximum(1, np.rint(self.sizes[0] * wanted / wanted[0]).astype(np.int64))
        self.ends = np.cumsum(self.counts)
        self.left = tokenizer.family.padding_side == "left"
        pad = tokenizer.pad_token_id or 0
        self.fills = {
            "input_ids": pad, "attention_mask": 0, "token_type_ids": tokenizer.family.pad_type,
            "decoder_input_ids": pad, "decoder_attention_mask": 0, "labels": IGNORED,
        }  # fmt: skip
        self._order = functools.lru_cache(2 * len(self.parts))(self._make_order)

    def examples(self, epoch: int) -> int:
        return int(self.ends[-1])

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        part = np.searchsorted(self.ends, examples, side="right")
        turn = examples - (self.ends - self.counts)[part] + rng.epoch * self.counts[part]
        passes, place = np.divmod(turn, self.sizes[part])
        found = []
        for k, epoch in sorted(set(zip(part.tolist(), passes.tolist()))):
            mine = np.flatnonzero((part == k) & (passes == epoch))
            seed = int(draws.bits(rng.seed, zlib.crc32(self.names[k].encode())) >> np.uint64(1))
            order = self._order(k, seed, epoch)
            found.append((mine, self.parts[k].batch(order[place[mine]], seed=seed, epoch=epoch)))
        return self.joined(found, len(examples))

    def _make_order(self, k: int, seed: int, epoch: int) -> Order:
        from plmcore.data import Order

        if self.parts[k].examples(epoch) != self.sizes[k]:
            raise ArgumentError(
                f"{self.names[k]} has another number of examples in each epoch, and cannot be mixed"
            )
        return Order(int(self.sizes[k]), seed, epoch)

    def joined(
        self, found: Iterable[tuple[np.ndarray, Mapping[str, np.ndarray]]], n: int
    ) -> dict[str, np.ndarray]:
        """Batches as one of n rows, each in its places, all as wide as the widest."""
        found = list(found)
        names = set(found[0][1])
        for _, batch in found:
            if set(batch) != names or not names <= set(self.fills):
                every = " and ".join(", ".join(sorted(b)) for _, b in found)
                raise ArgumentError(
                    f"objectives that are mixed must give the same of {', '.join(self.fills)}; got {every}"
                )
        joined = {}
        for name in found[0][1]:
            width = max(batch[name].shape[1] for _, batch in found)
            joined[name] = out = np.full((n, width), self.fills[name], np.int64)
            for rows, batch in found:
                own = batch[name].shape[1]
                out[rows, width - own if self.left else 0 : width if self.left else own] = batch[name]
        return joined


def shares_of(
    sizes: Mapping[str, int], rates: Mapping[str, float], limit: int, temperature: float
) -> dict[str, float]:
    """The share of each part: its rate, or of what the rates leave that of its size."""
    if not temperature > 0 or limit < 1:
        raise ArgumentError(
            f"temperature must be above 0 and limit at least 1, got {temperature} and {limit}"
        )
    for name, rate in rates.items():
        if name not in sizes:
            raise ArgumentError(f"there is a rate for {name!r}, and the parts are {', '.join(sizes)}")
        if not 0 < rate <= 1:
            raise ArgumentError(f"a rate is above 0 and at most 1, got {rate} for {name}")
    rest, others = 1 - sum(rates.values()), [name for name in sizes if name not in rates]
    if others and rest <= 1e-6:
        raise ArgumentError(
            f"the rates make {sum(rates.values()):g} together and leave nothing for {', '.join(others)}"
        )
    if not others and abs(rest) > 1e-6:
        raise ArgumentError(f"the rates must make 1 together, got {sum(rates.values()):g}")
    weights = {name: min(sizes[name], limit) ** (1 / temperature) for name in others}
    total = sum(weights.values())
    return {name: rates[name] if name in rates else rest * weights[name] / total for name in sizes}
