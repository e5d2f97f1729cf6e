"""Fine-tuning with unlabelled text and further tasks: batches by turns, results, and runs that go on."""

import gzip
import json
import pathlib
import subprocess
import sys

import killing
import numpy as np
import plmcore as plm
import pytest
from plmcore.data import Batches
from plmcore.tasks import cross_view, further

NOUNS, VERBS, DETERMINERS = "cat dog man book".split(), "sees likes eats".split(), "the a".split()
SIZES = dict(d_embed=16, d_char=4, char_filters=[[2, 6]], d_uni=24, d_bi=16, d_projection=16, dropout=0.1)


def sentence(rng):
    return [
        (words[rng.integers(len(words))], tag)
        for words, tag in ((DETERMINERS, "D"), (NOUNS, "N"), (VERBS, "V"), (DETERMINERS, "D"), (NOUNS, "N"))
    ][: 5 if rng.integers(2) else 3]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Tagged sentences, classes of sentences, plain text, and a small model that knows its words."""
    folder, rng = tmp_path_factory.mktemp("cvt"), np.random.default_rng(0)
    for name, n in (("train.txt", 24), ("dev.txt", 10)):
        tagged = [sentence(rng) for _ in range(n)]
        (folder / name).write_text("\n".join("".join(f"{w} {t}\n" for w, t in s) for s in tagged))
    texts = [" ".join(w for w, _ in sentence(rng)) for _ in range(60)]
    (folder / "text.txt").write_text("".join(f"{t}\n" for t in texts))
    rows = (f"{t}\t{'long' if len(t.split()) > 3 else 'short'}\n" for t in texts[:20])
    (folder / "classes.tsv").write_text("".join(rows))
    plm.new("cvt", out=folder / "model", text=folder / "text.txt", **SIZES)
    return folder


CHANGES = ["data.batch=8", "train.average=0.9", "schedule.warmup=5", "data.length=16"]


def tune(files, out, changes=(), **options):
    return plm.finetune(
        files / "model", "tagging", train=files / "train.txt", dev=files / "dev.txt",
        unlabelled=files / "text.txt", out=out, quiet=True, changes=[*CHANGES, *changes], **options,
    )  # fmt: skip


def tokenizer_of(files):
    return plm.load_tokenizer(files / "model")


def test_unlabelled_text_stays_in_its_file(files, tmp_path):
    text = "the cat sees\r\n\n  \na dog likes the book\nthe man"
    (tmp_path / "a.txt").write_text(text, newline="")
    (tmp_path / "b.gz").write_bytes(gzip.compress(text.encode()))
    found = [cross_view.Unlabelled(tmp_path / n, tokenizer_of(files), 6) for n in ("a.txt", "b.gz")]
    for read in found:
        assert len(read) == 3 and read.lengths(0).tolist() == [5, 6, 4]
        batch = read.batch([1, 2], seed=0, epoch=0)
        wanted = tokenizer_of(files)(["a dog likes the book", "the man"], max_length=6)
        assert set(batch) == {"input_ids", "attention_mask", "char_ids"}
        for name, array in batch.items():
            np.testing.assert_array_equal(array, wanted[name])
    (tmp_path / "blank.txt").write_text("\n \n")
    with pytest.raises(plm.FormatError, match="has no text to learn from"):
        cross_view.Unlabelled(tmp_path / "blank.txt", tokenizer_of(files), 6)
    (tmp_path / "bytes.txt").write_bytes(b"good\n\xff bad\n")
    with pytest.raises(plm.FormatError, match="line 2, byte 5: 0xff is not UTF-8"):
        cross_view.Unlabelled(tmp_path / "bytes.txt", tokenizer_of(files), 6)


class Numbers:
    def __init__(self, name, n):
        self.name, self.n = name, n

    def __len__(self):
        return self.n

    def batch(self, indices, *, seed, epoch):
        return {self.name: np.array(indices)}


def test_batches_by_turns():
    tasks = [Batches(Numbers(f"task {i}", n), 10, seed=0) for i, n in enumerate((400, 100))]
    turns = cross_view.Turns(tasks, Batches(Numbers("text", 2000), 10, seed=0), seed=3)
    assert turns.steps_per_epoch() == 400
    names = [next(iter(turns[step])) for step in range(600)]
    assert names[1::2] == ["text"] * 300
    first = names[0::2].count("task 0")
    assert 170 <= first <= 230  # two of three
    taken = [turns[step]["task 1"] for step in range(0, 600, 2) if "task 1" in turns[step]]
    assert len(set(map(bytes, taken[:10]))) == 10  # a pass over all of its batches
    again = cross_view.Turns(tasks, turns.unlabelled, seed=3)
    assert next(iter(again[599])) == names[599] and int(again[598]["task"]) == int(turns[598]["task"])
    alone = cross_view.Turns(tasks[:1], None, seed=3)
    assert alone.steps_per_epoch() == 40 and all("task 0" in alone[step] for step in range(5))


def test_several_tasks_are_learnt_scored_and_annotated(files, tmp_path):
    also = [
        dict(
            name="kind",
            task="classification",
            train=str(files / "classes.tsv"),
            dev=str(files / "classes.tsv"),
        )
    ]
    lm = tune(files, tmp_path / "run", ["task.name=pos"], also=also, steps=200)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert scores["dev"]["token_accuracy"] > 0.9 and scores["kind-dev"]["accuracy"] > 0.8
    lines = (tmp_path / "run" / "kind-dev-predictions.jsonl").read_text().splitlines()
    assert len(lines) == 20 and json.loads(lines[0])["label"] in ("long", "short")
    again = plm.load(tmp_path / "run" / "final")
    assert again.model.tasks == ("pos", "kind")
    found = again.annotate(["The cat sees a book", "", "the man likes"])
    assert found[0] == {"words": "The cat sees a book".split(), "pos": list("DNVDN"), "kind": "long"}
    assert found[1] == {"words": []} and found[2]["kind"] == "short"
    assert again.annotate([["the", "man", "likes"]]) == found[2:] == lm.annotate(["the man likes"])
    score = plm.evaluate(again, files / "dev.txt", task="tagging")
    assert score["token_accuracy"] == scores["dev"]["token_accuracy"]
    score = plm.evaluate(again, files / "classes.tsv", task="classification")
    assert score["accuracy"] == scores["kind-dev"]["accuracy"]
    assert again.classify("the man likes")["label"] == "short"
    with pytest.raises(plm.ArgumentError, match="task.name must be one of the model's tasks, pos, kind"):
        plm.evaluate(again, files / "dev.txt", task="tagging", changes=["task.name=ner"])


def test_without_unlabelled_text_it_is_supervised(files, tmp_path):
    tune(files, tmp_path / "run", epochs=1)
    options = dict(train=files / "train.txt", out=tmp_path / "alone", quiet=True, epochs=1, changes=CHANGES)
    plm.finetune(files / "model", "tagging", **options)
    steps = [
        json.loads((tmp_path / n / "metrics.jsonl").read_text().splitlines()[-1])["step"]
        for n in ("run", "alone")
    ]
    assert steps == [16, 3]  # a pass over 60 sentences, each with a batch of labels; over 24 with labels


def test_the_published_schedule(files, tmp_path):
    plm.finetune(
        files / "model", "tagging", train=files / "train.txt", unlabelled=files / "text.txt",
        out=tmp_path / "run", steps=20, quiet=True,
        changes=["schedule.warmup=5000", "train.log_every=1"],
    )  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        if "lr" in line:
            s = line["step"]
            np.testing.assert_allclose(
                line["lr"], 0.5 * min(s, 5000) / 5000 / (1 + 0.005 * s**0.5), rtol=1e-6
            )
    config = (tmp_path / "run" / "config.toml").read_text()
    assert "momentum = 0.9" in config and "average = 0.998" in config and "clip_norm = 1.0" in config
    assert "batch = 64" in config and 'scheme = "bioes"' in config


def test_a_stopped_run_goes_on_bit_for_bit(files, tmp_path):
    also = [dict(name="kind", task="classification", train=str(files / "classes.tsv"))]
    options = dict(also=also, steps=12, save_every=3)
    tune(files, tmp_path / "whole", **options)
    with pytest.raises(killing.Stop):
        tune(files, tmp_path / "halves", **options, callbacks=[killing.stop_at(7)])
    plm.finetune(None, None, out=tmp_path / "halves", resume=True, quiet=True)
    whole, halves = ((tmp_path / n / "final" / "model.safetensors").read_bytes() for n in ("whole", "halves"))
    assert whole == halves


def test_a_killed_command_goes_on_bit_for_bit(files, tmp_path):
    def command(out, *more):
        given = [sys.executable, "-m", "plmcore", "finetune", "--out", str(tmp_path / out), *more]
        return subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    settings = [text for change in CHANGES for text in ("--set", change)]
    start = [str(files / "model"), "--task", "tagging", "--train", str(files / "train.txt")]
    start += ["--unlabelled", str(files / "text.txt"), "--steps", "60", "--save-every", "5", *settings]
    whole, killed = command("whole", *start), command("killed", *start)
    checkpoints = tmp_path / "killed" / "checkpoints"
    assert killing.until(lambda: checkpoints.exists() and any(checkpoints.glob("step-*")), killed)
    killing.kill(killed)
    assert not (tmp_path / "killed" / "final").exists()
    again = command("killed", "--resume")
    for process in (again, whole):
        assert process.wait(240) == 0, process.stderr.read().decode()
        process.communicate()
    a, b = ((tmp_path / n / "final" / "model.safetensors").read_bytes() for n in ("whole", "killed"))
    assert a == b


def test_what_cannot_be_learnt(files, directory, tmp_path):
    train, out = files / "train.txt", tmp_path / "run"
    with pytest.raises(
        plm.ArgumentError, match=r"data.unlabelled is for models with auxiliary heads \(cvt\)"
    ):
        plm.finetune(
            directory("bert"), "tagging", train=train, unlabelled=files / "text.txt", out=out, quiet=True
        )
    with pytest.raises(FileNotFoundError, match="there is no '.*none.txt'"):
        plm.finetune(files / "model", "tagging", train=train, unlabelled="none.txt", out=out, quiet=True)
    with pytest.raises(plm.ArgumentError, match="problem_type must be one of"):
        (tmp_path / "numbers.tsv").write_text("the cat\t1.5\na dog\t2.5\n")
        plm.finetune(
            files / "model", "regression", train=tmp_path / "numbers.tsv", out=tmp_path / "x", quiet=True
        )
    for table, message in (
        (dict(task="qa", train="x"), "tasks that are learnt together are tagging and classification"),
        (dict(train="x"), 'must have task = "..."'),
        (dict(task="tagging"), 'must have train = "..."'),
        (dict(task="tagging", train=str(train)), "a task with the name 'tagging' is there"),
        (dict(task="tagging", train="x", name="a/b"), "a name has letters, digits"),
        (dict(task="tagging", train=str(train), nmae="x"), "there is no setting .*nmae"),
    ):
        with pytest.raises(plm.ArgumentError, match=message):
            tune(files, out, also=[table], steps=2)
    assert not out.exists()


def test_changed_text_is_noticed(files, tmp_path):
    text = tmp_path / "text.txt"
    text.write_bytes((files / "text.txt").read_bytes())
    options = dict(train=files / "train.txt", out=tmp_path / "run", quiet=True, changes=CHANGES)
    with pytest.raises(killing.Stop):
        plm.finetune(
            files / "model", "tagging", unlabelled=text, steps=6, save_every=2, **options,
            callbacks=[killing.stop_at(3)],
        )  # fmt: skip
    text.write_text("other text\n")
    with pytest.raises(plm.ArgumentError, match="the data has changed since this run began"):
        plm.finetune(None, None, out=tmp_path / "run", resume=True, quiet=True)


def test_tables_of_a_command():
    assert further.parse("tagging=a.txt") == {"task": "tagging", "train": "a.txt"}
    assert further.parse('{name = "x", task = "tagging", train = "b"}')["name"] == "x"
    for wrong in ("tagging", "=a", "{task"):
        with pytest.raises(plm.ArgumentError, match="--also"):
            further.parse(wrong)


def test_a_tagger_of_another_family_is_annotated_too(directory, files, tmp_path):
    lm = plm.finetune(
        directory("bert"), "tagging", train=files / "train.txt", out=tmp_path / "run", quiet=True, epochs=1
    )
    found = lm.annotate("the cat sees")
    assert found["words"] == ["the", "cat", "sees"] and set(found["tagging"]) <= set("DNV")
    with pytest.raises(plm.ArgumentError, match="annotate: this model has the head base"):
        plm.load(directory("bert"), head="base").annotate(["a"])


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="needs /proc")
def test_encoding_of_long_texts_is_cut(files):
    read = cross_view.Unlabelled(files / "text.txt", tokenizer_of(files), 4)
    assert read.batch(np.arange(5), seed=0, epoch=0)["input_ids"].shape == (5, 4)
