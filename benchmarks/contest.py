"""Contests between libraries, each in a process of its own: a framework's spinning threads must not slow the
next one.

The benchmark starts a `Contestant` per library; its script ends in `serve`, which answers commands. Outputs
are compared with `difference` before anything is timed; `alternate` takes the times in rounds, so that a slow
minute of the machine hits all alike, and in more rounds while `verdict` is a tie.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import math
import os
import pickle
import platform
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

LEAST_ROUNDS = 2
MORE = 5  # times as many rounds, and as long a limit, while a contest is undecided
CONFIDENCE = 0.95  # that the median lies between low and high
MET, MISSED, TIE = "met", "missed", "tie"


class ContestError(Exception):
    """A contestant failed, or the outputs of two differ."""


class Contestant:
    """A library in its own process: `script LIBRARY THREADS`, which answers pickled commands (see serve)."""

    def __init__(self, script: Path, library: str, threads: int):
        self.library = library
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), PLMCORE_NUM_THREADS=str(threads))
        command = [sys.executable, str(script), library, str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def ask(self, *command: Any) -> Any:
        try:
            pickle.dump(command, self.process.stdin)
            self.process.stdin.flush()
            ok, result = pickle.load(self.process.stdout)
        except (EOFError, BrokenPipeError):
            code = self.process.wait()
            raise ContestError(f"{self.library} ended with status {code} on {command}") from None
        if not ok:
            raise ContestError(f"{self.library} on {command}: {result}")
        return result

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()


@contextlib.contextmanager
def field(script: Path, libraries: Sequence[str], threads: int) -> Iterator[dict[str, Contestant]]:
    """The contestants by library; their processes end with the block."""
    sides: dict[str, Contestant] = {}
    try:
        for library in libraries:
            sides[library] = Contestant(script, library, threads)
        yield sides
    finally:
        for side in sides.values():
            side.close()


def serve(handlers: dict[str, Callable]) -> None:
    """Answers pickled commands (name, *arguments) until standard input ends.

    What a library prints goes to standard error.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    while True:
        try:
            name, *arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = True, handlers[name](*arguments)
        except Exception as e:
            traceback.print_exc()
            answer = False, f"{type(e).__name__}: {e}"
        pickle.dump(answer, answers)
        answers.flush()


def measure(
    run: Callable[[], Any],
    seconds: float,
    warm: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Seconds per call over at least `seconds`, after one call that does not count unless warm=False."""
    if warm:
        run()
    count, spent = 0, 0.0
    batch = 1
    while spent < seconds or not count:
        start = clock()
        for _ in range(batch):
            run()
        spent += clock() - start
        count += batch
        if spent < seconds / 20:
            batch *= 4
    return spent / count


def order(names: Sequence[str], k: int) -> list[str]:
    """Who runs after whom in round k: turned by one every other round, and backwards in between."""
    turn = k // 2 % len(names)
    turned = [*names[turn:], *names[:turn]]
    return turned[::-1] if k % 2 else turned


def alternate(
    names: Sequence[str],
    rounds: int,
    pause: float,
    timed: Callable[[str], Any],
    limit: float = float("inf"),
    undecided: Callable[[dict[str, list]], bool] | None = None,
) -> dict[str, list]:
    """timed(name) of every name in each round, with a pause after each: spinning threads go to sleep in it.

    Where rounds are long, no new one begins after `limit` seconds, but there are two at least. While
    undecided(times), there are more of both, MORE times as many at most.
    """
    times: dict[str, list] = {name: [] for name in names}
    start = time.perf_counter()
    for k in range(rounds * MORE):
        enough = k >= LEAST_ROUNDS
        on = enough and undecided is not None and undecided(times)
        late = time.perf_counter() - start > limit * (MORE if on else 1)
        if (k >= rounds and not on) or (enough and late):
            break
        for name in order(names, k):
            times[name].append(timed(name))
            time.sleep(pause)
    return times


def sample(a: np.ndarray) -> np.ndarray:
    """About 100,000 values of an array, spread evenly: enough to compare, quick to send."""
    flat = np.ascontiguousarray(a).reshape(-1)
    return flat[:: max(1, flat.size // 100_003)].astype(np.float64)


def difference(a: list, b: list) -> float:
    """Largest difference of two lists of arrays, relative to the larger of 1 and the array's largest value;
    inf where one is not finite.
    """
    largest = 0.0
    for x, y in zip(a, b, strict=True):
        if x.shape != y.shape or not (np.isfinite(x).all() and np.isfinite(y).all()):
            return float("inf")
        if x.size:
            largest = max(largest, float(np.abs(x - y).max() / max(1.0, np.abs(y).max())))
    return largest


def compare(
    case: str, a: list, b: list, tolerance: float, names: tuple[str, str] = ("plmcore", "torch")
) -> float:
    """The difference of two contestants' outputs, which must not pass the tolerance."""
    error = difference(a, b)
    if not error <= tolerance:
        raise ContestError(
            f"{case}: outputs of {names[0]} and {names[1]} differ by {error:.2e}, more than {tolerance:.0e}"
        )
    return error


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Low and high: of more than eight values those between which the median lies with CONFIDENCE, by the
    binomial distribution; of fewer, the lowest and the highest.
    """
    n, outside, dropped = len(values), 1, 0
    while dropped < (n - 1) // 2 and 1 - 2 * (outside + math.comb(n, dropped + 1)) / 2**n >= CONFIDENCE:
        dropped += 1
        outside += math.comb(n, dropped)
    ordered = sorted(values)
    return ordered[dropped], ordered[n - 1 - dropped]


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Median, low and high (see interval) of theirs / ours, round by round."""
    each = [t / o for o, t in zip(ours, theirs, strict=True)]
    low, high = interval(each)
    return {"ratio": statistics.median(each), "low": low, "high": high}


def verdict(found: dict[str, float], target: float) -> str:
    """MET or MISSED where low and high agree on it; where the target lies between them, TIE."""
    return MET if found["low"] >= target else MISSED if found["high"] < target else TIE


SPREAD = (
    "the median over rounds, then low and high: the lowest and the highest of up to eight rounds, and of "
    f"more rounds those between which the median lies with {100 * CONFIDENCE:.0f} % confidence"
)


def count_of(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def machine_line(packages: Sequence[str]) -> str:
    """CPU model, cores, memory, and versions of Python and the packages that are installed."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    flags = fields.get("flags", "").split()
    widest = next((text for flag, text in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in flags), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            if package == "plmcore":  # on the path, but not installed
                versions.append(f"plmcore {importlib.import_module(package).__version__}")
    model = fields.get("model name") or platform.processor() or platform.machine()
    cpu = f"{model} ({widest})" if widest else model
    return f"{cpu}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB; {', '.join(versions)}"


def write_between(path: Path, begin: str, end: str, text: str) -> None:
    """Puts the text between two lines of a file, which must have them."""
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{path} has no place for the table: it needs the lines '{begin}' and '{end}'")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
