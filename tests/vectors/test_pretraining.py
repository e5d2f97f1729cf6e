"""plmcore pretrain word2vec and glove, stopped and resumed, and plmcore evaluate of their vectors."""

import json

import numpy as np
import plmcore as plm
import pytest
from killing import Stop, stop_at
from plmcore import cli
from plmcore.train import run_directory

SETTINGS = {
    "word2vec": ["model.dim=10", "train.words_per_step=2000", "train.epochs=2"],
    "glove": ["model.dim=10", "train.records_per_step=100", "train.epochs=3", "data.memory_mb=16"],
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(" ".join(f"w{x}" for x in rng.zipf(1.5, 12) % 50) + "\n" for _ in range(1000)))
    return path


def run(out, family, text, **options):
    changes = [*SETTINGS[family], "train.threads=1", "train.save_every=2"]
    return plm.pretrain(family, out=out, text=[text], changes=changes, quiet=True, **options)


@pytest.mark.parametrize("family", SETTINGS)
def test_stopped_and_resumed(tmp_path, text, family):
    whole = run(tmp_path / "whole", family, text)
    for step in (3, 7):
        with pytest.raises(Stop):
            run(tmp_path / "cut", family, text, resume=step > 3, callbacks=[stop_at(step)])
    again = plm.vectors.pretrain(out=tmp_path / "cut", resume=True, quiet=True)
    assert again.words == whole.words and np.array_equal(again.matrix, whole.matrix)
    files = [tmp_path / name / "final" / "vectors.safetensors" for name in ("whole", "cut")]
    assert files[0].read_bytes() == files[1].read_bytes()
    lines = [
        [{k: v for k, v in line.items() if "second" not in k} for line in run_directory.read_metrics(out)]
        for out in (tmp_path / "whole" / "metrics.jsonl", tmp_path / "cut" / "metrics.jsonl")
    ]
    assert lines[0] == lines[1] and lines[0][-1]["loss"] < lines[0][0]["loss"]
    loaded = plm.load_vectors(tmp_path / "cut" / "final")
    assert np.array_equal(loaded.matrix, whole.matrix) and np.array_equal(loaded.counts, whole.counts)
    assert (tmp_path / "cut" / "report.html").exists() and not (tmp_path / "cut" / "corpus").exists()
    if family == "glove":
        assert whole.losses == again.losses and np.array_equal(whole.parameters, again.parameters)


def test_same_as_in_memory(tmp_path, text):
    ours = plm.vectors.word2vec(text, dim=10, epochs=2, threads=1)
    assert np.array_equal(run(tmp_path / "run", "word2vec", text).matrix, ours.matrix)


def test_commands(tmp_path, text, capsys):
    for family in SETTINGS:
        changes = [x for change in SETTINGS[family] for x in ("--set", change)]
        out = tmp_path / family
        assert cli.main(["pretrain", family, "--text", str(text), "--out", str(out), *changes]) == 0
        assert cli.main(["pretrain", "--out", str(out), "--resume"]) == 0
        assert cli.main(["pretrain", "--out", str(out), "--resume", "--set", "train.epochs=9"]) == 1
        assert "cannot be made longer" in capsys.readouterr().err
    (tmp_path / "q").write_text("w1 w2 w3 w4\n")
    assert (
        cli.main(["evaluate", str(out / "final"), str(tmp_path / "q"), "--task", "analogies", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["questions"] == 1
    (tmp_path / "q").write_text("w1 w2 5\nw2 w3 7\nw3 w4 9\nw3 zz 1\n")
    assert cli.main(["evaluate", str(out / "final"), str(tmp_path / "q"), "--task", "similarity"]) == 0
    assert "missing             1" in capsys.readouterr().out
    command = ["evaluate", str(out / "final"), str(tmp_path / "q"), "--task", "similarity", "--restrict", "5"]
    assert cli.main(command) == 2 and "--restrict means nothing" in capsys.readouterr().err
    command = ["pretrain", "glove", "--text", str(text), "--out", str(tmp_path / "x")]
    assert cli.main([*command, "--steps", "5"]) == 1
    assert "follows from the text" in capsys.readouterr().err
    assert cli.main(["pretrain", "glove", "--out", str(tmp_path / "y")]) == 1
    assert "--text" in capsys.readouterr().err


def test_wrong(tmp_path, text):
    with pytest.raises(plm.ArgumentError, match="no family 'word2vek'; one of .*gpt2.*glove, word2vec"):
        plm.pretrain("word2vek", out=tmp_path / "a", text=[text])
    with pytest.raises(plm.ArgumentError, match="family must be word2vec or glove, got 'gpt2'"):
        plm.vectors.pretrain("gpt2", out=tmp_path / "a", text=[text])
    with pytest.raises(plm.ArgumentError, match="word2vec has no setting data.batch"):
        plm.pretrain("word2vec", out=tmp_path / "a", text=[text], batch=3)
    with pytest.raises(plm.ArgumentError, match="word vectors, got LanguageModel"):
        plm.evaluate(
            plm.from_config(dict(model_type="gpt2", n_layer=1, n_embd=8, n_head=1, vocab_size=9)),
            [text],
            "analogies",
        )
    with pytest.raises(ValueError, match="model must be"):
        plm.pretrain("word2vec", out=tmp_path / "b", text=[text], changes=["model.model=bert"], quiet=True)
    with pytest.raises(Stop):
        run(tmp_path / "c", "word2vec", text, callbacks=[stop_at(3)])
    text_other = tmp_path / "other.txt"
    text_other.write_text(text.read_text() + "w1 w2\n")
    (tmp_path / "c" / "config.toml").write_text(
        (tmp_path / "c" / "config.toml").read_text().replace(str(text), str(text_other))
    )
    with pytest.raises(plm.ArgumentError, match="the corpus has changed|other data"):
        plm.pretrain(out=tmp_path / "c", resume=True, quiet=True)
