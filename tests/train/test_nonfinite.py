import numpy as np
import plmcore as plm
import pytest
from plmcore import train
from plmcore.train import nonfinite
from small import Counting, gpt2, same_bits, trainer


def poison(parameter, value=np.nan):
    array = np.array(parameter.numpy())
    array.reshape(-1)[3] = value
    plm._core.assign(parameter, plm.Tensor(array))


def test_a_bad_parameter_is_named():
    model = gpt2()
    poison(model.body.blocks[1].mlp.up.weight)
    with pytest.raises(
        train.NonFiniteError,
        match=r"step 1: loss nan; the parameter body\.blocks\.1\.mlp\.up\.weight \(1 of 4096 values\)",
    ):
        trainer(model).advance()


def test_the_module_where_it_began_is_named():
    """Finite weights whose product is not: the first output that overflows is that of this layer."""
    model = gpt2(dropout=0)
    w = model.body.blocks[0].mlp.down.weight
    plm._core.assign(w, plm.Tensor(np.full(w.shape, 1e38, np.float32)))
    u = model.body.blocks[0].mlp.up.weight
    plm._core.assign(u, plm.Tensor(u.numpy() * 1e4))
    with pytest.raises(train.NonFiniteError, match=r"the output of body\.blocks\.0\.mlp\.down "):
        trainer(model).advance()


def test_watching_leaves_the_classes_as_they_were():
    model = gpt2()
    before = type(model.body.norm).__call__
    with pytest.raises(RuntimeError), nonfinite.watched(model):
        assert type(model.body.norm).__call__ is not before
        raise RuntimeError
    assert type(model.body.norm).__call__ is before


class Once(Counting):
    """A model's loss becomes infinite at one step: its parameters are scaled up for that batch."""

    def __init__(self, model, at):
        super().__init__()
        self.model, self.at = model, at

    def __getitem__(self, step):
        gain = self.model.body.norm.gamma
        if step == self.at:
            self.kept = np.array(gain.numpy())
            plm._core.assign(gain, plm.Tensor(np.full(gain.shape, np.inf, np.float32)))
        elif step == self.at + 1:
            plm._core.assign(gain, plm.Tensor(self.kept))
        return super().__getitem__(step)


def test_other_models_of_the_same_kind_are_not_watched():
    """Another thread may run one meanwhile."""
    ours, other = gpt2(), gpt2()
    poison(other.parameters()[0])
    x = plm.Tensor(np.arange(8)[None])
    with nonfinite.watched(ours) as found, nonfinite.watched(other) as others:
        other(x)
        ours(x)
    assert not found and others


def test_a_skipped_step_changes_nothing(tmp_path):
    model, reference = gpt2(), gpt2()
    with train.RunDirectory(tmp_path, quiet=True) as d:
        t = trainer(model, Once(model, 5), directory=d, nonfinite="skip")
        for _ in range(5):
            t.advance()
        r = trainer(reference)
        for _ in range(5):
            r.advance()
        assert same_bits(model, reference)
        t.advance()
        t.batches[6]  # the gain comes back
        assert same_bits(model, reference) and [s.step for s in t.optimizer.states] == [5] * len(
            t.optimizer.states
        )
        assert "left out step 6: loss" in (tmp_path / "log.txt").read_text()
        t.advance()
        assert t.skips == 0


def test_too_many_in_a_row_stop(tmp_path):
    model = gpt2()
    poison(model.body.norm.beta, np.inf)
    t = trainer(model, nonfinite="skip", most_skips=3)
    for _ in range(3):
        t.advance()
    with pytest.raises(train.NonFiniteError, match="4 steps in a row"):
        t.advance()


def test_an_evaluation_names_the_parameter_that_the_last_step_spoiled():
    model = gpt2()
    t = trainer(model, evaluate=lambda model: {"loss": float("nan")}, evaluate_every=1)
    t.advance()
    assert t.score is None and t.best is None and t.stale == 1  # its parameters are finite: the run goes on
    poison(model.body.norm.beta)
    with pytest.raises(
        train.NonFiniteError, match=r"step 1: held-out loss nan; the parameter body\.norm\.beta \(1 of 32"
    ):
        t.assess()


def test_row_sparse_gradients_are_read():
    g = plm.Tensor.row_sparse(plm.Tensor(np.array([1])), plm.Tensor(np.array([[np.inf, 0]], np.float32)), 3)
    assert nonfinite.first_bad([("fine", None), ("table", g)]) == "table (1 of 2 values)"


@pytest.mark.parametrize("first, loss, squares, want", [
    (10.0, 812.0, False, True), (10.0, 60.0, False, False), (0.7, 49.0, False, False),
    (0.7, 51.0, False, True), (None, 1e9, False, False), (5.0, None, False, False),
    (0.5, 60.0, True, False), (0.5, 600.0, True, True), (250_000.0, 2_600_000.0, True, False),
])  # fmt: skip
def test_what_counts_as_diverged(first, loss, squares, want):
    assert nonfinite.diverged(first, loss, squares) is want


def test_a_run_that_diverges_ends_in_an_error(tmp_path):
    """Resumed, it ends in the same one; metrics and checkpoints are there."""
    for _ in range(2):
        with train.RunDirectory(tmp_path, quiet=True) as d:
            t = trainer(gpt2(), lr=10.0, steps=20, directory=d, save_every=10, log_every=5)
            if (saved := d.newest()) is not None:
                t.restore(saved)
            t.run()
            with pytest.raises(
                train.DivergedError, match=r"its first loss was \d\.\d+, and after step 20 it is .*optim\.lr"
            ):
                t.check_converged()
            assert t.last > 50 and d.newest().step == 20 and len(d.metrics()) == 4
            assert (tmp_path / "log.txt").read_text().count("the run diverges") == 1
