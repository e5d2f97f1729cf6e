"""A body as a source of features: which layers are read, how the tokens of a text become one vector, and a
linear layer on top.

Feature-based use (CoVe, ELMo) freezes the body; ULMFiT pools so and trains it.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from plmcore import language_model, nn
from plmcore._core import ArgumentError, FormatError, Tensor, ops
from plmcore.files.whole import atomic_write, read_json
from plmcore.formats import safetensors
from plmcore.language_model import FEATURES, directory
from plmcore.models import heads, padding
from plmcore.models.config import Config
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded, Layout

if TYPE_CHECKING:
    from plmcore.models import Model

POOLINGS = ("first", "last", "mean", "max", "concat")
RENAMED = {"mix.weights": "mix.scalars"}  # of older files
CONFIG, WEIGHTS = f"{FEATURES}.json", f"{FEATURES}.safetensors"


class Features(nn.Module):
    """logits [B, L] of texts, or with pooling None [B, T, L] of tokens.

    layers    "mix": learned weights; "last"; or the number of one, 0 for the embeddings
    pooling   the first or last token, mean or max over tokens; "concat": [last; max; mean] (ULMFiT)
    """

    HEAD = FEATURES

    def __init__(
        self,
        config: Config,
        body: nn.Module,
        layers: str | int = "mix",
        pooling: str | None = "mean",
        dropout: float = 0.1,
    ):
        if pooling is not None and pooling not in POOLINGS:
            raise ArgumentError(f"adapt.pooling must be one of {', '.join(POOLINGS)}, got {pooling!r}")
        if config.depth is None:
            raise ArgumentError(
                f"adapt.layers and adapt.pooling read one stack of layers, and {config.model_type} has two"
            )
        count = config.depth + 1  # the embeddings too
        if layers not in ("mix", "last") and not (isinstance(layers, int) and 0 <= layers < count):
            raise ArgumentError(f"adapt.layers must be mix, last or 0 to {count - 1}, got {layers!r}")
        self.config, self.body, self.layers, self.pooling = config, body, layers, pooling
        self.mix = nn.ScalarMix(count) if layers == "mix" else None
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(config.width * (3 if pooling == "concat" else 1), config.num_labels)

    def __call__(
        self,
        input_ids: Tensor,
        *,
        labels: Tensor | None = None,
        attention_mask: Tensor | None = None,
        **inputs: Any,
    ) -> Output:
        """The output of a linear layer over the pooled features of the body."""
        states = self.body(
            input_ids, attention_mask=attention_mask, **inputs, output_hidden_states=True
        ).hidden_states
        x = (
            self.mix(states) if self.mix is not None else states[-1 if self.layers == "last" else self.layers]
        )  # [B, T, C]
        encoded = Encoded(x, Layout(input_ids), None)
        if self.pooling is None:
            encoded.rows = self.dropout(x)
            return heads.language_model_output(encoded, labels, self.classifier)
        mask = np.ones(tuple(input_ids.shape)) if attention_mask is None else attention_mask.numpy()
        logits = self.classifier(self.dropout(self.pooled(encoded, mask)))  # [B, L]
        loss = None if labels is None else heads.classification_loss(self.config, logits, labels)
        return encoded.output(logits=logits, loss=loss)

    def pooled(self, encoded: Encoded, mask: np.ndarray) -> Tensor:
        """[B, C], or [B, 3 C]"""
        states = encoded.rows  # [B, T, C], 0 for padding
        B, T, _ = states.shape
        given = functools.partial(Tensor, device=states.device)
        places = {
            "first": lambda: padding.rows_at(encoded, given((mask != 0).argmax(1).astype(np.int64))),
            "last": lambda: padding.rows_at(
                encoded, given((T - 1 - (mask != 0)[:, ::-1].argmax(1)).astype(np.int64))
            ),
            "mean": lambda: ops.div(ops.sum(states, 1), given(mask.sum(1, keepdims=True).astype(np.float32))),
            "max": lambda: ops.max(ops.masked_fill(states, given((mask == 0).reshape(B, T, 1)), -1e30), 1),
        }
        if self.pooling == "concat":
            return ops.concat([places[name]() for name in ("last", "max", "mean")], 1)
        return places[cast(str, self.pooling)]()


def save(model: Features, folder: str | os.PathLike[str]) -> None:
    """The body as a model directory, and beside it what reads its features."""
    folder = pathlib.Path(folder)
    directory.write_model(cast("Model", model.body), folder)
    own = {
        name: np.array(t.numpy()) for name, t in model.state_dict().items() if not name.startswith("body.")
    }
    safetensors.write(folder / WEIGHTS, own, {"format": "pt"})
    keys = {
        "layers": model.layers,
        "pooling": model.pooling,
        "num_labels": model.config.num_labels,
        "dropout": model.dropout.p,
    }
    keys |= {"id2label": model.config.extra.get("id2label"), "problem_type": model.config.problem_type}
    with atomic_write(folder / CONFIG) as f:
        f.write((json.dumps(keys, indent=2) + "\n").encode())


def load(folder: str | os.PathLike[str], **options: Any) -> Any:
    """A LanguageModel over the features of a directory that `save` wrote, as plm.load opens it with these
    options; lm.classify works.
    """
    folder = pathlib.Path(folder)
    keys = read_json(folder / CONFIG)
    if absent := [
        k for k in ("layers", "pooling", "num_labels", "dropout", "id2label", "problem_type") if k not in keys
    ]:
        raise FormatError(f"'{folder / CONFIG}' has no {absent[0]}")
    lm = language_model.read(folder, "base", **options)
    config = lm.config.replace(num_labels=keys["num_labels"], problem_type=keys["problem_type"])
    if keys["id2label"]:
        config = config.replace(extra={**config.extra, "id2label": keys["id2label"]})
    model = Features(config, lm.model, keys["layers"], keys["pooling"], keys["dropout"])
    tensors, _ = safetensors.read(folder / WEIGHTS, mapped=options.get("mapped", True))
    tensors = {RENAMED.get(name, name): t for name, t in tensors.items()}
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    wanted = [name for name in missing if not name.startswith("body.")]
    if wanted or unexpected:
        raise FormatError(
            f"'{folder / WEIGHTS}' does not fit its {CONFIG}: {', '.join(wanted or unexpected)}"
        )
    lm.model = cast("Model", model.eval())
    return lm
