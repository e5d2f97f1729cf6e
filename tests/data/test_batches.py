import itertools
import threading

import numpy as np
import pytest
from plmcore.data import Batches


class Numbers:
    """Examples that are their own numbers, of lengths 1 to 97."""

    def __init__(self, n, lengths=True):
        self.n = n
        self.sizes = np.arange(n) * 7919 % 97 + 1
        self.lengths = (lambda epoch: self.sizes) if lengths else (lambda epoch: None)

    def __len__(self):
        return self.n

    def batch(self, indices, *, seed, epoch):
        return {"examples": indices, "epoch": np.int64(epoch), "seed": np.int64(seed)}


class Growing(Numbers):
    """10 examples more each epoch."""

    def examples(self, epoch):
        return self.n + 10 * epoch


def steps(batches, *numbers):
    return np.concatenate([batches[step]["examples"] for step in numbers])


KINDS = {
    "plain": dict(batch_size=8),
    "bucketed": dict(batch_size=8, bucket=True),
    "tokens": dict(max_tokens=400),
    "bucketed tokens": dict(max_tokens=400, bucket=True),
    "both": dict(max_tokens=400, batch_size=5, bucket=True),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_an_epoch_has_every_example_once(kind, ranks):
    objective = Numbers(2000)
    all_ranks = [
        Batches(objective, seed=1, rank=rank, ranks=ranks, drop_last=False, **KINDS[kind])
        for rank in range(ranks)
    ]
    for epoch in range(2):
        count = all_ranks[0].steps_per_epoch(epoch)
        first = sum(map(all_ranks[0].steps_per_epoch, range(epoch)))
        found = np.concatenate([steps(b, *range(first, first + count)) for b in all_ranks])
        assert len(set(found.tolist())) == len(found) >= 2000 - ranks + 1
        assert all_ranks[0][first]["epoch"] == epoch


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_a_function_of_its_number(kind):
    whole = list(map(Batches(Numbers(777), seed=4, **KINDS[kind]).__getitem__, range(300)))
    for start in (299, 137, 0):
        again = Batches(Numbers(777), seed=4, **KINDS[kind])[start]
        assert again["epoch"] == whole[start]["epoch"] and np.array_equal(
            again["examples"], whole[start]["examples"]
        )
    assert whole[299]["epoch"] > 0
    other = Batches(Numbers(777), seed=5, **KINDS[kind])
    assert not np.array_equal(steps(other, *range(20)), np.concatenate([b["examples"] for b in whole[:20]]))


@pytest.mark.parametrize("bucket", [False, True])
def test_ranks_share_what_one_process_would_do(bucket):
    alone = Batches(Numbers(2000), 24, seed=1, bucket=bucket)
    ranks = [Batches(Numbers(2000), 8, seed=1, bucket=bucket, rank=rank, ranks=3) for rank in range(3)]
    assert {b.steps_per_epoch() for b in ranks} == {alone.steps_per_epoch()}
    for step in (0, 5, 70, 200):
        assert sorted(np.concatenate([b[step]["examples"] for b in ranks])) == sorted(alone[step]["examples"])


def test_every_epoch_is_shuffled_anew():
    batches = Batches(Numbers(800), 8, seed=0)
    first, second = steps(batches, *range(100)), steps(batches, *range(100, 200))
    assert sorted(first) == sorted(second) == list(range(800)) and (first == second).sum() < 12
    assert np.array_equal(
        steps(Batches(Numbers(800), 8, seed=0, shuffle=False), 0, 1, 100), [*range(16), *range(8)]
    )


def padding(batches, objective, count):
    sizes = [objective.sizes[batches[step]["examples"]] for step in range(count)]
    return 1 - sum(s.sum() for s in sizes) / sum(s.max() * len(s) for s in sizes)


def test_buckets_save_padding_and_come_in_any_order():
    objective = Numbers(20_000)
    assert padding(Batches(objective, 16, seed=0), objective, 1250) > 0.4
    batches = Batches(objective, 16, seed=0, bucket=True)
    assert padding(batches, objective, 1250) < 0.02
    means = np.array([objective.sizes[batches[step]["examples"]].mean() for step in range(1250)])
    assert abs(np.corrcoef(means[1:], means[:-1])[0, 1]) < 4 / np.sqrt(1250)


@pytest.mark.parametrize("bucket, filled", [(True, 0.93), (False, 0.5)])
def test_max_tokens_counts_padding(bucket, filled):
    objective = Numbers(20_000)
    batches = Batches(objective, max_tokens=1000, seed=3, bucket=bucket)
    used = []
    for step in range(batches.steps_per_epoch()):
        sizes = objective.sizes[batches[step]["examples"]]
        assert sizes.max() * len(sizes) <= 1000
        used.append(sizes.sum() / 1000)
    assert np.mean(used) > filled


def test_max_tokens_for_each_rank():
    objective = Numbers(5000)
    ranks = [Batches(objective, max_tokens=500, seed=3, bucket=True, rank=r, ranks=2) for r in range(2)]
    for step in range(ranks[0].steps_per_epoch()):
        for batches in ranks:
            sizes = objective.sizes[batches[step]["examples"]]
            assert 0 < sizes.max() * len(sizes) <= 500


def test_epochs_of_different_sizes():
    batches = Batches(Growing(30, lengths=False), 10, seed=0)
    assert [batches[step]["epoch"] for step in range(13)] == [0] * 3 + [1] * 4 + [2] * 5 + [3]
    assert sorted(steps(batches, *range(3, 7))) == list(range(40))
    assert batches.place(7) == (2, 0) and batches.place(6) == (1, 3)


def test_last_batch():
    assert Batches(Numbers(20), 8, seed=0).steps_per_epoch() == 2
    batches = Batches(Numbers(20), 8, seed=0, drop_last=False, bucket=True)
    assert [len(batches[step]["examples"]) for step in range(4)] == [8, 8, 4, 8]
    # one example cannot be shared by two ranks
    assert Batches(Numbers(17), 8, seed=0, ranks=2, drop_last=False).steps_per_epoch() == 1
    assert [
        len(Batches(Numbers(19), 8, seed=0, rank=r, ranks=2, drop_last=False)[1]["examples"]) for r in (0, 1)
    ] == [
        2,
        1,
    ]


def test_dropping_the_rest_does_not_prefer_short_examples():
    objective, dropped = Numbers(30), []
    for seed in range(200):
        dropped += set(range(30)) - set(steps(Batches(objective, 16, seed=seed, bucket=True), 0).tolist())
    expected = objective.sizes.mean()
    assert abs(objective.sizes[dropped].mean() - expected) < 4 * objective.sizes.std() / np.sqrt(len(dropped))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_streams_are_the_same_for_any_number_of_workers(workers):
    batches = Batches(Numbers(500), 8, seed=2, bucket=True)
    for step, batch in enumerate(itertools.islice(batches.stream(50, workers=workers), 100), 50):
        assert np.array_equal(batch["examples"], batches[step]["examples"])


def test_a_stream_works_ahead_but_not_without_limit():
    made, enough = [], threading.Event()

    class Counted(Numbers):
        def batch(self, indices, **place):
            made.append(1)
            if len(made) == 5:
                enough.set()
            return super().batch(indices, **place)

    stream = Batches(Counted(500), 8, seed=2).stream(workers=2, ahead=5)
    next(stream)
    assert enough.wait(10) and len(made) <= 6
    stream.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("batches")]


def test_an_error_comes_out_of_a_stream_at_its_step():
    class Failing(Numbers):
        def batch(self, indices, **place):
            if 13 in indices:
                raise KeyError("13")
            return super().batch(indices, **place)

    stream = Batches(Failing(40), 4, seed=0, shuffle=False).stream(workers=2)
    assert [next(stream)["examples"][0] for _ in range(3)] == [0, 4, 8]
    with pytest.raises(KeyError, match="13"):
        next(stream)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(), "need batch_size or max_tokens"),
        (dict(batch_size=0), "batch_size must be at least 1, got 0"),
        (dict(batch_size=2, ranks=2, rank=2), r"rank must be in \[0, 2\), got 2"),
        (dict(batch_size=2, max_tokens=-1), "max_tokens must be at least 1, got -1"),
    ],
)
def test_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Batches(Numbers(10), seed=0, **arguments)


def test_what_cannot_be_batched():
    with pytest.raises(ValueError, match="3 examples are too few for one batch of 4 examples on 1 rank"):
        Batches(Numbers(3), 4, seed=0)[0]
    longest = Numbers(97).sizes.argmax()
    with pytest.raises(ValueError, match=f"example {longest} has 97 tokens, more than max_tokens = 96"):
        Batches(Numbers(97), max_tokens=96, seed=0)[0]
    with pytest.raises(ValueError, match=r"max_tokens needs an objective with lengths\(epoch\)"):
        Batches(Numbers(10, lengths=False), max_tokens=96, seed=0)[0]
    with pytest.raises(IndexError, match="got -1"):
        Batches(Numbers(10), 2, seed=0)[-1]
