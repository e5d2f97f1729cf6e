"""ELMo, CoVe and word vectors as features of task models, through the command's door."""

import json

import numpy as np
import plmcore as plm
import pytest
from killing import Stop, stop_at
from plmcore import nn
from plmcore.models.word_table import WordTable
from plmcore.tasks import features
from plmcore.tasks.biattentive import Biattentive

GOOD, BAD, OTHER = ["fine", "great", "good"], ["awful", "poor", "bad"], ["film", "plot", "cast", "the", "a"]
FAST = ["data.batch=8", "adapt.encoder=8", "optim.lr=2e-2", "data.length=16", "adapt.dropout=0.1"]
D = 6


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Small models, vectors that tell good words from bad ones, and tables of two tasks."""
    folder = tmp_path_factory.mktemp("features")
    rng = np.random.default_rng(0)
    plm.seed(0)
    elmo = dict(model_type="elmo", vocab_size=30, char_embed_dim=4, filters=[[1, 8], [2, 16]], dim=16,
                projection_dim=8, max_characters_per_token=12, sampled=10)  # fmt: skip
    lm = plm.from_config(elmo)
    for name in ("words.convs.0.weight", "words.convs.1.weight", "words.projection.weight"):
        p = dict(lm.model.named_parameters())[name]
        plm._core.assign(
            p, plm.Tensor(4 * p.numpy())
        )  # words differ more than in a model that is quite fresh
    lm.save(folder / "elmo")
    plm.from_config(dict(model_type="cove", d_embed=D, d_hidden=5)).save(folder / "cove")
    matrix = rng.normal(size=(11, D)).astype(np.float32) * 0.3
    matrix[:3, 0] += 2
    matrix[3:6, 0] -= 2
    plm.vectors.Vectors([*GOOD, *BAD, *OTHER], matrix).save(folder / "vectors.txt", "glove")
    lines, pairs, tagged = [], [], []
    for i in range(64):
        good = i % 2
        word = rng.choice(GOOD if good else BAD)
        words = [*rng.choice(OTHER, rng.integers(2, 5)).tolist(), word]
        rng.shuffle(words)
        lines.append(f"{'yes' if good else 'no'}\t{' '.join(words)}")
        same = rng.choice(GOOD if rng.random() < 0.5 else BAD)
        pairs.append(f"{'yes' if (same in GOOD) == bool(good) else 'no'}\tthe {word}\ta {same} film")
        tagged.append(
            "\n".join(f"{w} {'G' if w in GOOD else 'B' if w in BAD else 'O'}" for w in words) + "\n"
        )
    (folder / "train.tsv").write_text("label\ttext\n" + "\n".join(lines) + "\n")
    (folder / "pairs.tsv").write_text("label\ttext\tpair\n" + "\n".join(pairs) + "\n")
    (folder / "tags.txt").write_text("\n".join(tagged))
    return folder


def tune(files, out, model="elmo", task="classification", file="train.tsv", changes=(), **options):
    options = dict(epochs=12) | options
    return plm.finetune(
        files / model, task=task, train=files / file, dev=files / file, out=out, quiet=True,
        changes=[*FAST, *changes], **options
    )  # fmt: skip


def scores(out):
    return json.loads((out / "scores.json").read_bytes())["dev"]


def vectors(files):
    return f"adapt.vectors={files / 'vectors.txt'}"


@pytest.mark.parametrize(
    "model, changes",
    [
        ("elmo", []),
        ("elmo", ["adapt.layers=0"]),
        ("elmo", ["vectors", "adapt.features=both"]),
        ("elmo", ["vectors", "adapt.features=output"]),
        ("elmo", ["adapt.biattentive=true"]),
        ("elmo", ["adapt.encoder=0", "adapt.pooling=concat"]),
        ("cove", ["vectors"]),
        ("cove", ["vectors", "adapt.layers=concat"]),
        ("cove", ["vectors", "adapt.layers=1", "adapt.biattentive=true"]),
        ("cove", ["vectors", "adapt.layers=vectors"]),
    ],
)
def test_classes(files, tmp_path, model, changes):
    changes = [vectors(files) if c == "vectors" else c for c in changes]
    lm = tune(files, tmp_path / "run", model, changes=changes, epochs=30 if model == "elmo" else 12)
    before = plm.load(files / model).model.state_dict()
    for name, t in before.items():  # the body is as it was
        assert np.array_equal(t.numpy(), lm.model.body.state_dict()[name].numpy())
    again = plm.load(tmp_path / "run" / "final")
    texts = ["the film good plot", "a bad cast", "unheard-of"]
    for one, other in zip(lm.classify(texts), again.classify(texts)):
        assert one["label"] == other["label"] and np.isclose(
            one["probability"], other["probability"], atol=1e-5
        )
    assert scores(tmp_path / "run")["accuracy"] >= (0.7 if model == "elmo" else 0.9)  # ELMo knows nothing yet


def test_pairs_of_texts(files, tmp_path):
    changes = [vectors(files), "adapt.biattentive=true"]
    tune(files, tmp_path / "run", "cove", "pair", "pairs.tsv", changes, epochs=12)
    lm = plm.load(tmp_path / "run" / "final")
    assert lm.classify(["the good"], ["a bad film"])[0]["label"] in ("yes", "no")
    assert scores(tmp_path / "run")["accuracy"] >= 0.8


@pytest.mark.parametrize("model", ["elmo", "cove"])
def test_tags(files, tmp_path, model):
    tune(files, tmp_path / "run", model, "tagging", "tags.txt", [vectors(files)], epochs=16)
    assert scores(tmp_path / "run")["token_accuracy"] >= 0.95
    lines = (tmp_path / "run" / "dev-predictions.jsonl").read_text().splitlines()
    tags, wanted = (
        json.loads(lines[0])["tags"],
        (files / "tags.txt").read_text().split("\n\n")[0].splitlines(),
    )
    assert len(tags) == len(wanted)


def test_a_run_that_was_stopped_goes_on(files, tmp_path):
    changes = [vectors(files), "adapt.biattentive=true"]
    tune(files, tmp_path / "a", "cove", changes=changes, epochs=2, save_every=5)
    with pytest.raises(Stop):
        tune(files, tmp_path / "b", "cove", changes=changes, epochs=2, save_every=5, callbacks=[stop_at(7)])
    plm.finetune(out=tmp_path / "b", resume=True, quiet=True)
    one, other = ((tmp_path / k / "final" / "features.safetensors").read_bytes() for k in "ab")
    assert one == other


def test_the_mix_learns_and_is_penalised(files):
    body = plm.load(files / "elmo").model
    config = body.config.replace(num_labels=2)
    model = features.Features(config, body, "mix", "mean", dropout=0.0, mix_penalty=0.5)
    body.requires_grad_(False)
    plm._core.assign(model.mix.scalars, np.array([1.0, 2.0, 3.0], np.float32))
    batch = plm.load(files / "elmo").tokenizer(["a good film"])
    inputs = {k: plm.Tensor(batch[k]) for k in ("input_ids", "attention_mask")}
    labels = plm.Tensor(np.array([1]))
    plain = model.eval()(**inputs, labels=labels).loss.item()
    assert np.isclose(model.train()(**inputs, labels=labels).loss.item(), plain + 0.5 * 14, rtol=1e-5)


def test_a_frozen_body_has_no_dropout(files):
    body = plm.load(files / "elmo", dropout=0.5).model.train()
    model = features.Features(body.config.replace(num_labels=2), body, "mix", "mean", dropout=0.0).train()
    batch = plm.load(files / "elmo").tokenizer(["a good film"])
    inputs = {k: plm.Tensor(batch[k]) for k in ("input_ids", "attention_mask")}
    learning = [model(**inputs).logits.numpy() for _ in range(2)]
    assert not np.array_equal(*learning)
    body.requires_grad_(False)
    assert np.array_equal(*(model(**inputs).logits.numpy() for _ in range(2)))


# ---- the biattentive classification network ----


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_biattention_by_hand():
    """Of one pair without padding, against the formulas; the biLSTMs are nn's own."""
    plm.seed(3)
    F, H, L = 4, 3, 2
    net = Biattentive(F, H, L, 0.0).to("float64").eval()
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(1, 5, F)), rng.normal(size=(1, 3, F))
    run = lambda lstm, z: lstm(plm.Tensor(z))[0].numpy()  # noqa: E731
    w = {k: t.numpy() for k, t in net.state_dict().items()}

    def encoded(z):
        return run(net.encoder, np.maximum(z @ w["ffn.weight"].T + w["ffn.bias"], 0))

    X, Y = encoded(x), encoded(y)
    A = X[0] @ Y[0].T
    Cy, Cx = softmax(A) @ Y[0], softmax(A.T) @ X[0]
    pools = []
    for Z, C, side in ((X[0], Cy, "x"), (Y[0], Cx, "y")):
        R = run(getattr(net, f"integrate_{side}"), np.concatenate([Z, Z - C, Z * C], 1)[None])[0]
        share = softmax((R @ w[f"attend_{side}.weight"].T + w[f"attend_{side}.bias"])[:, 0])
        pools.append(np.concatenate([R.max(0), R.mean(0), R.min(0), share @ R]))
    z = np.concatenate(pools)
    for i in range(3):
        z = z / np.sqrt(1 + 1e-5)  # fresh running statistics: mean 0, variance 1
        z = (w[f"maxouts.{i}.maps.weight"] @ z + w[f"maxouts.{i}.maps.bias"]).reshape(-1, 4).max(1)
    ones = [plm.Tensor(np.ones(t.shape[:2], np.int64)) for t in (x, y)]
    found = net(plm.Tensor(x), ones[0], plm.Tensor(y), ones[1]).numpy()[0]
    assert found.shape == (L,) and np.allclose(found, z, atol=1e-12)


def test_biattention_does_not_see_padding():
    plm.seed(3)
    net = Biattentive(4, 3, 2, 0.0).eval()
    x = np.random.default_rng(1).normal(size=(2, 6, 4)).astype(np.float32)
    mask = np.array([[1] * 6, [1, 1, 1, 0, 0, 0]])
    whole = net(*[plm.Tensor(t) for t in (x, mask, x, mask)]).numpy()
    alone = net(*[plm.Tensor(t) for t in (x[1:, :3], mask[1:, :3], x[1:, :3], mask[1:, :3])]).numpy()
    assert np.allclose(whole[1:], alone, atol=1e-5)


def test_texts_of_a_pair_are_parted():
    x = np.arange(12, dtype=np.float32).reshape(2, 6, 1)
    mask, types = np.array([[1] * 6, [1] * 4 + [0] * 2]), np.array([[0, 0, 0, 0, 1, 1], [0, 1, 1, 1, 0, 0]])
    a, a_mask, b, b_mask = (t.numpy() for t in features.texts_of(*map(plm.Tensor, (x, mask, types))))
    assert a_mask.tolist() == [[1, 1, 1, 1], [1, 0, 0, 0]] and b_mask.tolist() == [[1, 1, 0], [1, 1, 1]]
    assert a[0, :, 0].tolist() == [0, 1, 2, 3] and a[1, 0, 0] == 6
    assert b[0, :2, 0].tolist() == [4, 5] and b[1, :, 0].tolist() == [7, 8, 9]


# ---- bad settings ----


@pytest.mark.parametrize(
    "model, changes, message",
    [
        ("cove", [], "cove reads the vectors of words: set adapt.vectors"),
        ("cove", ["vectors", "adapt.layers=mix"], "adapt.layers=mix is not for cove"),
        ("elmo", ["adapt.features=output"], "leaves nothing for the input"),
        ("elmo", ["adapt.features=both", "adapt.encoder=0"], "set adapt.encoder"),
        ("elmo", ["adapt.features=middle"], "adapt.features must be input, output, both"),
        ("elmo", ["adapt.layers=vectors"], "adapt.layers must be mix, last, concat or 0 to 2"),
        ("elmo", ["adapt.biattentive=true", "adapt.encoder=0"], "needs adapt.encoder cells"),
    ],
)
def test_what_does_not_go(files, tmp_path, model, changes, message):
    changes = [vectors(files) if c == "vectors" else c for c in changes]
    with pytest.raises(plm.ArgumentError, match=message):
        tune(files, tmp_path / "run", model, changes=changes)


def test_vectors_that_do_not_fit(files, tmp_path, directory):
    plm.vectors.Vectors(["a", "b"], np.ones((2, 3), np.float32)).save(tmp_path / "narrow.txt", "glove")
    with pytest.raises(plm.ArgumentError, match="vectors of 3 numbers, and cove reads 6"):
        tune(files, tmp_path / "run", "cove", changes=[f"adapt.vectors={tmp_path / 'narrow.txt'}"])
    with pytest.raises(plm.ArgumentError, match="bert reads pieces of them"):
        plm.finetune(
            directory("bert"), task="classification", train=files / "train.tsv", out=tmp_path / "b",
            quiet=True, changes=["adapt.layers=mix", vectors(files)],
        )  # fmt: skip


def test_a_table_has_no_parameters():
    table = WordTable(["a"], np.ones((1, 3), np.float32))
    assert isinstance(table, nn.Module) and not list(table.parameters())
