import numpy as np
import pytest
from optest import OpSpec
from plmcore import Tensor, _core, ops


def labels(shape, V, ignored=(), dtype=np.int64):
    l = np.random.default_rng(V).integers(0, V, shape).astype(dtype)
    l.reshape(-1)[list(ignored)] = -100
    return l


def cross_entropy(
    logits, labels, ignore_index=-100, label_smoothing=0.0, smoothing="pytorch", reduction="mean"
):
    V = logits.shape[-1]
    top = np.asarray(logits).max(-1, keepdims=True)  # no gradient goes through it
    nlp = np.log(np.exp(logits - top).sum(-1, keepdims=True)) + top - logits  # -log p
    if labels.dtype.kind == "f":
        counted = np.ones(labels.shape[:-1], bool)
        loss = (((1 - label_smoothing) * labels + label_smoothing / V) * nlp).sum(-1)
    else:
        counted = labels != ignore_index
        nll = np.take_along_axis(nlp, np.where(counted, labels, 0)[..., None], -1)[..., 0]
        if smoothing == "pytorch":
            loss = (1 - label_smoothing) * nll + label_smoothing * nlp.mean(-1)
        else:
            e = label_smoothing / (V - 1)
            loss = (1 - label_smoothing - e) * nll + e * nlp.sum(-1)
        loss = np.where(counted, loss, 0)
    if reduction == "none":
        return loss
    with np.errstate(invalid="ignore"):
        return loss.sum() / (counted.sum() if reduction == "mean" else 1)


def softmax(rng, shape):
    e = np.exp(rng.standard_normal(shape))
    return e / e.sum(-1, keepdims=True)


V = 37
soft = softmax(np.random.default_rng(0), (2, 3, V))
spec = OpSpec(
    op=ops.cross_entropy,
    ref=cross_entropy,
    cases=[
        dict(logits=(2, 3, V), labels=labels((2, 3), V)),
        dict(logits=(4, 5, V), labels=labels((4, 5), V, ignored=(0, 7, 19))),
        dict(logits=(5, 769), labels=labels((5,), 769, dtype=np.int32), reduction="sum"),
        dict(logits=(3, 5003), labels=labels((3,), 5003), reduction="none"),
        dict(logits=(2, 3, V), labels=labels((2, 3), V, ignored=(2,)), reduction="none"),
        dict(logits=(2, 3, V), labels=labels((2, 3), V, ignored=(2,)), label_smoothing=0.1),
        dict(
            logits=(2, 3, V), labels=labels((2, 3), V, ignored=(2,)), label_smoothing=0.1, smoothing="fairseq"
        ),
        dict(
            logits=(3, 2100),
            labels=labels((3,), 2100),
            label_smoothing=0.3,
            smoothing="fairseq",
            reduction="none",
        ),
        dict(logits=(2, 3, V), labels=soft),
        dict(logits=(2, 3, V), labels=soft * 2, label_smoothing=0.2, reduction="sum"),
        dict(logits=(2, 3, V), labels=soft, reduction="none"),
        dict(logits=(V,), labels=np.array(3)),
        dict(logits=(3, 1), labels=np.array([0, 0, -100])),
        dict(logits=(4, V), labels=np.array([1, 2, 0, 0]), ignore_index=0),
        dict(logits=(0, V), labels=labels((0,), V), reduction="sum"),
        dict(logits=(0, V), labels=labels((0,), V), reduction="none"),
        dict(logits=(2, 3, 40000), labels=labels((2, 3), 40000)),
    ],
    dims={"logits": f"B T {V}", "labels": "B T"},
    errors=[
        (
            dict(logits=(2, 3, V), labels=np.array([[0, 1, 2], [3, V, 4]])),
            rf"label {V} at position \[1, 1\] is out of range for {V} classes",
            IndexError,
        ),
        (dict(logits=(3, V), labels=np.array([0, -1, 2])), r"label -1 at position \[1\]", IndexError),
        (dict(logits=(1, V), labels=np.array([2**31])), r"label 2147483648 at position \[0\]", IndexError),
        (dict(logits=(1, V), labels=np.array([2**63 - 1])), r"label 9223372036854775807", IndexError),
        (
            dict(logits=(2, 3, V), labels=np.array([0, 1])),
            r"labels must be \[2, 3\] \(logits without the last dim\), got \[2\]",
        ),
        (
            dict(logits=(3, V), labels=(3, 5)),
            rf"soft targets must have the shape of the logits \[3, {V}\], got \[3, 5\]",
        ),
        (dict(logits=(3, V), labels=np.ones((3, V))), r"soft targets in the dtype of the logits", TypeError),
        (dict(logits=(3, V), labels=np.ones(3, bool)), r"labels must be int64, int32", TypeError),
        (
            dict(logits=(3, V), labels=(3, V), label_smoothing=0.1, smoothing="fairseq"),
            r"fairseq's smoothing needs labels, not soft targets",
        ),
        (
            dict(logits=(3, V), labels=labels((3,), V), label_smoothing=1.5),
            r"label_smoothing must be in \[0, 1\], got 1.5",
        ),
        (
            dict(logits=(3, V), labels=labels((3,), V), smoothing="hf"),
            r"smoothing must be 'pytorch' or 'fairseq', got 'hf'",
        ),
        (
            dict(logits=(3, V), labels=labels((3,), V), reduction="max"),
            r"reduction must be 'mean', 'sum' or 'none', got 'max'",
        ),
        (dict(logits=(), labels=np.array(0)), r"logits must be \[..., V\]"),
    ],
    # p is exp(logit - log-sum). Half a unit of a log-sum below 16 is 8 units of p, more after p - smoothing.
    grad_ulps=20,
    bench=[
        dict(logits=(1024, 30522), labels=labels((1024,), 30522)),
        dict(logits=(512, 50257), labels=labels((512,), 50257)),
    ],
    torch=lambda t, logits, labels: t.nn.functional.cross_entropy(logits, labels),
)
test_all = spec.tests()


def test_mean_over_no_label_is_nan_and_sum_is_zero():
    logits, ignored = Tensor(np.ones((3, 5), np.float32)), Tensor(np.full(3, -100))
    assert np.isnan(ops.cross_entropy(logits, ignored).item())
    assert np.isnan(
        ops.cross_entropy(Tensor(np.ones((0, 5), np.float32)), Tensor(np.zeros(0, np.int64))).item()
    )
    assert ops.cross_entropy(logits, ignored, reduction="sum").item() == 0


def test_ignored_rows_are_not_read():
    logits = np.ones((2, 5), np.float32)
    logits[1] = np.nan
    x = Tensor(logits, requires_grad=True)
    loss = ops.cross_entropy(x, Tensor(np.array([2, -100])))
    loss.backward()
    assert loss.item() == pytest.approx(np.log(5))
    assert np.array_equal(x.grad.numpy()[1], np.zeros(5))


def test_infinities_and_nan_follow_the_maths():
    def loss(row, label):
        return ops.cross_entropy(
            Tensor(np.array([row], np.float32)), Tensor(np.array([label])), reduction="none"
        ).numpy()[0]

    inf = np.inf
    assert loss([0, -inf, 0], 0) == pytest.approx(np.log(2))
    assert loss([0, -inf, 0], 1) == inf
    assert loss([1e30, 0, 0], 0) == 0 and loss([1e30, 0, 0], 1) == pytest.approx(1e30)
    assert loss([-1e30, -1e30], 0) == pytest.approx(np.log(2))
    for row in ([np.nan, 0], [inf, 0], [-inf, -inf]):
        assert np.isnan(loss(row, 0))
    far = np.full(5000, -inf, np.float32)  # the first blocks hold nothing but -inf
    far[4999] = 3
    assert loss(far, 4999) == 0


def test_no_second_buffer_of_the_size_of_the_logits():
    x = Tensor(np.zeros((64, 50000), np.float32), requires_grad=True)
    y = Tensor(np.zeros(64, np.int64))
    before = _core.memory_stats()["in_use"]
    _core.reset_peak_memory()
    loss = ops.cross_entropy(x, y)
    forward = _core.memory_stats()["peak"] - before
    loss.backward()
    assert forward < 1 << 20
    assert _core.memory_stats()["peak"] - before < x.nbytes + (4 << 20)
