import importlib
import os
import pathlib
import re
import subprocess
import sys

import installed
import plmcore as plm
import pytest
from plmcore import _core, cli
from plmcore.cli import demo


def command(*args):
    return subprocess.run(
        [*installed.COMMAND, *args], capture_output=True, text=True, timeout=300, env=os.environ
    )


@pytest.mark.skipif(not installed.is_installed(), reason="plmcore runs from a checkout and is not installed")
def test_the_command_is_installed():
    """PATH does not help it to find anything. `python -m plmcore` is the same."""
    assert installed.PATH.is_file(), f"the installed package has no command {installed.PATH}"
    for words in ([installed.PATH], [sys.executable, "-m", "plmcore"]):
        r = subprocess.run(
            [*words, "--version"],
            capture_output=True,
            text=True,
            timeout=300,
            env=os.environ | {"PATH": "/nonexistent"},
        )
        assert r.returncode == 0 and r.stdout == command("--version").stdout


def test_an_error_has_no_traceback():
    failed = command("info", "/nonexistent")
    assert failed.returncode == 1 and "plmcore info: " in failed.stderr and "Traceback" not in failed.stderr


def test_the_project_declares_the_command():
    import tomllib

    project = pathlib.Path(__file__).parent.parent / "pyproject.toml"
    module, _, function = tomllib.loads(project.read_text())["project"]["scripts"]["plmcore"].partition(":")
    assert getattr(importlib.import_module(module), function)(["--cmake-dir"]) == cli.main(["--cmake-dir"])


def test_version_and_help():
    isa = _core.isa().removeprefix("base")
    kernels = f"x86-64-{isa}" if isa else "base"
    shown = command("--version").stdout
    assert shown.startswith(f"plmcore {plm.__version__} (kernels {kernels}, BLAS {_core.blas()}, ")
    assert re.search(r", \d+ threads?\)\n$", shown)
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
    out = tmp_path / "run"
    assert cli.main(["demo", "--steps", "16", "--out", str(out), "--seed", "3"]) == 0
    text, err = capsys.readouterr()
    assert err == ""  # no progress line: this is not a terminal
    found = next(line for line in text.splitlines() if line.startswith("held-out perplexity:"))
    perplexities = [float(p) for p in found.split()[2:]]
    assert len(perplexities) == 8 and perplexities[-1] < 0.8 * perplexities[0]
    lm = plm.load(out / "final")
    assert lm.tokenizer.decode(lm.tokenizer("def f(x):").input_ids) == "def f(x):"
    assert (out / "report.html").read_text().count("<svg") == 5
    assert cli.main(["demo", "--out", str(out)]) == 1
    assert "is not empty" in capsys.readouterr().err


def test_the_manual_has_no_paragraph_twice():
    paragraphs = demo.manual().split("\n\n")
    assert len(paragraphs) == len(set(paragraphs)) > 500


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


@pytest.mark.parametrize(
    "variable, value, message",
    [
        ("PLMCORE_NUM_THREADS", "abc", "PLMCORE_NUM_THREADS must be a number from 1 to 256, got 'abc'"),
        ("PLMCORE_NUM_THREADS", "", "PLMCORE_NUM_THREADS must be a number from 1 to 256, got ''"),
        (
            "PLMCORE_ISA",
            "v9",
            "PLMCORE_ISA names an instruction set that this processor or build does not have: v9",
        ),
        ("PLMCORE_VNNI", "yes", "PLMCORE_VNNI must be 0 or 1, got 'yes'"),
    ],
)
def test_a_wrong_variable_is_told_before_any_work(tmp_path, variable, value, message):
    if variable == "PLMCORE_VNNI" and plm._core.isa() != "v4":
        pytest.skip("only the kernels of v4 multiply bytes")
    run = [
        "-m",
        "plmcore",
        "pretrain",
        "gpt2",
        "--text",
        os.fspath(tmp_path / "none.txt"),
        "--out",
        os.fspath(tmp_path / "run"),
    ]
    env = os.environ | {variable: value}
    done = subprocess.run([sys.executable, *run], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 2 and done.stderr == f"plmcore: {message}\n" and not (tmp_path / "run").exists()
    imported = subprocess.run(
        [sys.executable, "-c", "import plmcore"], capture_output=True, text=True, env=env
    )
    assert imported.returncode == 0  # who only reads files needs neither
