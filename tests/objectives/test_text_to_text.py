import fakes
import numpy as np
import pytest
from plmcore.objectives import TextToText
from plmcore.objectives.text_to_text import DECANLP, TASKS


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
    assert TASKS["mnli"]({"text": "P", "pair": "H", "label": 2}) == ("mnli hypothesis: H premise: P", "contradiction")
    words = {"source_language": "English", "target_language": "German", "source": "yes", "target": "ja"}
    assert TASKS["translate"](words) == ("translate English to German: yes", "ja")
    assert DECANLP["translation"](words)[0] == "question: What is the translation from English to German? context: yes"
    assert DECANLP["sentiment"]({"text": "fine", "label": "positive"})[1] == "positive"
    with pytest.raises(ValueError, match="the record has no field 'pair'; it has text, label"):
        TASKS["mrpc"]({"text": "a", "label": 1})


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
