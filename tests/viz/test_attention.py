"""The page of attention maps."""

import base64
import json
import re

import numpy as np
import plmcore as plm
import pytest
from browser import open_page
from plmcore.language_model.attention import Attention, Map
from plmcore.viz import attention


def shown(tokens=("<b>", "</script>", "c")):
    weights = np.zeros((2, 3, 3, 3), np.float32)
    weights[1, 2] = np.eye(3)
    weights[..., 0] += 0.25
    tokens = list(tokens)
    return Attention({"attentions": Map(tokens, tokens, weights, [4, 7])}, "<i>a title")


def test_the_page_holds_the_weights(tmp_path):
    shown().html(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "<i>" not in page and "<b>" not in page and page.count("</script>") == 2
    (data,) = json.loads(re.search(r'id="attention">(.*?)</script>', page)[1])
    values = np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(2, 3, 3, 3)
    assert values[1, 2, 1].tolist() == [64, 255, 0] and data["layers"] == [4, 7] and data["rows"][0] == "<b>"


def test_more_than_a_page_can_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(attention, "MOST", 53)
    with pytest.raises(plm.ArgumentError, match="54 weights are too many for a page, at most 53"):
        shown().html(tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.browser
def test_the_maps_are_drawn(tmp_path):
    page = attention.page(shown()).replace(
        "show({ kind: 0 });", "show({ kind: 0 }); at('overview').children[5].click();"
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
