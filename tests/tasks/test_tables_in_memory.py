"""plm.finetune and plm.evaluate on tables in memory."""

import json
import shutil
import tomllib

import plmcore as plm
import pytest
import samples
from killing import Stop, stop_at
from plmcore import cli

FAST = ["data.length=32", "data.batch=16", "optim.lr=3e-3"]


def rows(count, first=0):
    return [{"text": text, "label": label} for text, label in samples.reviews(count, first)]


def tune(model, task, out, **options):
    changes = [*FAST, *options.pop("changes", ())]
    return plm.finetune(model, task, out=out, quiet=True, changes=changes, **options)


def bits(out):
    return (out / "final" / "model.safetensors").read_bytes()


def columns(table):
    return {key: [row[key] for row in table] for key in table[0]}


def test_a_table_is_learnt_from_as_its_file_is(directory, table, tmp_path):
    train, dev = samples.reviews(64), samples.reviews(16, 64)
    tune(
        directory("bert"),
        "classification",
        tmp_path / "file",
        train=table("a.tsv", train),
        dev=table("b.tsv", dev),
        epochs=1,
    )
    tune(directory("bert"), "classification", tmp_path / "list", train=rows(64), dev=rows(16, 64), epochs=1)
    tune(
        directory("bert"),
        "classification",
        tmp_path / "dict",
        train=columns(rows(64)),
        dev=columns(rows(16, 64)),
        epochs=1,
    )
    assert bits(tmp_path / "list") == bits(tmp_path / "file") == bits(tmp_path / "dict")
    scores = [json.loads((tmp_path / name / "scores.json").read_text()) for name in ("file", "list")]
    assert scores[0] == scores[1]


def test_pandas_and_pyarrow(directory, tmp_path):
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pd.DataFrame(rows(48)).rename(columns={"text": "review", "label": "stars"})
    lm = tune(
        directory("bert"),
        "classification",
        tmp_path / "a",
        train=frame,
        columns=["text=review", "label=stars"],
        epochs=1,
    )
    tune(directory("bert"), "classification", tmp_path / "b", train=pa.table(columns(rows(48))), epochs=1)
    assert bits(tmp_path / "a") == bits(tmp_path / "b")
    found = plm.evaluate(lm, frame, "classification", columns=["text=review", "label=stars"])
    assert (
        found
        == plm.evaluate(lm, pa.table(columns(rows(48))), "classification")
        == plm.evaluate(lm, rows(48), "classification")
    )


def test_a_run_goes_on_with_the_table_that_it_has_kept(directory, tmp_path):
    train = rows(64)
    tune(directory("bert"), "classification", tmp_path / "whole", train=train, epochs=2)
    for name in ("without", "with", "moved", "other"):
        with pytest.raises(Stop):
            tune(
                directory("bert"),
                "classification",
                tmp_path / name,
                train=train,
                epochs=2,
                save_every=2,
                callbacks=[stop_at(5)],
            )
    plm.finetune(out=tmp_path / "without", resume=True, quiet=True)
    plm.finetune(out=tmp_path / "with", train=columns(train), resume=True, quiet=True)
    shutil.move(tmp_path / "moved", tmp_path / "there")
    assert cli.main(["finetune", "--out", str(tmp_path / "there"), "--resume"]) == 0
    assert (
        bits(tmp_path / "without")
        == bits(tmp_path / "with")
        == bits(tmp_path / "there")
        == bits(tmp_path / "whole")
    )
    with pytest.raises(plm.ArgumentError, match=r"the data has changed since this run began \(table train\)"):
        plm.finetune(
            out=tmp_path / "other",
            train=train[:-1] + [{"text": "x", "label": "good"}],
            resume=True,
            quiet=True,
        )


def test_the_config_repeats_the_run(directory, tmp_path):
    tune(directory("bert"), "classification", tmp_path / "a", train=rows(48), dev=rows(16, 48), epochs=1)
    stored = tomllib.loads((tmp_path / "a/config.toml").read_text())["data"]
    assert stored["train"] == str(tmp_path / "a/train.table.jsonl") and stored["dev"] == str(
        tmp_path / "a/dev.table.jsonl"
    )
    assert [json.loads(line) for line in (tmp_path / "a/train.table.jsonl").read_text().splitlines()] == rows(
        48
    )
    assert (
        cli.main(["finetune", "--config", str(tmp_path / "a/config.toml"), "--out", str(tmp_path / "b")]) == 0
    )
    assert bits(tmp_path / "b") == bits(tmp_path / "a")


def test_a_published_task(directory, tmp_path):
    """By the names of its classes or by their numbers; the kept table is read as the one in memory was."""
    names = [
        {"text": text, "label": {"good": "positive", "bad": "negative"}[label]}
        for text, label in samples.reviews(32)
    ]
    numbers = [
        {"sentence": row["text"], "label": ["negative", "positive"].index(row["label"])} for row in names
    ]
    for name, train in (("names", names), ("numbers", numbers)):
        tune(directory("bert"), "sst2", tmp_path / name, train=train, epochs=1)
        plm.finetune(config=tmp_path / name / "config.toml", out=tmp_path / f"{name} again", quiet=True)
        assert bits(tmp_path / name) == bits(tmp_path / f"{name} again")
    assert bits(tmp_path / "names") == bits(tmp_path / "numbers")


def test_other_kinds_of_tasks(directory, tmp_path):
    tagged = [
        {"tokens": ["the", "cat"], "tags": ["O", "B-X"]},
        {"tokens": ["a", "dog", "ran"], "tags": ["O", "B-X", "O"]},
    ] * 8
    lm = tune(directory("bert"), "tagging", tmp_path / "tagging", train=tagged, dev=tagged, epochs=1)
    assert plm.evaluate(lm, tagged)["records"] == 16
    asked = [
        {"context": "the cat sat", "question": "who sat?", "answers": {"text": ["cat"], "answer_start": [4]}}
    ] * 16
    lm = tune(directory("bert"), "qa", tmp_path / "qa", train=asked, dev=asked, epochs=1)
    assert plm.evaluate(lm, asked, "qa")["records"] == 16
    choices = [{"context": "the cat", "choices": ["sat", "is red"], "label": i % 2} for i in range(16)]
    lm = tune(directory("bert"), "multiple-choice", tmp_path / "choices", train=choices, epochs=1)
    assert plm.evaluate(lm, choices, "multiple-choice")["records"] == 16
    pairs = [{"premise": text, "hypothesis": "a cat", "label": label} for text, label in samples.reviews(16)]
    tune(directory("bert"), "pair", tmp_path / "pair", train=pairs, epochs=1)
    texts = [{"body": text} for text, _ in samples.reviews(64)]
    lm = tune(
        directory("gpt2"), "lm", tmp_path / "lm", train=texts, dev=texts, columns=["text=body"], steps=2
    )
    assert "perplexity" in json.loads((tmp_path / "lm/scores.json").read_text())["dev"]
    for folder in tmp_path.iterdir():
        plm.finetune(out=folder, resume=True, quiet=True)


def test_evaluation_without_training(directory):
    lm = plm.load(directory("gpt2"))
    texts = [{"text": text} for text, _ in samples.reviews(8)]
    assert plm.evaluate(lm, texts, "perplexity") == lm.perplexity([t["text"] for t in texts]).to_dict()
    assert plm.evaluate(lm, texts, "last-word")["texts"] == 8
    choices = [{"context": "the cat", "choices": ["sat", "is red"], "label": 0}] * 4
    assert plm.evaluate(lm, columns(choices), "choices")["records"] == 4
    solved = [{"question": "who?", "answer": "the cat"}] * 3
    found = plm.evaluate(lm, solved, "few-shot", shots=solved, k=1, template="{question}", max_new_tokens=2)
    assert found["records"] == 3 and found["shots"] == 1
    with pytest.raises(plm.FormatError, match="row 1: has no 'text', only question, answer"):
        plm.evaluate(lm, solved, "perplexity")


@pytest.mark.parametrize(
    "options, message",
    [
        (
            dict(train=[{"body": "a", "stars": 1}]),
            "'table train', row 1: there is no column for the text, only body, stars",
        ),
        (
            dict(train=[{"text": "a", "stars": 1}]),
            "'table train', row 1: there is no column for the label, only text, stars",
        ),
        (
            dict(train=rows(8), dev=[{"text": "a"}]),
            "'table dev', row 1: there is no column for the label, only text",
        ),
        (
            dict(train=rows(8), columns=["text=body"]),
            "'table train', row 1: there is no column 'body', only text, label",
        ),
        (dict(train=rows(8), columns=["label", "text"]), "'table train' has columns with names"),
        (
            dict(train=[*rows(8), {"text": None, "label": "good"}]),
            "'table train', row 9: text must be a text, got None",
        ),
        (dict(train=[*rows(8), {"text": "a", "label": None}]), "'table train', row 9: there is no label"),
        (
            dict(train=rows(8), dev=[{"text": "a", "label": "fair"}]),
            "'table dev', row 1: the label 'fair' is not one of bad, good",
        ),
        (dict(train=[]), "train: the table has no rows"),
        (dict(train=[1, 2]), "train, row 1: each row must be a dict, got a int"),
        (dict(train=["a.tsv", "b.tsv"]), "train, row 1: each row must be a dict, got a str"),
        (dict(train=b"a.tsv"), "train must be a file or a table"),
        (dict(train=7), "train must be a file or a table"),
        (
            dict(train={"text": ["a"], "label": [1, 2]}),
            "train: all columns must have as many rows, got text 1, label 2",
        ),
    ],
)
def test_what_is_wrong_is_said_before_the_run_begins(directory, tmp_path, options, message):
    with pytest.raises((plm.ArgumentError, plm.FormatError)) as e:
        tune(directory("bert"), "classification", tmp_path / "run", **options)
    assert message in str(e.value)
    assert not (tmp_path / "run").exists()


def test_what_is_wrong_with_a_table_to_evaluate_on(directory, tmp_path):
    lm = tune(directory("bert"), "classification", tmp_path / "run", train=rows(16), epochs=1)
    for table, message in (
        ([{"body": "a"}], "'table', row 1: there is no column for the text, only body"),
        ([{"text": "a", "stars": 1}], "'table', row 1: there is no column for the label, only text, stars"),
        ([], "there are no files"),
        (7, "evaluate must be a file or a table"),
    ):
        with pytest.raises((plm.ArgumentError, plm.FormatError)) as e:
            plm.evaluate(lm, table, "classification")
        assert message in str(e.value)
    unlabelled = [{"text": row["text"]} for row in rows(4)]
    plm.evaluate(lm, unlabelled, "classification", predictions=tmp_path / "predictions.jsonl")
    assert len((tmp_path / "predictions.jsonl").read_text().splitlines()) == 4
