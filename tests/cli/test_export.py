import numpy as np
import plmcore as plm
import pytest
from plmcore import cli

SIZES = dict(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)


@pytest.fixture
def folder(tmp_path):
    plm.from_config({"model_type": "bert", **SIZES}, "masked-lm").save(tmp_path / "bert")
    return tmp_path / "bert"


def test_a_directory_becomes_a_file(folder, tmp_path, capsys):
    assert cli.main(["export", str(folder), str(tmp_path / "bert.plm")]) == 0
    said = capsys.readouterr().out
    assert "input_ids             int64[B, T]" in said and "logits                float32[B, T, 50]" in said
    ids = np.random.default_rng(0).integers(0, 50, (3, 7))
    batch = dict(input_ids=ids, attention_mask=(ids > 9).astype(np.int64), token_type_ids=ids % 2)
    got = plm.load_program(tmp_path / "bert.plm")(**batch)["logits"].numpy()
    np.testing.assert_allclose(got, plm.load(folder)(**batch).logits.numpy(), atol=1e-5)


def test_another_head(folder, tmp_path, capsys):
    assert cli.main(["export", str(folder), str(tmp_path / "body.plm"), "--head", "base"]) == 0
    assert "last_hidden_state     float32[B, T, 16]" in capsys.readouterr().out


def test_errors(folder, tmp_path, capsys):
    out = str(tmp_path / "x.plm")
    assert cli.main(["export", str(tmp_path / "nothing"), out]) == 1
    assert "plmcore export: " in capsys.readouterr().err
    assert cli.main(["export", str(folder), out, "--head", "seq2seq-lm"]) == 1
    assert "seq2seq-lm" in capsys.readouterr().err
    assert not (tmp_path / "x.plm").exists()
