"""Every task as text to text: T5's prefixes, and decaNLP's questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from plmcore.models.labels import DECODER
from plmcore.objectives.chance import Chance
from plmcore.objectives.objective import Objective
from plmcore.objectives.parallel import Side


class Task:
    """Input and target as templates over the fields of a record; `labels` names what `label` numbers."""

    def __init__(self, source: str, target: str = "{label}", labels: Sequence[str] | None = None):
        self.source, self.target, self.labels = source, target, labels

    def __call__(self, record: Mapping[str, Any]) -> tuple[str, str]:
        fields = dict(record)
        if self.labels is not None and not isinstance(fields["label"], str):
            fields["label"] = self.labels[int(fields["label"])]
        try:
            return self.source.format_map(fields), self.target.format_map(fields)
        except KeyError as e:
            raise ValueError(f"the record has no field {e}; it has {', '.join(map(str, record))}") from None


class Similarity(Task):
    """STS-B: a number from 0 to 5 as text, in steps of 0.2."""

    def __call__(self, record: Mapping[str, Any]) -> tuple[str, str]:
        return super().__call__({**record, "label": f"{round(float(record['label']) * 5) / 5:.1f}"})


TWO = ("not_entailment", "entailment")
TASKS = {  # T5's prefixes; fields as plmcore.data names them
    "cola": Task("cola sentence: {text}", labels=("unacceptable", "acceptable")),
    "sst2": Task("sst2 sentence: {text}", labels=("negative", "positive")),
    "mrpc": Task("mrpc sentence1: {text} sentence2: {pair}", labels=("not_equivalent", "equivalent")),
    "qqp": Task("qqp question1: {text} question2: {pair}", labels=("not_duplicate", "duplicate")),
    "stsb": Similarity("stsb sentence1: {text} sentence2: {pair}"),
    "mnli": Task("mnli hypothesis: {pair} premise: {text}", labels=("entailment", "neutral", "contradiction")),
    "qnli": Task("qnli question: {text} sentence: {pair}", labels=TWO[::-1]),
    "rte": Task("rte sentence1: {text} sentence2: {pair}", labels=TWO[::-1]),
    "squad": Task("question: {question} context: {context}", "{answer}"),
    "summarize": Task("summarize: {text}", "{summary}"),
    "translate": Task("translate {source_language} to {target_language}: {source}", "{target}"),
}
DECANLP = {  # every task as a question about a context with an answer
    name: Task(f"question: {asked} context: {context}", answer)
    for name, (asked, context, answer) in {
        "translation": ("What is the translation from {source_language} to {target_language}?", "{source}", "{target}"),
        "summarization": ("What is the summary?", "{text}", "{summary}"),
        "entailment": ("{pair} -- entailment, neutral, or contradiction?", "{text}", "{label}"),
        "sentiment": ("Is this sentence positive or negative?", "{text}", "{label}"),
        "question-answering": ("{question}", "{context}", "{answer}"),
    }.items()
}


class TextToText(Objective):
    """Records of one or several tasks: input_ids of the prefixed text, labels of the answer.

    tasks: name -> records, cast by TASKS or DECANLP (or `casts[name]`, a function record -> (input, target)). Every record comes once an
    epoch; a Mixture of one objective per task has some tasks more often than others.
    """

    labels = DECODER

    def __init__(
        self,
        tasks: Mapping[str, Iterable[Mapping[str, Any]]],
        tokenizer: Any,
        length: int = 512,
        target_length: int = 114,
        *,
        casts: Mapping[str, Any] | None = None,
    ):
        from plmcore.data import Corpus

        casts = TASKS | DECANLP | dict(casts or {})
        unknown = sorted(set(tasks) - set(casts))
        if unknown:
            raise ValueError(
                f"no way to cast {', '.join(unknown)}; known tasks: {', '.join(sorted(casts))}; or pass casts="
            )
        pairs: list[tuple[str, str]] = []
        counts = []
        for name, records in tasks.items():
            before = len(pairs)
            pairs += map(casts[name], records)
            counts.append(len(pairs) - before)
        if not pairs or 0 in counts:
            raise ValueError(f"every task needs records, got {dict(zip(tasks, counts))}")
        self.sides = []
        for texts, room in zip(zip(*pairs), (length, target_length)):
            ids = tokenizer.encode_ids(list(texts))
            empty = next((i for i, x in enumerate(ids) if not len(x)), None)
            if empty is not None:
                raise ValueError(f"record {empty} gives no tokens: {texts[empty]!r}")
            self.sides.append(Side(Corpus.from_ids(ids, tokenizer.vocab_size), tokenizer, room))

    def examples(self, epoch: int) -> int:
        return len(self.sides[0].corpus)

    def lengths(self, epoch: int) -> np.ndarray:
        source = self.sides[0]
        return source.sizes(*source.document(np.arange(self.examples(epoch)))) + source.format.specials

    def build(self, examples: np.ndarray, chance: Chance) -> dict[str, np.ndarray]:
        source, target = self.sides
        ids, lengths = source.take(*source.document(examples))
        return source.format(lengths).inputs(ids) | {"labels": target.labels(*target.document(examples))}
