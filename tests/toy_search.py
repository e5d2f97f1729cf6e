"""Searches over models that are tables: the logits after a sequence are drawn from its last tokens."""

import itertools

import numpy as np
from plmcore import Tensor
from plmcore._core import Search, SearchOptions


def options(**values):
    o = SearchOptions()
    for name, value in values.items():
        if name == "allowed":
            o.set_allowed(value)
        elif name == "stop":
            o.set_stop(value)
        else:
            setattr(o, name, value)
    return o


class Table:
    """Logits of the next token after the last two, float32 [V]; 0 ends."""

    def __init__(self, V, seed, scale=1.5):
        self.V = V
        self.values = (np.random.default_rng(seed).normal(size=(V, V, V)) * scale).astype(np.float32)

    def logits(self, ids):
        return self.values[ids[-2] if len(ids) > 1 else 0, ids[-1]]

    def log_probabilities(self, ids):
        x = self.logits(ids).astype(np.float64)
        return x - x.max() - np.log(np.exp(x - x.max()).sum())

    def score(self, prompt, tokens):
        ids, total = list(prompt), 0.0
        for t in tokens:
            total += self.log_probabilities(ids)[t]
            ids.append(t)
        return total


class Notes:
    """The example of the notes.

    The first word is a or the, the second cat or dog; then the sentence mostly ends.
    """

    WORDS = ["EOS", "a", "the", "cat", "dog"]
    AFTER = {
        "EOS": {"a": 0.45, "the": 0.55},
        "a": {"cat": 0.55, "dog": 0.45},
        "the": {"cat": 0.52, "dog": 0.48},
        "cat": {"EOS": 0.9, "a": 0.1},
        "dog": {"EOS": 0.8, "a": 0.2},
    }

    def logits(self, ids):
        after = self.AFTER[self.WORDS[ids[-1]]]
        with np.errstate(divide="ignore"):
            return np.log(np.array([after.get(word, 0) for word in self.WORDS], np.float32))


def search(model, prompts, rules, watch=None):
    """Runs a search to its end. -> results by prompt"""
    s = searched(model, prompts, rules, watch)
    return [s.result(i) for i in range(len(prompts))]


def searched(model, prompts, rules, watch=None):
    """A search at its end. Keeps the sequences as the search describes them."""
    s = Search([list(map(int, p)) for p in prompts], rules)
    sequences = [[list(p)] for p in prompts]
    while not s.done:
        if s.tokens is not None:
            live, parents, tokens = s.live.numpy(), s.parents.numpy(), s.tokens.numpy()
            sequences = [
                [[*sequences[live[i]][p], int(t)] for p, t in zip(parents[i], tokens[i])]
                for i in range(len(live))
            ]
        if watch is not None:
            watch(sequences)
        s.accept(Tensor(np.array([[model.logits(ids) for ids in row] for row in sequences], np.float32)))
    return s


def all_sequences(V, length, eos=0):
    """All token sequences that end with eos, or without one at the length."""
    for n in range(1, length + 1):
        for body in itertools.product([t for t in range(V) if t != eos], repeat=n - 1):
            yield [*body, eos]
    for body in itertools.product([t for t in range(V) if t != eos], repeat=length):
        yield list(body)
