"""Tensors from nothing but a shape, and from pickles."""

import pickle

import numpy as np
import plmcore as plm

OLD = (  # protocol 0 of a tensor [1, 2] that a version wrote when the function was plmcore.making.rebuild
    b"cplmcore.making\nrebuild\n(cplmcore._core\nTensor\ncnumpy\narray\n((lF1.0\naF2.0\naV<f4\ntRVcpu\nI01\ntR."
)


def test_pickles_of_earlier_versions_are_read():
    t = pickle.loads(OLD)
    assert type(t) is plm.Tensor and t.requires_grad and np.array_equal(t.numpy(), [1.0, 2.0])
    assert b"plmcore.runtime.making" in pickle.dumps(t)
