"""Ctrl-C at any moment, once and again, and locales that know no letters but ASCII: one line, an exit status,
nothing lost.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import plmcore as plm
import pytest

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "models"
# The command as its script runs it; says "up" when plmcore begins to be imported.
COMMAND = """
import sys
sys.argv = ["plmcore", *sys.argv[1:]]
loaded = "import", "plmcore._core"
sys.addaudithook(lambda event, args: (event, *args[:1]) == loaded and print("up", flush=True))
from plmcore.__main__ import main
sys.exit(main())
"""


def started(*arguments, **options):
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    assert process.stdout.readline() == "up\n", process.communicate()
    return process


def stopped(process):
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in err and "Exception" not in err, err
    return process.returncode, err.strip()


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the cat sat on the mat and the dog ran far away from home.\n\n" * 3000)
    return path


@pytest.mark.parametrize("delay", [0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
def test_while_a_command_starts(tmp_path, text, delay):
    """Import, arguments, data, tokenizer, the first steps."""
    process = started("pretrain", "gpt2", "--text", text, "--steps", 100000, "--out", tmp_path / "run")
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    code, said = stopped(process)
    assert code == 130 and "stopped" in said and len(said.splitlines()) <= 2, said


@pytest.mark.parametrize("times", [1, 2, 5])
def test_while_it_trains(tmp_path, text, times):
    run = tmp_path / "run"
    options = ["--text", text, "--set", "model.n_layer=1", "--set", "train.log_every=1", "--out", run]
    process = started("pretrain", "gpt2", "--steps", 100000, *options)
    deadline = time.monotonic() + 100
    while not (run / "metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.005)
    code, said = stopped(process)
    assert code == 130 and "To continue" in said, said
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert lines
    if times == 1:
        assert "everything is saved" in said and any((run / "checkpoints").iterdir())


def test_while_a_corpus_is_written_by_processes(tmp_path, text):
    text.write_text(text.read_text() * 20)
    tokenizer = tmp_path / "tokenizer"
    plm.train_tokenizer([tmp_path / "text.txt"], kind="words", vocab_size=50).save(tokenizer)
    process = started(
        "corpus",
        text,
        "--tokenizer",
        tokenizer,
        "--workers",
        5,
        "--out",
        tmp_path / "c",
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / ".c.partial").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    code, said = stopped(process)
    assert code == 130 and said.startswith("stopped; repeat the command to continue"), said


def test_errors_of_any_command_are_one_line(tmp_path):
    for arguments in (
        ["info", tmp_path],
        ["export", tmp_path, tmp_path / "x.plm"],
        ["convert", tmp_path, tmp_path / "o"],
        ["embed", tmp_path, tmp_path / "none"],
    ):
        code, said = stopped(started(*arguments))
        assert code == 1 and len(said.splitlines()) == 1 and said.startswith(f"plmcore {arguments[0]}: "), (
            said
        )


# ---- locales ----


@pytest.mark.parametrize("utf8", ["", "0"])
def test_other_letters_in_paths_and_texts_where_the_locale_has_none(tmp_path, utf8):
    folder = pathlib.Path(shutil.copytree(GOLDEN / "bert", tmp_path / "Modèle-模型"))
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nça\né\n猫\n的\n", encoding="utf-8")
    lines = tmp_path / "Zeilen-é.txt"
    lines.write_text("ça é 猫\n的\n", encoding="utf-8")
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHONUTF8", "PYTHONIO"))
    }
    environment |= {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"} | ({"PYTHONUTF8": utf8} if utf8 else {})
    for arguments in (
        ["info", folder],
        ["embed", folder, lines],
        ["embed", folder, lines, "--out", tmp_path / "Vektoren-é.npy"],
        ["quantize", folder, "--out", tmp_path / "klein-é"],
    ):
        command = [sys.executable, "-m", "plmcore", *map(os.fspath, arguments)]
        done = subprocess.run(command, capture_output=True, env=environment)
        assert done.returncode == 0, done.stderr.decode()
        if arguments[0] == "embed" and len(arguments) == 3:
            records = [json.loads(line) for line in done.stdout.decode().splitlines()]
            assert [r["text"] for r in records] == ["ça é 猫", "的"]
    assert np.load(tmp_path / "Vektoren-é.npy").shape == (2, 12)
    done = subprocess.run(
        [sys.executable, "-m", "plmcore", "info", tmp_path / "keins-é"], capture_output=True, env=environment
    )
    assert done.returncode == 1 and b"Traceback" not in done.stderr
