"""Text by a model that looks both ways and remembers earlier segments (XLNet).

Shapes: B prompts, n sequences of each, K tokens, P memory, C width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

from plmcore._core import Dim, Tensor, ops
from plmcore.models.generates import Generates
from plmcore.models.relative import Memories
from plmcore.nn.state import State, chosen


@dataclass
class Reread(State):
    """Tokens that the next run reads again, [B, n, K], and the memory of those before them."""

    ids: Tensor
    memories: Memories | None

    @property
    def batch(self) -> int | Dim:
        return self.ids.shape[0]

    def tensors(self) -> dict[str, Tensor]:
        mems = {} if self.memories is None else self.memories.tensors()
        return {"ids": self.ids} | {f"mems.{i}": m for i, m in mems.items()}

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Self:
        memories = self.memories
        if memories is not None:
            layers = tuple(tensors[f"mems.{i}"] for i in memories.tensors())
            memories = Memories(layers, tensors["ids"].shape[1])
        return type(self)(tensors["ids"], memories)

    def signature(self) -> dict[str, tuple[int | str | Dim, ...]]:
        """All layers remember as much, of any number of sequences."""
        K = self.ids.shape[2]
        found: dict[str, tuple[int | str | Dim, ...]] = {
            "ids": ("B", "sequences", K if isinstance(K, int) else "K")
        }
        if self.memories is not None:
            rows = Dim("B") * Dim("sequences")
            found |= {f"mems.{i}": ("P", rows, m.shape[2]) for i, m in self.memories.tensors().items()}
        return found

    def select(self, live: Tensor | None, parents: Tensor | None) -> Self:
        memories = None if self.memories is None else self.memories.select(live, parents)
        return type(self)(chosen(self.ids, live, parents), memories)


class Rereads(Generates):
    """As published, each run takes the last two tokens again: in a model that looks both ways they change
    with what follows them. Their past is the memory of earlier runs.
    """

    PADS = False

    def prefill(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, State]:
        B, T = input_ids.shape
        logits, state = self.predict(ops.reshape(input_ids, (B, 1, T)), None)
        return ops.reshape(logits, (B, logits.shape[2])), state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        state.check_batch(tokens.shape[0])
        seen = cast(Reread, state)
        return self.predict(ops.concat([seen.ids, ops.reshape(tokens, (*tokens.shape, 1))], 2), seen.memories)

    def predict(self, ids: Tensor, memories: Memories | None) -> tuple[Tensor, State]:
        """The next token is a target after a stand-in for it, which nobody sees.  [B, n, K] -> [B, n, V]"""
        B, n, K = ids.shape
        rows, T = ops.pad(ops.reshape(ids, (B * n, K)), (0, 0), (0, 1)), K + 1
        last = ops.pad(ops.full((1, 1, K), 0.0, like=ids), (0, 0, 0), (0, 0, 1), 1.0)  # [1, 1, T]
        out = cast(Any, self)(
            rows,
            perm_mask=ops.broadcast_to(last, (B * n, T, T)),
            target_mapping=ops.broadcast_to(last, (B * n, 1, T)),
            mems=None if memories is None else memories.layers,
        )
        if out.mems is not None:  # without the stand-in, and the token that is read again
            before = tuple(ops.narrow(m, 0, without_two(m.shape[0])) for m in out.mems)
            ids, memories = ops.slice(ids, 2, K - 1, K), Memories(before, n)
        return ops.reshape(out.logits, (B, n, out.logits.shape[-1])), Reread(ids, memories)


def without_two(length: Any) -> Any:
    """A length that has no number yet is at least two."""
    return max(length - 2, 0) if isinstance(length, int) else length - 2
