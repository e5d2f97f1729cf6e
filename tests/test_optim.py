import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, _core, ops, optim

KINDS = {
    "sgd": lambda p, **k: optim.SGD(p, lr=0.1, **k),
    "momentum": lambda p, **k: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, **k),
    "adam": lambda p, **k: optim.Adam(p, lr=0.1, **k),
    "adamw": lambda p, **k: optim.AdamW(p, lr=0.1, **k),
    "bert_adam": lambda p, **k: optim.BertAdam(p, lr=0.1, **k),
    "lamb": lambda p, **k: optim.LAMB(p, lr=0.1, **k),
    "adafactor": lambda p, **k: optim.Adafactor(p, lr=0.1, **k),
    "adagrad": lambda p, **k: optim.Adagrad(p, lr=0.5, start=0.1, **k),
    "adadelta": lambda p, **k: optim.Adadelta(p, lr=1.0, eps=1e-2, **k),
}
each = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
WHOLE = ("lamb", "adafactor")  # their steps look at whole tensors
each_by_rows = pytest.mark.parametrize(
    "make", [f for k, f in KINDS.items() if k not in WHOLE], ids=[k for k in KINDS if k not in WHOLE]
)


def params(*shapes, dtype="float32"):
    rng = np.random.default_rng(1)
    return [Tensor(rng.standard_normal(s), dtype=dtype, requires_grad=True) for s in shapes]


def set_grads(list, seed=2):
    rng = np.random.default_rng(seed)
    for p in list:
        p.grad = Tensor(rng.standard_normal(p.shape), dtype=p.dtype)


def values(list):
    return [np.array(p.numpy()) for p in list]


def same(a, b):
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


@each
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_finds_a_minimum(make, dtype):
    """|p - 1|^2 from a random start."""
    (p,) = params((5, 3), dtype=dtype)
    opt = make([p], weight_decay=0.0)
    peak = opt.lr
    for step in range(300):
        opt.lr = peak * (1 - step / 300)
        p.grad = Tensor(2 * (p.numpy().astype(np.float64) - 1), dtype=dtype)
        opt.step()
    assert np.abs(p.numpy().astype(np.float64) - 1).max() < 0.05


@each
def test_state_dict_continues_bit_for_bit(make):
    a = params((4, 3), (7,))
    first = make(a)
    for i in range(3):
        set_grads(a, i)
        first.step()
    b = [Tensor(np.array(p.numpy()), requires_grad=True) for p in a]
    second = make(b)
    second.load_state_dict(first.state_dict())
    for i in range(3):
        for opt, list in ((first, a), (second, b)):
            set_grads(list, 10 + i)
            opt.step()
    assert same(values(a), values(b))
    assert second.lr == first.lr


@each
def test_state_of_a_new_optimiser_loads(make):
    opt = make(params((2,)))
    opt.load_state_dict(opt.state_dict())
    assert opt.states[0].step == 0


def test_state_dict_errors_change_nothing():
    opt = optim.AdamW(params((2,), (3,)), lr=0.5)
    with pytest.raises(ValueError, match="not that of 2 parameters; missing: 1.step; unexpected: 2.m"):
        opt.load_state_dict({"lr": 1.0, "0.step": 1, "2.m": np.zeros(3)})
    with pytest.raises(ValueError, match=r"1.m is \[2\], its parameter \[3\]"):
        opt.load_state_dict({"lr": 1.0, "0.step": 1, "1.step": 1, "1.m": np.zeros(2)})
    assert opt.lr == 0.5 and opt.states[0].step == 0


@each
def test_parameters_without_gradient_stay(make):
    a, b = params((3,), (3,))
    opt = make([a, b])
    before = values([b])
    set_grads([a])
    opt.step()
    assert same(before, values([b]))
    assert [s.step for s in opt.states] == [1, 0]


def test_zero_grad():
    list = params((3,), (2,))
    opt = optim.SGD(list)
    set_grads(list)
    opt.zero_grad()
    assert all(p.grad is None for p in list)


@each
def test_groups(make):
    """A group with its own lr and weight_decay steps as an optimiser of its own; a schedule moves both in
    proportion.
    """
    a, b = params((3, 2), (4,)), params((3, 2), (4,))
    together = make([dict(params=[a[0]], weight_decay=0.3), dict(params=[a[1]], lr=0.02)])
    apart = [make([b[0]], weight_decay=0.3), make([b[1]])]
    apart[1].lr = 0.02
    for i in range(3):
        set_grads(a, i)
        set_grads(b, i)
        together.step()
        for opt in apart:
            opt.step()
        together.lr *= 0.5
        for opt in apart:
            opt.lr *= 0.5
    for x, y in zip(values(a), values(b)):
        np.testing.assert_allclose(x, y, rtol=1e-6)


@each
def test_clipping(make):
    a, b = params((3, 2), (4,)), params((3, 2), (4,))
    x, y = make(a), make(b)
    set_grads(a)
    set_grads(b)
    grads = [np.array(p.grad.numpy()) for p in a]
    norm = float(np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in grads)))
    assert x.step(clip_norm=0.5) == pytest.approx(norm, rel=1e-6)
    assert same(grads, [p.grad.numpy() for p in a])  # clipping leaves the gradients alone
    for p in b:
        p.grad = Tensor(p.grad.numpy() * np.float32(0.5 / norm))
    assert y.step() is None
    for u, v in zip(values(a), values(b)):
        np.testing.assert_allclose(u, v, rtol=1e-5, atol=1e-7)


def test_norm_below_the_limit_changes_nothing():
    a, b = params((3,)), params((3,))
    set_grads(a)
    set_grads(b)
    optim.AdamW(a).step(clip_norm=1e6)
    optim.AdamW(b).step()
    assert same(values(a), values(b))


@pytest.mark.parametrize("kind", WHOLE)
def test_row_sparse_gradient_of_a_whole_tensor(kind):
    rows, grad, results = np.array([1, 6]), np.ones((2, 5), np.float32), []
    full = np.zeros((9, 5), np.float32)
    full[rows] = grad
    for g in (Tensor(full), Tensor.row_sparse(Tensor(rows), Tensor(grad), 9)):
        (p,) = params((9, 5))
        opt = KINDS[kind]([p])
        for _ in range(3):
            p.grad = g
            opt.step(clip_norm=0.3)
        results.append(values([p]))
    assert same(*results)


def test_adafactor_keeps_a_number_per_row_and_column():
    p, q = params((6, 4, 3), (5,))
    opt = optim.Adafactor([p, q])
    set_grads([p, q])
    opt.step()
    assert [tuple(opt.states[0].m.shape), tuple(opt.states[0].v.shape)] == [(6, 4), (3,)]
    assert opt.states[1].m is None and tuple(opt.states[1].v.shape) == (5,)
    other = optim.Adafactor(params((6, 4, 3), (5,)))
    other.load_state_dict(opt.state_dict())
    with pytest.raises(ValueError, match=r"0.m is \[6, 4\], its parameter \[6, 3, 4\]"):
        optim.Adafactor(params((6, 3, 4), (5,))).load_state_dict(opt.state_dict())


def test_adagrad_starts_from_its_sum():
    (p,) = params((3,))
    opt = optim.Adagrad([p], lr=1.0, start=4.0)
    before = values([p])[0]
    p.grad = Tensor(np.zeros(3, np.float32) + 3)
    opt.step()
    np.testing.assert_allclose(before - values([p])[0], 3 / np.sqrt(13), rtol=1e-6)
    with pytest.raises(ValueError, match="start must not be negative"):
        optim.Adagrad([p], start=-1)


@each_by_rows
def test_row_sparse_gradient(make):
    """The default gives the bits of the dense step; lazy leaves the other rows alone."""
    rng = np.random.default_rng(3)
    start, rows, grad = (
        rng.standard_normal((9, 5)).astype(np.float32),
        np.array([1, 6]),
        rng.standard_normal((2, 5)).astype(np.float32),
    )
    full = np.zeros_like(start)
    full[rows] = grad
    results = []
    for lazy, g in [
        (False, Tensor(full)),
        (False, Tensor.row_sparse(Tensor(rows), Tensor(grad), 9)),
        (True, Tensor.row_sparse(Tensor(rows), Tensor(grad), 9)),
    ]:
        p = Tensor(start, requires_grad=True)
        opt = make([p], weight_decay=0.1, lazy=lazy)
        for _ in range(4):
            p.grad = g
            opt.step(clip_norm=0.3)
        results.append(values([p])[0])
    assert results[0].tobytes() == results[1].tobytes()
    others = np.setdiff1d(np.arange(9), rows)
    assert results[2][others].tobytes() == start[others].tobytes() != results[0][others].tobytes()
    assert results[2][rows].tobytes() == results[0][rows].tobytes()


def test_half_parameters_have_float32_moments():
    for dtype in ("bfloat16", "float16"):
        (p,) = params((4,), dtype=dtype)
        opt = optim.AdamW([p])
        set_grads([p])
        opt.step()
        assert opt.states[0].m.dtype == opt.states[0].v.dtype == "float32"


def test_errors():
    p, q = params((2,), (2,))
    with pytest.raises(ValueError, match="no parameters"):
        optim.SGD([])
    with pytest.raises(ValueError, match="given twice"):
        optim.SGD([p, q, p])
    with pytest.raises(ValueError, match="given twice"):
        optim.SGD([dict(params=[p]), dict(params=[p])])
    with pytest.raises(TypeError, match="must be tensors, got tuple; pass model.parameters"):
        optim.SGD([("name", p)])
    with pytest.raises(TypeError, match=r"must come in a list, got one tensor \[2, 3\]"):
        optim.SGD(plm.ones(2, 3, requires_grad=True), lr=0.1)
    with pytest.raises(ValueError, match="got also beta"):
        optim.SGD([dict(params=[p], beta=1)])
    with pytest.raises(ValueError, match="nesterov needs a positive momentum"):
        optim.SGD([p], nesterov=True)
    with pytest.raises(ValueError, match="needs a positive lr"):
        optim.SGD([dict(params=[p], lr=0.1)], lr=0.0)
    set_grads([p])
    with pytest.raises(ValueError, match="lr must not be negative"):
        optim.SGD([p], lr=-1.0).step()
    with pytest.raises(ValueError, match="max_norm must be positive"):
        optim.SGD([p]).step(clip_norm=0.0)


def test_a_definition_is_found_by_name_and_knows_its_options():
    states = [_core.ParamState(Tensor([1.0]))]
    with pytest.raises(plm.ArgumentError, match="an optimiser is one of sgd, adam, .*, got 'adamax'"):
        _core.step_all("adamax", states, {})
    with pytest.raises(plm.ArgumentError, match="lamb: there is no option 'lazy'"):
        _core.step_all("lamb", states, {"lr": 0.1, "lazy": True})


def test_many_parameters():
    list = params(*[(3,)] * 500)
    opt = optim.AdamW(list)
    set_grads(list)
    norm = opt.step(clip_norm=1.0)
    assert norm == pytest.approx(
        np.sqrt(sum((p.grad.numpy().astype(np.float64) ** 2).sum() for p in list)), rel=1e-6
    )


def test_ema():
    list = params((3,), (2, 2))
    ema = optim.EMA(list, decay=0.75)
    start = values(list)
    for p in list:
        plm._core.assign(p, np.ones(p.shape, np.float32))
    ema.step()
    expected = [0.75 * s + 0.25 for s in start]
    with ema.averaged():
        for p, e in zip(list, expected):
            np.testing.assert_allclose(p.numpy(), e, rtol=1e-6)
    assert all((p.numpy() == 1).all() for p in list)
    other = optim.EMA(params((3,), (2, 2)))
    other.load_state_dict(ema.state_dict())
    assert same([a.numpy() for a in ema.averages], [a.numpy() for a in other.averages])
    with pytest.raises(ValueError, match="not that of 2 parameters; it has 0"):
        other.load_state_dict({"0": np.zeros(3)})


def test_ema_restores_after_an_error():
    (p,) = params((3,))
    ema, before = optim.EMA([p], decay=0.5), values([p])
    plm._core.assign(ema.averages[0], np.zeros(3, np.float32))
    with pytest.raises(KeyError), ema.averaged():
        raise KeyError
    assert same(before, values([p]))


def numbered(p, value):
    plm._core.assign(p, np.full(p.shape, value, np.float32))


def test_a_mean_begins_when_losses_stop_falling():
    """The losses of each evaluation; it begins above the lowest of those two or more evaluations before."""
    (p,) = params((3,))
    mean = optim.TriggeredMean([p], patience=2)
    begun = []
    for step, loss in enumerate([5.0, 4.0, 4.5, 4.9, 3.0, 4.1, 1.0, 1.0]):
        numbered(p, step)
        mean.step()
        mean.watch(loss)
        begun.append((mean.triggered, mean.count))
    # 4.5 and 4.9 are compared with 5, 3.0 with 4, 4.1 with 4: triggered after step 5, so that steps 6 and 7
    # are in the mean
    assert begun == [(False, 0)] * 5 + [(True, 0), (True, 1), (True, 2)]
    with mean.averaged():
        np.testing.assert_allclose(p.numpy(), 6.5)
    assert (p.numpy() == 7).all()
    mean.apply()
    np.testing.assert_allclose(p.numpy(), 6.5)


def test_a_mean_that_has_not_begun_is_the_parameters():
    (p,) = params((3,))
    mean = optim.TriggeredMean([p])
    numbered(p, 4)
    mean.step()
    with mean.averaged():
        assert (p.numpy() == 4).all()
    mean.apply()
    assert (p.numpy() == 4).all()
    with pytest.raises(ValueError, match="patience must be at least 1, got 0"):
        optim.TriggeredMean([p], patience=0)


@pytest.mark.parametrize("losses", [[], [1.0], [1.0, 2.0, 3.0], [3.0, 2.0]])
def test_a_mean_goes_on_from_its_state(losses):
    means = []
    for saved in (False, True):
        (p,) = params((3,))
        mean = optim.TriggeredMean([p], patience=1)
        for step, loss in enumerate([*losses, 1.5, 1.7]):
            if saved and step == len(losses):
                (p,) = params((3,))
                other = optim.TriggeredMean([p], patience=1)
                other.load_state_dict(mean.state_dict())
                mean = other
            numbered(p, step**2)
            mean.step()
            mean.watch(loss)
        means.append(mean.state_dict())
    assert all(same([means[0][k]], [means[1][k]]) for k in means[0])


def test_step_trains_a_linear_layer():
    rng = np.random.default_rng(0)
    x, true = rng.standard_normal((64, 5)).astype(np.float32), rng.standard_normal((1, 5)).astype(np.float32)
    y = x @ true.T
    w = Tensor(np.zeros((1, 5), np.float32), requires_grad=True)
    opt = optim.AdamW([w], lr=0.05, weight_decay=0.0)
    for _ in range(400):
        opt.zero_grad()
        d = ops.add(ops.linear(Tensor(x), w), Tensor(-y))
        ops.sum_to(ops.mul(d, d), ()).backward()
        opt.step()
    np.testing.assert_allclose(w.numpy(), true, atol=1e-3)


def albert(param, grad, m, v, lr, decay, adapt):
    """The published optimiser in float64: no bias correction; what is left out of the decay is left out of
    the ratio.
    """
    m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad**2
    update = m / (np.sqrt(v) + 1e-6) + decay * param
    long, short = np.linalg.norm(param), np.linalg.norm(update)
    ratio = long / short if adapt and long > 0 and short > 0 else 1.0
    return param - lr * ratio * update, m, v


@pytest.mark.parametrize("decay", [0.01, 0.0])
def test_lamb_is_alberts(decay):
    """Matrices are adapted whatever the decay; biases and norms, and what is 0, take the plain step."""
    matrix, bias = params((5, 3), (4,), dtype="float64")
    zero = Tensor(np.zeros((2, 2)), dtype="float64", requires_grad=True)
    groups = [dict(params=[matrix, zero]), dict(params=[bias], weight_decay=0.0, adapt=False)]
    opt = optim.LAMB(groups, lr=0.1, weight_decay=decay)
    state = [(np.array(p.numpy()), np.zeros(p.shape), np.zeros(p.shape)) for p in (matrix, zero, bias)]
    for i in range(4):
        set_grads([matrix, zero, bias], i)
        for k, (p, d, adapt) in enumerate(((matrix, decay, True), (zero, decay, True), (bias, 0.0, False))):
            state[k] = albert(state[k][0], np.array(p.grad.numpy()), *state[k][1:], 0.1, d, adapt)
        opt.step()
        for p, (expected, _, _) in zip((matrix, zero, bias), state):
            assert np.allclose(p.numpy(), expected, rtol=1e-6, atol=1e-9)
    assert [s.step for s in opt.states] == [4, 4, 4]


def test_lamb_corrects_when_it_is_told_to():
    a, b = params((5, 3)), params((5, 3))
    for p, correct in ((a, False), (b, True)):
        opt = optim.LAMB([dict(params=p, adapt=False)], lr=0.1, weight_decay=0.0, correct=correct)
        set_grads(p)
        opt.step()
    start = params((5, 3))[0].numpy()
    plain, corrected = (np.abs(x[0].numpy() - start) for x in (a, b))
    assert np.allclose(corrected, 0.1, rtol=1e-3)  # m / sqrt(v) of a first step is the sign of the gradient
    assert np.allclose(plain, 0.1 * 0.1 / np.sqrt(0.001), rtol=1e-2)
