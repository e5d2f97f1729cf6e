"""XLNet with a memory that goes from batch to batch, through the command's door and with the parts alone."""

import json
import pathlib

import fakes
import killed_lstm
import killing
import numpy as np
import plmcore as plm
import pytest
from killing import Stop, stop_at
from plmcore import Tensor, criteria, data, objectives, train
from plmcore.cli import demo
from plmcore.models import labels
from plmcore.train import carrying
from plmcore.train.loop import Trainer
from small import same_bits

SMALL = [
    "data.vocab=300",
    "model.n_layer=2",
    "model.d_model=32",
    "model.n_head=2",
    "model.d_inner=64",
    "data.length=32",
    "data.batch=4",
    "train.evaluate_batches=2",
    "train.log_every=1",
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "manual.txt"
    path.write_text(demo.manual()[:12_000])
    return path


def run(text, out, *, steps=6, changes=(), **options):
    changes = [*SMALL, *changes]
    return plm.pretrain(
        "xlnet", text=[text], out=out, steps=steps, save_every=2, quiet=True, changes=changes, **options
    )


@pytest.fixture(scope="module")
def finished(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "a"
    run(text, out)
    return out


def bits(folder):
    return (folder / "final" / "model.safetensors").read_bytes()


def losses(folder):
    return [m["loss"] for m in map(json.loads, (folder / "metrics.jsonl").open()) if "loss" in m]


def test_the_recipe_trains_with_memory(finished, text, tmp_path):
    saved, _ = plm.safetensors.read(finished / "checkpoints" / "step-00000006" / "carried.safetensors")
    assert {name: tuple(m.shape) for name, m in saved.items()} == {str(i): (48, 4, 32) for i in range(2)}
    run(text, tmp_path / "without", changes=["train.mem_len=0"])
    assert not (tmp_path / "without" / "checkpoints" / "step-00000006" / "carried.safetensors").exists()
    assert bits(tmp_path / "without") != bits(finished)


def test_the_result_is_published_as_ever(finished):
    """A memory is how it was trained; the directory is one like any other, and writes text."""
    config = json.loads((finished / "final" / "config.json").read_bytes())
    assert not config["mem_len"] and not config["reuse_len"]
    assert plm.load(finished / "final").generate("The", max_new_tokens=3, do_sample=False)


@pytest.mark.parametrize("step", [1, 3, 5])
def test_a_run_that_was_stopped_goes_on_with_its_memory(finished, text, tmp_path, step):
    with pytest.raises(Stop):
        run(text, tmp_path / "b", callbacks=[stop_at(step)])
    plm.pretrain(out=tmp_path / "b", resume=True, quiet=True)
    assert bits(tmp_path / "b") == bits(finished)
    assert losses(tmp_path / "b") == losses(finished)


def test_a_part_of_a_step_hands_its_memory_to_the_next(finished, text, tmp_path):
    """Gradients of two batches at a time: the second goes on where the first ended."""
    seen = []

    def watch(trainer, metrics):
        seen.append([m.shape[0] for m in trainer.carried.layers])

    run(text, tmp_path / "c", steps=2, changes=["data.accumulate=2"], callbacks=[watch])
    assert seen == [[32, 32], [48, 48]]  # 2 x 16 tokens are reused, then all that fit


def parts(length=16, streams=3, mem=12):
    tokenizer = fakes.Numbers("xlnet", plain=60)
    corpus = fakes.corpus(tokenizer, documents=6)
    objective = objectives.PermutationLM(
        corpus, tokenizer, length, stride=length // 2, block=length // 2, streams=streams, predict=3
    )
    plm.seed(0)
    config = dict(
        model_type="xlnet",
        vocab_size=tokenizer.vocab_size,
        d_model=16,
        n_layer=2,
        n_head=2,
        d_inner=32,
        mem_len=None,
    )
    model = plm.from_config(config, "causal-lm").model.eval()
    return objective, model, criteria.Remembered(labels.TARGETS, length=mem, reuse=length // 2)


def test_batches_go_on_until_the_epoch_ends():
    objective, model, criterion = parts()
    batches = data.Batches(objective, 3, seed=0, shuffle=False)
    n = batches.steps_per_epoch()
    found = [bool(carrying.Continued(batches)[i][carrying.CONTINUES]) for i in range(2 * n)]
    assert found == [i % n > 0 for i in range(2 * n)]
    text = [carrying.Continued(batches)[i]["input_ids"] for i in range(n)]
    for before, after in zip(text, text[1:]):
        assert np.array_equal(before[:, 8:14], after[:, :6])  # half a window on; two special tokens end each


def test_the_memory_is_of_the_tokens_before():
    """The same batch has another loss behind other text, and the loss of a first batch when it begins an
    epoch.
    """
    objective, model, criterion = parts()
    batches = carrying.Continued(data.Batches(objective, 3, seed=0, shuffle=False))
    first, second, other = batches[0], batches[1], batches[5]

    def run(batch, state):
        terms, after = criteria.run(criterion, model, batch, state)
        return terms["labels"].item(), after

    with plm.no_grad():
        _, state = run(first, None)
        assert [tuple(m.shape) for m in state.layers] == [(8, 3, 16)] * 2
        behind_first, after = run(second, state)
        assert [tuple(m.shape) for m in after.layers] == [(12, 3, 16)] * 2  # the last 12 of 16
        _, after = run(other | {carrying.CONTINUES: np.array(False)}, state)
        behind_other, _ = run(second, after)
        alone, _ = run(second | {carrying.CONTINUES: np.array(False)}, after)
    assert len({behind_first, behind_other, alone}) == 3


def test_four_segments_with_full_memory_are_one_pass():
    """Without orders to hide anything: a causal model over 32 tokens, or four times 8 with all that came
    before.
    """
    plm.seed(0)
    config = dict(
        model_type="xlnet",
        vocab_size=50,
        d_model=16,
        n_layer=2,
        n_head=2,
        d_inner=32,
        mem_len=None,
        attn_type="uni",
    )
    model = plm.from_config(config, "causal-lm").model.eval()
    ids = np.random.default_rng(0).integers(0, 50, (2, 32))
    with plm.no_grad():
        whole = model(input_ids=Tensor(ids)).logits.numpy()
        criterion, state, found = criteria.Remembered(labels.NEXT, length=32, reuse=8), None, []
        for i in range(0, 32, 8):
            before = None if state is None else state.layers
            out = model(input_ids=Tensor(ids[:, i : i + 8]), mems=before, use_mems=True)
            found.append(out.logits.numpy())
            _, state = criterion(model, {"input_ids": ids[:, i : i + 8], "labels": ids[:, i : i + 8]}, state)
    assert np.abs(np.concatenate(found, 1) - whole).max() < 1e-6


def test_a_step_that_is_left_out_leaves_the_memory_as_it_was():
    objective, model, criterion = parts()
    batches = carrying.Continued(data.Batches(objective, 3, seed=0, shuffle=False))
    opt = plm.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, batches, opt, steps=3, criterion=criterion, nonfinite="skip")
    trainer.advance()
    before = [np.array(m.numpy()) for m in trainer.carried.layers]
    weight = model.body.tokens.weight
    plm._core.assign(weight, np.full(weight.shape, np.nan, np.float32))
    trainer.advance()
    assert trainer.skips == 1
    assert all(np.array_equal(a, m.numpy()) for a, m in zip(before, trainer.carried.layers))


def test_the_held_out_text_has_few_enough_streams(text, tmp_path):
    """A short one is evaluated all the same."""
    for share in ("0.01", "0.02", "0.2"):
        run(text, tmp_path / share, steps=1, changes=[f"data.held_out={share}"])
        lines = list(map(json.loads, (tmp_path / share / "metrics.jsonl").open()))
        assert any(np.isfinite(line.get("eval_loss", np.nan)) for line in lines)


def test_a_model_that_forgets_by_itself_is_refused():
    _, _, criterion = parts()
    plm.seed(0)
    config = dict(model_type="xlnet", vocab_size=50, d_model=16, n_layer=2, n_head=2, d_inner=32, mem_len=4)
    model = plm.from_config(config, "causal-lm").model
    ids = np.zeros((2, 8), np.int64)
    with pytest.raises(
        plm.ArgumentError, match=r"keep all 8 tokens .* got 4; set model\.mem_len and model\.reuse_len to 0"
    ):
        criterion(model, {"input_ids": ids, "labels": ids}, None)


# ---- a recurrent network: truncated backpropagation ----


def test_an_lstm_learns_from_what_it_carries():
    """The rule is longer than a window: without the state something stays uncertain."""
    losses = {}
    for forgets in (False, True):
        t = killed_lstm.trainer(400, killed_lstm.Predicted(forgets))
        losses[forgets] = [t.advance()["loss"] for _ in range(400)]
    assert np.mean(losses[False][-40:]) < 0.02
    assert np.mean(losses[True][-40:]) > 0.2


def test_gradients_end_at_the_batch():
    t = killed_lstm.trainer(2)
    t.advance()
    assert not any(x.requires_grad for x in t.carried.tensors().values())


@pytest.mark.parametrize("step", [4, 99, 100, 101])  # a new epoch begins at 100, without a state
def test_an_lstm_that_was_stopped_goes_on_bit_for_bit(tmp_path, step):
    def run(steps, folder, restored=False):
        with train.RunDirectory(folder, quiet=True) as d:
            t = killed_lstm.trainer(steps, directory=d, save_every=step)
            if restored:
                t.restore(d.newest())
            t.run()
        return t

    whole = run(step + 3, tmp_path / "a")
    run(step, tmp_path / "b")
    again = run(step + 3, tmp_path / "b", restored=True)
    assert same_bits(whole.model, again.model)
    for name, x in whole.carried.tensors().items():
        assert x.numpy().tobytes() == again.carried.tensors()[name].numpy().tobytes()


def test_a_killed_lstm_ends_with_the_same_bits(tmp_path):
    script, steps, kills = pathlib.Path(killed_lstm.__file__), 130, 6
    undisturbed, killed = tmp_path / "a", tmp_path / "b"
    whole = killing.start(script, undisturbed, steps)
    killing.kill_often(lambda: killing.start(script, killed, steps), killed, kills)
    process = killing.start(script, killed, steps)
    assert process.wait(120) == 0 and whole.wait(120) == 0, process.stderr.read().decode()
    with np.load(undisturbed / "done.npz") as a, np.load(killed / "done.npz") as b:
        assert "carried.h" in a.files
        assert all(a[name].tobytes() == b[name].tobytes() for name in a.files)


def test_a_state_that_nobody_carries_is_refused(tmp_path):
    with train.RunDirectory(tmp_path, quiet=True) as d:
        killed_lstm.trainer(2, directory=d, save_every=2).run()

        class Stateless(killed_lstm.Predicted):
            state = criteria.Criterion.state

        t = killed_lstm.trainer(4, Stateless(), directory=d)
        before = {name: np.array(x.numpy()) for name, x in t.model.state_dict().items()}
        with pytest.raises(
            plm.ArgumentError, match="Stateless carries no state, and the checkpoint has one: c, h;"
        ):
            t.restore(d.newest())
        assert (
            all(np.array_equal(before[n], x.numpy()) for n, x in t.model.state_dict().items()) and t.step == 0
        )


def test_a_state_of_other_streams_is_refused():
    objective, model, criterion = parts()
    batches = carrying.Continued(data.Batches(objective, 3, seed=0, shuffle=False))
    with plm.no_grad():
        _, state = criteria.run(criterion, model, batches[0])
        fewer = {k: a[:2] if a.ndim else a for k, a in batches[1].items()}
        with pytest.raises(plm.ShapeError, match="the state is of 3 sequences, the batch has 2"):
            criteria.run(criterion, model, fewer, state)
