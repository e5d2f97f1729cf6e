import pathlib
import signal

import pytest
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
    assert status == 128 + number and said == f"\nstopped at once. To go on from the last checkpoint: {AGAIN}\n"
    assert signal.getsignal(signal.SIGTERM) is before[1]


@pytest.mark.parametrize("error, status, said", [
    (Interrupted(7, signal.SIGTERM), 143, f"\nstopped by SIGTERM after step 7; everything is saved. To go on: {AGAIN}\n"),
    (NonFiniteError("step 3: loss nan"), 1, "plmcore pretrain: step 3: loss nan\n"),
    (OSError(28, "No space left on device", "x"), 1, "plmcore pretrain: [Errno 28] No space left on device: 'x'\n"),
])  # fmt: skip
def test_errors_are_one_line(capsys, error, status, said):
    def work():
        raise error

    assert ending(capsys, work) == (status, said)


def test_done(capsys):
    assert ending(capsys, lambda: None) == (0, "")
