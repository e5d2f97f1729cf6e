import fakes
import numpy as np
from plmcore.objectives import MaskedSeq2Seq

BART = fakes.Numbers("bart")


def test_hidden_tokens_put_back_are_the_text():
    objective = MaskedSeq2Seq(fakes.corpus(BART), BART, length=64)
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=0)
    text = []
    for ids, labels in zip(batch["input_ids"], batch["labels"]):
        labels = labels[labels != -100]
        assert labels[0] == BART.bos_token_id and labels[-1] == BART.eos_token_id
        restored = ids.copy()
        restored[ids == BART.mask_token_id] = labels[1:-1]
        text += fakes.text_of(restored, BART)
    assert text == fakes.stream(objective.corpus).tolist()
    hidden = (batch["input_ids"] == BART.mask_token_id).sum(1)
    expected = np.rint(0.15 * batch["attention_mask"].sum(1))
    assert (hidden <= expected).all() and hidden.sum() > 0.9 * expected.sum()
