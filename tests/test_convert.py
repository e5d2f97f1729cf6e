"""plmcore convert: files of torch.save, made here by hand, and pickles that want to do more than rebuild
tensors.
"""

import io
import json
import os
import pickle
import struct
import subprocess
import zipfile

import installed
import ml_dtypes
import numpy as np
import plmcore as plm
import pytest
from plmcore import safetensors
from plmcore.cli import convert
from plmcore.formats import torch_file, torch_pickle

# ---- an assembler for the pickles of torch.save ----


def text(s):
    return b"X" + struct.pack("<I", len(s.encode())) + s.encode()


def integer(n):
    size = n.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + n.to_bytes(size, "little", signed=True)


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def group(*items):
    return b"(" + b"".join(items) + b"t"


ORDERED = name("collections", "OrderedDict") + b")R"
REBUILD = name("torch._utils", "_rebuild_tensor_v2")


def storage(kind="FloatStorage", key="0", count=6, *view):
    return group(text("storage"), name("torch", kind), text(key), text("cpu"), integer(count), *view) + b"Q"


def tensor(store=None, offset=0, size=(2, 3), stride=(3, 1), view=()):
    sizes, strides = (group(*map(integer, n)) for n in (size, stride))
    return REBUILD + group(store or storage(), integer(offset), sizes, strides, b"\x89", ORDERED) + b"R"


def state(**members):
    return b"\x80\x02" + ORDERED + b"(" + b"".join(text(k) + v for k, v in members.items()) + b"u."


SIX = np.arange(6, dtype=np.float32)


def archive(data, storages=None, compression=zipfile.ZIP_STORED, **more):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as z:
        for member, content in {
            "data.pkl": data,
            **{f"data/{k}": v for k, v in (storages or {"0": SIX.tobytes()}).items()},
            **more,
        }.items():
            z.writestr(f"archive/{member}", content)
    return out.getvalue()


MAGIC = b"\x80\x02" + integer(torch_file.LEGACY_MAGIC) + b"."
SYSTEM = b"\x80\x02}" + text("little_endian") + b"\x88s."


def legacy(
    data, storages=None, magic=MAGIC, version=b"\x80\x02" + integer(1001) + b".", system=SYSTEM, keys=None
):
    storages = {"0": (6, SIX.tobytes())} if storages is None else storages
    listed = b"\x80\x02](" + b"".join(text(k) for k in (keys or storages)) + b"e."
    return (
        magic
        + version
        + system
        + data
        + listed
        + b"".join(struct.pack("<q", n) + v for n, v in storages.values())
    )


def read(tmp_path, data):
    path = tmp_path / "pytorch_model.bin"
    path.unlink(missing_ok=True)  # cutting the old one short makes some file systems write to the disk
    path.write_bytes(data)
    return torch_file.read(path)


def refused(tmp_path, data, message):
    with pytest.raises(plm.FormatError) as e:
        read(tmp_path, data)
    assert (
        message in str(e.value)
        and "pytorch_model.bin' cannot be read: " in str(e.value)
        and len(str(e.value)) < 1000
    )


# ---- what is read ----


@pytest.mark.parametrize("pack", [archive, legacy])
def test_views_of_one_storage(tmp_path, pack):
    parameter = name("torch._utils", "_rebuild_parameter") + group(tensor(), b"\x88", ORDERED) + b"R"
    got = read(
        tmp_path,
        pack(
            state(
                a=tensor(),
                t=tensor(size=(3, 2), stride=(1, 3)),
                tail=tensor(offset=4, size=(2,), stride=(1,)),
                step=tensor(offset=1, size=(3,), stride=(2,)),
                repeated=tensor(size=(2, 2), stride=(0, 1)),
                scalar=tensor(offset=5, size=(), stride=()),
                none=tensor(offset=6, size=(0, 3), stride=(3, 1)),
                row=tensor(size=(1, 6), stride=(77, 1)),
                parameter=parameter,
            )
        ),
    )
    x = SIX.reshape(2, 3)
    want = {
        "a": x,
        "t": x.T,
        "tail": SIX[4:],
        "step": SIX[1::2],
        "repeated": np.array([[0, 1], [0, 1]]),
        "scalar": np.array(5),
        "none": np.empty((0, 3)),
        "row": SIX[None],
        "parameter": x,
    }
    assert got.keys() == want.keys()
    for k in want:
        assert (
            got[k].dtype == np.float32 and got[k].shape == want[k].shape and np.array_equal(got[k], want[k])
        ), k


@pytest.mark.parametrize(
    "kind, dtype",
    [
        ("Double", "float64"),
        ("Float", "float32"),
        ("Half", "float16"),
        ("BFloat16", ml_dtypes.bfloat16),
        ("Long", "int64"),
        ("Int", "int32"),
        ("Char", "int8"),
        ("Byte", "uint8"),
    ],
)
def test_dtypes(tmp_path, kind, dtype):
    want = np.array([1, 2, 100, 7, 0, 3]).astype(dtype)
    for data in (
        archive(state(x=tensor(storage(kind + "Storage"))), {"0": want.tobytes()}),
        legacy(state(x=tensor(storage(kind + "Storage"))), {"0": (6, want.tobytes())}),
    ):
        got = read(tmp_path, data)["x"]
        assert got.dtype == want.dtype and np.array_equal(got.ravel(), want)


def test_bool_bytes(tmp_path):
    got = read(
        tmp_path, archive(state(x=tensor(storage("BoolStorage"))), {"0": bytes([0, 1, 2, 255, 0, 1])})
    )["x"]
    assert got.view(np.uint8).ravel().tolist() == [0, 1, 1, 1, 0, 1]


def test_legacy_view_of_a_storage(tmp_path):
    view = storage("FloatStorage", "0", 6, group(text("v"), integer(2), integer(3)))
    assert read(tmp_path, legacy(state(x=tensor(view, 1, (2,), (1,)))))["x"].tolist() == [3, 4]
    refused(tmp_path, legacy(state(x=tensor(view, 2, (2,), (1,)))), "reaches element 3 of a storage of 3")
    outside = storage("FloatStorage", "0", 6, group(text("v"), integer(4), integer(3)))
    refused(tmp_path, legacy(state(x=tensor(outside))), "does not lie in it")


def test_versions_of_modules_are_left_out(tmp_path):
    """state_dict() carries them as an attribute of its OrderedDict."""
    data = state(x=tensor())[:-1] + b"}" + text("_metadata") + ORDERED + b"sb."
    assert list(read(tmp_path, archive(data))) == ["x"]


def test_python_2(tmp_path):
    pairs = b"]]" + b"U\x01x" + b"a" + tensor() + b"aa"
    assert list(
        read(tmp_path, archive(b"\x80\x02" + name("collections", "OrderedDict") + pairs + b"\x85R."))
    ) == ["x"]


def test_memo_and_newer_protocols(tmp_path):
    frame = b"\x80\x04\x95" + struct.pack("<Q", 0)
    stacked = b"\x8c\x0ctorch._utils\x8c\x12_rebuild_tensor_v2\x93\x94"
    rest = group(storage(), integer(0), group(integer(6)), group(integer(1)), b"\x89", ORDERED) + b"R"
    data = frame + b"}(" + text("x") + stacked + rest + text("y") + b"h\x00" + rest + b"u."
    got = read(tmp_path, archive(data))
    assert got["x"].tolist() == got["y"].tolist() == SIX.tolist()


def test_storages_are_mapped(tmp_path):
    got = read(tmp_path, archive(state(a=tensor(), b=tensor())))
    assert np.shares_memory(got["a"], got["b"]) and not got["a"].flags.writeable


# ---- what is refused ----

GLOBALS = [
    ("os", "system"),
    ("posix", "system"),
    ("subprocess", "Popen"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "getattr"),
    ("builtins", "dict"),
    ("__builtin__", "eval"),
    ("nt", "system"),
    ("sys", "exit"),
    ("runpy", "_run_code"),
    ("pickle", "loads"),
    ("torch", "load"),
    ("torch.hub", "load"),
    ("torch._utils", "_rebuild_tensor"),
    ("torch._utils", "_rebuild_tensor_v3"),
    ("torch", "ShortStorage"),
    ("torch.storage", "_load_from_bytes"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("collections", "OrderedDict.fromkeys"),
    ("collections", "defaultdict"),
    ("plmcore.formats.torch_pickle", "rebuild_tensor"),
    ("torch._utils", "_rebuild_tensor_v2.__globals__"),
    ("", ""),
    ("os\x00", "system"),
]


@pytest.mark.parametrize("pack", [archive, legacy])
@pytest.mark.parametrize("module, attribute", GLOBALS)
def test_globals(tmp_path, module, attribute, pack):
    full = repr(f"{module}.{attribute}")
    call = group(text("true")) + b"R"
    refused(
        tmp_path,
        pack(state(x=name(module, attribute) + call)),
        f"it uses the global {full}; only those that rebuild tensors",
    )
    stacked = text(module) + text(attribute) + b"\x93"
    refused(tmp_path, pack(state(x=stacked + call)), f"it uses the global {full}")


class Payload:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_run(tmp_path, protocol):
    target = tmp_path / "run"
    data = pickle.dumps({"x": Payload(target)}, protocol)
    refused(tmp_path, archive(data), "pickle, byte")
    refused(tmp_path, legacy(data), "pickle, byte")
    refused(tmp_path, legacy(state(x=tensor()), magic=MAGIC, system=data), "pickle, byte")
    assert not target.exists()
    pickle.loads(data)  # the payload is live
    assert target.exists()


CALL = REBUILD + group() + b"R"
PICKLES = {
    "nothing": (b"", "cut off"),
    "stop only": (b".", "takes a value that is not there"),
    "protocol 1": (b"\x80\x01}.", "protocol 1"),
    "protocol 255": (b"\x80\xff}.", "protocol 255"),
    "unknown opcode": (b"\x80\x02\xff.", "the opcode b'\\xff'"),
    "INST": (b"(ios\nsystem\n.", "the opcode b'i'"),
    "OBJ": (b"(cos\nsystem\no.", "it uses the global 'os.system'"),
    "NEWOBJ": (name("collections", "OrderedDict") + b")\x81.", "an object of what is not a known class"),
    "NEWOBJ_EX": (name("collections", "OrderedDict") + b")}\x92.", "the opcode b'\\x92'"),
    "EXT1": (b"\x82\x01.", "the opcode b'\\x82'"),
    "PERSID": (b"P0\n.", "the opcode b'P'"),
    "global without an end": (b"cos\nsystem", "cut off"),
    "global of a long name": (b"c" + b"o" * 300 + b"\nsystem\n.", "name of a global is too long"),
    "global of lists": (b"]]\x93.", "must be a text"),
    "laughing global": (b"]" + b"q\x00h\x00\x86" * 200 + b"]\x93.", "must be a text"),
    "reduce of a text": (text("os.system") + b")R.", "calls what is not a function"),
    "reduce of a storage type": (name("torch", "FloatStorage") + b")R.", "calls what is not a function"),
    "reduce of a result": (state(x=tensor() + b")R"), "calls what is not a function"),
    "nested reduce": (state(x=REBUILD + REBUILD + group() + b"RR"), "with 0 arguments"),
    "reduce with a list": (REBUILD + b"]R.", "calls what is not a function"),
    "too few arguments": (CALL + b".", "with 0 arguments"),
    "too many arguments": (REBUILD + group(*[b"N"] * 20) + b"R.", "with 20 arguments"),
    "tensor of no storage": (REBUILD + group(text("x"), *[b"N"] * 5) + b"R.", "needs a storage, got a str"),
    "parameter of no tensor": (
        name("torch._utils", "_rebuild_parameter") + group(ORDERED, b"\x89", ORDERED) + b"R.",
        "needs a tensor, got a dict",
    ),
    "OrderedDict of a text": (
        name("collections", "OrderedDict") + group(text("ab")) + b"R.",
        "made of pairs",
    ),
    "build on a function": (REBUILD + b"}b.", "adds to a dict that is not there"),
    "build on a storage type": (
        name("torch", "FloatStorage") + group(b"N", b"}" + text("dtype") + text("x") + b"s") + b"b.",
        "adds to a dict",
    ),
    "items for a list": (b"](" + text("a") + b"Nu.", "adds to a dict"),
    "append to a dict": (b"}Na.", "adds to a list"),
    "odd items": (b"}(" + text("a") + b"u.", "a key has no value"),
    "key is a list": (b"}]Ns.", "a key must be a text or an integer, got a list"),
    "key is a tuple": (b"})Ns.", "a key must be a text or an integer, got a tuple"),
    "no mark": (b"t.", "a mark that is not there"),
    "no memo": (b"h\x05.", "uses the value 5 before it is there"),
    "text beyond the end": (b"X\xff\xff\xff\xffabc", "cut off"),
    "long text beyond the end": (b"\x8d" + b"\xff" * 8 + b"abc", "cut off"),
    "text of bad UTF-8": (b"X\x01\0\0\0\xff.", "not valid UTF-8"),
    "deep lists": (b"]" + b"]" * 100_000 + b"a" * 100_000 + b".", "must hold a state dict, got a list"),
    "deep marks": (b"(" * 100_000 + b".", "takes a value that is not there"),
    "list inside itself": (b"]q\x00h\x00a.", "must hold a state dict, got a list"),
    "storage is a text": (text("0") + b"Q.", "not a storage of a known type"),
    "storage is a module": (
        group(text("module"), text("x"), text("y")) + b"Q.",
        "not a storage of a known type",
    ),
    "storage of a type by name": (
        group(text("storage"), text("FloatStorage"), text("0"), text("cpu"), integer(6)) + b"Q.",
        "not a storage of a known type",
    ),
    "storage with a number as key": (
        group(text("storage"), name("torch", "FloatStorage"), integer(0), text("cpu"), integer(6)) + b"Q.",
        "not a storage",
    ),
    "storage with no elements": (storage(count=-6) + b".", "not a storage of a known type"),
    "state is a tensor": (b"\x80\x02" + tensor() + b".", "must hold a state dict, got a TensorRecord"),
    "nested state": (state(model=ORDERED), "nothing else, got a dict as 'model'"),
    "number in the state": (state(x=tensor(), epoch=integer(3)), "nothing else, got a int as 'epoch'"),
    "number as a name": (
        b"\x80\x02}" + integer(3) + tensor() + b"s.",
        "nothing else, got a TensorRecord as '3'",
    ),
    "size is a text": (
        state(
            x=REBUILD
            + group(storage(), integer(0), group(text("2")), group(integer(1)), b"\x89", ORDERED)
            + b"R"
        ),
        "integers from 0",
    ),
    "negative size": (state(x=tensor(size=(-2, 3))), "integers from 0"),
    "negative stride": (state(x=tensor(stride=(-3, 1))), "integers from 0"),
    "negative offset": (state(x=tensor(offset=-1)), "integers from 0"),
    "more sizes than strides": (state(x=tensor(size=(2, 3), stride=(1,))), "as many sizes as strides"),
    "offset outside": (state(x=tensor(offset=1)), "the tensor 'x': it reaches element 6 of a storage of 6"),
    "stride outside": (state(x=tensor(stride=(4, 1))), "it reaches element 6 of a storage of 6"),
    "offset far outside": (state(x=tensor(offset=2**200)), "of a storage of 6"),
    "size far outside": (state(x=tensor(size=(2**200, 3))), "far more than the file"),
    "repeated beyond reason": (state(x=tensor(size=(10**6, 10**6), stride=(0, 0))), "far more than the file"),
    "many times beyond reason": (
        state(**{f"x{k}": tensor(size=(10**6,), stride=(0,)) for k in range(20)}),
        "far more than the file",
    ),
    "huge beside a zero": (state(x=tensor(size=(2**40, 0, 2**40), stride=(0, 0, 0))), "too large"),
    "nine axes": (state(x=tensor(size=(1,) * 9, stride=(1,) * 9)), "9 axes"),
    "storage of another count": (state(x=tensor(storage(count=7))), "must have 7 float32, got 24 bytes"),
    "storage of another type": (
        state(x=tensor(storage("DoubleStorage"))),
        "must have 6 float64, got 24 bytes",
    ),
    "storage that is missing": (state(x=tensor(storage(key="1"))), "'archive/data/1' is missing"),
    "storage elsewhere": (state(x=tensor(storage(key="../../etc/passwd"))), "is missing"),
}


@pytest.mark.parametrize("case", PICKLES)
def test_pickles(tmp_path, case):
    data, message = PICKLES[case]
    refused(tmp_path, archive(data), message)


def test_a_pickle_that_is_too_long(tmp_path, monkeypatch):
    data = state(**{f"x{k}": tensor() for k in range(100)})
    monkeypatch.setattr(torch_pickle, "MAX_BYTES", 1000)
    refused(tmp_path, archive(data), "at most 1000 are allowed")
    refused(tmp_path, legacy(data), "more than 1000 bytes")


GOOD = state(x=tensor())
BIG_ENDIAN = b"\x80\x02}" + text("little_endian") + b"\x89s."
FILES = {
    "empty": (b"", "neither of the two formats"),
    "text": (b"hello, world, this is no file of torch", "neither of the two formats"),
    "a lone pickle": (GOOD, "neither of the two formats"),
    "tar": (b"storages".ljust(512, b"\0"), "neither of the two formats"),
    "no data.pkl": (
        archive(GOOD).replace(b"data.pkl", b"data.txt"),
        "must have one data.pkl in a folder, got 0",
    ),
    "compressed": (archive(GOOD, compression=zipfile.ZIP_DEFLATED), "compressed or encrypted"),
    "big-endian": (archive(GOOD, byteorder=b"big"), "big-endian"),
    "zip header only": (b"PK\x03\x04" + bytes(60), "the zip archive is damaged"),
    "legacy of another number": (
        legacy(GOOD, magic=b"\x80\x02" + integer(torch_file.LEGACY_MAGIC + 1) + b"."),
        "neither of the two formats",
    ),
    "legacy of another version": (
        legacy(GOOD, version=b"\x80\x02" + integer(1002) + b"."),
        "format must be 1001, got 1002",
    ),
    "legacy version is a list": (legacy(GOOD, version=b"\x80\x02]."), "format must be 1001, got no number"),
    "legacy big-endian": (legacy(GOOD, system=BIG_ENDIAN), "big-endian"),
    "legacy without storages": (legacy(GOOD, {}), "the storage '0' is missing"),
    "legacy storage unknown": (legacy(GOOD, keys=["7"]), "belongs to the storage '7'"),
    "legacy storage twice": (legacy(GOOD, keys=["0", "0"]), "belongs to the storage '0'"),
    "legacy storage cut": (legacy(GOOD)[:-1], "cut off in the storage '0'"),
    "legacy storage without a count": (legacy(GOOD)[:-26], "cut off before the storage '0'"),
    "legacy count too large": (legacy(GOOD, {"0": (2**62, b"")}), "cut off in the storage '0'"),
    "legacy count negative": (legacy(GOOD, {"0": (-(2**62), b"")}), "cut off in the storage '0'"),
    "legacy count of another size": (
        legacy(GOOD, {"0": (5, bytes(20))}),
        "must have 6 float32, got 20 bytes",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_files(tmp_path, case):
    refused(tmp_path, *FILES[case])


@pytest.mark.parametrize("data", [archive(GOOD), legacy(GOOD)], ids=["zip", "legacy"])
def test_every_cut(tmp_path, data):
    for n in range(len(data)):
        with pytest.raises(plm.FormatError):
            read(tmp_path, data[:n])


@pytest.mark.parametrize("data", [archive(GOOD), legacy(GOOD)], ids=["zip", "legacy"])
def test_every_damaged_byte(tmp_path, data):
    """Either an error of one type, or tensors inside the file."""
    for at in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            try:
                got = read(tmp_path, data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :])
            except plm.FormatError:
                continue
            assert all(a.nbytes <= len(data) and a.tobytes() is not None for a in got.values())


def test_two_members_of_one_name(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("archive/data.pkl", GOOD)
        with pytest.warns(UserWarning):
            z.writestr("archive/data.pkl", GOOD)
    refused(tmp_path, out.getvalue(), "two members of one name")


# ---- the command ----


def command(*args):
    return subprocess.run(
        [*installed.COMMAND, "convert", *map(str, args)], capture_output=True, text=True, env=os.environ
    )


def model_directory(folder):
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert"}')
    (folder / "vocab.txt").write_text("[PAD]\n")
    (folder / "training_args.bin").write_bytes(b"?")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("{}")
    return folder


def test_directory(tmp_path):
    source, out = model_directory(tmp_path / "in"), tmp_path / "new" / "out"
    (source / "pytorch_model.bin").write_bytes(archive(state(**{"a.weight": tensor(), "a.tied": tensor()})))
    r = command(source, out)
    assert r.returncode == 0 and r.stderr == "" and "model.safetensors" in r.stdout
    assert sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()) == [
        "1_Pooling/config.json",
        "config.json",
        "model.safetensors",
        "vocab.txt",
    ]
    tensors, metadata = safetensors.read(out)
    assert (
        metadata == {"format": "pt"}
        and set(tensors) == {"a.weight", "a.tied"}
        and tensors["a.tied"].numpy().ravel().tolist() == SIX.tolist()
    )


def test_in_place(tmp_path):
    source = model_directory(tmp_path / "in")
    (source / "pytorch_model.bin").write_bytes(legacy(GOOD))
    assert convert.convert(source, source) == [source / "model.safetensors"]
    assert list(safetensors.read(source)[0]) == ["x"] and (source / "vocab.txt").exists()


def test_file(tmp_path):
    (tmp_path / "w.bin").write_bytes(archive(GOOD))
    assert convert.convert(tmp_path / "w.bin", tmp_path / "w.safetensors") == [tmp_path / "w.safetensors"]
    assert list(safetensors.read(tmp_path / "w.safetensors")[0]) == ["x"]


def shards(folder, weight_map):
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": weight_map}))


def test_shards(tmp_path):
    source = model_directory(tmp_path / "in")
    for k in "ab":
        (source / f"{k}.bin").write_bytes(archive(state(**{k: tensor()})))
    shards(source, {"a": "a.bin", "b": "b.bin"})
    convert.convert(source, tmp_path / "one")
    assert set(safetensors.read(tmp_path / "one" / "model.safetensors")[0]) == {"a", "b"}
    assert not list((tmp_path / "one").glob("*.index.json"))
    convert.convert(source, tmp_path / "two", max_shard_bytes=24)
    assert len(list((tmp_path / "two").glob("model-*.safetensors"))) == 2 and set(
        safetensors.read(tmp_path / "two")[0]
    ) == {"a", "b"}
    shards(source, {"a": "../in/a.bin"})
    with pytest.raises(plm.FormatError, match="must be the name of a file beside the index"):
        convert.convert(source, tmp_path / "three")
    shards(source, {"a": "a.bin", "c": "c.bin"})
    with pytest.raises(FileNotFoundError, match="lists 'c.bin'"):
        convert.convert(source, tmp_path / "three")


def test_errors_are_one_line(tmp_path):
    source = model_directory(tmp_path / "in")
    for args, message in [
        ((source, tmp_path / "out"), "has no pytorch_model.bin"),
        ((tmp_path / "none", tmp_path / "out"), "No such file"),
    ]:
        r = command(*args)
        assert r.returncode == 1 and message in r.stderr and len(r.stderr.splitlines()) == 1
    (source / "model.safetensors").touch()
    assert "needs no conversion" in command(source, tmp_path / "out").stderr
    (source / "pytorch_model.bin").write_bytes(archive(pickle.dumps({"x": Payload(tmp_path / "run")}, 2)))
    r = command(source, tmp_path / "out")
    assert (
        r.returncode == 1
        and "posix.mkdir" in r.stderr
        and not (tmp_path / "run").exists()
        and not (tmp_path / "out").exists()
    )
