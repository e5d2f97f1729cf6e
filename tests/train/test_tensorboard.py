import sys
import types

import pytest
from plmcore import train
from plmcore.train import tensorboard


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'plmcore\[tensorboard\]'"):
        tensorboard.writer(tmp_path)


def test_numbers_become_scalars(monkeypatch, tmp_path):
    seen = []

    class SummaryWriter:
        def __init__(self, folder):
            seen.append(folder)

        def add_scalar(self, *scalar):
            seen.append(scalar)

        def close(self):
            seen.append("closed")

    monkeypatch.setitem(sys.modules, "tensorboardX", types.SimpleNamespace(SummaryWriter=SummaryWriter))
    with train.RunDirectory(tmp_path, quiet=True) as d:
        d.tensorboard = tensorboard.writer(d.path)
        d.record({"step": 5, "loss": 2.0, "norm": float("inf"), "sample": "text"})
    assert seen == [str(tmp_path), ("loss", 2.0, 5), "closed"]


def test_events_are_written(tmp_path):
    pytest.importorskip("tensorboardX")
    with train.RunDirectory(tmp_path, quiet=True) as d:
        d.tensorboard = tensorboard.writer(d.path)
        d.record({"step": 5, "loss": 2.0})
    assert list(tmp_path.glob("events.out.tfevents.*"))
