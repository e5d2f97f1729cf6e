"""Families with a trainer of their own, through the doors that all families have."""

import plmcore as plm
import pytest
from plmcore import cli
from plmcore.train import trainers
from toy_trainer import Counting


class Bytes(Counting):
    """The toy trainer as a family: its text comes as a list of files."""

    def defaults(self, stored):
        usual = super().defaults(stored)
        return usual | {"run": {"family": "bytes"}, "data": usual["data"] | {"text": []}}

    def training(self):
        self.settings["data"]["text"] = self.settings["data"]["text"][0]
        return super().training()


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(trainers, "TRAINERS", dict(trainers.TRAINERS))
    trainers.register("bytes", Bytes)


def test_registered(tmp_path, registered, capsys):
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be\n" * 9)
    out = tmp_path / "run"
    assert cli.main(["pretrain", "bytes", "--text", str(text), "--steps", "5", "--out", str(out)]) == 0
    counts = plm.pretrain("bytes", text=[text], out=tmp_path / "again", steps=5, quiet=True)
    assert counts.shape == (256, 256) and counts[ord("t"), ord("o")] > 1
    capsys.readouterr()
    command = ["pretrain", "bytes", "--text", str(text), "--size", "tiny", "--out", str(tmp_path / "other")]
    assert cli.main(command) == 1 and "has no setting run.size" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_names(registered, tmp_path):
    with pytest.raises(plm.ArgumentError, match="no family 'bites'; one of .*gpt2.*glove, word2vec, bytes"):
        plm.pretrain("bites", out=tmp_path / "x", text=[])
    for taken in ("gpt2", "word2vec"):
        with pytest.raises(plm.ArgumentError, match=f"a family '{taken}' already"):
            trainers.register(taken, Bytes)
    trainers.register("bytes", Bytes)  # again, as a module that is imported twice does
