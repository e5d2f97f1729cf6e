"""Convolutional networks for text: filters of several widths and the maximum of each over time (Kim 2014),
over embeddings or over a stack of windows, h_i = relu(W [x_{i-k}; ...; x_{i+k}] + b), that are 0 outside the
text: a position then sees 1 + 2 k L others.

A text shorter than the widest filter ends in zero vectors.

Shapes: B batch, T length, C width, F filters in all; rows are [B, T, C], or [N, C] where padding was dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plmcore import nn
from plmcore._core import Dim, Tensor, ops
from plmcore.models import heads, padding
from plmcore.models.columns import Columns
from plmcore.models.config import MOST, Config
from plmcore.models.declaration import GENERIC, Finetuning, TokenizerFormat, WordVectors
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded
from plmcore.models.relative import count


@dataclass(frozen=True, kw_only=True)
class CNNConfig(Config):
    """Kim's CNN-rand. filters: (width, how many) of each kind; layers, window: L and k of the stack.

    static: the embeddings are not trained; max_norm: of the weights of each class, 0 for any.
    """

    model_type: str = "cnn"
    vocab_size: int = 20_000
    d_embed: int = 300
    filters: tuple[Any, ...] = ((3, 100), (4, 100), (5, 100))
    layers: int = 0
    window: int = 1
    d_hidden: int | None = None  # of the stack; None: d_embed
    static: bool = False
    dropout: float = 0.5
    max_norm: float = 3.0
    pad_token_id: int | None = 0

    def check(self) -> None:
        self.at_least(1, "vocab_size", "d_embed")
        self.at_least(0, "layers", "window", "max_norm")
        if self.d_hidden is not None:
            self.at_least(1, "d_hidden")
        self.probability("dropout")
        if not self.filters or not all(_is_pair(f) for f in self.filters):
            self.refuse("filters", f"must be pairs of a width and a number, from 1 to {MOST}")
        object.__setattr__(self, "filters", tuple(map(tuple, self.filters)))  # lists in config.json

    @property
    def width(self) -> int:
        return self.d_hidden or self.d_embed if self.layers else self.d_embed

    @property
    def depth(self) -> int:
        return self.layers

    @property
    def token_init(self) -> nn.init.Init:
        return nn.init.uniform(-0.25, 0.25)


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= MOST for n in value)
    )


class CNN(nn.Module):
    """Embeddings, and the stack of windows where there is one."""

    def __init__(self, config: CNNConfig):
        cfg = self.config = config
        self.embedding = nn.Embedding(cfg.vocab_size, cfg.d_embed, weight_init=cfg.token_init)
        widths = [cfg.d_embed, *(cfg.width for _ in range(cfg.layers))]
        self.windows = nn.ModuleList(
            nn.Conv1d(a, b, 2 * cfg.window + 1, padding=cfg.window) for a, b in zip(widths, widths[1:])
        )

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,  # it has none
        reads: padding.Reads = (),
    ) -> Encoded:
        padding.check_ids(input_ids)
        layout = padding.layout(input_ids, attention_mask, reads)
        columns = Columns(layout)
        rows = self.embedding(layout.pack(input_ids))
        rows = rows.detach() if self.config.static else rows
        states, x = [rows], columns.of(rows)  # [B, T, C], 0 behind the ends
        for conv in self.windows:
            x = ops.relu(conv(x))
            if columns.lengths is not None:
                x = ops.masked_fill(x, behind(columns.lengths, layout.T), 0.0)
            states.append(columns.rows(x))
        return Encoded(states[-1], layout, states if output_hidden_states else None)

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        encoded = self.encode(*args, **inputs)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


def behind(lengths: Tensor, T: int | Dim) -> Tensor:
    """Which of T places lie behind the ends.  bool [B, T, 1]"""
    at = ops.reshape(ops.arange(0, T, like=lengths), (1, T, 1))
    return ops.greater_equal(at, ops.reshape(lengths, (lengths.shape[0], 1, 1)))


class CNNSequenceClassification(CNN):
    """The body with filters and classes: its parameters have the same names."""

    def __init__(self, config: CNNConfig):
        super().__init__(config)
        self.convs = nn.ModuleList(nn.Conv1d(config.width, n, width) for width, n in config.filters)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(sum(n for _, n in config.filters), config.num_labels)
        self.max_norms = {"classifier.weight": config.max_norm} if config.max_norm else {}

    @property
    def body(self) -> CNN:
        return self

    def pooled(self, encoded: Encoded) -> Tensor:
        """The largest value of each filter over the windows inside the text.  [B, F]"""
        B, T = encoded.layout.B, encoded.layout.T
        columns = Columns(encoded.layout)
        x = columns.of(encoded.rows)
        widest = max(width for width, _ in self.config.filters)
        lengths = columns.lengths
        if lengths is None:
            lengths = ops.broadcast_to(count(T, x), (B,))
        reaching = ops.maximum(lengths, ops.full((), widest, "int64", like=lengths))
        x = ops.pad(x, (0, 0, 0), (0, widest - 1, 0))  # [B, T + widest - 1, C]
        found = []
        for conv, (width, _) in zip(self.convs, self.config.filters):
            y = ops.relu(conv(x))  # [B, T + widest - width, n], none below 0
            windows = ops.affine(reaching, 1.0, 1.0 - width)
            found.append(ops.max(ops.masked_fill(y, behind(windows, T + widest - width), 0.0), 1))
        return ops.concat(found, 1)

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        encoded = self.encode(input_ids, **inputs)
        logits = self.classifier(self.dropout(self.pooled(encoded)))  # [B, L]
        loss = None if labels is None else heads.classification_loss(self.config, logits, labels)
        return encoded.output(logits=logits, loss=loss)


class CNNTokenClassification(CNN):
    """The body with classes of each token."""

    def __init__(self, config: CNNConfig):
        super().__init__(config)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(config.width, config.num_labels)

    @property
    def body(self) -> CNN:
        return self

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        encoded = self.encode(input_ids, **inputs, reads=(labels,))
        encoded.rows = self.dropout(encoded.rows)
        return heads.language_model_output(encoded, labels, self.classifier)


CONFIG = CNNConfig
MODEL_TYPES = {"cnn": "CNN"}
HEADS = {
    "base": CNN,
    "sequence-classification": CNNSequenceClassification,
    "token-classification": CNNTokenClassification,
}
ARCHITECTURES = {
    "CNNModel": "base",
    "CNNForSequenceClassification": "sequence-classification",
    "CNNForTokenClassification": "token-classification",
}
PREFIX = ""
NAMES = {
    "embedding": "embedding",
    "windows.{i}": "windows.{i}",
    "convs.{i}": "convs.{i}",
    "classifier": "classifier",
}
TOKENIZERS = (
    TokenizerFormat(
        "cnn", GENERIC, dict(pad="<pad>", unk="<unk>", sep="</s>"), "A", "A sep B", kinds=("words",)
    ),
)
FINETUNING = Finetuning(
    lr=1.0,
    small_lr_times=1.0,
    warmup_share=0.0,
    optim=dict(kind="adadelta", betas=None, rho=0.95, eps=1e-6, weight_decay=0.0),
    schedule="constant",
)
VECTORS = WordVectors("embedding.weight", "d_embed")
