"""The neural probabilistic language model of Bengio et al. (2003): the next word from the `context` words
before it, by one hidden layer.

    x = [C(w_{t-n+1}); ...; C(w_t)]        y_{t+1} = b + W x + U tanh(H x + d), W x where `direct` is true

Where a text has fewer words before a place, the padding token stands before it.

Shapes: B batch, T length, n words of context, m width of a word, h hidden width, V vocabulary, N sequences of
each prompt; rows are [B, T, C], or [R, C] where padding was dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plmcore import nn
from plmcore._core import Dim, Tensor, ops
from plmcore.models import heads, padding
from plmcore.models.columns import Columns
from plmcore.models.config import Config
from plmcore.models.declaration import GENERIC, Recipe, Size, TokenizerFormat
from plmcore.models.generates import Generates
from plmcore.models.labels import NEXT
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded
from plmcore.nn.state import State, chosen


@dataclass(frozen=True, kw_only=True)
class NPLMConfig(Config):
    model_type: str = "nplm"
    vocab_size: int = 17_000
    context: int = 4
    d_embed: int = 60
    d_hidden: int = 50
    direct: bool = True
    pad_token_id: int = 0

    def check(self) -> None:
        self.at_least(1, "vocab_size", "context", "d_embed", "d_hidden")
        if self.context > 10_000:
            self.refuse("context", "must be at most 10000")
        if self.pad_token_id >= self.vocab_size:
            self.refuse("pad_token_id", f"must be below vocab_size = {self.vocab_size}")

    @property
    def width(self) -> int:
        return self.d_hidden

    @property
    def depth(self) -> int:
        return 1

    @property
    def joined(self) -> int:
        """The width of a whole context."""
        return self.context * self.d_embed


@dataclass(frozen=True)
class Window(State):
    """The last words of each of N sequences of B prompts.  int64 [B, N, n]"""

    words: Tensor

    @property
    def batch(self) -> int | Dim:
        return self.words.shape[0]

    def tensors(self) -> dict[str, Tensor]:
        return {"words": self.words}

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Window:
        return Window(tensors["words"])

    def select(self, live: Tensor | None, parents: Tensor | None) -> Window:
        return Window(chosen(self.words, live, parents))

    def signature(self) -> dict[str, tuple[int | str | Dim, ...]]:
        """N is one after the prompts and any number later."""
        sizes = super().signature()["words"]
        return {"words": (sizes[0], "m", *sizes[2:])}


class NPLM(nn.Module):
    """last_hidden_state: tanh(H x + d)."""

    def __init__(self, config: NPLMConfig):
        cfg = self.config = config
        self.C = nn.Embedding(cfg.vocab_size, cfg.d_embed, weight_init=nn.init.normal(0.1))
        self.H = nn.Linear(cfg.joined, cfg.d_hidden, activation="tanh")

    def contexts(self, ids: Tensor) -> Tensor:
        """The words that each place sees, itself the last.  [B, T] -> [B, T, n]"""
        (B, T), n = ids.shape, self.config.context
        before = ops.pad(ids, [0, n - 1], [0, 0], self.config.pad_token_id)
        each = [ops.reshape(ops.slice(before, 1, k, k + T), (B, T, 1)) for k in range(n)]
        return ops.concat(each, 2)

    def read(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """The hidden layer, and x.  [..., n] -> [..., h], [..., n m]"""
        x = ops.reshape(self.C(words), (*words.shape[:-1], self.config.joined))
        return self.H(x), x

    def rows_of(self, words: Tensor) -> Tensor:
        """What a head reads of contexts.  [..., n] -> [..., C]"""
        return self.read(words)[0]

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
        words = columns.rows(self.contexts(columns.of(layout.pack(input_ids))))  # rows
        rows = self.rows_of(words)
        return Encoded(rows, layout, [self.read(words)[0]] if output_hidden_states else None)

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        encoded = self.encode(*args, **inputs)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


class NPLMCausalLM(NPLM, heads.Predicts, Generates):
    """The body with an output layer: its parameters have the same names. Rows are [hidden; x]."""

    LABELS = (NEXT,)

    def __init__(self, config: NPLMConfig):
        super().__init__(config)
        self.U = nn.Linear(config.d_hidden, config.vocab_size, bias=False)
        if config.direct:
            self.W = nn.Linear(config.joined, config.vocab_size, bias=False)
        self.b = nn.Parameter.new(nn.init.zeros, (config.vocab_size,))

    @property
    def body(self) -> NPLMCausalLM:
        return self

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        padding.check_ids(input_ids, labels=labels)
        return heads.Predicts.__call__(self, input_ids, labels=labels, **inputs)

    def rows_of(self, words: Tensor) -> Tensor:
        hidden, x = self.read(words)
        return ops.concat([hidden, x], -1) if self.config.direct else hidden

    def logits(self, rows: Tensor) -> Tensor:
        if not self.config.direct:
            return self.U(rows, self.b)
        hidden, x = ops.split(rows, (self.config.d_hidden, self.config.joined), len(rows.shape) - 1)
        return ops.add(self.U(hidden, self.b), self.W(x))

    def prefill(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, State]:
        padding.check_ids(input_ids)
        layout = padding.layout(input_ids, attention_mask)
        columns = Columns(layout)
        last = columns.last(self.contexts(columns.of(layout.pack(input_ids))))  # [B, n]
        words = ops.reshape(last, (layout.B, 1, self.config.context))
        return self.logits(self.rows_of(last)), Window(words)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, Window)
        state.check_batch(tokens.shape[0])
        n = self.config.context
        after = [ops.slice(state.words, 2, 1, n), ops.reshape(tokens, (*tokens.shape, 1))]
        words = ops.concat(after, 2)  # [B, N, n]
        return self.logits(self.rows_of(words)), Window(words)


def sized(s: Size) -> dict[str, Any]:
    return dict(d_embed=s.width // 2, d_hidden=s.width)


CONFIG = NPLMConfig
MODEL_TYPES = {"nplm": "NPLM"}
HEADS = {"base": NPLM, "causal-lm": NPLMCausalLM}
ARCHITECTURES = {"NPLMModel": "base", "NPLMForCausalLM": "causal-lm"}
PREFIX = ""
NAMES = {"C": "C", "H": "H", "U": "U", "W": "W", "b": "b"}
TOKENIZERS = (
    TokenizerFormat("nplm", GENERIC, dict(pad="<pad>", unk="<unk>", eos="</s>"), kinds=("words", "byte-bpe")),
)
RECIPES = {
    "nplm": Recipe(
        model=sized,
        head="causal-lm",
        objective=dict(name="causal-lm"),
        tokenizer="words",
        vocab=17_000,
        lr=1e-3,
        steps=100_000,
        warmup=0.0,
        optim=dict(weight_decay=1e-4, clip_norm=None),
        small_lr=2e-3,
        sizes={"base": Size(1, 100, 1, 128, 32, 1, None, None, dropout=0.0)},
        lacks=("large",),
    )
}
