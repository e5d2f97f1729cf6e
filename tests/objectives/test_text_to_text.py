import fakes
import numpy as np
import pytest
from plmcore.evaluate import benchmarks
from plmcore.objectives import TextToText
from plmcore.objectives.text_to_text import DECANLP, DECATHLON, TASKS


class Letters(fakes.Numbers):
    """Each character is a token."""

    def encode_ids(self, texts):
        return [np.array([self.first + ord(c) for c in text], np.int64) for text in texts]

    def text(self, ids):
        return "".join(chr(i - self.first) for i in ids if i >= self.first)


T5 = Letters("t5")
SST = [{"text": "fine", "label": 1}, {"text": "awful", "label": 0}, {"text": "so so", "label": "neutral"}]
STS = [{"text": "a", "pair": "b", "label": 3.27}]


def test_casting():
    assert TASKS["sst2"](SST[0]) == ("sst2 sentence: fine", "positive")
    assert TASKS["sst2"](SST[2]) == ("sst2 sentence: so so", "neutral")
    assert TASKS["stsb"](STS[0]) == ("stsb sentence1: a sentence2: b", "3.2")
    assert TASKS["mnli"]({"text": "P", "pair": "H", "label": 2}) == (
        "mnli hypothesis: H premise: P",
        "contradiction",
    )
    words = {"source_language": "English", "target_language": "German", "source": "yes", "target": "ja"}
    assert TASKS["translate"](words) == ("translate English to German: yes", "ja")
    assert DECANLP["translation"](words)[0] == "question: Translate from English to German context: yes"
    assert DECANLP["sentiment"]({"text": "fine", "label": "positive"})[1] == "positive"
    with pytest.raises(ValueError, match="the record has no field 'pair'; it has text, label"):
        TASKS["mrpc"]({"text": "a", "label": 1})


@pytest.mark.parametrize(
    "question, context, answer, source, target",
    [
        (
            "A question?",
            "some context.",
            "The answer.",
            "question: A question ? context: some context . ",
            "The answer . ",
        ),
        (
            "Who's it?",
            "It's 3.5 (or so)",
            "3.5",
            "question: Who ' s it ? context: It ' s 3 . 5 ( or so ) ",
            "3 . 5",
        ),
        ("Où est_il", "a\tb\n c  d", "café", "question: O ù est_il context: a b c d", "caf é "),
    ],
)
def test_squad_is_padded_as_in_t5(question, context, answer, source, target):
    """Spaces around what RE2 calls no word character, also letters beyond ASCII; white space is one space."""
    assert TASKS["squad"]({"question": question, "context": context, "answer": answer}) == (source, target)


def test_the_ten_tasks_of_decanlp():
    assert set(DECATHLON) == set(benchmarks.DECANLP) and set(DECATHLON.values()) == set(DECANLP)
    cast = {task: DECANLP[name] for task, name in DECATHLON.items()}
    assert cast["mnli"]({"text": "A cat sat.", "pair": "It lay.", "label": "contradiction"}) == (
        'question: Hypothesis: "It lay." -- entailment, neutral, or contradiction? context: Premise: '
        '"A cat sat."',
        "contradiction",
    )
    assert (
        cast["sst"]({"text": "fine", "label": "positive"})[0]
        == "question: Is this review negative or positive? context: fine"
    )
    relation = {"question": "Where was XXX born?", "subject": "Ada", "context": "Ada was born in London."}
    assert cast["qa_zre"]({**relation, "answer": "London"}) == (
        "question: Where was Ada born? context: Ada was born in London.",
        "London",
    )
    assert cast["qa_zre"]({**relation, "answer": ""})[1] == "unanswerable"
    sql, answer = cast["wikisql"](
        {"columns": ["Year", "Team"], "question": "Which year?", "answer": "SELECT Year FROM table"}
    )
    assert sql.startswith(
        "question: What is the translation from English to SQL? context: The table has columns Year, "
        "Team and key words MAX, MIN,"
    )
    assert sql.endswith("AGGOPS, CONDOPS-- Which year?") and answer == "SELECT Year FROM table"
    schema = {
        "context": "Joan thanked Susan.",
        "question": "Who was thanked?",
        "choices": ["Joan", "Susan"],
        "answer": "Susan",
    }
    assert cast["mwsc"](schema) == (
        "question: Who was thanked? Joan or Susan? context: Joan thanked Susan.",
        "Susan",
    )
    assert (
        cast["woz"]({"context": "cheap food", "answer": "price range: cheap;"})[0]
        == "question: What is the change in state? context: cheap food"
    )
    with pytest.raises(ValueError, match="the record has no field 'columns'; it has question"):
        cast["wikisql"]({"question": "Which?"})


def test_every_record_once():
    objective = TextToText({"sst2": SST, "stsb": STS}, T5, length=20)
    batch = objective.batch(np.arange(4), seed=0, epoch=0)
    assert [T5.text(row) for row in batch["input_ids"]] == [
        "sst2 sentence: fine", "sst2 sentence: awfu", "sst2 sentence: so s", "stsb sentence1: a s"
    ]  # fmt: skip
    assert [T5.text(row) for row in batch["labels"]] == ["positive", "negative", "neutral", "3.2"]
    assert (batch["labels"] == T5.eos_token_id).sum() == 4
    assert objective.lengths(0).tolist() == [20, 20, 20, 20]


def test_what_cannot_be_cast():
    with pytest.raises(ValueError, match="no way to cast poetry; known tasks: cola, .*; or pass casts="):
        TextToText({"poetry": SST}, T5)
    with pytest.raises(ValueError, match="every task needs records, got {'sst2': 3, 'stsb': 0}"):
        TextToText({"sst2": SST, "stsb": []}, T5)
    with pytest.raises(ValueError, match="record 1 gives no tokens: ''"):
        TextToText({"x": ["a", ""]}, T5, casts={"x": lambda text: (text, "y")})
