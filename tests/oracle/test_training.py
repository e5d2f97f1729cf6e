"""torch as oracle: whole networks and whole trainings."""

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, losses, nn, ops, optim

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = pytest.mark.oracle

# ---- a network of 30 ops drawn at random ----

B, T, C = 3, 5, 12


class Weights:
    """The trainable arrays of one network, as tensors of both libraries, drawn in the order of their use."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.ours, self.theirs = [], []

    def __call__(self, *shape, scale=0.3):
        array = (self.rng.standard_normal(shape) * scale).astype(np.float64)
        self.ours.append(Tensor(array, requires_grad=True))
        self.theirs.append(torch.tensor(array, requires_grad=True))
        return self.ours[-1], self.theirs[-1]

    def array(self, array):
        return Tensor(array), torch.from_numpy(array)


def unary(ours, theirs):
    return lambda w: (ours, theirs)


def square_plus(f, g):
    """f(1 + x^2): a domain on which log, sqrt and rsqrt are smooth."""
    return unary(lambda x: f(ops.affine(ops.mul(x, x), 1.0, 1.0)), lambda x: g(x * x + 1))


def with_weight(shape, ours, theirs, **options):
    def build(w):
        a, b = w(*shape, **options)
        return (lambda x: ours(x, a)), (lambda x: theirs(x, b))

    return build


def linear(activation, torch_activation):
    def build(w):
        (wo, wt), (bo, bt) = w(C, C), w(C)
        return (lambda x: ops.linear(x, wo, bo, activation)), (
            lambda x: torch_activation(F.linear(x, wt, bt))
        )

    return build


def attention(causal):
    def build(w):
        (wo, wt), (bo, bt) = w(3 * C, C), w(3 * C)

        def theirs(x):
            q, k, v = F.linear(x, wt, bt).reshape(B, T, 3, 2, C // 2).permute(2, 0, 3, 1, 4)
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(B, T, C)

        return (
            lambda x: ops.reshape(
                ops.attention(ops.reshape(ops.linear(x, wo, bo), (B, T, 3, 2, C // 2)), causal=causal),
                (B, T, C),
            )
        ), theirs

    return build


def layer_norm(w):
    (go, gt), (bo, bt) = w(C, scale=1.0), w(C)
    return (lambda x: ops.layer_norm(x, go, bo, 1e-5)), (lambda x: F.layer_norm(x, (C,), gt, bt))


def rows_by_number(w):
    index_o, index_t = w.array(w.rng.permutation(T))
    return (lambda x: ops.index_select(x, index_o, 1)), (lambda x: x[:, index_t])


def along(w):
    index_o, index_t = w.array(w.rng.integers(0, C, (B, T, C)))
    return (lambda x: ops.gather(x, index_o, 2)), (lambda x: torch.gather(x, 2, index_t))


def chosen(w):
    mask_o, mask_t = w.array(w.rng.random((B, T, 1)) < 0.5)
    return (lambda x: ops.where(mask_o, x, ops.affine(x, -0.5, 0.1))), (
        lambda x: torch.where(mask_t, x, x * -0.5 + 0.1)
    )


def erased(w):
    mask_o, mask_t = w.array(w.rng.random((T, C)) < 0.2)
    return (lambda x: ops.masked_fill(x, mask_o, 0.5)), (lambda x: x.masked_fill(mask_t, 0.5))


def table(w):
    (wo, wt), (ids_o, ids_t) = w(7, C), w.array(w.rng.integers(0, 7, (B, T)))
    return (lambda x: ops.add(x, ops.embedding(wo, ids_o))), (lambda x: x + F.embedding(ids_t, wt))


def halves(x):
    a, b = ops.split(x, (C // 2, C // 2), 2)
    return ops.concat([b, ops.tanh(a)], 2)


def torch_halves(x):
    a, b = x.split(C // 2, 2)
    return torch.cat([b, torch.tanh(a)], 2)


POOL = {
    "tanh": unary(ops.tanh, torch.tanh),
    "sigmoid": unary(ops.sigmoid, torch.sigmoid),
    "relu": unary(ops.relu, torch.relu),
    "gelu": unary(ops.gelu, F.gelu),
    "gelu_tanh": unary(lambda x: ops.gelu(x, tanh_form=True), lambda x: F.gelu(x, approximate="tanh")),
    "silu": unary(ops.silu, F.silu),
    "exp": unary(lambda x: ops.exp(ops.tanh(x)), lambda x: torch.exp(torch.tanh(x))),
    "log": square_plus(ops.log, torch.log),
    "sqrt": square_plus(ops.sqrt, torch.sqrt),
    "rsqrt": square_plus(ops.rsqrt, torch.rsqrt),
    "abs": unary(ops.abs, torch.abs),
    "softmax": unary(ops.softmax, lambda x: x.softmax(-1)),
    "log_softmax": unary(ops.log_softmax, lambda x: x.log_softmax(-1)),
    "cumsum": unary(lambda x: ops.affine(ops.cumsum(x, 1), 1 / T, 0.0), lambda x: x.cumsum(1) / T),
    "minus_mean": unary(lambda x: ops.sub(x, ops.mean(x, [1], True)), lambda x: x - x.mean(1, keepdim=True)),
    "minus_max": unary(lambda x: ops.sub(x, ops.max(x, 2, True)), lambda x: x - x.amax(2, keepdim=True)),
    "plus_sum": unary(
        lambda x: ops.add(x, ops.affine(ops.sum(x, [0, 2], True), 0.02, 0.0)),
        lambda x: x + x.sum((0, 2), keepdim=True) * 0.02,
    ),
    "turn": unary(lambda x: ops.transpose(ops.tanh(ops.transpose(x, (2, 0, 1))), (1, 2, 0)), torch.tanh),
    "halves": unary(halves, torch_halves),
    "shift": unary(
        lambda x: ops.slice(ops.pad(x, (0, 1, 0), (0, 0, 0)), 1, 0, T),
        lambda x: F.pad(x, (0, 0, 1, 0))[:, :T],
    ),
    "scale": with_weight((C,), ops.mul, torch.mul, scale=1.0),
    "shift_by": with_weight((T, 1), ops.add, torch.add),
    "divide": with_weight(
        (B, 1, C), lambda x, a: ops.div(x, ops.affine(ops.mul(a, a), 1.0, 1.0)), lambda x, a: x / (a * a + 1)
    ),
    "largest": with_weight((C,), ops.maximum, torch.maximum),
    "mix": with_weight((T, T), lambda x, a: ops.matmul(a, x), lambda x, a: a @ x),
    "rms_norm": with_weight(
        (C,), lambda x, a: ops.rms_norm(x, a, 1e-5), lambda x, a: F.rms_norm(x, (C,), a, 1e-5), scale=1.0
    ),
    "layer_norm": layer_norm,
    "linear": linear("none", lambda x: x),
    "linear_gelu": linear("gelu", F.gelu),
    "linear_relu": linear("relu", torch.relu),
    "attention": attention(False),
    "causal": attention(True),
    "index_select": rows_by_number,
    "gather": along,
    "where": chosen,
    "masked_fill": erased,
    "embedding": table,
}


@pytest.mark.parametrize("seed", range(8))
def test_a_random_network_of_30_ops(seed):
    w = Weights(seed)
    x, t = w(B, T, C, scale=1.0)
    names = [str(n) for n in w.rng.choice(list(POOL), 30)]
    for k, name in enumerate(names):
        ours, theirs = POOL[name](w)
        x, t = ours(x), theirs(t)
        if k % 5 == 4:  # keeps the sizes, and so the meaning of the tolerance
            ours, theirs = layer_norm(w)
            x, t = ours(x), theirs(t)
    loss, torch_loss = (
        losses.mse(x, Tensor(np.ones((B, T, C), np.float64))),
        F.mse_loss(t, torch.ones(B, T, C, dtype=torch.float64)),
    )
    assert_close(x.numpy(), t.detach().numpy(), f"the output of {names}")
    loss.backward()
    torch_loss.backward()
    for i, (a, b) in enumerate(zip(w.ours, w.theirs)):
        if b.grad is None or not b.grad.any():
            assert a.grad is None or not a.grad.numpy().any()
        else:
            assert_close(a.grad.numpy(), b.grad.numpy(), f"gradient {i} of {names}")


def assert_close(a, b, what, tol=1e-4):
    error = np.abs(a - b).max() / max(np.abs(b).max(), 1e-6)
    assert error <= tol, f"{what} differs by {error:.2g}"


# ---- a Transformer with encoder and decoder, trained ----

VOCABULARY, WIDTH, HEADS, LAYERS = 31, 24, 4, 2


class Layer(nn.Module):
    def __init__(self, decoder):
        # Without biases: the gradient of a key's bias is zero but for rounding, which Adam would blow up to a
        # full step.
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attn = nn.SelfAttention(WIDTH, HEADS, causal=decoder, bias=False)
        if decoder:
            self.norm2 = nn.LayerNorm(WIDTH)
            self.cross = nn.CrossAttention(WIDTH, HEADS, bias=False)
        self.norm3 = nn.LayerNorm(WIDTH)
        self.mlp = nn.MLP(WIDTH, 4 * WIDTH)

    def __call__(self, x, lengths=None, source=None, source_lengths=None):
        x = ops.add(x, self.attn(self.norm1(x), lengths=lengths))
        if source is not None:
            x = ops.add(x, self.cross(self.norm2(x), source, lengths=source_lengths))
        return ops.add(x, self.mlp(self.norm3(x)))


class Transformer(nn.Module):
    def __init__(self):
        self.tokens = nn.Embedding(VOCABULARY, WIDTH, sparse=True, weight_init=nn.init.normal(0.5))
        self.positions = nn.Embedding(16, WIDTH, weight_init=nn.init.normal(0.5))
        self.encoder = nn.ModuleList(Layer(False) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(Layer(True) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def embed(self, ids):
        return ops.add(self.tokens(ids), self.positions(ops.arange(0, ids.shape[1], "int64")))

    def __call__(self, source, lengths, target):
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory, lengths)
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, None, memory, lengths)
        return ops.linear(self.norm(x), self.tokens.weight)


def torch_transformer(p, source, lengths, target):
    """The same maths on a dict of torch parameters."""

    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), p[name + ".gamma"], p[name + ".beta"])

    def attend(q, k, v, name, **options):
        heads = lambda x: x.reshape(*x.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2)  # noqa: E731
        y = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), **options)
        return F.linear(y.transpose(1, 2).reshape(q.shape), p[name + ".out.weight"])

    def layer(x, name, mask=None, memory=None):
        q, k, v = F.linear(norm(x, name + ".norm1"), p[name + ".attn.qkv.weight"]).chunk(3, -1)
        x = x + attend(
            q, k, v, name + ".attn", **(dict(is_causal=True) if memory is not None else dict(attn_mask=mask))
        )
        if memory is not None:
            q, (k, v) = (
                F.linear(norm(x, name + ".norm2"), p[name + ".cross.q.weight"]),
                F.linear(memory, p[name + ".cross.kv.weight"]).chunk(2, -1),
            )
            x = x + attend(q, k, v, name + ".cross", attn_mask=mask)
        hidden = F.gelu(
            F.linear(norm(x, name + ".norm3"), p[name + ".mlp.up.weight"], p[name + ".mlp.up.bias"])
        )
        return x + F.linear(hidden, p[name + ".mlp.down.weight"], p[name + ".mlp.down.bias"])

    def embed(ids):
        return F.embedding(ids, p["tokens.weight"]) + p["positions.weight"][: ids.shape[1]]

    mask = (torch.arange(source.shape[1]) < lengths[:, None])[:, None, None]
    memory, x = embed(source), embed(target)
    for i in range(LAYERS):
        memory = layer(memory, f"encoder.{i}", mask)
    for i in range(LAYERS):
        x = layer(x, f"decoder.{i}", mask, memory)
    return F.linear(norm(x, "norm"), p["tokens.weight"])


def test_an_encoder_decoder_trained_for_20_steps():
    plm.seed(0)
    rng = np.random.default_rng(0)
    ours = Transformer()
    theirs = {n: torch.tensor(np.array(t.numpy()), requires_grad=True) for n, t in ours.state_dict().items()}
    opt = optim.AdamW(ours.parameters(), lr=3e-3, weight_decay=0.05)
    torch_opt = torch.optim.AdamW(theirs.values(), lr=3e-3, weight_decay=0.05)
    first = last = None
    for step in range(20):
        source, target = rng.integers(0, VOCABULARY, (4, 11)), rng.integers(0, VOCABULARY, (4, 9))
        target[:, 1:] = source[:, :8]  # something to learn: copying
        lengths = rng.integers(8, 12, 4)
        labels = target[:, 1:].copy()
        labels[0, 5:] = -100
        loss = losses.cross_entropy(
            ours(Tensor(source), Tensor(lengths), Tensor(target[:, :-1])), Tensor(labels), label_smoothing=0.1
        )
        logits = torch_transformer(theirs, *map(torch.from_numpy, (source, lengths, target[:, :-1])))
        torch_loss = F.cross_entropy(
            logits.flatten(0, 1), torch.from_numpy(labels).flatten(), label_smoothing=0.1
        )
        assert loss.item() == pytest.approx(torch_loss.item(), abs=1e-4), f"step {step}"
        opt.zero_grad()
        loss.backward()
        norm = opt.step(clip_norm=1.0)
        torch_opt.zero_grad()
        torch_loss.backward()
        assert norm == pytest.approx(torch.nn.utils.clip_grad_norm_(theirs.values(), 1.0).item(), rel=1e-4)
        torch_opt.step()
        first, last = first or loss.item(), loss.item()
    assert last < first - 0.3
    for name, t in ours.state_dict().items():
        assert np.abs(t.numpy() - theirs[name].detach().numpy()).max() <= 1e-4, name


# ---- optimisers ----

PAIRS = {
    "sgd": (optim.SGD, torch.optim.SGD, dict(lr=0.1)),
    "sgd_decay": (optim.SGD, torch.optim.SGD, dict(lr=0.1, weight_decay=0.1)),
    "momentum": (optim.SGD, torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.01)),
    "nesterov": (optim.SGD, torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True)),
    "adam": (optim.Adam, torch.optim.Adam, dict(lr=0.01, weight_decay=0.1)),
    "adamw": (optim.AdamW, torch.optim.AdamW, dict(lr=0.01, weight_decay=0.1, betas=(0.8, 0.99), eps=1e-6)),
    "adamw_default": (optim.AdamW, torch.optim.AdamW, dict()),
    "adagrad": (optim.Adagrad, torch.optim.Adagrad, dict(lr=0.1, weight_decay=0.1)),
    "adadelta": (optim.Adadelta, torch.optim.Adadelta, dict(lr=0.5, rho=0.9, eps=1e-4, weight_decay=0.1)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_optimiser(name):
    make, torch_make, options = PAIRS[name]
    rng = np.random.default_rng(0)
    start = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((37, 5), (129,), ())]
    ours, theirs = (
        [Tensor(a, requires_grad=True) for a in start],
        [torch.tensor(a, requires_grad=True) for a in start],
    )
    opt, torch_opt = make(ours, **options), torch_make(theirs, **options)
    for step in range(10):
        for p, q in zip(ours, theirs):
            g = rng.standard_normal(p.shape).astype(np.float32)
            p.grad, q.grad = Tensor(g), torch.from_numpy(np.array(g))
        opt.step()
        torch_opt.step()
        for p, q in zip(ours, theirs):
            assert np.abs(p.numpy() - q.detach().numpy()).max() <= 1e-6 * (step + 1), f"step {step}"


def test_bert_adam():
    """torch has none: the formulas of google-research/bert's AdamWeightDecayOptimizer, in torch."""
    rng = np.random.default_rng(0)
    start = rng.uniform(-1, 1, (37, 5)).astype(np.float32)
    p, q = Tensor(start, requires_grad=True), torch.tensor(start)
    m, v = torch.zeros_like(q), torch.zeros_like(q)
    opt = optim.BertAdam([p], lr=0.01, weight_decay=0.1)
    for _ in range(10):
        g = rng.standard_normal(p.shape).astype(np.float32)
        p.grad = Tensor(g)
        opt.step()
        m = 0.9 * m + 0.1 * torch.from_numpy(g)
        v = 0.999 * v + 0.001 * torch.from_numpy(g) ** 2
        q = q - 0.01 * (m / (v.sqrt() + 1e-6) + 0.1 * q)
    assert np.abs(p.numpy() - q.numpy()).max() <= 1e-5
