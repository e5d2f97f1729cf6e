import numpy as np
from optest import OpSpec
from plmcore import Tensor, ops

spec = OpSpec(
    op=ops.concat,
    ref=lambda tensors, axis=0: np.concatenate(tensors, axis),
    cases=[
        dict(tensors=[(2, 3, 4), (2, 5, 4)], axis=1),
        dict(tensors=[(6, 1, 4), (6, 9, 4)], axis=1),
        dict(tensors=[(2, 3), (4, 3), (1, 3)], axis=0),
        dict(tensors=[(37, 769), (37, 1)], axis=-1),
        dict(tensors=[(130, 513), (130, 768)], axis=1),
        dict(tensors=[(3, 4)], axis=1),
        dict(tensors=[(0, 4), (2, 4)], axis=0),
        dict(tensors=[(3, 0), (3, 0)], axis=1),
        dict(tensors=[np.arange(4), np.arange(3)], axis=0),
        dict(tensors=[np.eye(3) > 0, np.eye(3) > 0], axis=1),
    ],
    dims={"tensors": ["B S 4", "B T 4"]},
    errors=[
        (
            dict(tensors=[(2, 3), (3, 3)], axis=1),
            r"concat: sizes must be equal but along axis 1, got \[2, 3\] and, at 1, \[3, 3\]",
        ),
        (dict(tensors=[(2, 3), (2,)], axis=0), r"concat: sizes must be equal"),
        (
            dict(tensors=[(2, 3), np.arange(6).reshape(2, 3)], axis=0),
            r"concat: tensors must have one dtype, got float\d\d\[2, 3\] and, at 1, int64\[2, 3\]",
            TypeError,
        ),
        (dict(tensors=[(2, 3), (2, 3)], axis=2), r"concat: axis 2 is out of range for 2 axes", IndexError),
        (dict(tensors=[], axis=0), r"concat: the list of tensors is empty"),
    ],
    bench=[
        dict(tensors=[(16, 256, 768), (16, 256, 768)], axis=1),
        dict(tensors=[(4096, 384), (4096, 384)], axis=1),
    ],
    torch=lambda t, tensors, axis: t.cat(tensors, axis),
)
test_all = spec.tests()


def test_gradients_of_more_than_64_inputs():
    parts = [Tensor([float(i)], requires_grad=True) for i in range(200)]
    y = ops.concat(parts)
    ops.mul(y, Tensor(np.arange(200, dtype=np.float32))).backward(Tensor(np.ones(200, np.float32)))
    assert [p.grad.item() for p in parts] == list(range(200))
