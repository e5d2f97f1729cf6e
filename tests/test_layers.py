"""The gate's check of layers, .ci/layers.py: it passes here, and names an edge that goes up with its line."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[1] / ".ci" / "layers.py"
pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="the tests run outside of the checkout")


@pytest.fixture(scope="module")
def layers():
    spec = importlib.util.spec_from_file_location("layers", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    spec.loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


# A checkout in which all is well.
FILES = {
    "cpp/core/device.h": "",
    "cpp/core/threads.cpp": '#include "plmcore/threads.h"\n#include <vector>\n',
    "cpp/include/plmcore/threads.h": "",
    "cpp/include/plmcore/ops.h": '#include "plmcore/threads.h"\n',
    "cpp/ops/op.h": '#include "core/device.h"\n',
    "cpp/ops/ops.def": "",
    "cpp/kernels/table.cpp": '#include "ops/ops.def"\n',
    "cpp/kernels/kernel.h": "",
    "cuda/device/kernel.h": '#include "core/device.h"\n#include <cuda_runtime.h>\n',
    "cuda/kernels/softmax.cu": '#include "device/kernel.h"\n#include "ops/ops.def"\n',
    "python/bindings/module.cpp": '#include "plmcore/ops.h"\n',
    "python/plmcore/__init__.py": "from plmcore.runtime import startup\n",
    "python/plmcore/_core/__init__.pyi": "",
    "python/plmcore/runtime/__init__.py": "",
    "python/plmcore/runtime/startup.py": "from plmcore._core import Tensor\n",
    "python/plmcore/nn/__init__.py": "from plmcore.nn.module import Module\n",
    "python/plmcore/nn/module.py": "class Module: ...\n",
    "python/plmcore/models/__init__.py": "",
    "python/plmcore/models/bert.py": "from plmcore import nn\n\n\nclass Bert(nn.Module): ...\n",
    "python/plmcore/models/generates.py": "from plmcore import nn\n\n\nclass Generates(nn.Module): ...\n",
    "python/plmcore/models/albert.py": """\
from plmcore.models import bert


class Albert(bert.Bert): ...


class Config: ...


def shared(x):
    return isinstance(x, bert.Bert)
""",
    "python/plmcore/train/__init__.py": "",
    "python/plmcore/train/loop.py": "from plmcore import nn\nfrom plmcore.models import albert\n",
    "python/plmcore/viz/__init__.py": "",
    "python/plmcore/viz/page.py": "",
    "python/plmcore/cli/__init__.py": "import plmcore\nfrom plmcore.train import loop\n",
    "python/plmcore/cli/progress.py": "",
}


def checkout(folder, **planted):
    for name, text in (FILES | planted).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_this_checkout(layers):
    found = layers.check(SCRIPT.parents[1], layers.KNOWN)
    assert not found, "\n".join(found)


def test_all_is_well(layers, tmp_path):
    assert layers.check(checkout(tmp_path), ()) == []


@pytest.mark.parametrize("file, text, line, said", [
    ("cpp/core/threads.cpp", '\n#include "ops/op.h"\n', 2, "cpp/core is not above cpp/ops"),
    ("cpp/core/threads.cpp", '#include <plmcore/ops.h>\n', 1, "cpp/core is not above cpp/ops"),
    ("cpp/include/plmcore/threads.h", '#include "plmcore/ops.h"\n', 1, "cpp/core is not above cpp/ops"),
    ("cpp/ops/op.h", '#include "kernels/kernel.h"\n', 1, "cpp/ops is not above cpp/kernels"),
    ("cpp/kernels/table.cpp", '#include "../../cuda/device/kernel.h"\n', 1, "cpp/kernels is not above cuda"),
    ("cpp/ops/op.h", '#include "plmcore/new.h"\n', 1, "includes plmcore/new.h, which has no layer"),
    ("cpp/new/x.cpp", '#include "core/device.h"\n', 1, "cpp/new/x.cpp has no layer"),
    ("python/plmcore/train/loop.py", "\n\nfrom plmcore.viz import page\n", 3,
     "imports plmcore.viz.page: plmcore.train is not above plmcore.viz"),
    ("python/plmcore/train/loop.py", "def f():\n    import plmcore.cli.progress as p\n", 2,
     "plmcore.train is not above plmcore.cli"),
    ("python/plmcore/train/loop.py", "from ..cli import progress\n", 1,
     "plmcore.train is not above plmcore.cli"),
    ("python/plmcore/train/loop.py", "import plmcore as plm\n", 1, "plmcore.train is not above plmcore"),
    ("python/plmcore/nn/module.py", 'import importlib\nimportlib.import_module("plmcore.models.bert")\n', 2,
     "plmcore.nn is not above plmcore.models"),
    ("python/plmcore/models/bert.py", "from plmcore.train import loop\n", 1,
     "plmcore.models is not above plmcore.train"),
    ("python/plmcore/loose.py", "from plmcore import nn\n", 1, "python/plmcore/loose.py has no layer"),
    ("python/plmcore/train/loop.py", "from plmcore.models import bert\n\nok = isinstance(1, bert.Bert)\n", 3,
     "tests for the class Bert of a model"),
    ("python/plmcore/train/loop.py",
     "from plmcore.models.albert import Albert as A\nBOTH = (int, A)\n\nok = issubclass(int, BOTH)\n", 4,
     "tests for the class Albert of a model"),
])  # fmt: skip
def test_planted(layers, tmp_path, file, text, line, said):
    found = layers.check(checkout(tmp_path, **{file: text}), ())
    assert len(found) == 1 and found[0].startswith(f"{file}:{line}: ") and said in found[0], found


@pytest.mark.parametrize("text", [
    "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from plmcore.cli import progress\n",
    "from plmcore.models import albert\n\nok = isinstance(1, albert.Config)\n",
    "from plmcore.models.generates import Generates\n\nok = isinstance(1, Generates)\n",
    "import numpy.core\nfrom plmcore._core import ops\n",
])  # fmt: skip
def test_allowed(layers, tmp_path, text):
    assert layers.check(checkout(tmp_path, **{"python/plmcore/train/loop.py": text}), ()) == []


def test_known_edges(layers, tmp_path):
    """A known edge passes, another one from the same file does not, and one that is gone must leave."""
    planted = {"cpp/core/threads.cpp": '#include "ops/op.h"\n'}
    known = (layers.Known("cpp/core/threads.cpp", "cpp/ops", "somebody"),)
    assert layers.check(checkout(tmp_path, **planted), known) == []
    (tmp_path / "cpp/core/threads.cpp").write_text('#include "ops/op.h"\n#include "kernels/kernel.h"\n')
    (found,) = layers.check(tmp_path, known)
    assert "cpp/core/threads.cpp:2" in found
    (tmp_path / "cpp/core/threads.cpp").write_text("")
    assert layers.check(tmp_path, known) == [
        "cpp/core/threads.cpp: the edge to cpp/ops is gone: take it out of KNOWN"
    ]


def test_the_command(tmp_path):
    folder = checkout(tmp_path, **{"cpp/core/threads.cpp": '#include "ops/op.h"\n'})
    done = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True)
    assert done.returncode == 1 and "cpp/core/threads.cpp:1: includes ops/op.h" in done.stdout
