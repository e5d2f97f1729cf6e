"""A body as a source of features: which layers are read, how the tokens of a text become one vector, and a
linear layer on top.

Feature-based use (CoVe, ELMo) freezes the body; ULMFiT pools so and trains it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
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
from plmcore.models.word_table import WordTable
from plmcore.tasks.biattentive import Biattentive
from plmcore.vectors.table import FILE as VECTORS
from plmcore.vectors.table import Vectors, load_vectors

if TYPE_CHECKING:
    from plmcore.models import Model

PLACES = ("input", "output", "both")
POOLINGS = ("first", "last", "mean", "max", "concat")
RENAMED = {"mix.weights": "mix.scalars"}  # of older files
CONFIG, WEIGHTS = f"{FEATURES}.json", f"{FEATURES}.safetensors"


class Features(nn.Module):
    """logits [B, L] of texts, or with pooling None [B, T, L] of tokens.

    layers       "mix": learned weights; "last"; the number of one, 0 for the embeddings; "concat": all above
                 the embeddings side by side; "vectors": no layer, vectors alone
    pooling      the first or last token, mean or max over tokens; "concat": [last; max; mean] (ULMFiT)
    table        vectors of words, which stand beside the layers, and which CoVe reads
    encoder      cells of each direction of a biLSTM that reads them; 0: none
    features     where the layers are put: at the "input" of that biLSTM, at its "output", or at "both"
    biattentive  the biattentive classification network reads them, with `encoder` cells
    mix_penalty  lambda of lambda sum w^2 over the learned weights, added to the loss
    """

    HEAD = FEATURES

    def __init__(
        self,
        config: Config,
        body: nn.Module,
        layers: str | int = "mix",
        pooling: str | None = "mean",
        dropout: float = 0.1,
        *,
        table: WordTable | None = None,
        encoder: int = 0,
        features: str = "input",
        biattentive: bool = False,
        mix_penalty: float = 0.0,
    ):
        self.config, self.body, self.layers, self.pooling = config, body, layers, pooling
        self.table, self.hidden, self.features, self.mix_penalty = table, encoder, features, mix_penalty
        self.typed = biattentive  # the texts of a pair are told apart
        self.check(biattentive)
        above, beside = self.width, 0 if table is None else table.width
        places = [place for place in ("input", "output") if features in (place, "both")]
        mixed = layers == "mix"
        self.mix = nn.ScalarMix(self.count) if mixed and "input" in places else None
        self.mix_above = nn.ScalarMix(self.count) if mixed and "output" in places else None
        self.dropout = nn.Dropout(dropout)
        width = beside + (above if "input" in places else 0)
        self.biattention = Biattentive(width, encoder, config.num_labels, dropout) if biattentive else None
        self.encoder = nn.LSTM(width, encoder, bidirectional=True) if encoder and not biattentive else None
        width = (2 * encoder if encoder else width) + (above if "output" in places else 0)
        width *= 3 if pooling == "concat" else 1
        self.classifier = None if biattentive else nn.Linear(width, config.num_labels)

    def check(self, biattentive: bool) -> None:
        """ArgumentError for settings that do not go together, or with this body."""
        config, layers = self.config, self.layers
        if self.pooling is not None and self.pooling not in POOLINGS:
            raise ArgumentError(f"adapt.pooling must be one of {', '.join(POOLINGS)}, got {self.pooling!r}")
        if config.depth is None:
            raise ArgumentError(
                f"adapt.layers and adapt.pooling read one stack of layers, and {config.model_type} has two"
            )
        self.count = config.depth + 1  # the embeddings too
        named = ("mix", "last", "concat", "vectors") if self.table is not None else ("mix", "last", "concat")
        if layers not in named and not (type(layers) is int and 0 <= layers < self.count):
            raise ArgumentError(
                f"adapt.layers must be {', '.join(named)} or 0 to {self.count - 1}, got {layers!r}"
            )
        if self.features not in PLACES:
            raise ArgumentError(f"adapt.features must be {', '.join(PLACES)}, got {self.features!r}")
        if self.features != "input" and (biattentive or not self.hidden):
            raise ArgumentError(
                f"adapt.features={self.features} is for a biLSTM between input and output: set adapt.encoder"
            )
        if self.features == "output" and self.table is None:
            raise ArgumentError("adapt.features=output leaves nothing for the input: set adapt.vectors")
        if biattentive and (not self.hidden or self.pooling is None):
            raise ArgumentError("adapt.biattentive classifies texts, and needs adapt.encoder cells")
        if not self.reads_vectors:
            return
        if self.table is None:
            raise ArgumentError(
                f"{config.model_type} reads the vectors of words: set adapt.vectors to the file of those "
                f"that it was trained with"
            )
        if self.table.width != config.d_embed:
            raise ArgumentError(
                f"adapt.vectors has vectors of {self.table.width} numbers, and {config.model_type} reads "
                f"{config.d_embed}"
            )
        if layers in ("mix", 0):
            raise ArgumentError(
                f"adapt.layers={layers} is not for {config.model_type}: its vectors are another width and "
                f"are read anyway; take last, concat or a number"
            )

    @property
    def reads_vectors(self) -> bool:
        """Whether the body reads vectors, and not ids."""
        return getattr(self.body, "READS_VECTORS", False)

    @property
    def width(self) -> int:
        """Of what is read of the body's layers."""
        if self.layers == "vectors":
            return 0
        return self.config.width * ((self.config.depth or 1) if self.layers == "concat" else 1)

    def __call__(
        self,
        input_ids: Tensor,
        *,
        labels: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **inputs: Any,
    ) -> Output:
        """The output of a linear layer over the pooled features of the body."""
        vectors = None if self.table is None else self.table.of_characters(input_ids)  # [B, T, D]
        if token_type_ids is not None and not self.typed:
            inputs["token_type_ids"] = token_type_ids
        states = self.states(input_ids, vectors, attention_mask, inputs)
        x = joined([vectors, self.chosen(states, self.mix) if self.features != "output" else None])
        if self.biattention is not None:
            logits = self.biattention(*texts_of(x, attention_mask, token_type_ids))
            return Output(logits=logits, loss=self.loss(logits, labels))
        if self.encoder is not None:
            seen = None if attention_mask is None else ops.sum(ops.cast(attention_mask, "int64"), 1)
            x, _ = self.encoder(self.dropout(x), None, seen)  # [B, T, 2 H]
            x = joined([x, self.chosen(states, self.mix_above) if self.features != "input" else None])
        encoded = Encoded(x, Layout(input_ids), None)
        assert self.classifier is not None
        if self.pooling is None:
            encoded.rows = self.dropout(x)
            out = heads.language_model_output(encoded, labels, self.classifier)
            return out if labels is None else Output(logits=lambda: out.logits, loss=self.penalised(out.loss))
        mask = np.ones(tuple(input_ids.shape[:2])) if attention_mask is None else attention_mask.numpy()
        logits = self.classifier(self.dropout(self.pooled(encoded, mask)))  # [B, L]
        return encoded.output(logits=logits, loss=self.loss(logits, labels))

    def states(
        self, ids: Tensor, vectors: Tensor | None, mask: Tensor | None, inputs: Mapping[str, Any]
    ) -> Sequence[Tensor]:
        """Of the layers of the body, which in a frozen one have no dropout; none where they are not read."""
        if self.layers == "vectors":
            return ()
        frozen = not any(p.requires_grad for p in self.body.parameters())
        with nn.inference() if frozen else contextlib.nullcontext():
            given = vectors if self.reads_vectors else ids
            out = self.body(given, attention_mask=mask, **inputs, output_hidden_states=True)
            found: Sequence[Tensor] = out.hidden_states
            return found

    def chosen(self, states: Sequence[Tensor], mix: nn.ScalarMix | None) -> Tensor | None:
        """What is read of the layers.  [B, T, C]"""
        if not states:
            return None
        if mix is not None:
            return mix(states)
        if self.layers == "concat":
            return joined(states[1:])
        return states[-1 if self.layers == "last" else int(self.layers)]

    def loss(self, logits: Tensor, labels: Tensor | None) -> Tensor | None:
        """Of classes, with the penalty of the mix; None without labels."""
        if labels is None:
            return None
        return self.penalised(heads.classification_loss(self.config, logits, labels))

    def penalised(self, loss: Tensor) -> Tensor:
        """With the penalty of learned weights, while they are learned."""
        if not self.training or not self.mix_penalty:
            return loss
        for mix in (self.mix, self.mix_above):
            if mix is not None:
                loss = ops.add(loss, ops.affine(mix.penalty(), self.mix_penalty, 0.0))
        return loss

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


def joined(parts: Sequence[Tensor | None]) -> Tensor:
    """Those that are there, side by side.  [B, T, C] each"""
    found = [part for part in parts if part is not None]
    return found[0] if len(found) == 1 else ops.concat(found, 2)


def texts_of(
    x: Tensor, attention_mask: Tensor | None, types: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The features and masks of two texts, by their token types; of one text twice."""
    B, T, C = (int(n) for n in x.shape)
    mask = np.ones((B, T), bool) if attention_mask is None else attention_mask.numpy() != 0
    second = mask & (np.zeros_like(mask) if types is None else types.numpy() == 1)
    if not second.any():
        whole = Tensor(mask.astype(np.int64), device=x.device)
        return x, whole, x, whole
    rows = ops.reshape(x, (B * T, C))
    parts: list[Tensor] = []
    for own in (mask & ~second, second):
        order = np.argsort(~own, axis=1, kind="stable")[:, : own.sum(1).max()] + T * np.arange(B)[:, None]
        chosen = ops.index_select(rows, Tensor(order.reshape(-1), device=x.device))
        seen = np.arange(order.shape[1]) < own.sum(1)[:, None]
        parts += [
            ops.reshape(chosen, (B, order.shape[1], C)), Tensor(seen.astype(np.int64), device=x.device)
        ]  # fmt: skip
    return parts[0], parts[1], parts[2], parts[3]


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
        "encoder": model.hidden,
        "features": model.features,
        "biattentive": model.biattention is not None,
        "vectors": model.table is not None,
    }
    if model.table is not None:
        rows = np.array(model.table.matrix.numpy()[1:])
        Vectors(model.table.words, rows).save(folder / VECTORS)
    keys |= {"id2label": model.config.extra.get("id2label"), "problem_type": model.config.problem_type}
    with atomic_write(folder / CONFIG) as f:
        f.write((json.dumps(keys, indent=2) + "\n").encode())


def word_table(path: str | os.PathLike[str]) -> WordTable:
    """The vectors of a file."""
    vectors = load_vectors(path)
    return WordTable(vectors.words, vectors.matrix)


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
    table = word_table(folder) if keys.get("vectors") else None
    more = {k: keys[k] for k in ("encoder", "features", "biattentive") if k in keys}
    model = Features(config, lm.model, keys["layers"], keys["pooling"], keys["dropout"], table=table, **more)
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
