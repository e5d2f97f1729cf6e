"""Text by a model that looks both ways and remembers earlier segments (XLNet).

Shapes: B prompts, n sequences of each, K tokens, P memory, C width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from plmcore._core import Dim, Tensor, ops
from plmcore.models.generates import Generates
from plmcore.models.relative import of_sequences
from plmcore.nn.state import State, chosen


@dataclass(frozen=True)
class Reread(State):
    """Tokens that the next run reads again, [B, n, K], and the memory of those before them, [P, B n, C] of
    each layer, or none.
    """

    ids: Tensor
    memories: tuple[Tensor, ...]

    @property
    def batch(self) -> int | Dim:
        return self.ids.shape[0]

    def tensors(self) -> dict[str, Tensor]:
        return {"ids": self.ids} | {f"mems.{i}": m for i, m in enumerate(self.memories)}

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Reread:
        return Reread(tensors["ids"], tuple(tensors[f"mems.{i}"] for i in range(len(tensors) - 1)))

    def signature(self) -> dict[str, tuple[int | str, ...]]:
        found = super().signature()
        for name, (first, _, last) in found.items():
            found[name] = (first, "sequences", last) if name == "ids" else ("P", "rows", last)
        return found

    def select(self, live: Tensor | None, parents: Tensor | None) -> Reread:
        memories, (B, n, _) = self.memories, self.ids.shape
        if memories:
            memories = of_sequences(memories, B, n, live, parents)
        return Reread(chosen(self.ids, live, parents), memories)


class Rereads(Generates):
    """As published, each run takes the last two tokens again: in a model that looks both ways they change
    with what follows them. Their past is the memory of earlier runs.
    """

    PADS = False

    def prefill(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, State]:
        B, T = input_ids.shape
        logits, state = self.predict(ops.reshape(input_ids, (B, 1, T)), ())
        return ops.reshape(logits, (B, logits.shape[2])), state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        state.check_batch(tokens.shape[0])
        seen = cast(Reread, state)
        return self.predict(ops.concat([seen.ids, ops.reshape(tokens, (*tokens.shape, 1))], 2), seen.memories)

    def predict(self, ids: Tensor, memories: tuple[Tensor, ...]) -> tuple[Tensor, State]:
        """The next token is a target after a stand-in for it, which nobody sees.  [B, n, K] -> [B, n, V]"""
        B, n, K = ids.shape
        rows, T = ops.pad(ops.reshape(ids, (B * n, K)), (0, 0), (0, 1)), K + 1
        last = ops.pad(ops.full((1, 1, K), 0.0, like=ids), (0, 0, 0), (0, 0, 1), 1.0)  # [1, 1, T]
        out = cast(Any, self)(
            rows,
            perm_mask=ops.broadcast_to(last, (B * n, T, T)),
            target_mapping=ops.broadcast_to(last, (B * n, 1, T)),
            mems=memories or None,
        )
        if out.mems is not None:  # without the stand-in, and the token that is read again
            memories = tuple(ops.narrow(m, 0, earlier(m.shape[0])) for m in out.mems)
            ids = ops.slice(ids, 2, K - 1, K)
        return ops.reshape(out.logits, (B, n, out.logits.shape[-1])), Reread(ids, memories)


def earlier(S: int | Dim) -> int | Dim:
    """Of a memory all but the last two. A size that has no number yet is at least two."""
    return max(S - 2, 0) if isinstance(S, int) else S - 2
