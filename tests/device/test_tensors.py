"""Tensors on devices: names, copies, gradients between devices, DLPack, and what is refused."""

import os
import pathlib
import subprocess
import sys

import device_plugin
import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, _core, ops


def on(device, values, **options):
    return Tensor(np.asarray(values, "f4"), device=device, **options)


@pytest.mark.parametrize(("name", "spelled"), [("test", "test"), ("test:0", "test"), ("test:1", "test:1")])
def test_names(name, spelled):
    x = on(name, [1, 2])
    assert x.device == spelled and (spelled in repr(x)) and x.to("cpu").device == "cpu"
    assert x.to(name).numpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tpu", r"there is no device 'tpu': use \"cpu\", \"cuda\" or \"cuda:1\"; the plug-in of another is"),
        ("test:2", r"there is no device 'test:2': 2 can be used here, counted from 0"),
        ("cpu:1", r"there is no device 'cpu:1': the CPU is one device"),
        ("test:", r"a device is named like \"cpu\", \"cuda\" or \"cuda:1\", got 'test:'"),
        ("Test", r"a device is named like"),
        ("../x", r"a device is named like"),
    ],
)
def test_devices_that_do_not_exist(name, message):
    for use in (lambda: on(name, [1]), lambda: plm.zeros(2, device=name), lambda: plm.memory_stats(name)):
        with pytest.raises(_core.DeviceError, match=message):
            use()


def test_operands_of_two_devices():
    with pytest.raises(_core.DeviceError, match="add: inputs are on different devices, test and test:1"):
        ops.add(on("test", [1]), on("test:1", [2]))
    with pytest.raises(_core.DeviceError, match=r"cpu and test; move one with .to\(\"cpu\"\)"):
        ops.add(on("cpu", [1]), on("test", [2]))


def test_a_gradient_goes_back_over_devices():
    x = on("test:1", [1, 2, 3], requires_grad=True)
    y = ops.mul(x.to("test"), x.to("test"))
    y.to("cpu").sum().backward()
    assert x.grad.device == "test:1" and x.grad.numpy().tolist() == [2, 4, 6]


def test_each_has_its_own_memory():
    before = {d: plm.memory_stats(d)["in_use"] for d in ("test", "test:1")}
    x = on("test:1", np.zeros(1000))
    assert plm.memory_stats("test:1")["in_use"] >= before["test:1"] + x.nbytes
    assert plm.memory_stats("test")["in_use"] == before["test"]
    _core.set_memory_cap(plm.memory_stats("test:1")["reserved"] + 4096, "test:1")
    try:
        with pytest.raises(MemoryError, match="test:1: cannot allocate .* the cap set by set_memory_cap"):
            on("test:1", np.zeros(1 << 20))
        on("test", np.zeros(1 << 20))
    finally:
        _core.set_memory_cap(0, "test:1")


def test_dlpack_keeps_the_device():
    x = on("test", [[1, 2], [3, 4]])
    assert x.__dlpack_device__() == (12, 0)
    y = _core.from_dlpack(x)
    assert y.device == "test" and y.numpy().tolist() == [[1, 2], [3, 4]]
    np.testing.assert_array_equal(np.from_dlpack(x.to("cpu")), [[1, 2], [3, 4]])
    assert np.from_dlpack(x, device="cpu").tolist() == [[1, 2], [3, 4]]
    with pytest.raises(_core.DeviceError, match="dl_device asks for another device"):
        x.__dlpack__(dl_device=(2, 0))


# ---- errors in data come at the next wait ----


def test_the_first_of_two_faults_is_raised_once():
    table = on("test", np.ones((4, 2)))
    ops.embedding(table, Tensor([5], device="test"))
    later = ops.embedding(table, Tensor([[0, 9]], device="test"))
    with pytest.raises(IndexError, match=r"embedding: index 5 at position \[0\] is out of range"):
        later.numpy()
    assert ops.add(table, table).numpy().sum() == 16


IMPORTS = "import numpy as np, plmcore as plm\nfrom plmcore import Tensor, ops"


def run(program, **environment):
    here = {"PYTHONPATH": str(pathlib.Path(plm.__file__).parent.parent)}
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import numpy as np, plmcore as plm\nfrom plmcore import Tensor, ops\n" + program,
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | here | environment,
    )


LATE = """
table = Tensor(np.ones((4, 2), "f4"), device="test")
try: y = ops.embedding(table, Tensor([5], device="test")); print("called")
except IndexError as e: print("at the call", e)
"""


def test_errors_at_the_call_on_demand():
    assert run(LATE).stdout == "called\n"
    assert run(LATE, PLMCORE_TEST_SYNC="1").stdout.startswith("at the call embedding: index 5")


def test_a_touch_by_the_host_names_the_tensor():
    done = run(
        "import ctypes\n"
        "x = ops.softmax(Tensor(np.ones((2, 3), 'f4'), device='test'))\n"
        "capsule = x.__dlpack__()\n"
        "get = ctypes.pythonapi.PyCapsule_GetPointer; get.restype = ctypes.c_void_p\n"
        "get.argtypes = [ctypes.py_object, ctypes.c_char_p]\n"
        "data = ctypes.c_void_p.from_address(get(capsule, b'dltensor')).value\n"
        "print(ctypes.c_float.from_address(data).value)\n"
    )
    assert done.returncode < 0
    assert "device test:0: the host touched the tensor float32[2, 3] that softmax wrote" in done.stderr


# ---- plug-ins that do not fit ----


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("-DTEST_VERSION=3", "was built for another version of plmcore; install the same version of both"),
        ('-DTEST_NAME="other"', "is a plug-in for the device 'other', not 'test'"),
    ],
)
def test_other_plugins(change, message, tmp_path):
    library = device_plugin.compiled(tmp_path / "libother.so", change)
    done = run("print(plm._core.device_problem('test'))", PLMCORE_TEST_PLUGIN=str(library))
    assert done.stdout.strip() == f"{library} {message}"
