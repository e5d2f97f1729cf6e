import pathlib
import signal

import pytest
from plmcore import cli
from plmcore.cli import endings
from plmcore.train import Interrupted, NonFiniteError

AGAIN = "plmcore pretrain --out 'a run' --resume"


def ending(capsys, work):
    status = endings.run("pretrain", pathlib.Path("a run"), work)
    return status, capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_first_step(capsys, number):
    before = signal.signal(signal.SIGINT, signal.default_int_handler), signal.getsignal(signal.SIGTERM)
    try:
        status, said = ending(capsys, lambda: signal.raise_signal(number))
    finally:
        signal.signal(signal.SIGINT, before[0])
    assert (
        status == 128 + number
        and said == f"\nstopped at once. To continue from the last checkpoint: {AGAIN}\n"
    )
    assert signal.getsignal(signal.SIGTERM) is before[1]


@pytest.mark.parametrize(
    "error, status, said",
    [
        (
            Interrupted(7, signal.SIGTERM),
            143,
            f"\nstopped by SIGTERM after step 7; everything is saved. To continue: {AGAIN}\n",
        ),
        (NonFiniteError("step 3: loss nan"), 1, "plmcore pretrain: step 3: loss nan\n"),
        (
            OSError(28, "No space left on device", "x"),
            1,
            "plmcore pretrain: [Errno 28] No space left on device: 'x'\n",
        ),
    ],
)
def test_errors_are_one_line(capsys, error, status, said):
    def work():
        raise error

    assert ending(capsys, work) == (status, said)


def test_done(capsys):
    assert ending(capsys, lambda: None) == (0, "")


def test_a_run_that_diverges_fails(tmp_path, capsys):
    (tmp_path / "text.txt").write_text(
        "".join(f"{a} and {b} are {a + b}.\n" for a in range(30) for b in range(30))
    )
    small = [
        "data.vocab=300",
        "data.length=16",
        "model.n_positions=16",
        "model.n_layer=1",
        "model.n_embd=16",
        "model.n_head=2",
        "train.evaluate_batches=1",
    ]
    wild = ["optim.lr=100", "optim.weight_decay=0", "schedule.warmup=0"]
    options = [word for setting in small + wild for word in ("--set", setting)]
    run = [
        "pretrain",
        "gpt2",
        "--text",
        str(tmp_path / "text.txt"),
        "--steps",
        "12",
        "--out",
        str(tmp_path / "run"),
    ]
    assert cli.main([*run, *options]) == 1
    assert "plmcore pretrain: the run has diverged: its first loss was" in capsys.readouterr().err
    assert not (tmp_path / "run" / "final").exists() and (tmp_path / "run" / "report.html").exists()
    assert "e+304" not in (tmp_path / "run" / "metrics.jsonl").read_text()
