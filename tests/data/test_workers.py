import itertools
import operator
import os
import sys
import time

import pytest
from plmcore.data import workers


def test_order_and_limit():
    taken = []

    def items():
        for k in itertools.count():
            taken.append(k)
            yield k / 100

    with workers.started(time.sleep, 2) as over:
        results = over(items())
        assert next(results) is None and len(taken) == 5
    with workers.started(operator.neg, 3) as over:
        assert list(over(range(20))) == [-k for k in range(20)]


def test_errors_keep_their_type():
    with workers.started(operator.itemgetter("key"), 1) as over:
        with pytest.raises(KeyError, match="key"):
            list(over([{}]))
        assert list(over([{"key": 3}])) == [3]  # and the worker lives


def test_exceptions_beyond_exception():
    """A panic of a Rust library is no Exception."""
    with workers.started(sys.exit, 1) as over:
        with pytest.raises(RuntimeError, match="SystemExit: panicked"):
            list(over(["panicked"]))
        with pytest.raises(RuntimeError, match="SystemExit: again"):
            list(over(["again"]))


def test_a_worker_that_ends():
    with (
        workers.started(os._exit, 2) as over,
        pytest.raises(RuntimeError, match="a worker process ended with code 3"),
    ):
        list(over([3, 3]))


def test_what_cannot_be_sent():
    with pytest.raises(
        TypeError, match="it cannot be sent to worker processes: .* One worker needs no sending"
    ):
        with workers.started(lambda x: x, 1):
            pass


class Elsewhere:
    """Pickled by the name of this module, which the workers cannot import."""

    def __call__(self, item):
        return item


def test_what_cannot_be_loaded(monkeypatch):
    module = type(sys)("not_on_the_path")
    module.Elsewhere = Elsewhere
    monkeypatch.setitem(sys.modules, "not_on_the_path", module)
    monkeypatch.setattr(Elsewhere, "__module__", "not_on_the_path")
    with workers.started(Elsewhere(), 1) as over:
        with pytest.raises(RuntimeError, match="cannot load what it was sent: ModuleNotFoundError"):
            list(over([1]))
