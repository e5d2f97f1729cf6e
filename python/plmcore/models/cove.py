"""CoVe: the encoder of a translation model, which reads word vectors and puts words into context
(McCann et al. 2017).

    cove(x) = biLSTM(GloVe(x));  a word is [GloVe(x); cove(x)] to a task, and 0 where it is unknown

Shapes: B batch, T words, D vectors, H cells of a direction, L layers.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore import nn
from plmcore._core import ArgumentError, FormatError, ShapeError, Tensor, ops
from plmcore.files.whole import read_json
from plmcore.formats import registry, torch_file
from plmcore.models import padding, spelling
from plmcore.models.config import Config
from plmcore.models.declaration import GENERIC, Checkpoint, Finetuning, TokenizerFormat
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded, Layout
from plmcore.models.word_table import WordTable


@dataclass(frozen=True, kw_only=True)
class CoveConfig(Config):
    model_type: str = "cove"
    d_embed: int = 300
    d_hidden: int = 300
    n_layers: int = 2
    dropout: float = 0.0
    max_characters_per_token: int = 50

    def check(self) -> None:
        self.at_least(1, "d_embed", "d_hidden", "n_layers")
        self.at_least(spelling.LEAST, "max_characters_per_token")
        self.probability("dropout")

    @property
    def vocab_size(self) -> int:
        """Of what texts are spelled with: words have vectors, and no ids."""
        return spelling.IDS

    @property
    def width(self) -> int:
        return 2 * self.d_hidden

    @property
    def depth(self) -> int:
        return self.n_layers


class Cove(nn.Module):
    """hidden_states are the vectors, [B, T, D], and the layers, [B, T, 2 H] each."""

    READS_VECTORS = True

    def __init__(self, config: CoveConfig):
        self.config = config
        widths = [config.d_embed, *[config.width] * (config.n_layers - 1)]
        self.layers = nn.ModuleList(nn.LSTM(width, config.d_hidden, bidirectional=True) for width in widths)
        self.dropout = nn.Dropout(config.dropout)

    def encode(
        self,
        inputs_embeds: Tensor,
        attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
    ) -> Encoded:
        """inputs_embeds [B, T, D], padding behind the words."""
        D = self.config.d_embed
        if (
            inputs_embeds.ndim != 3
            or "float" not in inputs_embeds.dtype
            or _differs(inputs_embeds.shape[2], D)
        ):
            raise ShapeError(
                f"inputs_embeds must be the vectors of words, numbers [batch, words, {D}], got "
                f"{inputs_embeds.dtype} {list(inputs_embeds.shape)}"
            )
        lengths = None
        if attention_mask is not None:
            padding.check_prefix(attention_mask, inputs_embeds.shape[:2], "inputs_embeds")
            lengths = ops.sum(ops.cast(ops.cast(attention_mask, "bool"), "int64"), 1)
        x = ops.cast(inputs_embeds, self.layers[0].weight_ih_l0.dtype)
        states = [x]
        for i, layer in enumerate(self.layers):
            x, _ = layer(self.dropout(x) if i else x, None, lengths)  # [B, T, 2 H]
            states.append(x)
        return Encoded(x, Layout(inputs_embeds), states if output_hidden_states else None)

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        encoded = self.encode(*args, **inputs)
        return encoded.output(last_hidden_state=encoded.rows)

    def program_inputs(self) -> dict[str, tuple[str | int, ...]]:
        """Of an exported program: dtype and sizes."""
        D = self.config.d_embed
        return {"inputs_embeds": ("float32", "B", "T", D), "attention_mask": ("int64", "B", "T")}

    def embed(
        self,
        sentences: Sequence[str] | Sequence[Sequence[str]],
        vectors: Any,
        batch_size: int = 32,
        *,
        layers: str | int = "last",
        with_vectors: bool = True,
    ) -> list[np.ndarray]:
        """[GloVe; CoVe] of each sentence, a list of words or a text that is split at white space.
        [words, ·] each

        vectors: those that the encoder was trained with, as plm.load_vectors opens them; a word that they
        lack is 0. layers: "last", the number of one from 0 on, or "all" of them side by side.
        with_vectors=False: CoVe alone.
        """
        if batch_size < 1:
            raise ArgumentError(f"embed: batch_size must be at least 1, got {batch_size}")
        if isinstance(sentences, str):
            spelling.sentences_of(sentences, 0)  # says what is needed
        L = self.config.n_layers
        if layers not in ("last", "all") and not (type(layers) is int and 0 <= layers < L):
            raise ArgumentError(f"embed: layers must be last, all or 0 to {L - 1}, got {layers!r}")
        table = WordTable(vectors.words, vectors.matrix)
        rows = [list(s.split() if isinstance(s, str) else s) for s in sentences]
        found: list[np.ndarray] = []
        with nn.inference():
            for start in range(0, len(rows), batch_size):
                chosen = rows[start : start + batch_size]
                mask = np.arange(max(map(len, chosen))) < np.array([len(r) for r in chosen])[:, None]
                numbers = np.zeros(mask.shape, np.int64)
                numbers[mask] = [table.number(word) for row in chosen for word in row]
                x = table(Tensor(numbers, device=self.device))
                states = self.encode(x, Tensor(mask, device=self.device), output_hidden_states=True).states
                assert states is not None
                number = L if layers in ("last", "all") else 1 + int(layers)
                above = states[1:] if layers == "all" else [states[number]]
                parts = [states[0], *above] if with_vectors else above
                whole = np.concatenate([part.numpy() for part in parts], 2)
                found += [whole[b, : len(row)] for b, row in enumerate(chosen)]
        return found


def _differs(size: Any, wanted: int) -> bool:
    return isinstance(size, int) and size != wanted


# ---- files ----

PREFIX_OF_FILES = re.compile(r"^(module\.)?(encoder\.)?rnn\.")


def opened(source: pathlib.Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """A state dict of torch.nn.LSTM; or the directory of a translation model, whose encoder is meant."""
    if not source.is_dir():
        arrays, _ = torch_file.read_checkpoint(source, "state_dict")
        return {name: registry.as_tensor("torch", name, array) for name, array in arrays.items()}, {}
    config = read_json(source / "config.json", "; is it the directory of a translation model?")
    if config.get("model_type") != "rnn-seq2seq" or config.get("cell", "lstm") != "lstm":
        raise FormatError(
            f"'{source}' is of {config.get('model_type')!r}: CoVe is the encoder of an rnn-seq2seq with "
            f"cell=lstm and bidirectional=true"
        )
    if config.get("reverse_source"):
        raise FormatError(f"'{source}' reads its source from the end: train it with reverse_source=false")
    tensors, _ = registry.read(source)
    names = [name for name in tensors if re.search(r"(^|\.)encoder\.rnn\.", name)]
    return {name[name.index("encoder.") :]: tensors[name] for name in names}, config


def converted(
    tensors: Mapping[str, Tensor], settings: Mapping[str, Any], ids: Mapping[str, int]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Keys of the config, and the tensors by the names of torch.nn.LSTM."""
    found = {PREFIX_OF_FILES.sub("", name): t for name, t in tensors.items()}
    first = found.get("weight_ih_l0")
    if first is None or first.ndim != 2 or int(first.shape[0]) % 4:
        raise FormatError("it has no weight_ih_l0 [4 H, D]: it is no state dict of torch.nn.LSTM")
    if "weight_ih_l0_reverse" not in found:
        raise FormatError("it has no weight_ih_l0_reverse: CoVe reads in both directions")
    layers = len([name for name in found if re.fullmatch(r"weight_ih_l\d+", name)])
    config = dict(d_embed=int(first.shape[1]), d_hidden=int(first.shape[0]) // 4, n_layers=layers)
    return config, found


CONFIG = CoveConfig
MODEL_TYPES = {"cove": "Cove"}
HEADS = {"base": Cove}
ARCHITECTURES = {"CoveModel": "base"}
PREFIX = ""
NAMES = {
    f"layers.{{i}}.{part}_l0{end}": f"{part}_l{{i}}{end}"
    for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    for end in ("", "_reverse")
}
TOKENIZERS = (
    TokenizerFormat("cove", GENERIC, dict(unk="<unk>"), "A", "A B:1", spelled="max_characters_per_token"),
)
FINETUNING = Finetuning(lr=1e-3, small_lr_times=1.0, layers="last", freeze="body", encoder=128, dropout=0.3)
CHECKPOINT = Checkpoint(open=opened, read=converted, head="base", vocabulary="")
