"""Models that make text: logits after prompts, then after one token for each sequence, with a State between.

Shapes: B prompts, n sequences of each, T length, V vocabulary.
"""

from __future__ import annotations

from typing import ClassVar, cast

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models.cache import KeyValues
from plmcore.models.padding import Encoded, rows_at
from plmcore.nn.state import State


class Generates(nn.Module):
    """The base of models that a search can run."""

    ENCODES: ClassVar[bool] = False  # prefill also takes a source, which an encoder reads
    TRACES: ClassVar[bool] = True  # prefill and step have no branch on a size: exports have them
    PADS: ClassVar[bool] = True  # prefill takes prompts of several lengths, padded on the right, and a mask

    @property
    def stepwise(self) -> bool:
        """Whether a token needs what came of the one before: a whole text has no program then, and programs
        begin with a prompt of one token.
        """
        return False

    def prefill(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, State]:
        """ids [B, T] -> logits [B, V] of what follows them, and what the model keeps of them. With an
        encoder: prefill(input_ids, attention_mask, decoder_input_ids, decoder_attention_mask).
        """
        raise NotImplementedError

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """The next token of each sequence of a state, which it uses up.  ids [B, n] -> logits [B, n, V]"""
        raise NotImplementedError


class Decodes(Generates):
    """A decoder that keeps keys and values. A head gives decode and logits."""

    def decode(
        self, ids: Tensor, mask: Tensor | None, cache: KeyValues, encoded: Encoded | None = None
    ) -> Encoded:
        raise NotImplementedError

    def logits(self, rows: Tensor) -> Tensor:
        """rows -> [..., V]"""
        raise NotImplementedError

    def prefill(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, encoded: Encoded | None = None
    ) -> tuple[Tensor, State]:
        state = KeyValues.begin(input_ids, attention_mask)
        found = self.decode(input_ids, attention_mask, state, encoded)
        last = ops.broadcast_to(state.last, (input_ids.shape[0],))
        return self.logits(rows_at(found, last)), state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        state.check_batch(tokens.shape[0])
        state = cast(KeyValues, state).extended(*tokens.shape)
        return self.logits(self.decode(tokens, None, state).rows), state
