"""The head of a task on a directory that already has one."""

import json

import numpy as np
import plmcore as plm
import pytest
import samples
from plmcore import cli

FAST = ["data.length=32", "data.batch=16", "optim.lr=3e-3"]


@pytest.fixture
def tuned(directory, tmp_path):
    """(model, task, name, options) -> the result of a short run, and its log."""

    def run(model, task, name, **options):
        options = {"steps": 2, "changes": FAST, **options}
        plm.finetune(model, task, out=tmp_path / name, quiet=True, **options)
        return tmp_path / name / "final", (tmp_path / name / "log.txt").read_text()

    return run


def head(folder):
    tensors, _ = plm.safetensors.read(folder / "model.safetensors")
    return {
        n: np.array(t.numpy())
        for n, t in tensors.items()
        if n.startswith(("classifier", "score", "logits_proj"))
    }


def names(folder):
    return list(json.loads((folder / "config.json").read_text())["id2label"].values())


def renamed(rows, table, name, new):
    return table(name, [(*row[:-1], new[row[-1]]) for row in rows])


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "xlnet"])
def test_other_classes_get_a_new_head(directory, table, tuned, family):
    """Of other names, or another number; with a rate of 0 what is saved is what training began with."""
    rows = samples.reviews(32)
    first, _ = tuned(directory(family), "classification", "first", train=table("a.tsv", rows))
    frozen = [*FAST, "optim.lr=1e-30"]
    other = renamed(rows, table, "b.tsv", {"bad": "cold", "good": "warm"})
    second, log = tuned(first, "classification", "second", train=other, changes=frozen)
    assert names(second) == ["cold", "warm"] and "is new" in log
    assert all((head(second)[n] != a).any() for n, a in head(first).items() if a.ndim == 2)
    three = table("c.tsv", [(text, ("x", "y", "z")[i % 3]) for i, (text, _) in enumerate(rows)])
    third, _ = tuned(first, "classification", "third", train=three, changes=frozen)
    assert names(third) == ["x", "y", "z"] and plm.load(third).config.num_labels == 3
    assert plm.load(third).classify("the cat")["label"] in "xyz"


def test_the_same_classes_go_on_with_their_head(directory, table, tuned):
    rows = table("a.tsv", samples.reviews(32))
    first, _ = tuned(directory("bert"), "classification", "first", train=rows)
    second, log = tuned(first, "classification", "second", train=rows, changes=[*FAST, "optim.lr=1e-30"])
    assert (
        all(np.allclose(head(second)[n], a, atol=1e-20) for n, a in head(first).items())
        and "goes on learning" in log
    )


def test_another_kind_of_task_gets_a_new_head(directory, table, tuned, tmp_path):
    """The published names of heads for tags, classes and choices are the same; so may their sizes be."""
    tags = tmp_path / "tags.txt"
    tags.write_text("".join(f"{w} {'ab'[len(w) % 2]}\n" for w in samples.sentence(0).split()) + "\n")
    tagger, _ = tuned(directory("bert"), "tagging", "tags", train=tags)
    rows = table("a.tsv", [(text, {"bad": "a", "good": "b"}[label]) for text, label in samples.reviews(32)])
    classes, _ = tuned(tagger, "classification", "classes", train=rows, changes=[*FAST, "optim.lr=1e-30"])
    assert names(classes) == names(tagger) == ["a", "b"]
    assert (head(classes)["classifier.weight"] != head(tagger)["classifier.weight"]).any()
    with pytest.warns(UserWarning, match="has no weights for .*classifier.weight, classifier.bias: they are"):
        plm.load(tagger, head="sequence-classification", num_labels=5)
    number, _ = tuned(classes, "regression", "number", train=table("n.tsv", samples.weights()))
    assert names(number) == ["LABEL_0"]
    again, _ = tuned(number, "classification", "again", train=rows)
    assert names(again) == ["a", "b"]


def test_a_new_head_by_command_and_by_load(directory, table, tmp_path):
    a = table("a.tsv", samples.reviews(32))
    b = table("b.tsv", [(text, str(i % 4)) for i, (text, _) in enumerate(samples.reviews(32))])
    command = ["--task", "classification", "--steps", "1", "--set", "data.length=32", "--out"]
    assert (
        cli.main(["finetune", str(directory("bert")), "--train", str(a), *command, str(tmp_path / "a")]) == 0
    )
    again = [str(tmp_path / "a" / "final"), "--train", str(b), *command, str(tmp_path / "b")]
    assert cli.main(["finetune", *again]) == 0
    assert names(tmp_path / "b" / "final") == ["0", "1", "2", "3"]
    with pytest.warns(UserWarning, match="gets new weights for classifier.weight, classifier.bias"):
        plm.load(tmp_path / "a" / "final", head="sequence-classification", new_head=True)
