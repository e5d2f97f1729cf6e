import json

import plmcore as plm
import published_files
import pytest
import samples
from plmcore import cli

FAST = ["data.length=32", "data.batch=16"]


def tune(directory, task, out, **options):
    return plm.finetune(directory, task, out=out, quiet=True, changes=FAST, steps=2, **options)


def test_a_published_task_from_its_folder(directory, table, tmp_path):
    rows = [("sentence", "label"), *((t, int(label == "good")) for t, label in samples.reviews(40))]
    table("train.tsv", rows), table("dev.tsv", rows[:20])
    table("test.tsv", [("index", "sentence"), *((i, t) for i, (t, _) in enumerate(samples.reviews(5)))])
    out = tmp_path / "run"
    lm = tune(directory("bert"), "sst2", out, folder=tmp_path)
    assert lm.config.extra["id2label"] == {"0": "negative", "1": "positive"}
    assert "accuracy" in json.loads((out / "scores.json").read_text())["dev"]
    assert len((out / "test-predictions.jsonl").read_text().splitlines()) == 5


def test_a_published_task_with_files(directory, table, tmp_path):
    pytest.importorskip("sklearn", reason="F1 needs the extra eval")
    rows = [({"no": "0", "yes": "1"}[label], a, b) for a, b, label in samples.pairs(40)]
    columns = ["label", "text", "pair"]
    lm = tune(
        directory("bert"),
        "mrpc",
        tmp_path / "a",
        train=table("t.tsv", rows),
        dev=table("d.tsv", rows),
        columns=columns,
    )
    assert lm.config.extra["id2label"] == {"0": "0", "1": "1"}
    assert {"accuracy", "f1"} <= set(json.loads((tmp_path / "a" / "scores.json").read_text())["dev"])
    named = [({"0": "not_equivalent", "1": "equivalent"}[label], a, b) for label, a, b in rows]
    lm = tune(directory("bert"), "mrpc", tmp_path / "b", train=table("n.tsv", named), columns=columns)
    assert lm.config.extra["label2id"] == {"not_equivalent": 0, "equivalent": 1}


def test_tasks_that_cannot_be_learnt(directory, table, tmp_path):
    with pytest.raises(ValueError, match="lambada is scored without training"):
        tune(directory("bert"), "lambada", tmp_path / "run", folder=tmp_path)
    with pytest.raises(ValueError, match="--data is the folder of a published task, and 'pair' is none"):
        tune(directory("bert"), "pair", tmp_path / "run", folder=tmp_path)
    with pytest.raises(plm.ArgumentError, match="xquad-en is published without a split to learn from"):
        tune(directory("bert"), "xquad-en", tmp_path / "run", folder=tmp_path)
    with pytest.raises(FileNotFoundError, match="train.tsv"):
        tune(directory("bert"), "sst2", tmp_path / "run", folder=tmp_path)


def test_held_out_records(directory, table, tmp_path):
    out = tmp_path / "run"
    plm.finetune(
        directory("bert"),
        "classification",
        train=table("t.tsv", samples.reviews(50)),
        out=out,
        quiet=True,
        steps=2,
        changes=[*FAST, "data.held_out=0.2"],
    )
    assert len((out / "dev-predictions.jsonl").read_text().splitlines()) == 10


NEEDED = {
    "sklearn": ["cola", "mrpc", "qqp"],
    "scipy": ["stsb"],
    "seqeval": ["conll2000", "conll2003", "ontonotes"],
}
HIDDEN = (
    "cola",
    "sst2",
    "stsb",
    "mnli",
    "qnli",
    "rte",
    "wnli",
    "swag",
)  # tasks whose test files have no labels


def run(*command):
    assert cli.main([str(word) for word in command]) == 0


@pytest.mark.parametrize("name", published_files.PUBLISHED)
def test_published_files_from_their_folder_and_by_name(directory, tmp_path, capsys, name):
    """Learning and evaluating with the folder, with files that are named, and with the saved model: the same
    scores of the same splits.
    """
    task, learnt, evaluated = published_files.write(tmp_path / "data", name)
    translates = plm.data.task(task).kind == "translation"
    needed = next(
        (package for package, tasks in NEEDED.items() if task in tasks), "sacrebleu" if translates else None
    )
    if needed:
        pytest.importorskip(needed, reason="the metric needs the extra eval")
    bert = directory("bart" if translates else "bert")
    common = ["--task", task, "--steps", "1", "--set", "data.length=32", "--set", "task.target_length=4"]
    run("finetune", bert, *common, "--data", tmp_path / "data", "--out", tmp_path / "folder")
    scores = json.loads((tmp_path / "folder" / "scores.json").read_text())
    assert list(scores) == list(evaluated)
    first = next(iter(evaluated))
    files = ["--train", learnt, "--dev" if first.startswith("dev") else "--test", evaluated[first]]
    run("finetune", bert, *common, *files, "--out", tmp_path / "files")
    named = json.loads((tmp_path / "files" / "scores.json").read_text())
    assert list(named.values()) == [scores[first]] and scores[first]
    for split, path in evaluated.items():
        hidden = name == task and task in HIDDEN and split.startswith("test")
        assert (scores[split] == {}) == hidden
        if not hidden:
            capsys.readouterr()
            run("evaluate", tmp_path / "folder" / "final", path, "--json")
            found = json.loads(capsys.readouterr().out)
            assert found.pop("records") >= 4 and found == pytest.approx(scores[split])


def test_a_folder_is_evaluated_split_by_split(directory, tmp_path, capsys):
    published_files.write(tmp_path / "data", "mnli")
    out = tmp_path / "run"
    common = ["--task", "mnli", "--data", tmp_path / "data", "--steps", "1", "--set", "data.length=32"]
    run("finetune", directory("bert"), *common, "--out", out)
    scores = json.loads((out / "scores.json").read_text())
    capsys.readouterr()
    run("evaluate", out / "final", tmp_path / "data", "--predictions", tmp_path / "p.jsonl", "--json")
    found = json.loads(capsys.readouterr().out)  # the test files keep their labels back
    for half in ("matched", "mismatched"):
        assert (
            found[f"dev_{half}_accuracy"] == scores[f"dev_{half}"]["accuracy"]
            and found[f"dev_{half}_records"] == 8
        )
        written = (tmp_path / f"p-dev_{half}.jsonl").read_text()
        assert written == (out / f"dev_{half}-predictions.jsonl").read_text()
    run("evaluate", out / "final", tmp_path / "data", "--split", "dev_matched", "--json")
    assert json.loads(capsys.readouterr().out)["accuracy"] == scores["dev_matched"]["accuracy"]
    with pytest.raises(plm.ArgumentError, match="a split is of the folder of a published task"):
        plm.evaluate(out / "final", tmp_path / "data" / "dev_matched.tsv", split="dev")


def test_an_evaluation_of_nothing_is_an_error_before_training(directory, tmp_path):
    folder = tmp_path / "data"
    published_files.write(folder, "mnli")
    for file in [*folder.glob("dev*"), *folder.glob("test*")]:
        file.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"has nothing to evaluate mnli on \(dev_matched.tsv, .*data.held_out"
    ):
        tune(directory("bert"), "mnli", tmp_path / "run", folder=folder)
    assert not (tmp_path / "run").exists()
    (folder / "dev_matched.tsv").write_text(
        published_files.mnli()["dev_matched.tsv"].partition("\n")[0] + "\n"
    )
    with pytest.raises(plm.FormatError, match="has no records"):
        tune(directory("bert"), "mnli", tmp_path / "run", folder=folder)
    (folder / "dev_matched.tsv").unlink()
    with pytest.raises(plm.ArgumentError, match="data.held_out is 0.05: of the 9 records of .* that is none"):
        plm.finetune(
            directory("bert"), "mnli", folder=folder, out=tmp_path / "run", changes=["data.held_out=0.05"]
        )
    plm.finetune(
        directory("bert"),
        "mnli",
        folder=folder,
        out=tmp_path / "run",
        changes=["data.held_out=0.4"],
        steps=1,
        quiet=True,
    )
    assert list(json.loads((tmp_path / "run" / "scores.json").read_text())) == ["dev"]


def test_classes_are_known_by_name_and_by_number(directory, tmp_path, table):
    """A published file to learn from, a table with numbers to watch, and one with names in the end."""
    _, learnt, _ = published_files.write(tmp_path / "data", "sst2")
    dev = table("numbers.tsv", [(text, int(label == "good")) for text, label in samples.reviews(10)])
    test = table(
        "names.tsv",
        [(text, "positive" if label == "good" else "negative") for text, label in samples.reviews(10)],
    )
    tune(directory("bert"), "sst2", tmp_path / "run", train=learnt, dev=dev, test=test)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert scores["dev"] == scores["test"]
    assert plm.evaluate(tmp_path / "run" / "final", dev)["accuracy"] == scores["dev"]["accuracy"]
