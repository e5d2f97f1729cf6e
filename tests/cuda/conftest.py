"""Tests of device "cuda". They need the emulated plug-in:

PLMCORE_CUDA_PLUGIN=build/.../libplmcore_cuda_emu.so.
"""

import os
import pathlib
import zlib

import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(items):
    skip = pytest.mark.skip(reason="PLMCORE_CUDA_PLUGIN does not name the emulated plug-in")
    for item in items:
        if HERE in item.path.parents and "cuda_nvcc" not in item.keywords:
            item.add_marker(pytest.mark.cuda_emu)
            if not os.environ.get("PLMCORE_CUDA_PLUGIN"):
                item.add_marker(skip)


@pytest.fixture(params=["forward", "reverse", "random"])
def order(request, monkeypatch):
    """The order in which the emulator runs threads and blocks."""
    monkeypatch.setenv("PLMCORE_EMU_ORDER", request.param)
    return request.param


@pytest.fixture(autouse=True)
def seeded(request):
    """A test draws the same numbers whichever tests ran before it in its process."""
    generator = getattr(request.module, "RNG", None)
    if generator is not None:
        own = np.random.default_rng(zlib.crc32(request.node.name.encode()))
        generator.bit_generator.state = own.bit_generator.state
