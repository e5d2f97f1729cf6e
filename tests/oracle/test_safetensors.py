"""Safetensors files against the reference package, both ways."""

import json

import ml_dtypes
import numpy as np
import pytest
from hostile_safetensors import HOSTILE, entry, pack
from plmcore import safetensors

reference = pytest.importorskip("safetensors")
torch = pytest.importorskip("torch")
from safetensors.torch import load_file, save_file  # noqa: E402

pytestmark = pytest.mark.oracle

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
SHAPES = [(), (3,), (2, 5), (0, 4), (1, 2, 3)]


def tensors(seed):
    torch.manual_seed(seed)
    return {
        f"{name}.{shape}": (torch.randn(shape) * 50).abs().to(dtype)
        for name, dtype in DTYPES.items()
        for shape in SHAPES
    }


def as_numpy(t):
    return t.view(torch.uint16).numpy().view(ml_dtypes.bfloat16) if t.dtype == torch.bfloat16 else t.numpy()


def test_we_read_theirs(tmp_path):
    want = tensors(0)
    save_file(want, tmp_path / "f.safetensors", {"format": "pt", "ключ": "値"})
    got, metadata = safetensors.read(tmp_path / "f.safetensors")
    assert metadata == {"format": "pt", "ключ": "値"} and got.keys() == want.keys()
    for name, t in want.items():
        a, b = got[name].numpy(), as_numpy(t)
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), name


def test_they_read_ours(tmp_path):
    want = tensors(1)
    safetensors.write(tmp_path / "f.safetensors", {n: as_numpy(t) for n, t in want.items()}, {"format": "pt"})
    got = load_file(tmp_path / "f.safetensors")
    assert got.keys() == want.keys() and all(
        got[n].dtype == t.dtype and torch.equal(got[n], t) for n, t in want.items()
    )
    with reference.safe_open(tmp_path / "f.safetensors", "pt") as f:
        assert f.metadata() == {"format": "pt"}


def test_same_order_and_values(tmp_path):
    """The same header but for its spaces, and the same bytes after it."""
    want = tensors(2)
    save_file(want, tmp_path / "theirs", {"format": "pt"})
    safetensors.write(tmp_path / "ours", {n: as_numpy(t) for n, t in want.items()}, {"format": "pt"})
    header, values = {}, {}
    for name in ("ours", "theirs"):
        data = (tmp_path / name).read_bytes()
        length = int.from_bytes(data[:8], "little")
        header[name], values[name] = json.loads(data[8 : 8 + length]), data[8 + length :]
    assert (
        list(header["ours"].items()) == list(header["theirs"].items()) and values["ours"] == values["theirs"]
    )


# What the reference accepts and we refuse, and why.
STRICTER = {
    "space first",  # the format says '{'
    "unknown member",  # nobody knows what it changes about the values
    "tensor twice",  # the format says that names do not repeat
    "metadata member twice",
    "dtype of another size",  # F8_E4M3, a dtype that plmcore does not have
    "huge beside a zero",
    "nine axes",  # plmcore's tensors have at most eight
}


@pytest.mark.parametrize("case", HOSTILE)
def test_the_reference_refuses_it_too(tmp_path, case):
    path = tmp_path / "f.safetensors"
    path.write_bytes(HOSTILE[case][0])
    try:
        load_file(path)
    except Exception:
        assert case not in STRICTER
    else:
        assert case in STRICTER


def test_what_the_reference_reads(tmp_path):
    """Free order of members, any spaces, tensors without values anywhere between others."""
    text = (
        '{ "b" : {"data_offsets":[4,6],"shape":[2],"dtype":"I8"},\n"a":'
        + json.dumps(entry("I32", (1,), (0, 4)))
        + ', "n":'
        + json.dumps(entry("F32", (0,), (4, 4)))
        + "}   "
    )
    path = tmp_path / "f.safetensors"
    path.write_bytes(pack(text, bytes(range(6))))
    want, got = load_file(path), safetensors.read(path)[0]
    assert got.keys() == want.keys() and all(np.array_equal(got[n].numpy(), want[n].numpy()) for n in want)


def test_large_file(tmp_path):
    x = torch.randn(300, 1001)
    save_file({"x": x, "y": x.half()}, tmp_path / "f.safetensors")
    got = safetensors.read(tmp_path / "f.safetensors")[0]
    assert np.array_equal(got["x"].numpy(), x.numpy()) and np.array_equal(got["y"].numpy(), x.half().numpy())
