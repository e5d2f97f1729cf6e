#!/usr/bin/env python3
"""Reads the include and import graph and fails on an edge that goes up, with its file and line.

    python .ci/layers.py [CHECKOUT]

It also fails on a class test on a model outside of models/: what differs between families is asked of their
declarations. See docs/adr/0023-layers.md.
"""

import ast
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

# Top first. A room knows the rooms of its own layer and of those below; `|` parts rooms of a layer that do
# not know each other. ops.def is a list of names, which every layer may ask for.
CPP = """
python/bindings
cpp/embed
cpp/generate
cpp/program | cpp/vectors
cpp/cpu cpp/kernels cpp/blas | cuda
cpp/ops cpp/autograd
cpp/io | cpp/text
cpp/core cpp/ops/ops.def
"""
HEADERS = {  # of cpp/include/plmcore
    "cpp/embed": "plmcore session text",
    "cpp/generate": "generate",
    "cpp/program": "card options program",
    "cpp/ops": "ops optim",
    "cpp/io": "safetensors",
    "cpp/core": "dim dtype error random small_vector tensor threads",
}
PYTHON = """
plmcore plmcore.__main__ plmcore.cli
plmcore.viz
plmcore.train plmcore.tasks plmcore.data plmcore.objectives plmcore.tokenizers plmcore.evaluate \
plmcore.compress plmcore.generate plmcore.language_model plmcore.program plmcore.vectors
plmcore.criteria
plmcore.models
plmcore.nn plmcore.losses plmcore.optim
plmcore.formats | plmcore.cuda
plmcore.files plmcore.runtime
plmcore._core
"""

# classes of models/ that say what a model can do, not which one it is
PROTOCOLS = ("CrossView", "Fills", "Generates")


class Known(NamedTuple):
    """An upward edge, or a class test, that is still there; `owner` removes it, and then this line."""

    file: str
    target: str
    owner: str


KNOWN: tuple[Known, ...] = ()


class Fault(NamedTuple):
    file: str
    line: int
    target: str  # the room, or the class
    what: str


class Layers:
    def __init__(self, table: str):
        self.place: dict[str, tuple[int, int]] = {}
        for level, line in enumerate(table.strip().splitlines()):
            for column, rooms in enumerate(line.split("|")):
                self.place |= {room: (level, column) for room in rooms.split()}

    def room(self, name: str, separator: str) -> str | None:
        """The room of a file or a module: the longest that its name begins with."""
        while name and name not in self.place:
            name = name.rpartition(separator)[0]
        return name or None

    def may(self, one: str, other: str) -> bool:
        (level, column), (below, beside) = self.place[one], self.place[other]
        return below > level or (below, beside) == (level, column)

    def fault(self, file: str, line: int, one: str | None, other: str | None, what: str) -> Iterator[Fault]:
        if one is None:
            yield Fault(file, 1, "", f"{file} has no layer: add its folder to the table of .ci/layers.py")
        elif other is None:
            yield Fault(file, line, "", f"{what}, which has no layer")
        elif not self.may(one, other):
            yield Fault(file, line, other, f"{what}: {one} is not above {other}")


# ---- C++ ----


def includes(root: pathlib.Path) -> Iterator[Fault]:
    layers = Layers(CPP)
    public = {f"plmcore/{name}.h": room for room, names in HEADERS.items() for name in names.split()}
    for path in sorted(p for top in ("cpp", "cuda", "python/bindings") for p in (root / top).rglob("*")):
        if path.suffix not in (".h", ".cpp", ".cu", ".cuh", ".def"):
            continue
        file = path.relative_to(root).as_posix()
        inside = file.removeprefix("cpp/include/")
        one = public.get(inside) if inside != file else layers.room(file, "/")
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not (found := re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)):
                continue
            if (other := _included(root, path, found[1], public, layers)) is not None:
                yield from layers.fault(file, number, one, other or None, f"includes {found[1]}")


def _included(
    root: pathlib.Path, path: pathlib.Path, name: str, public: dict[str, str], layers: Layers
) -> str | None:
    """The room of an included file; "" where it has none, None where it is none of ours."""
    if name.startswith("plmcore/"):
        return public.get(name, "")
    own = path.relative_to(root).parts[0]
    for folder in (root / own, root / "cpp", root / "python", path.parent):
        if (found := (folder / name).resolve()).is_relative_to(root.resolve()) and found.is_file():
            return layers.room(found.relative_to(root.resolve()).as_posix(), "/") or ""
    return None


# ---- Python ----


class Module:
    """A source file: its name, its tree, and what its names stand for ("nn" -> "plmcore.nn")."""

    def __init__(self, root: pathlib.Path, path: pathlib.Path):
        self.file = path.relative_to(root).as_posix()
        parts = path.relative_to(root / "python").with_suffix("").parts
        self.package = path.name == "__init__.py"
        self.name = ".".join(parts[:-1] if self.package else parts)
        self.tree = ast.parse(path.read_text())
        self.meaning: dict[str, str] = {}
        typing_only = {
            id(inner)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for part in node.body
            for inner in ast.walk(part)
        }
        self.imported: list[tuple[int, str]] = []  # where, and what, but for what only type checkers import
        for node in ast.walk(self.tree):
            names = list(self._imports(node))
            if id(node) not in typing_only:
                self.imported += [(node.lineno, name) for name in names]

    def _imports(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.meaning[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = self.name.split(".")
                above = here[: len(here) - node.level + self.package]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                self.meaning[alias.asname or alias.name] = f"{base}.{alias.name}"
                yield f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            if node.args and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)

    def dotted(self, node: ast.expr) -> str:
        """What `seq2seq.Seq2SeqLM` is called in full."""
        first, _, rest = ast.unparse(node).partition(".")
        full = self.meaning.get(first, f"{self.name}.{first}")
        return f"{full}.{rest}" if rest else full


def modules(root: pathlib.Path) -> list[Module]:
    return [Module(root, path) for path in sorted((root / "python/plmcore").rglob("*.py"))]


def imports(sources: list[Module]) -> Iterator[Fault]:
    layers, names = Layers(PYTHON), {module.name for module in sources}
    for module in sources:
        for line, name in module.imported:
            if name.split(".")[0] != "plmcore":
                continue
            if name not in names and not name.startswith("plmcore._core"):
                name = name.rpartition(".")[0]  # a name inside of a module
            one, other = layers.room(module.name, "."), layers.room(name, ".")
            if other == "plmcore" and name != "plmcore":
                other = None
            if one == "plmcore" and module.name != "plmcore":
                one = None
            yield from layers.fault(module.file, line, one, other, f"imports {name}")


def class_tests(sources: list[Module]) -> Iterator[Fault]:
    """isinstance, issubclass and `case C():` outside of models/ on a class of models/ that is a Module."""
    bases = {
        f"{module.name}.{node.name}": [module.dotted(base) for base in node.bases]
        for module in sources
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }

    def is_module(name: str) -> bool:
        return name in ("plmcore.nn.Module", "plmcore.nn.module.Module") or any(
            map(is_module, bases.get(name, ()))
        )

    models = {name for name in bases if name.startswith("plmcore.models.") and is_module(name)}
    models = {name for name in models if name.rpartition(".")[2] not in PROTOCOLS}
    for module in sources:
        if module.name.startswith("plmcore.models"):
            continue
        constants = {
            target.id: node.value
            for node in module.tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(module.tree):
            for tested in _tested(node):
                tested = constants.get(tested.id, tested) if isinstance(tested, ast.Name) else tested
                for part in ast.walk(tested):
                    if isinstance(part, ast.Name | ast.Attribute) and module.dotted(part) in models:
                        name = module.dotted(part).rpartition(".")[2]
                        yield Fault(module.file, node.lineno, name, f"tests for the class {name} of a model")


def _tested(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
        yield from node.args[1:2]
    elif isinstance(node, ast.MatchClass):
        yield node.cls


def check(root: pathlib.Path, known: tuple[Known, ...]) -> list[str]:
    """What is wrong, a line each: faults that are not known, and known ones that are gone."""
    sources = modules(root)
    faults = [*includes(root), *imports(sources), *class_tests(sources)]
    listed = {(k.file, k.target) for k in known}
    found = {(f.file, f.target) for f in faults}
    new = list(
        dict.fromkeys(f"{f.file}:{f.line}: {f.what}" for f in faults if (f.file, f.target) not in listed)
    )
    gone = [k for k in known if (k.file, k.target) not in found]
    return new + [f"{k.file}: the edge to {k.target} is gone: take it out of KNOWN" for k in gone]


if __name__ == "__main__":
    checkout = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    wrong = check(checkout, KNOWN)
    print("\n".join(wrong) if wrong else f"no edge goes up{f' but {len(KNOWN)} known ones' if KNOWN else ''}")
    sys.exit(bool(wrong))
