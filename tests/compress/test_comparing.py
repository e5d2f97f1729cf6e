import numpy as np
import plmcore as plm
import pytest
from plmcore import compress
from plmcore.compress import comparing
from small_models import GPT2, MASKED, SEQ2SEQ, TEXT, sharp

WORDS = "\n".join(f"the cat number {i} sat on the mat" for i in range(12))


@pytest.fixture(scope="module")
def tokenizer():
    return plm.train_tokenizer(texts=[TEXT, WORDS], kind="wordpiece", vocab_size=120, family="bert")


def both(folder, config, head, tokenizer):
    sharp(config, head, tokenizer).save(folder / "model")
    plm.quantize(folder / "model", "int8", out=folder / "small")
    return plm.load(folder / "model"), plm.load(folder / "small")


@pytest.mark.parametrize(
    "config, head, generates, scored",
    [
        (dict(GPT2, n_positions=64), "causal-lm", True, True),
        (MASKED["bert"], "masked-lm", False, True),
        (MASKED["bert"], "base", False, False),
        (MASKED["roberta"], "sequence-classification", False, False),
        (MASKED["bert"], "question-answering", False, False),
        (MASKED["albert"], "multiple-choice", False, False),
        (dict(MASKED["bert"], is_decoder=True), "causal-lm", False, True),
        (SEQ2SEQ["bart"], "seq2seq-lm", True, True),
        (dict(SEQ2SEQ["t5"], initializer_factor=0.1), "base", False, False),
    ],
)
def test_kinds_of_models(config, head, generates, scored, tokenizer, tmp_path):
    before, after = both(tmp_path, config, head, tokenizer)
    seen = []
    found = compress.compare(before, after, WORDS[:100], progress=seen.append)
    assert found.generates is generates and (found.perplexity is not None) is scored
    assert 0 < found.bytes[1] < found.bytes[0] and min(found.speed) > 0
    assert 0 < found.error < 0.2 and found.agreement > 0.7
    if scored:
        a, b = found.perplexity
        assert float(a) == float(before.perplexity(*texts(head, WORDS[:100])))
        assert abs(b / a - 1) < 0.1 and a.tokens == b.tokens
        assert seen == sorted(seen) and seen[-1] == a.bytes + b.bytes


def texts(head, text):
    return (text.split("\n"), text.split("\n")) if head == "seq2seq-lm" else (text,)


def test_a_model_against_itself(tokenizer, tmp_path):
    before, _ = both(tmp_path, MASKED["bert"], "masked-lm", tokenizer)
    found = compress.compare(before, before, "the cat sat on the mat")
    assert found.agreement == 1 and found.error == 0 and found.perplexity[0] == found.perplexity[1]


def test_without_a_tokenizer(tmp_path):
    before, after = both(tmp_path, GPT2, "causal-lm", None)
    found = compress.compare(before, after, "anything")
    assert found.perplexity is None and found.agreement > 0.8


def test_sources(tokenizer, tmp_path):
    before, after = both(tmp_path, SEQ2SEQ["bart"], "seq2seq-lm", tokenizer)
    lines = ["the dog ran far away", "the cat " * 100, "home"]
    found = compress.compare(before, after, "the cat\nthe mat\nthe dog", lines)
    # One has no room.
    assert found.perplexity[0] == before.perplexity(["the cat", "the dog"], [lines[0], lines[2]])
    with pytest.raises(plm.ArgumentError, match="3 lines of text and 2 of sources"):
        compress.compare(before, after, "the cat\nthe mat\nthe dog", lines[:2])
    with pytest.raises(plm.ArgumentError, match="every line of the text is longer than the 64 positions"):
        compress.compare(before, after, "the cat " * 100)


def test_an_empty_text(tokenizer, tmp_path):
    before, after = both(tmp_path, MASKED["bert"], "base", tokenizer)
    with pytest.raises(plm.ArgumentError, match="the text is empty"):
        compress.compare(before, after, " \n \n")


def test_difference():
    a, b = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[1.0, 0.0], [2.0, 0.0]])
    agreement, error = comparing.difference([("logits", a)], [("logits", b)])
    assert agreement == 0.5 and error == pytest.approx((8 / 5) ** 0.5)
    assert comparing.difference([("last_hidden_state", a)], [("last_hidden_state", b)])[0] == 0.5
    assert comparing.difference([("logits", 0 * a)], [("logits", 0 * a)]) == (1.0, 0.0)
