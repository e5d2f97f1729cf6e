from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from plmcore._core import Tensor
from plmcore.nn.state import State

# None where it was not computed, which the caller knows by what it asked for.
Field: TypeAlias = Tensor | Any
Layers: TypeAlias = tuple[Tensor, ...] | Any


class Output(Mapping[str, Any]):
    """What a model returns: tensors, or tuples of them over layers,
    by the names that transformers gives them.

    A field that was not computed is None and is not among the keys. A field given as a function is computed
    when it is first read: with labels the loss needs the logits of few positions, and most callers need no
    others.
    """

    loss: Field
    logits: Field
    last_hidden_state: Field
    dropped_hidden_state: Field
    pooler_output: Field
    hidden_states: Layers
    attentions: Layers
    prediction_logits: Field
    seq_relationship_logits: Field
    sop_logits: Field
    forward_logits: Field
    backward_logits: Field
    start_logits: Field
    end_logits: Field
    start_top_log_probs: Field
    start_top_index: Field
    end_top_log_probs: Field
    end_top_index: Field
    cls_logits: Field
    mc_loss: Field
    mc_logits: Field
    mems: Layers
    state: Any
    past_key_values: Any
    decoder_hidden_states: Layers
    decoder_attentions: Layers
    cross_attentions: Layers
    encoder_last_hidden_state: Field
    encoder_hidden_states: Layers
    encoder_attentions: Layers
    alignments: Field
    decoder_states: Field

    def __init__(self, losses: Mapping[str, Field] | None = None, **fields: Any | Callable[[], Any]):
        """losses: means, each by the name of the labels that it is of; the loss by `labels` unless given."""
        if unknown := [name for name in fields if name not in FIELDS]:
            raise TypeError(f"Output has no field {unknown[0]!r}; add it to outputs.Output")
        self.losses: Mapping[str, Field] = {"labels": fields.get("loss")} if losses is None else losses
        self._fields = {name: fields[name] for name in FIELDS if fields.get(name) is not None}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in FIELDS:
                return self.get(name)
            raise AttributeError(f"Output has no field {name!r}; this one has {', '.join(self)}")

    def __getitem__(self, name: str) -> Any:
        value = self._fields[name]
        if callable(value):
            value = self._fields[name] = value()
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        def shown(value: Any) -> str:
            if callable(value):
                return "computed when read"
            if isinstance(value, tuple) and value:
                return f"{len(value)} x {shown(value[0])}"
            if isinstance(value, State):
                return f"{type(value).__name__} of {value.batch}"
            tensor: Any = value
            return str(list(tensor.shape))

        return f"Output({', '.join(f'{name}: {shown(value)}' for name, value in self._fields.items())})"


FIELDS = tuple(Output.__annotations__)
