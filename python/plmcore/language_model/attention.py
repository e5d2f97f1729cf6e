"""Who looks at whom in a text: the attention weights of a model, as arrays, as text and as a page.

Shapes: L layers, H heads, T tokens that look, S tokens that are looked at.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from plmcore._core import ArgumentError, Tensor
from plmcore.files import pages
from plmcore.models.outputs import Output
from plmcore.nn import inference

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel

# kinds of maps: who looks, at whom
SIDES = {
    "attentions": ("source", "source"),
    "encoder_attentions": ("source", "source"),
    "decoder_attentions": ("target", "target"),
    "cross_attentions": ("target", "source"),
}


@dataclass
class Map:
    """One kind of attention. `layers` are their numbers from 0."""

    rows: list[str]  # T tokens
    columns: list[str]  # S tokens
    weights: np.ndarray  # float32 [L, H, T, S]
    layers: list[int]


class Attention:
    """Of a text: `maps` by kind ("attentions"; of an encoder-decoder "encoder_attentions",
    "decoder_attentions", "cross_attentions").
    """

    def __init__(self, maps: dict[str, Map], title: str):
        self.maps, self.title = maps, title

    @property
    def tokens(self) -> list[str]:
        return next(iter(self.maps.values())).columns

    @property
    def weights(self) -> np.ndarray:
        """Of the first kind, float32 [L, H, T, S]."""
        return next(iter(self.maps.values())).weights

    def text(self, layer: int, head: int, kind: str | None = None, k: int = 3) -> str:
        """A line for each token: the k it looks at most, with their weights."""
        chosen = self.chosen(kind)
        L, H = chosen.weights.shape[:2]
        if layer not in chosen.layers or not 0 <= head < H:
            raise ArgumentError(
                f"attention: there are the layers {chosen.layers} and the heads 0 to {H - 1}, not "
                f"layer {layer}, head {head}"
            )
        width = max(map(len, chosen.rows))
        lines = []
        for token, row in zip(chosen.rows, chosen.weights[chosen.layers.index(layer), head]):
            best = np.argsort(-row, kind="stable")[:k]
            lines.append(f"{token:>{width}}  " + "  ".join(f"{chosen.columns[j]} {row[j]:.2f}" for j in best))
        return "\n".join(lines)

    def html(self, path: str | os.PathLike[str]) -> None:
        """The page: every head of every layer, one of them large, with its tokens."""
        pages.drawer("attention")(path, self)

    def chosen(self, kind: str | None) -> Map:
        if kind is not None and kind not in self.maps:
            raise ArgumentError(f"attention: there is no {kind!r}; one of {', '.join(self.maps)}")
        return next(iter(self.maps.values())) if kind is None else self.maps[kind]

    def __repr__(self) -> str:
        return f"Attention({', '.join(f'{kind} {list(m.weights.shape)}' for kind, m in self.maps.items())})"


def attention(
    lm: LanguageModel,
    text: str,
    pair: str | None = None,
    *,
    target: str | None = None,
    layers: Sequence[int] | None = None,
) -> Attention:
    """As LanguageModel.attention."""
    if lm.tokenizer is None:
        raise ArgumentError(
            "attention: this model has no tokenizer; load it from a directory with tokenizer files"
        )
    if not isinstance(text, str) or not text:
        raise ArgumentError(f"attention: one text is needed, got {text!r}")
    batch = lm.tokenizer([text], None if pair is None else [pair], max_length=lm.config.longest)
    source = batch["input_ids"]
    if source.shape[1] == 0:
        raise ArgumentError(f"attention: the text {text!r} has no tokens")
    takes = [name for name in lm._takes(batch) if name != "attention_mask"]
    inputs = lm.model.tensors({name: batch[name] for name in takes})
    body = getattr(lm.model, "body", lm.model)
    read = source
    if getattr(body, "ENCODES", False):
        inputs.pop("token_type_ids", None)
        read = _target(lm, target, source)
        inputs |= lm.model.tensors({"decoder_input_ids": read})
    elif target is not None:
        raise ArgumentError(
            f"attention: target is for encoder-decoder models, {lm.config.model_type} reads one text"
        )
    with inference():
        out = cast(Output, (body if callable(body) else lm.model)(**inputs, output_attentions=True))
    names = {"source": _tokens(lm, source), "target": _tokens(lm, read)}
    maps = {}
    for kind in (k for k in SIDES if k in out):
        numbers = _chosen_layers(layers, len(out[kind]))
        rows, columns = (names[side] for side in SIDES[kind])
        stacked = np.stack([out[kind][i].numpy()[0].astype(np.float32) for i in numbers])
        maps[kind] = Map(rows, columns, stacked, numbers)
    return Attention(maps, f"{lm.config.model_type}: who looks at whom")


def _target(lm: LanguageModel, target: str | None, source: np.ndarray) -> np.ndarray:
    """What the decoder reads: the target behind the token it starts with, or what the model makes of the
    source.  [1, T]
    """
    if target is None:
        if lm.head != "seq2seq-lm":
            raise ArgumentError(
                "attention: pass target=, the text that the decoder reads; only a seq2seq-lm makes one itself"
            )
        return lm.generate(source)
    body = getattr(lm.model, "body", lm.model)
    tokenizer: Any = lm.tokenizer
    ids = tokenizer([target], max_length=lm.config.longest)["input_ids"]
    return body.shifted(Tensor(ids)).numpy()


def _tokens(lm: LanguageModel, ids: np.ndarray) -> list[str]:
    tokenizer: Any = lm.tokenizer
    return [tokenizer.token_of(int(i)) or f"<{int(i)}>" for i in ids[0]]


def _chosen_layers(layers: Sequence[int] | None, count: int) -> list[int]:
    if layers is None:
        return list(range(count))
    if not layers or any(not isinstance(i, int) or not 0 <= i < count for i in layers):
        raise ArgumentError(f"attention: layers must be numbers from 0 to {count - 1}, got {list(layers)}")
    return list(layers)
