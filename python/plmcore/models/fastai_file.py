"""Language models that fastai has saved: the state dict of its AWD_LSTM, of any version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from plmcore._core import FormatError, Tensor

OLD = re.compile(r"\.module(\.weight_hh_l0_raw)$")  # before fastai 1
REPEATED = re.compile(r"^0\.(encoder_dp\.emb|encoder_with_dropout\.embed)\.weight$")


def read(
    tensors: Mapping[str, Tensor], settings: Mapping[str, Any], ids: Mapping[str, int]
) -> tuple[dict[str, Any], Mapping[str, Tensor]]:
    """The keys of the config, by the sizes of the tensors, and those under their names of today."""
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
    own = tensors.get("1.decoder.weight")
    tied = own is None or (own.shape == table.shape and bool((own.numpy() == table.numpy()).all()))
    keys = dict(
        vocab_size=V,
        d_embed=C,
        n_layers=layers,
        out_bias="1.decoder.bias" in tensors,
        tie_word_embeddings=tied,
        pad_token_id=ids.get("pad", 1),
    )
    if layers > 1:  # else its width is that of the embedding
        keys["d_hidden"] = recurrent.shape[0] // 4
    if tied:
        tensors.pop("1.decoder.weight", None)
    return keys, tensors
