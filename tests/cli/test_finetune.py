import json
import pathlib
import signal
import subprocess
import sys
import time

import installed
import plmcore as plm
import pytest
from plmcore import cli

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tasks"))
import samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model directory and files to learn from."""
    path = tmp_path_factory.mktemp("finetune")
    (path / "text.txt").write_text("\n".join(samples.sentences(200)))
    tokenizer = plm.train_tokenizer([path / "text.txt"], kind="wordpiece", vocab_size=200, family="bert")
    lm = plm.from_config(
        {"model_type": "bert", **samples.SMALL}, "masked-lm", vocab_size=tokenizer.vocab_size
    )
    lm.tokenizer = tokenizer
    lm.save(path / "model")
    for name, first in (("train", 0), ("dev", 64)):
        (path / f"{name}.tsv").write_text(
            "".join(f"{t}\t{label}\n" for t, label in samples.reviews(64, first))
        )
    return path


def command(folder, out, *more):
    return [
        "finetune",
        str(folder / "model"),
        "--task",
        "classification",
        "--train",
        str(folder / "train.tsv"),
        "--out",
        str(out),
        *more,
    ]


def test_from_a_table_to_scores(folder, tmp_path, capsys):
    out = tmp_path / "run"
    more = [
        "--dev",
        str(folder / "dev.tsv"),
        "--epochs",
        "2",
        "--set",
        "optim.lr=3e-3",
        "--labels",
        "good,bad",
    ]
    assert cli.main(command(folder, out, *more)) == 0
    said = capsys.readouterr().out
    assert "dev: loss" in said and f"model: {out / 'final'}" in said
    assert json.loads((out / "scores.json").read_text())["dev"].keys() == {"loss", "accuracy"}
    assert plm.load(out / "final").config.extra["id2label"] == {"0": "good", "1": "bad"}
    assert (
        cli.main(
            [
                "finetune",
                "--config",
                str(out / "config.toml"),
                "--set",
                "run.seed=1",
                "--out",
                str(tmp_path / "other"),
            ]
        )
        == 0
    )
    a, b = ((tmp_path / name / "final" / "model.safetensors").read_bytes() for name in ("run", "other"))
    assert a != b


def test_a_signal_says_how_to_go_on(folder, tmp_path):
    out = tmp_path / "run"
    arguments = [*installed.COMMAND, *command(folder, out, "--steps", "100000", "--save-every", "50")]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    deadline = time.monotonic() + 60
    while not (out / "checkpoints").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143 and f"plmcore finetune --out {out} --resume" in said
    assert list((out / "checkpoints").glob("step-*")) and not (out / "final").exists()


def test_options_that_are_settings(folder, tmp_path, capsys):
    out, other = tmp_path / "options", tmp_path / "settings"
    assert cli.main(command(folder, out, "--lr", "2e-3", "--batch", "8", "--epochs", "1", "--lora", "2")) == 0
    changes = ["optim.lr=2e-3", "data.batch=8", "train.epochs=1", "adapt.lora_rank=2"]
    assert cli.main(command(folder, other, *(x for change in changes for x in ("--set", change)))) == 0
    assert (out / "config.toml").read_text() == (other / "config.toml").read_text()
    assert (out / "final/model.safetensors").read_bytes() == (other / "final/model.safetensors").read_bytes()
    assert "lora_rank = 2" in (out / "config.toml").read_text() and (out / "adapter").is_dir()
    capsys.readouterr()
    for option, value, setting in (
        ("--lr", "1e-3", "optim.lr=2e-3"),
        ("--batch", "4", "data.batch=8"),
        ("--lora", "4", "adapt.lora_rank=8"),
    ):
        assert cli.main(command(folder, tmp_path / "both", option, value, "--set", setting)) == 1
        assert f"{setting.partition('=')[0]} is given twice" in capsys.readouterr().err
