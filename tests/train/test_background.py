import signal
import threading
import time

import pytest
from plmcore.train.background import Background
from plmcore.train.interrupts import Interrupts


def test_what_a_job_raises_comes_out_of_the_next_call():
    background = Background()
    background.run(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        background.wait()
    background.wait()


def test_a_signal_while_a_thread_is_started_comes_after_it(monkeypatch):
    """Before, the thread that was not started could not be waited for: RuntimeError in place of the stop."""
    start = threading.Thread.start

    def interrupted(thread):
        signal.raise_signal(signal.SIGINT)
        start(thread)

    background, done = Background(), []
    with Interrupts():
        signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            background.run(lambda: done.append(1))
        background.wait()
    assert done == [1]


def test_a_signal_while_it_waits_comes_when_the_job_is_done():
    background, done = Background(), []

    def job():
        time.sleep(0.2)  # until it is waited for
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.2)
        done.append(1)

    with Interrupts():
        signal.raise_signal(signal.SIGTERM)
        background.run(job)
        with pytest.raises(KeyboardInterrupt):
            background.wait()
        assert done == [1]
