"""Terms of Cross-View Training: what a batch with labels and one without are the sum of."""

import numpy as np
import plmcore as plm
import pytest
from plmcore import criteria

CONFIG = dict(
    model_type="cvt",
    vocab_size=20,
    d_embed=5,
    d_char=3,
    char_filters=[[2, 2]],
    d_uni=4,
    d_bi=3,
    d_projection=3,
    num_labels=3,
    task_name="ner",
    tasks=[dict(name="mood", task="classification", labels=["good", "bad"])],
)


@pytest.fixture
def lm():
    plm.seed(0)
    return plm.from_config(CONFIG, "token-classification").eval()


def batch(lengths=(6, 4), T=6):
    rng = np.random.default_rng(len(lengths))
    ids = rng.integers(4, 20, (len(lengths), T))
    for row, n in zip(ids, lengths):
        row[n:] = 0
    mask = (ids != 0).astype(np.int64)
    return dict(input_ids=ids, char_ids=rng.integers(1, 100, (*ids.shape, 20)), attention_mask=mask)


def test_a_batch_with_labels_is_its_tasks(lm):
    criterion, given = criteria.CrossView(lm.model), batch()
    labels = np.where(given["attention_mask"] == 1, given["input_ids"] % 3, -100)
    terms, state = criteria.run(criterion, lm.model, {**given, "labels": labels})
    assert state is None and {name: t.count for name, t in terms.items()} == {"ner": 10}
    loss = lm.model.labelled_loss(given["input_ids"], given["char_ids"], labels)
    np.testing.assert_allclose(terms["ner"].over(10).item(), loss.item(), rtol=1e-6)
    other = {**given, "labels": np.array([0, 1]), "task": np.array(1)}
    terms, _ = criteria.run(criterion, lm.model, other)
    assert {name: t.count for name, t in terms.items()} == {"mood": 2}


def test_a_batch_without_labels_is_every_tasks(lm):
    criterion, given = criteria.CrossView(lm.model), batch()
    terms, _ = criteria.run(criterion, lm.model, given)
    counts = {name: t.count for name, t in terms.items()}
    words = {f"ner {view}": 10 for view in ("full", "forward", "backward")}
    pairs = {f"ner {view}": 8 for view in ("future", "past")}
    texts = {f"mood {view}": 2 for view in ("full", "forward", "backward", "future", "past")}
    assert counts == words | pairs | texts
    whole = criteria.loss(terms, counts).item()
    wanted = lm.model.unlabelled_loss(given["input_ids"], given["char_ids"]).item()
    np.testing.assert_allclose(whole, wanted, rtol=1e-6)


def test_parts_of_a_batch_give_its_loss(lm):
    criterion, given = criteria.CrossView(lm.model), batch((6, 4, 3))
    whole, _ = criteria.run(criterion, lm.model, given)
    totals = {name: t.count for name, t in whole.items()}
    parts = [{k: v[rows] for k, v in given.items()} for rows in (slice(0, 1), slice(1, 3))]
    pieces = [criteria.loss(criteria.run(criterion, lm.model, part)[0], totals).item() for part in parts]
    np.testing.assert_allclose(sum(pieces), criteria.loss(whole, totals).item(), rtol=1e-5)
