import signal
import threading

import pytest
from plmcore.train.interrupts import Interrupts, deferred


def test_the_first_is_kept_the_second_stops_and_others_are_nothing_new():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.number == signal.SIGTERM
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
    assert signal.getsignal(signal.SIGINT) is before


def test_deferred_signals_come_at_the_end_in_their_order():
    reached = []
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            with deferred():
                signal.raise_signal(signal.SIGTERM)
                signal.raise_signal(signal.SIGINT)
                reached.append(interrupts.number)
    assert reached == [None] and interrupts.number == signal.SIGTERM


def test_other_threads_have_no_signals():
    before, errors = signal.getsignal(signal.SIGINT), []

    def body():
        try:
            with Interrupts(), deferred():
                assert signal.getsignal(signal.SIGINT) is before
        except BaseException as e:
            errors.append(e)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert not errors
