import json

import plmcore as plm
import pytest
import samples
from plmcore import data

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
        directory("bert"), "mrpc", tmp_path / "a", train=table("t.tsv", rows), dev=table("d.tsv", rows), columns=columns
    )
    assert lm.config.extra["id2label"] == {"0": "0", "1": "1"}
    assert {"accuracy", "f1"} <= set(json.loads((tmp_path / "a" / "scores.json").read_text())["dev"])
    named = [({"0": "not_equivalent", "1": "equivalent"}[label], a, b) for label, a, b in rows]
    lm = tune(directory("bert"), "mrpc", tmp_path / "b", train=table("n.tsv", named), columns=columns)
    assert lm.config.extra["label2id"] == {"not_equivalent": 0, "equivalent": 1}


def test_the_texts_of_a_declared_task_are_those_its_reader_gives(tmp_path):
    from plmcore.tasks.task_data import ONE_TEXT

    classes = {name for name, task in data.TASKS.items() if task.kind == "classification"}
    assert set(ONE_TEXT) <= classes


def test_tasks_that_cannot_be_learnt(directory, table, tmp_path):
    with pytest.raises(ValueError, match="lambada is scored without training"):
        tune(directory("bert"), "lambada", tmp_path / "run", folder=tmp_path)
    with pytest.raises(ValueError, match="--data is the folder of a published task, and 'pair' is none"):
        tune(directory("bert"), "pair", tmp_path / "run", folder=tmp_path)
    with pytest.raises(FileNotFoundError, match="train.tsv"):
        tune(directory("bert"), "sst2", tmp_path / "run", folder=tmp_path)


def test_held_out_records(directory, table, tmp_path):
    out = tmp_path / "run"
    plm.finetune(
        directory("bert"), "classification", train=table("t.tsv", samples.reviews(50)), out=out, quiet=True, steps=2,
        changes=[*FAST, "data.held_out=0.2"],
    )  # fmt: skip
    assert len((out / "dev-predictions.jsonl").read_text().splitlines()) == 10
