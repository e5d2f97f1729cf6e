"""Coreference as CoNLL-2012 scores it: MUC, B-cubed, CEAF with phi 4,
and the mean of their F1 (Pradhan et al. 2014).

A document is a list of clusters, a cluster a collection of mentions, a mention anything hashable,
as (start, end). Counts are summed over documents before precision and recall are taken.
Clusters of one mention count as any other.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.evaluate.needed import needed
from plmcore.evaluate.pairs import harmonic, paired

Clusters = Sequence[Collection[Hashable]]
Count = tuple[float, float]  # what was found, of how much


def coreference(predictions: Sequence[Clusters], references: Sequence[Clusters]) -> dict[str, float]:
    """F1 of the three metrics and `conll`, their mean."""
    scores = {name: of(predictions, references)["f1"] for name, of in METRICS.items()}
    return {**scores, "conll": sum(scores.values()) / len(scores)}


def muc(predictions: Sequence[Clusters], references: Sequence[Clusters]) -> dict[str, float]:
    """Links: a cluster of n mentions has n - 1, and lacks one for each further part
    that the other side cuts it into.
    """
    return _scored("muc", predictions, references, _links)


def b_cubed(predictions: Sequence[Clusters], references: Sequence[Clusters]) -> dict[str, float]:
    """The mean over mentions of the share of its cluster that is also in its cluster on the other side."""
    return _scored("b_cubed", predictions, references, _mentions)


def ceaf(predictions: Sequence[Clusters], references: Sequence[Clusters]) -> dict[str, float]:
    """CEAF with phi 4: the best one-to-one alignment of clusters, a pair worth 2 |K and R| / (|K| + |R|)."""
    return _scored("ceaf", predictions, references, _aligned)


METRICS = {"muc": muc, "b_cubed": b_cubed, "ceaf": ceaf}


def _scored(
    metric: str, predictions: Sequence[Clusters], references: Sequence[Clusters], count: Any
) -> dict[str, float]:
    predictions, references = paired(metric, predictions, references)
    found = np.zeros((2, 2))  # [precision or recall, found or of how much]
    for i, (response, key) in enumerate(zip(predictions, references)):
        response, key = (_disjoint(metric, i, side) for side in (response, key))
        found += (count(response, key), count(key, response))
    precision, recall = (float(n / of) if of else 0.0 for n, of in found)
    return {"precision": precision, "recall": recall, "f1": harmonic(precision, recall)}


def _links(clusters: list[frozenset[Any]], others: list[frozenset[Any]]) -> Count:
    home = {mention: i for i, cluster in enumerate(others) for mention in cluster}
    found = total = 0
    for cluster in clusters:
        parts = len({home[m] for m in cluster if m in home}) + sum(m not in home for m in cluster)
        found, total = found + len(cluster) - parts, total + len(cluster) - 1
    return found, total


def _mentions(clusters: list[frozenset[Any]], others: list[frozenset[Any]]) -> Count:
    home = {mention: cluster for cluster in others for mention in cluster}
    found = sum(len(c & home.get(mention, frozenset())) / len(c) for c in clusters for mention in c)
    return found, sum(map(len, clusters))


def _aligned(clusters: list[frozenset[Any]], others: list[frozenset[Any]]) -> Count:
    if not clusters or not others:
        return 0.0, len(clusters)
    worth = np.array([[2 * len(a & b) / (len(a) + len(b)) for b in others] for a in clusters])
    rows, columns = needed("scipy.optimize", "ceaf").linear_sum_assignment(worth, maximize=True)
    return float(worth[rows, columns].sum()), len(clusters)


def _disjoint(metric: str, document: int, clusters: Clusters) -> list[frozenset[Any]]:
    sets = [frozenset(cluster) for cluster in clusters]
    seen: set[Hashable] = set()
    for cluster in sets:
        if not cluster:
            raise ArgumentError(f"{metric}: document {document} has an empty cluster")
        if twice := seen & cluster:
            raise ArgumentError(
                f"{metric}: document {document} has the mention {next(iter(twice))!r} in two clusters"
            )
        seen |= cluster
    return sets
