"""Large vocabularies, sorted by frequency and cut into clusters (Grave et al. 2017; Baevski and Auli 2019).

The first cluster has the frequent words. Cluster i has vectors of width embed_width / div_val^i, which a
projection takes to the width of the model; with div_val 1 all share one table, and there is no projection
where the widths are equal.

    p(w) = p(w | head)                          for a word of the first cluster
    p(w) = p(cluster i | head) p(w | cluster i)   for one of cluster i

The head has the words of the first cluster, then one column for each other cluster: i at cutoffs[0] + i - 1.

Shapes: N rows, C width, D width of a cluster's vectors, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plmcore._core import ArgumentError, Dim, ShapeError, Tensor, ops
from plmcore.nn import init
from plmcore.nn.containers import ModuleList
from plmcore.nn.embedding import SMALL, Embedding
from plmcore.nn.linear import Linear
from plmcore.nn.module import Module
from plmcore.nn.parameter import Parameter


@dataclass(frozen=True)
class Clusters:
    """How a vocabulary is cut: cluster i has the ids from edges[i] to edges[i + 1], and widths[i]."""

    edges: tuple[int, ...]
    widths: tuple[int, ...]

    @classmethod
    def of(cls, name: str, size: int, width: int, cutoffs: Sequence[int], div_val: int) -> Clusters:
        """width: of the vectors of the first cluster."""
        edges = (0, *cutoffs, size)
        if any(a >= b for a, b in zip(edges, edges[1:])):
            raise ArgumentError(
                f"{name}: cutoffs must rise, from 1 to below the vocabulary's {size}, got {list(cutoffs)}"
            )
        if div_val < 1:
            raise ArgumentError(f"{name}: div_val must be at least 1, got {div_val}")
        widths = tuple(width // div_val**i for i in range(len(edges) - 1))
        if not all(widths):
            raise ArgumentError(
                f"{name}: div_val {div_val} leaves no width for cluster {widths.index(0)}: {width} is "
                f"divided by it {widths.index(0)} times"
            )
        return cls(edges, widths)

    def __len__(self) -> int:
        return len(self.widths)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of ids of each cluster."""
        return tuple(b - a for a, b in zip(self.edges, self.edges[1:]))

    def numbers(self, i: int, ids: Tensor) -> Tensor:
        """Those of cluster i within it, -100 for all others.  int [N]"""
        low, high, none = (ops.full((), n, ids.dtype, like=ids) for n in (*self.edges[i : i + 2], -100))
        inside = ops.not_equal(ids, none)
        if i > 0:
            inside = ops.logical_and(inside, ops.greater_equal(ids, low))
        if i < len(self) - 1:  # what is beyond all clusters is an error of the last one's table
            inside = ops.logical_and(inside, ops.less(ids, high))
        return ops.where(inside, ops.sub(ids, low), none)


class AdaptiveEmbedding(Module):
    """Rows of the clusters' tables, projected.  ids [...] -> [..., C]"""

    def __init__(
        self,
        size: int,
        width: int,
        cutoffs: Sequence[int] = (),
        div_val: int = 1,
        *,
        embed_width: int | None = None,
        weight_init: init.Init = SMALL,
        projection_init: init.Init = SMALL,
    ):
        E = width if embed_width is None else embed_width
        self.clusters = Clusters.of("AdaptiveEmbedding", size, E, cutoffs, div_val)
        sizes, widths = self.clusters.sizes, self.clusters.widths
        if div_val == 1:
            sizes, widths = (size,), (E,)
        self.size, self.width = size, width
        self.tables = ModuleList(Embedding(n, D, weight_init=weight_init) for n, D in zip(sizes, widths))
        self.projections = ModuleList()
        if div_val != 1 or E != width:
            self.projections = ModuleList(
                Linear(D, width, bias=False, weight_init=projection_init) for D in widths
            )

    @property
    def dtype(self) -> str:
        """Of the rows that a call gives."""
        dtype: str = self.tables[0].dtype
        return dtype

    def __call__(self, ids: Tensor) -> Tensor:
        """ids [...] -> rows [..., C]."""
        if len(self.tables) == 1:
            return self.projected(0, self.tables[0](ids))
        flat = ops.reshape(ids, (1, ids.size))
        found = None
        for i, table in enumerate(self.tables):
            numbers = self.clusters.numbers(i, flat)
            own, _, index = ops.select_labelled(numbers, numbers)  # [n]
            if is_none(own.shape[0]):
                continue
            rows = ops.unpack_rows(self.projected(i, table(own)), index, 1, ids.size)
            found = rows if found is None else ops.add(found, rows)
        if found is None:
            found = ops.full((1, 0, self.width), 0.0, self.dtype, like=ids)
        return ops.reshape(found, (*ids.shape, self.width))

    def projected(self, i: int, x: Tensor) -> Tensor:
        """Between the width of the model and that of cluster i."""
        y: Tensor = self.projections[i](x) if len(self.projections) else x
        return y


class Projection(Module):
    """The reverse of an embedding's projection, whose weight it may share.  x [..., C] -> [..., D]"""

    def __init__(self, width: int, embed_width: int, *, weight: Parameter | None, weight_init: init.Init):
        self.weight = Parameter.new(weight_init, (width, embed_width)) if weight is None else weight

    def __call__(self, x: Tensor) -> Tensor:
        """x [..., C] -> [..., D]."""
        return ops.matmul(x, self.weight)


class ClusterRows(Linear):
    """A linear layer over the whole vocabulary, of which a call computes the words from `begin` to `end`."""

    def __call__(self, x: Tensor, begin: int, end: int) -> Tensor:  # type: ignore[override]
        """x [..., D] -> [..., end - begin]."""
        assert self.bias is not None
        weight, bias = (ops.narrow(p, begin, end - begin) for p in (self.weight, self.bias))
        return ops.linear(x, weight, bias)


@dataclass(frozen=True)
class AdaptiveLoss:
    """What AdaptiveSoftmax makes of labels: nll [N] is -ln p of each, 0 where there is none, and loss the
    mean over those that there are.
    """

    nll: Tensor
    loss: Tensor


class AdaptiveSoftmax(Module):
    """Log-probabilities of a vocabulary in clusters, and the loss of labels, for which only the clusters are
    computed that have one.

    tied: an embedding of the same clusters. Tables are shared with it if tie_tables, and the projection of
    cluster i if tie_projections[i].
    """

    def __init__(
        self,
        width: int,
        vocab_size: int,
        cutoffs: Sequence[int],
        div_val: int = 1,
        *,
        embed_width: int | None = None,
        tied: AdaptiveEmbedding | None = None,
        tie_tables: bool = True,
        tie_projections: Sequence[bool] = (),
        weight_init: init.Init = SMALL,
        projection_init: init.Init = SMALL,
    ):
        E = width if embed_width is None else embed_width
        self.clusters = Clusters.of("AdaptiveSoftmax", vocab_size, E, cutoffs, div_val)
        if tied is not None and (tied.clusters, tied.width) != (self.clusters, width):
            raise ArgumentError(
                f"AdaptiveSoftmax: the embedding that it is tied to must have its clusters, {self.clusters}, "
                f"and the width {width}; it has {tied.clusters} and {tied.width}"
            )
        K, tables = len(self.clusters), [None] * len(self.clusters)
        if tied is not None and tie_tables:
            tables = [table.weight for table in tied.tables]
        self.width, self.whole = width, div_val == 1 and K > 1
        if self.whole:
            self.tables = ModuleList([ClusterRows(E, vocab_size, weight=tables[0], weight_init=weight_init)])
        else:
            parts = zip(self.clusters.widths, self.clusters.sizes, tables)
            self.tables = ModuleList(Linear(D, n, weight=w, weight_init=weight_init) for D, n, w in parts)
        self.projections = ModuleList()
        if div_val != 1 or E != width:
            for i, D in enumerate(self.clusters.widths):
                shared = None
                if tied is not None and i < len(tie_projections) and tie_projections[i]:
                    shared = tied.projections[0 if div_val == 1 else i].weight
                self.projections.append(Projection(width, D, weight=shared, weight_init=projection_init))
        self.others = Linear(E, K - 1, weight_init=weight_init) if K > 1 else None

    def __call__(self, hidden: Tensor, labels: Tensor) -> AdaptiveLoss:
        """hidden [N, C], labels int [N], -100 for none -> nll [N] and their mean."""
        N = labels.shape[0]
        if labels.ndim != 1 or hidden.ndim != 2 or hidden.shape[1] != self.width:
            raise ShapeError(
                f"AdaptiveSoftmax: hidden must be [N, {self.width}] and labels [N], got "
                f"{list(hidden.shape)} and {list(labels.shape)}"
            )
        in_head, tails = self.clusters.numbers(0, labels), []
        for i in range(1, len(self.clusters)):
            numbers = self.clusters.numbers(i, labels)
            none, column = (
                ops.full((), n, labels.dtype, like=labels) for n in (-100, self.clusters.edges[1] + i - 1)
            )
            in_head = ops.where(ops.not_equal(numbers, none), column, in_head)
            rows, own, index = ops.select_labelled(
                ops.reshape(hidden, (1, N, self.width)), ops.reshape(numbers, (1, N))
            )
            if not is_none(own.shape[0]):
                nll = ops.cross_entropy(self.tail(i, rows), own, reduction="none")
                tails.append(ops.reshape(ops.unpack_rows(nll, index, 1, N), (N,)))
        nll = ops.cross_entropy(self.head(hidden), in_head, reduction="none")
        for tail in tails:
            nll = ops.add(nll, tail)
        some = ops.cast(ops.not_equal(labels, ops.full((), -100, labels.dtype, like=labels)), nll.dtype)
        return AdaptiveLoss(nll, ops.div(ops.sum(nll), ops.sum(some)))

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Of all words.  hidden [..., C] -> [..., V]"""
        head = ops.log_softmax(self.head(hidden))
        K, first = len(self.clusters), self.clusters.edges[1]
        if K == 1:
            return head
        axis = hidden.ndim - 1
        words, *columns = ops.split(head, (first, *[1] * (K - 1)), axis)
        tails = [ops.add(ops.log_softmax(self.tail(i, hidden)), c) for i, c in enumerate(columns, 1)]
        return ops.concat([words, *tails], axis)

    def head(self, x: Tensor) -> Tensor:
        """Logits of the first cluster's words, then of the other clusters.  [..., C] -> [..., n]"""
        x = self.projected(0, x)
        words = self.words(0, x)
        return words if self.others is None else ops.concat([words, self.others(x)], x.ndim - 1)

    def tail(self, i: int, x: Tensor) -> Tensor:
        """Logits of the words of cluster i.  [..., C] -> [..., n]"""
        return self.words(i, self.projected(i, x))

    def words(self, i: int, x: Tensor) -> Tensor:
        """Logits of the words of cluster i, from vectors of its width.  [..., D] -> [..., n]"""
        y: Tensor = self.tables[0](x, *self.clusters.edges[i : i + 2]) if self.whole else self.tables[i](x)
        return y

    def projected(self, i: int, x: Tensor) -> Tensor:
        """Between the width of the model and that of cluster i."""
        y: Tensor = self.projections[i](x) if len(self.projections) else x
        return y


def is_none(n: int | Dim) -> bool:
    """Whether it is known that there are none."""
    return isinstance(n, int) and n == 0
