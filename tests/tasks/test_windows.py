"""Long texts: several rows, from which nothing is lost."""

import numpy as np
import plmcore as plm
import pytest
from plmcore.tasks.spans import Spans, check_stride
from plmcore.tasks.tagging import Tagging

TASK = {
    "stride": 4,
    "question_length": 6,
    "answer_length": 16,
    "n_best": 3,
    "null_threshold": 0.0,
    "unanswerable": False,
    "scheme": "none",
    "metrics": ["squad"],
    "lm_weight": 0.0,
    "label_smoothing": 0.0,
    "both_orders": False,
}
WORDS = (
    "the lovely cat is in the garden and the sad horse is in the river with the great bird of the town"
).split()


def load(directory, family, head):
    with pytest.warns(UserWarning, match="drawn at random"):
        lm = plm.load(directory(family), head=head)
    return lm.tokenizer, lm.model


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet"])
def test_every_word_is_tagged_once(directory, family):
    tokenizer, model = load(directory, family, "token-classification")
    names = [str(i) for i in range(len(WORDS))]
    records = [{"tokens": WORDS, "line": 1}, {"tokens": WORDS[:3], "line": 2}]
    targets = [list(range(len(WORDS))), [2, 1, 0]]
    examples = Tagging(records, targets, names, tokenizer, model, 12, TASK)
    assert examples.cut == 1 and len(examples.rows) > 2
    batch = examples.batch(np.arange(len(examples.rows)), seed=0, epoch=0)
    labelled = batch["labels"] != -100
    assert sorted(batch["labels"][labelled]) == sorted(sum(targets, []))
    assert (batch["attention_mask"][labelled] == 1).all() and batch["input_ids"].shape[1] <= 12
    # A model that says what the labels say is right about every word.
    found = examples.predictions([np.where(row == -100, 0, row) for row in batch["labels"]])
    assert [f["tags"] for f in found] == [[names[t] for t in tags] for tags in targets]


def question(family="bert"):
    context = " ".join(WORDS)
    answer = "great bird"
    return {
        "id": "q", "line": "q", "context": context, "question": "where is it", "impossible": False,
        "answers": [{"text": answer, "start": context.index(answer)}],
    }  # fmt: skip


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet", "gpt2"])
def test_answers_stand_in_the_rows_that_have_them(directory, family):
    if family == "gpt2":
        from plmcore.tasks import decoder_format

        lm = plm.load(directory(family))
        decoder_format.give_format(lm.tokenizer)
        tokenizer, model = lm.tokenizer, decoder_format.grown(lm.model, lm.tokenizer)
    else:
        tokenizer, model = load(directory, family, "question-answering")
    examples = Spans([question()], tokenizer, model, 20, TASK)
    assert len(examples.rows) > 1
    batch = examples.batch(np.arange(len(examples.rows)), seed=0, epoch=0)
    B, T = batch["input_ids"].shape
    logits = np.zeros((B, 2, T))
    pointed = 0
    for row, (first, last) in enumerate(batch["labels"]):
        start = examples.rows.start(T, len(examples.rows.ids[row]))
        if (first - start, last - start) == (examples.null[row],) * 2:
            assert tokenizer.cls_token_id is None or batch["input_ids"][row, first] == tokenizer.cls_token_id
        else:
            assert tokenizer.decode(batch["input_ids"][row, first : last + 1]).strip() == "great bird"
            pointed += 1
            logits[row, 0, first] = logits[row, 1, last] = 9.0
    assert 1 <= pointed
    found = examples.predictions(list(logits))[0]
    assert found["answer"] == "great bird" and len(found["n_best"]) == 3
    assert found["n_best"][0]["probability"] > 0.9
    assert examples.scores([found]) == {"exact_match": 1.0, "f1": 1.0}


def test_no_answer(directory):
    tokenizer, model = load(directory, "bert", "question-answering")
    record = question() | {"answers": [], "impossible": True}
    examples = Spans([record], tokenizer, model, 20, TASK | {"unanswerable": True})
    T = examples.batch(np.arange(len(examples.rows)), seed=0, epoch=0)["input_ids"].shape[1]
    logits = np.zeros((len(examples.rows), 2, T))
    logits[:, :, 0] = 1.0
    assert examples.predictions(list(logits))[0]["answer"] == ""
    logits[0, :, 0] = -1.0  # one row is sure enough that there is one
    assert examples.predictions(list(logits))[0]["answer"] != ""


def test_rows_that_share_too_much():
    check_stride(9, 20, 3, 6)
    with pytest.raises(
        ValueError, match="task.stride is 11: rows of 20 tokens with 6 for the question leave 11"
    ):
        check_stride(11, 20, 3, 6)
