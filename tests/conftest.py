"""Puts this folder on the path: tests import the op harness as `optest`."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))


def pytest_configure(config):
    config.addinivalue_line("markers", "oracle: compares with torch, which only the tests need")
