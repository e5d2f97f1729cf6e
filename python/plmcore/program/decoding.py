"""The entry points of an exported model that makes text: a search runs them without Python.

    start   input_ids, attention_mask [B, T] (with an encoder also decoder_input_ids, decoder_attention_mask)
            -> logits [B, V] and the tensors of a State by their names; prompts are padded on the right.
            Where a token needs what came of the one before, a prompt is one token
    grow    room [M], whatever it holds, and the state -> the state with M more free places for tokens
    select  live [L] and the state -> the state of these prompts
    step    parents, tokens [B, n] and the state -> logits [B, n, V] and the state

A state that does not grow has no `grow`. plmcore::Decoder runs them (cpp/generate/decoder.cpp).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plmcore import _core
from plmcore._core import Tensor
from plmcore.models.generates import Generates
from plmcore.nn.state import State
from plmcore.program.trace import Spec, spec, trace

Tensors = dict[str, Tensor]


def programs(model: Generates) -> dict[str, _core.Program]:
    """The programs by name."""
    weights = dict(model.named_parameters())
    begun: list[State] = []  # by tracing `start`: what a state of this model is

    def start(**inputs: Tensor) -> Tensors:
        logits, state = model.prefill(**inputs)
        begun.append(state)
        return {"logits": logits, **state.tensors()}

    length: str | int = 1 if model.stepwise else "T"
    sides = {"": "S", "decoder_": length} if model.ENCODES else {"": length}
    names = ("input_ids", "attention_mask") if model.PADS else ("input_ids",)
    sizes = {side + name: T for side, T in sides.items() for name in names}
    found = {"start": trace(start, weights, **{name: spec("int64", "B", T) for name, T in sizes.items()})}

    [state] = begun
    dtypes = {name: t.dtype for name, t in state.tensors().items()}
    carried = {name: spec(dtypes[name], *sizes) for name, sizes in state.signature().items()}

    def traced(fn: Callable[..., Tensors], **inputs: Spec) -> _core.Program:
        return trace(fn, weights, **inputs, **carried)

    def step(parents: Tensor, tokens: Tensor, **tensors: Tensor) -> Tensors:
        logits, after = model.step(tokens, state.with_tensors(tensors).select(None, parents))
        return {"logits": logits, **after.tensors()}

    if type(state).grown is not State.grown:
        grow: Callable[..., Any] = lambda room, **t: state.with_tensors(t).grown(room.shape[0]).tensors()
        found["grow"] = traced(grow, room=spec("bool", "M"))
    select: Callable[..., Any] = lambda live, **t: state.with_tensors(t).select(live, None).tensors()
    found["select"] = traced(select, live=spec("int64", "L"))
    found["step"] = traced(step, parents=spec("int64", "B", "n"), tokens=spec("int64", "B", "n"))
    return found
