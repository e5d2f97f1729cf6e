"""Sequence to sequence with recurrent networks (Sutskever et al. 2014), with attention (Bahdanau et al. 2014,
Luong et al. 2015).

The encoder's last states begin the decoder: of each layer, counted from the top. A bidirectional encoder
gives tanh(W h) of its backward state, or with bridge="concat" both states as one. The decoder reads
embeddings; with input feeding [embedding; h~ of the step before], with Bahdanau's [embedding; context].

Shapes: B batch, S source length, T target length, E embeddings, H width of the decoder, W of the source,
L layers, n sequences of each prompt, V vocabulary; rows are [B, T, C], or [N, C] where padding was dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plmcore import nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models import alignment, padding, seq2seq
from plmcore.models.alignment import Alignment, Memory
from plmcore.models.columns import Columns
from plmcore.models.config import Config
from plmcore.models.declaration import GENERIC, Recipe, Size, TokenizerFormat
from plmcore.models.generates import Generates
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded
from plmcore.models.recurrent import CELLS, Carried, read
from plmcore.nn.state import State


@dataclass(frozen=True, kw_only=True)
class RNNSeq2SeqConfig(Config):
    """Luong's model, smaller. d_hidden: of each direction of the encoder, and of the decoder."""

    model_type: str = "rnn-seq2seq"
    vocab_size: int = 50_000
    target_vocab_size: int | None = None  # None: vocab_size
    cell: str = "lstm"
    d_embed: int = 500
    d_hidden: int = 500
    encoder_layers: int = 2
    decoder_layers: int = 2
    bidirectional: bool = False
    bridge: str = "tanh"
    attention: str = "general"
    input_feeding: bool = False
    reverse_source: bool = False
    dropout: float = 0.0  # of embeddings, between layers and before the output
    init_range: float = 0.1
    pad_token_id: int | None = 1
    eos_token_id: int | None = 2
    decoder_start_token_id: int | None = 2

    def check(self) -> None:
        self.at_least(1, "vocab_size", "d_embed", "d_hidden", "encoder_layers", "decoder_layers")
        if self.target_vocab_size is not None:
            self.at_least(1, "target_vocab_size")
        self.at_least(0, "init_range")
        self.one_of("cell", CELLS)
        self.one_of("bridge", ("tanh", "concat"))
        self.one_of("attention", ("none", *alignment.KINDS))
        self.probability("dropout")
        if self.attention == "none" and self.input_feeding:
            self.refuse("input_feeding", "must be false where attention is none: there is no h~ to feed")
        if self.attention == "dot" and self.source_width != self.width:
            self.refuse(
                "attention",
                f"must be another, or bridge concat: dot compares the {self.width} numbers of the decoder's "
                f"state with the {self.source_width} of both directions",
            )

    @property
    def width(self) -> int:
        return self.source_width if self.bridge == "concat" else self.d_hidden

    @property
    def source_width(self) -> int:
        return self.d_hidden * (2 if self.bidirectional else 1)

    @property
    def target_size(self) -> int:
        return self.target_vocab_size or self.vocab_size

    @property
    def fed_width(self) -> int:
        """What the decoder reads beside an embedding."""
        if self.attention == "bahdanau":
            return self.source_width
        return self.width if self.input_feeding else 0

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.uniform(-self.init_range, self.init_range)


# ---- states ----


@dataclass
class Read(Encoded):
    """A source that the encoder read. final: the states after it, of each layer and direction."""

    final: nn.RecurrentState | None = None


@dataclass
class Written(seq2seq.Decoded):
    """A decoder's result. tops: the states of the top layer, as rows; begun: the one before them [B, H].

    aligned: the weights over the source [B, T, S]; after: what goes on from the last token; last(): its row
    [B, C], of targets that have one.
    """

    begun: Tensor | None = None
    tops: Tensor | None = None
    aligned: Tensor | None = None
    after: Carried | None = None
    last: Callable[[], Tensor] | None = None

    def output(self, **fields: Any) -> Output:
        begun, tops, layout = self.begun, self.tops, self.layout
        assert begun is not None and tops is not None
        first = ops.reshape(begun, (layout.B, 1, begun.shape[-1]))
        states = lambda: ops.concat([first, layout.unpack(tops)], 1)  # [B, T + 1, H]
        return super().output(**fields, alignments=self.aligned, decoder_states=states)


# ---- the body ----


class Encoder(nn.Module):
    """An embedding and a recurrent network, in the order of the text or from its end."""

    def __init__(self, cfg: RNNSeq2SeqConfig):
        self.embedding = nn.Embedding(cfg.vocab_size, cfg.d_embed, weight_init=cfg.weight_init)
        self.rnn = CELLS[cfg.cell](
            cfg.d_embed, cfg.d_hidden, cfg.encoder_layers, bidirectional=cfg.bidirectional,
            dropout=cfg.dropout, weight_init=cfg.weight_init,
        )  # fmt: skip
        self.dropout, self.reverse = nn.Dropout(cfg.dropout), cfg.reverse_source

    def __call__(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,  # it has none
    ) -> Read:
        """ids [B, S], or vectors [B, S, E] in place of the table's."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ArgumentError("one of input_ids and inputs_embeds must be given")
        if input_ids is not None:
            padding.check_ids(input_ids)
        given = inputs_embeds if input_ids is None else input_ids
        assert given is not None
        layout = padding.layout(given, attention_mask)
        rows = layout.pack(given)
        x = self.dropout(rows if input_ids is None else self.embedding(rows))
        y, final = read(self.rnn, x, layout, reverse=self.reverse)
        return Read(y, layout, [x, y] if output_hidden_states else None, final)


class Decoder(nn.Module):
    def __init__(self, cfg: RNNSeq2SeqConfig):
        self.embedding = nn.Embedding(cfg.target_size, cfg.d_embed, weight_init=cfg.weight_init)
        self.rnn = CELLS[cfg.cell](
            cfg.d_embed + cfg.fed_width, cfg.width, cfg.decoder_layers, dropout=cfg.dropout,
            weight_init=cfg.weight_init,
        )  # fmt: skip


class Bridge(nn.Module):
    """tanh(W h) of a layer's backward state, and so its cell."""

    def __init__(self, cfg: RNNSeq2SeqConfig):
        H = cfg.d_hidden

        def maps() -> nn.ModuleList:
            return nn.ModuleList(
                nn.Linear(H, H, bias=False, activation="tanh", weight_init=cfg.weight_init)
                for _ in range(cfg.decoder_layers)
            )

        self.h = maps()
        if cfg.cell == "lstm":
            self.c = maps()


class RNNSeq2Seq(seq2seq.EncoderDecoder):
    def __init__(self, config: RNNSeq2SeqConfig):
        cfg = self.config = config
        self.encoder, self.decoder = Encoder(cfg), Decoder(cfg)
        if cfg.attention != "none":
            self.attn = Alignment(cfg.attention, cfg.width, cfg.source_width, cfg.weight_init)
        if cfg.bidirectional and cfg.bridge == "tanh":
            self.bridge = Bridge(cfg)
        self.dropout = nn.Dropout(cfg.dropout)

    @property
    def stepwise(self) -> bool:
        """Whether the decoder's input has what the step before gave."""
        return self.config.fed_width > 0

    def encode(self, *args: Any, **asked: Any) -> Read:
        return self.encoder(*args, **asked)

    def begin(self, final: nn.RecurrentState) -> nn.RecurrentState:
        """The decoder's first state, of the encoder's last one."""
        cfg, found = self.config, {}
        for name, t in final.tensors().items():
            layers: list[Tensor] = []
            for i in range(cfg.decoder_layers):
                k = max(0, i + cfg.encoder_layers - cfg.decoder_layers)
                if not cfg.bidirectional:
                    layers.append(t[k])
                elif cfg.bridge == "concat":
                    layers.append(ops.concat([t[2 * k], t[2 * k + 1]], 1))
                else:
                    layers.append(getattr(self.bridge, name)[i](t[2 * k + 1]))
            found[name] = ops.concat([ops.reshape(t, (1, *t.shape)) for t in layers], 0)
        return final.rebuilt(found)

    def decode(  # type: ignore[override]  # of a source that encode() read
        self,
        decoder_input_ids: Tensor,
        encoded: Read,
        decoder_attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
    ) -> Written:
        mask = decoder_attention_mask
        padding.check_ids(decoder_input_ids, called="decoder_input_ids", decoder_attention_mask=mask)
        if not isinstance(encoded, Read) or encoded.final is None:
            raise ArgumentError(
                "encoder_outputs have no states that the decoder could begin with: pass input_ids"
            )
        layout = padding.layout(decoder_input_ids, mask, reads)
        columns = Columns(layout)
        x = self.dropout(self.decoder.embedding(layout.pack(decoder_input_ids)))  # rows
        state = self.begin(encoded.final)
        begun = state.h[self.config.decoder_layers - 1]  # [B, H]
        memory = self.attn.memory(encoded) if self.config.attention != "none" else None
        run = self.by_steps if self.stepwise else self.at_once
        tops, found, weights, after = run(columns.of(x), state, memory, columns.lengths)
        rows = self.dropout(columns.rows(found))
        aligned = None if weights is None else layout.unpack(columns.rows(weights))
        crossed = None
        if output_attentions and aligned is not None:
            B, T, S = aligned.shape
            crossed = [ops.reshape(aligned, (B, 1, T, S))]
        return Written(
            rows, layout, [x, rows] if output_hidden_states else None, encoded, crossed, begun,
            columns.rows(tops), aligned, after, lambda: columns.last(found),
        )  # fmt: skip

    def at_once(
        self, x: Tensor, state: nn.RecurrentState, memory: Memory | None, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None, Carried]:
        """All steps, whose inputs are known: states, h~, weights [B, T, S], what goes on.  x [B, T, E]"""
        tops, state = self.decoder.rnn(x, state, lengths)  # [B, T, H]
        after = Carried.of(state, x.shape[0], 1, None, memory)
        if memory is None:
            return tops, tops, None, after
        context, weights = self.attn(tops, memory)
        return tops, self.attn.combined(context, tops), weights, after

    def by_steps(
        self, x: Tensor, state: nn.RecurrentState, memory: Memory | None, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None, Carried]:
        """The same where a step needs the one before. T is a number, in programs 1."""
        B, T = x.shape[0], int(x.shape[1])
        fed = None
        if self.config.attention != "bahdanau":
            fed = ops.full((B, 1, self.config.width), 0.0, x.dtype, like=x)
        carried = Carried.of(state, B, 1, fed, memory)
        steps: list[tuple[Tensor, ...]] = []
        for t in range(T):
            top, found, weights, after = self.step_of(ops.slice(x, 1, t, t + 1), carried)
            assert weights is not None  # it is attention that makes steps depend on each other
            steps.append((top, found, weights))
            carried = after if lengths is None else carried.where(lengths > t, after)
        tops, found, weights = (ops.concat(of_all, 1) for of_all in zip(*steps))
        return tops, found, weights, carried

    def step_of(self, x: Tensor, carried: Carried) -> tuple[Tensor, Tensor, Tensor | None, Carried]:
        """One step of n sequences: states, h~, weights [B, n, S], what goes on.  x [B, n, E]"""
        B, n = x.shape[:2]
        H, memory, state = self.config.width, carried.memory, carried.layers
        before = self.config.attention == "bahdanau"
        context = weights = None
        if memory is not None and before:
            context, weights = self.attn(carried.top, memory)
        beside = context if before else carried.fed
        x = x if beside is None else ops.concat([x, beside], 2)
        y, state = self.decoder.rnn(ops.reshape(x, (B * n, 1, x.shape[2])), state)
        top = found = ops.reshape(y, (B, n, H))
        if memory is not None and not before:
            context, weights = self.attn(top, memory)
        if context is not None:
            found = self.attn.combined(context, top)
        fed = None if carried.fed is None else found
        return top, found, weights, Carried.of(state, B, n, fed, memory)


# ---- the head ----


class Projection(nn.Module):
    """W_s h~ + b_s.  [..., H] -> [..., V]"""

    def __init__(self, cfg: RNNSeq2SeqConfig):
        self.W_s = nn.Parameter.new(cfg.weight_init, (cfg.target_size, cfg.width))
        self.b_s = nn.Parameter.new(nn.init.zeros, (cfg.target_size,))

    def __call__(self, rows: Tensor) -> Tensor:
        return ops.linear(rows, self.W_s, self.b_s)


class RNNSeq2SeqLM(RNNSeq2Seq, seq2seq.Writes, Generates):
    """The body with an output layer: its parameters have the same names."""

    def __init__(self, config: RNNSeq2SeqConfig):
        super().__init__(config)
        self.out = Projection(config)

    @property
    def body(self) -> RNNSeq2SeqLM:
        return self

    def __call__(self, *args: Any, **inputs: Any) -> Output:
        return seq2seq.Writes.__call__(self, *args, **inputs)

    def logits(self, rows: Tensor) -> Tensor:
        return self.out(rows)

    def prefill(  # type: ignore[override]  # the encoder reads input_ids
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        decoder_input_ids: Tensor,
        decoder_attention_mask: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        encoded = self.encode(input_ids, attention_mask)
        found = self.decode(decoder_input_ids, encoded, decoder_attention_mask)
        assert found.last is not None and found.after is not None
        return self.logits(found.last()), found.after

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, Carried)
        state.check_batch(tokens.shape[0])
        _, found, _, after = self.step_of(self.decoder.embedding(tokens), state)
        return self.logits(found), after


def sized(s: Size) -> dict[str, Any]:
    layers = max(1, s.layers // 4)
    return dict(d_embed=s.width, d_hidden=s.width, encoder_layers=layers, decoder_layers=layers,
                dropout=0.2 if s.dropout else 0.0)  # fmt: skip


CONFIG = RNNSeq2SeqConfig
MODEL_TYPES = {"rnn-seq2seq": "RNNSeq2Seq"}
HEADS = {"base": RNNSeq2Seq, "seq2seq-lm": RNNSeq2SeqLM}
ARCHITECTURES = {"RNNSeq2SeqModel": "base", "RNNSeq2SeqForConditionalGeneration": "seq2seq-lm"}
PREFIX = ""
NAMES = {
    "encoder.embedding": "encoder.embedding",
    "encoder.rnn": "encoder.rnn",
    "decoder.embedding": "decoder.embedding",
    "decoder.rnn": "decoder.rnn",
    "attn": "attn",
    "bridge.h.{i}": "bridge.h.{i}",
    "bridge.c.{i}": "bridge.c.{i}",
    "out": "out",
}
TOKENIZERS = (
    TokenizerFormat(
        "rnn-seq2seq",
        GENERIC,
        dict(bos="<s>", pad="<pad>", eos="</s>", unk="<unk>"),
        "A eos",
        "A eos B eos",
        kinds=("words", "byte-bpe"),
    ),
)
RECIPES = {
    "rnn-seq2seq": Recipe(
        model=sized,
        head="seq2seq-lm",
        objective=dict(name="translation"),
        tokenizer="byte-bpe",
        vocab=50_000,
        lr=1e-3,
        steps=100_000,
        warmup=0.0,
        optim=dict(kind="adam", weight_decay=0.0, clip_norm=5.0),
        data=dict(documents="line", sentences="document", unwrap=False),
        small_lr=1e-3,
        sizes={
            "base": Size(8, 500, 1, 50, 64, 1, None, None, dropout=0.2),
            "large": Size(16, 1000, 1, 50, 128, 1, None, None, dropout=0.2),
        },
    )
}
