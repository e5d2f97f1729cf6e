import json

import numpy as np
import plmcore as plm
import pytest
import samples
from plmcore.tasks import features

FAST = ["data.length=32", "data.batch=16", "optim.lr=2e-2"]


pytestmark = pytest.mark.filterwarnings("ignore:.*drawn at random")


def body(directory, family="bert"):
    return plm.load(directory(family), head="base").model


def test_mixed_layers_are_a_weighted_sum(directory):
    bert = body(directory)
    model = features.Features(bert.config, bert, "mix", None, dropout=0.0).eval()
    plm._core.assign(model.mix.scalars, np.array([0.0, 1.0, 2.0], np.float32))
    plm._core.assign(model.mix.gamma, np.array([3.0], np.float32))
    ids = np.arange(12).reshape(2, 6)
    states = [h.numpy() for h in bert(plm.Tensor(ids), output_hidden_states=True).hidden_states]
    shares = np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum()
    mixed = 3 * sum(s * h for s, h in zip(shares, states))
    expected = mixed @ model.classifier.weight.numpy().T + model.classifier.bias.numpy()
    np.testing.assert_allclose(model(plm.Tensor(ids)).logits.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "albert", "xlnet"])
@pytest.mark.parametrize("pooling", features.POOLINGS)
def test_pooling_does_not_see_padding(directory, family, pooling):
    base = body(directory, family)
    model = features.Features(base.config, base, "last", pooling, dropout=0.0).eval()
    ids = np.array([[5, 6, 7, 8]])
    alone = model(plm.Tensor(ids)).logits.numpy()
    for pad in ([0, 3], [3, 0]):
        padded = np.pad(ids, [[0, 0], pad])
        mask = np.pad(np.ones_like(ids), [[0, 0], pad])
        inputs = {"attention_mask": plm.Tensor(mask)}
        if pad[0] and family != "xlnet":
            continue  # its positions would be others
        np.testing.assert_allclose(model(plm.Tensor(padded), **inputs).logits.numpy(), alone, atol=1e-5)


def test_concat_pooling_by_hand(directory):
    bert = body(directory)
    model = features.Features(bert.config, bert, 1, "concat", dropout=0.0).eval()
    ids = np.arange(12).reshape(2, 6)
    h = bert(plm.Tensor(ids), output_hidden_states=True).hidden_states[1].numpy()
    x = np.concatenate([h[:, -1], h.max(1), h.mean(1)], 1)
    expected = x @ model.classifier.weight.numpy().T + model.classifier.bias.numpy()
    np.testing.assert_allclose(model(plm.Tensor(ids)).logits.numpy(), expected, atol=1e-5)


def test_a_frozen_body_with_learned_layers(directory, table, tmp_path):
    out = tmp_path / "run"
    changes = [*FAST, "adapt.layers=mix", "adapt.pooling=concat", "adapt.freeze=body"]
    plm.finetune(
        directory("bert"), "classification", train=table("train.tsv", samples.reviews(96)),
        dev=table("dev.tsv", samples.reviews(32, 96)), out=out, epochs=20, quiet=True, changes=changes,
    )  # fmt: skip
    assert json.loads((out / "scores.json").read_text())["dev"]["accuracy"] >= 0.9
    start = plm.load(directory("bert"), head="base").model.state_dict()
    end = plm.load(out / "final", head="base").model.state_dict()
    assert all((end[name].numpy() == start[name].numpy()).all() for name in start)

    lm = plm.load(out / "final")
    assert lm.head == "features" and "features" in repr(lm)
    found = [f["label"] for f in lm.classify([t for t, _ in samples.reviews(32, 96)])]
    assert found == [
        json.loads(line)["label"] for line in (out / "dev-predictions.jsonl").read_text().splitlines()
    ]
    assert (lm.model.mix.scalars.numpy() != 0).any()

    lm.save(tmp_path / "copy")
    again = plm.load(tmp_path / "copy")
    text = samples.reviews(1)[0][0]
    assert again.classify(text) == lm.classify(text)


def test_what_cannot_be_read(directory):
    bert, bart = body(directory), body(directory, "bart")
    with pytest.raises(ValueError, match="adapt.layers must be mix, last, concat or 0 to 2, got 3"):
        features.Features(bert.config, bert, 3)
    with pytest.raises(ValueError, match="adapt.pooling must be one of"):
        features.Features(bert.config, bert, "mix", "sum")
    with pytest.raises(ValueError, match="bart has two"):
        features.Features(bart.config, bart)
