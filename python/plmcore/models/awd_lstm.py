"""AWD-LSTM: a language model of LSTMs with five dropouts (Merity et al. 2017), and the body of ULMFiT's
classifier (Howard and Ruder 2018; models/window_classification.py).

    x = input_dropout(embedding with dropped rows)      h_l = hidden_dropout(LSTM_l(h_{l-1}))
    logits = E output_dropout(h_top) + b                the last h without; E the embedding, where tied

The recurrent weights lose elements (DropConnect); other masks are the same at all times. The state goes on
from window to window of a text. Without dropouts this is the plain LSTM language model.

Shapes: B batch, n sequences of each prompt, T length, C width of the embedding, V vocabulary.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import fastai_file, heads, padding
from plmcore.models.columns import Columns
from plmcore.models.config import Config
from plmcore.models.declaration import GENERIC, Checkpoint, Finetuning, Recipe, Size, TokenizerFormat
from plmcore.models.generates import Generates
from plmcore.models.labels import NEXT, placed
from plmcore.models.layer_states import LayerStates
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded
from plmcore.models.window_classification import WindowClassification
from plmcore.nn.state import State

DROPOUTS = ("embed_p", "input_p", "hidden_p", "weight_p", "output_p")
# fastai's names of keys
PUBLISHED = {
    "emb_sz": "d_embed",
    "n_hid": "d_hidden",
    "pad_token": "pad_token_id",
    "tie_weights": "tie_word_embeddings",
    "seq_len": "bptt",
}


@dataclass(frozen=True, kw_only=True)
class AwdLstmConfig(Config):
    """The dropouts are those of the language model; `classifier_dropouts` are the same five of the
    classifier. `drop_mult` scales all. locked: masks are the same at all times.
    """

    model_type: str = "awd-lstm"
    vocab_size: int = 60000
    d_embed: int = 400
    d_hidden: int = 1152
    n_layers: int = 3
    embed_p: float = 0.02
    input_p: float = 0.25
    hidden_p: float = 0.15
    weight_p: float = 0.2
    output_p: float = 0.1
    classifier_dropouts: tuple[float, ...] = (0.05, 0.4, 0.3, 0.5, 0.4)
    drop_mult: float = 1.0
    locked: bool = True
    out_bias: bool = True
    tie_word_embeddings: bool = True
    bptt: int = 72
    max_len: int = 1440
    head_width: int = 50
    head_p: float = 0.1
    backward: bool = False
    pad_token_id: int | None = 1

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], **changes: Any) -> Self:
        """fastai's names of keys are understood."""
        values, changes = ({PUBLISHED.get(k, k): v for k, v in d.items()} for d in (values, changes))
        return super().from_dict(values, **changes)

    def check(self) -> None:
        self.at_least(1, "vocab_size", "d_embed", "d_hidden", "n_layers", "bptt", "max_len", "head_width")
        self.probability(*DROPOUTS, "head_p")
        self.at_least(0, "drop_mult")
        if len(self.classifier_dropouts) != len(DROPOUTS) or not all(
            0 <= p < 1 for p in self.classifier_dropouts
        ):
            self.refuse("classifier_dropouts", f"must be {len(DROPOUTS)} probabilities in [0, 1)")
        for p in (*(getattr(self, key) for key in DROPOUTS), *self.classifier_dropouts):
            if p * self.drop_mult >= 1:
                self.refuse("drop_mult", f"must leave all dropouts below 1, also {p}")

    @property
    def lengths(self) -> dict[str, int]:
        whole = dict.fromkeys(("classification", "pair", "regression"), self.max_len)
        return whole | {"lm": self.bptt + 1}

    @property
    def width(self) -> int:
        return self.d_embed

    @property
    def widths(self) -> list[int]:
        """Of the layers' states."""
        return [*(self.d_hidden for _ in range(self.n_layers - 1)), self.d_embed]

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.uniform(-0.1, 0.1)

    def dropouts(self, classifies: bool = False) -> dict[str, float]:
        values = self.classifier_dropouts if classifies else [getattr(self, key) for key in DROPOUTS]
        return {key: p * self.drop_mult for key, p in zip(DROPOUTS, values)}

    def dropout(self, p: float) -> nn.Dropout:
        return nn.LockedDropout(p) if self.locked else nn.Dropout(p)


@dataclass
class Read(Encoded):
    """top: of the highest layer, each text from column 0 on, [B, T, C]; state: after the last tokens."""

    top: Tensor = field(kw_only=True)
    state: LayerStates = field(kw_only=True)
    columns: Columns = field(kw_only=True)

    def output(self, **fields: Any) -> Output:
        return super().output(**fields, state=self.state)


class Layer(nn.Module):
    def __init__(self, inputs: int, hidden: int, weight_p: float, dropout: nn.Dropout):
        self.lstm = nn.DropConnect(nn.LSTM(inputs, hidden), weight_p)
        self.dropout = dropout

    def __call__(
        self, x: Tensor, h: Tensor, c: Tensor, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.lstm(x, (h, c), lengths)
        return self.dropout(y), h, c


class AwdLstm(nn.Module):
    def __init__(self, config: AwdLstmConfig, classifies: bool = False):
        p = config.dropouts(classifies)
        self.config, self.embed_p = config, p["embed_p"]
        self.tokens = nn.Embedding(config.vocab_size, config.d_embed, weight_init=config.weight_init)
        self.dropout = config.dropout(p["input_p"])
        self.blocks = nn.ModuleList()
        inputs = config.d_embed
        for i, hidden in enumerate(config.widths):
            last = i == config.n_layers - 1
            dropout = config.dropout(0.0 if last else p["hidden_p"])
            self.blocks.append(Layer(inputs, hidden, p["weight_p"], dropout))
            inputs = hidden

    def embed(self, ids: Tensor) -> Tensor:
        """[...] -> [..., C]; while training whole rows of the table are 0, the others scaled."""
        x = self.tokens(ids)
        if not self.training or not self.embed_p:
            return x
        rows = ops.full((self.config.vocab_size, 1), 1.0, x.dtype, like=x)
        return ops.mul(x, ops.embedding(ops.dropout(rows, self.embed_p), ids))

    def run(
        self, x: Tensor, state: LayerStates, lengths: Tensor | None = None, n: Any = 1
    ) -> tuple[list[Tensor], LayerStates]:
        """Embeddings -> the output of each layer, and the state.  [B n, T, C]"""
        x = self.dropout(x)
        outputs, after = [], []
        for block, (h, c) in zip(self.blocks, state):
            x, h, c = block(x, h, c, lengths)
            outputs.append(x)
            after.append((h, c))
        return outputs, LayerStates.of(after, n)

    def begin(self, x: Tensor, state: Any) -> LayerStates:
        """The state before the texts: zeros unless one is given."""
        widths = self.config.widths
        return LayerStates.zeros(widths, x) if state is None else LayerStates.given(state, widths, x.shape[0])

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        state: Any = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
    ) -> Read:
        """state: of the call that read the text before this, as out.state; it may also be pairs (h, c)."""
        padding.check_ids(input_ids)
        layout = padding.layout(input_ids, attention_mask)
        columns = Columns(layout)
        rows = self.embed(layout.pack(input_ids))
        x = columns.of(rows)
        outputs, after = self.run(x, self.begin(x, state), columns.lengths)
        states = [rows, *map(columns.rows, outputs)] if output_hidden_states else None
        top = outputs[-1]
        return Read(columns.rows(top), layout, states, top=top, state=after, columns=columns)

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        encoded = self.encode(*args, **inputs)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


class AwdLstmCausalLM(heads.Predicts, Generates):
    """logits [B, T, V] of the token that follows each; out.state goes on with the text behind them.

    While training also out.last_hidden_state and out.dropped_hidden_state, what the output layer has read:
    their sizes and steps may be penalised (criteria.LayerStates).
    """

    LABELS = (NEXT,)
    CARRIES = True

    def __init__(self, config: AwdLstmConfig):
        self.config, self.body = config, AwdLstm(config)
        self.dropout = config.dropout(config.dropouts()["output_p"])
        self.decoder = nn.Linear(
            config.d_embed, config.vocab_size, bias=config.out_bias, weight_init=config.weight_init,
            weight=self.body.tokens.weight if config.tie_word_embeddings else None,
        )  # fmt: skip

    def logits(self, rows: Tensor) -> Tensor:
        return self.decoder(rows)

    def __call__(self, input_ids: Tensor, *args: Any, labels: Tensor | None = None, **inputs: Any) -> Output:
        padding.check_ids(input_ids, labels=labels)
        encoded = self.body.encode(input_ids, *args, **inputs)
        fields: dict[str, Any] = {}
        if self.training:
            dropped = self.dropout(encoded.top)
            fields = dict(last_hidden_state=encoded.top, dropped_hidden_state=dropped)
            encoded.rows = encoded.columns.rows(dropped)
        return heads.language_model_output(encoded, placed(NEXT, labels), self.logits, **fields)

    def prefill(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, State]:
        encoded = self.body.encode(input_ids, attention_mask)
        return self.logits(encoded.columns.last(encoded.top)), encoded.state

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, State]:
        state.check_batch(tokens.shape[0])
        B, n = tokens.shape
        x = self.body.embed(ops.reshape(tokens, (B * n, 1)))
        outputs, after = self.body.run(x, state, n=n)
        return self.logits(ops.reshape(outputs[-1], (B, n, self.config.d_embed))), after


AwdLstmSequenceClassification = heads.bound(
    "AwdLstmSequenceClassification", WindowClassification, functools.partial(AwdLstm, classifies=True)
)


CONFIG = AwdLstmConfig
MODEL_TYPES = {"awd-lstm": "AwdLstm"}
HEADS = {
    "base": AwdLstm,
    "causal-lm": AwdLstmCausalLM,
    "sequence-classification": AwdLstmSequenceClassification,
}
ARCHITECTURES = {
    "AwdLstmModel": "base",
    "AwdLstmForCausalLM": "causal-lm",
    "AwdLstmForSequenceClassification": "sequence-classification",
}
PREFIX = "0."
NAMES = {
    "tokens": "encoder",
    "blocks.{i}.lstm.layer.weight_hh_l0": "rnns.{i}.weight_hh_l0_raw",
    "blocks.{i}.lstm.layer.weight_ih_l0": "rnns.{i}.module.weight_ih_l0",
    "blocks.{i}.lstm.layer.bias_ih_l0": "rnns.{i}.module.bias_ih_l0",
    "blocks.{i}.lstm.layer.bias_hh_l0": "rnns.{i}.module.bias_hh_l0",
    "decoder": "1.decoder",
    "norm1": "1.layers.0.0",
    "up": "1.layers.0.2",
    "norm2": "1.layers.1.0",
    "down": "1.layers.1.2",
}
DROPPED = (r"encoder_dp\.emb\.weight$", r"module\.weight_hh_l0$", r"num_batches_tracked$")
RENAMED = ((r"^0\.module\.", "0."),)  # of a classifier
SPECIAL = dict(unk="xxunk", pad="xxpad", bos="xxbos", eos="xxeos")
TOKENIZERS = (
    TokenizerFormat(
        "awd-lstm", GENERIC, SPECIAL, single="bos A", pair="bos A bos B", kinds=("words",), splits=True
    ),
)
CHECKPOINT = Checkpoint(state="model", settings="hyper_params", read=fastai_file.read, vocabulary="list")


def sized(s: Size) -> dict[str, Any]:
    return dict(n_layers=s.layers, d_embed=s.width, d_hidden=1152 if s.width == 400 else 2 * s.width,
                bptt=None, drop_mult=1.0 if s.dropout else 0.0)  # fmt: skip


def streams(chosen: dict[str, dict[str, Any]]) -> None:
    """Rows go on from batch to batch; the last token of a window is the first of the next. The classifier's
    windows are as long.
    """
    objective, data = chosen["objective"], chosen["data"]
    chosen["model"]["bptt"] = chosen["model"]["bptt"] or max(1, data["length"] - 1)
    if chosen["train"]["carry"] and objective["name"] == "causal-lm":
        usual = dict(stride=max(1, data["length"] - 1), streams=data["batch"])
        objective |= {k: v for k, v in usual.items() if objective[k] is None}


RECIPES = {
    "awd-lstm": Recipe(
        model=sized,
        head="causal-lm",
        objective=dict(name="causal-lm"),
        tokenizer="words",
        special_tokens="gpt2",  # of pieces; words have their own
        vocab=60_000,
        lr=30.0,
        small_lr=30.0,
        steps=500_000,
        warmup=0.0,
        optim=dict(kind="sgd", weight_decay=1.2e-6, clip_norm=0.25, betas=None, eps=None),
        schedule=dict(kind="constant"),
        data=dict(documents="line", sentences="rule", unwrap=False),
        train=dict(carry=True, vary=True, ar=2.0, tar=1.0, average="triggered"),
        sizes={
            "tiny": Size(2, 64, 1, 33, 12, 1, 4096, 2000, dropout=0.0),
            "mini": Size(3, 128, 1, 51, 16, 1, 10_000, 10_000),
            "small": Size(3, 200, 1, 71, 20, 1, 20_000, 20_000),
            "medium": Size(3, 300, 1, 71, 32, 1, 30_000, 50_000),
            "base": Size(3, 400, 1, 71, 80, 1, None, None),
        },
        lacks=("large",),
        derive=streams,
    )
}
FINETUNING = Finetuning(
    lr=0.01,
    small_lr_times=1.0,
    optim=dict(kind="adam", betas=[0.7, 0.99], layer_decay=1 / 2.6),
    schedule="slanted",
    epochs=6,
    unfreeze_every=1.0,
    text=dict(optim=dict(lr=0.004), train=dict(epochs=3, carry=True, vary=True, ar=2.0, tar=1.0)),
)
