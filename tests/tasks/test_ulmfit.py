"""ULMFiT through the doors users take: a language model from text, adapted to the task's text and vocabulary,
a classifier layer by layer, forward and backward together.
"""

import json
import shutil

import numpy as np
import plmcore as plm
import pytest
from killing import Stop, stop_at
from plmcore.__main__ import main
from plmcore.tasks import new_vocabulary

GOOD, BAD = "lovely fine great warm", "dull awful grim weak"
MODEL = ["model.n_layers=2", "model.d_embed=12", "model.d_hidden=16", "model.drop_mult=0.3"]
SMALL = ["data.length=9", "data.batch=4", "train.log_every=1"]


def sentences(rng, n):
    """(label, text): the words of a class, and others in between."""
    for i in range(n):
        words = (GOOD if i % 2 else BAD).split()
        text = " ".join(f"the film is {words[rng.integers(4)]} ." for _ in range(1 + i % 3))
        yield ("pos" if i % 2 else "neg"), text


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    (folder / "wiki.txt").write_text("".join(f"{text}\n" for _, text in sentences(rng, 120)))
    (folder / "reviews.txt").write_text(
        "".join(f"{text.replace('film', 'movie')}\n" for _, text in sentences(rng, 60))
    )
    for name, n in (("train", 41), ("test", 20)):
        rows = (f"{label}\t{text}\n" for label, text in sentences(rng, n))
        (folder / f"{name}.tsv").write_text("".join(rows))
    return folder


@pytest.fixture(scope="module", params=[False, True], ids=["forward", "backward"])
def language_model(request, files, tmp_path_factory):
    out = tmp_path_factory.mktemp("lm") / "run"
    changes = [
        *SMALL,
        *MODEL,
        f"model.backward={str(request.param).lower()}",
        "data.vocab=60",
        "optim.lr=5.0",
    ]
    plm.pretrain("awd-lstm", text=[files / "wiki.txt"], out=out, steps=30, quiet=True, changes=changes)
    return out / "final"


def adapted(files, model, out, *, changes=(), **options):
    return plm.finetune(
        model, "lm", train=files / "reviews.txt", dev=files / "wiki.txt", out=out, steps=12, save_every=3,
        quiet=True, changes=[*SMALL, "adapt.vocab=60", *changes], **options,
    )  # fmt: skip


def classifier(files, model, out, *, changes=(), **options):
    common = dict(columns=["label", "text"], quiet=True, epochs=8, batch=10, save_every=5)
    return plm.finetune(
        model, "classification", train=files / "train.tsv", test=files / "test.tsv", out=out,
        changes=["train.log_every=1", "optim.lr=0.03", *changes], **common | options,
    )  # fmt: skip


def weights(folder):
    return (folder / "final" / "model.safetensors").read_bytes()


def test_the_whole_way(files, language_model, tmp_path, capsys):
    lm = plm.load(language_model)
    tuned = adapted(files, language_model, tmp_path / "lm")
    assert tuned.config.backward == lm.config.backward
    assert "movie" in tuned.tokenizer.backend.vocabulary and "film" not in tuned.tokenizer.backend.vocabulary
    found = json.loads((tmp_path / "lm" / "scores.json").read_text())
    assert np.isfinite(found["dev"]["perplexity"])
    model = classifier(files, tmp_path / "lm" / "final", tmp_path / "c", epochs=40)
    assert json.loads((tmp_path / "c" / "scores.json").read_text())["test"]["accuracy"] >= 0.9
    assert model.classify("the movie is great .")["label"] == "pos"
    assert main(["classify", str(tmp_path / "c" / "final"), "the movie is grim ."]) == 0
    assert capsys.readouterr().out.startswith("neg\t")


def test_runs_that_were_stopped_go_on_bit_for_bit(files, language_model, tmp_path):
    """The state between windows, the windows' lengths, the frozen layers, the statistics of BatchNorm."""
    adapted(files, language_model, tmp_path / "a")
    with pytest.raises(Stop):
        adapted(files, language_model, tmp_path / "b", callbacks=[stop_at(7)])
    plm.finetune(out=tmp_path / "b", resume=True, quiet=True)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    body = tmp_path / "a" / "final"
    classifier(files, body, tmp_path / "c", epochs=4)
    for step in (3, 11):
        with pytest.raises(Stop):
            classifier(files, body, tmp_path / "d", epochs=4, callbacks=[stop_at(step)], resume=step > 3)
    plm.finetune(out=tmp_path / "d", resume=True, quiet=True)
    assert weights(tmp_path / "c") == weights(tmp_path / "d")
    lines = [json.loads(line) for line in (tmp_path / "d" / "metrics.jsonl").open()]
    assert len([line for line in lines if "lr" in line]) == 4 * 4


def test_layers_learn_from_the_top(files, language_model, tmp_path):
    """One more each epoch, and none before its time; rates fall by 2.6 from layer to layer."""
    seen, moved = {}, {}

    def watch(trainer, metrics):
        for name, p in trainer.model.named_parameters():
            now = np.array(p.numpy())
            if name in seen and not np.array_equal(now, seen[name]):
                moved.setdefault(name, trainer.step)
            seen[name] = now
        watch.ratios = {round(g.lr_ratio, 4) for g in trainer.optimizer.groups}

    before = {name: np.array(p.numpy()) for name, p in plm.load(language_model).model.body.named_parameters()}
    seen |= {f"body.{name}": p for name, p in before.items()}
    classifier(files, language_model, tmp_path / "c", epochs=4, callbacks=[watch])
    first = lambda part: min(step for name, step in moved.items() if part in name)
    per_epoch = 4  # 41 examples in batches of 10: the one that is left is too few for BatchNorm
    assert first("up.") <= 2
    assert first("blocks.1") == per_epoch + 1
    assert first("blocks.0") == 2 * per_epoch + 1
    assert first("tokens") == 3 * per_epoch + 1
    assert watch.ratios == {round(2.6**-n, 4) for n in range(4)}


def test_forward_and_backward_together(files, tmp_path, capsys):
    models = []
    for seed in (0, 1):
        plm.seed(seed)
        folder = tmp_path / f"lm{seed}"
        changes = [*SMALL, *MODEL, f"model.backward={['false', 'true'][seed]}", "data.vocab=60"]
        plm.pretrain("awd-lstm", text=[files / "wiki.txt"], out=folder, steps=2, quiet=True, changes=changes)
        classifier(files, folder / "final", tmp_path / f"c{seed}", seed=seed, epochs=5)
        models.append(tmp_path / f"c{seed}" / "final")
    texts = ["the film is fine .", "the film is weak . the film is dull ."]
    forward, back = map(plm.load, models)
    each = [lm.classify(texts) for lm in (forward, back)]
    found = forward.classify(texts, others=[back])
    for i in range(2):
        mean = {
            k: (each[0][i]["probabilities"][k] + each[1][i]["probabilities"][k]) / 2 for k in ("neg", "pos")
        }
        assert found[i]["probabilities"] == pytest.approx(mean)
        assert found[i]["label"] == max(mean, key=mean.get)
    assert each[0][0]["probabilities"] != each[1][0]["probabilities"]
    one = forward.classify(texts[0], others=[back])
    assert one["label"] == found[0]["label"]
    assert one["probability"] == pytest.approx(found[0]["probability"], abs=1e-6)  # another batch
    assert main(["classify", str(models[0]), *texts, "--with", str(models[1]), "--json"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [p["label"] for p in printed] == [f["label"] for f in found]
    predictions = tmp_path / "p.jsonl"
    options = ["--columns", "label,text", "--json", "--predictions", str(predictions)]
    assert (
        main(["evaluate", str(models[0]), str(files / "test.tsv"), "--with", str(models[1]), *options]) == 0
    )
    scores = json.loads(capsys.readouterr().out)
    rows = [line.split("\t") for line in (files / "test.tsv").read_text().splitlines()]
    labels = [f["label"] for f in forward.classify([text for _, text in rows], others=[back])]
    assert scores["accuracy"] == pytest.approx(np.mean([a == b for a, (b, _) in zip(labels, rows)]))
    assert [json.loads(line)["label"] for line in predictions.open()] == labels


def test_models_of_other_classes_are_not_averaged(files, language_model, tmp_path):
    classifier(files, language_model, tmp_path / "a", epochs=1)
    rows = [{"label": str(i % 3), "text": "the film"} for i in range(12)]
    plm.finetune(language_model, "classification", train=rows, out=tmp_path / "b", epochs=1, quiet=True)
    one, other = (plm.load(tmp_path / name / "final") for name in "ab")
    with pytest.raises(plm.ArgumentError, match="must have the same classes: neg, pos; '.*' has 0, 1, 2"):
        one.classify("the film", others=[other])
    assert main(["classify", str(tmp_path / "a" / "final"), "x", "--with", str(tmp_path / "none")]) != 0


# ---- vocabularies ----


def test_rows_of_another_vocabulary():
    plm.seed(0)
    config = dict(model_type="awd-lstm", vocab_size=4, d_embed=1, d_hidden=1, n_layers=2)  # 4 gates also
    model = plm.from_config(config, "causal-lm").model
    assert new_vocabulary.of_vocabulary(model) == ["body.tokens.weight", "decoder.bias"]
    plm._core.assign(model.decoder.bias, np.float32([1, 2, 3, 6]))
    old, new = {"a": 0, "b": 1, "c": 2, "d": 3}, {"d": 0, "x": 1, "b": 2, "y": 3, "z": 4}
    made = new_vocabulary.moved(model, old, new, None)
    table, before = made.body.tokens.weight.numpy(), model.body.tokens.weight.numpy()
    np.testing.assert_allclose(table[[0, 2]], before[[3, 1]])
    np.testing.assert_allclose(table[[1, 3, 4]], np.repeat(before.mean(0, keepdims=True), 3, 0), rtol=1e-6)
    assert made.decoder.bias.numpy().tolist() == [6, 3, 2, 3, 3]
    assert made.decoder.weight is made.body.tokens.weight
    np.testing.assert_array_equal(
        made.body.blocks[1].lstm.layer.weight_hh_l0.numpy(),
        model.body.blocks[1].lstm.layer.weight_hh_l0.numpy(),
    )


def test_a_vocabulary_of_pieces_needs_none(files, tmp_path):
    changes = [*SMALL, *MODEL, "data.tokenizer=byte-bpe", "data.vocab=300"]
    plm.pretrain(
        "awd-lstm", text=[files / "wiki.txt"], out=tmp_path / "lm", steps=1, quiet=True, changes=changes
    )
    with pytest.raises(plm.ArgumentError, match="adapt.vocab is for vocabularies of words.*byte-bpe"):
        adapted(files, tmp_path / "lm" / "final", tmp_path / "x")


# ---- perplexity ----


def test_perplexity_carries_the_state(files, language_model):
    lm = plm.load(language_model)
    text = (files / "wiki.txt").read_text()[:600]
    ids = lm.tokenizer(text).input_ids.astype(np.int64)
    ids = ids[::-1] if lm.config.backward else ids
    logits = lm(ids[None].copy()).logits.numpy()[0].astype(np.float64)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = np.exp(-log_probs[np.arange(len(ids) - 1), ids[1:]].mean())
    for window in (7, 512):
        assert lm.perplexity(text, window=window) == pytest.approx(expected, rel=1e-4)
    with pytest.raises(plm.ArgumentError, match="so that there is no stride"):
        lm.perplexity(text, stride=3)


def test_a_tokenizer_of_running_text(tmp_path):
    tokenizer = plm.train_tokenizer(
        texts=["It didn't work. It's OK, isn't it?"], kind="words", family="awd-lstm"
    )
    assert tokenizer.decode(tokenizer("It's OK, it DIDN'T work").input_ids) == "it 's ok , it did n't work"
    tokenizer.save(tmp_path)
    again = plm.load_tokenizer(tmp_path)
    assert again("isn't").input_ids.tolist() == tokenizer("isn't").input_ids.tolist()
    assert tokenizer("a").input_ids.tolist() == [tokenizer.bos_token_id, tokenizer.unk_token_id]


def test_the_source_directory_may_move(files, language_model, tmp_path):
    shutil.copytree(language_model, tmp_path / "copy")
    assert plm.load(tmp_path / "copy").perplexity("the film is fine .") > 1
