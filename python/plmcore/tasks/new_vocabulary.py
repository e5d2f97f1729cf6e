"""Another vocabulary for a pre-trained model: that of the text it goes on with (ULMFiT).

A word that the model knows keeps its rows; those of a new one are the mean of all.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore import models, nn, tokenizers
from plmcore._core import ArgumentError
from plmcore.language_model import LanguageModel
from plmcore.tasks.task_data import TaskData

if TYPE_CHECKING:
    from plmcore.models import Model


def adopt(lm: LanguageModel, task_data: TaskData, size: int) -> None:
    """Gives the model a vocabulary of at most `size` words of what is learnt from."""
    old: Any = lm.tokenizer
    if old.kind != "words":
        raise ArgumentError(
            f"adapt.vocab is for vocabularies of words, and this is one of {old.kind}, which can spell "
            f"new words; leave it"
        )
    options: dict[str, Any] = dict(kind="words", vocab_size=size, family=old.family.name)
    if task_data.kind == "lm":
        text = task_data.table["train"]
        new = tokenizers.train_tokenizer([text], errors=task_data.table["errors"], **options)
    else:
        fields = ("text", "pair")
        texts = [r[f] for r in task_data.records["train"] for f in fields if r.get(f)]
        new = tokenizers.train_tokenizer(texts=texts, **options)
    lm.model = moved(lm.model, old.backend.vocabulary, new.backend.vocabulary, new.pad_token_id)
    lm.tokenizer = new


def moved(model: Model, old: dict[str, int], new: dict[str, int], pad: int | None) -> Model:
    """The model with the rows of another vocabulary."""
    config, head = model.config, models.head_name(model)
    made = models.build(config.replace(vocab_size=len(new), pad_token_id=pad), head)
    state: dict[str, Any] = dict(model.state_dict())
    words = sorted(new, key=new.__getitem__)
    known = np.array([old.get(word, -1) for word in words])
    for name in of_vocabulary(model):
        rows = np.array(state[name].numpy())
        mean = rows[: len(old)].mean(0, dtype=np.float64).astype(rows.dtype)
        known_too = (known >= 0).reshape(-1, *(1 for _ in rows.shape[1:]))
        state[name] = np.where(known_too, rows[known], mean)
    made.load_state_dict(state)
    return made


def of_vocabulary(model: Model) -> list[str]:
    """The names of the tensors that have a row for each word: those which another size changes."""
    config, head = model.config, models.head_name(model)
    with nn.init.skipped():
        sizes = [models.build(config.replace(vocab_size=config.vocab_size + n), head) for n in (0, 1)]
    found: collections.defaultdict[str, list[Any]] = collections.defaultdict(list)
    for made in sizes:
        for name, p in (*made.named_parameters(), *made.named_buffers()):
            found[name].append(tuple(p.shape))
    return [name for name, (before, after) in found.items() if before != after]
