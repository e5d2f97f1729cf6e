"""What users do with a model, done with a quantised one."""

import numpy as np
import plmcore as plm
import pytest
from small_models import GPT2, MASKED, TEXT, sharp

SENTENCE = "the cat sat on the mat"


def small(folder, config, head, tokenizer, weights):
    sharp(config, head, tokenizer).save(folder / "model")
    plm.quantize(folder / "model", weights, out=folder / "small")
    return plm.load(folder / "model"), plm.load(folder / "small")


@pytest.fixture(scope="module")
def wordpiece():
    return plm.train_tokenizer(texts=[TEXT], kind="wordpiece", vocab_size=120, family="bert")


@pytest.mark.parametrize("weights", ["int8", "bfloat16"])
def test_encoders(wordpiece, tmp_path, weights):
    before, lm = small(tmp_path, MASKED["bert"], "masked-lm", wordpiece, weights)
    a, b = (x.encode([SENTENCE, "the dog ran"]) for x in (before, lm))
    assert (np.linalg.norm(a - b, axis=1) < 0.03 * np.linalg.norm(a, axis=1)).all()
    assert np.array_equal(lm.encode("the dog ran"), lm.encode(["the dog ran"])[0])
    filled = lm.fill_mask("the [MASK] sat on the mat", k=3)
    assert len(filled) == 3 and filled[0]["probability"] == pytest.approx(
        before.fill_mask("the [MASK] sat on the mat", k=3)[0]["probability"], abs=0.05
    )
    assert lm.perplexity(SENTENCE) == pytest.approx(before.perplexity(SENTENCE), rel=0.1)
    assert "masked-lm, 3," in repr(lm)


def test_classes(wordpiece, tmp_path):
    before, lm = small(tmp_path, MASKED["distilbert"], "sequence-classification", wordpiece, "int8")
    for a, b in zip(before.classify([SENTENCE, "the dog"]), lm.classify([SENTENCE, "the dog"])):
        assert a["label"] == b["label"] and a["probability"] == pytest.approx(b["probability"], abs=0.05)


@pytest.mark.parametrize("weights", ["int8", "bfloat16"])
def test_decoders(tmp_path, weights):
    tokenizer = plm.train_tokenizer(texts=[TEXT], kind="byte-bpe", vocab_size=280)
    before, lm = small(tmp_path, dict(GPT2, n_positions=64), "causal-lm", tokenizer, weights)
    text = lm.generate(SENTENCE, max_new_tokens=6, eos_token_id=None)
    assert text.startswith(SENTENCE)
    assert SENTENCE + "".join(lm.stream(SENTENCE, max_new_tokens=6, eos_token_id=None)) == text
    assert (
        len(lm.generate([SENTENCE, "the"], num_beams=2, max_new_tokens=3, eos_token_id=None, pad_token_id=0))
        == 2
    )
    a, b = before.score([SENTENCE])[0], lm.score([SENTENCE])[0]
    assert a.shape == b.shape and np.abs(a - b).max() < 1.0
    assert lm.perplexity(TEXT) == pytest.approx(before.perplexity(TEXT), rel=0.1)
    (tmp_path / "text.txt").write_text(TEXT)
    assert plm.evaluate(lm, tmp_path / "text.txt")["per_token"] == pytest.approx(float(lm.perplexity(TEXT)))


def test_a_batch_gives_what_its_rows_give(wordpiece, tmp_path):
    """Activations are rounded row by row, so that neither padding nor neighbours change a result."""
    _, lm = small(tmp_path, MASKED["bert"], "masked-lm", wordpiece, "int8")
    ids = np.array([[5, 9, 12, 7, 6], [8, 5, 11, 0, 0]])
    mask = np.array([[1] * 5, [1, 1, 1, 0, 0]])
    both = lm(input_ids=ids, attention_mask=mask).logits.numpy()
    np.testing.assert_allclose(both[1, :3], lm(input_ids=ids[1:, :3]).logits.numpy()[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weights", ["int8", "bfloat16"])
def test_export(tmp_path, weights):
    """A traced program keeps the weights as they are, and gives the same bits at any size."""
    _, lm = small(tmp_path, GPT2, "causal-lm", None, weights)
    plm.export(plm.trace(lm.model, input_ids=plm.spec("int64", "B", "T")), tmp_path / "small.plm")
    program = plm.load_program(tmp_path / "small.plm")
    for shape in ((1, 3), (3, 9)):
        ids = np.random.default_rng(0).integers(0, 40, shape)
        assert np.array_equal(
            program(input_ids=plm.Tensor(ids))["logits"].numpy(), lm(input_ids=ids).logits.numpy()
        )
    plm.export(
        plm.trace(plm.load(tmp_path / "model").model, input_ids=plm.spec("int64", "B", "T")),
        tmp_path / "m.plm",
    )
    assert (tmp_path / "small.plm").stat().st_size < 0.8 * (tmp_path / "m.plm").stat().st_size
