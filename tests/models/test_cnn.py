"""Convolutional networks: names, short and padded texts, what a position sees, and the road from vectors to a
classifier.
"""

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, cli, models, optim
from plmcore.models.cnn import CNNConfig
from plmcore.train import groups

SIZES = dict(vocab_size=30, d_embed=6, filters=[[2, 4], [3, 5], [5, 3]], num_labels=3)
rng = np.random.default_rng(0)
IDS = rng.integers(1, 30, (4, 8))
LENGTHS = np.array([8, 1, 4, 6])
MASK = (np.arange(8) < LENGTHS[:, None]).astype(np.int64)
near = dict(atol=1e-5, rtol=0)


def model(head="sequence-classification", **changes):
    plm.seed(1)
    return plm.from_config({"model_type": "cnn", **SIZES, **changes}, head).eval()


def formula(lm, ids):
    """Kim's, written out for one text."""
    w = {name: p.numpy().astype(np.float64) for name, p in lm.model.named_parameters()}
    x = w["embedding.weight"][ids]
    widest = max(width for width, _ in lm.config.filters)
    x = np.pad(x, ((0, max(0, widest - len(x))), (0, 0)))
    found = []
    for i, (width, n) in enumerate(lm.config.filters):
        kernel, bias = w[f"convs.{i}.weight"], w[f"convs.{i}.bias"]
        windows = [np.einsum("ocw,wc->o", kernel, x[t : t + width]) for t in range(len(x) - width + 1)]
        found.append(np.maximum(np.array(windows) + bias, 0).max(0))
    return np.concatenate(found) @ w["classifier.weight"].T + w["classifier.bias"]


def test_names_and_shapes(tmp_path):
    lm = model()
    lm.save(tmp_path)
    expected = {
        "embedding.weight": (30, 6), "convs.0.weight": (4, 6, 2), "convs.0.bias": (4,),
        "convs.1.weight": (5, 6, 3), "convs.1.bias": (5,), "convs.2.weight": (3, 6, 5), "convs.2.bias": (3,),
        "classifier.weight": (3, 12), "classifier.bias": (3,),
    }  # fmt: skip
    assert {k: tuple(t.shape) for k, t in plm.safetensors.read(tmp_path)[0].items()} == expected
    assert {name for name, _ in lm.model.named_parameters()} == set(expected)
    again = plm.load(tmp_path)
    assert again.config.filters == ((2, 4), (3, 5), (5, 3)) and again.head == "sequence-classification"
    assert np.array_equal(again(input_ids=IDS).logits.numpy(), lm(input_ids=IDS).logits.numpy())


@pytest.mark.parametrize("side", ["right", "left"])
def test_texts_of_every_length(side):
    """Also those shorter than a filter; padding is no part of a text."""
    lm = model()
    ids, mask = IDS, MASK
    if side == "left":
        mask = MASK[:, ::-1].copy()
        ids = np.full_like(IDS, 7)
        for row, new, n in zip(IDS, ids, LENGTHS):
            new[8 - n :] = row[:n]
    found = lm(input_ids=ids, attention_mask=mask).logits.numpy()
    for row, n, logits in zip(IDS, LENGTHS, found):
        np.testing.assert_allclose(logits, formula(lm, row[:n]), **near)
        np.testing.assert_allclose(lm(input_ids=row[None, :n]).logits.numpy()[0], logits, **near)


@pytest.mark.parametrize("window, layers", [(1, 1), (1, 3), (2, 2)])
def test_the_receptive_field_is_exact(window, layers):
    """The gradient of one position reaches 1 + 2 k L others and no more."""
    plm.seed(5)
    config = CNNConfig(vocab_size=30, d_embed=8, layers=layers, window=window, d_hidden=40)
    body = models.build(config).eval()
    T, at = 21, 10
    x = Tensor(rng.standard_normal((1, T, 8)).astype(np.float32), requires_grad=True)
    y = x
    for conv in body.windows:
        y = plm.ops.relu(conv(y))
    plm.ops.sum(plm.ops.slice(y, 1, at, at + 1)).backward()
    reached = np.flatnonzero(np.abs(x.grad.numpy()[0]).sum(-1))
    assert reached.tolist() == list(range(at - window * layers, at + window * layers + 1))
    assert len(reached) == 1 + 2 * window * layers


@pytest.mark.parametrize("layers", [0, 2])
def test_the_stack_does_not_see_padding(layers):
    lm = model("base", layers=layers, d_hidden=7)
    out = lm(input_ids=IDS, attention_mask=MASK, output_hidden_states=True)
    assert len(out.hidden_states) == layers + 1
    for row, n, states in zip(IDS, LENGTHS, out.last_hidden_state.numpy()):
        alone = lm(input_ids=row[None, :n]).last_hidden_state.numpy()[0]
        np.testing.assert_allclose(states[:n], alone, **near)
        assert not states[n:].any() and states.shape == (8, 7 if layers else 6)


def test_a_class_for_each_token():
    lm = model("token-classification", layers=1)
    labels = np.where(MASK == 1, IDS % 3, -100)
    out = lm(input_ids=IDS, attention_mask=MASK, labels=labels)
    assert out.logits.shape == (4, 8, 3) and np.isfinite(out.loss.item())


def test_static_embeddings_do_not_learn():
    for static in (False, True):
        lm = model(static=static)
        lm(input_ids=IDS, labels=np.array([0, 1, 2, 0])).loss.backward()
        grads = {name for name, p in lm.model.named_parameters() if p.grad is not None}
        assert ("embedding.weight" in grads) == (not static) and "convs.0.weight" in grads


def test_rows_of_the_classifier_stay_short():
    """After each step, as Kim has it; the rest is not bounded."""
    lm = model(max_norm=0.5).train()
    made = groups.parameter_groups(lm.model, lr=1.0, weight_decay=0.0)
    assert [g["max_norm"] for g in made if g["max_norm"]] == [0.5]
    opt = optim.Adadelta(made, lr=50.0)
    for _ in range(5):
        opt.zero_grad()
        lm(input_ids=IDS, labels=np.array([0, 1, 2, 0])).loss.backward()
        opt.step()
    lengths = np.linalg.norm(lm.model.classifier.weight.numpy(), axis=1)
    assert (lengths <= 0.5 + 1e-6).all() and lengths.max() > 0.49
    assert np.linalg.norm(lm.model.convs[0].weight.numpy().reshape(4, -1), axis=1).max() > 0.5
    assert not groups.bounded(model(max_norm=0.0).model)


def test_a_step_keeps_short_rows_as_they_are():
    p = plm.nn.Parameter(np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], np.float32))
    p.grad = Tensor(np.zeros((3, 2), np.float32))
    optim.SGD([dict(params=[p], max_norm=1.0)], lr=0.1).step()
    np.testing.assert_allclose(p.numpy(), [[0.6, 0.8], [0.3, 0.4], [0, 0]], **near)
    with pytest.raises(plm.ArgumentError, match="max_norm of a group must be positive, got 0"):
        optim.SGD([dict(params=[p], max_norm=0)], lr=0.1)


# ---- from words to classes ----


@pytest.fixture
def films(tmp_path):
    good, bad = "fine lovely great warm".split(), "dull awful cold poor".split()
    lines = ["text\tlabel"]
    for i in range(80):
        words = ["the", "film", "is", "a", str(rng.choice(good if i % 2 else bad)), "one"][: 5 + i // 2 % 2]
        lines.append(" ".join(words) + "\t" + ("good" if i % 2 else "bad"))
    (tmp_path / "films.tsv").write_text("\n".join(lines) + "\n")
    words = [*good[:2], *bad[:2], "film"]
    vectors = "".join(f"{w} {' '.join(f'{x:.4f}' for x in rng.standard_normal(5))}\n" for w in words)
    (tmp_path / "vectors.txt").write_text(vectors)
    return tmp_path


def test_from_the_command_line(films, capsys):
    """A fresh directory with vectors, fine-tuned, and asked."""
    start = ["new", "cnn", "--text", str(films / "films.tsv"), "--vectors", str(films / "vectors.txt")]
    assert cli.main([*start, "--set", "filters=[[1,8],[2,8]]", "--out", str(films / "cnn")]) == 0
    assert "parameters" in capsys.readouterr().out
    vectors = plm.load_vectors(films / "vectors.txt")
    lm = plm.load(films / "cnn")
    assert lm.config.d_embed == 5 and lm.config.filters == ((1, 8), (2, 8))
    row = lm.tokenizer(["lovely"])["input_ids"][0, 0]
    np.testing.assert_allclose(lm.model.embedding.weight.numpy()[row], vectors["lovely"], **near)
    train = ["finetune", str(films / "cnn"), "--task", "classification", "--train", str(films / "films.tsv")]
    assert cli.main([*train, "--epochs", "30", "--batch", "8", "--out", str(films / "run")]) == 0
    made = plm.load(films / "run" / "final")
    assert [made.classify(t)["label"] for t in ("the film is a great one", "the film is a awful one")] == [
        "good",
        "bad",
    ]
    plm.export(made, films / "cnn.plm")
    batch = {k: v for k, v in made.tokenizer(["a great film", "awful"]).items() if k != "offsets"}
    program = plm.load_program(films / "cnn.plm")
    got = program(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])["logits"]
    want = made(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    np.testing.assert_allclose(got.numpy(), want.numpy(), **near)


def test_the_words_of_vectors_alone(films):
    lm = plm.new("cnn", out=films / "cnn", vectors=plm.load_vectors(films / "vectors.txt"), static=True)
    assert lm.config.vocab_size == 3 + 5 and lm.config.static
    assert lm.tokenizer(["lovely unknown"])["input_ids"][0].tolist()[1] == lm.tokenizer.unk_token_id


def test_what_new_refuses(films):
    with pytest.raises(plm.ArgumentError, match="new needs words"):
        plm.new("cnn", out=films / "x")
    with pytest.raises(plm.ArgumentError, match="d_embed is 5, from words and vectors, not 9"):
        plm.new("cnn", out=films / "x", vectors=films / "vectors.txt", d_embed=9)
    with pytest.raises(plm.ArgumentError, match="there is no key 'widths'"):
        plm.new("cnn", out=films / "x", text=[films / "films.tsv"], widths=3)
    with pytest.raises(plm.ArgumentError, match="cnn, cvt.*gpt2 is none of them"):
        plm.new("gpt2", out=films / "x", text=[films / "films.tsv"])
    assert not (films / "x").exists()


@pytest.mark.parametrize(
    "filters", [[], [3, 4], [[3]], [[0, 4]], [[3, -1]], [[3, 4.5]], [[True, 2]], [[3, 2**40]], [["3", 4]]]
)
def test_bad_filters(filters):
    with pytest.raises(plm.ArgumentError, match="filters must be pairs of a width and a number"):
        models.config_from_dict({"model_type": "cnn", "filters": filters})
