"""XLNet: a Transformer that predicts tokens in any order of factorisation (Yang et al. 2019).

Two streams run through the same weights. The content stream h starts as the tokens; a position sees itself
and what comes before it in the order. The query stream g starts as one learned vector for each target; it
knows the target's position and what comes before it, not the token itself. Both look at keys and values of h,
and of the memory of earlier segments. A score is

    ((q + u) k + (q + v) r[i - j] + (q + s) e[same or other segment]) / sqrt(D)

with r of the distance; its last two terms are the bias of ops.attention.

perm_mask[b, i, j] = 1 hides j from i; target_mapping[b, m, t] = 1 puts target m at position t. A target that
sees nothing (the first in the order, without memory) attends to nothing here; the published code lets it look
at all positions alike, itself included. It must not be a target in either.

Shapes: B batch, T length, P memory, S = P + T, M targets, L distances, C width, H heads, D = C // H. Rows are
[B, T, C], or [N, C] where padding was dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from plmcore import nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models import heads, padding, relative, two_streams
from plmcore.models.answer_beams import AnswerBeams
from plmcore.models.config import ACTIVATIONS, Config
from plmcore.models.declaration import SENTENCES, Recipe, Size, TokenizerFormat
from plmcore.models.labels import PLACE, TARGETS
from plmcore.models.names import Stored
from plmcore.models.outputs import Output
from plmcore.models.padding import EVERYWHERE, Encoded, Layout, Packed, Padded
from plmcore.models.rereading import Rereads
from plmcore.models.sequence_summary import Summary
from plmcore.models.two_streams import RelativeAttention, View
from plmcore.runtime.autograd import no_grad


@dataclass(frozen=True, kw_only=True)
class XLNetConfig(Config):
    model_type: str = "xlnet"
    vocab_size: int = 32000
    d_model: int = 1024
    n_layer: int = 24
    n_head: int = 16
    d_head: int | None = None
    d_inner: int = 4096
    ff_activation: str = "gelu"
    attn_type: str = "bi"
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    dropout: float = 0.1
    mem_len: int | None = 512
    reuse_len: int | None = None
    use_mems_eval: bool = True
    use_mems_train: bool = False
    bi_data: bool = False
    clamp_len: int = -1
    same_length: bool = False
    summary_type: str = "last"
    summary_use_proj: bool = True
    summary_activation: str | None = "tanh"
    summary_last_dropout: float = 0.1
    start_n_top: int = 5
    end_n_top: int = 5
    tie_word_embeddings: bool = True
    type_vocab_size: ClassVar[None] = None  # any number of segments: only same or other counts

    def check(self) -> None:
        self.at_least(1, "vocab_size", "n_layer", "d_inner", "start_n_top", "end_n_top")
        self.at_least(0, "initializer_range")
        self.multiple("d_model", of="n_head")
        if self.d_model % 2:
            self.refuse("d_model", "must be even, for sines and cosines")
        if self.d_head not in (None, self.d_model // self.n_head):
            self.refuse("d_head", f"must be d_model / n_head = {self.d_model // self.n_head}")
        for key in ("mem_len", "reuse_len"):
            if getattr(self, key) is not None:
                self.at_least(0, key)
        self.one_of("ff_activation", ACTIVATIONS)
        self.one_of("summary_activation", (None, "", *ACTIVATIONS))
        self.one_of("attn_type", ("bi", "uni"))
        self.one_of("summary_type", ("last", "first", "mean", "cls_index"))
        self.probability("dropout", "summary_last_dropout")

    @property
    def weight_init(self) -> nn.init.Init:
        return nn.init.normal(self.initializer_range)

    def summary(self) -> Summary:
        width = self.d_model if self.summary_use_proj else None
        return Summary(
            self.summary_type, width, self.summary_activation, self.summary_last_dropout, self.weight_init
        )


class Block(nn.Module):
    def __init__(self, cfg: XLNetConfig):
        C, init = cfg.d_model, cfg.weight_init
        self.attn = RelativeAttention(
            C, cfg.n_head, causal=cfg.attn_type == "uni", dropout=cfg.dropout, weight_init=init
        )
        self.norm1 = nn.LayerNorm(C, cfg.layer_norm_eps)
        self.up = nn.Linear(C, cfg.d_inner, activation=ACTIVATIONS[cfg.ff_activation], weight_init=init)
        self.down = nn.Linear(cfg.d_inner, C, weight_init=init)
        self.norm2 = nn.LayerNorm(C, cfg.layer_norm_eps)
        self.dropout = nn.Dropout(cfg.dropout)

    def __call__(
        self, h: Tensor, g: Tensor | None, memory: Tensor | None, view: View
    ) -> tuple[Tensor, Tensor | None]:
        seen_h, seen_g = self.attn(h, g, memory, view)
        return self.rest(seen_h, h), None if g is None or seen_g is None else self.rest(seen_g, g)

    def rest(self, seen: Tensor, x: Tensor) -> Tensor:
        x = self.norm1(seen, residual=x)
        return self.norm2(self.dropout(self.down(self.dropout(self.up(x)))), residual=x)


@dataclass
class Streams(Encoded):
    """rows and layout are those of g where there are targets;
    `content`, if kept, is h before each layer and at the end.
    """

    content: list[Tensor] = field(default_factory=list)
    attentions: tuple[Any, ...] | None = None
    mems: Callable[[], tuple[Tensor, ...]] | None = None  # of each layer, [P, B, C]

    def output(self, **fields: Any) -> Output:
        states = None if self.states is None else tuple(self.states)
        return Output(**fields, mems=self.mems, hidden_states=states, attentions=self.attentions)


class XLNet(nn.Module):
    def __init__(self, config: XLNetConfig):
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, config.d_model, weight_init=config.weight_init)
        self.mask = nn.Parameter.new(config.weight_init, (1, 1, config.d_model))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.dropout = nn.Dropout(config.dropout)

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        mems: Sequence[Tensor] | Tensor | None = None,
        perm_mask: Tensor | None = None,
        target_mapping: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        input_mask: Tensor | None = None,
        *,
        use_mems: bool | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        reads: padding.Reads = (),
    ) -> Streams:
        """mems: [P, B, C] of each layer, as the last call gave them.
        input_mask: 1 where an attention_mask has 0.
        """
        cfg = self.config
        padding.check_ids(
            input_ids, token_type_ids=token_type_ids, attention_mask=attention_mask, input_mask=input_mask
        )
        B, T = input_ids.shape
        if input_mask is not None:
            if attention_mask is not None:
                raise ArgumentError(
                    "attention_mask and input_mask say the same, 1 for tokens or for padding; pass one"
                )
            attention_mask = ops.logical_not(ops.cast(input_mask, "bool"))
        if use_mems is None:
            use_mems = cfg.use_mems_train if self.training else cfg.use_mems_eval
        # they read the query stream, which has no padding
        reads = () if target_mapping is not None else reads
        reads = (*reads, EVERYWHERE) if use_mems and self.training else reads
        layout = padding.layout(input_ids, attention_mask, reads, output_attentions)
        memories = relative.by_batch(mems, cfg.n_layer, B, T, cfg.d_model)
        view = two_streams.view(
            cfg, layout, 0 if memories[0] is None else memories[0].shape[1], self.tokens.dtype,
            attention_mask=attention_mask, perm_mask=perm_mask, targets=target_mapping, types=token_type_ids,
        )  # fmt: skip
        view.distances = self.dropout(view.distances)  # once for the batch, not for each sequence
        encoded = self.run(
            input_ids, memories, view, output_hidden_states, use_mems and not isinstance(layout, Packed)
        )
        if use_mems:
            content = encoded.content  # not `encoded`, which holds `kept`: no cycle keeps the states alive

            def kept() -> tuple[Tensor, ...]:
                """The memory has padding too, as published: rows that were dropped are made up for when
                somebody reads it.
                """
                states = content
                with no_grad():
                    if isinstance(layout, Packed) and attention_mask is not None:
                        padded = replace(view, layout=Padded(ops.cast(attention_mask, "bool")))
                        states = self.run(input_ids, memories, padded).content
                    return tuple(
                        relative.next_memory(m, h, cfg.mem_len, cfg.reuse_len)
                        for m, h in zip(memories, states)
                    )

            encoded.mems = kept
        return encoded

    def run(
        self,
        ids: Tensor,
        memories: Sequence[Tensor | None],
        view: View,
        output_hidden_states: bool = False,
        keep: bool = True,
    ) -> Streams:
        layout, targets = view.layout, view.targets
        h, g = self.dropout(self.tokens(layout.pack(ids))), None
        if targets is not None:
            # [B, M, C]
            g = self.dropout(ops.broadcast_to(self.mask, (*targets.shape[:2], self.config.d_model)))
        content, query = [h], [g]
        for block, memory in zip(self.blocks, memories):
            h, g = block(h, g, memory, view)
            if keep or output_hidden_states:
                content.append(h)
                query.append(g)
        states, weights = None, None
        if output_hidden_states:
            states = [x for h, g in zip(content, query) for x in (layout.unpack(h), g) if x is not None]
        if layout.collected is not None:
            found = tuple(layout.unpack_weights(w) for w in layout.collected)
            weights = found if targets is None else tuple(zip(found[::2], found[1::2]))  # of h and of g
        rows, at = (h, layout) if targets is None or g is None else (g, Layout(targets))
        return Streams(self.dropout(rows), at, states, content, weights)

    def __call__(self, input_ids: Tensor, *args: Any, **inputs: Any) -> Output:
        encoded = self.encode(input_ids, *args, **inputs)
        return encoded.output(last_hidden_state=encoded.layout.unpack(encoded.rows))


class XLNetCausalLM(heads.Predicts, Rereads):
    """Logits of the targets, or of every position; labels are for the same positions."""

    LABELS = (TARGETS, PLACE)

    def __init__(self, config: XLNetConfig):
        self.config = config
        self.body = XLNet(config)
        tied = self.body.tokens.weight if config.tie_word_embeddings else None
        self.decoder = nn.Linear(
            config.d_model, config.vocab_size, weight=tied, weight_init=config.weight_init
        )

    def logits(self, rows: Tensor) -> Tensor:
        return self.decoder(rows)

    def scored(self, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor) -> Encoded:
        """Every token is a target that sees those before it."""
        B, T = labels.shape
        seen, place = (ops.reshape(ops.arange(0, T, like=labels), shape) for shape in ((1, 1, T), (1, T, 1)))
        later, own = (
            ops.broadcast_to(ops.cast(x, "float32"), (B, T, T))
            for x in (ops.greater_equal(seen, place), ops.equal(seen, place))
        )
        return self.body.encode(
            input_ids, attention_mask, perm_mask=later, target_mapping=own, use_mems=False
        )


class XLNetSequenceClassification(nn.Module):
    def __init__(self, config: XLNetConfig):
        self.config = config
        self.body = XLNet(config)
        self.summary = config.summary()
        self.scores = nn.Linear(config.d_model, config.num_labels, weight_init=config.weight_init)

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        padding.check_ids(input_ids)
        encoded = self.body.encode(input_ids, **inputs, reads=self.summary.reads(input_ids))
        logits = self.scores(self.summary(encoded))  # [B, labels]
        loss = None if labels is None else heads.classification_loss(self.config, logits, labels)
        return encoded.output(logits=logits, loss=loss)


class XLNetMultipleChoice(heads.MultipleChoice):
    NAMES = {"classifier": "logits_proj"}

    def __init__(self, cfg: XLNetConfig):
        super().__init__(cfg, XLNet(cfg), cfg.d_model, 0.0, cfg.weight_init)
        self.summary = cfg.summary()

    def reads(self, ids: Tensor) -> padding.Reads:
        return self.summary.reads(ids)

    def pool(self, encoded: Encoded) -> Tensor:
        return self.summary(encoded)


XLNetTokenClassification = heads.bound(
    "XLNetTokenClassification", heads.TokenClassification, XLNet, "d_model", 0.0, "weight_init"
)
XLNetQuestionAnswering = heads.bound(
    "XLNetQuestionAnswering", heads.QuestionAnswering, XLNet, "d_model weight_init"
)
XLNetAnswerBeams = heads.bound("XLNetAnswerBeams", AnswerBeams, XLNet, "d_model layer_norm_eps weight_init")

CONFIG = XLNetConfig
MODEL_TYPES = {"xlnet": "XLNet"}
HEADS = {
    "base": XLNet,
    "causal-lm": XLNetCausalLM,
    "sequence-classification": XLNetSequenceClassification,
    "token-classification": XLNetTokenClassification,
    "question-answering": XLNetQuestionAnswering,
    "answer-beams": XLNetAnswerBeams,
    "multiple-choice": XLNetMultipleChoice,
}
ARCHITECTURES = {
    "XLNetModel": "base",
    "XLNetLMHeadModel": "causal-lm",
    "XLNetForSequenceClassification": "sequence-classification",
    "XLNetForTokenClassification": "token-classification",
    "XLNetForQuestionAnsweringSimple": "question-answering",
    "XLNetForQuestionAnswering": "answer-beams",
    "XLNetForMultipleChoice": "multiple-choice",
}
PREFIX = "transformer."


def _in_heads(cfg: XLNetConfig) -> tuple[int, ...]:
    return cfg.d_model, cfg.n_head, cfg.d_model // cfg.n_head


NAMES = {
    "tokens": "word_embedding",
    "mask": "mask_emb",
    "blocks.{i}.attn.q.weight": Stored(("layer.{i}.rel_attn.q",), transposed=True, shape=_in_heads),
    "blocks.{i}.attn.kv.weight": Stored(
        ("layer.{i}.rel_attn.k", "layer.{i}.rel_attn.v"), transposed=True, shape=_in_heads
    ),
    "blocks.{i}.attn.r.weight": Stored(("layer.{i}.rel_attn.r",), transposed=True, shape=_in_heads),
    "blocks.{i}.attn.out.weight": Stored(("layer.{i}.rel_attn.o",), shape=_in_heads),
    "blocks.{i}.attn.u": "layer.{i}.rel_attn.r_w_bias",
    "blocks.{i}.attn.v": "layer.{i}.rel_attn.r_r_bias",
    "blocks.{i}.attn.s": "layer.{i}.rel_attn.r_s_bias",
    "blocks.{i}.attn.segments": "layer.{i}.rel_attn.seg_embed",
    "blocks.{i}.norm1": "layer.{i}.rel_attn.layer_norm",
    "blocks.{i}.up": "layer.{i}.ff.layer_1",
    "blocks.{i}.down": "layer.{i}.ff.layer_2",
    "blocks.{i}.norm2": "layer.{i}.ff.layer_norm",
    "decoder": "lm_loss",
    "summary.dense": "sequence_summary.summary",
    "scores": "logits_proj",
    "classifier": "classifier",
    "span": "qa_outputs",
}
TOKENIZERS = (
    TokenizerFormat(
        "xlnet",
        "XLNetTokenizer",
        dict(pad="<pad>", unk="<unk>", cls="<cls>", sep="<sep>", mask="<mask>", bos="<s>", eos="</s>"),
        single="A sep cls:2",
        pair="A sep B:1 sep:1 cls:2",
        padding_side="left",
        pad_type=3,
        extra=("<eop>", "<eod>"),
        kinds=("unigram",),
        told=True,
        shows=("permutation-lm",),
        pieces=dict(normalise=True, lower=False),
        layout=dict(
            unk_id=0, bos_id=1, eos_id=2, pad_id=-1,
            control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"],
        ),
    ),
)  # fmt: skip


def sized(s: Size) -> dict[str, Any]:
    return dict(n_layer=s.layers, d_model=s.width, n_head=s.heads, d_inner=4 * s.width, mem_len=0)


def streams(chosen: dict[str, dict[str, Any]]) -> None:
    """With memory: windows advance by half of their length, the orders hold within the halves, and of 512
    tokens 85 are predicted.
    """
    data, objective = chosen["data"], chosen["objective"]
    if not chosen["train"]["mem_len"] or objective["name"] != "permutation-lm":
        chosen["train"]["mem_len"] = 0
        return
    half = max(2, data["length"] // 2)
    usual = dict(
        stride=half, block=half, streams=data["batch"], predict=max(1, round(85 * data["length"] / 512))
    )
    objective |= {k: v for k, v in usual.items() if objective[k] is None}


RECIPES = {
    "xlnet": Recipe(
        model=sized,
        head="causal-lm",
        objective=dict(name="permutation-lm"),
        tokenizer="unigram",
        vocab=32_000,
        lr=4e-4,
        steps=500_000,
        warmup=0.08,
        optim=dict(kind="adamw", weight_decay=0.01, eps=1e-6, clip_norm=1.0),
        schedule=dict(kind="linear"),
        data=SENTENCES,
        sizes={
            "base": Size(12, 768, 12, 512, 8, 256, None, None),
            "large": Size(24, 1024, 16, 512, 4, 2048, None, None),
        },
        train=dict(mem_len=384),
        derive=streams,
    )
}
