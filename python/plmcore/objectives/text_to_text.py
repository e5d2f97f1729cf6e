"""Every task as text to text: T5's prefixes, and decaNLP's questions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.models.labels import DECODER
from plmcore.objectives.objective import Objective
from plmcore.objectives.parallel import Side
from plmcore.objectives.rng import Rng


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
            raise ArgumentError(
                f"the record has no field {e}; it has {', '.join(map(str, record))}"
            ) from None


class Similarity(Task):
    """STS-B: a number from 0 to 5 as text, in steps of 0.2."""

    def __call__(self, record: Mapping[str, Any]) -> tuple[str, str]:
        return super().__call__({**record, "label": f"{round(float(record['label']) * 5) / 5:.1f}"})


class Spaced(Task):
    """SQuAD as T5 reads it: spaces around every character that is no ASCII letter,
    digit or underscore, and none twice.
    """

    def __call__(self, record: Mapping[str, Any]) -> tuple[str, str]:
        source, target = super().__call__(
            {k: spaced(v) if isinstance(v, str) else v for k, v in record.items()}
        )
        return re.sub(BLANK, " ", source), target


BLANK = re.compile(r"[ \t\n\f\r]+")


def spaced(text: str) -> str:
    return re.sub(BLANK, " ", re.sub(r"(\W)", r" \1 ", text, flags=re.ASCII))


class Relation(Task):
    """QA-ZRE: XXX in the question stands for the subject;
    a text without the answer has the answer "unanswerable".
    """

    def __call__(self, record: Mapping[str, Any]) -> tuple[str, str]:
        fields = dict(record)
        if "subject" in fields:
            fields["question"] = fields["question"].replace("XXX", fields["subject"])
        return super().__call__(fields | {"answer": fields.get("answer") or "unanswerable"})


class TableQuery(Task):
    """WikiSQL: `columns` of the table, and the words of SQL."""

    def __call__(self, record: Mapping[str, Any]) -> tuple[str, str]:
        listed = (
            {"columns": ", ".join(record["columns"]), "words": ", ".join(SQL)} if "columns" in record else {}
        )
        return super().__call__({**record, **listed})


class Schema(Task):
    """MWSC: the question names its two `choices`."""

    def __call__(self, record: Mapping[str, Any]) -> tuple[str, str]:
        listed = {"choices": " or ".join(record["choices"])} if "choices" in record else {}
        return super().__call__({**record, **listed})


SQL = (
    "MAX MIN COUNT SUM AVG = > < OP SELECT WHERE AND COL TABLE CAPTION PAGE SECTION OP COND QUESTION AGG "
    "AGGOPS CONDOPS"
).split()
TWO = ("not_entailment", "entailment")
TASKS = {  # T5's prefixes; fields as plmcore.data names them
    "cola": Task("cola sentence: {text}", labels=("unacceptable", "acceptable")),
    "sst2": Task("sst2 sentence: {text}", labels=("negative", "positive")),
    "mrpc": Task("mrpc sentence1: {text} sentence2: {pair}", labels=("not_equivalent", "equivalent")),
    "qqp": Task("qqp question1: {text} question2: {pair}", labels=("not_duplicate", "duplicate")),
    "stsb": Similarity("stsb sentence1: {text} sentence2: {pair}"),
    "mnli": Task(
        "mnli hypothesis: {pair} premise: {text}", labels=("entailment", "neutral", "contradiction")
    ),
    "qnli": Task("qnli question: {text} sentence: {pair}", labels=TWO[::-1]),
    "rte": Task("rte sentence1: {text} sentence2: {pair}", labels=TWO[::-1]),
    "squad": Spaced("question: {question} context: {context}", "{answer}"),
    "summarize": Task("summarize: {text}", "{summary}"),
    "translate": Task("translate {source_language} to {target_language}: {source}", "{target}"),
}
DECANLP = {  # every task as a question about a context with an answer, in the words of the published code
    name: kind(f"question: {asked} context: {context}", answer)
    for name, (kind, asked, context, answer) in {
        "question-answering": (Task, "{question}", "{context}", "{answer}"),
        "translation": (
            Task,
            "Translate from {source_language} to {target_language}",
            "{source}",
            "{target}",
        ),
        "summarization": (Task, "What is the summary?", "{text}", "{summary}"),
        "entailment": (
            Task,
            'Hypothesis: "{pair}" -- entailment, neutral, or contradiction?',
            'Premise: "{text}"',
            "{label}",
        ),
        "sentiment": (Task, "Is this review negative or positive?", "{text}", "{label}"),
        "semantic-roles": (Task, "{question}", "{context}", "{answer}"),
        "relations": (Relation, "{question}", "{context}", "{answer}"),
        "dialogue": (Task, "What is the change in state?", "{context}", "{answer}"),
        "semantic-parsing": (
            TableQuery,
            "What is the translation from English to SQL?",
            "The table has columns {columns} and key words {words}-- {question}",
            "{answer}",
        ),
        "pronouns": (Schema, "{question} {choices}?", "{context}", "{answer}"),
    }.items()
}
DECATHLON = {  # the ten tasks, as evaluate.decascore names them -> how they are cast
    "squad": "question-answering",
    "iwslt": "translation",
    "cnn_dm": "summarization",
    "mnli": "entailment",
    "sst": "sentiment",
    "qa_srl": "semantic-roles",
    "qa_zre": "relations",
    "woz": "dialogue",
    "wikisql": "semantic-parsing",
    "mwsc": "pronouns",
}


class TextToText(Objective):
    """Records of one or several tasks: input_ids of the prefixed text, labels of the answer.

    tasks: name -> records, cast by TASKS or DECANLP (or `casts[name]`, a function record -> (input, target)).
    Every record comes once an epoch; a Mixture of one objective per task has some tasks more often than
    others.
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
            raise ArgumentError(
                f"no way to cast {', '.join(unknown)}; known tasks: {', '.join(sorted(casts))}; or "
                f"pass casts="
            )
        pairs: list[tuple[str, str]] = []
        counts = []
        for name, records in tasks.items():
            before = len(pairs)
            pairs += map(casts[name], records)
            counts.append(len(pairs) - before)
        if not pairs or 0 in counts:
            raise ArgumentError(f"every task needs records, got {dict(zip(tasks, counts))}")
        self.sides = []
        for texts, room in zip(zip(*pairs), (length, target_length)):
            ids = tokenizer.encode_ids(list(texts))
            empty = next((i for i, x in enumerate(ids) if not len(x)), None)
            if empty is not None:
                raise ArgumentError(f"record {empty} gives no tokens: {texts[empty]!r}")
            self.sides.append(Side(Corpus.from_ids(ids, tokenizer.vocab_size), tokenizer, room))

    def examples(self, epoch: int) -> int:
        return len(self.sides[0].corpus)

    def lengths(self, epoch: int) -> np.ndarray:
        source = self.sides[0]
        return source.sizes(*source.document(np.arange(self.examples(epoch)))) + source.format.specials

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        source, target = self.sides
        ids, lengths = source.take(*source.document(examples))
        return source.format(lengths).inputs(ids) | {"labels": target.labels(*target.document(examples))}
