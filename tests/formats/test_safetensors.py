"""Safetensors: round trips, the layout of the file, shards, and files that break a rule."""

import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import plmcore as plm
import pytest
from hostile_safetensors import GOOD, HOSTILE, entry, pack
from plmcore import ops, safetensors

DTYPES = ["float64", "float32", "float16", ml_dtypes.bfloat16, "int64", "int32", "int8", "uint8", "bool"]


def array(dtype, shape, seed=0):
    values = np.random.default_rng(seed).integers(-100, 100, shape)
    if dtype == "bool":
        return values % 2 == 0
    return (values % 100 if dtype == "uint8" else values).astype(dtype)


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def written(tmp_path, data, name="f.safetensors"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


# ---- round trips ----


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0,), (4, 0, 2), (1, 2, 1, 2, 1, 2, 1, 3)], ids=str)
def test_round_trip(tmp_path, dtype, shape):
    path = tmp_path / "f.safetensors"
    want = array(dtype, shape)
    safetensors.write(path, {"x": want, "before": array("float32", (3,))})
    tensors, metadata = safetensors.read(path)
    assert list(tensors) and set(tensors) == {"x", "before"} and metadata == {}
    assert same(tensors["x"].numpy(), want) and tensors["x"].shape == shape


def test_bits_are_kept(tmp_path):
    nan = np.array([0x7FC00001, 0xFF800000, 0x80000000, 1], np.uint32).view(np.float32)
    safetensors.write(tmp_path / "f.safetensors", {"x": plm.Tensor(nan)})
    assert same(safetensors.read(tmp_path / "f.safetensors")[0]["x"].numpy(), nan)


def test_no_tensors(tmp_path):
    safetensors.write(tmp_path / "f.safetensors", {})
    assert safetensors.read(tmp_path / "f.safetensors") == ({}, {})


def test_metadata_and_names(tmp_path):
    metadata = {"format": "pt", "": "empty", "ключ": '日本語 "quoted" \\ \n\t\x01 \U0001f600'}
    names = ["", "a" * 100_000, "μ.weight", 'quote " \\ \n', "\U0001f600", "nul \0 inside", "metadata"]
    safetensors.write(tmp_path / "f.safetensors", {n: np.array([i]) for i, n in enumerate(names)}, metadata)
    tensors, found = safetensors.read(tmp_path / "f.safetensors")
    assert found == metadata and {n: t.item() for n, t in tensors.items()} == {
        n: i for i, n in enumerate(names)
    }


def test_strided_and_swapped_arrays(tmp_path):
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    safetensors.write(tmp_path / "f.safetensors", {"t": x.T, "s": x[:, ::2], "big": x.astype(">f4")})
    tensors = safetensors.read(tmp_path / "f.safetensors")[0]
    assert (
        same(tensors["t"].numpy(), np.ascontiguousarray(x.T))
        and same(tensors["s"].numpy(), x[:, ::2].copy())
        and same(tensors["big"].numpy(), x)
    )


def test_many_tensors(tmp_path):
    want = {f"layer.{i}.weight": np.full((2,), i, np.int32) for i in range(20_000)}
    safetensors.write(tmp_path / "f.safetensors", want)
    tensors = safetensors.read(tmp_path / "f.safetensors")[0]
    assert all(tensors[n].numpy()[0] == a[0] for n, a in want.items()) and len(tensors) == len(want)


# ---- the layout ----


def test_layout(tmp_path):
    path = tmp_path / "f.safetensors"
    safetensors.write(
        path,
        {str(np.dtype(d)): array(d, (3,)) for d in reversed(DTYPES)} | {"a": array("float32", (1,))},
        {"z": "1", "a": "2"},
    )
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert (8 + length) % 64 == 0
    header = json.loads(data[8 : 8 + length])
    assert list(header) == [
        "__metadata__",
        "int64",
        "float64",
        "a",
        "float32",
        "int32",
        "bfloat16",
        "float16",
        "int8",
        "uint8",
        "bool",
    ]
    assert list(header["__metadata__"]) == ["a", "z"]
    again = tmp_path / "again.safetensors"
    safetensors.write(again, dict(reversed(safetensors.read(path)[0].items())), {"a": "2", "z": "1"})
    assert again.read_bytes() == data


def test_tensors_lie_in_the_file(tmp_path):
    path = tmp_path / "f.safetensors"
    safetensors.write(path, {"x": np.zeros(1 << 20, np.float32), "y": np.zeros(8, np.int8)})
    before = plm.memory_stats()["allocations"]
    tensors = safetensors.read(path)[0]
    addresses = [t.numpy().__array_interface__["data"][0] for t in tensors.values()]
    assert addresses[1] - addresses[0] == 4 << 20 and addresses[0] % 64 == 0
    assert plm.memory_stats()["allocations"] == before


def test_writing_to_a_tensor_does_not_reach_the_file(tmp_path):
    path = tmp_path / "f.safetensors"
    safetensors.write(path, {"x": np.zeros(4, np.float32)})
    data = path.read_bytes()
    x = safetensors.read(path)[0]["x"]
    x.numpy()[:] = 7
    assert path.read_bytes() == data and x.numpy().sum() == 28
    assert safetensors.read(path)[0]["x"].numpy().sum() == 0


def test_a_tensor_outlives_its_file(tmp_path):
    path = tmp_path / "f.safetensors"
    want = array("float32", (1000,))
    safetensors.write(path, {"x": want, "y": want})
    x = safetensors.read(path)[0]["x"]
    safetensors.write(path, {"x": np.zeros(3, np.float32)})  # a new file under the name
    os.remove(path)
    assert same(x.numpy(), want) and same((x + x).numpy(), want + want)


@pytest.mark.parametrize("shift", range(1, 8))
def test_misaligned(tmp_path, shift):
    """Any length of the header is allowed; a tensor that lies askew is copied."""
    header = json.dumps(
        {
            "a": entry("F64", (3,), (0, 24)),
            "b": entry("I8", (3,), (24, 27)),
            "c": entry("F16", (2,), (27, 31)),
        }
    )
    header += " " * ((shift - len(header)) % 8)
    values = np.array([1.5, -2, 3e300]).tobytes() + bytes([1, 2, 3]) + np.array([1, -2], np.float16).tobytes()
    tensors = safetensors.read(written(tmp_path, pack(header, values)))[0]
    assert (
        tensors["a"].numpy().tolist() == [1.5, -2, 3e300]
        and tensors["b"].numpy().tolist() == [1, 2, 3]
        and tensors["c"].numpy().tolist() == [1, -2]
    )
    assert all(t.numpy().flags.aligned for t in tensors.values()) and (tensors["a"] * 2).numpy()[0] == 3


def test_bool_bytes(tmp_path):
    """Bytes other than 0 and 1 count as true, and are 1 from then on."""
    path = written(
        tmp_path,
        pack(
            {"m": entry("BOOL", (4,), (0, 4)), "n": entry("BOOL", (2,), (4, 6))}, bytes([0, 1, 2, 255, 1, 0])
        ),
    )
    tensors = safetensors.read(path)[0]
    assert tensors["m"].numpy().view(np.uint8).tolist() == [0, 1, 1, 1] and tensors["n"].numpy().tolist() == [
        True,
        False,
    ]
    assert ops.where(
        tensors["m"], plm.Tensor(np.ones(4, np.float32)), plm.Tensor(np.zeros(4, np.float32))
    ).numpy().tolist() == [0, 1, 1, 1]


def test_order_in_the_header_is_free(tmp_path):
    path = written(
        tmp_path,
        pack(
            {
                "late": entry("I8", (2,), (4, 6)),
                "early": entry("I32", (1,), (0, 4)),
                "none": entry("F32", (0,), (4, 4)),
            },
            bytes(range(6)),
        ),
    )
    tensors = safetensors.read(path)[0]
    assert list(tensors) == ["early", "none", "late"] and tensors["late"].numpy().tolist() == [4, 5]


# ---- files that break a rule ----


def test_enough_hostile_files():
    assert len(HOSTILE) >= 33


def test_the_seed_is_good(tmp_path):
    tensors, metadata = safetensors.read(written(tmp_path, GOOD))
    assert list(tensors) == ["a", "b", "c"] and metadata == {"k": "v"}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile(tmp_path, case):
    data, message = HOSTILE[case]
    path = written(tmp_path, data)
    with pytest.raises(plm.FormatError) as e:
        safetensors.read(path)
    assert message in str(e.value) and str(path) in str(e.value) and len(str(e.value)) < 600 + len(str(path))


def test_every_cut(tmp_path):
    for n in range(len(GOOD)):
        with pytest.raises(plm.FormatError):
            safetensors.read(written(tmp_path, GOOD[:n]))


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        safetensors.read(tmp_path / "none.safetensors")
    with pytest.raises(IsADirectoryError):
        plm._core.safetensors.read(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no model.safetensors and no model.safetensors.index.json"):
        safetensors.read(tmp_path)
    (tmp_path / "pytorch_model.bin").touch()
    with pytest.raises(FileNotFoundError, match="plmcore convert"):
        safetensors.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(plm.FormatError, match="not a regular file"):
        safetensors.read(tmp_path / "pipe")


def test_bad_arguments(tmp_path):
    path = tmp_path / "f.safetensors"
    x = np.zeros(2, np.float32)
    for tensors, error in [
        ({"__metadata__": x}, plm.ArgumentError),
        ({"x": [1.0]}, plm.DTypeError),
        ({"x": np.zeros(2, np.complex64)}, plm.DTypeError),
        ({"x": None}, plm.DTypeError),
    ]:
        with pytest.raises(error):
            safetensors.write(path, tensors)
    with pytest.raises(TypeError):
        safetensors.write(path, {"x": x}, {"k": 1})
    with pytest.raises(plm.ArgumentError, match="max_shard_bytes must be at least 1"):
        safetensors.write(path, {"x": x}, max_shard_bytes=0)
    assert list(tmp_path.iterdir()) == []


# ---- writing whole files ----


def test_a_failed_write_leaves_the_old_file(tmp_path):
    """A limit on the size of files stands in for a full disk."""
    path = tmp_path / "f.safetensors"
    safetensors.write(path, {"x": np.zeros(4, np.float32)})
    old = path.read_bytes()
    program = f"""
import resource, signal
import numpy as np
from plmcore import safetensors
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    safetensors.write({str(path)!r}, {{"x": np.zeros(100_000, np.float32)}})
except OSError as e:
    print("OSError", e.errno)
"""
    r = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ)
    assert r.stdout.startswith("OSError 27"), r.stderr
    assert path.read_bytes() == old and [p.name for p in tmp_path.iterdir()] == ["f.safetensors"]


def test_threads_write_one_path(tmp_path):
    path = tmp_path / "f.safetensors"
    failed = []

    def write(k):
        try:
            for _ in range(10):
                safetensors.write(path, {"x": np.full(1000, k, np.float32)})
                x = safetensors.read(path)[0]["x"].numpy()
                assert len(x) == 1000 and (x == x[0]).all()
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert failed == [] and [p.name for p in tmp_path.iterdir()] == ["f.safetensors"]


# ---- shards ----

SHARDED = {
    "a": np.arange(4, dtype=np.float32),
    "b": np.arange(8, dtype=np.float32),
    "c": np.arange(2, dtype=np.int64),
    "d": np.ones(1, bool),
}


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def equal(folder, want=SHARDED):
    tensors, metadata = safetensors.read(folder)
    return (
        metadata == {"format": "pt"}
        and tensors.keys() == want.keys()
        and all(same(tensors[n].numpy(), want[n]) for n in want)
    )


def test_shards(tmp_path):
    files = safetensors.write(tmp_path, SHARDED, {"format": "pt"}, max_shard_bytes=20)
    shard_names = [f"model-0000{k}-of-00003.safetensors" for k in (1, 2, 3)]
    assert [f.name for f in files] == [*shard_names, "model.safetensors.index.json"] and names(
        tmp_path
    ) == sorted(f.name for f in files)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index == {
        "metadata": {"total_size": 16 + 32 + 16 + 1},
        "weight_map": {"a": shard_names[0], "b": shard_names[1], "c": shard_names[2], "d": shard_names[2]},
    }
    assert equal(tmp_path) and equal(tmp_path / "model.safetensors.index.json")


def test_one_form_replaces_the_other(tmp_path):
    old = {"a": np.zeros(9, np.float32)}
    (tmp_path / "config.json").write_text("{}")
    safetensors.write(tmp_path, old, {"format": "pt"})
    safetensors.write(tmp_path, SHARDED, {"format": "pt"}, max_shard_bytes=20)
    assert equal(tmp_path) and "model.safetensors" not in names(tmp_path)
    safetensors.write(tmp_path, SHARDED, {"format": "pt"}, max_shard_bytes=40)
    assert equal(tmp_path)
    assert names(tmp_path) == [
        "config.json",
        *[f"model-0000{k}-of-00003.safetensors" for k in (1, 2, 3)],
        "model.safetensors.index.json",
    ]
    safetensors.write(tmp_path, SHARDED, {"format": "pt"}, max_shard_bytes=48)
    assert equal(tmp_path)
    assert names(tmp_path) == [
        "config.json",
        *[f"model-0000{k}-of-00002.safetensors" for k in (1, 2)],
        "model.safetensors.index.json",
    ]
    safetensors.write(tmp_path, old, {"format": "pt"}, max_shard_bytes=1000)
    assert equal(tmp_path, old) and names(tmp_path) == ["config.json", "model.safetensors"]


def test_the_single_file_goes_first(tmp_path):
    safetensors.write(tmp_path, SHARDED, {"format": "pt"})
    (tmp_path / "model.safetensors.index.json").write_text("damaged")
    assert equal(tmp_path)


def index(tmp_path, text):
    path = tmp_path / "model.safetensors.index.json"
    path.write_bytes(
        text if isinstance(text, bytes) else (text if isinstance(text, str) else json.dumps(text)).encode()
    )
    return path


INDEXES = {
    "empty": ("", "not valid JSON"),
    "a list": ([], "must be an object with an object 'weight_map'"),
    "no map": ({"metadata": {}}, "must be an object with an object 'weight_map'"),
    "map is a list": ({"weight_map": ["a"]}, "must be an object with an object 'weight_map'"),
    "file is a number": ({"weight_map": {"a": 1}}, "the file of 'a' must be a text, got 1"),
    "file is a list": ({"weight_map": {"a": ["one.safetensors"]}}, "must be a text"),
    "parent": ({"weight_map": {"a": "../one.safetensors"}}, "must be the name of a file beside the index"),
    "parents": (
        {"weight_map": {"a": "x/../../one.safetensors"}},
        "must be the name of a file beside the index",
    ),
    "backslash": (
        {"weight_map": {"a": "..\\one.safetensors"}},
        "must be the name of a file beside the index",
    ),
    "absolute": ({"weight_map": {"a": "/etc/passwd"}}, "must be the name of a file beside the index"),
    "dots": ({"weight_map": {"a": ".."}}, "must be the name of a file beside the index"),
    "nothing": ({"weight_map": {"a": ""}}, "must be the name of a file beside the index"),
    "zero byte": (
        {"weight_map": {"a": "one.safetensors\0.txt"}},
        "must be the name of a file beside the index",
    ),
    "listed twice": (
        '{"weight_map": {"a": "one.safetensors", "a": "one.safetensors"}}',
        "'a' is listed twice",
    ),
    "map twice": (
        '{"weight_map": {}, "weight_map": {"a": "one.safetensors"}}',
        "'weight_map' is listed twice",
    ),
    "listed but absent": (
        {"weight_map": {"a": "one.safetensors", "z": "one.safetensors"}},
        "says that 'z' is in 'one.safetensors', which does not",
    ),
    "in two files": (
        {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}},
        "'one.safetensors' and 'two.safetensors' both hold 'a'",
    ),
    "deep": ("[" * 200_000, "nested too deeply"),
    "bad UTF-8": (b'{"weight_map": {"\xff": "one.safetensors"}}', "not valid JSON"),
    "its own shard": ({"weight_map": {"a": "model.safetensors.index.json"}}, "cannot be read"),
}


@pytest.mark.parametrize("case", INDEXES)
def test_hostile_index(tmp_path, case):
    text, message = INDEXES[case]
    safetensors.write(tmp_path / "one.safetensors", {"a": np.zeros(1)})
    safetensors.write(tmp_path / "two.safetensors", {"a": np.ones(1), "b": np.ones(1)})
    path = index(tmp_path, text)
    with pytest.raises(plm.FormatError) as e:
        safetensors.read(tmp_path)
    assert message in str(e.value) and str(path) in str(e.value) and len(str(e.value)) < 1000


def test_missing_shard(tmp_path):
    index(tmp_path, {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})
    safetensors.write(tmp_path / "one.safetensors", {"a": np.zeros(1)})
    with pytest.raises(FileNotFoundError, match="lists 'two.safetensors', which the folder does not have"):
        safetensors.read(tmp_path)


def test_a_shard_may_be_a_link(tmp_path):
    """Caches of downloads keep the files elsewhere and link to them."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    safetensors.write(tmp_path / "blobs" / "x", {"a": np.arange(3)})
    (tmp_path / "snapshot" / "one.safetensors").symlink_to("../blobs/x")
    index(tmp_path / "snapshot", {"weight_map": {"a": "one.safetensors"}})
    assert safetensors.read(tmp_path / "snapshot")[0]["a"].numpy().tolist() == [0, 1, 2]


def test_fuzz():
    """A short run; .ci/nightly has a long one, under sanitizers."""
    import fuzz_safetensors

    read, refused = fuzz_safetensors.run(count=3000, seed=1)
    assert read > 50 and refused > 1000


# ---- one tensor at a time ----


def test_write_each(tmp_path):
    values = {
        "b": plm.Tensor(np.arange(64, dtype=np.int8).reshape(8, 8)),
        "a": plm.Tensor(np.arange(16, dtype=np.float32)),
        "odd": plm.Tensor(np.arange(3, dtype=np.int8)),
        "half": plm.Tensor(np.arange(5, dtype=np.float32), dtype="bfloat16"),
        "empty": plm.Tensor(np.zeros((0, 4), np.float32)),
        "one": plm.Tensor(np.float32(7)),
    }
    asked = []

    def value(name):
        asked.append(name)
        return values[name]

    specs = {n: (t.dtype, tuple(t.shape)) for n, t in values.items()}
    safetensors.write_each(tmp_path / "f.safetensors", specs, value, {"format": "pt"})
    tensors, metadata = safetensors.read(tmp_path / "f.safetensors")
    assert metadata == {"format": "pt"} and sorted(asked) == sorted(values)
    for name, t in values.items():
        assert tensors[name].dtype == t.dtype and np.array_equal(tensors[name].numpy(), t.numpy())
    assert all(tensors[n].numpy().ctypes.data % 64 == 0 for n in ("a", "b"))


def test_write_each_refuses_another_tensor_and_leaves_nothing(tmp_path):
    with pytest.raises(plm.ArgumentError, match=r"'a' must be float32 \[3\], got float32 \[4\]"):
        safetensors.write_each(
            tmp_path / "f", {"a": ("float32", (3,))}, lambda name: plm.Tensor(np.zeros(4, np.float32))
        )
    assert not list(tmp_path.iterdir())


def resident(name):
    """Bytes of a mapped file in this process's memory."""
    mappings = pathlib.Path("/proc/self/smaps").read_text().split(name)[1:]
    return sum(1024 * int(re.search(r"Rss:\s+(\d+)", m)[1]) for m in mappings)


def test_pages_can_be_let_go_and_come_back(tmp_path):
    """What was written to stays: it is nowhere else. Memory that is not a file's stays, too."""
    path = tmp_path / "released.safetensors"
    values = np.arange(1 << 20, dtype=np.float32)
    plm.safetensors.write(path, {"x": values})
    tensors, _ = plm.safetensors.read(path)
    x = tensors["x"]
    assert (
        x.numpy()[-1] == values[-1]
        and x.numpy().sum() == values.sum()
        and resident(path.name) > values.nbytes // 2
    )
    x.numpy()[500_000] = -7
    plm._core.safetensors.release(x)
    assert resident(path.name) < 100_000
    values[500_000] = -7
    np.testing.assert_array_equal(x.numpy(), values)
    own = plm.Tensor(values.copy())
    plm._core.safetensors.release(own)
    np.testing.assert_array_equal(own.numpy(), values)
