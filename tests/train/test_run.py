"""A Run around a trainer that has no tape: what it promises holds for any training."""

import os
import pathlib
import signal
import time
import tomllib

import killing
import numpy as np
import plmcore as plm
import pytest
from killing import Stop, stop_at
from plmcore import train
from plmcore.train import checkpoint, run_directory
from thread_ranks import together
from toy_trainer import Counting, Counts, count

HERE = pathlib.Path(__file__).parent
STEPS, KILLS = 120, 6


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{a} and {a + 1} are {2 * a + 1}\n" for a in range(500)))
    return path


def told(out):
    """Metrics and log without what depends on the clock, what the trainer remembers, and the result."""
    metrics = run_directory.read_metrics(out / "metrics.jsonl")
    for line in metrics:
        [line.pop(name, None) for name in ("seconds", "tokens_per_second")]
    log = [line[len("2026-11-18 12:00:00 ") :] for line in (out / "log.txt").read_text().splitlines()]
    seen = [checkpoint.read(p).state["seen"] for p in checkpoint.steps_in(out / "checkpoints")]
    return metrics, log, seen, (out / "final" / "counts.safetensors").read_bytes()


def test_what_a_run_leaves(text, tmp_path):
    out = tmp_path / "run"
    counts = count(out, text, save_every=10, changes=["train.evaluate_every=20"])
    assert counts.sum() == 256 * 256 + 40 * 32
    stored = tomllib.loads((out / "config.toml").read_text())
    assert stored["data"]["batch"] == 32 and stored["train"]["save_every"] == 10
    assert stored["run"] == {"seed": 0} and stored["train"]["keep"] == 2
    metrics, log, seen, _ = told(out)
    assert [m["step"] for m in metrics] == [10, 20, 20, 30, 40, 40]
    assert list(metrics[0]) == ["step", "loss", "rows", "tokens"] and metrics[-2]["tokens"] == 40 * 32
    assert "eval_loss" in metrics[-1] and metrics[-2]["loss"] < metrics[0]["loss"]
    assert log[0] == f"pairs of bytes; {len(text.read_bytes())} bytes of text; 40 steps"
    kept = [p.name for p in sorted((out / "checkpoints").iterdir())]
    assert kept == ["step-00000020", "step-00000030", "step-00000040"]  # 20 has the lowest loss
    assert seen[-1] > 1000
    page = (out / "report.html").read_text()
    assert "pairs of bytes: run" in page and "40 of 40" in page and (out / "loss.svg").exists()
    assert "; 40 steps" not in (out / "sessions.txt").read_text() and not (out / "events").exists()


@pytest.mark.parametrize("stops", [(3,), (10, 25), (40,)])
def test_a_run_that_was_stopped_leaves_the_files_of_one_that_was_not(text, tmp_path, stops):
    count(tmp_path / "whole", text, save_every=7)
    for step in stops:
        with pytest.raises(Stop):
            count(tmp_path / "run", text, save_every=7, resume=True, callbacks=[stop_at(step)])
    count(tmp_path / "run", resume=True)
    assert told(tmp_path / "run") == told(tmp_path / "whole")


def test_a_run_that_was_killed_ends_with_the_same_bits(text, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    start = lambda: killing.start(HERE / "killed_toy.py", out, text, STEPS)
    killing.kill_often(start, out, KILLS)
    process = start()
    assert process.wait(120) == 0, process.stderr.read().decode()
    count(tmp_path / "whole", text, steps=STEPS, save_every=4)
    assert told(out) == told(tmp_path / "whole")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_step_saves_and_reports(text, tmp_path, number):
    def interrupt(training, metrics):
        if training.step == 13:
            os.kill(os.getpid(), number)

    out = tmp_path / "run"
    with pytest.raises(train.Interrupted, match="after step 13") as e:
        count(out, text, save_every=1000, callbacks=[interrupt])
    assert e.value.exit_code == 128 + number
    assert (out / "checkpoints" / "step-00000013").exists() and "13 of 40" in (
        out / "report.html"
    ).read_text()
    count(out, resume=True)
    count(tmp_path / "whole", text, save_every=1000)
    assert told(out) == told(tmp_path / "whole")


def test_a_longer_run_has_the_steps_of_the_shorter_one(text, tmp_path):
    count(tmp_path / "run", text, steps=15, save_every=5)
    counts = count(tmp_path / "run", steps=30, resume=True)
    whole = count(tmp_path / "whole", text, steps=30, save_every=5)
    assert counts.tobytes() == whole.tobytes()
    assert tomllib.loads((tmp_path / "run" / "config.toml").read_text())["train"]["extended"] == [
        {"steps": 15}
    ]


def test_what_a_run_refuses(text, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(plm.ArgumentError, match="there is no setting data.bach; did you mean data.batch?"):
        count(out, text, changes=["data.bach=3"])
    with pytest.raises(plm.ArgumentError, match="train.result must be last or best or mean, got 'first'"):
        count(out, text, changes=["train.result=first"])
    with pytest.raises(plm.ArgumentError, match="train.result=mean is made of checkpoints"):
        count(out, text, changes=["train.result=mean"])
    assert not out.exists()
    count(out, text, save_every=20)
    with pytest.raises(FileExistsError, match="--resume"):
        count(out, text)
    with pytest.raises(plm.ArgumentError, match="has data.batch = 32, not 8"):
        count(out, resume=True, changes=["data.batch=8"])
    text.write_text("another")
    with pytest.raises(plm.ArgumentError, match="was trained on other data"):
        count(out, resume=True)


def test_a_result_that_the_trainer_cannot_take_is_refused(text, tmp_path):
    with pytest.raises(
        plm.ArgumentError, match="Counts has the result of its last step: train.result must be"
    ):
        count(tmp_path / "run", text, save_every=10, changes=["train.result=mean"])


def test_a_checkpoint_of_another_training_is_refused(text, tmp_path):
    count(tmp_path / "run", text, save_every=40)

    class Other(Counts):
        def load(self, parts):
            parts["weights"]["vectors"]

    class Smaller(Counts):
        def load(self, parts):
            self.model = self.model[:9]
            super().load(parts)

    class Remembering(Counts):
        REMEMBERED = {"seen": int, "rate": float}

    for kind, error, message in (
        (Other, plm.ArgumentError, "is of another model: it has no 'vectors'"),
        (Smaller, plm.ArgumentError, r"another model: counts must be \[9, 256\], got \[256, 256\]"),
        (Remembering, plm.FormatError, "rate in state.json is missing"),
    ):
        with train.RunDirectory(tmp_path / "run", quiet=True) as d:
            other = kind(text.read_bytes(), 32, steps=40)
            with pytest.raises(error, match=message):
                other.restore(d.newest())
            assert other.step == 0


def test_a_number_that_is_none_stops_the_run(text, tmp_path, monkeypatch):
    def spoil(training, metrics):
        if training.step == 5:
            training.model[:] = np.nan

    with pytest.raises(train.NonFiniteError, match="step 6: loss nan"):
        count(tmp_path / "run", text, save_every=2, callbacks=[spoil])
    assert "5 of 40" in (tmp_path / "run" / "report.html").read_text()
    monkeypatch.setattr(Counts, "compute", lambda self: {"loss": 1.0})
    with pytest.raises(
        plm.ArgumentError, match="Counts: compute must give loss and tokens, got no tokens but loss"
    ):
        count(tmp_path / "other", text)


def test_rank_0_makes_the_files(text, tmp_path):
    events = []

    class Noting(Counting):
        def training(self):
            if self.group.rank == 0:
                time.sleep(0.05)
            events.append(("training", self.group.rank))
            return super().training()

        def finish(self, training):
            events.append(("finish", self.group.rank))
            super().finish(training)

    given = {"data": {"text": str(text)}, "train": {"save_every": 10}}
    found = together(2, lambda group: Noting(tmp_path / "run", given, quiet=True)())
    assert events == [("training", 0), ("training", 1), ("finish", 0)]
    assert found[0].tobytes() == found[1].tobytes()


def test_the_settings_of_another_run(text, tmp_path):
    count(tmp_path / "run", text, changes=["data.batch=4"])
    run = Counting(
        tmp_path / "again", {"run": {"seed": 3}}, config=tmp_path / "run" / "config.toml", quiet=True
    )
    assert run.settings["data"] == {"text": str(text), "batch": 4} and run.settings["run"]["seed"] == 3
