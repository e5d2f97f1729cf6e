"""AWD-LSTM from text, through the command's door: carried state, drawn windows, averaging, reversed text."""

import json

import numpy as np
import plmcore as plm
import pytest
from killing import Stop, stop_at
from plmcore import criteria, data, optim, train
from plmcore.cli import demo
from plmcore.objectives.text import Text
from plmcore.train import carrying, held_out

SMALL = [
    "data.vocab=200",
    "model.n_layers=2",
    "model.d_embed=16",
    "model.d_hidden=24",
    "model.drop_mult=0.5",
    "data.length=13",
    "data.batch=4",
    "train.evaluate_batches=2",
    "train.log_every=1",
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "manual.txt"
    path.write_text(demo.manual()[:12_000])
    return path


def run(text, out, *, steps=12, changes=(), **options):
    return plm.pretrain(
        "awd-lstm",
        text=[text],
        out=out,
        steps=steps,
        save_every=3,
        quiet=True,
        changes=[*SMALL, *changes],
        **options,
    )


# evaluations at every other step, and the mean from the first that is worse than those before on
AVERAGED = ["train.evaluate_every=2", "train.trigger=1", "optim.lr=60.0"]


@pytest.fixture(scope="module")
def finished(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "a"
    run(text, out, changes=AVERAGED)
    return out


def bits(folder):
    return (folder / "final" / "model.safetensors").read_bytes()


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").open()]


def test_the_recipe(finished):
    saved, _ = plm.safetensors.read(finished / "checkpoints" / "step-00000012" / "carried.safetensors")
    assert {name: tuple(t.shape) for name, t in saved.items()} == {
        f"{i}.{k}": (4, 1, width) for i, width in enumerate((24, 16)) for k in "hc"
    }
    rates = [m["lr"] for m in lines(finished) if "lr" in m]
    tokens = np.diff([0] + [m["tokens"] for m in lines(finished) if "lr" in m]) / 4 - 1  # of each window
    assert len(set(tokens)) > 3  # drawn
    np.testing.assert_allclose(rates, 60 * tokens / 12)
    state, _ = plm.safetensors.read(finished / "checkpoints" / "step-00000012" / "average.safetensors")
    assert state["count"].item() > 0  # it has begun, and the result is the mean
    assert any("sample" in m for m in lines(finished))
    lm = plm.load(finished / "final")
    assert lm.config.bptt == 12 and lm.generate("The", max_new_tokens=3)


@pytest.mark.parametrize("stops", [(1,), (5, 7), (11,)])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(finished, text, tmp_path, stops):
    for step in stops:
        with pytest.raises(Stop):
            run(text, tmp_path / "b", changes=AVERAGED if step == stops[0] else (), callbacks=[stop_at(step)],
                resume=step != stops[0])  # fmt: skip
    plm.pretrain(out=tmp_path / "b", resume=True, quiet=True)
    assert bits(tmp_path / "b") == bits(finished)
    strip = lambda found: [
        {k: v for k, v in m.items() if k not in ("seconds", "tokens_per_second")} for m in found
    ]
    assert strip(lines(tmp_path / "b")) == strip(lines(finished))


def test_a_plain_lstm_learns(text, tmp_path):
    """Untied, without dropouts and penalties, windows of one length: the loss is the cross-entropy."""
    changes = [
        "model.drop_mult=0.0",
        "model.tie_word_embeddings=false",
        *(f"train.{key}" for key in ("vary=false", "ar=0.0", "tar=0.0", "average=none")),
        "optim.lr=10.0",
    ]
    lm = run(text, tmp_path / "plain", steps=150, changes=changes)
    found = [m["loss"] for m in lines(tmp_path / "plain") if "loss" in m]
    assert found[0] == pytest.approx(np.log(lm.config.vocab_size), abs=0.1)
    assert np.mean(found[-20:]) < found[0] - 1.2
    assert {m["lr"] for m in lines(tmp_path / "plain") if "lr" in m} == {10.0}


def test_backward_reads_the_text_from_its_end(text, tmp_path):
    seen = []

    def watch(trainer, metrics):
        seen.append(trainer.batches[trainer.step - 1]["input_ids"])

    lm = run(text, tmp_path / "back", steps=1, changes=["model.backward=true", "train.vary=false"],
             callbacks=[watch])  # fmt: skip
    assert lm.config.backward
    corpus = data.Corpus.open(tmp_path / "back" / "corpus")
    back = held_out.split(held_out.backward(corpus), 0.05)[0]
    ids = Text(back, lm.tokenizer.eos_token_id).take(np.array([0]), np.array([13]), 0)
    np.testing.assert_array_equal(seen[0][:1], ids)
    assert ids[0, 0] == corpus.ids[-1]


def test_settings_that_do_not_go_together(text, tmp_path):
    for change, message in (
        (["train.carry=false"], "train.vary draws the lengths of windows that go on"),
        (["objective.streams=3"], "objective.streams=4 like data.batch"),
        (["train.ar=-1.0"], "the penalties must not be negative, got ar -1"),
        (["train.average=2.0"], "train.average must be a decay"),
    ):
        with pytest.raises(plm.ArgumentError, match=message):
            run(text, tmp_path / "x", changes=change)


def test_without_a_carried_state_windows_are_shuffled(text, tmp_path):
    run(text, tmp_path / "x", steps=2, changes=["train.carry=false", "train.vary=false"])
    assert not (tmp_path / "x" / "checkpoints" / "step-00000002" / "carried.safetensors").exists()


# ---- windows of drawn lengths ----


def varied(size=4000, streams=3, length=20, seed=0):
    corpus = data.Corpus.from_ids([np.arange(size) % 50], 50)
    return carrying.Varied(Text(corpus), streams, length, seed)


def test_every_token_is_predicted_once_in_an_epoch():
    batches = varied()
    n = batches.steps_per_epoch(0)
    found = [batches[i] for i in range(n)]
    rows = np.concatenate([b["input_ids"][:, :-1] for b in found] + [found[-1]["input_ids"][:, -1:]], 1)
    part = 4000 // 3
    np.testing.assert_array_equal(rows, (np.arange(3)[:, None] * part + np.arange(part)) % 50)
    assert [bool(b[carrying.CONTINUES]) for b in found] == [i > 0 for i in range(n)]
    assert not batches[n][carrying.CONTINUES]  # the next epoch begins, with other windows
    assert batches.cuts(0).tolist() != batches.cuts(1).tolist() != varied(seed=1).cuts(1).tolist()


def test_lengths_are_drawn_as_published():
    lengths = np.diff(varied(size=400_000, streams=1, length=70).cuts(0))[:-1]
    short = lengths < 52
    assert 0.03 < short.mean() < 0.07
    assert abs(lengths[~short].mean() - 69.5) < 0.5 and abs(lengths[~short].std() - 5) < 0.4  # rounded down
    assert abs(lengths[short].mean() - 34.5) < 1.5
    few = np.diff(varied(size=40_000, streams=1, length=6).cuts(0))[:-1]
    assert few.min() == 5


def test_a_text_that_is_too_short():
    with pytest.raises(
        plm.ArgumentError, match="3 streams of a text of 60 tokens are 20 tokens long: no window"
    ):
        varied(size=60)


# ---- the criterion ----


def test_terms_of_the_criterion():
    plm.seed(0)
    config = dict(model_type="awd-lstm", vocab_size=30, d_embed=8, d_hidden=12, n_layers=2)
    lm = plm.from_config(config, "causal-lm").train()
    ids = np.random.default_rng(0).integers(0, 30, (3, 7))
    batch = {"input_ids": ids, "labels": ids}
    criterion = criteria.Carried(ar=2.0, tar=1.0)
    assert criterion.counts(batch) == {"labels": 18, "ar": 18, "tar": 15}
    with plm.Generator(5):
        terms, state = criteria.run(criterion, lm.model, batch)
    with plm.Generator(5):
        out = lm(ids[:, :-1])
    raw, dropped = out.last_hidden_state.numpy(), out.dropped_hidden_state.numpy()
    assert terms["ar"].item() / 18 == pytest.approx(2 * (dropped**2).mean(), rel=1e-5)
    assert terms["tar"].item() / 15 == pytest.approx((np.diff(raw, axis=1) ** 2).mean(), rel=1e-5)
    for (h, _), (other, _) in zip(state, out.state):
        np.testing.assert_array_equal(h.numpy(), other.numpy())
    again = criterion.state(state.tensors())
    np.testing.assert_array_equal(again[1][0].numpy(), state[1][0].numpy())
    with pytest.raises(plm.ShapeError, match="the state is of 3 sequences, the batch has 2"):
        criteria.run(criterion, lm.model, {k: v[:2] for k, v in batch.items()}, state)
    with pytest.raises(plm.ArgumentError, match="two tokens or more"):
        criterion.counts({"labels": ids[:, :1]})


def test_a_batch_goes_on_from_the_one_before():
    """Two windows are one, whose first token is read once; at the beginning of an epoch nothing is before."""
    plm.seed(0)
    config = dict(model_type="awd-lstm", vocab_size=30, d_embed=8, d_hidden=12, n_layers=2)
    lm = plm.from_config(config, "causal-lm").eval()
    ids = np.random.default_rng(0).integers(0, 30, (3, 9))
    criterion = criteria.Carried()

    def sum_of(ids, state, goes_on=True):
        batch = {"input_ids": ids, "labels": ids, carrying.CONTINUES: np.array(goes_on)}
        terms, after = criteria.run(criterion, lm.model, batch, state)
        return terms["labels"].item(), after

    whole, _ = sum_of(ids, None)
    first, state = sum_of(ids[:, :5], None)
    second, _ = sum_of(ids[:, 4:], state)
    assert first + second == pytest.approx(whole, rel=1e-6)
    alone, _ = sum_of(ids[:, 4:], state, goes_on=False)
    assert abs(alone - second) > 1e-4


def test_the_rate_of_a_step_is_that_of_its_batches():
    class Once:
        def __getitem__(self, step):
            ids = np.ones((2, 5), np.int64)
            return {"input_ids": ids, "labels": ids, carrying.RATE: np.array([0.5, 2.0][step])}

    config = dict(model_type="awd-lstm", vocab_size=5, d_embed=4, d_hidden=4, n_layers=1)
    model = plm.from_config(config, "causal-lm").model
    opt = optim.SGD(model.parameters(), lr=3.0)
    t = train.Trainer(model, Once(), opt, steps=2, criterion=criteria.Carried())
    assert [t.advance()["lr"] for _ in range(2)] == [1.5, 6.0]
