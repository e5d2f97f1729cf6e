"""Puts this folder on the path: tests import the op harness as `optest`."""

import os
import pathlib
import signal
import sys

if (
    "PYTEST_XDIST_WORKER" in os.environ
):  # a process per core: threads bring nothing at the sizes of most tests
    for name in ("OMP_NUM_THREADS", "PLMCORE_NUM_THREADS"):
        os.environ.setdefault(name, "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a job that a shell runs in the background. The programs that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(pathlib.Path(__file__).parent))


def pytest_configure(config):
    config.addinivalue_line("markers", "oracle: compares with torch, which only the tests need")
