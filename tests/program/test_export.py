"""Whole models to one file and back: programs by name, over the same weights."""

import pathlib

import numpy as np
import plmcore as plm
import pytest
from plmcore import nn

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
IDS = plm.spec("int64", "B", "T")
rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def lm():
    sizes = dict(vocab_size=211, n_embd=48, n_layer=2, n_head=4, n_positions=32)
    return plm.from_config({"model_type": "gpt2", **sizes}, "causal-lm").eval()


def test_a_model_runs_from_its_file_at_other_sizes(lm, tmp_path):
    with plm.no_grad():
        plm.export(plm.trace(lm.model, input_ids=IDS, attention_mask=IDS), tmp_path / "gpt2.plm")
        program = plm.load_program(tmp_path / "gpt2.plm")
        for B, T in ((2, 5), (1, 32), (5, 1)):
            ids, mask = rng.integers(0, 211, (B, T)), np.ones((B, T), np.int64)
            mask[0, T // 2 + 1 :] = 0
            got, want = (f(input_ids=ids, attention_mask=mask)["logits"].numpy() for f in (program, lm))
            np.testing.assert_allclose(got, want, atol=1e-5)


def test_several_programs_hold_their_weights_once(lm, tmp_path):
    def score(input_ids):
        return lm.model(input_ids, labels=input_ids).loss

    weights = dict(lm.named_parameters())
    programs = {
        "logits": plm.trace(lm.model, input_ids=IDS),
        "loss": plm.trace(score, weights, input_ids=IDS),
    }
    plm.export(programs, tmp_path / "two.plm")
    size = sum(p.nbytes for p in lm.parameters())
    assert size < (tmp_path / "two.plm").stat().st_size < 1.2 * size
    loaded = plm.load_programs(tmp_path / "two.plm")
    ids = rng.integers(0, 211, (3, 7))
    assert list(loaded) == ["logits", "loss"]
    np.testing.assert_allclose(
        loaded["loss"](input_ids=ids).item(), lm(input_ids=ids, labels=ids).loss.item(), rtol=1e-6
    )
    with pytest.raises(ValueError, match="two.plm' has the programs 'logits', 'loss'; name the one to load"):
        plm.load_program(tmp_path / "two.plm")
    assert plm.load_program(tmp_path / "two.plm", "logits")(input_ids=ids)["logits"].shape == (3, 7, 211)
    with pytest.raises(ValueError, match="'greedy'"):
        plm.load_program(tmp_path / "two.plm", "greedy")


def test_a_file_of_this_format_written_once_gives_what_it_gave():
    """tests/golden/make_block.py wrote it; a format that can no longer be read takes another number."""
    programs = plm.load_programs(GOLDEN / "block.plm")
    with np.load(GOLDEN / "block.npz") as stored:
        np.testing.assert_allclose(programs["norm"](x=stored["x"])["y"].numpy(), stored["y"], atol=1e-6)
        scaled = programs["scale"](x=stored["rows"])
        np.testing.assert_array_equal(scaled["y"].numpy(), stored["scaled"])
        np.testing.assert_array_equal(scaled["cast"].numpy(), stored["cast"])


def test_what_is_no_program(lm, tmp_path):
    for what in (nn.Linear(2, 2), {"main": nn.Linear(2, 2)}, None):
        with pytest.raises(
            TypeError, match=r"export: 'main' must be a model, or a Program, which plm.trace\(module, .* got "
        ):
            plm.export(what, tmp_path / "x.plm")
    assert not (tmp_path / "x.plm").exists()
    with pytest.raises(FileNotFoundError, match="x.plm"):
        plm.load_program(tmp_path / "x.plm")
