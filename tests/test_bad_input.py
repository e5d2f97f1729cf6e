"""Wrong input gives a typed error and the process goes on; interrupts, threads and forks do no harm."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, ops


def works():
    return (Tensor([1.0, 2.0]) * 2).tolist() == [2, 4]


# ---- shapes, dtypes, devices, ranks ----


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: x + plm.zeros(4),
            plm.ShapeError,
            r"add: shapes \[2, 3\] and \[4\] do not broadcast: axis -1 is 3 and 4",
        ),
        (lambda x: x @ plm.zeros(4, 2), plm.ShapeError, "matmul"),
        (
            lambda x: x + x.astype("float64"),
            plm.DTypeError,
            r"add: inputs must have one dtype, got float32\[2, 3\] and float64\[2, 3\]",
        ),
        (lambda x: ops.index_select(x, x), plm.DTypeError, "index_select: indices must be int64 or int32"),
        (
            lambda x: ops.layer_norm(x, plm.zeros(2), plm.zeros(3), 1e-5),
            plm.ShapeError,
            r"gamma and beta must be \[3\]",
        ),
        (
            lambda x: ops.layer_norm(x.astype("int64"), plm.zeros(3), plm.zeros(3), 1e-5),
            plm.DTypeError,
            "float",
        ),
        (lambda x: x.reshape(4), plm.ShapeError, r"reshape: float32\[2, 3\] cannot become \[4\]"),
        (lambda x: x.reshape([1] * 9), plm.ShapeError, "at most 8 axes"),
        (lambda x: ops.concat([x.reshape([1] * 6 + [6, 1]), x]), plm.ShapeError, "concat"),
        (lambda x: x.transpose(0, 5), plm.IndexRangeError, "axis 5 is out of range"),
        (lambda x: plm.Tensor([1.0], device="cuda"), plm.DeviceError, "cuda"),
        (lambda x: plm.Tensor([1.0], device="abacus"), plm.DeviceError, "abacus"),
        (
            lambda x: x.astype("float99"),
            plm.DTypeError,
            "dtype must be one of float64, .*, bool, got 'float99'",
        ),
        (lambda x: ops.cast(x, np.complex64), plm.DTypeError, "dtype must be one of .* got 'complex64'"),
        (lambda x: plm.zeros(3, dtype="half"), plm.DTypeError, "dtype must be one of .* got 'half'"),
        (lambda x: x.astype(3.5), plm.DTypeError, "dtype must be one of .* got '3.5'"),
        (lambda x: ops.add(x), plm.KindError, "add: the argument b is missing"),
        (lambda x: ops.add(x, "three"), plm.KindError, "add: b must be a tensor"),
        (lambda x: ops.add(x, None), plm.KindError, "add: b must be a tensor"),
        (lambda x: ops.full([-1], 0.0), plm.ShapeError, "negative"),
        (lambda x: ops.uniform((2, -3)), plm.ShapeError, "negative"),
        (lambda x: ops.full([1] * 9, 0.0), plm.ShapeError, "at most 8 axes"),
        (
            lambda x: ops.full([2**64], 0.0),
            plm.ShapeError,
            "a size must fit 64 bits, got 18446744073709551616",
        ),
        (lambda x: ops.full("three", 0.0), plm.KindError, "full: shape must be"),
        (lambda x: x.backward(), plm.GraphError, "requires_grad"),
    ],
)
def test_typed_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(plm.zeros(2, 3))
    assert works()


def test_error_types_are_those_a_caller_expects():
    for typed, builtin in [
        (plm.ShapeError, ValueError), (plm.ArgumentError, ValueError), (plm.IndexRangeError, IndexError),
        (plm.DTypeError, TypeError), (plm.DeviceError, RuntimeError),
        (plm.GraphError, RuntimeError), (plm.TraceError, RuntimeError), (plm.FormatError, ValueError),
        (plm.OutOfMemoryError, MemoryError),
    ]:  # fmt: skip
        assert issubclass(typed, builtin)


def test_ranks_grow_past_eight():
    x = plm.zeros([1] * 8)
    for call in (
        lambda: x[None],
        lambda: x.unsqueeze(0),
        lambda: ops.index_select(x, Tensor([[0]])),
        lambda: ops.one_hot(x.astype("int64"), 2),
        lambda: Tensor(np.zeros([1] * 9)),
    ):
        with pytest.raises(ValueError, match="at most 8 axes"):
            call()


# ---- sizes and memory ----


def test_sizes_whose_product_overflows():
    for shape in ([2**40, 2**40], [2**62, 4], [2**31, 2**31, 2**31], [2**62, 2**62]):
        with pytest.raises(ValueError, match="too large"):
            ops.full(shape, 0.0)
        with pytest.raises(ValueError, match="too large"):
            plm.zeros(1).broadcast_to(shape)
    with pytest.raises((ValueError, TypeError)):
        plm.zeros(2**64)
    assert ops.full([2**40, 0, 2**40], 0.0).shape == (2**40, 0, 2**40)
    with pytest.raises((ValueError, MemoryError)):
        ops.pad(plm.zeros(1), [2**62], [2**62])
    with pytest.raises((ValueError, MemoryError)):
        ops.arange(0, 2**62)
    assert works()


def test_more_memory_than_there_is():
    for call in (
        lambda: plm.zeros(2**43),
        lambda: plm.zeros(2**20, 2**20),
        lambda: plm.zeros(1, 1).broadcast_to(2**20, 2**22),
        lambda: ops.one_hot(plm.zeros(2**16, dtype="int64"), 2**30),
        lambda: ops.arange(0, 2**45),
    ):
        with pytest.raises(MemoryError, match="bytes|elements"):
            call()
        assert works()


def test_memory_cap():
    plm.trim_memory()
    start = plm.memory_stats()
    plm.set_memory_cap(start["reserved"] + (4 << 20))
    try:
        with pytest.raises(MemoryError, match="cap set by set_memory_cap is"):
            plm.zeros(8 << 20)
        kept = plm.zeros(1 << 18)
        with pytest.raises(MemoryError):
            [kept * float(i) for i in range(20)]
        assert works() and kept.sum().item() == 0
        del kept
        assert plm.zeros(1 << 19).shape == (1 << 19,)  # cached blocks make room
    finally:
        plm.set_memory_cap(0)
    assert plm.zeros(8 << 20).nbytes == 32 << 20


def test_memory_statistics():
    plm.trim_memory()
    plm.reset_peak_memory()
    before = plm.memory_stats()
    x = plm.zeros(1 << 20)
    during = plm.memory_stats()
    assert (
        during["in_use"] - before["in_use"] >= 4 << 20
        and during["peak"] >= during["in_use"]
        and during["allocations"] > before["allocations"]
    )
    del x
    after = plm.memory_stats()
    assert (
        after["in_use"] == before["in_use"]
        and after["reserved"] >= during["reserved"]
        and after["peak"] == during["peak"]
    )
    plm.trim_memory()
    assert plm.memory_stats()["reserved"] < after["reserved"]


# ---- numbers that are none ----


def test_nan_and_infinity_pass_by_the_maths():
    values = np.array([1.0, np.nan, np.inf, -np.inf, 0.0], np.float32)
    x = Tensor(values)
    with np.errstate(all="ignore"):
        for op in (
            lambda v: v + 1,
            lambda v: v * 0,
            lambda v: v / v,
            lambda v: v - v,
            lambda v: -v,
            lambda v: v * v,
            lambda v: v > 0,
            lambda v: v == v,
            abs,
        ):
            np.testing.assert_array_equal(op(x).numpy(), op(values))
        np.testing.assert_allclose(x.exp().numpy(), np.exp(values), rtol=3e-7)
        np.testing.assert_allclose(x.log().numpy(), np.log(values), rtol=3e-7)
        np.testing.assert_array_equal(x.tanh().numpy()[1:4], [np.nan, 1, -1])
        assert np.isnan(x.sum().item()) and np.isnan(Tensor(values[2:4]).sum().item())
        rows = np.ones((3, 8), np.float32)
        rows[1, 3] = np.nan
        y = ops.layer_norm(Tensor(rows), plm.ones(8), plm.zeros(8), 1e-5).numpy()
        assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()
        z = (Tensor(rows) @ plm.ones(8, 4)).numpy()
        assert np.isnan(z[1]).all() and np.isfinite(z[[0, 2]]).all()
    x.requires_grad = True
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * values)


# ---- settings ----


def test_thread_counts():
    before = plm.num_threads()
    try:
        for bad in (0, -1, 257, 10**6):
            with pytest.raises(ValueError, match="from 1 to 256"):
                plm.set_num_threads(bad)
        x = Tensor(np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32))
        results = set()
        for n in (1, 2, 3, 5, 1, 2):
            plm.set_num_threads(n)
            assert plm.num_threads() == n
            results.add((x @ x + x.T).numpy().tobytes())
        assert len(results) == 1
    finally:
        plm.set_num_threads(before)


def run(code, expect=0, **env):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | env,
    )
    assert done.returncode == expect, done.stderr
    return done


def test_environment_variable_for_threads():
    code = "import plmcore as plm; plm.zeros(2); print(plm.num_threads())"
    assert run(code, PLMCORE_NUM_THREADS="3").stdout.strip() == "3"
    for bad in ("zero", "0", "-2", "3.5", ""):
        assert (
            "PLMCORE_NUM_THREADS must be a number from 1 to 256"
            in run(code, expect=1, PLMCORE_NUM_THREADS=bad).stderr
        )


# ---- interrupts ----


def interrupt(code, delay=0.3):
    """Runs code in a process, sends SIGINT a little after it said `ready`; how long it took to end by
    KeyboardInterrupt.
    """
    # A background job inherits an ignored SIGINT, and then Python installs no handler of its own.
    handler = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    with subprocess.Popen(
        [sys.executable, "-c", handler + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as p:
        assert p.stdout.readline().strip() == "ready", p.stderr.read()
        time.sleep(delay)
        start = time.perf_counter()
        p.send_signal(signal.SIGINT)
        try:
            out, err = p.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            p.kill()
            raise
        took = time.perf_counter() - start
    assert "KeyboardInterrupt" in err, (p.returncode, out, err)
    return took, out


def test_ctrl_c_stops_a_loop_of_ops():
    interrupt(
        """
        import plmcore as plm
        x = plm.ones(300, 300)
        print("ready", flush=True)
        while True:
            y = x @ x
        """
    )


def test_ctrl_c_stops_a_long_backward_and_the_process_goes_on():
    took, out = interrupt(
        """
        import plmcore as plm
        w = plm.full((256, 256), 0.01, requires_grad=True)
        y = plm.ones(256, 256)
        for _ in range(20000):
            y = y + w  # cheap to build, and the gradient of w is summed at every step
        try:
            print("ready", flush=True)
            while True:
                y.sum().backward(retain_graph=True)
        except KeyboardInterrupt:
            print("stopped", (plm.ones(2) * 2).tolist(), plm.grad_enabled(), flush=True)
            raise
        """
    )
    assert "stopped [2.0, 2.0] True" in out and took < 30


def test_ctrl_c_stops_a_program():
    interrupt(
        """
        import plmcore as plm
        def f(x):
            for _ in range(20000):
                x = x * 1.0001
            return x
        program = plm.trace(f, x=plm.spec("float32", "N"))
        x = plm.ones(100000)
        print("ready", flush=True)
        while True:
            program(x=x)
        """
    )


# ---- threads ----


def test_one_tensor_in_several_threads():
    x = Tensor(np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32), requires_grad=True)
    want = (x @ x).numpy().copy()
    errors = []

    def work(k):
        try:
            for i in range(60):
                y = x @ x
                assert np.array_equal(y.numpy(), want) and x.shape == (64, 64) and len(list(x[:3])) == 3
                if (i + k) % 3 == 0:
                    y.sum().backward()
                elif (i + k) % 3 == 1:
                    x.zero_grad()
                else:
                    g = x.grad
                    assert g is None or g.shape == (64, 64)
                np.asarray(x), repr(x), x.detach(), hash(x)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_threads_that_change_the_pool_while_others_compute():
    before, stop, errors = plm.num_threads(), threading.Event(), []
    x = Tensor(np.random.default_rng(0).standard_normal((200, 200)).astype(np.float32))
    want = (x @ x).numpy().copy()

    def work():
        try:
            while not stop.is_set():
                assert np.array_equal((x @ x).numpy(), want)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for i in range(40):
            plm.set_num_threads(1 + i % 4)
            time.sleep(0.002)
    finally:
        stop.set()
        for t in threads:
            t.join()
        plm.set_num_threads(before)
    assert not errors


# ---- forks ----

FORK = """
    import os, sys, threading, time
    import numpy as np
    import plmcore as plm
    plm.set_num_threads(4)
    values = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    x = plm.Tensor(values, requires_grad=True)

    def compute():
        x.zero_grad()
        y = (x @ x).tanh()
        y.sum().backward()
        return y.numpy().tobytes() + x.grad.numpy().tobytes()

    want = compute()  # the pool is running
    def child_is_right():
        pid = os.fork()
        if pid == 0:
            good = False
            try:
                good = compute() == want and plm.num_threads() == 4
                plm.set_num_threads(2)
                good = good and compute() == want
            finally:
                os._exit(0 if good else 1)
        deadline = time.time() + 60
        while time.time() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return status == 0
            time.sleep(0.005)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        return False
"""


def test_a_forked_child_computes():
    run(FORK + "\n    for _ in range(5):\n        assert child_is_right()\n    assert compute() == want\n")


def test_a_child_forked_while_other_threads_compute():
    run(
        FORK
        + """
    stop = threading.Event()
    def busy():
        while not stop.is_set():
            y = plm.randn(50, 40) * 2
            (y @ y.T).tanh()
            plm.spec("float32", "A%d" % (time.perf_counter_ns() % 1000))
    threads = [threading.Thread(target=busy) for _ in range(3)]
    for t in threads: t.start()
    try:
        results = [child_is_right() for _ in range(12)]
    finally:
        stop.set()
        for t in threads: t.join()
    assert all(results), results
    """
    )


def test_multiprocessing_fork():
    run(
        """
        import multiprocessing as mp
        import numpy as np
        import plmcore as plm
        x = plm.Tensor(np.ones((200, 200), np.float32))
        (x @ x).numpy()
        def f(i):
            return float((x @ x).sum().item() * i)
        if __name__ == "__main__":
            with mp.get_context("fork").Pool(2) as pool:
                assert pool.map(f, range(6)) == [200 ** 3 * i for i in range(6)]
        """
    )


def test_converting_a_size_runs_no_python():
    """Python code lets a pending Ctrl-C in, which a failed conversion would report as a TypeError."""

    class Size(int):
        def __str__(self):
            raise KeyboardInterrupt

        __repr__ = __str__

    x = plm.zeros(Size(2), Size(6))
    assert plm.ops.reshape(x, (Size(3), Size(4))).shape == (3, 4)
    assert [t.shape for t in plm.ops.split(x, (Size(2), Size(4)), 1)] == [(2, 2), (2, 4)]


# ---- leaving ----


def test_exit_with_live_tensors_graphs_and_threads():
    run(
        """
        import threading, time
        import numpy as np
        import plmcore as plm
        x = plm.ones(500, 500, requires_grad=True)
        y = (x @ x).tanh()
        shared = plm.from_numpy(np.ones(10, np.float32))
        keep = plm.recompute(lambda t: t * 2, x)
        def work():
            while True:
                (x @ x).tanh()
        def train():
            while True:
                plm.recompute(lambda t: (t @ t).tanh(), x).sum().backward()
        for f in (work, train):
            threading.Thread(target=f, daemon=True).start()
        class Late:
            def __del__(self):  # the last modules are torn down: ops still run on the main thread
                assert (x @ x)[0, 0].item() == 500
                plm.recompute(lambda t: t * 2, x).sum().backward()
        late = Late()
        late.me = late
        time.sleep(0.2)
        """
    )
