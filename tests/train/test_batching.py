import numpy as np
import plmcore as plm
import pytest
from plmcore.train import batching
from small import Counting


def test_accumulated_takes_the_batches_in_order():
    inner = Counting(2)
    four = batching.Accumulated(inner, 4)[3]
    assert [p["input_ids"].tolist() for p in four] == [
        inner[i]["input_ids"].tolist() for i in (12, 13, 14, 15)
    ]


def test_a_ramp_takes_every_batch_once():
    ramped = batching.Accumulated(Counting(2), batching.ramp(1, 5, 8))
    counts = [ramped.first(s + 1) - ramped.first(s) for s in range(12)]
    assert counts == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 5]
    again = batching.Accumulated(Counting(2), batching.ramp(1, 5, 8))
    assert again[9][0]["input_ids"].tolist() == ramped[9][0]["input_ids"].tolist()
    with pytest.raises(plm.ArgumentError, match="step 0 has 0 batches"):
        batching.Accumulated(Counting(), lambda step: 0)[0]


def test_tokens_do_not_count_padding():
    ids = np.zeros((2, 5), np.int64)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    assert batching.tokens_of({"input_ids": ids}) == 10
    assert batching.tokens_of({"input_ids": ids, "attention_mask": mask}) == 8
    assert batching.tokens_of({"input_ids": ids, "attention_mask": mask, "decoder_input_ids": ids}) == 18
    assert batching.tokens_of({"word": ids}) == 0


def test_a_step_without_a_batch():
    with pytest.raises(plm.ArgumentError, match="no batch"):
        batching.check_batch([])
