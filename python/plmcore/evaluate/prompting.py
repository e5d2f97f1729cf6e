"""Tasks put to a language model as text: an instruction, some solved examples,
and the one to solve (GPT-2, GPT-3).

Nothing is trained.

Records have the fields that the template names, and `choices` with the number of the right one as `label`, of
which the most probable is taken, or the right `answer` (or several `answers`), which the model must write.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.evaluate import choices, metrics
from plmcore.runtime import draws

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel

Record = Mapping[str, Any]
TEMPLATE = "Q: {question}\nA:"
BATCH = 8  # prompts that are written on together


@dataclass(frozen=True)
class FewShot:
    """predictions: texts, or numbers of choices; prompts: what the model was given;
    shots: solved examples in each of them.
    """

    predictions: list[str] | list[int]
    scores: dict[str, float]
    prompts: list[str]
    shots: list[int]


def few_shot(
    lm: LanguageModel,
    records: Iterable[Record],
    shots: Sequence[Record] = (),
    k: int = 0,
    *,
    template: str = TEMPLATE,
    instruction: str = "",
    separator: str = "\n\n",
    seed: int = 0,
    normalise: str = "sum",
    answer_context: str = "Answer:",
    stop: str | None = "\n",
    max_new_tokens: int = 16,
    num_beams: int = 1,
    metric: str | Sequence[str] = "squad",
) -> FewShot:
    """Scores a model on records. Each record follows `k` solved examples that are drawn from `shots`.

    An answer follows its template behind a space. Examples that leave no room for the record are left out,
    the first ones first. Choices are compared as evaluate.choose does, which takes `normalise` and
    `answer_context`. An answer is written greedily, or with `num_beams`, and ends before `stop`; it is judged
    by `metric`, with the right answers as references.
    """
    records, shots = list(records), list(shots)
    _check(records, shots, k, template)
    scored = "choices" in records[0]
    room = _room(lm, 0 if scored else max_new_tokens)
    prompts, counts = [], []
    for i, record in enumerate(records):
        chosen = [shots[j] for j in drawn(len(shots), k, seed, i)]
        longest = max((solution(record, n) for n in range(len(record["choices"]))), key=len) if scored else ""
        prompt, used = fitted(lm, instruction, chosen, record, template, separator, room, longest)
        prompts.append(prompt)
        counts.append(used)
    if scored:
        asked = [
            {"context": p, "choices": [solution(r, n) for n in range(len(r["choices"]))], "label": r["label"]}
            for p, r in zip(prompts, records, strict=True)
        ]
        found = choices.choose(lm, asked, normalise, answer_context=answer_context)
        return FewShot(found.predictions.tolist(), {"accuracy": found.accuracy or 0.0}, prompts, counts)
    written = [
        text
        for at in range(0, len(prompts), BATCH)
        for text in _write(lm, prompts[at : at + BATCH], max_new_tokens, num_beams, stop)
    ]
    written = [(text if not stop else text.partition(stop)[0]).strip() for text in written]
    return FewShot(
        written, metrics.compute(metric, written, [answers_of(r) for r in records]), prompts, counts
    )


def solution(record: Record, choice: int | None = None) -> str:
    """What follows the template: the choice of this number or the right one, or the first answer."""
    if "choices" in record:
        text = record["choices"][record["label"] if choice is None else choice]
    else:
        text = answers_of(record)[0]
    return " " + text.strip()


def answers_of(record: Record) -> list[str]:
    return list(record["answers"]) if "answers" in record else [record["answer"]]


def drawn(n: int, k: int, seed: int, record: int) -> list[int]:
    """k different numbers below n, a function of the seed and the record's number."""
    return np.argsort(draws.uniform(seed, record, np.arange(n)), kind="stable")[:k].tolist()


def fitted(
    lm: LanguageModel,
    instruction: str,
    shots: Sequence[Record],
    record: Record,
    template: str,
    separator: str,
    room: int | None,
    behind: str,
) -> tuple[str, int]:
    """The prompt with as many of the last shots as leave room for what comes behind it,
    and how many these are.
    """
    tokenizer: Any = lm.tokenizer
    query = template.format(**record)
    solved = [template.format(**shot) + solution(shot) for shot in shots]
    for first in range(len(solved) + 1):
        prompt = separator.join(filter(None, [instruction, *solved[first:], query]))
        if room is None or len(tokenizer(prompt + behind).input_ids) <= room:
            return prompt, len(solved) - first
    raise ArgumentError(
        f"few_shot: a record does not fit into {room} tokens, even without solved examples: {query!r:.80}"
    )


def _write(lm: LanguageModel, prompts: list[str], most: int, beams: int, stop: str | None) -> list[str]:
    """What the model writes behind each prompt."""
    from plmcore.generate.run import decode  # evaluation by scoring does without it

    found = lm.generate(
        prompts, max_new_tokens=most, num_beams=beams, stop_strings=[stop] if stop else [], output_scores=True
    )
    new = [len(scores) for scores in found.token_scores]
    begin = found.sequences.shape[1] - max(new)
    return [
        decode(lm.tokenizer, ids[begin : begin + n].tolist())
        for ids, n in zip(found.sequences, new, strict=True)
    ]


def _room(lm: LanguageModel, new: int) -> int | None:
    """Tokens of a prompt; None where there is no limit."""
    if lm.tokenizer is None:
        raise ArgumentError(
            "few_shot: this model has no tokenizer; load it from a directory with tokenizer files"
        )
    longest = lm.config.longest
    if longest is not None and longest <= new:
        raise ArgumentError(f"few_shot: max_new_tokens is {new}, and the model has {longest} positions")
    return None if longest is None else longest - new


def _check(records: Sequence[Record], shots: Sequence[Record], k: int, template: str) -> None:
    if not records:
        raise ArgumentError("few_shot: there are no records")
    if not 0 <= k <= len(shots):
        raise ArgumentError(f"few_shot: k must be from 0 to the number of shots, {len(shots)}, got {k}")
    fields = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    kind = "choices" in records[0]
    for what, some in (("record", records), ("shot", shots)):
        for i, record in enumerate(some):
            needed = [*fields, *(("choices", "label") if "choices" in record else ())]
            if missing := [name for name in needed if name not in record]:
                raise ArgumentError(f"few_shot: {what} {i} has no {missing[0]!r}, only {', '.join(record)}")
            if ("choices" in record) != kind:
                raise ArgumentError(
                    f"few_shot: {what} {i} must have {'choices' if kind else 'an answer'}, as the "
                    f"first record has"
                )
            if not kind and not ("answer" in record or record.get("answers")):
                raise ArgumentError(f"few_shot: {what} {i} has neither choices nor an answer")
            if kind and not 0 <= record["label"] < len(record["choices"]):
                raise ArgumentError(
                    f"few_shot: the label of {what} {i} must be from 0 to "
                    f"{len(record['choices']) - 1}, got {record['label']!r}"
                )
