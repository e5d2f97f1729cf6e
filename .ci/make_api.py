"""The API reference from docstrings and signatures: python .ci/make_api.py FOLDER writes one page per module.

Signatures are taken from the source text (of the extension: from its stubs), so that every Python version
writes the same pages.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pathlib
import re
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping

import plmcore

PACKAGE = pathlib.Path(plmcore.__file__).parent
MODULES = {  # module -> its page's first line
    "ops": "Every op as a function. Ops take tensors, return tensors and record gradients.",
    "nn": "Layers, and the class that models are made of.",
    "optim": "Optimisers, and averages of weights.",
    "losses": "Losses that are made of ops.",
    "models": "Model families: one module per family, with its config and its heads.",
    "tokenizers": "Tokenizers of all families behind one class.",
    "data": "Corpora, batches, readers and published tasks.",
    "objectives": "Pre-training objectives: from a corpus to batches.",
    "criteria": "What a training step computes: terms, and the state that goes to the next.",
    "train": "The training loop, run directories and checkpoints.",
    "tasks": "Fine-tuning, probing and adapters.",
    "evaluate": "Perplexity, zero-shot choices, metrics and contamination. The module itself can be called.",
    "compress": "Models with fewer bits.",
    "vectors": "Word vectors: opened, compared, and trained by word2vec and GloVe.",
    "safetensors": "Files of tensors.",
    "cuda": "The CUDA plug-in.",
}
GUIDES = {
    "plmcore": ("training", "fine-tuning", "generation"),
    "ops": ("adding-an-op",),
    "nn": ("adding-a-model",),
    "models": ("adding-a-model",),
    "tokenizers": ("tokenizers",),
    "data": ("data",),
    "objectives": ("objectives",),
    "criteria": ("objectives",),
    "train": ("training", "resuming"),
    "tasks": ("fine-tuning",),
    "evaluate": ("evaluation",),
    "compress": ("compression",),
    "vectors": ("vectors",),
    "cuda": ("cuda",),
    "optim": ("training",),
}


@functools.cache
def parsed(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def node_in(tree: ast.AST, qualname: str) -> ast.AST | None:
    for part in qualname.split("."):
        found = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == part]
        if not found:
            return None
        tree = next((n for n in found if doc(n)), found[0])  # of several overloads one is described
    return tree


def source_of(name: str, value: object) -> ast.AST | None:
    """The definition of a public name: in a stub of the extension, or in a module."""
    for stub in ("__init__", "ops", "safetensors", "text"):
        owner = getattr(value, "__module__", None) or ""
        own = getattr(value, "__name__", name)
        if owner.startswith("plmcore._core") and (
            node := node_in(parsed(PACKAGE / "_core" / f"{stub}.pyi"), own)
        ):
            return node
    value = inspect.unwrap(value) if callable(value) else value
    module = sys.modules.get(getattr(value, "__module__", ""), None)
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py") or not hasattr(value, "__qualname__"):
        return None
    return node_in(parsed(pathlib.Path(file)), getattr(value, "__qualname__", ""))


def signature(name: str, node: ast.FunctionDef, method: bool = False) -> str:
    args = ast.parse(f"def f({ast.unparse(node.args)}): ...").body[0].args  # a copy
    positional = args.posonlyargs + args.args
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    if method and not static and positional:
        (args.posonlyargs or args.args).pop(0)
    returns = (
        f" -> {ast.unparse(node.returns)}" if node.returns is not None and node.name != "__init__" else ""
    )
    line = f"{name}({ast.unparse(args)}){returns}"
    if len(line) <= 110:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in arguments(args)) + f"){returns}"


def arguments(args: ast.arguments) -> Iterator[str]:
    """Each argument as its own text."""
    positional = args.posonlyargs + args.args
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    for i, (a, d) in enumerate(zip(positional, defaults)):
        yield shown(a, d)
        if args.posonlyargs and i == len(args.posonlyargs) - 1:
            yield "/"
    if args.vararg or args.kwonlyargs:
        yield "*" + (ast.unparse(args.vararg) if args.vararg else "")
    for a, d in zip(args.kwonlyargs, args.kw_defaults):
        yield shown(a, d)
    if args.kwarg:
        yield "**" + ast.unparse(args.kwarg)


def shown(a: ast.arg, default: ast.expr | None) -> str:
    if default is None:
        return ast.unparse(a)
    return f"{ast.unparse(a)}{' = ' if a.annotation else '='}{ast.unparse(default)}"


def doc(node: ast.AST | None) -> str:
    text = ast.get_docstring(node) if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) else None
    return "" if not text else textwrap.dedent(text).strip()


def public_methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    kept = {"__call__", "__getitem__", "__len__", "__iter__"}
    found: dict[str, ast.FunctionDef] = {}
    for n in node.body:
        if isinstance(n, ast.FunctionDef) and (not n.name.startswith("_") or n.name in kept):
            if not any(ast.unparse(d).endswith((".setter", "overload")) for d in n.decorator_list):
                found.setdefault(n.name, n)
    return list(found.values())


def is_property(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(d).split(".")[-1] in ("property", "cached_property") for d in node.decorator_list)


def fenced(text: str) -> str:
    return f"```text\n{text}\n```\n"


ITEM = re.compile(r"(\w+(?:=\S+)?)(?:: | {2,})(.*)")


def prose(text: str) -> str:
    """A docstring as Markdown: indented paragraphs are code, lines `name: ...` and hanging ones a list."""
    out = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if block.startswith("    "):
            out.append(fenced(textwrap.dedent(block)).rstrip())
        elif len(lines) > 1 and all(line.startswith("    ") or ITEM.match(line) for line in lines):
            items = (f"  {x.strip()}" if x.startswith(" ") else ITEM.sub(r"- `\1`: \2", x) for x in lines)
            out.append(escaped("\n".join(items)))
        else:
            out.append(escaped(block))
    return "\n\n".join(out) + "\n"


def escaped(text: str) -> str:
    """Markdown without meaning for the characters that maths uses, outside of code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*|])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def inherits(value: object, method: str) -> bool:
    """Whether a base class of the package describes a method."""
    bases = inspect.getmro(value)[1:] if inspect.isclass(value) else ()
    return any(
        getattr(vars(b).get(method), "__doc__", None) for b in bases if b.__module__.startswith("plmcore")
    )


def entry(name: str, path: str, value: object, level: int, missing: list[str]) -> Iterator[str]:
    """The Markdown of one public name."""
    if isinstance(value, types.ModuleType):
        yield f"{'#' * level} {name}\n"
        yield prose(doc(parsed(pathlib.Path(value.__file__))))
        for other, inner in sorted(vars(value).items()):
            if (
                not other.startswith("_")
                and getattr(inner, "__module__", None) == value.__name__
                and callable(inner)
            ):
                yield from entry(other, f"{path}.{other}", inner, level + 1, missing)
        return
    node = source_of(name, value)
    yield f"{'#' * level} {name}\n"
    if isinstance(node, ast.FunctionDef):
        yield fenced(signature(path, node))
        if not doc(node):
            missing.append(path)
        yield prose(doc(node))
    elif isinstance(node, ast.ClassDef):
        made = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        bases = [ast.unparse(b) for b in node.bases]
        fields = [
            n for n in node.body if isinstance(n, ast.AnnAssign) and not ast.unparse(n.target).startswith("_")
        ]
        dataclass = any("dataclass" in ast.unparse(d) for d in node.decorator_list)
        if made:
            yield fenced(signature(path, made[0], method=True))
        elif dataclass:
            yield fenced(f"{path}(\n" + "".join(f"    {ast.unparse(f)},\n" for f in fields) + ")")
        else:
            yield fenced(f"class {path}" + (f"({', '.join(bases)})" if bases else ""))
        if not doc(node):
            missing.append(path)
        yield prose(doc(node))
        for method in public_methods(node):
            if not doc(method) and inherits(value, method.name):
                continue  # stands at the base class
            yield f"{'#' * (level + 1)} {name}.{method.name}\n"
            if not is_property(method):
                yield fenced(signature(method.name, method, method=True))
            elif method.returns is not None:
                yield fenced(f"{method.name}: {ast.unparse(method.returns)}")
            if not doc(method) and method.name not in ("__len__", "__iter__"):
                missing.append(f"{path}.{method.name}")
            yield prose(doc(method))
    elif isinstance(value, (Mapping, tuple, list)):
        yield prose(f"{sum(map(bool, value))} entries: {', '.join(f'`{k}`' for k in value if k)}.")
    elif isinstance(value, types.GenericAlias):
        yield fenced(f"{path} = {value}".replace("collections.abc.", ""))
    else:
        raise LookupError(f"{path}: no definition found for {value!r}")


def names_of(module: types.ModuleType) -> list[str]:
    if module.__name__ == "plmcore.ops" or module is plmcore.ops:
        functions = (
            n.name for n in parsed(PACKAGE / "_core" / "ops.pyi").body if isinstance(n, ast.FunctionDef)
        )
        return list(dict.fromkeys(functions))
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = (
        n
        for n, v in vars(module).items()
        if not n.startswith("_") and getattr(v, "__module__", None) == module.__name__
    )
    return [n for n in own if callable(getattr(module, n))]


def page(
    title: str, first: str, names: list[str], module: types.ModuleType, prefix: str, missing: list[str]
) -> str:
    key = title.removeprefix("plmcore.")
    lines = [f"# {title}\n", f"{first}\n"]
    if key in GUIDES:
        lines.append("Guide: " + ", ".join(f"[{g}](../{g}.md)" for g in GUIDES[key]) + ".\n")
    if key == "models":
        names = [n for n in names if not isinstance(getattr(module, n), types.ModuleType)]
        lines += families(module)
    for name in names:
        lines += entry(name, f"{prefix}.{name}", getattr(module, name), 2, missing)
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def families(models: types.ModuleType) -> Iterator[str]:
    """A table of the families; `models.bert.Bert(models.bert.BertConfig(...))` builds from scratch."""
    rows = ["| model_type | module | config | heads |", "| --- | --- | --- | --- |"]
    for kind, name in models.FAMILIES.items():
        family = importlib.import_module(f"plmcore.models.{name}")
        config = getattr(family, "CONFIGS", {}).get(kind, family.CONFIG).__name__
        heads = ", ".join(f"{head} (`{cls.__name__}`)" for head, cls in family.HEADS.items())
        rows.append(f"| `{kind}` | `plm.models.{name}` | `{config}` | {heads} |")
    yield "\n".join(rows) + "\n"


def main(folder: pathlib.Path) -> int:
    missing: list[str] = []
    folder.mkdir(parents=True, exist_ok=True)
    skipped = {*MODULES, "__version__", "Tensor"}
    top = sorted(
        (n for n in plmcore.__all__ if n not in skipped), key=lambda n: (not n[0].isupper(), n.lower())
    )
    pages = {
        "plmcore": page("plmcore", "The top level: `import plmcore as plm`.", top, plmcore, "plm", missing),
        "tensor": page(
            "Tensor",
            "An array with a dtype, a device and, on request, a gradient.",
            ["Tensor"],
            plmcore,
            "plm",
            missing,
        ),
    }
    for name, first in MODULES.items():
        module = getattr(plmcore, name)
        made = page(f"plmcore.{name}", first, names_of(module), module, f"plm.{name}", missing)
        if name == "evaluate":
            running = importlib.import_module("plmcore.evaluate.running")
            made += "\n" + "\n".join(entry("evaluate", "plm.evaluate", running.evaluate, 2, missing))
        pages[name] = made
    rows = [
        ("plmcore", "The top level: models, training, programs, errors."),
        ("tensor", "The class `plm.Tensor`."),
        *MODULES.items(),
    ]
    index = [
        "# API reference\n",
        "These pages are made from signatures and docstrings by `.ci/api`. Do not edit them.\n",
        "| page | content |",
        "| --- | --- |",
    ]
    shown = {"plmcore": "plmcore", "tensor": "plm.Tensor"}
    index += [f"| [{shown.get(name, 'plm.' + name)}]({name}.md) | {first} |" for name, first in rows]
    pages["README"] = "\n".join(index) + "\n"
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text.rstrip() + "\n", encoding="utf-8")
    if missing:
        print(f"{len(missing)} public names have no docstring:\n  " + "\n  ".join(missing))
    return len(missing) > 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
