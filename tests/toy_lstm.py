"""An LSTM language model of existing ops, to prove that whatever carries a state needs no Transformer."""

from dataclasses import dataclass

import numpy as np
from plmcore import Tensor, nn, ops
from plmcore.models.generates import Generates
from plmcore.nn.state import State, chosen


@dataclass
class Recurrent(State):
    """h, c: of each of n sequences of B prompts.  [B, n, C]"""

    h: Tensor
    c: Tensor

    @property
    def batch(self):
        return self.h.shape[0]

    def tensors(self):
        return {"h": self.h, "c": self.c}

    def rebuilt(self, tensors):
        return Recurrent(**tensors)

    def select(self, live, parents):
        return Recurrent(chosen(self.h, live, parents), chosen(self.c, live, parents))


class ToyLSTM(Generates):
    """Shapes: B prompts, n sequences of each, T length, C width, V vocabulary."""

    PADS = False

    def __init__(self, vocabulary, width, seed=0):
        rng = np.random.default_rng(seed)
        draw = lambda shape, dtype="float32": Tensor((rng.standard_normal(shape) * 0.9).astype(dtype))
        self.width = width
        self.tokens = nn.Embedding(vocabulary, width, weight_init=draw)
        self.gates = nn.Linear(2 * width, 4 * width, weight_init=draw)
        self.head = nn.Linear(width, vocabulary, weight_init=draw)

    def initial_state(self, B):
        zeros = ops.full((B, 1, self.width), 0.0, "float32")
        return Recurrent(zeros, zeros)

    def cell(self, ids, state):
        """One token of each sequence.  ids [B, n] -> the state after it"""
        state.check_batch(ids.shape[0])
        z = self.gates(ops.concat([self.tokens(ids), state.h], -1))  # [B, n, 4 C]
        i, f, g, o = ops.split(z, (self.width,) * 4, 2)
        c = ops.add(ops.mul(ops.sigmoid(f), state.c), ops.mul(ops.sigmoid(i), ops.tanh(g)))
        return Recurrent(ops.mul(ops.sigmoid(o), ops.tanh(c)), c)

    def prefill(self, input_ids, attention_mask=None):
        logits, state = self(input_ids)
        B, T, V = logits.shape
        return ops.reshape(ops.slice(logits, 1, T - 1, T), (B, V)), state

    def step(self, tokens, state):
        state = self.cell(tokens, state)
        return self.head(state.h), state

    def __call__(self, ids, state=None):
        """ids [B, T] -> logits [B, T, V], and the state after the last token"""
        B, T = ids.shape
        state = self.initial_state(B) if state is None else state
        state.check_batch(B)
        seen = []
        for t in range(T):
            state = self.cell(ops.slice(ids, 1, t, t + 1), state)
            seen.append(state.h)
        return self.head(ops.concat(seen, 1)), state
