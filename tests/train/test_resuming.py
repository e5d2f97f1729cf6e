"""What docs/resuming.md promises: a stopped run leaves the files of one that was not, but for times."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import installed
import killing
import numpy as np
import plmcore as plm
import pytest
from killing import Stop, stop_at
from plmcore import criteria, nn, optim, train
from plmcore.train import checkpoint
from small import same_bits, trainer

TIMES = ("seconds", "tokens_per_second")
STEPS = 24
# Lines of metrics, checkpoints and evaluations at different steps, so that a checkpoint lies between two
# lines.
SETTINGS = [
    "data.vocab=300",
    "data.length=16",
    "model.n_positions=16",
    "model.n_layer=1",
    "model.n_embd=16",
    "model.n_head=2",
    "train.evaluate_batches=1",
    "train.log_every=4",
    "train.evaluate_every=5",
    "train.keep=2",
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(
        "".join(f"{a} and {b} are {a + b}, said the cat.\n\n" for a in range(40) for b in range(40))
    )
    return path


def told(out: pathlib.Path):
    """Metrics, log and weights, without what depends on the clock."""
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for line in metrics:
        [line.pop(name, None) for name in TIMES]
    log = [line[len("2026-11-18 12:00:00 ") :] for line in (out / "log.txt").read_text().splitlines()]
    return metrics, log, (out / "final" / "model.safetensors").read_bytes()


def pretrain(text, out, changes=(), **options):
    plm.pretrain(
        "gpt2",
        text=[text],
        out=out,
        steps=STEPS,
        save_every=3,
        quiet=True,
        changes=[*SETTINGS, *changes],
        **options,
    )


@pytest.fixture(scope="module")
def undisturbed(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "whole"
    pretrain(text, out)
    return told(out)


@pytest.mark.parametrize("stops", [(1,), (7,), (2, 9, 14), (STEPS,)])
def test_metrics_and_log_of_a_run_that_was_stopped(text, undisturbed, tmp_path, stops):
    for step in stops:
        with pytest.raises(Stop):
            pretrain(text, tmp_path / "run", resume=step != stops[0], callbacks=[stop_at(step)])
    pretrain(text, tmp_path / "run", resume=True)
    assert told(tmp_path / "run") == undisturbed
    sessions = (tmp_path / "run" / "sessions.txt").read_text()
    assert sessions.count("threads") == len(stops) + 1
    pretrain(text, tmp_path / "run", resume=True)  # of a run that is done
    assert told(tmp_path / "run") == undisturbed


def test_kills_at_several_moments_through_the_command(text, undisturbed, tmp_path):
    out = tmp_path / "run"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [
        *installed.COMMAND,
        "pretrain",
        "gpt2",
        "--text",
        text,
        "--steps",
        str(STEPS),
        "--save-every",
        "3",
        "--out",
        out,
        "--resume",
    ]
    command += [word for setting in SETTINGS for word in ("--set", setting)]

    def saved(step):
        return (out / "checkpoints" / f"step-{step:08}").exists

    def size(name):
        return (out / name).stat().st_size if (out / name).exists() else 0

    moments = [
        lambda: (out / "sessions.txt").exists(),  # while the tokenizer is trained
        lambda: size("log.txt"),  # before the first step
        lambda: size("metrics.jsonl"),  # after a line of metrics, whose checkpoint may not be written yet
        lambda: saved(6)() and killing.unfinished(out),  # inside a save
        saved(12),
        saved(STEPS),  # before or while the result is written
        lambda: (out / "final").exists(),
    ]
    for number, moment in enumerate(moments):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ended = not killing.until(moment, process)
        process.send_signal(signal.SIGTERM if number == 4 else signal.SIGKILL)
        output = process.communicate()[1].decode()
        assert not ended or process.returncode == 0, output
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert told(out) == undisturbed


def test_the_files_of_a_fine_tuned_model(tmp_path, text):
    pretrain(text, tmp_path / "body")
    rows = "".join(f"{'odd' if n % 2 else 'even'}\t{n} and {n + 1} are {2 * n + 1}\n" for n in range(40))
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.tsv").write_text(rows)

    def finetune(out, **options):
        plm.finetune(
            tmp_path / "body" / "final",
            "classification",
            out=out,
            columns=["label", "text"],
            steps=10,
            save_every=3,
            quiet=True,
            changes=["data.batch=4", "data.length=12", "train.log_every=2", "train.evaluate_every=4"],
            **{split: tmp_path / f"{split}.tsv" for split in ("train", "dev", "test")},
            **options,
        )

    finetune(tmp_path / "whole")
    for step in (1, 5, 10):
        with pytest.raises(Stop):
            finetune(tmp_path / "run", resume=step > 1, callbacks=[stop_at(step)])
    finetune(tmp_path / "run", resume=True)
    finetune(tmp_path / "run", resume=True)
    assert told(tmp_path / "run") == told(tmp_path / "whole")


def test_a_stop_does_not_change_the_mean_of_checkpoints(text, tmp_path):
    def interrupt(t, metrics):
        if t.step == STEPS - 1:
            os.kill(os.getpid(), signal.SIGTERM)

    pretrain(text, tmp_path / "whole", ["train.result=mean"])
    with pytest.raises(train.Interrupted):
        pretrain(text, tmp_path / "run", ["train.result=mean"], callbacks=[interrupt])
    assert (tmp_path / "run" / "checkpoints" / f"step-{STEPS - 1:08}").exists()
    pretrain(text, tmp_path / "run", resume=True)
    assert told(tmp_path / "run") == told(tmp_path / "whole")


def change_state(folder, **changes):
    """Of the last checkpoint, whose manifest is made to fit; ... takes a key out."""
    path = checkpoint.steps_in(folder / "checkpoints")[-1]
    state = {
        k: v for k, v in (json.loads((path / "state.json").read_bytes()) | changes).items() if v is not ...
    }
    (path / "state.json").write_text(json.dumps(state))
    manifest = json.loads((path / "manifest.json").read_bytes())
    file = path / "state.json"
    manifest["files"]["state.json"] = {"bytes": file.stat().st_size, "sha256": checkpoint.digest(file)}
    (path / "manifest.json").write_text(json.dumps(manifest))


def go_on(folder, **options):
    with train.RunDirectory(folder, quiet=True) as d:
        t = trainer(directory=d, save_every=2, log_every=1, **options)
        if (saved := d.newest()) is not None:
            t.restore(saved)
        d.forget_after(t.step)
        t.run()


class Normed(nn.Module):
    def __init__(self):
        plm.seed(0)
        self.norm, self.out = nn.BatchNorm(3), nn.Linear(3, 1)

    def __call__(self, x):
        return self.out(self.norm(x))


class Squares(criteria.Criterion):
    def counts(self, batch):
        return {"squares": len(batch["x"])}

    def __call__(self, model, batch, state):
        y = model(plm.Tensor(batch["x"]))
        return {"squares": criteria.Term((y * y).sum(), len(batch["x"]))}, None


class Drawn:
    def __getitem__(self, step):
        return {"x": np.random.default_rng(step).standard_normal((4, 3)).astype(np.float32)}


def test_running_statistics_of_a_run_that_was_stopped(tmp_path):
    def run(folder, callbacks=()):
        model = Normed()
        with train.RunDirectory(folder, quiet=True) as d:
            t = train.Trainer(
                model,
                Drawn(),
                optim.SGD(model.parameters(), lr=0.1),
                steps=9,
                criterion=Squares(),
                directory=d,
                save_every=2,
                callbacks=callbacks,
            )
            if (saved := d.newest()) is not None:
                t.restore(saved)
            t.run()
        return model

    whole = run(tmp_path / "whole")
    with pytest.raises(Stop):
        run(tmp_path / "run", [stop_at(5)])
    resumed = run(tmp_path / "run")
    assert same_bits(whole, resumed) and (resumed.norm.running_mean.numpy() != 0).all()


def test_another_instruction_set_is_told(tmp_path):
    go_on(tmp_path, steps=4)
    state = json.loads((tmp_path / "checkpoints" / "step-00000004" / "state.json").read_bytes())
    assert state["machine"] == {"isa": plm._core.isa(), "blas": plm._core.blas()}
    go_on(tmp_path, steps=6)
    assert not (tmp_path / "log.txt").exists()
    change_state(tmp_path, machine={"isa": "v9", "blas": plm._core.blas()})
    go_on(tmp_path, steps=8)
    assert (
        f"step 6 was computed with the instruction set v9 and {plm._core.blas()}, from here on it is"
        in (tmp_path / "log.txt").read_text()
    )
    assert (tmp_path / "log.txt").read_text().count("the bits will differ") == 1
    go_on(tmp_path, steps=10)
    assert (tmp_path / "log.txt").read_text().count("the bits will differ") == 1


def test_checkpoints_from_before_they_noted_lines_and_machine(tmp_path):
    go_on(tmp_path, steps=4)
    change_state(tmp_path, lines=..., machine=..., due=...)
    go_on(tmp_path, steps=6)
    assert [m["step"] for m in train.run_directory.read_metrics(tmp_path / "metrics.jsonl")] == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]


@pytest.mark.parametrize(
    "name, value",
    [
        ("recent", [1]),
        ("recent", "abcd"),
        ("tokens", "many"),
        ("skips", True),
        ("lines", {"log.txt": "x"}),
        ("lines", 5),
        ("machine", ["v4"]),
        ("best", {}),
        ("seconds", None),
        ("seconds", ...),
    ],
)
def test_a_state_that_is_none_is_named(tmp_path, name, value):
    go_on(tmp_path, steps=2)
    change_state(tmp_path, **{name: value})
    with pytest.raises(plm.FormatError, match=rf"checkpoint '.*': {name} in state.json is (wrong|missing)"):
        go_on(tmp_path, steps=4)
