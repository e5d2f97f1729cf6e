import numpy as np
import plmcore as plm
import pytest
from plmcore import models
from plmcore.train import batching
from small import LENGTH, VOCAB, Counting, gpt2


def gradients(model, parts, loss=None):
    loss = loss or batching.MeanLoss(model)
    model.zero_grad()
    total = 0.0
    for part, share in zip(parts, loss.shares(parts), strict=True):
        value, _ = loss(part, share)
        if value.requires_grad:
            value.backward()
        total += value.item()
    return total, {n: np.array(p.grad.numpy()) for n, p in model.named_parameters() if p.grad is not None}


def assert_parts_equal_the_whole(model, whole, cuts):
    parts = [{k: a[i:j] for k, a in whole.items()} for i, j in zip((0, *cuts), (*cuts, None))]
    a, expected = gradients(model, [whole])
    b, found = gradients(model, parts)
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


@pytest.mark.parametrize("family, label", [("bert", "next_sentence_label"), ("albert", "sentence_order_label")])
def test_two_losses_are_weighted_each_by_its_own_labels(family, label):
    plm.seed(1)
    config = models.config_from_dict(
        dict(model_type=family, vocab_size=VOCAB, hidden_size=32, embedding_size=16, num_hidden_layers=2, num_attention_heads=2,
             intermediate_size=64, max_position_embeddings=LENGTH, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
             classifier_dropout_prob=0.0)
    )  # fmt: skip
    model = models.build(config, "pretraining")
    whole = Counting(8, ragged=True)[0]
    whole["labels"][5] = -100
    whole[label] = np.arange(8) % 2
    assert_parts_equal_the_whole(model, whole, (3, 5, 6))


def test_label_smoothing_is_that_of_the_loss():
    model, batch = gpt2(dropout=0), Counting(4, ragged=True)[0]
    smoothed, _ = gradients(model, [batch], batching.MeanLoss(model, 0.1))
    labels = batch["labels"][:, 1:]
    logits = model(plm.Tensor(batch["input_ids"])).logits.numpy()[:, :-1].astype(np.float64)
    logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    kept = labels != -100
    target = np.take_along_axis(logp, np.where(kept, labels, 0)[..., None], -1)[..., 0]
    assert smoothed == pytest.approx(-(0.9 * target + 0.1 * logp.mean(-1))[kept].mean(), rel=1e-5)


def test_accumulated_takes_the_batches_in_order():
    inner = Counting(2)
    four = batching.Accumulated(inner, 4)[3]
    assert [p["input_ids"].tolist() for p in four] == [inner[i]["input_ids"].tolist() for i in (12, 13, 14, 15)]


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


def test_a_batch_without_labels_is_refused():
    with pytest.raises(plm.ArgumentError, match="a batch must have labels; this one has input_ids"):
        batching.check_batch({"input_ids": np.zeros((1, 2))})
    with pytest.raises(plm.ArgumentError, match="no batch"):
        batching.check_batch([])
