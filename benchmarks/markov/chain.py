from __future__ import annotations

import numpy as np
from plmcore.runtime import draws


class Chain:
    """A first-order chain: P[i, j] is the probability of j after i; `start` is stationary."""

    def __init__(self, P: np.ndarray):
        P = np.asarray(P, np.float64)
        if P.ndim != 2 or P.shape[0] != P.shape[1] or (P < 0).any() or not np.allclose(P.sum(1), 1):
            raise ValueError(f"the rows of P [K, K] must be distributions, got {list(P.shape)}")
        self.P, self.states = P, len(P)
        values, vectors = np.linalg.eig(P.T)
        start = np.real(vectors[:, np.argmin(abs(values - 1))])
        self.start = start / start.sum()
        self._powers = [np.eye(self.states)]

    @classmethod
    def random(cls, states: int = 20, concentration: float = 0.3, seed: int = 0) -> Chain:
        """Rows from a symmetric Dirichlet distribution."""
        return cls(np.random.default_rng(seed).dirichlet(np.full(states, concentration), size=states))

    def sample(self, documents: int, length: int, seed: int = 0) -> np.ndarray:
        """Documents from the stationary chain; one is a function of seed and its number.  int64 [documents,
        length]
        """
        u = draws.uniform(seed, np.arange(documents)[:, None], np.arange(length))
        first, following = np.cumsum(self.start), np.cumsum(self.P, 1)
        out = np.empty((documents, length), np.int64)
        out[:, 0] = np.searchsorted(first[:-1], u[:, 0], side="right")
        for t in range(1, length):
            out[:, t] = (following[out[:, t - 1], :-1] <= u[:, t, None]).sum(1)
        return out

    def corpus(
        self, documents: int, length: int, *, first: int = 0, sentence: int | None = None, seed: int = 0
    ):
        """The sample as a corpus: state k is the id `first` + k, and sentences have `sentence` tokens."""
        from plmcore.data import Corpus

        sizes = None
        if sentence is not None:
            whole, rest = divmod(length, sentence)
            sizes = [[sentence] * whole + [rest] * (rest > 0)] * documents
        return Corpus.from_ids(list(self.sample(documents, length, seed) + first), first + self.states, sizes)

    def power(self, n: int) -> np.ndarray:
        """P^n: what follows after n steps."""
        while len(self._powers) <= n:
            self._powers.append(self._powers[-1] @ self.P)
        return self._powers[n]

    def powers(self, most: int) -> np.ndarray:
        """[most + 1, K, K]"""
        return np.stack([self.power(n) for n in range(most + 1)])
