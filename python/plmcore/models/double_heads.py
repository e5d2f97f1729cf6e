"""Two heads on one decoder: the next token, and which
of several continuations is right (Radford et al. 2018).

Shapes: B batch, K choices, T length, C width, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from plmcore import nn
from plmcore._core import Dim, ShapeError, Tensor, ops
from plmcore.models import heads
from plmcore.models.causal import CausalLM, Decoder, marks
from plmcore.models.config import ACTIVATIONS, Config
from plmcore.models.labels import CHOICE, NEXT, placed
from plmcore.models.outputs import Output
from plmcore.models.padding import EVERYWHERE, Encoded, rows_at

SUMMARIES = ("cls_index", "last", "first", "mean")


class DoubleHeads(CausalLM):
    """The next token of each choice, and which choice is right: logits [B, K, T, V] and mc_logits [B, K].

    input_ids and what goes with them [B, K, T], or [K, T]; mc_token_ids: the token of each choice that speaks
    for it, the last unless given.
    """

    LABELS = (NEXT, CHOICE)

    def __init__(self, config: Config, body: Decoder, width: int, weight_init: nn.init.Init):
        super().__init__(config, body, weight_init)
        self.choice = None
        if config.summary_use_proj:
            self.choice = nn.Linear(
                width, 1 if config.summary_proj_to_labels else width, weight_init=weight_init
            )
        self.activation = nn.Activation(ACTIVATIONS[config.summary_activation or "linear"])
        self.dropout = nn.Dropout(config.summary_first_dropout)

    def __call__(
        self,
        input_ids: Tensor,
        *,
        mc_token_ids: Tensor | None = None,
        labels: Tensor | None = None,
        mc_labels: Tensor | None = None,
        **inputs: Any,
    ) -> Output:
        if input_ids.ndim not in (2, 3):
            raise ShapeError(
                f"double-heads: input_ids must be [batch, choices, length] or [choices, length], got "
                f"{list(input_ids.shape)}"
            )
        *lead, T = input_ids.shape
        flat = (math.prod(lead), T)
        inputs = {
            k: ops.reshape(x, flat) if isinstance(x, Tensor) and x.ndim == 3 else x for k, x in inputs.items()
        }
        input_ids = ops.reshape(input_ids, flat)
        labels = None if labels is None else placed(NEXT, ops.reshape(labels, flat))
        speaker = self.speaker(input_ids, mc_token_ids)
        read = EVERYWHERE if speaker is None else marks(speaker, T)
        encoded = self.body.encode(input_ids, **inputs, reads=(read, labels))

        # [B K, C]
        x = self.dropout(ops.mean(encoded.rows, 1) if speaker is None else rows_at(encoded, speaker))
        x = self.activation(x if self.choice is None else self.choice(x))
        choices = ops.reshape(x, lead if x.shape[1] == 1 else (*lead, x.shape[1]))
        mc_loss = None
        if mc_labels is not None:
            *before, K = choices.shape
            rows: Any = math.prod(cast(list[int], before))
            mc_loss = ops.cross_entropy(ops.reshape(choices, (rows, K)), ops.reshape(mc_labels, (rows,)))
        return self.output(encoded, lead, labels, mc_logits=choices, mc_loss=mc_loss)

    def output(
        self, encoded: Encoded, lead: Sequence[int | Dim], labels: Tensor | None, **fields: Any
    ) -> Output:
        """The language model's part by choices, as published:
        so are the last of the hidden states, and not the others.
        """

        def by_choice(rows: Tensor) -> Tensor:
            return ops.reshape(encoded.layout.unpack(rows), (*lead, encoded.layout.T, rows.shape[-1]))

        def logits() -> Tensor:
            return by_choice(self.lm_head(encoded.rows))  # [B, K, T, V]

        states, weights = encoded.states, encoded.layout.collected
        loss = None if labels is None else heads.labelled_loss(encoded, labels, self.lm_head)
        return Output(
            loss=loss,
            losses={"labels": loss, "mc_labels": fields["mc_loss"]},
            logits=logits() if labels is None else logits,
            hidden_states=None
            if states is None
            else (*map(encoded.layout.unpack, states[:-1]), by_choice(states[-1])),
            attentions=None if weights is None else tuple(map(encoded.layout.unpack_weights, weights)),
            **fields,
        )

    def speaker(self, input_ids: Tensor, mc_token_ids: Tensor | None) -> Tensor | None:
        """The position that speaks for each choice; None: the mean of all.  [N]"""
        N, T = input_ids.shape
        kind = self.config.summary_type
        if kind == "mean":
            return None
        if kind == "cls_index" and mc_token_ids is not None:
            return ops.cast(ops.reshape(mc_token_ids, (N,)), "int64")
        places = ops.broadcast_to(ops.reshape(ops.arange(0, T, like=input_ids), (1, T)), (N, T))
        return ops.min(places, 1) if kind == "first" else ops.max(places, 1)
