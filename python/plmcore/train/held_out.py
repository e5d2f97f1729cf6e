"""Text that is kept apart, and the loss on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from plmcore import criteria, nn
from plmcore._core import ArgumentError
from plmcore.data import Corpus
from plmcore.evaluate.likelihood import perplexity_of
from plmcore.models import labels as kinds
from plmcore.train import batching


def split(corpus: Corpus, share: float) -> tuple[Corpus, Corpus | None]:
    """The corpus without its last `share` of tokens, and those; a document that the cut goes through is two.

    No share, no second corpus.
    """
    if not 0 <= share < 1:
        raise ArgumentError(f"held_out must be in [0, 1), got {share}")
    cut = len(corpus.ids) - int(len(corpus.ids) * share)
    if cut == len(corpus.ids):
        return corpus, None
    return part(corpus, 0, cut), part(corpus, cut, len(corpus.ids))


def split_documents(
    corpora: Sequence[Corpus], share: float
) -> tuple[tuple[Corpus, ...], tuple[Corpus, ...] | None]:
    """The same for corpora whose documents belong together:
    all without the last `share` of documents, and those.
    """
    if not 0 <= share < 1:
        raise ArgumentError(f"held_out must be in [0, 1), got {share}")
    counts = {len(corpus) for corpus in corpora}
    if len(counts) > 1:
        raise ArgumentError(f"corpora that belong together have as many documents each, got {sorted(counts)}")
    cut = len(corpora[0]) - int(len(corpora[0]) * share)
    if cut == len(corpora[0]):
        return tuple(corpora), None
    cuts = [int(corpus.documents[cut]) for corpus in corpora]
    return (
        tuple(part(c, 0, at) for c, at in zip(corpora, cuts, strict=True)),
        tuple(part(c, at, len(c.ids)) for c, at in zip(corpora, cuts, strict=True)),
    )


def part(corpus: Corpus, begin: int, end: int) -> Corpus:
    """Tokens [begin, end) as a corpus of its own, over the same memory."""
    sentences, documents = (_within(offsets, begin, end) for offsets in (corpus.sentences, corpus.documents))
    content = {
        "vocab_size": corpus.vocab_size, "tokenizer": corpus.tokenizer, "source": corpus.source,
        "fingerprint": f"{corpus.fingerprint}[{begin}:{end}]",
    }  # fmt: skip
    return Corpus(corpus.ids[begin:end], sentences, documents, np.searchsorted(sentences, documents), content)


def backward(corpus: Corpus) -> Corpus:
    """The corpus from its end: the last token of its last document first."""
    sentences, documents = (len(corpus.ids) - o[::-1] for o in (corpus.sentences, corpus.documents))
    content = {
        "vocab_size": corpus.vocab_size, "tokenizer": corpus.tokenizer, "source": corpus.source,
        "fingerprint": f"{corpus.fingerprint}[::-1]",
    }  # fmt: skip
    ids = np.ascontiguousarray(corpus.ids[::-1])
    return Corpus(ids, sentences, documents, np.searchsorted(sentences, documents), content)


def _within(offsets: np.ndarray, begin: int, end: int) -> np.ndarray:
    first, last = np.searchsorted(offsets, begin, side="right"), np.searchsorted(offsets, end, side="left")
    return np.concatenate([[begin], offsets[first:last], [end]]).astype(offsets.dtype) - begin


class HeldOutLoss:
    """model -> loss and, of tokens alone, perplexity per label over `count` batches, the same ones each time;
    and the losses of `others`.
    """

    def __init__(
        self,
        batches: batching.Batches,
        count: int,
        others: Mapping[str, HeldOutLoss] | None = None,
        criterion: Callable[[nn.Module], criteria.Criterion] = criteria.of,
    ):
        self.batches, self.count, self.others, self.criterion = batches, count, others or {}, criterion

    def __call__(self, model: nn.Module) -> dict[str, float]:
        criterion, sums, state = self.criterion(model), criteria.Sums(), None
        with nn.inference():
            for i in range(self.count):
                (batch,) = batching.check_batch(self.batches[i])
                terms, state = criteria.run(criterion, model, batch, state)
                sums.add(terms)
        mean = sums.loss()
        if mean is None:
            raise ArgumentError("evaluation: the held-out text has nothing to predict")
        found = {"loss": mean}
        if len(sums.counts) == 1:  # and not the sum of two losses
            found["perplexity"] = perplexity_of(mean)
        for name in [name for name in kinds.DIRECTIONS if name in sums.counts]:
            direction = name.removesuffix("_labels")
            found[f"{direction}_perplexity"] = perplexity_of(sums.sums[name] / max(1, sums.counts[name]))
        return found | {f"{name}_loss": other(model)["loss"] for name, other in self.others.items()}
