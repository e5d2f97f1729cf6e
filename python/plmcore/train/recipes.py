"""How a family is pre-trained, by the recipe that its module declares: objective, optimiser, schedule and
sizes, as the tables of a config.toml.

Base and larger sizes have the published figures, and so have GPT-2's, GPT-3's and T5's from small on. The
others are for small machines: their widths are those of BERT's miniatures, their rates and batches are ours;
tiny is nanoGPT's setting for one processor.
"""

from __future__ import annotations

from typing import Any

from plmcore import models
from plmcore._core import ArgumentError
from plmcore.models.declaration import Recipe, Size
from plmcore.train.settings import Settings

SIZES = {
    "tiny": Size(4, 128, 4, 64, 12, 1, 1024, 2000, 1e-3, dropout=0.0),  # little text, one pass
    "mini": Size(4, 256, 4, 128, 16, 1, 4096, 10_000, 1e-3),
    "small": Size(4, 512, 8, 128, 32, 1, 8192, 20_000, 5e-4),
    "medium": Size(8, 512, 8, 256, 32, 1, 16_384, 50_000, 5e-4),
    "base": Size(12, 768, 12, 512, 8, 32, None, None),
    "large": Size(24, 1024, 16, 512, 4, 64, None, None),
}


def names() -> list[str]:
    """The families that have a recipe."""
    return [name for module in models.families() for name in module.RECIPES]


def name_of(family: str) -> str:
    """The model_type that a name, which may be another one of it, stands for."""
    if family in models.FAMILIES:
        return family
    return next((m.ALIASES[family] for m in models.families() if family in m.ALIASES), family)


def recipe(family: str) -> Recipe:
    family = name_of(family)
    found: Recipe | None = models.family(family).RECIPES.get(family) if family in models.FAMILIES else None
    if found is None:
        raise ArgumentError(f"there is no recipe for {family!r}; one of {', '.join(names())}")
    return found


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
        "mixture": {
            "tables": [],
            "text_rate": None,
            "limit": 1 << 19,
            "temperature": 1.0,
            "target_length": s.length,
        }
    }
    return {
        "run": {"family": name_of(family), "size": size, "seed": 0, "device": "cpu"},
        "model": {"head": known.head, **known.model(s)},
        "data": {
            "text": [],
            "target": None,
            "held_out": 0.05,
            "tokenizer": known.tokenizer,
            "vocab": s.vocab or known.vocab,
            "errors": "strict",
            **known.data,
            "length": s.length,
            "batch": s.batch,
            "accumulate": s.accumulate,
            "ramp": None,
        },
        "objective": objective,
        **(mixed if known.mixes else {}),
        "optim": {
            "kind": "adamw",
            "lr": rate,
            "betas": [0.9, 0.999],
            "eps": 1e-8,
            "layer_decay": 1.0,
            "weight_decay": 0.01,
            "clip_norm": 1.0,
            **known.optim,
        },
        "schedule": schedule,
        "train": {
            "steps": steps,
            "extended": [],
            "log_every": 10,
            "save_every": max(1, steps // 10),
            "keep": 2,
            "evaluate_every": max(1, steps // 10),
            "evaluate_batches": 20,
            "patience": None,
            "average": None,
            "trigger": 5,
            "result": "last",
            "label_smoothing": 0.0,
            "nonfinite": "stop",
            "recompute": False,
            "activations": "float32",
            "tensorboard": False,
            **known.train,
            **memory,
        },
    }
