"""Arguments of a wrong kind: every function that users can reach answers with a typed error, never with a
binding's message.
"""

import inspect
import pathlib
import shutil
import signal

import numpy as np
import plmcore as plm
import pytest
from plmcore import _core, ops
from plmcore.runtime import kinds
from plmcore.tokenizers.guard import TokenizerError

TYPED = (
    plm.ArgumentError,
    plm.ShapeError,
    plm.IndexRangeError,
    plm.DTypeError,
    plm.DeviceError,
    plm.GraphError,
    plm.TraceError,
    plm.FormatError,
    plm.OutOfMemoryError,
    OSError,
    TokenizerError,
)
WRONG = [
    None,
    "text",
    b"bytes",
    1.5,
    -1,
    2**70,
    True,
    object(),
    [],
    ["text"],
    {"a": 1},
    lambda: None,
    np.zeros(2, complex),
]
X = plm.Tensor(np.arange(6.0).reshape(2, 3))


def test_the_argument_is_named():
    cases = [
        (lambda: ops.add(X), "add: the argument b is missing: add(a, b)"),
        (lambda: ops.add(X, "three"), "add: b must be a tensor or an array, got 'three' (str)"),
        (lambda: ops.add(X, None), "add: b must be a tensor or an array, got None"),
        (lambda: ops.add(X, X, X), "add: takes 2 arguments by place, got 3: add(a, b)"),
        (lambda: ops.add(X, c=X), "add: there is no argument 'c': add(a, b)"),
        (lambda: ops.add(X, a=X), "add: the argument a is there twice"),
        (lambda: ops.layer_norm(X, X, X, eps="x"), "layer_norm: eps must be a number, got 'x' (str)"),
        (lambda: ops.attention(X, causal="yes"), "attention: causal must be True or False, got 'yes' (str)"),
        (
            lambda: ops.concat([X, "a"]),
            "concat: tensors must be a list, each a tensor or an array, got a list with 'a' (str)",
        ),
        (lambda: X.squeeze("a"), "squeeze: axis must be a whole number or None, got 'a' (str)"),
        (lambda: X.max(axis="a"), "max: axis must be a whole number or None, got 'a' (str)"),
        (
            lambda: X.reshape("a"),
            "reshape: shape must be a whole number or a size or a list, each a whole number or a size, "
            "got 'a' (str)",
        ),
        (
            lambda: plm.Tensor(),
            "Tensor: the argument data is missing: Tensor(data, dtype, device, requires_grad)",
        ),
        (lambda: plm.Tensor.sum(3), "sum: cannot be called on 3 (int)"),
        (
            lambda: setattr(X, "requires_grad", "yes"),
            "requires_grad: arg must be True or False, got 'yes' (str)",
        ),
        (
            lambda: plm.set_num_threads(2**70),
            f"set_num_threads: cannot take {2**70} (int); a number may be too large or of the wrong sign",
        ),
        (lambda: plm.Dim(3.5), "Dim: text must be a text, got 3.5 (float)"),
    ]
    for call, message in cases:
        with pytest.raises(plm.KindError) as caught:
            call()
        assert str(caught.value) == message
    assert issubclass(plm.KindError, plm.ArgumentError) and issubclass(plm.KindError, TypeError)


def test_errors_of_called_functions_stay():
    def body(x):
        raise TypeError("of my own")

    with pytest.raises(TypeError, match="of my own") as caught:
        plm.recompute(body, plm.Tensor(np.ones(2, np.float32), requires_grad=True))
    assert type(caught.value) is TypeError
    with pytest.raises(TypeError, match="unsupported operand"):
        X + "a"
    assert (X == "a") is False


def test_an_interrupt_is_not_lost():
    class Slow:
        @property
        def __array_interface__(self):
            raise AttributeError

        def __repr__(self):
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, plm.KindError)):
        ops.add(X, Slow())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def native_functions():
    for module in (_core, _core.ops, _core.safetensors, _core.text):
        for name, value in vars(module).items():
            if type(value).__name__ == "nb_func":
                yield f"{module.__name__}.{name}", value
            elif isinstance(value, type) and type(vars(value).get("__init__")).__name__ == "nb_method":
                yield f"{module.__name__}.{name}", value
    for kind, thing in (
        (plm.Tensor, X),
        (_core.Dim, _core.Dim("B")),
        (_core.ParamState, _core.ParamState(X)),
    ):
        for name in dir(kind):
            if type(getattr(kind, name)).__name__ == "nb_method" and not name.startswith("__"):
                yield f"{kind.__name__}.{name}", getattr(thing, name)


def parameters(function):
    signatures = getattr(getattr(function, "__func__", function), "__nb_signature__", None)
    if not signatures:
        return 2
    return max(
        len([p for p in kinds._parameters(s[0]) if p[0] not in ("self", "*", "/")]) for s in signatures
    )


# What changes the whole process, or would wait.
SPARED = {
    "plmcore._core.set_num_threads",
    "plmcore._core.set_memory_cap",
    "plmcore._core.trim_memory",
    "plmcore._core.set_packing",
}


@pytest.mark.parametrize(
    ("name", "function"), list(native_functions()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_native_functions_answer_wrong_kinds_with_typed_errors(name, function, tmp_path, monkeypatch):
    if name in SPARED:
        pytest.skip("changes the process")
    monkeypatch.chdir(tmp_path)
    state, grads, rounding = plm.random_state(), plm.grad_enabled(), _core.rounds_activations()
    n = parameters(function)
    calls = [((), {}), ((X,) * 25, {}), ((), {"no_such_argument": 1})]
    for wrong in WRONG:
        calls += [((wrong,) * k, {}) for k in range(1, n + 1)]
        calls += [((X,) * k + (wrong,), {}) for k in range(n)]
    try:
        for args, named in calls:
            try:
                function(*args, **named)
            except TYPED as e:
                assert "incompatible" not in str(e) and str(e), (name, args)
            except Exception as e:
                raise AssertionError(f"{name}{args}: {type(e).__name__}: {e}") from e
    finally:
        plm.set_random_state(*state)
        _core.set_grad_enabled(grads)
        _core.set_rounds_activations(rounding)


# ---- functions in Python ----


GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "models"
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat dog ran ##s far away home".split()
DOOR = [
    "arange",
    "export",
    "finetune",
    "from_config",
    "full",
    "grad",
    "load",
    "load_program",
    "load_programs",
    "load_tokenizer",
    "ones",
    "pretrain",
    "quantize",
    "rand",
    "randn",
    "recompute",
    "spec",
    "stop_gradient",
    "train_tokenizer",
    "zeros",
    "safetensors.read",
    "safetensors.write",
    "losses.cross_entropy",
    "losses.mse",
    "losses.kl_div",
    "lm.attention",
    "lm.classify",
    "lm.encode",
    "lm.fill_mask",
    "lm.generate",
    "lm.perplexity",
    "lm.save",
    "lm.score",
    "lm.tokenizer.add_tokens",
    "lm.tokenizer.build",
    "lm.tokenizer.decode",
    "lm.tokenizer.encode_ids",
    "lm.tokenizer.id_of",
    "lm.tokenizer.save",
    "lm.tokenizer.set_special",
    "lm.tokenizer.token_of",
    "lm.tokenizer.tokenize",
    "lm.tokenizer.__call__",
]


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    folder = pathlib.Path(shutil.copytree(GOLDEN / "bert", tmp_path_factory.mktemp("model") / "bert"))
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    return plm.load(folder, head="masked-lm")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DOOR)
def test_functions_answer_wrong_kinds_with_typed_errors(name, lm, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    function = lm if name.startswith("lm") else plm
    for part in name.removeprefix("lm.").split("."):
        function = getattr(function, part)
    parameters = list(inspect.signature(function).parameters.values())
    places = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    wrong = [w for w in WRONG if not isinstance(w, np.ndarray)]
    calls = [((w,) * k, {}) for w in wrong for k in range(1, min(len(places), 3) + 1)]
    calls += [((), {p.name: w}) for p in parameters if p.kind is p.KEYWORD_ONLY for w in wrong]
    for args, named in [((), {}), ((), {"no_such": 1}), *calls]:
        try:
            function(*args, **named)
        except TYPED as e:
            assert "incompatible" not in str(e) and str(e), (name, args, named)
        except Exception as e:
            raise AssertionError(f"{name}{args}{named}: {type(e).__name__}: {e}") from e
    assert "nanobind" not in capfd.readouterr().err


def test_the_sentence_of_a_function_in_python(lm):
    for call, message in (
        (lambda: plm.load(5), "load: folder must be a text or a path, got 5 (int)"),
        (lambda: lm.encode(5), "encode: texts must be a text or a list, each a text, got 5 (int)"),
        (
            lambda: plm.load(),
            "load: the argument folder is missing: load(folder, head, *, dtype, device, strict, mapped, ",
        ),
    ):
        with pytest.raises(plm.KindError) as caught:
            call()
        assert str(caught.value).startswith(message)
