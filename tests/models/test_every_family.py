"""What every family refuses, whatever its head: configs with one wrong value, and inputs that do not fit."""

import dataclasses
import gc

import numpy as np
import plmcore as plm
import pytest
from every_family import CONFIGS, HEADS, OTHERS, config, flat, given, ids, model
from plmcore import models
from plmcore.program.export import signature

HEAD_COUNTS = (
    "num_attention_heads",
    "n_heads",
    "n_head",
    "num_heads",
    "encoder_attention_heads",
    "decoder_attention_heads",
)
WIDTHS = ("hidden_size", "dim", "n_embd", "d_model")  # of attention; networks before it have others
WRONG = [None, "x", "", [], [1], {}, {"a": 1}, True, 1.5, -1, 0, float("nan"), float("inf"), 10**30, 2**62]


def test_no_family_is_left_out():
    assert set(CONFIGS | OTHERS) == set(models.FAMILIES)


# ---- configs ----


@pytest.mark.parametrize("name", CONFIGS | OTHERS)
def test_a_wrong_value_is_one_clear_error(name):
    """Of every key, every kind of wrong value: refused by name, or good enough to be built."""
    refused = 0
    for key in [f.name for f in dataclasses.fields(config(name)) if f.name not in ("extra", "model_type")]:
        for value in WRONG:
            try:
                made = config(name, **{key: value})
            except plm.ArgumentError as e:
                refused += 1
                assert key in str(e) and "must" in str(e), e
                continue
            for head in models.family(name).HEADS:
                try:
                    models.count_parameters(made, head)
                except plm.ArgumentError:
                    pass
    assert refused > 90


@pytest.mark.parametrize("name", CONFIGS)
def test_heads_and_widths(name):
    keys = [f.name for f in dataclasses.fields(config(name))]
    heads, width = [k for k in HEAD_COUNTS if k in keys], next((k for k in WIDTHS if k in keys), None)
    assert width is not None or not heads
    for key in heads:
        for value in (0, -2):
            with pytest.raises(plm.ArgumentError, match=rf"{key} must be at least 1, got {value}"):
                config(name, **{key: value})
        with pytest.raises(plm.ArgumentError, match=f"{key} must be a whole number, got '2'"):
            config(name, **{key: "2"})
    if heads and name not in ("t5", "transfo-xl"):  # whose heads have a width of their own
        with pytest.raises(plm.ArgumentError, match=f"{width} must be a multiple of {heads[0]} = 2, got 9"):
            config(name, **{width: 9})
    layers = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers", "layers")
    for key in [k for k in keys if k in layers][:1]:
        with pytest.raises(plm.ArgumentError, match=f"{key} must be at most 10000, got"):
            config(name, **{key: 2**40})
    with pytest.raises(plm.ArgumentError, match="vocab_size must be at most 2147483647"):
        config(name, vocab_size=2**31)


# ---- inputs ----


ERRORS = (plm.ArgumentError, plm.ShapeError, plm.DTypeError, plm.IndexRangeError)


@pytest.mark.parametrize("name, head", HEADS)
def test_inputs_that_do_not_fit(name, head):
    lm = model(name, head)
    lm(**given(lm, head))  # these do
    good = ids(lm, head)
    for value in (30, -1, 2**40, -(2**40)):
        with pytest.raises(plm.IndexRangeError, match="is not|out of range|must be"):
            lm(**given(lm, head, input_ids=ids(lm, head, value)))
    for wrong in (good.astype(np.float32), good.reshape(-1), good[None, None], np.zeros((0,), np.int64)):
        with pytest.raises(ERRORS):
            lm(**given(lm, head, input_ids=wrong))
    for mask in (np.ones((2, 5)), np.ones((3, 6)), np.ones(6), np.ones((2, 6, 6, 1))):
        with pytest.raises(ERRORS):
            lm(**given(lm, head, attention_mask=mask.astype(np.int64)))
    if lm.config.longest is not None:
        with pytest.raises(plm.ShapeError, match=f"is more than the {lm.config.longest} positions"):
            lm(**given(lm, head, input_ids=ids(lm, head, length=lm.config.longest + 1)))
    with pytest.raises(TypeError):
        lm(**given(lm, head, no_such_input=good))


@pytest.mark.parametrize("name, head", [(n, h) for n, h in HEADS if not h.startswith("base")])
def test_labels_that_do_not_fit(name, head):
    lm = model(name, head)
    good = ids(lm, head)
    if head in ("question-answering", "answer-beams"):
        wrong = [dict(start_positions=np.zeros(3, np.int64), end_positions=np.zeros(2, np.int64))]
        if head == "answer-beams":
            wrong += [
                dict(start_positions=np.full(2, n), end_positions=np.zeros(2, np.int64))
                for n in (6, -1, 2**40)
            ]
    elif head == "pretraining":
        other = "next_sentence_label" if name == "bert" else "sentence_order_label"
        wrong = [
            {"labels": np.full(good.shape, 30), other: np.array([0, 1])},
            {"labels": good, other: np.array([0, 2])},
            {"labels": good[:1], other: np.array([0, 1])},
        ]
    elif head == "double-heads":
        wrong = [dict(labels=np.full(good.shape, 30)), dict(mc_labels=np.array([7]))]
    else:
        shape = (
            (2,) if head in ("sequence-classification", "multiple-choice", "next-sentence") else good.shape
        )
        wrong = [dict(labels=np.full(shape, n)) for n in (30, -1, 2**40)] + [
            dict(labels=np.zeros(n, np.int64)) for n in ((3, 7), 3, (2, 6, 1, 1))
        ]
    for labels in wrong:
        with pytest.raises(ERRORS):
            lm(input_ids=good, **labels).loss.numpy()


# ---- export ----


@pytest.mark.parametrize("name, head", HEADS)
def test_a_model_runs_from_its_file(name, head, tmp_path):
    """At other sizes than any it was written with, and in eval mode whatever the model is in."""
    lm = model(name, head)
    plm.export(lm.train(), tmp_path / "model.plm")
    assert lm.model.training
    lm.eval()
    program = plm.load_program(tmp_path / "model.plm")
    takes = signature(lm.model)
    for rows, length in ((2, 6), (3, 9)):
        sizes = {"B": rows, "K": 3}
        batch = {
            key: np.full([n if isinstance(n, int) else sizes.get(str(n), length) for n in s.shape], 5)
            for key, s in takes.items()
        }
        batch["input_ids"][..., -1] = ids(lm, head)[..., -1].flat[0]
        batch["attention_mask"] = np.ones_like(batch["input_ids"])
        batch["attention_mask"][0, ..., :2] = 0  # on the left: the end of a sequence counts for some heads
        if "token_type_ids" in takes:
            batch["token_type_ids"] = np.cumsum(batch["attention_mask"], -1) // 4 % 2
        got, want = program(**batch), flat(lm(**batch))
        assert got.keys() == want.keys()
        for field in got:
            np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), atol=1e-5, err_msg=field)


@pytest.mark.parametrize("name, head", HEADS)
def test_a_call_leaves_nothing_to_the_garbage_collector(name, head):
    """Activations in a cycle would live until it runs, however large they are."""
    lm = model(name, head)
    inputs = given(lm, head)
    with plm.no_grad():
        lm(**inputs)  # tables that stay
        gc.collect()
        gc.disable()
        try:
            before = plm.memory_stats()["in_use"]
            out = lm(**inputs)
            fields = [*out.values()]
            assert plm.memory_stats()["in_use"] > before
            del out, fields
            assert plm.memory_stats()["in_use"] == before
        finally:
            gc.enable()
