"""What the signatures of the extension cannot say: precise types for its stubs, by name.

Arguments, their order and their defaults stay those of the bindings; an entry that no longer fits them is an
error.
"""

import ast
import copy

# Written into _core/__init__.pyi, for checkers only. TensorLike: what becomes a Tensor where one is expected;
# Operand: the other side of an operator.
PRELUDE = """
__version__: str
Index: TypeAlias = SupportsIndex | slice | EllipsisType | Tensor | NDArray[Any] | list[Any] | None
TensorLike: TypeAlias = Tensor | NDArray[Any] | numpy.number[Any] | numpy.bool_ | list[Any]
Operand: TypeAlias = TensorLike | float | Dim

class SupportsDLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
"""
STUB_ONLY = ("Dim", "Tensor", "TensorLike")  # names that the other stubs take from there

SIZES = "tuple[int | Dim, ...]"
SPECS = "list[tuple[str, tuple[int | Dim, ...], str]]"
TWO, THREE = "tuple[Tensor, Tensor]", "tuple[Tensor, Tensor, Tensor]"
OPERATORS = "add sub mul truediv pow matmul and or".split()
OPERATORS += [f"r{name}" for name in OPERATORS] + "lt le gt ge".split()

# function -> {argument or "return": type}
TYPES: dict[str, dict[str, str]] = {
    "Tensor.__init__": {"data": "Tensor | ArrayLike", "dtype": "DTypeLike | None"},
    "Tensor.grad": {"return": "Tensor | None", "value": "TensorLike | None"},
    "Tensor.rows": {"return": "Tensor | None"},
    "Tensor.requires_grad_": {"return": "Self"},
    "Tensor.__int__": {"return": "int"},
    "Tensor.__index__": {"return": "int"},
    "Tensor.__reduce__": {"return": "tuple[Any, ...]"},
    "Tensor.__getitem__": {"key": "Index | tuple[Index, ...]"},
    "Tensor.__iter__": {"return": "Iterator[Tensor]"},
    "Tensor.squeeze": {"axis": "int | None"},
    "Tensor.to": {"target": "DTypeLike"},
    "Tensor.max": {"axis": "int | None"},
    "Tensor.min": {"axis": "int | None"},
    "Tensor.argmax": {"axis": "int | None"},
    "Tensor.numpy": {"return": "NDArray[Any]"},
    "Tensor.__array__": {"dtype": "DTypeLike | None", "copy": "bool | None", "return": "NDArray[Any]"},
    "Tensor.tolist": {"return": "Any"},
    "Tensor.item": {"return": "float"},
    "Tensor.__dlpack__": {
        "max_version": "tuple[int, int] | None",
        "dl_device": "tuple[int, int] | None",
        "copy": "bool | None",
        "return": "CapsuleType",
    },
    "Tensor.__dlpack_device__": {"return": "tuple[int, int]"},
    **{f"Tensor.__{name}__": {"other": "Operand"} for name in OPERATORS},
    "from_numpy": {"array": "NDArray[Any]"},
    "from_dlpack": {"array": "SupportsDLPack | CapsuleType"},
    "memory_stats": {"return": "dict[str, int]"},
    "synchronize": {"device": "str"},
    "grad": {"return": "tuple[Tensor | None, ...]"},
    "recompute": {"body": "Callable[[tuple[Tensor, ...]], Sequence[Tensor]]"},
    "Program.__init__": {"args": "Any", "kwargs": "Any"},
    # The program says how many outputs it has.
    "Program.__call__": {"kwargs": "TensorLike | float", "return": "Any"},
    "Program.inputs": {"return": SPECS},
    "Program.outputs": {"return": SPECS},
    "Tracer.input": {"dtype": "DTypeLike"},
    "SearchOptions.set_allowed": {"allowed": "Callable[[int, list[int]], Sequence[int]]"},
    "SearchOptions.set_stop": {"stop": "Callable[[int, list[int]], bool]"},
    "Search.live": {"return": "Tensor | None"},
    "Search.parents": {"return": "Tensor | None"},
    "Search.tokens": {"return": "Tensor | None"},
    "ParamState.m": {"return": "Tensor | None"},
    "ParamState.v": {"return": "Tensor | None"},
    "step_all": {"states": "list[ParamState]", "options": "dict[str, float]"},
    "gradients": {"states": "list[ParamState]"},
    "zero_grad": {"states": "list[ParamState]"},
    "ops.topk": {"return": TWO},
    "ops.residual_layer_norm": {"return": TWO},
    "ops.pack_rows": {"return": TWO},
    "ops.select_labelled": {"return": THREE},
    "ops.beam_step": {"return": THREE},
    "ops.lstm": {"return": THREE},
    "ops.gru": {"return": TWO},
    "ops.rnn": {"return": TWO},
    "ops.attention": {"return": f"Tensor | {TWO}"},
}
LEFT_OUT = {
    "Tensor.__setitem__",  # it only says that there is none
    "negate_backward",  # in test builds only, as the next two
    "perturb_kernel",
    "perturbed",
}
# Ops that write into an argument: a copy made of a list would be lost.
IN_PLACE = ("_step", "cache_append", "attend_cached")
ONE_OR_MORE = "int | Dim | Sequence[int | Dim]"


def retyped(text: str, module: str) -> str:
    """The stub of a module, "" or "ops", with these types."""
    tree = ast.parse(text)
    used: set[str] = set()
    for scope, prefix in [
        (tree, f"{module}." if module else ""),
        *((c, f"{c.name}.") for c in _classes(tree)),
    ]:
        body: list[ast.stmt] = []
        for item in scope.body:
            if isinstance(item, ast.FunctionDef):
                name = prefix + item.name
                if name in LEFT_OUT:
                    continue
                _retype(
                    item, TYPES.get(name, {}), name, used, ops=module == "ops" and not name.endswith(IN_PLACE)
                )
                body += _by_weights(item) if name == "ops.attention" else [item]
            else:
                body.append(item)
        scope.body = body
    here = (
        {name for name in TYPES if name.startswith("ops.") == (module == "ops")}
        if module in ("", "ops")
        else set()
    )
    if missing := sorted(here - used):
        raise SystemExit(f"stub_types.py: the bindings have no {', '.join(missing)} with these arguments")
    return ast.unparse(tree) + "\n"


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def _retype(function: ast.FunctionDef, types: dict[str, str], name: str, used: set[str], ops: bool) -> None:
    args = function.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *(a for a in (args.vararg, args.kwarg) if a)]
    for arg in every:
        if arg.annotation is not None or arg.arg in types:
            was = ast.unparse(arg.annotation) if arg.annotation is not None else ""
            arg.annotation = _type(types.get(arg.arg) or _argument(arg.arg, was, ops))
    returned = ast.unparse(function.returns) if function.returns else "None"
    if returned != "None":  # a setter has the name of its property
        function.returns = _type(types.get("return") or _returned(returned))
    if types.keys() & {"return", *(a.arg for a in every)}:
        used.add(name)


def _type(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _argument(name: str, was: str, ops: bool) -> str:
    was = was.replace("| None | None", "| None").replace("numpy.ndarray", "NDArray[Any]")
    if was == "object | None" and name == "device":
        return "str | None"
    if was == "Sequence[int | Dim]" and name == "shape":
        return ONE_OR_MORE
    return was.replace("Tensor", "TensorLike") if ops else was


def _returned(was: str) -> str:
    return {"Sequence[Tensor | None]": "tuple[Tensor, ...]", "Sequence[int | Dim]": SIZES}.get(was, was)


def _by_weights(attention: ast.FunctionDef) -> list[ast.stmt]:
    """Whether weights=True was said decides what comes back."""
    found: list[ast.stmt] = []
    for kind, result in (("Literal[False]", "Tensor"), ("Literal[True]", TWO), ("bool", f"Tensor | {TWO}")):
        form = copy.deepcopy(attention)
        form.decorator_list, form.returns = [ast.Name("overload")], _type(result)
        weights = form.args.args[-1]
        weights.annotation = _type(kind)
        if kind != "Literal[False]":
            form.args.args.pop()
            form.args.defaults.pop()
            form.args.kwonlyargs, form.args.kw_defaults = [weights], [None]
            form.body = [ast.Expr(ast.Constant(...))]
        found.append(form)
    return found
