import numpy as np
import plmcore as plm
import pytest
from plmcore.train.snapshot import Snapshot


@pytest.mark.parametrize("prepared", [True, False])
def test_copies_do_not_change_with_what_they_were_taken_of(prepared):
    tensors = {
        "a": plm.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)),
        "b": plm.zeros(()),
        "c": plm.zeros((0, 4)),
    }
    snapshot = Snapshot()
    if prepared:
        snapshot.prepare(tensors)
    assert snapshot.prepared == prepared
    taken = snapshot.take(tensors)
    plm._core.assign(tensors["a"], plm.full((2, 3), 9.0))
    assert np.array_equal(taken["a"].numpy(), np.arange(6).reshape(2, 3)) and taken["b"].shape == ()
    assert taken["c"].shape == (0, 4)


def test_the_next_copy_lies_in_the_same_memory():
    tensors = {"a": plm.ones((5, 7))}
    snapshot = Snapshot()
    snapshot.prepare(tensors)
    first = snapshot.take(tensors)["a"]
    where = first.numpy().__array_interface__["data"][0]
    plm._core.assign(tensors["a"], plm.full((5, 7), 3.0))
    again = snapshot.take(tensors)["a"]
    assert again.numpy().__array_interface__["data"][0] == where and (again.numpy() == 3).all()


def test_tensors_of_other_kinds_and_shapes_are_copied_all_the_same():
    snapshot = Snapshot()
    snapshot.prepare({"a": plm.ones((2,))})
    found = snapshot.take({"a": plm.ones((3,)), "half": plm.ones((4,)).to("bfloat16"), "new": plm.ones((1,))})
    assert found["a"].shape == (3,) and found["half"].dtype == "bfloat16" and found["new"].shape == (1,)
