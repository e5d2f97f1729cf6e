import pytest
from plmcore import Tensor
from plmcore.models.outputs import Output


def test_fields():
    x = Tensor([1.0, 2.0])
    out = Output(logits=x, loss=None, hidden_states=(x, x))
    assert out.logits is out["logits"] is x and out.loss is None and out.attentions is None
    assert list(out) == ["logits", "hidden_states"] and len(out) == 2 and "loss" not in out
    assert repr(out) == "Output(logits: [2], hidden_states: 2 x [2])"
    with pytest.raises(
        AttributeError, match="Output has no field 'logit'; this one has logits, hidden_states"
    ):
        out.logit
    with pytest.raises(TypeError, match="Output has no field 'probabilities'"):
        Output(probabilities=x)


def test_a_field_that_waits():
    calls = []
    out = Output(logits=lambda: calls.append(1) or Tensor([3.0]))
    assert not calls and "logits: computed when read" in repr(out)
    assert out.logits.item() == 3 and out.logits is out["logits"] and calls == [1]
