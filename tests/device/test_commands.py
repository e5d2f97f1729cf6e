"""The commands with --device, on the device "test"."""

import json
import os
import pathlib
import subprocess
import sys

import plmcore as plm
import pytest

TEXT = "the cat sat on the mat and the dog ran far away from home to see the other cat. " * 400
HERE = pathlib.Path(plm.__file__).parent.parent


def run(*args, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "plmcore", *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(HERE)},
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    (folder / "text.txt").write_text(TEXT)
    for device in ("cpu", "test"):
        small = ("--set", "model.n_layer=1", "--set", "model.n_embd=16", "--batch", 4)
        options = ("--steps", 6, "--save-every", 3, "--out", folder / device, "--device", device)
        run("pretrain", "gpt2", "--size", "tiny", "--text", folder / "text.txt", *small, *options)
    return folder


def same_weights(a, b):
    a, b = (plm.load(path).model.state_dict() for path in (a, b))
    return all(t.numpy().tobytes() == b[name].numpy().tobytes() for name, t in a.items())


def test_pretrain(folder):
    assert same_weights(folder / "cpu/final", folder / "test/final")
    assert 'device = "test"' in (folder / "test/config.toml").read_text()


def test_resume_on_another_device(folder, tmp_path):
    out = tmp_path / "run"
    run("pretrain", "--config", folder / "cpu/config.toml", "--steps", 3, "--device", "test", "--out", out)
    run("pretrain", "--resume", "--steps", 6, "--device", "cpu", "--out", out)
    log = (out / "log.txt").read_text()
    assert "on the device test, from here on it is the instruction set" in log


@pytest.mark.parametrize(
    "command",
    [
        ("generate", "--prompt", "the cat", "--max-new-tokens", 5),
        ("evaluate", "text.txt", "--json"),
        ("embed", "text.txt", "--out", "{device}.npy"),
    ],
    ids=lambda c: c[0],
)
def test_commands(folder, command, monkeypatch):
    monkeypatch.chdir(folder)
    name, *options = command
    said = []
    for device in ("cpu", "test"):
        rest = [str(o).format(device=device) for o in options]
        said.append(run(name, folder / "cpu/final", *rest, "--device", device).replace(device, "DEVICE"))
    assert said[0] == said[1]
    if name == "evaluate":
        assert json.loads(said[0])["per_token"] > 1
    if name == "embed":
        assert (folder / "cpu.npy").read_bytes() == (folder / "test.npy").read_bytes()


def test_finetune_and_classify(folder, tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "the cat sat\tcat\nthe dog ran\tdog\n" * 8)
    for device in ("cpu", "test"):
        files = ("--train", tmp_path / "train.tsv", "--dev", tmp_path / "train.tsv")
        options = ("--task", "classification", "--steps", 4, "--lora", 2, "--device", device)
        run("finetune", folder / "cpu/final", *options, *files, "--out", tmp_path / device)
    assert same_weights(tmp_path / "cpu/final", tmp_path / "test/final")
    a, b = (
        run("classify", tmp_path / "cpu/final", "the cat", "--device", d, "--json") for d in ("cpu", "test")
    )
    assert a == b


def test_a_device_that_is_not_there(folder):
    said = run("generate", folder / "cpu/final", "--prompt", "a", "--device", "tpu", code=1)
    assert said.startswith("plmcore generate: there is no device 'tpu'") and said.count("\n") == 1
    said = run(
        "pretrain", "gpt2", "--text", folder / "text.txt", "--out", folder / "x", "--device", "tpu", code=1
    )
    assert "there is no device 'tpu'" in said and "Traceback" not in said
