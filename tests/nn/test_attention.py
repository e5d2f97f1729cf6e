import numpy as np
import pytest
from plmcore import Tensor, nn

B, T, S, C, H = 2, 5, 7, 12, 3
D = C // H
rng = np.random.default_rng(0)
x = rng.standard_normal((B, T, C)).astype(np.float32)
source = rng.standard_normal((B, S, C)).astype(np.float32)


def project(lin, x):
    return x @ lin.weight.numpy().T + lin.bias.numpy()


def reference(q, k, v, visible, out, scale):
    """q [B, T, C], k and v [B, S, C], visible [B, T, S]"""
    heads = lambda a: a.reshape(*a.shape[:2], H, D).transpose(0, 2, 1, 3)  # noqa: E731
    scores = heads(q) @ heads(k).transpose(0, 1, 3, 2) * scale
    scores = np.where(visible[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return project(out, (weights @ heads(v)).transpose(0, 2, 1, 3).reshape(q.shape))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_self_attention(causal, scale):
    attn = nn.SelfAttention(C, H, causal=causal, scale=scale)
    visible = np.tril(np.ones((T, T), bool)) if causal else np.ones((T, T), bool)
    q, k, v = np.split(project(attn.qkv, x), 3, axis=-1)
    expected = reference(q, k, v, np.broadcast_to(visible, (B, T, T)), attn.out, scale or D**-0.5)
    np.testing.assert_allclose(attn(Tensor(x)).numpy(), expected, atol=1e-5)


def test_self_attention_lengths():
    attn = nn.SelfAttention(C, H)
    lengths = np.array([3, 5])
    q, k, v = np.split(project(attn.qkv, x), 3, axis=-1)
    visible = np.broadcast_to(np.arange(T) < lengths[:, None, None], (B, T, T))
    np.testing.assert_allclose(
        attn(Tensor(x), lengths=Tensor(lengths)).numpy(),
        reference(q, k, v, visible, attn.out, D**-0.5),
        atol=1e-5,
    )


def test_self_attention_over_packed_rows():
    attn = nn.SelfAttention(C, H, causal=True)
    rows = np.concatenate([x[0, :3], x[1]])
    y = attn(Tensor(rows), offsets=Tensor(np.array([0, 3, 8]))).numpy()
    np.testing.assert_allclose(y[:3], attn(Tensor(x[:1, :3])).numpy()[0], atol=1e-5)
    np.testing.assert_allclose(y[3:], attn(Tensor(x[1:])).numpy()[0], atol=1e-5)


def test_cross_attention():
    attn = nn.CrossAttention(C, H)
    lengths = np.array([4, 7])
    k, v = np.split(project(attn.kv, source), 2, axis=-1)
    visible = np.broadcast_to(np.arange(S) < lengths[:, None, None], (B, T, S))
    expected = reference(project(attn.q, x), k, v, visible, attn.out, D**-0.5)
    np.testing.assert_allclose(
        attn(Tensor(x), Tensor(source), lengths=Tensor(lengths)).numpy(), expected, atol=1e-5
    )
    kv = attn.project(Tensor(source))
    assert kv.shape == (B, S, 2, H, D)
    np.testing.assert_allclose(attn(Tensor(x), kv=kv, lengths=Tensor(lengths)).numpy(), expected, atol=1e-5)


def test_source_of_another_width():
    attn = nn.CrossAttention(C, H, source_width=8)
    assert attn(Tensor(x), Tensor(source[..., :8].copy())).shape == (B, T, C)


def test_dropout_only_while_training():
    attn = nn.SelfAttention(C, H, dropout=0.5, out_dropout=0.0)
    t = Tensor(x)
    assert (attn(t).numpy() != attn(t).numpy()).any()
    attn.eval()
    assert (attn(t).numpy() == attn(t).numpy()).all()
    assert (nn.SelfAttention(C, H, dropout=0.5)(t).numpy() == 0).any()  # the result is dropped as well


def test_parameters():
    assert [n for n, _ in nn.SelfAttention(C, H).named_parameters()] == [
        "qkv.weight",
        "qkv.bias",
        "out.weight",
        "out.bias",
    ]
    assert [n for n, _ in nn.CrossAttention(C, H, bias=False).named_parameters()] == [
        "q.weight",
        "kv.weight",
        "out.weight",
    ]


def test_error():
    with pytest.raises(
        ValueError, match="SelfAttention: the width 12 must be a multiple of the number of heads 5"
    ):
        nn.SelfAttention(12, 5)


def test_weights_are_collected():
    attn, collected = nn.SelfAttention(C, H).eval(), []
    plain, y = attn(Tensor(x)).numpy(), attn(Tensor(x), weights=collected).numpy()
    (w,) = collected
    assert w.shape == (B, H, T, T)
    np.testing.assert_allclose(w.numpy().sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(y, plain, atol=1e-6)
    nn.CrossAttention(C, H)(Tensor(x), Tensor(source), weights=collected)
    assert collected[1].shape == (B, H, T, S)


def test_heads_of_another_width():
    for attn in (nn.SelfAttention(C, H, depth=5), nn.CrossAttention(C, H, depth=5)):
        assert attn.out.weight.shape == (C, H * 5)
        assert (
            attn(Tensor(x)) if isinstance(attn, nn.SelfAttention) else attn(Tensor(x), Tensor(source))
        ).shape == (
            B,
            T,
            C,
        )


def test_initialisers():
    attn = nn.SelfAttention(C, H, weight_init=nn.init.constant(2.0), out_init=nn.init.constant(3.0))
    assert (attn.qkv.weight.numpy() == 2).all() and (attn.out.weight.numpy() == 3).all()


def test_initialiser_of_the_queries():
    attn = nn.CrossAttention(C, H, weight_init=nn.init.constant(1.0), q_init=nn.init.constant(2.0))
    assert (
        (attn.q.weight.numpy() == 2).all()
        and (attn.kv.weight.numpy() == 1).all()
        and (attn.out.weight.numpy() == 1).all()
    )
