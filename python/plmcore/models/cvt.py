"""CVT: a tagger and classifier over words and their characters, for Cross-View Training.

    x_t = [s dropout(word_t); dropout(max relu conv(characters of word_t))]
    uni = biLSTM(x), each direction projected        what stands before, and what stands behind
    bi  = biLSTM(uni)                                both

Shapes: B batch, T length, N rows without padding, W characters of a word, P width of a direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import cross_view, padding, recurrent
from plmcore.models.config import Config
from plmcore.models.cross_view import CrossView
from plmcore.models.declaration import GENERIC, Finetuning, TokenizerFormat, WordVectors
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded, Layout

WORD_LENGTH = 20  # characters of a word that are read


@dataclass(frozen=True, kw_only=True)
class CVTConfig(Config):
    model_type: str = "cvt"
    vocab_size: int = 30000
    char_vocab_size: int = 109
    d_embed: int = 300
    d_char: int = 50
    char_filters: tuple[Any, ...] = ((2, 100), (3, 100), (4, 100))  # width and number
    d_uni: int = 1024
    d_bi: int = 512
    d_projection: int = 512  # of the LSTMs' directions, and of the heads
    dropout: float = 0.5
    unlabelled_dropout: float = 0.2
    label_smoothing: float = 0.1
    task_name: str = "task"
    tasks: tuple[Any, ...] = ()  # further ones: name, task (tagging, classification), labels
    pad_token_id: int | None = 0
    bos_token_id: int | None = 2
    eos_token_id: int | None = 3

    def check(self) -> None:
        self.at_least(
            1, "vocab_size", "char_vocab_size", "d_embed", "d_char", "d_uni", "d_bi", "d_projection"
        )
        self.probability("dropout", "unlabelled_dropout", "label_smoothing")
        for pair in self.char_filters:
            whole = isinstance(pair, list | tuple) and len(pair) == 2
            if not whole or not all(type(n) is int and 1 <= n <= 4096 for n in pair):
                self.refuse("char_filters", "must be pairs of a width and a number, from 1 to 4096 each")
        if any(width > WORD_LENGTH for width, _ in self.char_filters):
            self.refuse("char_filters", f"must be at most {WORD_LENGTH} characters wide")
        if not self.task_name:
            self.refuse("task_name", "must have at least one letter")
        self.one_of("problem_type", (None, "single_label_classification"))
        cross_view.check_tasks(self)

    @property
    def width(self) -> int:
        return 2 * (self.uni_width + self.bi_width)

    @property
    def uni_width(self) -> int:
        """Of one direction."""
        return min(self.d_uni, self.d_projection)

    @property
    def bi_width(self) -> int:
        """Of one direction."""
        return min(self.d_bi, self.d_projection)

    @property
    def depth(self) -> int:
        return 2


def forgetful(inputs: int, hidden: int, projection: int) -> nn.LSTM:
    """Two directions whose gates begin open: the published cells add 1 to the forget gate."""
    lstm = nn.LSTM(inputs, hidden, bidirectional=True, projection=projection)
    draw = nn.init.xavier_uniform()
    biases = nn.init.rows(nn.init.zeros, nn.init.ones, nn.init.zeros, nn.init.zeros)
    for name, p in lstm.named_parameters():
        begin = draw if p.ndim == 2 else biases if name.startswith("bias_ih") else nn.init.zeros
        setattr(lstm, name, nn.Parameter.new(begin, tuple(p.shape)))
    return lstm


class CVT(nn.Module):
    def __init__(self, config: CVTConfig):
        self.config = config
        self.tokens = nn.Embedding(
            config.vocab_size, config.d_embed, sparse=True, weight_init=nn.init.normal(0.1)
        )
        self.scale = nn.Parameter.new(nn.init.ones, (1,))
        self.chars = nn.Embedding(config.char_vocab_size, config.d_char, weight_init=nn.init.xavier_uniform())
        self.convs = nn.ModuleList(nn.Conv1d(config.d_char, n, width) for width, n in config.char_filters)
        word = config.d_embed + sum(n for _, n in config.char_filters)
        self.uni = forgetful(word, config.d_uni, config.uni_width)
        self.bi = forgetful(2 * config.uni_width, config.d_bi, config.bi_width)

    def encode(
        self,
        input_ids: Tensor,
        char_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
        dropout: float | None = None,
    ) -> Encoded:
        """rows [forward; backward; bi].  char_ids [B, T, W]: 0 behind the last character

        Without a mask the padding token is padding. dropout: another one than the config's.
        """
        padding.check_ids(input_ids)
        p = self.config.dropout if dropout is None else dropout
        layout = padding.layout(input_ids, self.mask(input_ids, attention_mask))
        x = self.read(input_ids, char_ids, layout, p)
        uni = self.dropped(recurrent.read(self.uni, x, layout)[0], p)
        bi = self.dropped(recurrent.read(self.bi, uni, layout)[0], p)
        states = [x, uni, bi] if output_hidden_states else None
        return Encoded(ops.concat([uni, bi], uni.ndim - 1), layout, states)

    def read(self, input_ids: Tensor, char_ids: Tensor | None, layout: Layout, p: float) -> Tensor:
        """Words and their spelling as rows.  [N, C], or [B, T, C] without padding"""
        ids = layout.pack(input_ids)
        words = ops.mul(self.dropped(self.tokens(ids), p), self.scale)
        if not self.config.char_filters:
            return words
        if char_ids is None:  # words without a spelling
            chars = ops.full((*ids.shape, WORD_LENGTH), 0, "int64", like=ids)
        else:
            cross_view.check_chars(char_ids, input_ids)
            chars = layout.pack(self.wide_enough(char_ids))
        *rows, W = chars.shape
        n = rows[0] if len(rows) == 1 else rows[0] * rows[1]
        spelled = self.chars(ops.reshape(chars, (n, W)))  # [N, W, C]
        found = [self.dropped(ops.relu(ops.max(conv(spelled), 1)), p) for conv in self.convs]  # [N, F]
        found = [ops.reshape(f, (*rows, f.shape[1])) for f in found]
        return ops.concat([words, *found], words.ndim - 1)

    def wide_enough(self, char_ids: Tensor) -> Tensor:
        """At least as many characters as the widest filter reads."""
        W, widest = char_ids.shape[2], max(width for width, _ in self.config.char_filters)
        more = widest - W if isinstance(W, int) else 0
        return ops.pad(char_ids, [0, 0, 0], [0, 0, more]) if more > 0 else char_ids

    def dropped(self, x: Tensor, p: float) -> Tensor:
        return ops.dropout(x, p) if self.training and p else x

    def mask(self, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor | None:
        """What is read.  [B, T]"""
        pad = self.config.pad_token_id
        if attention_mask is not None or pad is None:
            return attention_mask
        return ops.not_equal(input_ids, ops.full((), pad, input_ids.dtype, like=input_ids))

    def words(self, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Where a word stands: no padding, and none of the tokens around a sentence.  bool [B, T]"""
        mask = self.mask(input_ids, attention_mask)
        found = ops.greater_equal(input_ids, ops.full((), 0, input_ids.dtype, like=input_ids))
        found = found if mask is None else ops.logical_and(found, ops.cast(mask, "bool"))
        for token in self.around():
            edge = ops.full((), token, input_ids.dtype, like=input_ids)
            found = ops.logical_and(found, ops.not_equal(input_ids, edge))
        return found

    def words_of(self, input_ids: np.ndarray, attention_mask: np.ndarray | None) -> np.ndarray:
        """The same of arrays."""
        pad = self.config.pad_token_id
        read = np.ones(input_ids.shape, bool) if pad is None else input_ids != pad
        read = read if attention_mask is None else attention_mask != 0
        return read & ~np.isin(input_ids, self.around())

    def around(self) -> list[int]:
        ids = (self.config.bos_token_id, self.config.eos_token_id)
        return [i for i in ids if i is not None]

    def program_inputs(self) -> dict[str, tuple[Any, ...]]:
        """Of an exported program: dtype and sizes by name."""
        inputs = dict.fromkeys(("input_ids", "attention_mask"), ("int64", "B", "T"))
        return {**inputs, "char_ids": ("int64", "B", "T", WORD_LENGTH)}

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        encoded = self.encode(*args, **inputs)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


class _Heads(CrossView):
    def __init__(self, config: CVTConfig):
        super().__init__(config, CVT(config), config.uni_width, config.d_projection)

    def program_inputs(self) -> dict[str, tuple[Any, ...]]:
        """Those of the body."""
        return self.body.program_inputs()

    def alone(self, task: int) -> Any:
        """The model of one of its tasks; body and heads are the same, not copies."""
        return cross_view.alone(self, task, BY_KIND)


class CVTTagging(_Heads):
    kind = cross_view.TAGGING


class CVTClassification(_Heads):
    kind = cross_view.CLASSIFICATION


BY_KIND = {kind.kind: kind for kind in (CVTTagging, CVTClassification)}
CONFIG = CVTConfig
MODEL_TYPES = {"cvt": "CVT"}
HEADS = {
    "base": CVT,
    "token-classification": CVTTagging,
    "sequence-classification": CVTClassification,
}
ARCHITECTURES = {
    "CVTModel": "base",
    "CVTForTokenClassification": "token-classification",
    "CVTForSequenceClassification": "sequence-classification",
}
PREFIX = "encoder."
NAMES = {
    "tokens": "words",
    "scale": "word_scale",
    "chars": "characters",
    "convs.{i}": "convolutions.{i}",
    "uni": "uni",
    "bi": "bi",
    **{
        f"heads.{{i}}.{head}.{layer}": f"tasks.{{i}}.{head}.{layer}"
        for head in ("primary", *(f"auxiliary.{view}" for view in cross_view.VIEWS))
        for layer in ("hidden", "out")
    },
}
SPECIAL = dict(pad="<pad>", unk="<unk>", bos="<s>", eos="</s>")
TOKENIZERS = (
    TokenizerFormat(
        "cvt",
        GENERIC,
        SPECIAL,
        single="bos A eos",
        pair="bos A eos B eos",
        kinds=("words",),
        characters=WORD_LENGTH,
    ),
)
FINETUNING = Finetuning(
    lr=0.5,
    small_lr_times=1.0,
    most_warmup=5000,
    optim=dict(kind="sgd", momentum=0.9, weight_decay=0.0, betas=None, eps=None),
    schedule="slowing",
    task=dict(scheme="bioes"),
    data=dict(batch=64),
    train=dict(average=0.998),
)
VECTORS = WordVectors("tokens.weight", "d_embed")
