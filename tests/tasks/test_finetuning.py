import json
import shutil

import numpy as np
import plmcore as plm
import pytest
import samples

FAST = [
    "data.length=32",
    "data.batch=16",
    "optim.lr=3e-3",
    "schedule.kind=constant",
    "train.warmup_share=0.05",
]


def tune(directory, task, out, *, changes=(), epochs=2, **options):
    return plm.finetune(
        directory, task, out=out, epochs=epochs, quiet=True, changes=[*FAST, *changes], **options
    )


def scores(out, split="dev"):
    return json.loads((out / "scores.json").read_text())[split]


def predictions(out, split="dev"):
    return [json.loads(line) for line in (out / f"{split}-predictions.jsonl").read_text().splitlines()]


def test_a_table_of_texts_makes_a_classifier(directory, table, tmp_path):
    out = tmp_path / "run"
    tune(
        directory("bert"),
        "classification",
        out,
        train=table("train.tsv", samples.reviews(160)),
        dev=table("dev.tsv", samples.reviews(40, 160)),
        test=table("test.tsv", [[t] for t, _ in samples.reviews(20, 200)]),
        epochs=4,
    )
    assert scores(out)["accuracy"] >= 0.95
    assert [p["label"] for p in predictions(out, "test")] == [label for _, label in samples.reviews(20, 200)]
    assert scores(out, "test") == {}  # it had no labels
    config = json.loads((out / "final" / "config.json").read_text())
    assert config["id2label"] == {"0": "bad", "1": "good"} and config["architectures"] == [
        "BertForSequenceClassification"
    ]
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert any("eval_accuracy" in line for line in lines) and any("dev_accuracy" in line for line in lines)
    page = (out / "report.html").read_text()
    assert "Held-out accuracy" in page and "Sample after step 40" in page

    lm = plm.load(out / "final")
    found = lm.classify(["the lovely cat is in the house", "the sad cow is in the town"])
    assert [f["label"] for f in found] == ["good", "bad"]


def test_activations_in_bfloat16(directory, table, tmp_path):
    files = dict(train=table("train.tsv", samples.reviews(64)), dev=table("dev.tsv", samples.reviews(20, 64)))
    for kind in ("float32", "bfloat16"):
        changes = [f"train.activations={kind}", "data.batch=64"]
        tune(directory("bert"), "classification", tmp_path / kind, changes=changes, epochs=2, **files)
    plain, rounded = (
        (tmp_path / k / "final" / "model.safetensors").read_bytes() for k in ("float32", "bfloat16")
    )
    assert plain != rounded and len(plain) == len(rounded)
    assert 'activations = "bfloat16"' in (tmp_path / "bfloat16" / "config.toml").read_text()
    assert scores(tmp_path / "bfloat16")["loss"] == pytest.approx(
        scores(tmp_path / "float32")["loss"], rel=0.05
    )


@pytest.mark.parametrize(
    "family", ["roberta", "albert", "distilbert", "xlnet", "gpt2", "openai-gpt", "glm", "bart", "t5"]
)
def test_every_family_learns_to_classify(directory, table, tmp_path, family):
    out = tmp_path / "run"
    train = table("train.tsv", samples.reviews(160))
    dev = table("dev.tsv", samples.reviews(32, 160))
    tune(directory(family), "classification", out, train=train, dev=dev, epochs=6)
    assert scores(out)["accuracy"] >= 0.9
    lm = plm.load(out / "final")
    found = lm.classify([text for text, _ in samples.reviews(32, 160)])
    assert [f["label"] for f in found] == [p["label"] for p in predictions(out)]


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_pairs(directory, table, tmp_path, family):
    rows = [(label, a, b) for a, b, label in samples.pairs(200)]
    out = tmp_path / "run"
    lm = tune(
        directory(family), "pair", out, train=table("train.tsv", rows), dev=table("dev.tsv", rows[:40]),
        columns=["label", "text", "pair"], epochs=1,
    )  # fmt: skip
    probabilities = [p["probabilities"] for p in predictions(out)]
    assert all(abs(sum(p.values()) - 1) < 1e-4 and set(p) == {"no", "yes"} for p in probabilities)
    swapped = lm.classify([b for _, _, b in rows[:4]], [a for _, a, _ in rows[:4]])
    straight = lm.classify([a for _, a, _ in rows[:4]], [b for _, _, b in rows[:4]])
    assert [s["probability"] for s in swapped] != [s["probability"] for s in straight]


@pytest.mark.parametrize("batch", [0, -1])
def test_a_batch_of_nothing(directory, table, tmp_path, batch):
    files = dict(train=table("train.tsv", samples.reviews(16)))
    with pytest.raises(plm.ArgumentError, match=f"data.batch must be at least 1, got {batch}"):
        tune(directory("bert"), "classification", tmp_path / "x", changes=[f"data.batch={batch}"], **files)


def test_an_encoder_has_no_auxiliary_loss(directory, table, tmp_path):
    with pytest.raises(plm.ArgumentError, match="for decoders that classify, and this is bert; leave them"):
        tune(
            directory("bert"),
            "classification",
            tmp_path / "run",
            train=table("train.tsv", samples.reviews(16)),
            changes=["task.lm_weight=0.5"],
        )


def test_pairs_in_both_orders_are_alike(directory, table, tmp_path):
    rows = samples.pairs(32)
    out = tmp_path / "run"
    lm = tune(
        directory("openai-gpt"),
        "pair",
        out,
        train=table("train.tsv", rows),
        dev=table("dev.tsv", rows[:8]),
        test=table("test.tsv", [(b, a, label) for a, b, label in rows[:8]]),
        epochs=1,
        changes=["task.both_orders=true", "data.accumulate=2"],
    )
    straight, swapped = (
        [p["probabilities"]["yes"] for p in predictions(out, split)] for split in ("dev", "test")
    )
    np.testing.assert_allclose(straight, swapped, atol=1e-5)
    assert len(set(straight)) > 1
    for model in (lm, plm.load(out / "final")):  # and so does the model afterwards
        for a, b in ((0, 1), (1, 0)):
            found = model.classify([row[a] for row in rows[:8]], [row[b] for row in rows[:8]], batch_size=3)
            np.testing.assert_allclose([f["probabilities"]["yes"] for f in found], straight, atol=1e-5)


def test_regression(directory, table, tmp_path):
    pytest.importorskip("scipy", reason="correlations need the extra eval")
    out = tmp_path / "run"
    rows = samples.weights()
    tune(
        directory("bert"),
        "regression",
        out,
        train=table("train.tsv", rows),
        dev=table("dev.tsv", rows[:20]),
        epochs=8,
    )
    assert scores(out)["pearson"] > 0.95 and scores(out)["loss"] < 0.2
    values = [p["value"] for p in predictions(out)]
    np.testing.assert_allclose(values, [v for _, v in rows[:20]], atol=0.9)
    assert plm.load(out / "final").config.num_labels == 1


@pytest.mark.parametrize("family", ["bert", "openai-gpt"])
def test_multiple_choice(directory, table, tmp_path, family):
    header = [("context", "choice0", "choice1", "label")]
    out = tmp_path / "run"
    tune(
        directory(family), "multiple-choice", out, train=table("train.tsv", header + samples.choices(96)),
        dev=table("dev.tsv", header + samples.choices(24, 96)), epochs=4,
    )  # fmt: skip
    assert scores(out)["accuracy"] >= 0.9 and len(predictions(out)[0]["probabilities"]) == 2
    assert plm.load(out / "final").head == {"bert": "multiple-choice", "openai-gpt": "double-heads"}[family]


@pytest.mark.parametrize(
    "family, task",
    [
        *(
            (family, task)
            for family in ("bert", "gpt2", "openai-gpt", "xlnet")
            for task in ("classification", "pair", "multiple-choice")
        ),
        *((family, task) for family in ("bert", "xlnet") for task in ("qa", "tagging")),
    ],
)
def test_the_side_of_padding_changes_nothing(directory, table, tmp_path, family, task):
    """A tokenizer that pads on the other side, as for generation, speaks for the same tokens."""
    rows = {
        "classification": samples.reviews(24),
        "pair": samples.pairs(24),
        "multiple-choice": samples.choices(24),
    }
    file = tmp_path / "rows.txt"
    if task in ("qa", "tagging"):
        file.write_text(json.dumps(samples.questions(12)) if task == "qa" else samples.tagged(12))
    else:
        header = [("context", "choice0", "choice1", "label")] if task == "multiple-choice" else []
        longer = [
            (f"{row[0]} and {row[0]}" if i % 2 else row[0], *row[1:]) for i, row in enumerate(rows[task])
        ]
        file = table("rows.tsv", header + longer)
    found = []
    for side in ("left", "right"):
        folder = tmp_path / side
        shutil.copytree(directory(family), folder)
        settings = json.loads((folder / "tokenizer_config.json").read_text()) | {"padding_side": side}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        assert plm.load_tokenizer(folder).padding_side == side
        out = tmp_path / f"{side}-run"
        tune(folder, task, out, train=file, dev=file, steps=3)
        plm.evaluate(out / "final", file, task, predictions=tmp_path / "again.jsonl")
        assert (tmp_path / "again.jsonl").read_text() == (out / "dev-predictions.jsonl").read_text()
        found.append((scores(out), predictions(out)))
    assert found[0] == found[1]


def test_tagging(directory, tmp_path):
    for name, first in (("train", 0), ("dev", 100)):
        (tmp_path / f"{name}.txt").write_text(samples.tagged(100 if name == "train" else 20, first))
    out = tmp_path / "run"
    tune(
        directory("bert"),
        "tagging",
        out,
        train=tmp_path / "train.txt",
        dev=tmp_path / "dev.txt",
        epochs=4,
        changes=["data.batch=8"],
    )
    assert scores(out)["token_accuracy"] > 0.95
    assert predictions(out)[0]["tags"] == ["O", "B-BEAST", "I-BEAST", "O", "O", "O", "B-PLACE"]


def test_bioes_tags_and_entities(directory, tmp_path):
    pytest.importorskip("seqeval")
    (tmp_path / "train.txt").write_text(samples.tagged(100))
    out = tmp_path / "run"
    changes = ["task.scheme=bioes", 'task.metrics=["entities"]', "data.batch=8"]
    tune(
        directory("bert"),
        "tagging",
        out,
        train=tmp_path / "train.txt",
        dev=tmp_path / "train.txt",
        epochs=4,
        changes=changes,
    )
    assert scores(out)["f1"] > 0.9 and predictions(out)[0]["tags"][6] == "S-PLACE"


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_questions_and_answers(directory, tmp_path, family):
    for name, n in (("train", 160), ("dev", 32)):
        (tmp_path / f"{name}.json").write_text(json.dumps(samples.questions(n)))
    out = tmp_path / "run"
    tune(
        directory(family), "qa", out, train=tmp_path / "train.json", dev=tmp_path / "dev.json", epochs=6,
        changes=["task.stride=4", "task.question_length=8"],
    )  # fmt: skip
    assert scores(out)["f1"] > 0.8
    first = predictions(out)[0]
    assert (
        first["id"] == "q0" and first["answer"] == first["n_best"][0]["answer"] and len(first["n_best"]) == 5
    )


def test_questions_without_answers_are_answered(directory, tmp_path):
    plain = samples.questions(4)
    for paragraph in plain["data"][0]["paragraphs"]:
        del paragraph["qas"][0]["answers"]
    for name, table in (("train", samples.questions(16)), ("test", plain)):
        (tmp_path / f"{name}.json").write_text(json.dumps(table))
    out = tmp_path / "run"
    tune(directory("bert"), "qa", out, train=tmp_path / "train.json", test=tmp_path / "test.json", epochs=1)
    assert scores(out, "test") == {} and [p["id"] for p in predictions(out, "test")] == [
        "q0",
        "q1",
        "q2",
        "q3",
    ]
    with pytest.raises(plm.FormatError, match="no question has an answer: there is nothing to learn"):
        tune(directory("bert"), "qa", tmp_path / "other", train=tmp_path / "test.json")
    table["data"][0]["paragraphs"] += samples.questions(1)["data"][0]["paragraphs"]
    (tmp_path / "some.json").write_text(json.dumps(table))
    with pytest.raises(
        plm.FormatError, match=r"some\.json', q0: there is no answer, and is_impossible is not true"
    ):
        tune(
            directory("bert"),
            "qa",
            tmp_path / "other",
            train=tmp_path / "train.json",
            dev=tmp_path / "some.json",
        )


@pytest.mark.parametrize("family", ["t5", "bart", "mass"])
def test_texts_from_texts(directory, table, tmp_path, family):
    pytest.importorskip("sacrebleu")
    rows = [(sentence, f"the {samples.scene(i)[0]}") for i, sentence in enumerate(samples.sentences(64))]
    out = tmp_path / "run"
    changes = ["task.prefix=shorten: ", "task.target_length=8", "optim.kind=adamw"]
    tune(
        directory(family),
        "seq2seq",
        out,
        train=table("train.tsv", rows),
        dev=table("dev.tsv", rows[:16]),
        epochs=20 if family == "mass" else 12,
        changes=changes,
    )
    assert scores(out)["perplexity"] < 8 and "bleu" in scores(out)
    texts = [p["text"] for p in predictions(out)]
    assert len(texts) == 16 and sum(t.startswith("the") for t in texts) >= 12
    lm = plm.load(out / "final")
    assert lm.generate("shorten: " + rows[0][0], max_new_tokens=8).strip() == texts[0]


def test_classes_as_text(directory, table, tmp_path):
    rows = [(text, {"good": "fine"}.get(label, label)) for text, label in samples.reviews(96)]
    out = tmp_path / "run"
    changes = ["task.as_text=true", "optim.kind=adamw", "task.target_length=6"]
    tune(
        directory("t5"),
        "classification",
        out,
        train=table("train.tsv", rows),
        dev=table("dev.tsv", rows[:24]),
        epochs=12,
        changes=changes,
    )
    texts = [p["text"] for p in predictions(out)]
    right = sum(text == label for text, (_, label) in zip(texts, rows, strict=False))
    assert scores(out)["accuracy"] == pytest.approx(right / 24)
    assert sum(text in ("fine", "bad") for text in texts) >= 20
    found = plm.load(out / "final").classify([text for text, _ in rows[:24]])
    assert all(f["label"] == text for f, text in zip(found, texts, strict=True) if text in ("fine", "bad"))
    assert all(set(f["probabilities"]) == {"fine", "bad"} for f in found)


def test_published_casts(directory):
    pytest.importorskip("sklearn")
    from plmcore.tasks.seq2seq import TextLabels

    lm = plm.load(directory("t5"))
    settings = {"metrics": ["accuracy", "f1"], "prefix": "", "target_length": 16, "label_smoothing": 0.0}
    records = [{"text": "the cat", "pair": "the dog"}] * 2
    names = ["not_equivalent", "equivalent"]
    made = TextLabels(records, [1, 0], names, "mrpc", lm.tokenizer, lm.model, 64, settings)
    assert made.targets == ["equivalent", "not_equivalent"]
    source = lm.tokenizer("mrpc sentence1: the cat sentence2: the dog").input_ids
    assert made.rows.ids[0].tolist() == source.tolist()
    assert made.scores([{"text": "equivalent"}, {"text": "?"}]) == {
        "accuracy": 0.5,
        "f1": pytest.approx(2 / 3),
    }
    numbered = TextLabels(records, [1, 0], ["0", "1"], "mrpc", lm.tokenizer, lm.model, 64, settings)
    assert numbered.targets == ["equivalent", "not_equivalent"] == numbered.names[::-1]
    similar = TextLabels(records, [2.13, 5.0], (), "stsb", lm.tokenizer, lm.model, 64, settings)
    assert (
        similar.targets == ["2.2", "5.0"]
        and similar.number("3.4", 5.0) == 3.4
        and similar.number("nan", 5.0) == 0.0
    )


@pytest.mark.parametrize("family", ["gpt2", "bert", "t5"])
def test_going_on_with_pre_training(directory, prose, tmp_path, family):
    out = tmp_path / "run"
    tune(
        directory(family),
        "lm",
        out,
        train=prose,
        dev=prose,
        epochs=2,
        changes=["data.batch=4", "optim.kind=adamw"],
    )
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    losses = [line["eval_loss"] for line in lines if "eval_loss" in line]
    assert len(losses) >= 2 and losses[-1] < losses[0]
    assert scores(out)["loss"] == losses[-1]
    assert plm.load(out / "final").head == plm.load(directory(family)).head


@pytest.mark.parametrize("first, then", [
    (dict(epochs=1), dict(epochs=2)), (dict(epochs=1), dict(steps=6)), (dict(steps=3), dict(epochs=2)),
    (dict(steps=3), dict(steps=6)),
])  # fmt: skip
def test_a_run_is_made_longer(directory, table, tmp_path, first, then):
    """By epochs or steps; up to the old end it has the bits of the shorter one, and its config repeats it."""

    def checkpoint_of(out, step):
        return (out / "checkpoints" / f"step-{step:08}" / "weights.safetensors").read_bytes()

    files = dict(train=table("train.tsv", samples.reviews(48)), dev=table("dev.tsv", samples.reviews(16, 48)))
    options = dict(
        quiet=True, changes=["data.length=32", "data.batch=16"], **files
    )  # 3 steps an epoch, a linear schedule
    out, again = tmp_path / "run", tmp_path / "again"
    plm.finetune(directory("bert"), "classification", out=out, **first, **options)
    short = checkpoint_of(out, 3)
    plm.finetune(out=out, resume=True, quiet=True, **then)
    assert checkpoint_of(out, 3) == short and scores(out)["accuracy"] >= 0
    plm.finetune(config=out / "config.toml", out=again, quiet=True)
    assert checkpoint_of(again, 3) == short and checkpoint_of(again, 6) == checkpoint_of(out, 6)
    rates = {
        m["step"]: m["lr"]
        for m in map(json.loads, (again / "metrics.jsonl").read_text().splitlines())
        if "lr" in m
    }
    assert rates[3] == pytest.approx(3e-4 / 3) and rates[6] == pytest.approx(
        3e-4 / 6
    )  # the last of 3, and of 6, without warm-up
    with pytest.raises(ValueError, match="more each time|only be made longer"):
        plm.finetune(out=out, resume=True, quiet=True, steps=5)
