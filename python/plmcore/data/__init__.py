"""Text to training batches: readers, tokenised corpora on disk, shuffled batches that depend on the step alone."""

from plmcore.data.batches import Batches
from plmcore.data.corpus import Corpus
from plmcore.data.order import Order

__all__ = ["Batches", "Corpus", "Order"]
