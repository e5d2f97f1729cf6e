import io
import os
import pathlib
import subprocess
import sys

import numpy as np
import plmcore as plm
import pytest
from plmcore import cli
from plmcore.cli.demo import CharTransformer, Config, Corpus, learning_rate
from plmcore.cli.progress import Progress


def command(*args):
    return subprocess.run(
        [sys.executable, "-m", "plmcore", *args], capture_output=True, text=True, timeout=300, env=os.environ
    )


def test_version_and_help():
    assert command("--version").stdout == f"plmcore {plm.__version__}\n"
    help = command("--help").stdout
    assert "demo" in help and "examples:" in help
    assert "example:" in command("demo", "--help").stdout
    assert command().returncode == 2


def test_cmake_dir():
    r = command("--cmake-dir")
    if r.returncode == 0:
        assert os.path.exists(os.path.join(r.stdout.strip(), "plmcore-config.cmake"))
    else:
        assert "pip install" in r.stderr


def test_bad_arguments():
    for args in (["demo", "--steps", "0"], ["demo", "--steps", "many"], ["fly"]):
        r = command(*args)
        assert r.returncode == 2 and "Traceback" not in r.stderr


def test_demo(tmp_path, capsys):
    assert cli.main(["demo", "--steps", "20", "--out", str(tmp_path / "run"), "--seed", "3"]) == 0
    out, err = capsys.readouterr()
    assert err == ""  # no progress line: this is not a terminal
    losses = [float(line.split()[3]) for line in out.splitlines() if line.startswith("step ")]
    assert len(losses) == 10 and losses[-1] < losses[0] - 0.5
    assert "bits per character; bigrams " in out
    with np.load(tmp_path / "run" / "weights.npz") as state:
        model = CharTransformer(Config(characters=len(Corpus().characters)))
        model.load_state_dict(dict(state))


def test_baselines():
    unigram, bigram = Corpus().baselines()
    assert 3 < bigram < unigram < 5.5


def test_learning_rate():
    rates = [learning_rate(s, 1000, 1.0) for s in range(1000)]
    assert rates[0] == 0.01 and max(rates) == rates[99] == 1.0 and rates[-1] == pytest.approx(0.1, abs=1e-4)
    assert all(learning_rate(s, 1) > 0 for s in range(1))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_line():
    out = Terminal()
    progress = Progress(3, out=out)
    progress.update(3, "loss 1.0")
    progress.clear()
    assert "step 3/3  loss 1.0" in out.getvalue() and "\n" not in out.getvalue()
    silent = io.StringIO()
    Progress(3, out=silent).update(3)
    assert silent.getvalue() == ""


def test_info(tmp_path):
    folder = pathlib.Path(__file__).parent / "golden" / "models" / "bert"
    r = command("info", str(folder))
    assert r.returncode == 0 and [line.split()[0] for line in r.stdout.splitlines()] == [
        "family", "head", "parameters", "dtype", "memory", "tokenizer",
    ]  # fmt: skip
    assert "bert\n" in r.stdout and "pretraining (BertForPreTraining)" in r.stdout and "float32" in r.stdout
    count = sum(p.size for p in plm.load(folder).parameters())
    assert f"{count:,}\n" in r.stdout and f"{count * 4 / 1e6:.1f} MB" in r.stdout
    r = command("info", str(tmp_path))
    assert r.returncode == 1 and "has no config.json" in r.stderr and "Traceback" not in r.stderr
