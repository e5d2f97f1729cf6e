import io
import subprocess
import sys
import threading

import pytest
from plmcore.runtime.progress import Progress
from plmcore.train import RunDirectory


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A function: pytest gives a test its own streams after the fixtures are made."""

    def opened():
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return opened


def test_position_note_rate_and_time_left(terminal):
    screen = terminal()
    with Progress(30, "step", first=9) as bar:
        bar.start_t -= 2  # seconds ago
        bar.last_print_t -= 2
        bar.reach(10, note="loss 1.0")
    shown = screen.getvalue()
    assert "| 10/30 [00:02<00:4" in shown and "s/step, loss 1.0]" in shown
    assert "\n" not in shown and shown.endswith("\r")


def test_a_total_that_is_known_late_and_none(terminal):
    screen = terminal()
    with Progress(None, "B") as bar:
        bar.start_t -= 2
        bar.last_print_t -= 2
        bar.reach(1_200_000)
        assert "1.20MB [00:02, " in screen.getvalue() and "<" not in screen.getvalue()
        bar.last_print_t -= 2
        bar.reach(2_400_000, 2_400_000)
        assert "2.40M/2.40M [00:02<00:00" in screen.getvalue()


def test_nothing_without_a_terminal_or_if_quiet(terminal, monkeypatch):
    screen = terminal()
    with Progress(3, "step", quiet=True) as bar:
        bar.reach(3)
    assert screen.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress(3, "step") as bar:
        bar.reach(3, note="loss 1.0")
    assert sys.stderr.getvalue() == ""


def test_what_a_run_says_stands_on_a_line_of_its_own(terminal, tmp_path, monkeypatch):
    screen = terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    with RunDirectory(tmp_path) as run:
        run.show(1, 3, {"tokens": 10, "seconds": 0.1, "loss": 2.0})
        run.say("hello")
    assert "\rhello\n" in screen.getvalue()


def test_no_thread_and_no_lock_of_processes(terminal):
    terminal()
    before = threading.active_count()
    with Progress(3, "step") as bar:
        bar.reach(1)
        assert threading.active_count() == before
    code = (
        "import sys; from plmcore.runtime.progress import Progress; Progress(2, 'step').close(); "
        "print('multiprocessing.synchronize' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
