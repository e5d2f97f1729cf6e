"""The device "test", compiled once for a run of the tests."""

import fcntl
import os

import device_plugin
import pytest


@pytest.fixture(scope="session", autouse=True)
def plugin(tmp_path_factory):
    """The path of the library, which PLMCORE_TEST_PLUGIN names."""
    if not device_plugin.POSSIBLE:
        pytest.skip("the device of tests needs a compiler and the sources")
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base  # which all workers share
    library = base / "libplmcore_test.so"
    with open(base / "test-device.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            device_plugin.compiled(library)
    os.environ["PLMCORE_TEST_PLUGIN"] = str(library)
    return library
