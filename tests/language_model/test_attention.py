"""Attention weights of a text, of every family."""

import numpy as np
import plmcore as plm
import pytest
import small_models

FAMILIES = {**small_models.CAUSAL, **small_models.MASKED}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_text(small_models.TEXT)
    return plm.train_tokenizer([path], kind="wordpiece", vocab_size=90)


def model(config, head, tokenizer):
    return small_models.sharp(config, head, tokenizer)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family, tokenizer):
    head = "causal-lm" if family in small_models.CAUSAL else "masked-lm"
    lm = model(FAMILIES[family], head, tokenizer).train()
    found = lm.attention("the cat sat")
    assert lm.model.training
    assert (
        found.weights.shape == (2, 2, len(found.tokens), len(found.tokens))
        and found.weights.dtype == np.float32
    )
    np.testing.assert_allclose(found.weights.sum(-1), 1, atol=1e-5)
    ids = tokenizer(["the cat sat"])["input_ids"]
    assert found.tokens == [tokenizer.token_of(i) for i in ids[0]]
    if family == "gpt2":
        assert not np.triu(found.weights[0, 0], 1).any()


@pytest.mark.parametrize("family", small_models.SEQ2SEQ)
def test_both_sides_of_an_encoder_decoder(family, tokenizer):
    lm = model(small_models.SEQ2SEQ[family], "seq2seq-lm", tokenizer)
    found = lm.attention("the cat sat on the mat", target="the dog ran")
    source, target, cross = (
        found.maps[k] for k in ("encoder_attentions", "decoder_attentions", "cross_attentions")
    )
    assert source.weights.shape[2:] == (len(source.rows),) * 2 and source.rows == source.columns
    assert target.rows == cross.rows and cross.columns == source.rows
    assert cross.weights.shape[2:] == (len(cross.rows), len(cross.columns))
    for m in found.maps.values():
        np.testing.assert_allclose(m.weights.sum(-1), 1, atol=1e-5)
    assert lm.attention("the cat").maps["cross_attentions"].rows  # of what the model makes of it


def test_text_and_layers(tokenizer):
    lm = model(small_models.MASKED["bert"], "masked-lm", tokenizer)
    whole, one = lm.attention("the cat sat"), lm.attention("the cat sat", layers=[1])
    assert np.array_equal(one.weights[0], whole.weights[1])
    lines = one.text(1, 0, k=2).split("\n")
    assert len(lines) == len(one.tokens)
    best = one.weights[0, 0, 0].argmax()
    assert (
        lines[0].split()[:2] == [one.tokens[0], one.tokens[best]]
        and lines[0].split()[2] == f"{one.weights[0, 0, 0, best]:.2f}"
    )
    assert "attentions [2, 2, " in repr(whole)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda lm: lm.attention(""), "one text is needed"),
        (lambda lm: lm.attention(["a", "b"]), "one text is needed"),
        (lambda lm: lm.attention("the cat", target="the dog"), "target is for encoder-decoder models"),
        (lambda lm: lm.attention("the cat", layers=[2]), r"layers must be numbers from 0 to 1, got \[2\]"),
        (lambda lm: lm.attention("the cat", layers=[]), "layers must be numbers"),
        (lambda lm: lm.attention("the cat").text(0, 2), "the heads 0 to 1, not layer 0, head 2"),
        (lambda lm: lm.attention("the cat").text(0, 0, "cross_attentions"), "there is no 'cross_attentions'"),
        (lambda lm: plm.LanguageModel(lm.model).attention("the cat"), "has no tokenizer"),
    ],
)
def test_wrong_calls(call, message, tokenizer):
    with pytest.raises(plm.ArgumentError, match=message):
        call(model(small_models.MASKED["bert"], "masked-lm", tokenizer))
