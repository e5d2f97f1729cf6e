"""Carousel: an LSTM whose cells only add, a small example of a family.

    i, g, o = W [x_t, x_{t-1}] + b      c_t = c_{t-1} + sigmoid(i) tanh(g)      h_t = sigmoid(o) tanh(c_t)

Shapes: B batch, T length, n sequences of each prompt, C width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plmcore import Tensor, nn, ops
from plmcore.models import Config, causal, heads, padding
from plmcore.models.declaration import GENERIC, Finetuning, Recipe, Size, TokenizerFormat
from plmcore.models.generates import Generates
from plmcore.models.labels import NEXT
from plmcore.models.outputs import Output
from plmcore.models.padding import EVERYWHERE, Encoded, Padded
from plmcore.nn.state import State, chosen


@dataclass(frozen=True, kw_only=True)
class CarouselConfig(Config):
    model_type: str = "carousel"
    vocab_size: int = 1000
    width: int = 64
    dropout: float = 0.1
    pad_token_id: int | None = None

    def check(self) -> None:
        self.at_least(1, "vocab_size", "width")
        self.probability("dropout")

    @property
    def depth(self) -> int:
        return 1

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.normal(0.1)


@dataclass(frozen=True)
class Carried(State):
    """The last embedding and the cell of each of n sequences of B prompts.  [B, n, C]"""

    x: Tensor
    c: Tensor

    @property
    def batch(self) -> Any:
        return self.c.shape[0]

    def tensors(self) -> dict[str, Tensor]:
        return {"x": self.x, "c": self.c}

    def rebuilt(self, tensors: Any) -> Carried:
        return Carried(**tensors)

    def select(self, live: Tensor | None, parents: Tensor) -> Carried:
        return Carried(chosen(self.x, live, parents), chosen(self.c, live, parents))


class Carousel(nn.Module):
    def __init__(self, config: CarouselConfig):
        C = config.width
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, C, weight_init=config.weight_init)
        self.gates = nn.Linear(2 * C, 3 * C, weight_init=config.weight_init)
        self.dropout = nn.Dropout(config.dropout)

    def cell(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """What is added to the cell, and its output gate.  [B, T, C] each"""
        i, g, o = ops.split(self.gates(ops.concat([x, before], 2)), (self.config.width,) * 3, 2)
        return ops.mul(ops.sigmoid(i), ops.tanh(g)), ops.sigmoid(o)

    def read(self, ids: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """x, c and h of every token; `hidden` are those that do not count.  ids [B, T] -> [B, T, C] each"""
        x = self.tokens(ids)
        added, gate = self.cell(x, ops.pad(ops.slice(x, 1, 0, ids.shape[1] - 1), [0, 1, 0], [0, 0, 0]))
        if hidden is not None:
            added = ops.masked_fill(added, ops.reshape(hidden, (*ids.shape, 1)), 0.0)
        c = ops.cumsum(added, 1)
        return x, c, ops.mul(gate, ops.tanh(c))

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
    ) -> Encoded:
        padding.check_ids(input_ids)
        layout = padding.layout(input_ids, attention_mask, (EVERYWHERE,))  # rows [B, T, C]
        x, _, h = self.read(input_ids, layout.hidden if isinstance(layout, Padded) else None)
        return Encoded(self.dropout(h), layout, [x, h] if output_hidden_states else None)

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        encoded = self.encode(*args, **inputs)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


class CarouselCausalLM(heads.Predicts, Generates):
    LABELS = (NEXT,)
    PADS = False

    def __init__(self, config: CarouselConfig):
        self.config, self.body = config, Carousel(config)
        self.lm_head = nn.Linear(config.width, config.vocab_size, bias=False, weight=self.body.tokens.weight)

    def logits(self, rows: Tensor) -> Tensor:
        return self.lm_head(rows)

    def prefill(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, State]:
        B, T = input_ids.shape
        x, c, h = (ops.slice(t, 1, T - 1, T) for t in self.body.read(input_ids))  # [B, 1, C]
        return self.logits(ops.reshape(h, (B, self.config.width))), Carried(x, c)

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, State]:
        state.check_batch(tokens.shape[0])
        x = self.body.tokens(tokens)  # [B, n, C]
        added, gate = self.body.cell(x, state.x)
        c = ops.add(state.c, added)
        return self.logits(ops.mul(gate, ops.tanh(c))), Carried(x, c)


CarouselSequenceClassification = heads.bound(
    "CarouselSequenceClassification", causal.LastTokenClassification, Carousel, "width weight_init"
)


def sized(s: Size) -> dict[str, Any]:
    return dict(width=s.width, dropout=s.dropout)


CONFIG = CarouselConfig
MODEL_TYPES = {"carousel": "Carousel"}
HEADS = {
    "base": Carousel,
    "causal-lm": CarouselCausalLM,
    "sequence-classification": CarouselSequenceClassification,
}
ARCHITECTURES = {
    "CarouselModel": "base",
    "CarouselForCausalLM": "causal-lm",
    "CarouselForSequenceClassification": "sequence-classification",
}
PREFIX = "model."
NAMES = {"tokens": "embedding", "gates": "gates", "lm_head": "lm_head", "score": "score"}
SPECIAL = dict(pad="<pad>", unk="<unk>", bos="<s>", eos="</s>")
TOKENIZERS = (TokenizerFormat("carousel", GENERIC, SPECIAL, kinds=("byte-bpe",)),)
RECIPES = {
    "carousel": Recipe(
        model=sized,
        head="causal-lm",
        objective=dict(name="causal-lm"),
        tokenizer="byte-bpe",
        vocab=1000,
        lr=1e-2,
        steps=1000,
        warmup=0.05,
    )
}
FINETUNING = Finetuning(lr=1e-2, small_lr_times=1.0)
