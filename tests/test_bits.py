"""The same bits for any number of threads: forward, backward, and after many optimiser steps."""

import hashlib
import os

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, losses, nn, ops, optim

THREADS = (1, 2, 3, 4, 8)
MINUTES = pytest.mark.skipif(
    "PLM_LONG_TESTS" not in os.environ, reason="takes minutes; .ci/nightly sets PLM_LONG_TESTS"
)


class Net(nn.Module):
    """Embedding, a Transformer block with dropout, a vocabulary."""

    def __init__(self, V, width, heads, hidden):
        self.tokens = nn.Embedding(V, width, sparse=True, weight_init=nn.init.normal(1.0))
        self.norm1 = nn.LayerNorm(width)
        self.attn = nn.SelfAttention(width, heads, causal=True, dropout=0.1)
        self.norm2 = nn.RMSNorm(width)
        self.mlp = nn.MLP(width, hidden, dropout=0.1)
        self.head = nn.Linear(width, V)

    def __call__(self, ids):
        x = self.tokens(ids)
        x = ops.add(x, self.attn(self.norm1(x)))
        x = ops.add(x, self.mlp(self.norm2(x)))
        return self.head(x)


def digest(tensors):
    h = hashlib.sha256()
    for t in tensors:
        h.update(t.numpy().tobytes())
    return h.hexdigest()


def dense(gradient):
    return gradient.values if gradient.is_row_sparse else gradient


@pytest.fixture(autouse=True)
def restore_threads():
    before = plm.num_threads()
    yield
    plm.set_num_threads(before)


def test_one_step_of_many_tiles():
    B, T, C, V = 7, 149, 776, 5003
    rng = np.random.default_rng(0)
    ids, labels = Tensor(rng.integers(0, V, (B, T))), Tensor(rng.integers(0, V, (B, T)))
    plm.seed(0)
    net = Net(V, C, 8, 3104)
    found = {}
    for n in THREADS:
        plm.set_num_threads(n)
        plm.seed(1)
        net.zero_grad()
        logits = net(ids)
        loss = losses.cross_entropy(logits, labels, label_smoothing=0.1)
        loss.backward()
        gradients = {name: digest([dense(p.grad)]) for name, p in net.named_parameters()}
        norm = ops.global_norm([p.grad for p in net.parameters()])
        found[n] = {"logits": digest([logits]), "loss": digest([loss]), "norm": digest([norm]), **gradients}
    for n in THREADS:
        differing = [name for name, bits in found[n].items() if bits != found[1][name]]
        assert not differing, f"{n} threads give other bits than 1 in {', '.join(differing)}"


@pytest.mark.parametrize(
    "B, T, C, heads, hidden, V",
    [(5, 67, 104, 4, 408, 307), pytest.param(7, 149, 776, 8, 3104, 5003, marks=MINUTES)],
)
def test_fifty_steps(B, T, C, heads, hidden, V):
    rng = np.random.default_rng(0)
    batches = [(Tensor(rng.integers(0, V, (B, T))), Tensor(rng.integers(0, V, (B, T)))) for _ in range(10)]
    found = {}
    for n in THREADS:
        plm.set_num_threads(n)
        plm.seed(0)
        net = Net(V, C, heads, hidden)
        opt = optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.1)
        for step in range(50):
            opt.zero_grad()
            losses.cross_entropy(net(batches[step % 10][0]), batches[step % 10][1]).backward()
            opt.step(clip_norm=1.0)
        found[n] = {name: digest([p]) for name, p in net.named_parameters()}
    for n in THREADS:
        differing = [name for name, bits in found[n].items() if bits != found[1][name]]
        assert not differing, f"after 50 steps {n} threads give other bits than 1 in {', '.join(differing)}"
