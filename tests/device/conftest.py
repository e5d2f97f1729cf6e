"""The device "test": plugin.cpp, compiled once for a run of the tests."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess

import plmcore as plm
import pytest

HERE = pathlib.Path(__file__).parent
SOURCES = HERE.parents[1] / "cpp"


@pytest.fixture(scope="session", autouse=True)
def plugin(tmp_path_factory):
    """The path of the library, which PLMCORE_TEST_PLUGIN names."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None or not SOURCES.is_dir():
        pytest.skip("the device of tests needs a compiler and the sources")
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base  # which all workers share
    library = base / "libplmcore_test.so"
    with locked(base / "test-device.lock"):
        if not library.exists():
            compile_plugin(compiler, library)
    os.environ["PLMCORE_TEST_PLUGIN"] = str(library)
    return library


def compile_plugin(compiler, library):
    built = library.with_suffix(".part")
    package = pathlib.Path(plm.__file__).parent / "lib"
    options = "-std=c++20 -O1 -shared -fPIC -Wall -Wextra -Werror".split()
    folders = [f"-I{SOURCES}", f"-I{SOURCES / 'include'}", f"-L{package}", f"-Wl,-rpath,{package}"]
    subprocess.run(
        [compiler, *options, *folders, str(HERE / "plugin.cpp"), "-lplmcore", "-o", str(built)], check=True
    )
    built.rename(library)


@contextlib.contextmanager
def locked(path):
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield
