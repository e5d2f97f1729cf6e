import base64
import json
import re

import numpy as np
import plmcore as plm
import pytest
import small_models
from browser import open_page
from plmcore.viz import attention

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


def test_more_than_a_page_can_hold(tmp_path, monkeypatch, tokenizer):
    monkeypatch.setattr(attention, "MOST", 10)
    with pytest.raises(plm.ArgumentError, match="too many for a page"):
        model(small_models.MASKED["bert"], "masked-lm", tokenizer).attention("the cat").html(
            tmp_path / "a.html"
        )
    assert not list(tmp_path.iterdir())


def shown(tokens=("<b>", "</script>", "c")):
    weights = np.zeros((2, 3, 3, 3), np.float32)
    weights[1, 2] = np.eye(3)
    weights[..., 0] += 0.25
    tokens = list(tokens)
    return attention.Attention({"attentions": attention.Map(tokens, tokens, weights, [4, 7])}, "<i>a title")


def test_the_page_holds_the_weights(tmp_path):
    shown().html(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "<i>" not in page and "<b>" not in page and page.count("</script>") == 2
    (data,) = json.loads(re.search(r'id="attention">(.*?)</script>', page)[1])
    values = np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(2, 3, 3, 3)
    assert values[1, 2, 1].tolist() == [64, 255, 0] and data["layers"] == [4, 7] and data["rows"][0] == "<b>"


@pytest.mark.browser
def test_the_maps_are_drawn(tmp_path):
    page = (
        shown().page().replace("show({ kind: 0 });", "show({ kind: 0 }); at('overview').children[5].click();")
    )
    (tmp_path / "a.html").write_text(page)
    opened = open_page(tmp_path / "a.html", tmp_path / "profile")
    assert opened.console == []
    assert (
        len(opened.elements("canvas")) == 6
        and [c.get("class") for c in opened.elements("canvas")][5] == "shown"
    )
    cells = [e["fill-opacity"] for e in opened.elements("rect")]
    assert cells == ["1.000", "0.000", "0.000", "0.501", "1.000", "0.000", "0.501", "0.000", "1.000"]
    assert [e["text"] for e in opened.elements("text")] == ["<b>", "</script>", "c"] * 2
    assert "attention, layer 7, head 2" in opened.dom
