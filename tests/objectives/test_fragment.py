import fakes
import numpy as np
import pytest
from plmcore.objectives import Fragment

BERT = fakes.Numbers()


def everything(objective):
    return objective.batch(np.arange(len(objective)), seed=0, epoch=0)


def test_the_fragment_put_back_is_the_text():
    objective = Fragment(fakes.corpus(BERT), BERT, length=64, positions=True, shares=(1, 0, 0))
    batch = everything(objective)
    found = []
    for row in range(len(objective)):
        ids, labels = batch["input_ids"][row], batch["labels"][row]
        labels = labels[labels != -100]
        hidden = np.flatnonzero(ids == BERT.mask_token_id)
        n = batch["attention_mask"][row].sum() - 2
        assert len(hidden) == len(labels) == max(1, np.rint(0.5 * n)) and (np.diff(hidden) == 1).all()
        restored = ids.copy()
        restored[hidden] = labels
        before = batch["decoder_input_ids"][row][: len(labels)]
        assert before.tolist() == restored[hidden - 1].tolist()  # the token before each
        assert batch["decoder_position_ids"][row][: len(labels)].tolist() == (hidden - 1).tolist()
        found += fakes.text_of(restored, BERT)
    assert found == fakes.stream(objective.corpus).tolist()


def test_one_fragment_a_block():
    objective = Fragment(
        fakes.corpus(BERT), BERT, length=66, packing="windows", rate=0.25, block=16, shares=(1, 0, 0)
    )
    batch = everything(objective)
    hidden = (batch["input_ids"][:, 1:-1] == BERT.mask_token_id).reshape(-1, 16)
    assert (hidden.sum(1) <= 4).all() and (hidden.sum(1) == 4).mean() > 0.7  # a separator is not hidden
    assert (np.diff(np.pad(hidden, ((0, 0), (1, 1))).astype(int), axis=1) == 1).sum(1).max() <= 2
    firsts = hidden[hidden.sum(1) == 4].argmax(1)
    assert len(np.unique(firsts)) == 13  # anywhere in the block


def test_shares_of_what_hides_it():
    objective = Fragment(fakes.corpus(BERT, documents=200), BERT, length=64)
    batch = everything(objective)
    masks, total = (batch["input_ids"] == BERT.mask_token_id).sum(), (batch["labels"] != -100).sum()
    fakes.assert_share(masks, total, 0.8)


def test_settings_are_checked():
    for settings, message in (
        ({"rate": 0}, "rate must be above 0"),
        ({"block": 0}, "block must be at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Fragment(fakes.corpus(BERT), BERT, **settings)
