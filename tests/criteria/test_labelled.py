import numpy as np
import plmcore as plm
import pytest
from plmcore import criteria

IDS = np.array([[5, 6, 7, 8, 9], [9, 8, 7, 0, 0]])
MASK = (IDS != 0).astype(np.int64)
BATCH = {"input_ids": IDS, "attention_mask": MASK}


@pytest.fixture
def model():
    plm.seed(1)
    config = dict(model_type="openai-gpt", n_embd=16, n_layer=2, n_head=2, n_positions=16, pad_token_id=0)
    return plm.from_config(config, "sequence-classification", vocab_size=20, num_labels=3).eval().model


def inputs(**more):
    return {k: plm.Tensor(v) for k, v in (BATCH | more).items()}


def test_the_auxiliary_loss_is_that_of_the_language_model(model):
    labels = np.array([2, 0])
    alone = model(**inputs(labels=labels))
    criterion, batch = criteria.WithText(0.5), {**BATCH, "labels": labels}
    assert criterion.counts(batch) == {"labels": 2, "lm_labels": 6}
    out = criterion.predict(model, inputs(labels=labels))
    terms = criterion.terms(out, batch, inputs(labels=labels))
    np.testing.assert_allclose(out.logits.numpy(), alone.logits.numpy(), atol=1e-6)
    head = plm.from_config(model.config, "causal-lm").model
    head.load_state_dict({k: v for k, v in model.state_dict().items() if k != "score.weight"})
    text = head.eval()(**inputs(labels=np.where(MASK == 1, IDS, -100))).loss.item()
    assert terms["labels"].item() == pytest.approx(2 * alone.loss.item(), abs=1e-5)
    assert terms["lm_labels"].item() == pytest.approx(6 * 0.5 * text, abs=1e-5)
    assert out.loss.item() == pytest.approx(alone.loss.item(), abs=1e-6)


def test_both_orders_add_their_last_states(model):
    other = IDS[:, ::-1].copy()
    other[1] = [7, 8, 9, 0, 0]
    both = {"input_ids": np.stack([IDS, other], 1), "attention_mask": np.stack([MASK, MASK], 1)}
    out = criteria.WithText(0.0).predict(model, {k: plm.Tensor(v) for k, v in both.items()})
    first, second = (model(**inputs(input_ids=ids)).logits.numpy() for ids in (IDS, other))
    np.testing.assert_allclose(out.logits.numpy(), first + second, atol=1e-5)  # the linear layer has no bias
    assert out.loss is None


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_parts_are_the_whole(model, weight):
    """Also where the text of one is longer than that of the other."""
    criterion = criteria.WithText(weight)
    whole = {**BATCH, "labels": np.array([1, 2])}
    parts = [{k: v[i : i + 1] for k, v in whole.items()} for i in (0, 1)]
    totals = criteria.added(map(criterion.counts, parts))
    assert totals == criterion.counts(whole)
    found, *shares = (criteria.loss(criterion(model, b, None)[0], totals).item() for b in (whole, *parts))
    assert sum(shares) == pytest.approx(found, abs=1e-5)


def test_numbers_count_by_rows():
    assert criteria.Labelled().counts({"labels": np.zeros((3, 2), np.float32)}) == {"labels": 3}
    assert criteria.Labelled().counts({"labels": np.array([1, -100, 0])}) == {"labels": 2}
