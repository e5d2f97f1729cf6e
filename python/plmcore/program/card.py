"""What a model file says of its model beside the programs: the part "model" of docs/program-format.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from plmcore import models
from plmcore._core import Tensor
from plmcore.generate.settings import Settings, as_list
from plmcore.language_model import pooling
from plmcore.models.generates import Generates
from plmcore.program import text as written
from plmcore.tokenizers.families import ROLES

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel
    from plmcore.models import Model

STOPS = {False: 0, True: 1, "never": 2}
OPTIONS = (  # of Settings, which a file keeps where they are not the usual ones
    "max_new_tokens",
    "max_length",
    "min_new_tokens",
    "min_length",
    "num_beams",
    "num_beam_groups",
    "num_return_sequences",
    "diversity_penalty",
    "length_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "no_repeat_ngram_size",
)


def made(model: Model, lm: LanguageModel | None, main: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The card, and the tensors that it names. Without a LanguageModel there is no tokenizer, no pooling and
    no generation_config.json: those of the config are taken.
    """
    config = model.config
    source, tokenizer = (None, None) if lm is None else (lm.source, lm.tokenizer)
    settings = Settings.of(config, source, {})
    how = pooling.read(source)
    card: dict[str, Any] = {
        "family": config.model_type,
        "head": models.head_name(model),
        "main": main,
        "vocabulary": config.vocab_size,
        "longest": config.longest or 0,
        "ids": _ids(settings, tokenizer),
        "pooling": {
            "modes": list(how.modes),
            "normalise": int(how.normalise),
            "max_length": how.max_length or 0,
        },
        "padding": _padding(settings, tokenizer),
    }
    if isinstance(model, Generates):
        card["generation"] = _generation(settings)
    if card["head"] in ("sequence-classification", "token-classification", "next-sentence"):
        card |= _labels(model)
    if tokenizer is None:
        return card, {}
    card["text"], tensors = written.made(tokenizer)
    return card, tensors


def text(card: Mapping[str, Any]) -> str:
    return json.dumps(card, ensure_ascii=False)


def _ids(settings: Settings, tokenizer: Any) -> dict[str, list[int]]:
    """Of special tokens, by role: the tokenizer's, and those that generation goes by."""
    roles = {} if tokenizer is None else {role: getattr(tokenizer, f"{role}_token_id") for role in ROLES}
    named = ("bos", "eos", "pad", "decoder_start")
    roles |= {role: ids for role in named if (ids := getattr(settings, f"{role}_token_id")) is not None}
    return {role: as_list(ids) for role, ids in roles.items() if ids is not None}


def _padding(settings: Settings, tokenizer: Any) -> dict[str, int]:
    if tokenizer is None:
        return {"left": 0, "id": settings.pad_token_id or 0, "type": 0}
    family = tokenizer.family
    left = family.padding_side == "left"
    return {"left": int(left), "id": tokenizer.pad_token_id or 0, "type": family.pad_type}


def _generation(settings: Settings) -> dict[str, Any]:
    found = {name: getattr(settings, name) for name in OPTIONS}
    usual = {f.name: f.default for f in fields(Settings)} | {"top_k": 0}  # of the search
    found = {name: value for name, value in found.items() if value is not None and value != usual[name]}
    found["early_stopping"] = STOPS[settings.early_stopping]
    found["gnmt"] = int(settings.length_penalty_form == "gnmt")
    found["do_sample"] = int(settings.do_sample)
    found["bad_words_ids"] = [[int(t) for t in word] for word in settings.bad_words_ids]
    found["forced_bos_token_id"] = as_list(settings.forced_bos_token_id)
    found["forced_eos_token_id"] = as_list(settings.forced_eos_token_id)
    return found


def _labels(model: Model) -> dict[str, Any]:
    config = model.config
    names = config.extra.get("id2label") or {}
    kind = config.problem_type or ("regression" if config.num_labels == 1 else "single_label_classification")
    labels = [names.get(str(i), f"LABEL_{i}") for i in range(config.num_labels)]
    return {"labels": labels, "problem": kind}
