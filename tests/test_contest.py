"""benchmarks/contest.py: processes, rounds and verdicts. No peer is needed."""

import importlib.util
import pathlib

import numpy as np
import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[1] / "benchmarks"
_spec = importlib.util.spec_from_file_location("contest_alone", BENCHMARKS / "contest.py")
contest = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(contest)


def test_everyone_runs_after_everyone():
    names = ["a", "b", "c", "d"]
    rounds = [contest.order(names, k) for k in range(8)]
    assert all(sorted(r) == names for r in rounds)
    assert {r[0] for r in rounds} == set(names)
    assert {r[r.index("a") - 1] for r in rounds if r[0] != "a"} == {"b", "d"}
    assert {tuple(contest.order(["a", "b"], k)) for k in range(2)} == {("a", "b"), ("b", "a")}


def test_long_rounds_are_two_and_short_ones_all_that_were_asked_for(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(contest.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(contest.time, "sleep", lambda pause: None)

    def timed(name):
        clock[0] += 4.0
        return name

    for limit, rounds in ((30.0, 4), (1.0, 2), (float("inf"), 7)):
        assert contest.alternate(["a", "b"], 7, 0.0, timed, limit) == {
            "a": ["a"] * rounds,
            "b": ["b"] * rounds,
        }
    assert contest.alternate(["a"], 1, 0.0, timed, 1.0) == {"a": ["a"]}  # fewer were asked for


def test_a_tie_gets_more_rounds_and_more_time(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(contest.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(contest.time, "sleep", lambda pause: None)

    def timed(name):
        clock[0] += 1.0
        return 1.0

    def rounds(until, limit=float("inf")):
        undecided = lambda times: len(times["a"]) < until
        return len(contest.alternate(["a"], 3, 0.0, timed, limit, undecided)["a"])

    assert [rounds(until) for until in (0, 3, 4, 9, 99)] == [3, 3, 4, 9, 3 * contest.MORE]
    assert rounds(0, 1.5) == 2 and rounds(99, 1.5) == 1.5 * contest.MORE // 1 + 1


def test_low_and_high_are_where_the_median_lies():
    rng = np.random.default_rng(0)
    for n in (1, 2, 8):
        assert contest.interval(range(n)) == (0, n - 1)
    assert [contest.interval(range(n)) for n in (9, 12, 35)] == [(1, 7), (2, 9), (11, 23)]
    for n in (9, 12, 35):
        spans = [contest.interval(rng.exponential(size=n)) for _ in range(2000)]
        assert np.mean([low <= np.log(2) <= high for low, high in spans]) >= contest.CONFIDENCE - 0.01
    found = {"low": 0.9, "ratio": 1.2, "high": 1.3}
    assert [contest.verdict(found, t) for t in (0.9, 0.91, 1.3, 1.31)] == ["met", "tie", "tie", "missed"]


def test_difference_is_relative_to_the_scale_and_refuses_what_is_not_finite():
    a = [np.array([0.0, 200.0])]
    assert contest.difference(a, [np.array([0.0, 100.0])]) == 1.0
    assert contest.difference(a, [np.array([0.0, np.nan])]) == np.inf
    assert contest.difference(a, [np.zeros(3)]) == np.inf
    with pytest.raises(
        contest.ContestError, match="x: outputs of plmcore and torch differ by 1.00e[+]00, more than 1e-04"
    ):
        contest.compare("x", a, [np.array([0.0, 100.0])], 1e-4)


def test_contestants_answer_fail_and_end(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(
        f"import os, sys; sys.path.insert(0, {str(BENCHMARKS)!r}); import contest\n"
        "def double(x): print('noise'); os.system('echo noise'); return 2 * x\n"
        "def threads(): return sys.argv[2], os.environ['OMP_NUM_THREADS']\n"
        "contest.serve({'double': double, 'threads': threads, 'fail': lambda: 1 / 0, 'end': lambda: "
        "os._exit(3)})\n"
    )
    with contest.field(script, ["one"], 2) as sides:
        assert sides["one"].ask("double", 21) == 42
        assert sides["one"].ask("threads") == ("2", "2")
        with pytest.raises(contest.ContestError, match="one on .*fail.*ZeroDivisionError"):
            sides["one"].ask("fail")
        assert sides["one"].ask("double", 1) == 2  # still there
        with pytest.raises(contest.ContestError, match="one ended with status 3"):
            sides["one"].ask("end")
