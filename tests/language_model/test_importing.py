"""Checkpoints of the programs that families were published with, through `plmcore convert --family`.
tests/golden/make_checkpoints.py writes the one of fairseq.
"""

import argparse
import json
import pathlib
import pickle
import sys
import time
import types
import zipfile

import numpy as np
import plmcore as plm
import pytest
from plmcore import cli
from plmcore.formats import torch_file, torch_pickle

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "checkpoints" / "mass"
CHECKPOINT, WORDS = GOLDEN / "checkpoint.pt", GOLDEN / "dict.txt"


def convert(source, out, *options):
    return cli.main(["convert", str(source), str(out), *map(str, options)])


def refused(capsys, source, out, *options):
    assert convert(source, out, *options) == 1
    said = capsys.readouterr().err
    assert said.startswith("plmcore convert: ") and said.count("\n") == 1 and len(said) < 1500
    assert not out.exists()
    return said


def archive(path, value):
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("archive/data.pkl", pickle.dumps(value, protocol=2))
    return path


def test_a_checkpoint_of_mass(tmp_path, capsys):
    out = tmp_path / "mass"
    assert convert(CHECKPOINT, out, "--family", "mass", "--vocab", WORDS) == 0
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
        pathlib.Path(line).name for line in capsys.readouterr().out.split()
    }
    lm = plm.load(out)
    with np.load(GOLDEN / "inputs.npz") as inputs, np.load(GOLDEN / "outputs.npz") as expected, plm.no_grad():
        found = lm(**inputs)
        np.testing.assert_allclose(found.logits.numpy(), expected["logits"], atol=1e-5)
        np.testing.assert_allclose(found.loss.numpy(), expected["loss"], atol=1e-5)
    assert (lm.config.encoder_attention_heads, lm.config.decoder_attention_heads) == (3, 2)
    assert lm.tokenizer.eos_token_id == lm.config.decoder_start_token_id == 5
    assert json.loads((out / "config.json").read_text())["model_type"] == "mass"
    assert lm.generate("t7 t9", max_new_tokens=4) == lm.generate("t7 t9", max_new_tokens=4)


def test_the_rest_of_a_checkpoint_is_data():
    tensors, rest = torch_file.read_checkpoint(CHECKPOINT, "model")
    assert tensors["encoder.layers.0.self_attn.in_proj_weight"].shape == (18, 6)
    assert tensors["decoder.version"].tolist() == [3.0]
    assert rest["args"].name == "argparse.Namespace" and rest["args"].values["lr"] == [0.0005]
    assert rest["extra_state"] == {"epoch": 1}


def test_keys_of_the_config_may_be_set(tmp_path):
    changes = ("--set", "dropout=0.25", "--set", "activation_function=relu")
    assert convert(CHECKPOINT, tmp_path / "mass", "--family", "mass", "--vocab", WORDS, *changes) == 0
    config = plm.load(tmp_path / "mass").config
    assert (config.dropout, config.activation_function) == (0.25, "relu")


# ---- what is refused ----


def test_a_dictionary_of_another_model(tmp_path, capsys):
    words = tmp_path / "dict.txt"
    words.write_text(WORDS.read_text() + "more 1\n")
    said = refused(capsys, CHECKPOINT, tmp_path / "out", "--family", "mass", "--vocab", words)
    assert "the dictionary has 17 tokens, and encoder.embed_tokens.weight has 16 rows" in said


@pytest.mark.parametrize(
    "options, message",
    [
        (["--family", "mass"], "needs the dict.txt that it was trained with: --vocab dict.txt"),
        (
            ["--family", "bert"],
            "bert has no checkpoints of its own: --family is one of awd-lstm, cove, elmo, glm, mass",
        ),
        (["--family", "mess"], "there is no model_type 'mess'"),
        (["--vocab", WORDS], "--vocab and --set go with --family"),
        (["--family", "mass", "--vocab", WORDS, "--set", "heads=3"], "MassConfig has no key 'heads'"),
        (["--family", "mass", "--vocab", WORDS, "--set", "decoder_layers=2"], "do not fit|does not fit mass"),
        (["--family", "mass", "--vocab", "nowhere.txt"], "nowhere.txt"),
        ([], "wants plmcore convert --family"),
    ],
)
def test_options_that_do_not_go(tmp_path, capsys, options, message):
    assert any(part in refused(capsys, CHECKPOINT, tmp_path / "out", *options) for part in message.split("|"))


class Runs:
    def __reduce__(self):
        return exec, ("raise SystemExit('it was run')",)


class Unknown:
    pass


@pytest.mark.parametrize("value", [Runs(), Unknown(), [{"a": Unknown()}]], ids=["call", "object", "inside"])
def test_a_namespace_with_other_classes_in_it(tmp_path, capsys, value):
    path = archive(tmp_path / "c.pt", {"args": argparse.Namespace(arch=value), "model": {}})
    said = refused(capsys, path, tmp_path / "out", "--family", "mass", "--vocab", WORDS)
    assert "it uses the global" in said and "Nothing was run" in said
    assert "exec" in said or "test_importing.Unknown" in said


def test_a_checkpoint_of_something_else(tmp_path, capsys):
    path = archive(tmp_path / "c.pt", {"args": argparse.Namespace(), "model": {}})
    said = refused(capsys, path, tmp_path / "out", "--family", "mass", "--vocab", WORDS)
    assert "it has no tensor encoder.embed_tokens.weight: it is no checkpoint of MASS" in said


def test_a_file_that_is_cut_off(tmp_path, capsys):
    path = tmp_path / "c.pt"
    path.write_bytes(CHECKPOINT.read_bytes()[:9000])
    refused(capsys, path, tmp_path / "out", "--family", "mass", "--vocab", WORDS)


def test_meters_are_data(monkeypatch):
    """fairseq's files hold those of their training."""
    module = types.ModuleType("fairseq.meters")
    module.AverageMeter = type("AverageMeter", (), {"__module__": "fairseq.meters"})
    monkeypatch.setitem(sys.modules, "fairseq", types.ModuleType("fairseq"))
    monkeypatch.setitem(sys.modules, "fairseq.meters", module)
    meter = module.AverageMeter()
    meter.avg = 2.5
    found, _ = torch_pickle.load(pickle.dumps(meter, protocol=2))
    assert found.name == "fairseq.meters.AverageMeter" and found.values == {"avg": 2.5}


@pytest.mark.parametrize(
    "data, message",
    [
        (b"\x80\x02cargparse\nNamespace\n]\x81.", "an object of what is not a known class"),
        (b"\x80\x02cargparse\nNamespace\n)R.", "it calls what is not a function"),
        (b"\x80\x02cargparse\nNamespace\n)\x81]b.", "the attributes of argparse.Namespace must be a map"),
        (b"\x80\x02K\x01)\x81.", "an object of what is not a known class"),
    ],
)
def test_objects_that_are_none(data, message):
    with pytest.raises(plm.FormatError, match=message):
        torch_pickle.load(data)


def test_settings_that_unfold(tmp_path, capsys):
    """A list within itself again and again is left alone."""
    value = ["x"]
    for _ in range(60):
        value = [value, value]
    path = archive(tmp_path / "c.pt", {"args": argparse.Namespace(dropout=value), "model": {"a": value}})
    start = time.monotonic()
    refused(capsys, path, tmp_path / "out", "--family", "mass", "--vocab", WORDS)
    assert time.monotonic() - start < 10
