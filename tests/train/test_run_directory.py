import json

import plmcore as plm
import pytest
from plmcore import train
from plmcore.train import run_directory
from small import trainer


def test_metrics_are_lines_of_json(tmp_path):
    with train.RunDirectory(tmp_path, quiet=True) as d:
        trainer(directory=d, steps=25, evaluate=lambda m: {"loss": 2.0}, evaluate_every=20).run()
        lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [m["step"] for m in lines if "loss" in m] == [10, 20, 25]
    assert [m["step"] for m in lines if "eval_loss" in m] == [20, 25]
    assert set(lines[0]) == {"step", "loss", "lr", "norm", "tokens", "tokens_per_second", "seconds"}
    assert lines[-2]["tokens"] == 25 * 64


def test_what_is_not_finite_is_null(tmp_path):
    with train.RunDirectory(tmp_path, quiet=True) as d:
        d.record({"step": 1, "loss": float("nan"), "norm": float("inf")})
        assert d.metrics() == [{"step": 1, "loss": None, "norm": None}]


def test_metrics_of_steps_that_come_again_are_forgotten(tmp_path):
    with train.RunDirectory(tmp_path, quiet=True) as d:
        for step in (10, 20, 30):
            d.record({"step": step, "loss": 1.0})
        with open(tmp_path / "metrics.jsonl", "a") as f:
            f.write('{"step": 40, "lo')  # a kill in the middle of a line
        d.forget_after(20)
        assert [m["step"] for m in d.metrics()] == [10, 20]


@pytest.mark.parametrize("text, message", [
    ('{"step": 1}\n{"ste', "line 2: it is cut off"), ("nothing\n", "line 1: not valid JSON"),
    ("[1]\n", "line 1: it must be an object"),
])  # fmt: skip
def test_damaged_metrics(tmp_path, text, message):
    (tmp_path / "metrics.jsonl").write_text(text)
    with pytest.raises(plm.FormatError, match=message):
        run_directory.read_metrics(tmp_path / "metrics.jsonl")


def test_one_process_at_a_time(tmp_path):
    with train.RunDirectory(tmp_path):
        with pytest.raises(BlockingIOError, match="another process is working in"):
            train.RunDirectory(tmp_path)
    train.RunDirectory(tmp_path).close()


def test_what_is_said_is_logged(tmp_path, capsys):
    with train.RunDirectory(tmp_path) as d:
        d.say("hello")
    assert capsys.readouterr().out == "hello\n" and (tmp_path / "log.txt").read_text().endswith(" hello\n")
    with train.RunDirectory(tmp_path, quiet=True) as d:
        d.say("again")
    assert capsys.readouterr().out == "" and (tmp_path / "log.txt").read_text().endswith(" again\n")


def test_unfinished_checkpoints_are_swept(tmp_path):
    (tmp_path / "checkpoints" / ".step-00000005.77.tmp").mkdir(parents=True)
    with train.RunDirectory(tmp_path, quiet=True) as d:
        assert list(d.checkpoints.iterdir()) == [] and d.newest() is None


def test_the_last_good_checkpoint_is_found_and_the_damage_told(tmp_path):
    with train.RunDirectory(tmp_path, quiet=True) as d:
        trainer(directory=d, steps=4, save_every=2).run()
        file = d.checkpoints / "step-00000004" / "weights.safetensors"
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
        assert d.newest().step == 2
        told = (tmp_path / "sessions.txt").read_text()
        assert "left aside: " in told and "SHA-256" in told


def test_what_is_begun(tmp_path):
    """A directory that is absent, empty, or has what a run left that took no step may take a new run; another
    only goes on.
    """
    begun = run_directory.begun
    new = tmp_path / "new"
    assert begun(new, False) is None and begun(new, True) is None
    new.mkdir()
    (new / run_directory.CONFIG).write_text("# mine\n")
    with pytest.raises(FileExistsError, match="is not empty"):
        begun(new, False)
    (new / run_directory.CONFIG).unlink()
    (new / run_directory.LOG).write_text("no text\n")
    (new / ".lock").touch()
    assert begun(new, False) is None and begun(new, True) is None
    (new / "corpus").mkdir()
    with pytest.raises(FileExistsError, match="is not empty"):  # it may be the user's
        begun(new, False)
    (new / run_directory.CONFIG).write_text("")
    assert begun(new, True) == new / run_directory.CONFIG and begun(new, False) is None
    with train.RunDirectory(new, quiet=True) as d, pytest.raises(BlockingIOError):
        train.RunDirectory(new, quiet=True, new=True)
    assert (d.path / "corpus").exists()
    train.RunDirectory(new, quiet=True, new=True).close()
    assert {p.name for p in new.iterdir()} == {".lock", run_directory.LOG}
    (new / run_directory.METRICS).write_text("")
    with pytest.raises(FileExistsError, match="is not empty; --resume goes on with the run in it"):
        begun(new, False)
