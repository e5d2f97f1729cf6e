import os
import signal

import numpy as np
import plmcore as plm
import pytest
from plmcore import optim, train
from plmcore.train import schedules
from small import Counting, gpt2, same_bits, trainer


def test_it_learns():
    t = trainer(steps=60)
    first, *_, last = [t.advance()["loss"] for _ in range(60)]
    assert last < first / 2


def test_the_schedule_sets_the_rate():
    t = trainer(steps=4, lr=2.0, schedule=schedules.linear(steps=4))
    assert [t.advance()["lr"] for _ in range(4)] == [2.0, 1.5, 1.0, 0.5]


@pytest.mark.parametrize("activations", ["float32", "bfloat16"])
def test_the_same_bits_with_any_number_of_threads(activations):
    before = plm.num_threads()
    results = []
    for threads in (1, 2, 3):
        plm.set_num_threads(threads)
        t = trainer(wide(), WIDE, steps=8, activations=activations)
        t.run()
        results.append(t.model)
    plm.set_num_threads(before)
    assert same_bits(results[0], results[1]) and same_bits(results[0], results[2])


WIDE = Counting(64)  # enough rows that activations are rounded


def wide(**changes):
    return gpt2(n_embd=64, **changes)


def test_activations_in_bfloat16_learn_as_fast_with_less_memory():
    curves, peaks = {}, {}
    for activations in ("float32", "bfloat16"):
        t = trainer(wide(n_layer=12), WIDE, steps=40, lr=3e-3, activations=activations)
        plm.trim_memory()
        plm.reset_peak_memory()
        curves[activations] = [t.advance()["loss"] for _ in range(40)]
        peaks[activations] = plm.memory_stats()["peak"]
        assert all(p.dtype == "float32" for p in t.model.parameters())
    plain, rounded = curves["float32"], curves["bfloat16"]
    assert plain[0] == rounded[0] and plain[-1] != rounded[-1]  # the first is before any gradient
    assert rounded[-1] == pytest.approx(plain[-1], rel=0.05) and plain[-1] < plain[0] / 3
    assert peaks["bfloat16"] < 0.7 * peaks["float32"]


def test_activations_of_another_kind_are_refused():
    with pytest.raises(plm.ArgumentError, match="activations must be float32 or bfloat16, got 'int8'"):
        trainer(activations="int8")


def test_a_seed_decides_dropout():
    a, b, c = (trainer(steps=4, seed=s) for s in (1, 1, 2))
    for t in (a, b, c):
        plm.seed(np.random.randint(1000))  # what was drawn before does not matter
        t.run()
    assert same_bits(a.model, b.model) and not same_bits(a.model, c.model)


def average_of(model):
    return optim.EMA(model.parameters(), decay=0.9)


@pytest.mark.parametrize(
    "at, activations", [(1, "float32"), (7, "float32"), (10, "bfloat16"), (29, "float32")]
)
def test_going_on_from_a_checkpoint_is_bit_identical(tmp_path, at, activations):
    options = dict(
        schedule=schedules.cosine(steps=30, warmup=5), save_every=at, activations=activations, batches=WIDE
    )
    whole = wide()
    trainer(whole, average=average_of(whole), **{k: v for k, v in options.items() if k != "save_every"}).run()
    model = wide()
    with train.RunDirectory(tmp_path, quiet=True) as d:
        t = trainer(model, average=average_of(model), directory=d, **options)
        for _ in range(at):
            t.advance()
        d.finish()
    fresh = wide(seed=99)
    with train.RunDirectory(tmp_path, quiet=True) as d:
        t = trainer(fresh, average=average_of(fresh), directory=d, **options)
        t.restore(d.newest())
        assert t.step == at
        t.run()
    assert same_bits(whole, fresh)


@pytest.mark.parametrize("at", [2, 5, 8])
def test_averaged_sgd_is_triggered_and_goes_on_bit_for_bit(tmp_path, at):
    """NT-ASGD: evaluations after each step, the fourth of which is worse.

    The average is of the steps after it.
    """
    losses = [3.0, 2.0, 2.5, 3.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]

    def sgd(model, **options):
        average = optim.TriggeredMean(model.parameters(), patience=2)
        evaluate = lambda model: {"loss": losses[t.step - 1]}
        t = train.Trainer(model, Counting(), optim.SGD(model.parameters(), lr=0.1), steps=10, average=average,
                          evaluate=evaluate, evaluate_every=1, **options)  # fmt: skip
        return t

    whole = sgd(gpt2())
    iterates = []
    for _ in range(10):
        whole.advance()
        iterates.append(np.array(whole.model.body.norm.gamma.numpy(), np.float64))
    assert whole.average.count == 6
    plain = train.Trainer(model := gpt2(), Counting(), optim.SGD(model.parameters(), lr=0.1), steps=10)
    plain.run()
    assert same_bits(whole.model, plain.model)  # the training itself is not touched
    with train.RunDirectory(tmp_path, quiet=True) as d:
        t = sgd(gpt2(), directory=d, save_every=at)
        for _ in range(at):
            t.advance()
        d.finish()
        t = sgd(gpt2(seed=99), directory=d, save_every=at)
        t.restore(d.newest())
        assert t.step == at
        t.run()
    for one in (whole, t):
        one.average.apply()
    assert same_bits(whole.model, t.model)
    np.testing.assert_allclose(whole.model.body.norm.gamma.numpy(), np.mean(iterates[4:], 0), rtol=1e-6)


def saved(tmp_path, **options):
    with train.RunDirectory(tmp_path, quiet=True) as d:
        t = trainer(directory=d, save_every=2, steps=2, **options)
        t.run()
        return d.newest()


@pytest.mark.parametrize(
    "other, message",
    [
        (lambda: trainer(seed=5), "is of seed 0, this run of 5"),
        (lambda: trainer(data="another"), "the corpus has changed"),
        (
            lambda: trainer(gpt2(n_layer=3)),
            "of another model: GPT2CausalLM: the state does not fit; missing: body.blocks.2",
        ),
        (
            lambda: trainer(gpt2(vocab_size=51)),
            r"of another model: .* wrong shape: body.embeddings.tokens.weight "
            r"\[50, 32\], expected \[51, 32\]",
        ),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(tmp_path, other, message):
    checkpoint, t = saved(tmp_path), other()
    before = {n: np.array(x.numpy()) for n, x in t.model.state_dict().items()}
    with pytest.raises(plm.ArgumentError, match=message):
        t.restore(checkpoint)
    assert t.step == 0 and all(
        before[n].tobytes() == x.numpy().tobytes() for n, x in t.model.state_dict().items()
    )


def test_a_checkpoint_of_another_optimiser_is_refused(tmp_path):
    checkpoint, model = saved(tmp_path), gpt2(seed=3)
    t = train.Trainer(model, Counting(), optim.SGD(model.parameters()), steps=3)
    before = gpt2(seed=3)
    with pytest.raises(plm.ArgumentError, match="of another model: SGD: the state is not that of"):
        t.restore(checkpoint)
    assert same_bits(model, before)


def test_a_checkpoint_with_an_average_needs_one(tmp_path):
    model = gpt2()
    with train.RunDirectory(tmp_path, quiet=True) as d:
        trainer(model, average=average_of(model), directory=d, save_every=1, steps=1).run()
        with pytest.raises(plm.ArgumentError, match="has an average"):
            trainer(directory=d).restore(d.newest())


def scores(*values):
    values = iter(values)
    return lambda model: {"loss": next(values)}


def test_the_run_ends_when_nothing_improves(tmp_path):
    with train.RunDirectory(tmp_path, quiet=True) as d:
        t = trainer(
            directory=d,
            steps=100,
            evaluate=scores(3.0, 2.0, 2.5, 2.0, 9.0),
            evaluate_every=5,
            patience=2,
            save_every=1000,
        )
        t.run()
        assert t.step == 20 and t.stopped == "no lower loss in 2 evaluations" and t.best == 2.0
        kept = [p.name for p in sorted(d.checkpoints.iterdir())]
        assert kept == ["step-00000010", "step-00000020"]  # the best, and the end


def test_evaluation_reads_the_average_and_changes_nothing(tmp_path):
    model, seen = gpt2(), []
    average = average_of(model)

    def evaluate(m):
        assert not m.training
        seen.append(np.array(m.body.norm.gamma.numpy()))
        return {"loss": 1.0}

    t = trainer(model, average=average, evaluate=evaluate, evaluate_every=3, steps=3)
    t.run()
    assert (
        seen[0].tobytes()
        == average.averages[[id(p) for p in average.params].index(id(model.body.norm.gamma))]
        .numpy()
        .tobytes()
    )
    plain = trainer(steps=3)
    plain.run()
    assert model.training and same_bits(model, plain.model)


def test_callbacks_see_every_step_and_can_stop():
    seen = []

    def callback(t, metrics):
        seen.append((t.step, set(metrics) >= {"loss", "lr", "norm", "tokens", "seconds"}))
        if t.step == 3:
            t.stop("enough")

    t = trainer(callbacks=[callback])
    t.run()
    assert seen == [(1, True), (2, True), (3, True)] and t.stopped == "enough"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_step_and_saves(tmp_path, number):
    before = signal.getsignal(number)

    def interrupt(t, metrics):
        if t.step == 4:
            os.kill(os.getpid(), number)

    with train.RunDirectory(tmp_path, quiet=True) as d:
        t = trainer(directory=d, save_every=1000, callbacks=[interrupt])
        with pytest.raises(train.Interrupted, match="after step 4") as e:
            t.run()
        assert e.value.exit_code == 128 + number and d.newest().step == 4
    assert signal.getsignal(number) is before


def test_what_the_writing_of_a_checkpoint_raises_comes_out(tmp_path):
    with train.RunDirectory(tmp_path, quiet=True) as d:
        d.checkpoints.write_text("a file where the folder should be")
        with pytest.raises(OSError, match="checkpoints"):
            trainer(directory=d, save_every=2).run()


def test_bad_options():
    with pytest.raises(plm.ArgumentError, match="nonfinite must be stop or skip, got 'go on'"):
        trainer(nonfinite="go on")
    with pytest.raises(plm.ArgumentError, match="save_every must be at least 1, got 0"):
        trainer(save_every=0)
    with pytest.raises(plm.ArgumentError, match="evaluate must give a loss, got accuracy"):
        trainer(steps=1, evaluate=lambda m: {"accuracy": 1.0}).run()
