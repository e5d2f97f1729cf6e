import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, criteria, models, ops
from plmcore.criteria import Term
from small import LENGTH, VOCAB, Counting, gpt2, trainer


def gradients(model, parts, criterion=None):
    criterion = criterion or criteria.of(model)
    model.zero_grad()
    total = 0.0
    totals = criteria.added(criterion.counts(part) for part in parts)
    for part in parts:
        value = criteria.loss(criteria.run(criterion, model, part)[0], totals)
        if value.requires_grad:
            value.backward()
        total += value.item()
    return total, {n: np.array(p.grad.numpy()) for n, p in model.named_parameters() if p.grad is not None}


def assert_parts_equal_the_whole(model, whole, cuts, criterion=None):
    parts = [{k: a[i:j] for k, a in whole.items()} for i, j in zip((0, *cuts), (*cuts, None))]
    a, expected = gradients(model, [whole], criterion)
    b, found = gradients(model, parts, criterion)
    assert b == pytest.approx(a, rel=1e-6)
    size = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in expected.values()))
    for name in expected:
        assert np.abs(found[name] - expected[name]).max() <= 1e-6 * size, name


def test_four_parts_of_eight_are_a_batch_of_32():
    assert_parts_equal_the_whole(gpt2(dropout=0), Counting(32, ragged=True)[0], (8, 16, 24))


def test_uneven_parts():
    assert_parts_equal_the_whole(gpt2(dropout=0), Counting(13, ragged=True)[3], (1, 2, 9))


def test_a_part_without_labels():
    whole = Counting(6)[0]
    whole["labels"][2:4] = -100
    assert_parts_equal_the_whole(gpt2(dropout=0), whole, (2, 4))


@pytest.mark.parametrize(
    "family, label", [("bert", "next_sentence_label"), ("albert", "sentence_order_label")]
)
def test_two_losses_are_weighted_each_by_its_own_labels(family, label):
    plm.seed(1)
    config = models.config_from_dict(
        dict(
            model_type=family,
            vocab_size=VOCAB,
            hidden_size=32,
            embedding_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=LENGTH,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            classifier_dropout_prob=0.0,
        )
    )
    model = models.build(config, "pretraining")
    whole = Counting(8, ragged=True)[0]
    whole["labels"][5] = -100
    whole[label] = np.arange(8) % 2
    assert_parts_equal_the_whole(model, whole, (3, 5, 6))


def test_label_smoothing_is_that_of_the_loss():
    model, batch = gpt2(dropout=0), Counting(4, ragged=True)[0]
    smoothed, _ = gradients(model, [batch], criteria.of(model, 0.1))
    labels = batch["labels"][:, 1:]
    logits = model(plm.Tensor(batch["input_ids"])).logits.numpy()[:, :-1].astype(np.float64)
    logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    kept = labels != -100
    target = np.take_along_axis(logp, np.where(kept, labels, 0)[..., None], -1)[..., 0]
    assert smoothed == pytest.approx(-(0.9 * target + 0.1 * logp.mean(-1))[kept].mean(), rel=1e-5)


def test_label_smoothing_of_parts_is_that_of_the_whole():
    model = gpt2(dropout=0)
    assert_parts_equal_the_whole(model, Counting(13, ragged=True)[3], (1, 2, 9), criteria.of(model, 0.1))


# ---- terms ----


def test_a_sum_and_a_mean_are_the_same_term():
    a, b = Term(Tensor(np.float32(6.0)), 4), Term.of_mean(Tensor(np.float32(1.5)), 4)
    for term in (a, b):
        assert term.sum.item() == term.item() == 6.0 and term.over(4).item() == 1.5
        assert term.over(12).item() == 0.5


def test_a_mean_of_the_whole_step_is_itself():
    mean = Tensor(np.float32(0.1))
    assert Term.of_mean(mean, 49).over(49) is mean


def test_the_mean_of_nothing_is_left_out():
    nan = Tensor(np.float32("nan"))
    one = Tensor(np.float32(2.0))
    assert criteria.loss({"a": Term.of_mean(nan, 0), "b": Term(one, 4)}, {"a": 0, "b": 8}).item() == 0.25
    assert criteria.loss({"a": Term.of_mean(nan, 0)}, {"a": 3}).item() == 0.0
    sums = criteria.Sums()
    sums.add({"a": Term.of_mean(nan, 0)})
    assert sums.loss() is None
    sums.add({"a": Term(one, 4), "b": Term(one, 1)})
    assert sums.loss() == 2.5


# ---- a criterion of one's own ----


class Squares(criteria.Criterion):
    """Toy: the model's logits of the first token against numbers, with a penalty on their size."""

    squares = True

    def counts(self, batch):
        n = np.isfinite(batch["wanted"]).sum()
        return {"error": int(n), "size": len(batch["wanted"])}

    def __call__(self, model, batch, state):
        found = ops.mean(model(Tensor(batch["input_ids"])).logits, 2)[:, 0]
        known = np.isfinite(batch["wanted"])
        error = ops.sub(found, Tensor(np.where(known, batch["wanted"], 0).astype(np.float32)))
        error = ops.mul(error, Tensor(known.astype(np.float32)))
        counts = self.counts(batch)
        return {
            "error": Term(ops.sum(ops.mul(error, error)), counts["error"]),
            "size": Term(ops.affine(ops.sum(ops.mul(found, found)), 0.01, 0.0), counts["size"]),
        }, state


class Numbers(Counting):
    def __getitem__(self, step):
        ids = super().__getitem__(step)["input_ids"]
        wanted = np.sin(ids[:, 0])
        wanted[step % len(wanted)] = np.nan
        return {"input_ids": ids, "wanted": wanted}


def test_a_criterion_of_ones_own_trains():
    t = trainer(batches=Numbers(16), criterion=Squares(), steps=150)
    losses = [t.advance()["loss"] for _ in range(150)]
    assert np.mean(losses[-10:]) < 0.2 * np.mean(losses[:10])
    t.check_converged()


def test_parts_of_ones_own_criterion_are_the_whole():
    whole = Numbers(8)[3]
    assert_parts_equal_the_whole(gpt2(dropout=0), whole, (2, 3, 4), Squares())
    steps = [
        trainer(gpt2(dropout=0), [batch], criterion=Squares(), steps=1).advance()
        for batch in (whole, [{k: a[i : i + 2] for k, a in whole.items()} for i in range(0, 8, 2)])
    ]
    assert steps[1]["loss"] == pytest.approx(steps[0]["loss"], rel=1e-5)
    assert steps[1]["norm"] == pytest.approx(steps[0]["norm"], rel=1e-5)


def test_a_criterion_without_terms():
    class Nothing(criteria.Criterion):
        def counts(self, batch):
            return {}

    with pytest.raises(
        plm.ArgumentError,
        match=r"Nothing has no terms for a batch of input_ids, labels: return \{name: count\}",
    ):
        trainer(criterion=Nothing()).advance()


def test_terms_that_were_not_counted():
    class Wrong(Squares):
        def counts(self, batch):
            return {"error": 3}

        def __call__(self, model, batch, state):
            return {"error": Term(ops.full((), 0.0, "float32"), 4)}, state

    with pytest.raises(
        plm.ArgumentError, match=r"Wrong: its terms must be what counts\(batch\) says.*: 3.*: 4"
    ):
        trainer(batches=Numbers(), criterion=Wrong()).advance()


def test_a_batch_without_labels_is_refused():
    class Unlabelled(Counting):
        def __getitem__(self, step):
            return {"input_ids": super().__getitem__(step)["input_ids"]}

    with pytest.raises(
        plm.ArgumentError, match="Tokens: a batch must have labels; this one has input_ids.*criterion="
    ):
        trainer(batches=Unlabelled()).advance()


def test_a_model_without_a_loss_is_refused():
    plm.seed(0)
    base = plm.from_config(gpt2().config, "base").model
    batch = {"input_ids": np.ones((1, 4), np.int64), "labels": np.ones(1, np.int64)}

    class Deaf(plm.nn.Module):
        def __init__(self):
            self.body = base

        def __call__(self, input_ids, labels):
            return self.body(input_ids)

    with pytest.raises(plm.ArgumentError, match="the model gives no loss of labels; build it with a head"):
        criteria.run(criteria.of(Deaf()), Deaf(), batch)
