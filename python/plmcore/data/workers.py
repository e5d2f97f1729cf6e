"""A function in several processes.

They are programs of their own, started with the function pickled: no fork of a process that runs threads, and
no import of the user's script. They end when their input does, so none survives its parent.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, BinaryIO, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

_LENGTH = struct.Struct("<Q")


@contextlib.contextmanager
def started(function: Callable[[T], R], count: int) -> Iterator[Callable[[Iterable[T]], Iterator[R]]]:
    """A map in `count` processes, which keeps the order and takes no more than 2 * count items
    before they are needed.
    """
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p or os.getcwd() for p in sys.path))
    environment.update(TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1", PLMCORE_NUM_THREADS="1")
    command = [sys.executable, "-c", "from plmcore.data.workers import serve; serve()"]
    try:
        packed = pickle.dumps(function)
    except (pickle.PicklingError, TypeError, AttributeError) as e:
        raise TypeError(f"it cannot be sent to worker processes: {e}. One worker needs no sending") from None
    idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
    processes = []

    def call(item: T) -> R:
        process = idle.get()
        try:
            _send(process.stdin, pickle.dumps(item))
            good, result = pickle.loads(_receive(process.stdout))
        except (EOFError, BrokenPipeError):
            idle.put(process)
            raise RuntimeError(f"a worker process ended with code {process.wait()}") from None
        idle.put(process)
        if not good:
            raise result
        return result

    def ordered(items: Iterable[T]) -> Iterator[R]:
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(threads.submit(call, item))
                if len(waiting) > 2 * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    threads = ThreadPoolExecutor(count, thread_name_prefix="workers")
    try:
        for _ in range(count):
            # Ctrl-C is the parent's to handle
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, process_group=0
            )
            processes.append(process)
            idle.put(process)
        with contextlib.suppress(BrokenPipeError):  # the first call says so
            for process in processes:
                _send(process.stdin, packed)
        yield ordered
    finally:
        threads.shutdown(cancel_futures=True)
        for process in processes:
            with contextlib.suppress(BrokenPipeError):
                cast("IO[bytes]", process.stdin).close()
        for process in processes:
            process.wait()
            cast("IO[bytes]", process.stdout).close()


def serve() -> None:
    """A worker's life: a function, then items to call it with, until the input ends.

    What the function prints goes to stderr.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to handle
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(EOFError, BrokenPipeError):
        function = _loaded(_receive(source))
        while True:
            item = pickle.loads(_receive(source))
            try:
                answer = pickle.dumps((True, function(item)), protocol=5)
            except BaseException as e:  # a panic of a library is no Exception
                answer = _failure(e)
            _send(answers, answer)


def _loaded(packed: bytes) -> Callable[[Any], Any]:
    try:
        return pickle.loads(packed)
    except Exception as e:
        message = (
            f"a worker process cannot load what it was sent: {type(e).__name__}: {e}. One worker needs no "
            f"sending"
        )

    def fail(item: Any) -> None:
        raise RuntimeError(message)

    return fail


def _failure(e: BaseException) -> bytes:
    if isinstance(e, Exception):
        with contextlib.suppress(Exception):
            packed = pickle.dumps((False, e))
            pickle.loads(packed)
            return packed
    return pickle.dumps((False, RuntimeError(f"{type(e).__name__}: {e}")))


def _send(stream: BinaryIO | Any, data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: BinaryIO | Any) -> bytes:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    data = stream.read(_LENGTH.unpack(head)[0])
    if len(data) < _LENGTH.unpack(head)[0]:
        raise EOFError
    return data
