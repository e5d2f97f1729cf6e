"""ELMo: words spelled as bytes, a character CNN, and a language model in each direction (Peters et al. 2018).

    word    conv of several widths, max over characters, activation; highway layers; linear        [P]
    highway y = (1 - g) x + g relu(W_t x + b_t),  g = sigmoid(W_c x + b_c)
    biLM    in each direction LSTMs of H cells, projected to P; from the second on the input is added

The layers of a direction see no other direction. hidden_states are the word twice, then [forward; backward]
of each layer, 2 P wide.

Shapes: B batch, T words, W characters of a word, L layers, H cells, P projection, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore import nn
from plmcore._core import ArgumentError, ShapeError, Tensor, ops
from plmcore.models import elmo_files, padding, spelling
from plmcore.models.carried import joined_state, over, rows_of, split_state
from plmcore.models.character_cnn import CharacterCNN
from plmcore.models.config import Config
from plmcore.models.declaration import GENERIC, Checkpoint, Finetuning, Recipe, Size, TokenizerFormat
from plmcore.models.labels import BIDIRECTIONAL, DIRECTIONS
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded, Layout, Packed


@dataclass(frozen=True, kw_only=True)
class ElmoConfig(Config):
    model_type: str = "elmo"
    vocab_size: int = 793_471
    n_characters: int = spelling.IDS
    max_characters_per_token: int = 50
    char_embed_dim: int = 16
    filters: tuple[Any, ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    activation: str = "relu"
    n_highway: int = 2
    char_projection: bool = True
    dim: int = 4096
    projection_dim: int = 512
    n_layers: int = 2
    use_skip_connections: bool = True
    cell_clip: float | None = 3.0
    proj_clip: float | None = 3.0
    dropout: float = 0.1
    sampled: int = 8192

    def check(self) -> None:
        self.at_least(1, "vocab_size", "char_embed_dim", "dim", "projection_dim", "n_layers", "sampled")
        self.at_least(0, "n_highway")
        self.at_least(spelling.LEAST, "max_characters_per_token")
        self.one_of("n_characters", (spelling.IDS,))
        self.one_of("activation", ("relu", "tanh"))
        self.probability("dropout")
        widths = [f[0] for f in self.filters if _is_filter(f)]
        if not self.filters or len(widths) != len(self.filters):
            self.refuse("filters", "must be pairs of a width and a number, each at least 1")
        if max(widths) > self.max_characters_per_token:
            self.refuse(
                "filters", f"must be at most max_characters_per_token = {self.max_characters_per_token} wide"
            )
        for key in ("cell_clip", "proj_clip"):
            if getattr(self, key) is not None and not getattr(self, key) > 0:
                self.refuse(key, "must be positive, or null")
        if not self.char_projection and self.convolved != self.projection_dim:
            self.refuse(
                "char_projection", f"must be true: the filters give {self.convolved} numbers of a word"
            )

    @property
    def width(self) -> int:
        return 2 * self.projection_dim

    @property
    def depth(self) -> int:
        return self.n_layers

    @property
    def convolved(self) -> int:
        """The numbers that all filters give of a word."""
        return sum(f[1] for f in self.filters)


def _is_filter(value: Any) -> bool:
    pair = isinstance(value, list | tuple) and len(value) == 2
    return pair and all(type(n) is int and n >= 1 for n in value)


def projected_lstm(cfg: ElmoConfig, reverse: bool) -> nn.LSTM:
    """With one bias, as in TensorFlow, that begins with 1 for the forget gate."""
    H, P = cfg.dim, cfg.projection_dim
    lstm = nn.LSTM(
        P, H, projection=P, cell_clip=cfg.cell_clip, projection_clip=cfg.proj_clip, reverse=reverse
    )

    def forgetting(shape: Sequence[int], dtype: str = "float32") -> Tensor:
        zero, one = (ops.full((H,), value, dtype) for value in (0.0, 1.0))
        return ops.concat([zero, one, zero, zero], 0)

    setattr(lstm, "bias_ih_l0", None)
    setattr(lstm, "bias_hh_l0", nn.Parameter.new(forgetting, (4 * H,)))
    return lstm


class Direction(nn.Module):
    """The LSTMs of one direction.  [B, T, P] -> [B, T, P] of each layer"""

    def __init__(self, cfg: ElmoConfig, reverse: bool):
        self.layers = nn.ModuleList(projected_lstm(cfg, reverse) for _ in range(cfg.n_layers))
        self.skips, self.dropout = cfg.use_skip_connections, nn.Dropout(cfg.dropout)

    def __call__(
        self, x: Tensor, states: Sequence[nn.RecurrentState | None], lengths: Tensor | None
    ) -> tuple[list[Tensor], list[nn.RecurrentState]]:
        outputs, after = [], []
        for i, (lstm, state) in enumerate(zip(self.layers, states, strict=True)):
            y, last = lstm(self.dropout(x), state, lengths)
            x = ops.add(y, x) if self.skips and i else y
            outputs.append(x)
            after.append(last)
        return outputs, after


class Elmo(nn.Module):
    def __init__(self, config: ElmoConfig):
        self.config = config
        self.words = CharacterCNN(
            config.n_characters,
            config.char_embed_dim,
            config.filters,
            config.n_highway,
            config.projection_dim if config.char_projection else None,
            config.activation,
        )
        self.forward, self.backward = Direction(config, False), Direction(config, True)
        self.carried: nn.RecurrentState | None = None  # of the sentences that embed() read before

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        backward_input_ids: Tensor | None = None,
        state: nn.RecurrentState | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
    ) -> Read:
        """input_ids [B, T, W], padding behind the words. state: (h, c) [2 L, B, ·] of the text before,
        forward and backward of each layer. backward_input_ids: another text for the second direction.
        """
        self.check(input_ids, attention_mask)
        layout = padding.layout(ops.slice(input_ids, 2, 0, 1), attention_mask, ())
        x = layout.unpack(self.words(layout.pack(input_ids)))  # [B, T, P], 0 behind the end
        other = x if backward_input_ids is None else self.words(backward_input_ids)
        lengths = layout.lengths if isinstance(layout, Packed) else None
        before = split_state(state, input_ids.shape[0], 2 * self.config.n_layers)
        ahead, h = self.forward(x, before[::2], lengths)
        back, g = self.backward(other, before[1::2], lengths)
        states = [ops.concat([x, other], 2), *(ops.concat([f, b], 2) for f, b in zip(ahead, back))]
        after = joined_state([s for pair in zip(h, g, strict=True) for s in pair])
        kept = states if output_hidden_states else None
        return Read(states[-1], Layout(input_ids), kept, state=after)

    def check(self, input_ids: Tensor, mask: Tensor | None) -> None:
        W = self.config.max_characters_per_token
        whole = input_ids.dtype in ("int64", "int32")
        if (
            input_ids.ndim != 3
            or not whole
            or (isinstance(input_ids.shape[2], int) and input_ids.shape[2] != W)
        ):
            raise ShapeError(
                f"input_ids must be the characters of words, whole numbers [batch, words, {W}], got "
                f"{input_ids.dtype} {list(input_ids.shape)}; lm.tokenizer spells texts so"
            )
        if mask is not None:
            padding.check_prefix(mask, input_ids.shape[:2])

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        encoded = self.encode(*args, **inputs)
        return encoded.output(last_hidden_state=encoded.rows, state=encoded.state)

    def program_inputs(self) -> dict[str, tuple[str | int, ...]]:
        """Of an exported program: dtype and sizes."""
        W = self.config.max_characters_per_token
        return {"input_ids": ("int64", "B", "T", W), "attention_mask": ("int64", "B", "T")}

    # ---- vectors of sentences ----

    def embed(
        self,
        sentences: Sequence[str] | Sequence[Sequence[str]],
        batch_size: int = 32,
        stateful: bool = True,
    ) -> list[np.ndarray]:
        """The layers of each sentence, a list of words or a text that is split at white space.
        [L + 1, words, 2 P] each

        Sentence i of a batch goes on from the state after sentence i of the batch before, also of an earlier
        call, as in the published program: the same sentence has other vectors elsewhere. reset() begins anew;
        stateful=False reads each sentence by itself.
        """
        if batch_size < 1:
            raise ArgumentError(f"embed: batch_size must be at least 1, got {batch_size}")
        if isinstance(sentences, str):
            spelling.sentences_of(sentences, 0)  # says what is needed
        sentences = list(sentences)
        found: list[np.ndarray] = []
        with nn.inference():
            for start in range(0, len(sentences), batch_size):
                ids, words = spelling.sentences_of(
                    sentences[start : start + batch_size], self.config.max_characters_per_token
                )
                mask = np.arange(ids.shape[1]) < np.array(words)[:, None] + 2
                inputs: dict[str, Any] = self.tensors(
                    {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
                )
                state = rows_of(self.carried, len(ids)) if stateful else None
                read = self.encode(**inputs, state=state, output_hidden_states=True)
                if stateful:
                    self.carried = over(self.carried, read.state)
                layers = np.stack([h.numpy() for h in read.states or ()])  # [L + 1, B, T, 2 P]
                found += [layers[:, b, 1 : n + 1] for b, n in enumerate(words)]
        return found

    def reset(self) -> None:
        """Forgets what embed() has read."""
        self.carried = None


@dataclass
class Read(Encoded):
    state: nn.RecurrentState | None = None


class ElmoPreTraining(nn.Module):
    """The language models of both directions, over one softmax. While it trains that is a sampled one."""

    LABELS = (BIDIRECTIONAL,)

    def __init__(self, config: ElmoConfig):
        self.config, self.body = config, Elmo(config)
        self.dropout = nn.Dropout(config.dropout)
        self.softmax = nn.SampledSoftmax(config.projection_dim, config.vocab_size, config.sampled)

    def __call__(
        self,
        input_ids: Tensor,
        *,
        forward_labels: Tensor | None = None,
        backward_labels: Tensor | None = None,
        **inputs: Any,
    ) -> Output:
        """loss is the mean of both directions; forward_logits and backward_logits [B, T, V]"""
        encoded = self.body.encode(input_ids, **inputs)
        P = self.config.projection_dim
        ways = ops.split(self.dropout(encoded.rows), (P, P), 2)  # [B, T, P] each
        losses = {}
        for name, labels, rows in zip(DIRECTIONS, (forward_labels, backward_labels), ways, strict=True):
            if labels is not None:
                padding.check_shape(name, labels, input_ids.shape[:2])
                losses[name] = self.softmax(*encoded.layout.labelled(rows, labels))
        loss = None
        if len(losses) == 2:
            loss = ops.affine(ops.add(*losses.values()), 0.5, 0.0)
        logits = {
            name: lambda rows=rows: self.softmax.logits(rows) for name, rows in zip(DIRECTIONS.values(), ways)
        }
        return encoded.output(
            last_hidden_state=encoded.rows, loss=loss, losses=losses, state=encoded.state, **logits
        )

    def embed(self, *args: Any, **options: Any) -> list[np.ndarray]:
        """As Elmo.embed."""
        return self.body.embed(*args, **options)

    def reset(self) -> None:
        """As Elmo.reset."""
        self.body.reset()

    def program_inputs(self) -> dict[str, tuple[str | int, ...]]:
        """As Elmo.program_inputs."""
        return self.body.program_inputs()


CONFIG = ElmoConfig
MODEL_TYPES = {"elmo": "Elmo"}
HEADS = {"base": Elmo, "pretraining": ElmoPreTraining}
ARCHITECTURES = {"ElmoModel": "base", "ElmoForPreTraining": "pretraining"}
PREFIX = "elmo."
NAMES = {
    "words.characters": "words.characters",
    "words.convs.{i}": "words.convs.{i}",
    "words.highways.{i}.transform": "words.highways.{i}.transform",
    "words.highways.{i}.carry": "words.highways.{i}.carry",
    "words.projection": "words.projection",
    **{
        f"{way}.layers.{{i}}.{part}_l0": f"{way}.layers.{{i}}.{part}_l0"
        for way in ("forward", "backward")
        for part in ("weight_ih", "weight_hh", "bias_hh", "weight_hr")
    },
    "softmax": "softmax",
}
TOKENIZERS = (
    TokenizerFormat(
        "elmo",
        GENERIC,
        dict(unk="<UNK>", bos="<S>", eos="</S>"),
        "bos A eos",
        "bos A eos bos:1 B:1 eos:1",
        kinds=("words",),
        spelled="max_characters_per_token",
    ),
)


def sized(s: Size) -> dict[str, Any]:
    """Words of the published filters from small on; of fewer below."""
    few = s.width < 128
    filters = [[1, 16], [2, 32], [3, 64], [4, 64]] if few else [list(f) for f in ElmoConfig.filters]
    return dict(dim=8 * s.width, projection_dim=s.width, n_layers=s.layers, filters=filters,
                n_highway=2 if s.width >= 512 else 1, dropout=s.dropout, sampled=None)  # fmt: skip


def streams(chosen: dict[str, dict[str, Any]]) -> None:
    """Rows go on from batch to batch. The published program multiplies its loss, the mean of both directions,
    by the steps of a row, clips gradients to a norm of 10 and begins Adagrad's sums at 1; ours is the sum of
    the directions, so that a norm and a root of that sum `steps / 2` times smaller do the same.
    """
    data, objective, optim, model = (chosen[name] for name in ("data", "objective", "optim", "model"))
    if objective["name"] == "bidirectional-lm":
        width = model["max_characters_per_token"] or ElmoConfig.max_characters_per_token
        words = data["vocab"] if data["tokenizer"] == "words" else None  # one of another run predicts all
        usual = dict(streams=data["batch"], characters=width, words=words)
        objective |= {k: v for k, v in usual.items() if objective[k] is None}
        chosen["train"]["carry"] = bool(objective["streams"])
    if optim["kind"] == "adagrad" and optim["start"] is None:
        optim["start"] = (2 / data["length"]) ** 2
    if optim["clip_norm"] is None:
        optim["clip_norm"] = 10 * 2 / data["length"]
    if model["sampled"] is None:
        model["sampled"] = max(1, min(8192, data["vocab"] // 4))


RECIPES = {
    "elmo": Recipe(
        model=sized,
        head="pretraining",
        objective=dict(name="bidirectional-lm", packing="sentences"),
        tokenizer="words",
        vocab=793_471,
        lr=0.2,
        steps=1_000_000,
        warmup=0.0,
        optim=dict(kind="adagrad", betas=None, eps=1e-10, weight_decay=0.0, start=None, clip_norm=None),
        schedule=dict(kind="constant"),
        data=dict(documents="file", sentences="lines", unwrap=False),
        train=dict(carry=True),
        spells=True,
        sizes={
            "tiny": Size(2, 32, 1, 20, 16, 1, 5000, 2000, 0.2, dropout=0.0),
            "mini": Size(2, 64, 1, 20, 32, 1, 10_000, 10_000, 0.2),
            "small": Size(2, 128, 1, 20, 128, 1, 50_000, 50_000, 0.2),
            "medium": Size(2, 256, 1, 20, 128, 1, 100_000, 100_000, 0.2),
            "base": Size(2, 512, 1, 20, 128, 3, None, None),
        },
        lacks=("large",),
        derive=streams,
    )
}
FINETUNING = Finetuning(lr=1e-3, small_lr_times=1.0, layers="mix", freeze="body", encoder=128, dropout=0.5)
CHECKPOINT = Checkpoint(open=elmo_files.opened, read=elmo_files.converted, head="base", vocabulary="")
