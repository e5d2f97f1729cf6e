"""What `import plmcore` brings in."""

import ast
import inspect
import subprocess
import sys

import pytest


def test_numpy_and_nothing_heavier():
    code = "import sys; import plmcore; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if not name.startswith(("_", "sitecustomize"))}
    assert loaded - sys.stdlib_module_names <= {"numpy", "plmcore"}


def test_every_name_is_there():
    import plmcore as plm

    assert len(plm.__all__) == len(set(plm.__all__)) and dir(plm) == sorted(plm.__all__)
    for name in plm.__all__:
        assert getattr(plm, name) is not None, name


def typed(module: str) -> tuple[dict[str, str], bool]:
    """What the TYPE_CHECKING block of a module defines, with the module that it comes from; whether
    __getattr__ is hidden from checkers.
    """
    tree = ast.parse(inspect.getsource(__import__(module, fromlist=["_"])))
    found: dict[str, str] = {}
    for block in tree.body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for node in block.body:
                if isinstance(node, ast.ImportFrom):
                    found |= {alias.asname or alias.name: node.module for alias in node.names}
                elif isinstance(node, ast.AnnAssign):
                    found[ast.unparse(node.target)] = ast.unparse(node.annotation)
    hidden = not any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
    return found, hidden


@pytest.mark.parametrize("module", ["plmcore", "plmcore.evaluate", "plmcore.objectives"])
def test_names_of_first_use_are_typed(module):
    """For editors and type checkers, each in the module that it is taken from at run time."""
    package = __import__(module, fromlist=["_"])
    source = ast.parse(inspect.getsource(package))
    literal = next(
        n.value for n in source.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"
    )
    # As a checker reads it.
    assert isinstance(literal, ast.List) and package.__all__ == ast.literal_eval(literal)
    blocks, hidden = typed(module)
    assert hidden
    eager = {a.asname or a.name for n in source.body if isinstance(n, ast.ImportFrom) for a in n.names}
    eager |= {n.name for n in source.body if isinstance(n, ast.FunctionDef)}
    eager |= {ast.unparse(t) for n in source.body if isinstance(n, ast.Assign) for t in n.targets}
    late = set(package.__all__) - eager
    assert late and late <= blocks.keys()
    homes = getattr(package, "_HOMES", None) or package._MODULES
    for name in late:
        if name in homes:
            assert blocks[name] == f"{module}.{homes[name]}", name
        else:
            assert blocks[name] in (module, "_Evaluate"), name  # a module of the package


def test_evaluate_is_typed_as_a_function_with_attributes():
    from plmcore import evaluate

    (kind,) = (n for n in ast.parse(inspect.getsource(evaluate)).body if isinstance(n, ast.ClassDef))
    block = next(n for n in kind.body if isinstance(n, ast.If))
    found = {ast.unparse(n.targets[0]): ast.unparse(n.value) for n in block.body if isinstance(n, ast.Assign)}
    assert found.pop("__call__") == "staticmethod(running.evaluate)"
    assert {n: v.removeprefix("staticmethod(").rstrip(")") for n, v in found.items()} == {
        name: f"{home}.{name}" for name, home in evaluate._HOMES.items()
    }


def test_families_are_typed():
    from plmcore import models

    found, hidden = typed("plmcore.models")
    assert hidden and {n for n, home in found.items() if home == "plmcore.models"} == set(
        models.FAMILIES.values()
    )
