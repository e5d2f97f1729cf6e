"""GLM in PyTorch as one would write it today: a mask for torch's fused attention, and logits of the labelled
positions alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F


class Layer(torch.nn.Module):
    def __init__(self, C: int, heads: int):
        super().__init__()
        self.heads = heads
        self.input_layernorm, self.post_attention_layernorm = torch.nn.LayerNorm(C), torch.nn.LayerNorm(C)
        self.attention = torch.nn.ModuleDict(
            dict(query_key_value=torch.nn.Linear(C, 3 * C), dense=torch.nn.Linear(C, C))
        )
        self.mlp = torch.nn.ModuleDict(
            dict(dense_h_to_4h=torch.nn.Linear(C, 4 * C), dense_4h_to_h=torch.nn.Linear(4 * C, C))
        )

    def forward(self, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        B, T, C = x.shape
        qkv = self.attention["query_key_value"](self.input_layernorm(x))
        q, k, v = qkv.view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        x = x + self.attention["dense"](y.transpose(1, 2).reshape(B, T, C))
        h = self.mlp["dense_h_to_4h"](self.post_attention_layernorm(x))
        return x + self.mlp["dense_4h_to_h"](F.gelu(h, approximate="tanh"))


class GLM(torch.nn.Module):
    """Named as the published files are.  -> the loss"""

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        C, rows = config["hidden_size"], config["max_sequence_length"] + 1
        layers = (Layer(C, config["num_attention_heads"]) for _ in range(config["num_layers"]))
        self.word_embeddings = torch.nn.Embedding(config["vocab_size"], C)
        self.transformer = torch.nn.ModuleDict(
            dict(
                position_embeddings=torch.nn.Embedding(rows, C),
                block_position_embeddings=torch.nn.Embedding(rows, C),
                layers=torch.nn.ModuleList(layers),
                final_layernorm=torch.nn.LayerNorm(C),
            )
        )

    def forward(
        self,
        input_ids: torch.Tensor,
        position_ids: torch.Tensor,
        block_position_ids: torch.Tensor,
        source_lengths: torch.Tensor,
        labels: torch.Tensor,
    ) -> torch.Tensor:
        T, stack = input_ids.shape[1], self.transformer
        x = self.word_embeddings(input_ids) + stack["position_embeddings"](position_ids)
        x = x + stack["block_position_embeddings"](block_position_ids)
        source = torch.arange(T) < source_lengths[:, None]  # [B, T]
        seen = torch.ones(T, T, dtype=torch.bool).tril() | source[:, None]  # [B, T, T]
        for layer in stack["layers"]:
            x = layer(x, seen[:, None])
        chosen = labels != -100
        logits = stack["final_layernorm"](x)[chosen] @ self.word_embeddings.weight.T
        return F.cross_entropy(logits, labels[chosen])
