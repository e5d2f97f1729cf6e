"""Every head of every family on the device "test": outputs and gradients with the bits of the CPU."""

import numpy as np
import plmcore as plm
import pytest
from every_family import HEADS, flat, given, ids, model
from plmcore.program.export import signature

THREE = [("gpt2", "causal-lm"), ("bert", "masked-lm"), ("t5", "seq2seq-lm")]


def batch_of(lm, head):
    batch = given(lm, head)
    if head in ("question-answering", "answer-beams"):
        batch |= dict(start_positions=np.array([0, 2]), end_positions=np.array([1, 3]))
    elif head == "pretraining":
        other = "next_sentence_label" if lm.config.model_type == "bert" else "sentence_order_label"
        batch |= {"labels": ids(lm, head), other: np.array([0, 1])}
    elif head in ("sequence-classification", "multiple-choice", "next-sentence"):
        batch["labels"] = np.array([0, 1])
    elif head == "token-classification":
        batch["labels"] = ids(lm, head) % 2
    elif not head.startswith("base"):
        batch["labels"] = batch.get("decoder_input_ids", batch["input_ids"])
    if head != "multiple-choice":
        batch["attention_mask"] = np.ones_like(batch["input_ids"])
        batch["attention_mask"][0, ..., :2] = 0
    return batch


def found_on(device, name, head):
    lm = model(name, head).to(device).train()
    assert lm.device == device
    plm.seed(3)
    out = lm(**batch_of(lm, head))
    values = {k: v for k, v in flat(out).items() if isinstance(v, plm.Tensor)}
    assert {t.device for t in values.values()} == {device}
    loss = values.get("loss")
    if loss is None:
        loss = next(t for t in values.values() if t.requires_grad).sum()
    loss.backward()
    gradients = {n: p.grad for n, p in lm.named_parameters() if p.grad is not None}
    gradients = {n: g.values if g.is_row_sparse else g for n, g in gradients.items()}
    return {k: t.numpy() for k, t in (values | gradients).items()}


@pytest.mark.parametrize(("name", "head"), HEADS)
def test_bits(name, head):
    expected, found = (found_on(device, name, head) for device in ("cpu", "test"))
    assert expected.keys() == found.keys()
    for key, value in expected.items():
        assert value.tobytes() == found[key].tobytes(), key


@pytest.mark.parametrize(("name", "head"), THREE)
def test_programs_on_a_device(name, head, tmp_path):
    lm = model(name, head).eval()
    plm.export(lm, tmp_path / "model.plm")
    here = plm.load_program(tmp_path / "model.plm")
    there = plm.load_program(tmp_path / "model.plm", device="test")
    traced = plm.trace(lm.to("test").model, **signature(lm.model))
    assert (here.device, there.device, traced.device) == ("cpu", "test", "test")
    batch = {key: np.full((2, 5), 1) for key in signature(lm.model)}
    batch["attention_mask"] = np.array([[1, 1, 1, 0, 0], [1] * 5])
    results = [program(**batch) for program in (here, there, traced)]
    for name, value in results[0].items():
        for other in results[1:]:
            assert other[name].device == "test" and value.numpy().tobytes() == other[name].numpy().tobytes()
    plm.export(lm, tmp_path / "again.plm")  # from the device
    again = plm.load_program(tmp_path / "again.plm")(**batch)
    assert all(v.numpy().tobytes() == again[k].numpy().tobytes() for k, v in results[0].items())


def test_save_and_load(tmp_path):
    lm = model("gpt2", "causal-lm").to("test")
    lm.save(tmp_path / "dir")
    there = plm.load(tmp_path / "dir", device="test:1")
    assert there.device == "test:1" and {p.device for p in there.parameters()} == {"test:1"}
    x = np.array([[1, 2, 3]])
    assert there(input_ids=x).logits.numpy().tobytes() == lm.eval()(input_ids=x).logits.numpy().tobytes()
    with pytest.raises(plm.DeviceError, match="there is no device 'tpu'"):
        plm.load(tmp_path / "dir", device="tpu")
