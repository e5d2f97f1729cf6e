"""Runs that are made longer. Through the commands: tests/tasks has fine-tuning."""

import json
import shutil
import tomllib

import plmcore as plm
import pytest
from plmcore import cli
from plmcore.train import checkpoint, extending, schedules
from plmcore.train.settings import SettingError

WORDS = "the cat sat on the mat and the dog ran far away from it".split()
FAST = (
    "--set model.n_layer=1 --set model.n_embd=16 --set model.n_head=2 --set data.length=16 --set "
    "model.n_positions=16 --set data.vocab=300"
)


class Stop(Exception):
    pass


def stop_at(step):
    def callback(trainer, metrics):
        if trainer.step == step:
            raise Stop

    return callback


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(" ".join(WORDS[i % 13 :] + WORDS[: i % 7]) for i in range(300)))
    return path


def pretrain(*arguments):
    return cli.main(["pretrain", *map(str, arguments)])


def begin(text, out, steps, *more):
    command = (
        f"gpt2 --text {text} --steps {steps} --save-every 100 --set train.keep=9 --set "
        f"train.evaluate_every=4 --set train.log_every=3 {FAST} --out {out}"
    )
    assert pretrain(*command.split(), *more) == 0


@pytest.fixture(scope="module")
def finished(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "six"
    begin(text, out, 6)
    return out


@pytest.fixture(scope="module")
def longer(finished, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "ten"
    shutil.copytree(finished, out)
    assert pretrain("--out", out, "--resume", "--steps", 10) == 0
    return out


def weights(run, step):
    return (run / "checkpoints" / f"step-{step:08}" / "weights.safetensors").read_bytes()


def metrics(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if "second" not in k} for line in lines]


def test_a_finished_run_goes_on(finished, longer):
    assert weights(longer, 6) == weights(finished, 6)
    assert metrics(longer)[: len(metrics(finished))] == metrics(finished)
    assert {line["step"] for line in metrics(longer)} == {3, 4, 6, 8, 9, 10}
    assert (longer / "final/model.safetensors").read_bytes() != (
        finished / "final/model.safetensors"
    ).read_bytes()
    stored = tomllib.loads((longer / "config.toml").read_text())["train"]
    assert stored["steps"] == 10 and stored["extended"] == [{"steps": 6}]


def test_the_schedule_is_the_old_one_up_to_the_old_end_and_then_the_new_one(longer):
    table = tomllib.loads((longer / "config.toml").read_text())["schedule"]
    curve = lambda steps, step: schedules.cosine(steps=steps, warmup=table["warmup"], floor=table["floor"])(
        step
    )
    rates = {line["step"]: line["lr"] for line in metrics(longer) if "lr" in line}
    for step, steps in ((3, 6), (6, 6), (9, 10), (10, 10)):
        assert rates[step] == pytest.approx(1e-3 * curve(steps, step - 1))
    assert rates[9] > rates[6]


def test_a_run_that_was_stopped_before_its_end(text, longer, tmp_path):
    """It takes the steps that it still had as it would have, and those after them."""
    with pytest.raises(Stop):
        options = dict(steps=6, save_every=2, quiet=True, callbacks=[stop_at(5)])
        changes = [*FAST.replace("--set ", "").split(), "train.evaluate_every=4", "train.log_every=3"]
        plm.pretrain("gpt2", text=[text], out=tmp_path / "run", changes=changes, **options)
    assert checkpoint.steps_in(tmp_path / "run/checkpoints")[-1].name == "step-00000004"
    with pytest.raises(Stop):  # and is stopped again, behind the old end
        plm.pretrain(
            out=tmp_path / "run", steps=10, save_every=7, resume=True, quiet=True, callbacks=[stop_at(8)]
        )
    plm.pretrain(out=tmp_path / "run", resume=True, quiet=True)
    assert weights(tmp_path / "run", 10) == weights(longer, 10)
    assert metrics(tmp_path / "run") == metrics(longer)


def test_the_config_repeats_a_longer_run(longer, tmp_path):
    assert pretrain("--config", longer / "config.toml", "--out", tmp_path / "again") == 0
    assert weights(tmp_path / "again", 10) == weights(longer, 10) and metrics(tmp_path / "again") == metrics(
        longer
    )


def test_twice(longer, tmp_path):
    shutil.copytree(longer, tmp_path / "run")
    assert pretrain("--out", tmp_path / "run", "--resume", "--steps", 12) == 0
    assert weights(tmp_path / "run", 10) == weights(longer, 10)
    stored = tomllib.loads((tmp_path / "run/config.toml").read_text())["train"]
    assert stored["steps"] == 12 and stored["extended"] == [{"steps": 6}, {"steps": 10}]


def test_shorter_is_an_error(finished, longer, tmp_path, capsys):
    before = (finished / "config.toml").read_bytes()
    for steps in (1, 5):
        assert pretrain("--out", finished, "--resume", "--steps", steps) == 1
        assert f"has train.steps = 6, not {steps}: it can only be made longer" in capsys.readouterr().err
    assert pretrain("--out", finished, "--resume", "--set", "train.steps=5") == 1
    assert pretrain("--out", finished, "--resume", "--steps", 6) == 0
    assert (finished / "config.toml").read_bytes() == before
    assert pretrain("--config", longer / "config.toml", "--steps", 6, "--out", tmp_path / "new") == 1
    assert "made longer after 6 steps, and has 6: it must have more each time" in capsys.readouterr().err


def test_a_run_that_patience_ended(text, tmp_path, capsys):
    begin(
        text,
        tmp_path / "run",
        9,
        "--set",
        "train.patience=1",
        "--set",
        "train.evaluate_every=1",
        "--set",
        "optim.lr=1e-12",
    )
    if checkpoint.steps_in(tmp_path / "run/checkpoints")[-1].name == "step-00000009":
        pytest.fail("the run was to end early")
    before = (tmp_path / "run/config.toml").read_bytes()
    capsys.readouterr()
    assert pretrain("--out", tmp_path / "run", "--resume", "--steps", 20) == 1
    assert "ended before its last step (no lower loss in 1 evaluations)" in capsys.readouterr().err
    assert (tmp_path / "run/config.toml").read_bytes() == before
    assert pretrain("--out", tmp_path / "run", "--resume") == 0


def test_a_damaged_checkpoint_is_left_aside(finished, longer, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run/checkpoints/step-00000006/state.json").write_text("{")
    assert pretrain("--out", tmp_path / "run", "--resume", "--steps", 10) == 0
    assert weights(tmp_path / "run", 10) == weights(longer, 10)


@pytest.mark.parametrize(
    "extended",
    [[6], [{"steps": "x"}], [{"steps": True}], [{"epochs": 1}], [{"steps": 1, "b": 2}], [{}], [{"steps": 0}]],
)
def test_a_config_with_other_ends(extended):
    with pytest.raises(SettingError, match=r"must have tables as \{steps = 100\}"):
        extending.ends({"extended": extended}, 10)


def test_ends():
    table = {"extended": [{"epochs": 2}, {"steps": 9}]}
    assert extending.ends(table, 10, per_epoch=4) == [8, 9]
    with pytest.raises(SettingError, match="after 8 and 9 steps, and has 9"):
        extending.ends(table, 9, per_epoch=4)
    with pytest.raises(SettingError, match="after 12 and 9 steps"):
        extending.ends(table, 10, per_epoch=6)
