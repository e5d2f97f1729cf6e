import numpy as np
import plmcore as plm
import pytest
from plmcore.evaluate import scoring
from plmcore.evaluate.scoring import NONE, Row
from small_models import CAUSAL, GPT2, MASKED, SEQ2SEQ, log_softmax, sharp

RNG = np.random.default_rng(0)
ROWS = [RNG.integers(4, 40, n) for n in (9, 4, 12, 1)]


def check(found, rows, log_probs):
    """log_probs: of each row, [T, V]"""
    for scores, row, logp in zip(found, rows, log_probs, strict=True):
        places = np.flatnonzero(row.labels != NONE)
        right = row.labels[places]
        np.testing.assert_allclose(scores.log_probs, logp[places, right], rtol=1e-5, atol=2e-5)
        np.testing.assert_array_equal(scores.best, logp[places].argmax(-1) == right)


@pytest.mark.parametrize("family", [*CAUSAL, "double-heads"])
@pytest.mark.parametrize("batch_tokens", [1, 30, 1000])
def test_next_tokens(family, batch_tokens):
    head = "double-heads" if family == "double-heads" else "causal-lm"
    lm = sharp(CAUSAL.get(family, GPT2), head)
    rows = [
        Row(ids, np.where(RNG.random(len(ids)) < 0.7, RNG.integers(4, 40, len(ids)), NONE)) for ids in ROWS
    ]
    with plm.no_grad():
        if head == "double-heads":
            logits = [lm(input_ids=[row.ids[None]]).logits.reshape(1, -1, 40) for row in rows]
        else:
            logits = [lm(input_ids=row.ids[None]).logits for row in rows]
    check(scoring.score(lm, rows, batch_tokens), rows, [log_softmax(x)[0] for x in logits])


@pytest.mark.parametrize("family", MASKED)
def test_masked_tokens(family):
    lm = sharp(MASKED[family], "masked-lm")
    rows = [Row(ids, np.where(np.arange(len(ids)) % 3 == 0, ids, NONE)) for ids in ROWS]
    with plm.no_grad():
        logits = [lm(input_ids=row.ids[None]).logits for row in rows]
    check(scoring.score(lm, rows), rows, [log_softmax(x)[0] for x in logits])


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_targets(family):
    lm = sharp(SEQ2SEQ[family], "seq2seq-lm")
    rows = [Row(ids, target) for ids, target in zip(ROWS, ROWS[::-1])]
    with plm.no_grad():
        logits = [lm(input_ids=row.ids[None], labels=row.labels[None]).logits for row in rows]
    check(scoring.score(lm, rows), rows, [log_softmax(x)[0] for x in logits])


def test_xlnet_predicts_each_token_from_those_before_it():
    lm = sharp(dict(model_type="xlnet", d_model=12, n_layer=2, n_head=2, d_inner=16), "causal-lm")
    ids = ROWS[0]

    def at(i, ids):
        found = list(scoring.score(lm, [Row(ids, np.where(np.arange(len(ids)) >= i, ids, NONE))]))[0]
        return found.log_probs[0]

    changed = ids.copy()
    changed[6:] = 3
    assert at(5, ids) == pytest.approx(at(5, changed), abs=1e-5)  # later tokens are not seen
    changed[4] = 3
    assert abs(at(5, ids) - at(5, changed)) > 1e-3  # earlier ones are
    together = list(scoring.score(lm, [Row(r, np.where(np.arange(len(r)) > 0, r, NONE)) for r in ROWS]))
    assert [len(s.log_probs) for s in together] == [8, 3, 11, 0]
    assert together[0].log_probs[4] == pytest.approx(at(5, ids), abs=1e-5)


def test_logits_in_parts(monkeypatch):
    lm = sharp(GPT2, "causal-lm")
    rows = [Row(ids, ids) for ids in ROWS]
    whole = list(scoring.score(lm, rows))
    monkeypatch.setattr(scoring, "BUFFER", 4 * 40 * 3)
    for a, b in zip(whole, scoring.score(lm, rows), strict=True):
        np.testing.assert_allclose(a.log_probs, b.log_probs, atol=1e-5)
        assert np.array_equal(a.best, b.best)


def test_mode_is_put_back():
    lm = sharp(dict(GPT2, resid_pdrop=0.5), "causal-lm").train()
    a, b = (next(scoring.score(lm, [Row(ROWS[0], ROWS[0])])) for _ in range(2))
    assert np.array_equal(a.log_probs, b.log_probs)  # no dropout
    assert lm.model.training


def test_heads_without_probabilities():
    with pytest.raises(ValueError, match="the head sequence-classification gives no probabilities of tokens"):
        scoring.kind_of(plm.from_config(GPT2, "sequence-classification"))
    with pytest.raises(
        ValueError, match="this bert sees the tokens it would predict: load it with is_decoder=True"
    ):
        scoring.kind_of(plm.from_config(dict(CAUSAL["bert"], is_decoder=False), "causal-lm"))


def test_batches():
    rows = [Row(np.zeros(n, int), np.zeros(n, int)) for n in (5, 5, 3, 10, 30, 1)]
    assert [[len(r.ids) for r in batch] for batch in scoring.batches(rows, 20)] == [
        [5, 5, 3],
        [10],
        [30],
        [1],
    ]
