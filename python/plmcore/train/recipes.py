"""How each family was pre-trained: objective, optimiser, schedule and sizes, as the tables of a config.toml.

Base and larger sizes have the published figures, and so have GPT-2's, GPT-3's and T5's from small on. The others are for small machines: their
widths are those of BERT's miniatures, their rates and batches are ours; tiny is nanoGPT's setting for one processor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from plmcore._core import ArgumentError
from plmcore.train.settings import Settings


@dataclass(frozen=True)
class Size:
    """Of a model and of its batches: `batch` rows of `length` tokens at a time, `accumulate` times for one step."""

    layers: int
    width: int
    heads: int
    length: int
    batch: int
    accumulate: int
    vocab: int | None  # None: the published vocabulary's
    steps: int | None  # None: the published number
    lr: float | None = None  # None: the published one


SIZES = {
    "tiny": Size(4, 128, 4, 64, 12, 1, 1024, 2000, 1e-3),
    "mini": Size(4, 256, 4, 128, 16, 1, 4096, 10_000, 1e-3),
    "small": Size(4, 512, 8, 128, 32, 1, 8192, 20_000, 5e-4),
    "medium": Size(8, 512, 8, 256, 32, 1, 16_384, 50_000, 5e-4),
    "base": Size(12, 768, 12, 512, 8, 32, None, None),
    "large": Size(24, 1024, 16, 512, 4, 64, None, None),
}


@dataclass(frozen=True)
class Recipe:
    """`model` gives the keys of the family's config for a size; other fields are defaults of tables of config.toml."""

    model: Callable[[Size], dict[str, Any]]
    head: str
    objective: dict[str, Any]
    tokenizer: str
    vocab: int
    lr: float
    steps: int
    warmup: float  # share of the steps
    optim: dict[str, Any] = field(default_factory=dict)
    schedule: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    small_lr: float | None = None  # of sizes below base; None: that of the size
    sizes: dict[str, Size] = field(default_factory=dict)  # where the published base differs
    mixes: bool = False  # supervised tasks with the text
    lacks: tuple[str, ...] = ()  # sizes that were not published
    derive: Callable[[Settings], None] = lambda chosen: None  # fills in settings that follow from others


def _decoder(s: Size) -> dict[str, Any]:
    dropout = 0.0 if s is SIZES["tiny"] else 0.1  # one pass over little text does not overfit
    return dict(n_layer=s.layers, n_embd=s.width, n_head=s.heads, n_positions=s.length,
                resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout)  # fmt: skip


def _gpt3(s: Size) -> dict[str, Any]:
    return _decoder(s) | dict(attention_band=min(256, s.length // 2), resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)


def _encoder(s: Size) -> dict[str, Any]:
    return dict(num_hidden_layers=s.layers, hidden_size=s.width, num_attention_heads=s.heads, intermediate_size=4 * s.width,
                max_position_embeddings=s.length)  # fmt: skip


def _roberta(s: Size) -> dict[str, Any]:
    return _encoder(s) | dict(
        max_position_embeddings=s.length + 2, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1
    )


def _albert(s: Size) -> dict[str, Any]:
    return _encoder(s) | dict(embedding_size=min(128, s.width))


def _xlnet(s: Size) -> dict[str, Any]:
    return dict(n_layer=s.layers, d_model=s.width, n_head=s.heads, d_inner=4 * s.width, mem_len=0)


def _streams(chosen: Settings) -> None:
    """XLNet with memory: windows advance by half of their length, the orders hold within the halves, and of 512 tokens 85 are predicted."""
    data, objective = chosen["data"], chosen["objective"]
    if not chosen["train"]["mem_len"] or objective["name"] != "permutation-lm":
        chosen["train"]["mem_len"] = 0
        return
    half = max(2, data["length"] // 2)
    usual = dict(stride=half, block=half, streams=data["batch"], predict=max(1, round(85 * data["length"] / 512)))
    objective |= {k: v for k, v in usual.items() if objective[k] is None}


def _stacks(s: Size) -> dict[str, Any]:
    half = max(2, s.layers // 2)
    return dict(d_model=s.width, encoder_layers=half, decoder_layers=half, encoder_attention_heads=s.heads,
                decoder_attention_heads=s.heads, encoder_ffn_dim=4 * s.width, decoder_ffn_dim=4 * s.width,
                max_position_embeddings=2 * s.length)  # fmt: skip


def _t5(s: Size) -> dict[str, Any]:
    layers = s.layers if s.vocab is None else max(2, s.layers // 2)
    return dict(d_model=s.width, num_layers=layers, num_heads=s.heads, d_kv=64 if s.width >= 512 else s.width // s.heads,
                d_ff=4 * s.width)  # fmt: skip


SENTENCES = dict(documents="blank", sentences="rule", unwrap=True)
TEXT = dict(documents="file", sentences="rule", unwrap=False)
RECIPES = {
    "openai-gpt": Recipe(
        _decoder, "causal-lm", dict(name="causal-lm"), "bpe", 40_478, 2.5e-4, 1_600_000, 0.00125,
        optim=dict(kind="adamw", weight_decay=0.01, clip_norm=1.0), schedule=dict(kind="cosine"), data=TEXT,
        sizes={"base": Size(12, 768, 12, 512, 8, 8, None, None)}, lacks=("large",),
    ),
    "gpt2": Recipe(
        _decoder, "causal-lm", dict(name="causal-lm"), "byte-bpe", 50_257, 6e-4, 600_000, 0.05,
        optim=dict(kind="adamw", betas=[0.9, 0.99], weight_decay=0.1, clip_norm=1.0),
        schedule=dict(kind="cosine", floor=0.1), data=TEXT,
        sizes=dict.fromkeys(("small", "base"), Size(12, 768, 12, 1024, 4, 128, None, None)) | {
            "medium": Size(24, 1024, 16, 1024, 2, 256, None, None, 3e-4), "large": Size(36, 1280, 20, 1024, 1, 512, None, None, 2.5e-4),
            "xl": Size(48, 1600, 25, 1024, 1, 512, None, None, 2e-4),
        },
    ),
    "gpt3": Recipe(
        _gpt3, "causal-lm", dict(name="causal-lm"), "byte-bpe", 50_257, 6e-4, 572_000, 0.00125,
        optim=dict(kind="adamw", betas=[0.9, 0.95], weight_decay=0.1, clip_norm=1.0),
        schedule=dict(kind="cosine", floor=0.1), data=TEXT,
        sizes=dict.fromkeys(("small", "base"), Size(12, 768, 12, 2048, 2, 122, None, None)) | {
            "medium": Size(24, 1024, 16, 2048, 1, 244, None, None, 3e-4), "large": Size(24, 1536, 16, 2048, 1, 244, None, None, 2.5e-4),
            "xl": Size(24, 2048, 16, 2048, 1, 488, None, None, 2e-4),
        },
    ),
    "bert": Recipe(
        _encoder, "pretraining", dict(name="next-sentence", exact=True, most=80, copies=10), "wordpiece", 30_522, 1e-4, 1_000_000, 0.01,
        optim=dict(kind="bertadam", weight_decay=0.01, clip_norm=1.0, eps=1e-6), schedule=dict(kind="linear"), data=SENTENCES,
    ),
    "roberta": Recipe(
        _roberta, "masked-lm", dict(name="masked-lm", exact=True, rounding="random", specials=False), "byte-bpe", 50_265, 6e-4, 500_000, 0.048,
        optim=dict(kind="adamw", betas=[0.9, 0.98], weight_decay=0.01, eps=1e-6, clip_norm=None), schedule=dict(kind="linear"), data=SENTENCES,
        sizes={"base": Size(12, 768, 12, 512, 8, 1024, None, None), "large": Size(24, 1024, 16, 512, 4, 2048, None, None, 4e-4)},
    ),
    "albert": Recipe(
        _albert, "pretraining", dict(name="sentence-order", exact=True, unit="ngram"), "unigram", 30_000, 1.76e-3, 125_000, 0.025,
        optim=dict(kind="lamb", weight_decay=0.01, eps=1e-6, clip_norm=1.0), schedule=dict(kind="linear"), data=SENTENCES, small_lr=1e-2,
        sizes={"base": Size(12, 768, 12, 512, 8, 512, None, None), "large": Size(24, 1024, 16, 512, 4, 1024, None, None),
               "xlarge": Size(24, 2048, 16, 512, 2, 2048, None, None), "xxlarge": Size(12, 4096, 64, 512, 1, 4096, None, None)},
    ),
    "xlnet": Recipe(
        _xlnet, "causal-lm", dict(name="permutation-lm"), "unigram", 32_000, 4e-4, 500_000, 0.08,
        optim=dict(kind="adamw", weight_decay=0.01, eps=1e-6, clip_norm=1.0), schedule=dict(kind="linear"), data=SENTENCES,
        sizes={"base": Size(12, 768, 12, 512, 8, 256, None, None), "large": Size(24, 1024, 16, 512, 4, 2048, None, None)},
        train=dict(mem_len=384), derive=_streams,
    ),
    "bart": Recipe(
        _stacks, "seq2seq-lm", dict(name="denoising"), "byte-bpe", 50_265, 4e-4, 500_000, 0.02,
        optim=dict(kind="adamw", betas=[0.9, 0.98], weight_decay=0.01, eps=1e-6, clip_norm=0.1), schedule=dict(kind="polynomial"), data=SENTENCES,
        sizes={"base": Size(12, 768, 12, 512, 8, 1000, None, None), "large": Size(24, 1024, 16, 512, 4, 2000, None, None)}, mixes=True,
    ),
    "transformer": Recipe(
        _stacks, "seq2seq-lm", dict(name="translation"), "byte-bpe", 37_000, 1.0, 100_000, 0.04,
        optim=dict(kind="adam", betas=[0.9, 0.98], eps=1e-9, weight_decay=0.0, clip_norm=None), schedule=dict(kind="noam"),
        data=dict(documents="line", sentences="document", unwrap=False), train=dict(label_smoothing=0.1), small_lr=1.0,
        sizes={"base": Size(12, 512, 8, 128, 64, 12, None, None), "large": Size(12, 1024, 16, 128, 32, 24, None, None)},
    ),
    "t5": Recipe(
        _t5, "seq2seq-lm", dict(name="span-corruption"), "unigram", 32_100, 1.0, 524_288, 0.0,
        optim=dict(kind="adafactor", betas=None, eps=None, weight_decay=0.0, clip_norm=None), schedule=dict(kind="inverse_sqrt"), data=SENTENCES, small_lr=1.0, mixes=True,
        sizes={"small": Size(6, 512, 8, 512, 16, 8, None, None), "base": Size(12, 768, 12, 512, 8, 16, None, None),
               "large": Size(24, 1024, 16, 512, 4, 32, None, None)},
    ),
}  # fmt: skip
ALIASES = {"gpt": "openai-gpt", "gpt1": "openai-gpt"}


def recipe(family: str) -> Recipe:
    family = ALIASES.get(family, family)
    if family not in RECIPES:
        raise ArgumentError(f"there is no recipe for {family!r}; one of {', '.join(RECIPES)}")
    return RECIPES[family]


def sizes_of(family: str) -> tuple[str, ...]:
    """The sizes of a family, smallest first."""
    known = recipe(family)
    return tuple(s for s in dict.fromkeys((*SIZES, *known.sizes)) if s not in known.lacks)


def defaults(family: str, size: str = "tiny", steps: int | None = None) -> Settings:
    """All settings of a run, each with its value. A value of None may be left out."""
    known = recipe(family)
    if size not in (there := sizes_of(family)):
        raise ArgumentError(f"{family} has no size {size!r}; one of {', '.join(there)}")
    s = known.sizes.get(size) or SIZES[size]
    steps = steps or s.steps or known.steps
    objective = dict(known.objective)
    if objective.get("most"):
        objective["most"] = max(1, round(objective["most"] * s.length / 512))
    memory = known.train.get("mem_len")
    memory = {"mem_len": max(1, memory * s.length // 512)} if memory else {}
    rate = (known.small_lr or s.lr) if s.vocab else (s.lr or known.lr)
    schedule = {"kind": "linear", "warmup": round(known.warmup * steps), "floor": 0.0, **known.schedule}
    if schedule["kind"] == "noam":
        schedule |= {"width": s.width, "warmup": max(1, schedule["warmup"])}
    mixed: dict[str, dict[str, Any]] = {
        "mixture": {"tables": [], "text_rate": None, "limit": 1 << 19, "temperature": 1.0, "target_length": s.length}
    }
    return {
        "run": {"family": ALIASES.get(family, family), "size": size, "seed": 0},
        "model": {"head": known.head, **known.model(s)},
        "data": {
            "text": [], "target": None, "held_out": 0.05, "tokenizer": known.tokenizer, "vocab": s.vocab or known.vocab, "errors": "strict", **known.data,
            "length": s.length, "batch": s.batch, "accumulate": s.accumulate, "ramp": None,
        },
        "objective": objective,
        **(mixed if known.mixes else {}),
        "optim": {
            "kind": "adamw", "lr": rate, "betas": [0.9, 0.999], "eps": 1e-8,
            "layer_decay": 1.0, **known.optim,
        },
        "schedule": schedule,
        "train": {
            "steps": steps, "extended": [], "log_every": 10, "save_every": max(1, steps // 10), "keep": 2, "evaluate_every": max(1, steps // 10), "evaluate_batches": 20,
            "patience": None, "average": None, "trigger": 5, "result": "last", "label_smoothing": 0.0, "nonfinite": "stop", "recompute": False,
            "activations": "float32", "tensorboard": False, **known.train, **memory,
        },
    }  # fmt: skip
