import numpy as np
import pytest
from optest import OpSpec
from plmcore import Tensor, _core, ops


def ids(shape, V, dtype=np.int64):
    return np.random.default_rng(sum(shape)).integers(0, V, shape).astype(dtype)


spec = OpSpec(
    op=ops.embedding,
    ref=lambda weight, ids, sparse=False: weight[ids],
    covers=["embedding", "embedding_grad", "embedding_grad_rows"],
    cases=[
        dict(weight=(5, 4), ids=ids((2, 3), 5)),
        dict(weight=(5, 4), ids=ids((4, 7), 5)),
        dict(weight=(37, 769), ids=ids((20,), 37, np.int32)),
        dict(weight=(2, 200), ids=ids((90,), 2)),
        dict(weight=(5000, 20), ids=np.repeat(ids((150,), 5000), 3)),
        dict(weight=(5, 4), ids=np.array(3)),
        dict(weight=(5, 4), ids=ids((0, 3), 5)),
        dict(weight=(5, 0), ids=ids((3,), 5)),
        dict(weight=(5, 4), ids=ids((2, 3), 5), sparse=True),
        dict(weight=(5, 4), ids=ids((4, 7), 5), sparse=True),
        dict(weight=(5000, 37), ids=np.repeat(ids((150,), 5000, np.int32), 3), sparse=True),
        dict(weight=(5, 4), ids=ids((0, 3), 5), sparse=True),
    ],
    dims={"ids": "B T"},
    errors=[
        (
            dict(weight=(4, 3), ids=np.array([[0, 1], [2, -1]])),
            r"embedding: index -1 at position \[1, 1\] is out of range for an axis of size 4",
            IndexError,
        ),
        (dict(weight=(4, 3), ids=np.array([1, 4, 5])), r"embedding: index 4 at position \[1\]", IndexError),
        (dict(weight=(4, 3), ids=np.array([2**31])), r"index 2147483648 at position \[0\]", IndexError),
        (
            dict(weight=(4, 3), ids=np.array([2**63 - 1])),
            r"index 9223372036854775807 at position \[0\]",
            IndexError,
        ),
        (dict(weight=(4, 3), ids=(2,)), r"embedding: ind.* must be int64 or int32", TypeError),
        (dict(weight=(4, 3, 2), ids=np.array([1])), r"weight must be \[V, C\], got float32\[4, 3, 2\]"),
        (dict(weight=np.ones((4, 3), int), ids=np.array([1])), r"weight needs a float dtype", TypeError),
    ],
    bench=dict(weight=(30522, 768), ids=ids((4096,), 30522)),
    torch=lambda t, weight, ids: t.nn.functional.embedding(ids, weight),
)
test_all = spec.tests()


def leaf(shape, seed=0):
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), requires_grad=True)


def test_sparse_gradient_is_coalesced_and_equals_dense_bit_for_bit():
    index, dy = Tensor(ids((300,), 200)), leaf((300, 37), 1).detach()
    dense, sparse = leaf((200, 37)), leaf((200, 37))
    ops.embedding(dense, index).backward(dy)
    ops.embedding(sparse, index, sparse=True).backward(dy)
    g = sparse.grad
    assert g.is_row_sparse and g.shape == (200, 37)
    assert np.array_equal(g.rows.numpy(), np.unique(index.numpy()))
    assert np.array_equal(g.values.numpy(), dense.grad.numpy()[g.rows.numpy()])
    assert np.array_equal(ops.to_dense(g).numpy(), dense.grad.numpy())


@pytest.mark.parametrize("order", ["embedding first", "linear first"])
def test_tied_weight_sums_its_sparse_and_dense_gradients(order):
    index, x = Tensor(ids((6,), 11)), leaf((5, 8), 2).detach()

    def gradient(sparse):
        w = leaf((11, 8))
        calls = [
            lambda: ops.embedding(w, index, sparse),
            lambda: ops.linear(x, w),
            lambda: ops.embedding(w, index, sparse),
        ]
        outputs = [f() for f in (calls if order == "embedding first" else calls[::-1])]
        return _core.grad(outputs, [w], [y.detach() for y in outputs])[0]

    tied = gradient(True)
    assert not tied.is_row_sparse
    np.testing.assert_allclose(tied.numpy(), gradient(False).numpy(), rtol=1e-6, atol=1e-6)


def test_two_sparse_uses_merge_and_a_second_backward_adds():
    w, d = leaf((50, 4)), leaf((50, 4))
    a, b = Tensor(np.array([3, 40, 3])), Tensor(np.array([7, 40]))
    for _ in range(2):
        for weight, sparse in ((w, True), (d, False)):
            y = ops.concat([ops.embedding(weight, a, sparse), ops.embedding(weight, b, sparse)], 0)
            y.backward(y.detach())
    assert w.grad.is_row_sparse and w.grad.rows.numpy().tolist() == [3, 7, 40]
    assert np.array_equal(ops.to_dense(w.grad).numpy(), d.grad.numpy())


def test_a_computed_weight_gets_a_dense_gradient():
    w = leaf((6, 4))
    y = ops.embedding(ops.mul(w, w), Tensor(np.array([1, 1, 5])), sparse=True)
    y.backward(y.detach())
    assert not w.grad.is_row_sparse


def test_traced_sparse_gradients_merge():
    tracer = _core.Tracer()
    w, a, b = (
        tracer.input(n, s, t)
        for n, s, t in (
            ("w", [9, 4], "float32"),
            ("a", [_core.Dim("N")], "int64"),
            ("b", [_core.Dim("M")], "int64"),
        )
    )
    w.requires_grad = True
    outputs = [ops.embedding(w, a, True), ops.embedding(w, b, True)]
    g = _core.grad(outputs, [w], [y.detach() for y in outputs])[0]
    program = tracer.finish([], [g.rows, g.values])
    for ia, ib in (([1, 1, 8], [8, 0]), ([2], []), ([], [3, 3])):
        weight = leaf((9, 4))
        ya, yb = (
            ops.embedding(weight, np.array(ia, np.int64), True),
            ops.embedding(weight, np.array(ib, np.int64), True),
        )
        expected = _core.grad([ya, yb], [weight], [ya.detach(), yb.detach()])[0]
        rows, values = program.run([weight.detach(), np.array(ia, np.int64), np.array(ib, np.int64)])
        assert np.array_equal(rows.numpy(), expected.rows.numpy())
        assert np.array_equal(values.numpy(), expected.values.numpy())
