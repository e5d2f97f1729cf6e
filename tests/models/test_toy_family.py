"""A family in one file outside of the package: whatever takes a model takes its models, and nothing else of
plmcore has to know it.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import installed
import numpy as np
import plmcore as plm
import pytest
from plmcore import models
from plmcore.models import names

SOURCE = pathlib.Path(__file__).parents[1] / "toy_family.py"
PAGE = SOURCE.parents[1] / "docs" / "adding-a-model.md"
TEXT = "the cat sat on the mat and the dog ran far away from home. " * 60
REVIEWS = [(f"a {word} film", label) for word, label in [("good", "yes"), ("bad", "no")]] * 16


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    """The module, as an installed package has it: a file, and an entry point that names it."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copy(SOURCE, folder / "carousel.py")
    known = folder / "carousel-1.0.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: carousel\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text("[plmcore.families]\ncarousel = carousel\n")
    (folder / "text.txt").write_text(TEXT)
    (folder / "reviews.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in REVIEWS))
    return folder


@pytest.fixture(autouse=True)
def registered(family, monkeypatch):
    """Found through the entry point; taken back at the end."""
    for name in ("FAMILIES", "_MODULES"):
        monkeypatch.setattr(models, name, dict(getattr(models, name)))
    monkeypatch.syspath_prepend(family)
    register_installed = models.register_installed
    register_installed.cache_clear()
    yield
    register_installed.cache_clear()


@pytest.fixture(scope="module")
def run(family, tmp_path_factory):
    """A pre-training by the command."""
    out = tmp_path_factory.mktemp("runs") / "run"
    command(family, "pretrain", "carousel", "--text", "text.txt", "--steps", 40, "--out", out,
            "--set", "data.vocab=300", "--set", "data.length=16")  # fmt: skip
    return out


def started(folder, *arguments):
    """The command, where the folder holds installed packages."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [*installed.COMMAND, *map(str, arguments)],
        cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip


def command(family, *arguments):
    done = started(family, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pretrained(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert losses[-1] < losses[0] - 1
    assert any("sample" in line for line in lines)  # it made text on its way
    assert json.loads((run / "final" / "config.json").read_text())["architectures"] == ["CarouselForCausalLM"]


def test_load_and_save(run, tmp_path):
    lm = plm.load(run / "final")
    assert lm.head == "causal-lm" and type(lm.model).__module__ == "carousel"
    lm.save(tmp_path)
    ids = np.array([[5, 6, 7, 8]])
    again = plm.load(tmp_path)
    assert np.array_equal(lm(input_ids=ids).logits.numpy(), again(input_ids=ids).logits.numpy())
    assert sorted(plm.safetensors.read(tmp_path)[0]) == [
        "model.embedding.weight", "model.gates.bias", "model.gates.weight"
    ]  # fmt: skip
    with pytest.warns(UserWarning, match="has no weights for score.weight"):
        assert plm.load(tmp_path, head="sequence-classification", num_labels=3, pad_token_id=0).head
    assert again.encode(["the cat", "the dog ran"]).shape == (2, lm.config.width)


def test_padding_changes_nothing(run):
    lm = plm.load(run / "final")
    alone = lm(input_ids=[[5, 6, 7]]).logits.numpy()
    padded = lm(input_ids=[[5, 6, 7, 0, 0]], attention_mask=[[1, 1, 1, 0, 0]]).logits.numpy()
    np.testing.assert_array_equal(padded[:, :3], alone)


@pytest.mark.parametrize("options", [{}, dict(num_beams=3), dict(do_sample=True, seed=1)])
def test_generate(run, options):
    """With its state, in Python; a step at a time gives what reading all again gives."""
    lm = plm.load(run / "final")
    ids = lm.generate(np.array([[5, 6, 7]]), max_new_tokens=6, **options)
    assert ids.shape[1] <= 9
    if not options:
        for end in range(3, ids.shape[1]):
            assert lm(input_ids=ids[:, :end]).logits.numpy()[0, -1].argmax() == ids[0, end]
    texts = lm.generate(["the cat", "the dog ran far"], max_new_tokens=5, **options)
    assert len(texts) == 2 and texts[0].startswith("the cat")


def test_generate_by_the_command(family, run):
    assert command(family, "generate", run / "final", "--prompt", "the cat", "--max-new-tokens", 5)


def test_evaluate(family, run):
    lm = plm.load(run / "final")
    assert 1 < lm.perplexity(TEXT[:200]) < 300
    assert "per_token" in command(family, "evaluate", run / "final", "text.txt")


def test_finetune(family, run, tmp_path):
    out = tmp_path / "classifier"
    command(family, "finetune", run / "final", "--task", "classification", "--columns", "text,label",
            "--train", "reviews.tsv", "--dev", "reviews.tsv", "--epochs", 12, "--out", out)  # fmt: skip
    lm = plm.load(out / "final")
    assert [found["label"] for found in lm.classify(["a good film", "a bad film"])] == ["yes", "no"]
    assert "no" in command(family, "classify", out / "final", "a bad film")


def test_features(family, run, tmp_path):
    """A frozen body, whose layers a linear one reads."""
    plm.finetune(
        run / "final", task="classification", train=family / "reviews.tsv", out=tmp_path / "out", epochs=1,
        changes=["adapt.layers=mix", "adapt.pooling=mean", "adapt.freeze=body"],
    )  # fmt: skip
    assert plm.load(tmp_path / "out" / "final").classify("a bad film")["label"] in ("yes", "no")


def test_pretrain_and_finetune_in_python(family, tmp_path):
    changes = ["data.vocab=300", "data.length=16"]
    plm.pretrain("carousel", text=[family / "text.txt"], out=tmp_path / "run", steps=3, changes=changes)
    plm.finetune(
        tmp_path / "run" / "final", task="lm", train=family / "text.txt", out=tmp_path / "more", epochs=1
    )
    assert plm.load(tmp_path / "more" / "final").head == "causal-lm"


def test_info(family, run):
    said = command(family, "info", run / "final")
    assert "carousel" in said and "causal-lm (CarouselForCausalLM)" in said and "tokenizer.json" in said


def test_show(family, run):
    assert "predict" in command(family, "show", "causal-lm", "--tokenizer", run / "final")


def test_export(family, run, tmp_path):
    """At any batch size and length."""
    command(family, "export", run / "final", tmp_path / "a.plm")
    lm, program = plm.load(run / "final"), plm.load_program(tmp_path / "a.plm")
    for shape in ((1, 3), (2, 7)):
        ids = np.arange(np.prod(shape)).reshape(shape)
        out = program(input_ids=plm.Tensor(ids), attention_mask=plm.Tensor(np.ones(shape, np.int64)))
        logits = out["logits"] if isinstance(out, dict) else out[0]
        np.testing.assert_allclose(logits.numpy(), lm(input_ids=ids).logits.numpy(), atol=1e-6)


def test_quantize(run, tmp_path):
    plm.quantize(run / "final", out=tmp_path / "int8")
    assert plm.load(tmp_path / "int8").generate("the cat", max_new_tokens=3)


def test_by_a_call(family, monkeypatch):
    """Without an installed package: plm.models.register."""
    monkeypatch.setattr(models, "register_installed", lambda: None)
    with pytest.raises(plm.ArgumentError, match="there is no model_type 'carousel'"):
        plm.from_config({"model_type": "carousel"})
    import carousel

    models.register(carousel)
    lm = plm.from_config({"model_type": "carousel"}, "causal-lm")
    assert lm.head == "causal-lm" and set(names.published(carousel, lm.model)) > {"model.gates.bias"}


def test_an_installed_family_that_is_broken(family, tmp_path, monkeypatch):
    """One sentence that names the package; what has nothing to do with it works."""
    shutil.copytree(family / "carousel-1.0.dist-info", tmp_path / "carousel-1.0.dist-info")
    (tmp_path / "carousel-1.0.dist-info" / "entry_points.txt").write_text(
        "[plmcore.families]\nx = not_there\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(family)])
    assert models.family("gpt2")
    with pytest.raises(plm.ArgumentError, match="'not_there' of the installed package 'carousel'"):
        models.family("x")


def test_an_installed_module_without_a_declaration(family, tmp_path, monkeypatch):
    shutil.copytree(family / "carousel-1.0.dist-info", tmp_path / "carousel-1.0.dist-info")
    (tmp_path / "carousel-1.0.dist-info" / "entry_points.txt").write_text(
        "[plmcore.families]\nx = empty_one\n"
    )
    (tmp_path / "empty_one.py").write_text("CONFIG = dict\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(family)])
    with pytest.raises(plm.ArgumentError, match="empty_one declares no family: add MODEL_TYPES"):
        models.family("x")
    done = started(tmp_path, "pretrain", "x", "--text", family / "text.txt", "--out", tmp_path / "o")
    assert done.returncode == 1 and "empty_one declares no family" in done.stderr


@pytest.mark.skipif(not PAGE.is_file(), reason="the tests run outside of the checkout")
def test_the_page_shows_it_whole():
    assert SOURCE.read_text() in PAGE.read_text()
