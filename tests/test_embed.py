"""The C++ side of the installed package: a CMake project of its own finds it, loads a traced Transformer
block and a whole model, and runs them without Python.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import docs_blocks
import plmcore
import pytest

PACKAGE = pathlib.Path(plmcore.__file__).parent
EMBED = pathlib.Path(__file__).parent / "embed"
CMAKE = shutil.which("cmake")
COMPILER = shutil.which(os.environ.get("CXX", "c++"))
needs_tools = pytest.mark.skipif(
    not (CMAKE and COMPILER and (PACKAGE / "cmake").is_dir()) and not os.environ.get("PLM_REQUIRE_EMBED"),
    reason="needs cmake, a C++ compiler and an installed plmcore",
)


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def build(package: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    run(CMAKE, "-S", EMBED, "-B", folder, f"-Dplmcore_ROOT={package / 'cmake'}", "-DCMAKE_BUILD_TYPE=Release")
    run(CMAKE, "--build", folder)
    return folder


@needs_tools
def test_programs_run_without_python(tmp_path):
    run(sys.executable, EMBED / "make_model.py", tmp_path)
    built, alone = build(PACKAGE, tmp_path / "build"), {"PATH": "/nonexistent"}
    out = run(built / "run_block", tmp_path / "block.plm", tmp_path / "expected.bin", env=alone)
    assert "input x [B, T, 96]" in out and out.count("largest difference") == 6
    out = run(built / "run_model", tmp_path / "gpt2.plm", tmp_path / "logits.bin", env=alone)
    assert out.count("largest difference") == 2
    out = run(built / "run_search", tmp_path / "gpt2.plm", tmp_path / "tokens.bin", env=alone)
    assert out.count("3 prompts, the same tokens") == 2
    assert "libpython" not in run("ldd", built / "run_model")


@needs_tools
def test_the_project_of_the_docs(tmp_path):
    """docs/cpp.md: its command, its two files and its commands for CMake, as a reader would paste them."""
    page = docs_blocks.blocks("docs/cpp.md")
    [main], [project] = ([b.text for b in page if b.language == kind] for kind in ("cpp", "cmake"))
    (tmp_path / "main.cpp").write_text(main)
    (tmp_path / "CMakeLists.txt").write_text(project)
    lm = plmcore.from_config(
        {"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2}, "causal-lm", vocab_size=40
    )
    lm.save(tmp_path / "gpt2")
    path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
    out = ""
    for block in (b.text for b in page if b.language == "sh"):
        out = run("bash", "-euo", "pipefail", "-c", block, cwd=tmp_path, env=os.environ | {"PATH": path})
    assert "logits [1, 4, 40]" in out


@needs_tools
def test_the_package_may_be_moved(tmp_path):
    """The CMake files hold no absolute path."""
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for part in ("cmake", "include", "lib"):
        shutil.copytree(PACKAGE / part, moved / part)
    for file in (moved / "cmake").iterdir():
        assert str(PACKAGE.parent) not in file.read_text() and "build" not in file.read_text(), file
    built = build(moved, tmp_path / "build")
    assert str(moved) in run("ldd", built / "run_block")
