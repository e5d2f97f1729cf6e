from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

FIELDS = (
    "loss",
    "logits",
    "last_hidden_state",
    "pooler_output",
    "hidden_states",
    "attentions",
    "prediction_logits",
    "seq_relationship_logits",
    "sop_logits",
    "start_logits",
    "end_logits",
    "start_top_log_probs",
    "start_top_index",
    "end_top_log_probs",
    "end_top_index",
    "cls_logits",
    "mc_loss",
    "mc_logits",
    "mems",
    "past_key_values",
    "decoder_hidden_states",
    "decoder_attentions",
    "cross_attentions",
    "encoder_last_hidden_state",
    "encoder_hidden_states",
    "encoder_attentions",
)


class Output(Mapping):
    """What a model returns: tensors, or tuples of them over layers, by the names that transformers gives them.

    A field that was not computed is None and is not among the keys. A field given as a function is computed when it is first
    read: with labels the loss needs the logits of few positions, and most callers need no others.
    """

    def __init__(self, **fields: Any | Callable[[], Any]):
        if unknown := [name for name in fields if name not in FIELDS]:
            raise TypeError(f"Output has no field {unknown[0]!r}; add it to outputs.FIELDS")
        self._fields = {name: fields[name] for name in FIELDS if fields.get(name) is not None}

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
            return f"{len(value)} x {shown(value[0])}" if isinstance(value, tuple) and value else str(list(value.shape))

        return f"Output({', '.join(f'{name}: {shown(value)}' for name, value in self._fields.items())})"
