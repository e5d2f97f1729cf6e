import fakes
import numpy as np
import pytest
from plmcore.data import Corpus
from plmcore.objectives import SpanCorruption
from plmcore.objectives.span_corruption import raw_length

T5 = fakes.Numbers("t5", plain=20_000, sentinels=100)
SENTINELS = [T5.ids[f"<extra_id_{i}>"] for i in range(100)]


def restored(ids, labels):
    """Spans in place of their sentinels."""
    spans, current = {}, None
    for token in labels.tolist():
        if token in SENTINELS:
            current = spans.setdefault(token, [])
        elif token != T5.eos_token_id:
            current.append(token)
    out = []
    for token in ids.tolist():
        out += spans.pop(token, [token] if token >= T5.first else [])
    assert not any(spans.values())  # none left but a final sentinel's
    return out


def test_published_lengths():
    assert raw_length(512) == (568, 114)
    corpus = Corpus.from_ids([np.arange(T5.first, T5.first + 6000)], T5.vocab_size)
    objective = SpanCorruption(corpus, T5, length=512)
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=0)
    assert batch["input_ids"].shape == (10, 512) and batch["labels"].shape == (10, 114)
    assert (batch["attention_mask"] == 1).all() and (batch["labels"] != -100).all()
    text = [i for ids, labels in zip(batch["input_ids"], batch["labels"]) for i in restored(ids, labels)]
    assert text == list(range(T5.first, T5.first + 568 * 10))


@pytest.mark.parametrize("packing", ["documents", "sentences", "windows"])
@pytest.mark.parametrize("final", [False, True])
def test_spans_put_back_are_the_text(packing, final):
    corpus = fakes.corpus(T5, words=(1, 9), sentences=(1, 5))
    objective = SpanCorruption(corpus, T5, length=32, packing=packing, final=final)
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=0)
    text = []
    for ids, labels in zip(batch["input_ids"], batch["labels"]):
        labels = labels[labels != -100]
        used = [t for t in labels.tolist() if t in SENTINELS]
        assert used == SENTINELS[: len(used)] and labels[-1] == T5.eos_token_id
        assert (labels[-2] in SENTINELS) == final
        assert [t for t in ids.tolist() if t in SENTINELS] == used[: len(used) - final]
        text += restored(ids, labels)
    assert text == fakes.stream(corpus)[: len(text)].tolist() and len(text) > len(corpus.ids) - 40


def test_all_cuts_are_equally_likely():
    """6 tokens, 2 hidden in 1 span: the text before it is 1 to 4 long, and then 0 after; one span ends the
    text.
    """
    corpus = Corpus.from_ids([np.arange(T5.first, T5.first + 8)] * 1500, T5.vocab_size)
    # 4 hidden in 2 spans.
    objective = SpanCorruption(corpus, T5, length=30, packing="documents", rate=0.5, mean=2.0)
    batch = objective.batch(np.arange(1500), seed=0, epoch=0)
    forms, counts = np.unique(
        batch["input_ids"] * 1_000 + batch["input_ids"].shape[1], axis=0, return_counts=True
    )
    assert len(forms) == 9  # (3 ways to cut 4 into 2) squared, of which all can be told apart by text left
    assert abs(counts - 1500 / 9).max() < 4 * np.sqrt(1500 / 9 * 8 / 9)


def test_short_texts():
    corpus = Corpus.from_ids([[200], [200, 201], [200, 201, 202]], T5.vocab_size)
    objective = SpanCorruption(corpus, T5, length=32, packing="documents")
    batch = objective.batch([0, 1, 2], seed=0, epoch=0)
    assert [restored(i, row[row != -100]) for i, row in zip(batch["input_ids"], batch["labels"])] == [
        [200], [200, 201], [200, 201, 202]
    ]  # fmt: skip


def test_settings_are_checked():
    few = fakes.Numbers("t5", plain=20_000, sentinels=5)
    corpus = fakes.corpus(fakes.Numbers("t5"))
    for tokenizer, settings, message in (
        (T5, {"rate": 1.0}, "rate must be between 0 and 1, got 1.0"),
        (T5, {"mean": 0.5}, "mean must be at least 1, got 0.5"),
        (few, {}, "568 tokens of text have 28 spans, and there are 5 sentinels"),
        (fakes.Numbers("t5"), {}, "has no <extra_id_0>; pass sentinels="),
    ):
        with pytest.raises(ValueError, match=message):
            SpanCorruption(corpus, tokenizer, **settings)
