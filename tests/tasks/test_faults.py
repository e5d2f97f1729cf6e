"""What can be wrong with the data of a fine-tuning run, and runs that are stopped."""

import json
import pathlib

import killing
import plmcore as plm
import pytest
import samples
from killing import Stop, stop_at
from plmcore import cli
from plmcore.train import run_directory
from plmcore.train.settings import SettingError

FAST = ["data.length=32", "data.batch=16", "optim.lr=3e-3"]


def tune(directory, task, out, **options):
    changes = [*FAST, *options.pop("changes", ())]
    return plm.finetune(directory, task, out=out, quiet=True, changes=changes, **options)


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([], "has no records"),
        ([("text", "label")], "has no records"),
        ([("a good cat", "good"), ("a nice cat", "good")], "all labels are 'good' in 2 records"),
        (
            [("a", "x"), ("b", "y"), ("c", "d", "e")],
            r"train.tsv', line 3: 2 fields expected \(text, label\), got 3",
        ),
        ([("a", "x"), ("b",)], "line 2: 2 fields expected"),
        ([("a", "b", "c", "d")] * 2, "line 1: 4 columns .* --columns"),
    ],
)
def test_tables_that_cannot_be_learnt_from(directory, table, tmp_path, rows, error):
    with pytest.raises(plm.FormatError, match=error):
        tune(directory("bert"), "classification", tmp_path / "run", train=table("train.tsv", rows))
    assert not (tmp_path / "run").exists()


def test_labels_that_are_not_in_the_list(directory, table, tmp_path):
    train, dev = (
        table("train.tsv", samples.reviews(20)),
        table("dev.tsv", [("a cat", "good"), ("a dog", "middling")]),
    )
    with pytest.raises(
        plm.FormatError, match=r"dev.tsv', line 2: the label 'middling' is not one of bad, good"
    ):
        tune(directory("bert"), "classification", tmp_path / "a", train=train, dev=dev)
    with pytest.raises(
        plm.FormatError, match=r"train.tsv', line \d+: the label 'bad' is not one of good, fair"
    ):
        tune(directory("bert"), "classification", tmp_path / "b", train=train, labels=["good", "fair"])
    with pytest.raises(ValueError, match="must name two classes or more"):
        tune(directory("bert"), "classification", tmp_path / "c", train=train, labels=["good", "good"])
    with pytest.raises(plm.FormatError, match="line 1: the label must be a number, got 'good'"):
        tune(
            directory("bert"), "regression", tmp_path / "d", train=table("r.tsv", [("a", "good"), ("b", "1")])
        )
    header = [("context", "choice0", "choice1", "label")]
    with pytest.raises(
        plm.FormatError, match="line 2: the label must be the number of a choice, 0 to 1, got '2'"
    ):
        tune(
            directory("bert"),
            "multiple-choice",
            tmp_path / "e",
            train=table("m.tsv", [*header, ("a", "b", "c", 2)]),
        )


def test_texts_that_do_not_fit(directory, table, tmp_path):
    long = [("the cat " * 40, "bad"), ("the dog", "good")]
    train = table("train.tsv", long)
    with pytest.raises(ValueError, match="1 texts have more than data.length = 32 tokens"):
        tune(
            directory("bert"), "classification", tmp_path / "a", train=train, changes=["data.overlong=error"]
        )
    with pytest.raises(ValueError, match="data.length is 100, more than the 64 positions"):
        tune(directory("bert"), "classification", tmp_path / "b", train=train, changes=["data.length=100"])
    with pytest.raises(ValueError, match="leave no room for a text"):
        tune(directory("bert"), "classification", tmp_path / "c", train=train, changes=["data.length=3"])
    tune(directory("bert"), "classification", tmp_path / "d", train=train, steps=1)
    tune(
        directory("bert"), "classification", tmp_path / "c", train=train, steps=1
    )  # the place of a run that could not begin
    assert "train: 1 texts have more than 32 tokens" in (tmp_path / "d" / "log.txt").read_text()


def test_answers_that_do_not_stand_where_they_should(directory, tmp_path):
    squad = samples.questions(4)
    squad["data"][0]["paragraphs"][2]["qas"][0]["answers"][0]["answer_start"] = 0
    (tmp_path / "train.json").write_text(json.dumps(squad))
    with pytest.raises(
        plm.FormatError, match=r"train.json', q2: the answer '\w+' does not stand at character 0"
    ):
        tune(directory("bert"), "qa", tmp_path / "run", train=tmp_path / "train.json")


def test_tasks_and_settings_that_there_are_not(directory, table, tmp_path, capsys):
    train = table("train.tsv", samples.reviews(20))
    with pytest.raises(ValueError, match="there is no task 'clasification'; did you mean classification"):
        tune(directory("bert"), "clasification", tmp_path / "a", train=train)
    with pytest.raises(SettingError, match="did you mean optim.lr"):
        tune(directory("bert"), "classification", tmp_path / "b", train=train, changes=["optim.lrr=1"])
    with pytest.raises(ValueError, match="t5 has no head for multiple-choice"):
        header = [("context", "choice0", "choice1", "label")]
        tune(
            directory("t5"),
            "multiple-choice",
            tmp_path / "c",
            train=table("m.tsv", header + samples.choices(4)),
        )
    assert (
        cli.main(
            [
                "finetune",
                str(directory("bert")),
                "--task",
                "pair",
                "--train",
                "nowhere.tsv",
                "--out",
                str(tmp_path / "d"),
            ]
        )
        == 1
    )
    assert "there is no 'nowhere.tsv'" in capsys.readouterr().err
    assert cli.main(["finetune", "--task", "pair", "--train", str(train), "--out", str(tmp_path / "e")]) == 1
    assert "finetune needs a model directory" in capsys.readouterr().err


KILLS = 9


def test_a_run_killed_often_ends_with_the_same_bits(directory, table, tmp_path):
    """With the average of the weights, noise on them and layers that thaw: all of it comes out of the
    checkpoint.
    """
    train, dev = table("train.tsv", samples.reviews(64)), table("dev.tsv", samples.reviews(16, 64))
    undisturbed, killed = tmp_path / "a", tmp_path / "b"
    script = pathlib.Path(__file__).with_name("killed_finetune.py")

    def start(out):
        return killing.start(script, directory("bert"), train, dev, out)

    whole = start(undisturbed)
    inside = killing.kill_often(lambda: start(killed), killed, KILLS)
    assert inside >= KILLS // 3
    again = start(killed)
    assert again.wait(240) == 0, again.stderr.read().decode()
    assert whole.wait(240) == 0, whole.stderr.read().decode()
    for name in ("final/model.safetensors", "scores.json", "dev-predictions.jsonl"):
        assert (undisturbed / name).read_bytes() == (killed / name).read_bytes(), name
    steps = [
        [m["step"] for m in run_directory.read_metrics(f / "metrics.jsonl")] for f in (undisturbed, killed)
    ]
    assert steps[0] == steps[1]


def test_a_run_that_was_stopped_goes_on_bit_for_bit(directory, table, tmp_path):
    train, dev = table("train.tsv", samples.reviews(64)), table("dev.tsv", samples.reviews(16, 64))
    options = dict(
        train=train, dev=dev, save_every=2, epochs=2, changes=["adapt.unfreeze_every=0.5", "adapt.noise=0.1"]
    )

    tune(directory("bert"), "classification", tmp_path / "whole", **options)
    with pytest.raises(Stop):
        tune(directory("bert"), "classification", tmp_path / "halves", **options, callbacks=[stop_at(5)])
    assert not (tmp_path / "halves" / "final").exists()
    tune(None, None, tmp_path / "halves", resume=True, changes=[])
    whole, halves = ((tmp_path / n / "final" / "model.safetensors").read_bytes() for n in ("whole", "halves"))
    assert whole == halves
    a, b = ((tmp_path / n / "scores.json").read_text() for n in ("whole", "halves"))
    assert a == b

    with pytest.raises(SettingError, match="has optim.lr = 0.003, not 0.1"):
        tune(None, None, tmp_path / "halves", resume=True, changes=["optim.lr=0.1"])
    with pytest.raises(FileExistsError, match="--resume"):
        tune(directory("bert"), "classification", tmp_path / "halves", **options)
    table("train.tsv", samples.reviews(60))
    with pytest.raises(ValueError, match="the data has changed"):
        tune(None, None, tmp_path / "halves", resume=True)


@pytest.mark.parametrize(
    "splits, missed", [(("train", "dev"), True), (("train", "test"), True), (("train",), False)]
)
def test_what_a_metric_needs_is_missed_before_the_run_begins(
    directory, table, tmp_path, monkeypatch, splits, missed
):
    """Where anything is evaluated: nothing is left behind, and no model was loaded."""

    def without(name, *args):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("plmcore.evaluate.needed.import_module", without)
    rows = [(text, i % 5) for i, (text, _) in enumerate(samples.reviews(16))]
    files = {split: table(f"{split}.tsv", rows) for split in splits}
    out = tmp_path / "run"
    if not missed:
        tune(directory("bert"), "regression", out, epochs=1, **files)
        return
    monkeypatch.setattr("plmcore.tasks.task_model.load", lambda *_: pytest.fail("the model is loaded"))
    with pytest.raises(
        ModuleNotFoundError,
        match=r"^pearson needs scipy, which is not installed: pip install 'plmcore\[eval\]'",
    ):
        tune(directory("bert"), "regression", out, **files)
    assert not out.exists()


def test_what_a_metric_needs_is_missed_before_an_evaluation(directory, table, tmp_path, monkeypatch, capsys):
    def without(name, *args):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    rows = [(text, i % 5) for i, (text, _) in enumerate(samples.reviews(16))]
    tune(directory("bert"), "regression", tmp_path / "run", epochs=1, train=table("train.tsv", rows))
    monkeypatch.setattr("plmcore.evaluate.needed.import_module", without)
    monkeypatch.setattr("plmcore.tasks.scoring.Scoring.__call__", lambda *_: pytest.fail("the model is run"))
    arguments = ["evaluate", tmp_path / "run/final", table("test.tsv", rows), "--task", "regression"]
    assert cli.main([*map(str, arguments)]) == 1
    assert capsys.readouterr().err.startswith("plmcore evaluate: pearson needs scipy, which is not installed")


@pytest.mark.parametrize("content", ["", " \n\n"])
def test_no_text_to_go_on_with_is_an_error(directory, tmp_path, capsys, content):
    (tmp_path / "none.txt").write_text(content)
    run = ["finetune", str(directory("gpt2")), "--task", "lm", "--train", str(tmp_path / "none.txt"), "--out"]
    assert cli.main([*run, str(tmp_path / "run")]) == 1
    assert f"there is no text in '{tmp_path / 'none.txt'}'" in capsys.readouterr().err


def test_empty_texts_are_told(directory, tmp_path, capsys):
    run = ["finetune", str(directory("bert")), "--task", "classification", "--steps", "1", "--train"]
    (tmp_path / "none.tsv").write_text("text\tlabel\n\ta\n  \tb\n")
    assert cli.main([*run, str(tmp_path / "none.tsv"), "--out", str(tmp_path / "none")]) == 1
    assert "none.tsv': all 2 texts are empty, so that there is nothing to learn" in capsys.readouterr().err
    (tmp_path / "some.tsv").write_text("text\tlabel\n\ta\nThe cat\tb\n")
    assert cli.main([*run, str(tmp_path / "some.tsv"), "--out", str(tmp_path / "some")]) == 0
    assert "train: 1 of 2 texts are empty" in capsys.readouterr().out
