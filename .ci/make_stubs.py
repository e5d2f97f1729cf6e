"""Type stubs of plmcore._core from the installed package, by nanobind's generator: python .ci/make_stubs.py
FOLDER.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from stub_types import PRELUDE, STUB_ONLY, retyped

# Names that stand in signatures.
IMPORTS = {
    "enum": "import enum",
    "Callable": "from collections.abc import Callable",
    "Iterator": "from collections.abc import Iterator",
    "Mapping": "from collections.abc import Mapping",
    "Sequence": "from collections.abc import Sequence",
    "EllipsisType": "from types import EllipsisType",
    **{
        name: f"from typing import {name}"
        for name in ("Any", "Literal", "Protocol", "Self", "SupportsIndex", "TypeAlias", "overload")
    },
    "CapsuleType": "from typing_extensions import CapsuleType",
    "numpy": "import numpy",
    **{name: f"from numpy.typing import {name}" for name in ("ArrayLike", "DTypeLike", "NDArray")},
}


def finished(text: str, module: str, parts: list[str]) -> str:
    """Short names for the classes of the extension, the types of stub_types.py, and an import for every name
    that is used.
    """
    text = re.sub(r"^(from|import) .*?(\([^)]*\))?\n", "", text, flags=re.M).replace("plmcore._core.", "")
    text = retyped(text, module)
    doc = re.match(r'\s*""".*?"""\n', text, re.S)
    head, body = (doc[0], text[doc.end() :]) if doc else ("", text)
    if not module:
        body = "".join(f"from . import {part} as {part}\n" for part in parts) + PRELUDE + body
    code = re.sub(r'""".*?"""', "", body, flags=re.S)
    lines = [line for name, line in IMPORTS.items() if re.search(rf"\b{name}\b", code)]
    if module:
        lines += [
            f"from plmcore._core import {name}" for name in STUB_ONLY if re.search(rf"\b{name}\b", code)
        ]
    return head + "\n".join(lines) + "\n" + body


folder = pathlib.Path(sys.argv[1])
with tempfile.TemporaryDirectory() as raw:
    # In a process of its own, away from the checkout, so that the installed package is what is described. -P:
    # names that end in _ too.
    subprocess.run(
        [sys.executable, "-m", "nanobind.stubgen", "-q", "-P", "-r", "-m", "plmcore._core", "-O", raw],
        check=True,
        cwd=raw,
    )
    made = pathlib.Path(raw) / "_core"
    parts = sorted(stub.stem for stub in made.glob("[!_]*.pyi"))
    for stub in sorted(made.glob("*.pyi")):
        module = "" if stub.stem == "__init__" else stub.stem
        (folder / stub.name).write_text(finished(stub.read_text(), module, parts))
subprocess.run(["ruff", "check", "-q", "--fix", "--select", "I", *folder.iterdir()], check=True)
subprocess.run(["ruff", "format", "-q", "--config", "pyproject.toml", *folder.iterdir()], check=True)
# Other classes compare to a bool with any object; a list says that it multiplies and compares with what a
# Tensor can be.
COMMENTS = {r"(?:eq|ne)__\(": "override", r"(?:rmul|lt|le|gt|ge)__\(self, other: Operand": "misc"}
for stub in folder.iterdir():
    text = stub.read_text()
    for which, code in COMMENTS.items():
        text = re.sub(rf"(def __{which}.*: \.\.\.)$", rf"\1  # type: ignore[{code}]", text, flags=re.M)
    stub.write_text(text)
