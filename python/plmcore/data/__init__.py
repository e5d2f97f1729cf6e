"""Text to training batches: readers, tokenised corpora on disk,
shuffled batches that depend on the step alone.
"""

from plmcore.data.batches import Batches
from plmcore.data.corpus import Corpus
from plmcore.data.order import Order
from plmcore.data.readers import (
    read_conll,
    read_conllu,
    read_jsonl,
    read_parallel,
    read_parquet,
    read_squad,
    read_table,
    read_text,
)
from plmcore.data.tasks import TASKS, Task, task
from plmcore.data.writing import write_corpus

__all__ = [
    "Batches",
    "Corpus",
    "Order",
    "TASKS",
    "Task",
    "read_conll",
    "read_conllu",
    "read_jsonl",
    "read_parallel",
    "read_parquet",
    "read_squad",
    "read_table",
    "read_text",
    "task",
    "write_corpus",
]
