"""What finetune scores on its test file, plmcore evaluate scores on the saved model."""

import json

import plmcore as plm
import pytest
import samples
from plmcore import cli

FAST = ["data.length=32", "data.batch=16", "optim.lr=3e-3"]


def tuned(directory, task, out, family="bert", changes=(), **files):
    plm.finetune(directory(family), task, out=out, quiet=True, steps=4, changes=[*FAST, *changes], **files)
    return out / "final", json.loads((out / "scores.json").read_text())["test"]


def same(found, scores, records):
    assert found.pop("records") == records
    assert found == {k: pytest.approx(v, rel=1e-5) if isinstance(v, float) else v for k, v in scores.items()}


@pytest.mark.parametrize("family, changes", [
    ("bert", []), ("gpt2", ["task.lm_weight=0.0"]), ("bert", ["adapt.layers=mix", "adapt.freeze=body"]),
])  # fmt: skip
def test_classes(directory, table, tmp_path, family, changes):
    train, test = table("train.tsv", samples.reviews(48)), table("test.tsv", samples.reviews(20, 48))
    final, scores = tuned(
        directory, "classification", tmp_path / "run", family, changes, train=train, test=test
    )
    written = tmp_path / "found.jsonl"
    same(plm.evaluate(final, test, "classification", changes=FAST[:2], predictions=written), scores, 20)
    assert written.read_bytes() == (tmp_path / "run" / "test-predictions.jsonl").read_bytes()


@pytest.mark.parametrize("task", ["classification", "sst2", "regression"])
def test_classes_and_numbers_as_text(directory, table, tmp_path, task):
    """The directory says that the model writes its answers, and what it may write."""
    if task == "regression":
        pytest.importorskip("scipy")
    rows = samples.weights() if task == "regression" else samples.reviews(64)
    rows = [(text, int(label == "good")) for text, label in rows] if task == "sst2" else rows
    train, test = table("train.tsv", rows[:48]), table("test.tsv", rows[48:])
    changes = ["task.as_text=true", "task.target_length=6"]
    final, scores = tuned(directory, task, tmp_path / "run", "t5", changes, train=train, test=test)
    written = tmp_path / "found.jsonl"
    found = plm.evaluate(final, test, task, changes=[*FAST[:2], "task.target_length=6"], predictions=written)
    same(found, scores, 16)
    assert written.read_bytes() == (tmp_path / "run" / "test-predictions.jsonl").read_bytes()
    names = json.loads((final / "config.json").read_text()).get("id2label")
    assert names == {"classification": {"0": "bad", "1": "good"}, "sst2": {"0": "0", "1": "1"}}.get(task)


def test_settings_of_the_training_are_those_of_the_scores(directory, table, tmp_path):
    """A text is cut where it was cut in training; what is given again comes before that."""
    rows = table("rows.tsv", [(f"{text} {text}", label) for text, label in samples.reviews(40)])
    final, scores = tuned(
        directory, "classification", tmp_path / "run", changes=["data.length=6"], train=rows, test=rows
    )
    same(plm.evaluate(final, rows, "classification"), scores, 40)
    assert plm.evaluate(final, rows, "classification", changes=["data.length=32"])["loss"] != pytest.approx(
        scores["loss"]
    )


def test_prefix_and_lengths_of_the_training_are_kept(directory, table, tmp_path):
    pytest.importorskip("sacrebleu")
    changes = ["task.prefix=turn: ", "task.target_length=5"]
    pairs = table("pairs.tsv", [("source", "target"), *((a, b) for a, b, _ in samples.pairs(20))])
    final, scores = tuned(directory, "seq2seq", tmp_path / "text", "t5", changes, train=pairs, test=pairs)
    assert json.loads((final / "config.json").read_text())["task_specific_params"] == {
        "finetuning": {"task": "seq2seq", "length": 32, "prefix": "turn: ", "target_length": 5}
    }
    same(plm.evaluate(final, pairs, "seq2seq"), scores, 20)


def test_another_task_forgets_how_the_last_one_was_put(directory, table, tmp_path):
    rows = table("train.tsv", samples.reviews(32))
    files = dict(train=rows, test=rows)
    first, _ = tuned(directory, "classification", tmp_path / "a", "t5", ["task.as_text=true"], **files)
    assert plm.load(first).config.extra["task_specific_params"]["finetuning"]["as_text"] is True
    second, scores = tuned(lambda _: first, "classification", tmp_path / "b", **files)
    assert plm.load(second).config.extra["task_specific_params"]["finetuning"] == {
        "task": "classification",
        "length": 32,
    }
    same(plm.evaluate(second, rows, "classification", changes=FAST[:2]), scores, 32)


def test_classes_as_text_of_a_model_from_elsewhere(directory, table):
    """It names no classes: those of a published task are known, others are given."""
    rows = samples.reviews(8)
    changes = [*FAST[:2], "task.as_text=true", "task.target_length=6"]
    numbered = table("numbered.tsv", [(text, int(label == "good")) for text, label in rows])
    assert plm.evaluate(directory("t5"), numbered, "sst2", changes=changes)["records"] == 8
    named = table("named.tsv", rows)
    with pytest.raises(ValueError, match="writes classes that it does not name; data.labels must"):
        plm.evaluate(directory("t5"), named, "classification", changes=changes)
    labels = 'data.labels=["bad", "good"]'
    assert plm.evaluate(directory("t5"), named, "classification", changes=[*changes, labels])["records"] == 8


def test_pairs_in_both_orders(directory, table, tmp_path):
    train, test = table("train.tsv", samples.pairs(48)), table("test.tsv", samples.pairs(20, 48))
    final, scores = tuned(
        directory,
        "pair",
        tmp_path / "run",
        "gpt2",
        ["task.both_orders=true", "task.lm_weight=0.0"],
        train=train,
        test=test,
    )
    same(plm.evaluate(final, test, "pair", changes=FAST[:2]), scores, 20)


def test_tags_answers_and_texts(directory, table, tmp_path):
    tags = tmp_path / "tags.txt"
    tags.write_text(samples.tagged(30))
    final, scores = tuned(
        directory, "tagging", tmp_path / "tagging", changes=["task.scheme=bioes"], train=tags, test=tags
    )
    same(plm.evaluate(final, tags, "tagging", changes=[*FAST[:2], "task.scheme=bioes"]), scores, 30)
    squad = tmp_path / "squad.json"
    squad.write_text(json.dumps(samples.questions(12)))
    final, scores = tuned(directory, "qa", tmp_path / "qa", train=squad, test=squad)
    same(plm.evaluate(final, squad, "qa", changes=FAST[:2]), scores, 12)


def test_questions_that_may_have_no_answer_stay_so(directory, tmp_path):
    """SQuAD 2.0: the directory remembers that an empty answer is one, and says so of files whose questions
    all have answers.
    """
    both, answered = tmp_path / "both.json", tmp_path / "answered.json"
    questions = samples.questions(24)
    answered.write_text(json.dumps(questions))
    for paragraph in questions["data"][0]["paragraphs"][:20]:
        paragraph["qas"][0] |= {"answers": [], "is_impossible": True}
    both.write_text(json.dumps(questions))
    out = tmp_path / "run"
    plm.finetune(
        directory("bert"), "squad2", train=both, dev=both, out=out, quiet=True, steps=20, changes=FAST
    )
    kept = json.loads((out / "final" / "config.json").read_text())["task_specific_params"]["finetuning"]
    assert kept["unanswerable"] is True and kept["task"] == "squad2"
    written = tmp_path / "p.jsonl"
    plm.evaluate(out / "final", answered, predictions=written)
    assert "" in [json.loads(line)["answer"] for line in written.read_text().splitlines()]
    plm.evaluate(out / "final", answered, predictions=written, changes=["task.unanswerable=false"])
    assert "" not in [json.loads(line)["answer"] for line in written.read_text().splitlines()]


def test_the_task_that_a_model_was_trained_for(directory, table, tmp_path, capsys):
    train = table("train.tsv", samples.reviews(24))
    final, scores = tuned(directory, "classification", tmp_path / "run", train=train, test=train)
    same(plm.evaluate(final, train), scores, 24)
    assert cli.main(["evaluate", str(final), str(train), "--json"]) == 0
    same(json.loads(capsys.readouterr().out), scores, 24)
    assert cli.main(["evaluate", str(final), str(train), "--window", "3"]) == 2
    assert "--window means nothing to classification" in capsys.readouterr().err


def test_without_labels_there_are_predictions_alone(directory, table, tmp_path):
    train = table("train.tsv", samples.reviews(48))
    final, _ = tuned(directory, "classification", tmp_path / "run", train=train, test=train)
    plain = table("plain.tsv", [("text",), ("a cat",), ("a dog",)])
    with pytest.raises(
        plm.FormatError, match=r"plain.tsv': not every record has a label, .* name a file for predictions"
    ):
        plm.evaluate(final, plain, "classification")
    assert plm.evaluate(final, plain, "classification", predictions=tmp_path / "p.jsonl") == {"records": 2}
    assert [
        json.loads(x)["label"] in ("good", "bad") for x in (tmp_path / "p.jsonl").read_text().splitlines()
    ] == [True] * 2


def test_what_cannot_be_scored(directory, table, tmp_path, capsys):
    train = table("train.tsv", samples.reviews(48))
    final, _ = tuned(directory, "classification", tmp_path / "run", train=train, test=train)
    other = table("other.tsv", [("a cat", "good"), ("a dog", "middling")])
    with pytest.raises(
        plm.FormatError, match=r"other.tsv', line 2: the label 'middling' is not one of bad, good"
    ):
        plm.evaluate(final, other, "classification")
    with pytest.raises(
        ValueError, match="has the head sequence-classification, and tagging needs token-classification"
    ):
        plm.evaluate(final, train, "tagging")
    with pytest.raises(ValueError, match="scored on one file, got 2"):
        plm.evaluate(final, [train, train], "classification")
    lm = plm.load(final)
    lm.model.config = lm.config.replace(extra={})
    with pytest.raises(plm.ArgumentError, match="its directory does not say for which task: name it"):
        plm.evaluate(lm, train)
    with pytest.raises(ValueError, match="text is scored by the task perplexity"):
        plm.evaluate(final, train, "lm")
    assert (
        cli.main(
            [
                "evaluate",
                str(final),
                str(train),
                "--task",
                "classification",
                "--columns",
                "label,text",
                "--set",
                "data.batch=8",
            ]
        )
        == 1
    )
    assert "line 1: the label" in capsys.readouterr().err
    assert cli.main(["evaluate", str(final), str(train), "--task", "classification", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 48
