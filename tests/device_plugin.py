"""Compiles the device "test" (tests/device/plugin.cpp)."""

import os
import pathlib
import shutil
import subprocess

import plmcore as plm

SOURCE = pathlib.Path(__file__).parent / "device" / "plugin.cpp"
CPP = SOURCE.parents[2] / "cpp"
COMPILER = shutil.which(os.environ.get("CXX", "g++"))
POSSIBLE = COMPILER is not None and CPP.is_dir()


def compiled(library, *options):
    """The library, written whole or not at all."""
    package = pathlib.Path(plm.__file__).parent / "lib"
    part = library.with_suffix(".part")
    fixed = "-std=c++20 -O1 -shared -fPIC -Wall -Wextra -Werror".split()
    folders = [f"-I{CPP}", f"-I{CPP / 'include'}", f"-L{package}", f"-Wl,-rpath,{package}"]
    subprocess.run(
        [COMPILER, *fixed, *options, *folders, str(SOURCE), "-lplmcore", "-o", str(part)], check=True
    )
    return part.rename(library)
