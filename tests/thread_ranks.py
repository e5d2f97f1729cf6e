"""Ranks that are threads of one process: what a Group of several processes has to do, for tests."""

import threading
from concurrent.futures import ThreadPoolExecutor

from plmcore import ops
from plmcore.runtime.autograd import no_grad
from plmcore.train import ranks


class Shared:
    def __init__(self, size):
        self.gate = threading.Barrier(size, timeout=300)  # rank 0 prepares data first, on a busy machine too
        self.given = [None] * size


class ThreadRank(ranks.Group):
    def __init__(self, rank, shared):
        self.rank, self.size, self.shared = rank, len(shared.given), shared
        self.calls = []

    def exchanged(self, value):
        """What each rank gave, in their order."""
        self.shared.given[self.rank] = value
        self.shared.gate.wait()
        found = list(self.shared.given)
        self.shared.gate.wait()  # the next exchange writes there
        return found

    def sum(self, values):
        self.calls.append(tuple(values))
        every = self.exchanged(values)
        return {
            name: sum(given.get(name, 0) for given in every)
            for name in dict.fromkeys(n for g in every for n in g)
        }

    def sum_gradients(self, gradients):
        with no_grad():
            dense = [None if g is None else ops.to_dense(g) if g.is_row_sparse else g for g in gradients]
            return [self.added(those) for those in zip(*self.exchanged(dense), strict=True)]

    @staticmethod
    def added(gradients):
        there = [g for g in gradients if g is not None]
        if not there:
            return None
        total = ops.copy(there[0])
        for g in there[1:]:
            total = ops.add(total, g)
        return total

    def barrier(self):
        self.shared.gate.wait()


def together(size, work):
    """work(group) of each rank."""
    shared = Shared(size)

    def begin(rank):
        group = ThreadRank(rank, shared)
        with ranks.joined(group):
            try:
                return work(group)
            except BaseException:
                shared.gate.abort()  # the others would wait for it
                raise

    with ThreadPoolExecutor(size) as pool:
        begun = [pool.submit(begin, rank) for rank in range(size)]
    failed = [f.exception() for f in begun if f.exception() is not None]
    if failed:  # the cause, not what it did to the others
        raise min(failed, key=lambda e: isinstance(e, threading.BrokenBarrierError))
    return [f.result() for f in begun]
