import numpy as np
import philox
from optest import SEED, OpSpec
from plmcore import _core, ops

spec = OpSpec(
    op=ops.uniform,
    ref=lambda shape, low, high, dtype: (
        low + (high - low) * philox.uniform(SEED, 0, int(np.prod(shape))).reshape(shape)
    ),
    cases=[
        dict(shape=[2, 3], low=0.0, high=1.0, dtype="float32"),
        dict(shape=[7, 30], low=0.0, high=1.0, dtype="float32"),
        dict(shape=[769], low=-2.0, high=3.0, dtype="float64"),
        dict(shape=[0, 4], low=0.0, high=1.0, dtype="float32"),
        dict(shape=[], low=1.0, high=1.0, dtype="float32"),
        dict(shape=[300], low=-1.0, high=1.0, dtype="bfloat16"),
        dict(shape=[300], low=-1.0, high=1.0, dtype="float16"),
        dict(shape=[70001], low=0.0, high=1.0, dtype="float32"),
    ],
    errors=[
        (
            dict(shape=[2], low=1.0, high=0.0, dtype="float32"),
            r"uniform: low must not exceed high, got 1 and 0",
        ),
        (
            dict(shape=[2], low=0.0, high=1.0, dtype="int32"),
            r"uniform: needs a float dtype, got int32",
            TypeError,
        ),
    ],
    bench=dict(shape=[4096, 768], low=0.0, high=1.0, dtype="float32"),
    torch=lambda t, shape, low, high, dtype: t.empty(shape).uniform_(low, high),
)
test_all = spec.tests()


def test_traced_at_other_sizes():
    tracer = _core.Tracer()
    x = tracer.input("x", [_core.Dim("B"), 3], "float32")
    program = tracer.finish([], [ops.uniform(x.shape), ops.normal([x.shape[0]])])
    for B in (5, 0, 200):
        _core.manual_seed(2)
        expected = ops.uniform([B, 3]).numpy(), ops.normal([B]).numpy()
        _core.manual_seed(2)
        for a, b in zip(program.run([np.zeros((B, 3), np.float32)]), expected):
            assert np.array_equal(a.numpy(), b)


def test_known_answer_of_philox():
    assert [hex(w) for w in philox.philox(0, 0)] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    assert [hex(w) for w in philox.philox(2**64 - 1, 2**64 - 1)] == [
        hex(w) for w in philox.philox(-1, 2**64 - 1)
    ]
    _core.set_random_state(0, 0)  # block 0 is spread over the elements 0, 16, 32, 48
    u = ops.uniform([64]).numpy()[::16]
    assert np.array_equal(u, np.array([0x6627E8, 0xE169C5, 0xBC57AC, 0x9B00DB]) * np.float32(2.0**-24))


def test_words_of_far_blocks_and_any_seed():
    for seed, offset in ((2**40 + 17, 5), (-3, 2**33 - 7), (2**63 - 1, 2**32 - 40)):
        _core.set_random_state(seed, offset)
        assert np.array_equal(
            ops.uniform([1000]).numpy(), philox.uniform(seed, offset, 1000).astype(np.float32)
        )
        assert _core.random_state() == [seed, offset + 1000]


def test_seeds_repeat_and_streams_are_disjoint():
    _core.manual_seed(11)
    first = [ops.uniform([n]).numpy() for n in (1, 17, 64, 500)]
    _core.manual_seed(11)
    for a in first:
        assert np.array_equal(a, ops.uniform([a.size]).numpy())
    everything = np.concatenate(first)
    assert np.unique(everything).size > everything.size - 2  # 24 bits: one chance meeting at most
    _core.manual_seed(12)
    assert not np.array_equal(first[3], ops.uniform([500]).numpy())


def test_statistics():
    _core.manual_seed(0)
    u = ops.uniform([1 << 20]).numpy().astype(np.float64)
    assert u.min() >= 0 and u.max() < 1
    assert abs(u.mean() - 0.5) < 4 * np.sqrt(1 / 12 / u.size)
    counts = np.histogram(u, 256, (0, 1))[0]
    # Chi squared.
    assert abs(((counts - u.size / 256) ** 2).sum() / (u.size / 256) - 255) < 4 * np.sqrt(2 * 255)
    for lag in (1, 4, 16, 64):
        assert abs(np.corrcoef(u[:-lag], u[lag:])[0, 1]) < 4 / np.sqrt(u.size)
