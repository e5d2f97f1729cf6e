import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, nn, ops

rng = np.random.default_rng(0)
N, C, V = 13, 12, 40
HIDDEN = rng.normal(size=(N, C))
LABELS = rng.integers(0, V, N)
LABELS[3] = -100
SHAPES = [((), 1, C), ((), 2, 6), ((11,), 1, C), ((11, 25), 1, 8), ((11, 25), 2, C), ((4, 5, 39), 2, 9)]


def softmax(cutoffs, div_val, embed_width, **options):
    plm.seed(1)
    made = nn.AdaptiveSoftmax(
        C, V, cutoffs, div_val, embed_width=embed_width, weight_init=nn.init.normal(0.5),
        projection_init=nn.init.normal(0.5), **options,
    )  # fmt: skip
    return made.to("float64")


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def naive(made, hidden):
    """Cluster by cluster, as the formula says."""
    edges, found = made.clusters.edges, []
    for i, (low, high) in enumerate(zip(edges, edges[1:])):
        x = hidden @ made.projections[i].weight.numpy() if len(made.projections) else hidden
        table = made.tables[0 if made.whole else i]
        weight, bias = table.weight.numpy(), table.bias.numpy()
        if made.whole:
            weight, bias = weight[low:high], bias[low:high]
        logits = x @ weight.T + bias
        if i == 0:
            if made.others is not None:
                others = x @ made.others.weight.numpy().T + made.others.bias.numpy()
                logits = np.concatenate([logits, others], 1)
            head = log_softmax(logits)
            found.append(head[:, :high])
        else:
            found.append(log_softmax(logits) + head[:, [edges[1] + i - 1]])
    return np.concatenate(found, 1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_log_probs_and_loss(shape):
    made = softmax(*shape)
    for p in made.parameters():
        if p.ndim == 1:
            plm._core.assign(p, Tensor(rng.normal(size=p.shape)))
    expected = naive(made, HIDDEN)
    np.testing.assert_allclose(made.log_probs(Tensor(HIDDEN)).numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(expected).sum(1), 1, atol=1e-12)
    out = made(Tensor(HIDDEN), Tensor(LABELS))
    nll = np.where(LABELS == -100, 0, -expected[np.arange(N), np.maximum(LABELS, 0)])
    np.testing.assert_allclose(out.nll.numpy(), nll, atol=1e-12)
    np.testing.assert_allclose(out.loss.numpy(), nll.sum() / (LABELS != -100).sum(), atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_are_those_of_the_whole_softmax(shape):
    labels = np.where(LABELS == -100, 1, LABELS)
    labels[:4] = 1, 4, 12, V - 1  # of each cluster
    found = []
    for way in ("clusters", "whole"):
        made, x = softmax(*shape), Tensor(HIDDEN, requires_grad=True)
        if way == "clusters":
            made(x, Tensor(labels)).loss.backward()
        else:
            ops.cross_entropy(made.log_probs(x), Tensor(labels)).backward()
        found.append({"x": x.grad} | {n: p.grad for n, p in made.named_parameters()})
    for name, g in found[0].items():
        np.testing.assert_allclose(g.numpy(), found[1][name].numpy(), atol=1e-12, err_msg=name)


def test_clusters_without_a_label_are_not_computed():
    made = softmax((11, 25), 2, C)
    made(Tensor(HIDDEN), Tensor(np.full(N, 12))).loss.backward()
    assert made.tables[1].weight.grad is not None and made.tables[2].weight.grad is None


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_traced(shape):
    made = softmax(*shape)
    with plm.no_grad():
        program = plm.trace(
            lambda hidden, labels: {"loss": made(hidden, labels).loss, "all": made.log_probs(hidden)},
            weights=dict(made.named_parameters()),
            hidden=plm.spec("float64", "N", C),
            labels=plm.spec("int64", "N"),
        )
        for n in (N, 1, 5):
            h, labels = Tensor(HIDDEN[:n]), Tensor(LABELS[:n])
            out = program(hidden=h, labels=labels)
            np.testing.assert_allclose(out["loss"].numpy(), made(h, labels).loss.numpy(), atol=1e-12)
            np.testing.assert_allclose(out["all"].numpy(), made.log_probs(h).numpy(), atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_embedding_and_ties(shape):
    cutoffs, div_val, E = shape
    plm.seed(2)
    made = nn.AdaptiveEmbedding(V, C, cutoffs, div_val, embed_width=E)
    ids = rng.integers(0, V, (3, 5))
    rows = made(Tensor(ids))
    edges = made.clusters.edges
    for (b, t), n in np.ndenumerate(ids):
        i = 0 if div_val == 1 else int(np.searchsorted(edges, n, side="right")) - 1
        row = made.tables[i].weight.numpy()[n - (0 if div_val == 1 else edges[i])]
        row = made.projections[i].weight.numpy() @ row if len(made.projections) else row
        np.testing.assert_allclose(rows.numpy()[b, t], row, atol=1e-6)
    assert made(Tensor(ids[:, :0])).shape == (3, 0, C)
    tied = nn.AdaptiveSoftmax(
        C, V, cutoffs, div_val, embed_width=E, tied=made, tie_projections=[False, True, True, True]
    )
    assert all(a.weight is b.weight for a, b in zip(tied.tables, made.tables))
    for i, p in enumerate(tied.projections):
        assert (p.weight is made.projections[0 if div_val == 1 else i].weight) == (i > 0)


@pytest.mark.parametrize("kind", ["AdaptiveSoftmax", "AdaptiveEmbedding"])
@pytest.mark.parametrize(
    "cutoffs, div_val, message",
    [
        ([5, 5], 1, r"cutoffs must rise, from 1 to below the vocabulary's 40, got \[5, 5\]"),
        ([0, 5], 1, "cutoffs must rise"),
        ([5, 40], 1, "cutoffs must rise"),
        ([5, 50], 2, "cutoffs must rise"),
        ([5, 9], 4, "div_val 4 leaves no width for cluster 2: 12 is divided by it 2 times"),
        ([5], 0, "div_val must be at least 1, got 0"),
    ],
)
def test_errors(kind, cutoffs, div_val, message):
    first = (C, V) if kind == "AdaptiveSoftmax" else (V, C)
    with pytest.raises(plm.ArgumentError, match=f"{kind}: {message}"):
        getattr(nn, kind)(*first, cutoffs, div_val)


def test_errors_of_calls():
    made = nn.AdaptiveSoftmax(C, V, [9, 20], 2)
    with pytest.raises(plm.ShapeError, match=r"hidden must be \[N, 12\] and labels \[N\]"):
        made(Tensor(np.zeros((3, 4), np.float32)), Tensor([1, 2, 3]))
    with pytest.raises(IndexError):
        made(Tensor(np.zeros((1, C), np.float32)), Tensor([V]))
    with pytest.raises(IndexError):
        nn.AdaptiveEmbedding(V, C, [9, 20], 2)(Tensor([V]))
    with pytest.raises(plm.ArgumentError, match="must have its clusters"):
        nn.AdaptiveSoftmax(C, V, [9], tied=nn.AdaptiveEmbedding(V, C, [8]))
