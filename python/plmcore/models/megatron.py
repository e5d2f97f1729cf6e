"""Checkpoints of Megatron as GLM's own program has them: mp_rank_00_model_states.pt, with the tensors under
`module`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from plmcore._core import FormatError, Tensor

TOKENS, POSITIONS = "word_embeddings.weight", "transformer.position_embeddings.weight"
BLOCKS = "transformer.block_position_embeddings.weight"
LAYER = "transformer.layers."
QKV, UP = "0.attention.query_key_value.weight", "0.mlp.dense_h_to_4h.weight"


def read(
    tensors: Mapping[str, Tensor], args: Mapping[str, Any], ids: Mapping[str, int]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The keys of the config that the tensors tell, and the tensors by their published names.

    The number of heads shows in no tensor: without args of the file it has to be given.
    """
    tensors = {re.sub(r"^(module\.|model\.)+", "", name): t for name, t in tensors.items()}
    needed = (TOKENS, POSITIONS, BLOCKS, LAYER + QKV, LAYER + UP)
    if missing := [name for name in needed if name not in tensors or tensors[name].ndim != 2]:
        raise FormatError(f"it has no matrix {missing[0]}: it is no checkpoint of GLM")
    V, C = (int(n) for n in tensors[TOKENS].shape)
    rows, inner = int(tensors[LAYER + QKV].shape[0]), int(tensors[LAYER + UP].shape[0])
    if rows != 3 * C:
        raise FormatError(
            f"it is one of several ranks: its query_key_value has {rows} rows, and a whole one {3 * C}; "
            f"merge them with Megatron first"
        )
    layers = {name[len(LAYER) :].partition(".")[0] for name in tensors if name.startswith(LAYER)}
    config: dict[str, Any] = dict(
        vocab_size=V,
        hidden_size=C,
        num_layers=len(layers),
        num_attention_heads=args.get("num_attention_heads"),
        max_sequence_length=int(tensors[POSITIONS].shape[0]) - 1,
        intermediate_size=None if inner == 4 * C else inner,
        block_position_encoding=True,
    )
    return config, tensors
