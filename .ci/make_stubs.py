"""Type stubs of plmcore._core from the installed package, by nanobind's generator: python .ci/make_stubs.py FOLDER."""

import pathlib
import re
import subprocess
import sys
import tempfile

# Names that the bindings' type casters write into signatures.
IMPORTS = {
    "Callable": "from collections.abc import Callable",
    "Sequence": "from collections.abc import Sequence",
    "DTypeLike": "from numpy.typing import DTypeLike",
    "ArrayLike": "from numpy.typing import ArrayLike",
    "TensorLike": "from numpy.typing import ArrayLike as TensorLike",  # a Tensor has __array__ too
}


def finished(text: str, own: tuple[str, ...]) -> str:
    """Short names for the classes of the extension, and an import for every name that is used."""
    doc = re.match(r'\s*""".*?"""\n', text, re.S)
    head, body = (doc[0], text[doc.end() :]) if doc else ("", text)
    body = re.sub(r"^import plmcore\._core\n", "", body, flags=re.M).replace("plmcore._core.", "")
    body = re.sub(r"^from (collections\.abc|numpy\.typing) import .*\n", "", body, flags=re.M)
    body = re.sub(r'^def negate_backward\(.*?"""\n.*?"""\n\n', "", body, flags=re.M | re.S)  # in test builds only
    lines = [line for name, line in IMPORTS.items() if re.search(rf"\b{name}\b", body)]
    lines += [f"from plmcore._core import {name}" for name in own if re.search(rf"\b{name}\b", body)]
    return head + "\n".join(lines) + "\n\n" + body


folder = pathlib.Path(sys.argv[1])
with tempfile.TemporaryDirectory() as raw:
    # In a process of its own, away from the checkout, so that the installed package is what is described.
    subprocess.run(
        [sys.executable, "-m", "nanobind.stubgen", "-q", "-r", "-m", "plmcore._core", "-O", raw], check=True, cwd=raw
    )
    made = pathlib.Path(raw) / "_core"
    for stub in sorted(made.glob("*.pyi")):
        text, own = stub.read_text(), ("Dim", "Tensor")
        if stub.stem == "__init__":
            parts = "".join(f"from . import {s.stem} as {s.stem}\n" for s in sorted(made.glob("[!_]*.pyi")))
            text = re.sub(r"^from plmcore\._core import (\([^)]*\)|.*)\n", "", text, flags=re.M)
            text, own = re.sub(r"^(?=class |def )", parts + "\n", text, count=1, flags=re.M), ()
        (folder / stub.name).write_text(finished(text, own))
subprocess.run(["ruff", "check", "-q", "--fix", "--select", "I", *folder.iterdir()], check=True)
subprocess.run(["ruff", "format", "-q", "--config", "pyproject.toml", *folder.iterdir()], check=True)
