"""Answers to a question as a beam: likely starts, likely ends of each, and whether there is an answer at all
(Yang et al. 2019).

Shapes: B batch, T length, C width, K starts, E ends of each.
"""

from __future__ import annotations

from typing import Any

from plmcore import losses, nn
from plmcore._core import Tensor, ops
from plmcore.models.config import Config
from plmcore.models.outputs import Output
from plmcore.models.padding import EVERYWHERE

NEVER = 1e30


class AnswerBeams(nn.Module):
    """The most likely starts, the most likely ends of each, and whether there is no answer.

    start_top_log_probs and start_top_index [B, K]; end_top_log_probs and end_top_index [B, E K], the best end
    of every start first; cls_logits [B]. They are probabilities, whatever their published names say. With
    start_positions and end_positions [B] there is a loss instead, of ends that know the right start, and with
    cls_index and is_impossible [B] of whether there is an answer. p_mask [B, T]: 1 where none may begin or
    end.
    """

    NAMES = {
        "start": "start_logits.dense",
        "end_hidden": "end_logits.dense_0",
        "end_norm": "end_logits.LayerNorm",
        "end": "end_logits.dense_1",
        "answer_hidden": "answer_class.dense_0",
        "answer": "answer_class.dense_1",
    }

    def __init__(self, config: Config, body: Any, width: int, norm_eps: float, weight_init: nn.init.Init):
        self.config, self.body = config, body
        self.start = nn.Linear(width, 1, weight_init=weight_init)
        self.end_hidden = nn.Linear(2 * width, width, activation="tanh", weight_init=weight_init)
        self.end_norm = nn.LayerNorm(width, norm_eps)
        self.end = nn.Linear(width, 1, weight_init=weight_init)
        self.answer_hidden = nn.Linear(2 * width, width, activation="tanh", weight_init=weight_init)
        self.answer = nn.Linear(width, 1, bias=False, weight_init=weight_init)

    def __call__(
        self,
        input_ids: Tensor,
        *,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        is_impossible: Tensor | None = None,
        cls_index: Tensor | None = None,
        p_mask: Tensor | None = None,
        **inputs: Any,
    ) -> Output:
        encoded = self.body.encode(input_ids, **inputs, reads=(EVERYWHERE,))
        x = encoded.rows  # [B, T, C]
        B, T, C = x.shape
        starts = without(ops.reshape(self.start(x), (B, T)), p_mask)
        if start_positions is not None and end_positions is not None:
            begin = rows_at(x, start_positions)  # [B, 1, C]
            ends = ops.reshape(self.ends(x, begin, p_mask), (B, T))
            loss = ops.affine(ops.add(chosen(starts, start_positions), chosen(ends, end_positions)), 0.5, 0.0)
            if cls_index is not None and is_impossible is not None:
                none = self.no_answer(x, ops.reshape(begin, (B, C)), cls_index)
                truth = ops.reshape(ops.cast(is_impossible, none.dtype), (B,))
                loss = ops.add(
                    loss, ops.affine(losses.binary_cross_entropy_with_logits(none, truth), 0.5, 0.0)
                )
            return encoded.output(loss=loss)

        K, E = self.config.start_n_top, self.config.end_n_top
        starts = ops.softmax(starts)
        start_likely, start_index = ops.topk(starts, K)  # [B, K]
        # [B, K, E]
        end_likely, end_index = ops.topk(ops.softmax(self.ends(x, rows_at(x, start_index), p_mask)), E)
        begin = ops.reshape(ops.matmul(ops.reshape(starts, (B, 1, T)), x), (B, C))
        return encoded.output(
            start_top_log_probs=start_likely,
            start_top_index=start_index,
            end_top_log_probs=ops.reshape(ops.transpose(end_likely, (0, 2, 1)), (B, E * K)),
            end_top_index=ops.reshape(ops.transpose(end_index, (0, 2, 1)), (B, E * K)),
            cls_logits=self.no_answer(x, begin, cls_index),
        )

    def ends(self, x: Tensor, begin: Tensor, p_mask: Tensor | None) -> Tensor:
        """Logits of the ends, for each of the starts.  x [B, T, C]; begin [B, K, C] -> [B, K, T]"""
        (B, T, C), K = x.shape, begin.shape[1]
        pairs = [
            ops.broadcast_to(ops.reshape(x, (B, 1, T, C)), (B, K, T, C)),
            ops.broadcast_to(ops.reshape(begin, (B, K, 1, C)), (B, K, T, C)),
        ]
        logits = self.end(self.end_norm(self.end_hidden(ops.concat(pairs, 3))))  # [B, K, T, 1]
        p_mask = None if p_mask is None else ops.reshape(p_mask, (B, 1, T))
        return without(ops.reshape(logits, (B, K, T)), p_mask)

    def no_answer(self, x: Tensor, begin: Tensor, cls_index: Tensor | None) -> Tensor:
        """From the start and the token that speaks for the text, the last unless given.
        x [B, T, C]; begin [B, C] -> [B]
        """
        B, T, C = x.shape
        text = ops.slice(x, 1, T - 1, T) if cls_index is None else rows_at(x, cls_index)
        return ops.reshape(
            self.answer(self.answer_hidden(ops.concat([begin, ops.reshape(text, (B, C))], 1))), (B,)
        )


def without(logits: Tensor, p_mask: Tensor | None) -> Tensor:
    if p_mask is None:
        return logits
    p_mask = ops.cast(p_mask, logits.dtype)
    return ops.add(ops.mul(logits, ops.affine(p_mask, -1.0, 1.0)), ops.affine(p_mask, -NEVER, 0.0))


def rows_at(x: Tensor, positions: Tensor) -> Tensor:
    """x [B, T, C]; positions [B, K], or [B] for one of each -> [B, K, C]"""
    return ops.gather_beams(x, positions if positions.ndim > 1 else ops.reshape(positions, (x.shape[0], 1)))


def chosen(logits: Tensor, positions: Tensor) -> Tensor:
    return ops.cross_entropy(logits, ops.reshape(positions, logits.shape[:1]))
