"""Models that fastai has saved: state dicts of language models and classifiers of its AWD_LSTM, of any
version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from plmcore._core import FormatError, Tensor

OLD = re.compile(r"\.module(\.weight_hh_l0_raw)$")  # before fastai 1
CLASSIFIER = re.compile(r"^0\.module\.")
MATRIX = re.compile(r"^1\.layers\.(\d)\.\d\.weight$")  # the number depends on whether there is dropout
REPEATED = re.compile(r"^0\.(encoder_dp\.emb|encoder_with_dropout\.embed)\.weight$")


Found = tuple[dict[str, Any], Mapping[str, Tensor]]


def read(tensors: Mapping[str, Tensor], settings: Mapping[str, Any], ids: Mapping[str, int]) -> Found:
    """The keys of the config, by the sizes of the tensors, and those under their names of today."""
    classifies = any(map(CLASSIFIER.match, tensors))
    tensors = {CLASSIFIER.sub("0.", name): t for name, t in tensors.items()}
    tensors = {OLD.sub(r"\1", name): t for name, t in tensors.items() if not REPEATED.match(name)}
    table, recurrent = (tensors.get(name) for name in ("0.encoder.weight", "0.rnns.0.weight_hh_l0_raw"))
    if table is None or recurrent is None or table.ndim != 2 or recurrent.ndim != 2:
        raise FormatError(
            "it has no matrices 0.encoder.weight and 0.rnns.0.weight_hh_l0_raw of fastai's AWD_LSTM"
        )
    V, C = table.shape
    if ids and ids["size"] != V:
        raise FormatError(
            f"the vocabulary has {ids['size']} words, 0.encoder.weight {V} rows; they must be equal"
        )
    layers = sum(name.endswith(".weight_hh_l0_raw") for name in tensors)
    keys: dict[str, Any] = dict(vocab_size=V, d_embed=C, n_layers=layers, pad_token_id=ids.get("pad", 1))
    if layers > 1:  # else its width is that of the embedding
        keys["d_hidden"] = recurrent.shape[0] // 4
    return with_classifier(keys, tensors) if classifies else with_decoder(keys, tensors, table)


def with_decoder(keys: dict[str, Any], tensors: dict[str, Tensor], table: Tensor) -> Found:
    own = tensors.get("1.decoder.weight")
    tied = own is None or (own.shape == table.shape and bool((own.numpy() == table.numpy()).all()))
    if tied:
        tensors.pop("1.decoder.weight", None)
    return keys | {"tie_word_embeddings": tied, "out_bias": "1.decoder.bias" in tensors}, tensors


def with_classifier(keys: dict[str, Any], tensors: dict[str, Tensor]) -> Found:
    """The matrices of its two layers under one name, whatever stands before them."""
    named = {
        MATRIX.sub(r"1.layers.\1.2.weight", name) if t.ndim == 2 else name: t for name, t in tensors.items()
    }
    up, down = (named.get(f"1.layers.{i}.2.weight") for i in (0, 1))
    if up is None or down is None or any(name.startswith("1.layers.2.") for name in named):
        raise FormatError("its classifier must have two layers, 1.layers.0 and 1.layers.1")
    keys |= {"head_width": up.shape[0], "num_labels": down.shape[0]}
    return keys | {"architectures": ["AwdLstmForSequenceClassification"]}, named
