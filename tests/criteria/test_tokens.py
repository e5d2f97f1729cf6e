"""Losses of tokens by kind are in tests/models/test_labels.py; here is what no family takes yet."""

import importlib
import pathlib
import sys

import numpy as np
import plmcore as plm
import pytest
from plmcore import criteria, data, nn, objectives, ops, optim, train
from plmcore.models import labels
from plmcore.models.outputs import Output
from plmcore.train import held_out, schedules
from toy_lstm import ToyLSTM

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
markov = importlib.import_module("markov")
sys.path.remove(str(BENCHMARKS))

STATES, LENGTH = 5, 12
CHAIN = markov.Chain.random(STATES, 0.5, seed=0)
TOKENS = markov.States("bert", STATES)


class ToyBidirectional(nn.Module):
    """Two LSTMs, one of which reads from the end."""

    LABELS = (labels.BIDIRECTIONAL,)

    def __init__(self, vocabulary, width):
        self.ahead, self.back = ToyLSTM(vocabulary, width, seed=0), ToyLSTM(vocabulary, width, seed=1)

    def __call__(self, input_ids, *, forward_labels=None, backward_labels=None, attention_mask=None):
        turned = lambda x: ops.slice(x, 1, 0, x.shape[1], -1)
        logits = {
            "forward_logits": self.ahead(input_ids)[0],
            "backward_logits": turned(self.back(turned(input_ids))[0]),
        }
        found = {"forward_labels": forward_labels, "backward_labels": backward_labels}
        losses = {
            name: ops.cross_entropy(logits[labels.DIRECTIONS[name]], wanted)
            for name, wanted in found.items()
            if wanted is not None
        }
        total = ops.add(*losses.values()) if len(losses) == 2 else None
        return Output(loss=total, losses=losses, **logits)


def batches(documents, rows, seed):
    corpus = CHAIN.corpus(documents, LENGTH, first=TOKENS.first, seed=seed)
    objective = objectives.BidirectionalLM(corpus, TOKENS, LENGTH + 2, packing="documents")
    return data.Batches(objective, rows, seed=0)


class OfTheChain:
    """Batches whose special tokens are not asked about: their loss is not that of the chain."""

    def __init__(self, batches):
        self.batches = batches

    def __getitem__(self, step):
        batch = dict(self.batches[step])
        special = batch["input_ids"] < TOKENS.first
        for name in labels.DIRECTIONS:
            batch[name] = np.where(special | (batch[name] < TOKENS.first), -100, batch[name])
        return batch


def best(batch):
    """The mean of -log p of what a perfect model is asked, of either way."""
    back = (CHAIN.P * CHAIN.start[:, None]).T / CHAIN.start[:, None]  # of the state before
    total = 0.0
    for name, P in zip(labels.DIRECTIONS, (CHAIN.P, back), strict=True):
        asked = batch[name] >= 0
        total -= np.log(P[batch["input_ids"][asked] - TOKENS.first, batch[name][asked] - TOKENS.first]).mean()
    return total


def test_a_bidirectional_model_learns_to_the_optimum():
    model = ToyBidirectional(TOKENS.vocab_size, 16)
    assert isinstance(criteria.of(model), criteria.Bidirectional)
    steps = 400
    train.Trainer(
        model,
        batches(4000, 32, seed=1),
        optim.AdamW(model.parameters(), lr=2e-2),
        steps=steps,
        schedule=schedules.cosine(steps=steps, warmup=20),
        clip_norm=1.0,
    ).run()
    unseen = OfTheChain(batches(500, 500, seed=2))
    found = held_out.HeldOutLoss(unseen, 1)(model)
    assert "perplexity" not in found  # of two losses
    assert 0.98 * best(unseen[0]) < found["loss"] < 1.03 * best(unseen[0])


def test_both_ways_count_apart():
    batch = OfTheChain(batches(8, 8, seed=1))[0]
    batch["forward_labels"][:5] = -100
    counts = criteria.Bidirectional().counts(batch)
    assert counts == {"forward_labels": 3 * (LENGTH - 1), "backward_labels": 8 * (LENGTH - 1)}
    with pytest.raises(plm.ArgumentError, match="Bidirectional: a batch must have backward_labels"):
        criteria.Bidirectional().counts({k: v for k, v in batch.items() if k != "backward_labels"})


def test_smoothed_both_ways():
    model, batch = ToyBidirectional(TOKENS.vocab_size, 8), batches(8, 4, seed=1)[0]
    plain, smoothed = (criteria.run(criteria.Bidirectional(s), model, batch)[0] for s in (0.0, 0.1))
    for name, logits in labels.DIRECTIONS.items():
        z = model(plm.Tensor(batch["input_ids"]))[logits].numpy().astype(np.float64)
        logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
        everything = -logp.mean(-1)[batch[name] != -100].sum()
        assert smoothed[name].item() == pytest.approx(0.9 * plain[name].item() + 0.1 * everything, rel=1e-5)
