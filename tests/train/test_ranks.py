"""Two ranks with half of the batch each do what one process does with the whole.

Not bit for bit: a sum over all rows is taken in another order than the sum of the sums over either half.
"""

import json

import numpy as np
import plmcore as plm
import pytest
from plmcore import criteria, optim, train
from plmcore.train import ranks
from small import Counting, gpt2, trainer, weights
from thread_ranks import together

STEPS = 6
CLOSE = dict(rtol=2e-4, atol=2e-6)


class Two(ranks.Group):
    size = 2


class Part:
    """The rows of one rank."""

    def __init__(self, batches, group):
        self.batches, self.group = batches, group

    def __getitem__(self, step):
        return {k: v[self.group.rank :: self.group.size] for k, v in self.batches[step].items()}


def gradients(model):
    return {
        name: np.array(plm.ops.to_dense(p.grad) if p.grad.is_row_sparse else p.grad)
        for name, p in model.named_parameters()
    }


def close(a, b, **tolerance):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_allclose(a[name], b[name], err_msg=name, **(tolerance or CLOSE))


def model_of(group):
    """The same on each rank; gradients of its tokens are row-sparse."""
    return gpt2(dropout=0.0)


def test_loss_and_gradients_are_those_of_the_whole_batch():
    batches = Counting(8, ragged=True)
    labels = (batches[0]["labels"][:, 1:] != -100).sum(-1)
    assert labels[::2].sum() != labels[1::2].sum()  # so that the mean of two means would be another loss
    whole = trainer(gpt2(dropout=0.0), batches)
    found = whole.update()

    def work(group):
        t = trainer(model_of(group), Part(batches, group))
        return t.update(), gradients(t.model), weights(t.model)

    (one, of_one, after), (other, of_other, after_other) = together(2, work)
    assert one == other and all(of_one[k].tobytes() == of_other[k].tobytes() for k in of_one)
    assert all(after[k].tobytes() == after_other[k].tobytes() for k in after)
    close(one, found, rtol=1e-6)
    close(of_one, gradients(whole.model), rtol=1e-4, atol=1e-7)


def test_a_training_goes_as_that_of_the_whole_batch_and_rank_0_writes(tmp_path):
    options = dict(steps=STEPS, save_every=3, log_every=2, lr=1e-3)
    whole = trainer(gpt2(dropout=0.0), Counting(8, ragged=True), **options)
    whole.run()

    def work(group, stop=None):
        with train.RunDirectory(tmp_path / str(group.rank), quiet=True) as d:
            t = trainer(model_of(group), Part(Counting(8, ragged=True), group), directory=d, **options)
            t.run()
        return weights(t.model), t.tokens

    found = together(2, work)
    for after, tokens in found:
        close(after, weights(whole.model))
        assert tokens == whole.tokens == 8 * 16 * STEPS
    assert [p.name for p in sorted((tmp_path / "0" / "checkpoints").iterdir())] == [
        "step-00000003",
        "step-00000006",
    ]
    assert not (tmp_path / "1" / "checkpoints").exists()


def test_counts_meet_before_the_forward_pass_and_gradients_before_the_norm():
    order = []

    class Noting(criteria.Labelled):
        def counts(self, batch):
            return criteria.of(model).counts(batch)

        def predict(self, model, inputs):
            order.append("forward")
            return super().predict(model, inputs)

    class Group(Two):
        def sum(self, values):
            order.append(",".join(values))
            return values

        def sum_gradients(self, gradients):
            order.append("gradients")
            return gradients

    class Descent(optim.SGD):
        def norm(self):
            order.append("norm")
            return super().norm()

    model = gpt2()
    with ranks.joined(Group()):
        train.Trainer(model, Counting(), Descent(model.parameters()), steps=1, criterion=Noting()).update()
    assert order == ["labels", "forward", "gradients", "loss,tokens", "norm"]


def test_dropout_of_two_ranks_differs():
    def drawn(group):
        t = trainer(gpt2())
        with t._generator():
            return plm.random_state()

    one, other = together(2, drawn)
    assert one != other and one == drawn(ranks.current())


def test_a_step_that_is_no_number_on_one_rank_is_left_out_on_all():
    class Poisoned(criteria.Criterion):
        def __init__(self, inner, group):
            self.inner, self.group, self.calls = inner, group, 0

        def counts(self, batch):
            return self.inner.counts(batch)

        def __call__(self, model, batch, state):
            terms, state = self.inner(model, batch, state)
            self.calls += 1
            bad = self.group.rank == 1 and self.calls == 1
            factor = float("nan") if bad else 1.0
            return {
                n: criteria.Term(plm.ops.affine(t.sum, factor, 0.0), t.count) for n, t in terms.items()
            }, state

    def work(group):
        model = model_of(group)
        t = trainer(
            model,
            Part(Counting(8), group),
            steps=2,
            nonfinite="skip",
            criterion=Poisoned(criteria.of(model), group),
        )
        skips = []
        t.callbacks = [lambda t, metrics: skips.append(t.skips)]
        t.run()
        return skips, weights(model)

    (skips, a), (others, b) = together(2, work)
    assert skips == others == [1, 0] and all(a[k].tobytes() == b[k].tobytes() for k in a)


def test_a_stop_on_one_rank_stops_all():
    def work(group):
        t = trainer(model_of(group), Part(Counting(8), group), steps=9)
        if group.rank == 1:
            told = group.sum
            group.sum = lambda values: told(
                values | {"signals": t.step == 4} if "signals" in values else values
            )
        with pytest.raises(train.Interrupted, match="SIGTERM after step 4"):
            t.run()
        return t.step

    assert together(2, work) == [4, 4]


SETTINGS = [
    "data.vocab=300",
    "data.length=16",
    "model.n_positions=16",
    "model.n_layer=1",
    "model.n_embd=16",
    "model.n_head=2",
    "train.evaluate_batches=1000",
    "train.log_every=4",
    "train.evaluate_every=8",
]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(
        "".join(f"{a} and {b} are {a + b}, said the cat.\n\n" for a in range(30) for b in range(30))
    )
    return path


def metrics_of(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_a_run_of_two_ranks_is_one_run(text, tmp_path):
    def pretrain(out, batch, **options):
        options |= dict(steps=16, save_every=5, quiet=True, changes=SETTINGS)
        return plm.pretrain("gpt2", text=[text], out=out, batch=batch, **options)

    whole = pretrain(tmp_path / "whole", 8)

    class Stop(Exception):
        pass

    def stop(t, metrics):
        if t.step == 7:
            raise Stop

    with pytest.raises(Stop):
        together(2, lambda group: pretrain(tmp_path / "run", 4, callbacks=[stop]))
    found = together(2, lambda group: weights(pretrain(tmp_path / "run", 4, resume=True).model))
    for after in found:
        close(after, weights(whole.model), rtol=1e-3, atol=1e-5)
    mine, theirs = (metrics_of(tmp_path / name) for name in ("run", "whole"))
    assert [list(line) for line in mine] == [list(line) for line in theirs]
    for a, b in zip(mine, theirs, strict=True):
        for key in ("step", "tokens", "lr"):
            assert a.get(key) == b.get(key)
        for key in ("loss", "norm", "eval_loss"):
            assert a.get(key, 0.0) == pytest.approx(b.get(key, 0.0), rel=1e-3)
    log = (tmp_path / "run" / "log.txt").read_text()
    assert log.count("16 steps") == 1 and log.count("step 8:") == 1
    assert {p.name for p in (tmp_path / "run").iterdir()} == {p.name for p in (tmp_path / "whole").iterdir()}


def test_what_ranks_cannot_do_is_refused(text, tmp_path):
    changes = ["data.vocab=60", "data.length=16", "train.mem_len=16", "data.batch=4", "objective.streams=4"]
    with ranks.joined(Two()):
        with pytest.raises(
            plm.ArgumentError, match="go on from batch to batch in one process, and there are 2 "
        ):
            plm.pretrain("xlnet", text=[text], out=tmp_path / "run", steps=2, quiet=True, changes=changes)
        t = trainer(save_every=2)
        t.carried = object()
        with pytest.raises(
            plm.ArgumentError, match="what one rank carries from batch to batch, and there are 2"
        ):
            t.tensors()
