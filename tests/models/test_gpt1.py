import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import names
from plmcore.models.gpt1 import GPT1, HEADS, GPT1CausalLM, GPT1Config

CFG = GPT1Config(
    vocab_size=31, n_embd=12, n_layer=2, n_head=3, n_positions=10, pad_token_id=0,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, summary_first_dropout=0.0, initializer_range=0.4,
)  # fmt: skip
rng = np.random.default_rng(0)
IDS = rng.integers(1, 31, (3, 7))
MASK = (np.arange(7) < np.array([7, 2, 4])[:, None]).astype(np.int64)


def test_published_count():
    before = plm.memory_stats()["allocations"]
    assert models.count_parameters(GPT1Config(), "causal-lm") == 116_534_784
    assert plm.memory_stats()["allocations"] == before  # no weights were made


@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_names_and_its_count(head):
    model = models.build(CFG, head)
    assert model.num_parameters() == models.count_parameters(CFG, head)
    assert sum(t.size for t in names.published(models.gpt1, model).values()) == model.num_parameters()
    assert models.head_name(model) == head
    assert models.head_of(CFG.replace(architectures=(models.architecture_of(CFG, head),))) == head


def test_published_initialisation():
    plm.seed(0)
    for name, p in GPT1CausalLM(
        GPT1Config(vocab_size=500, n_embd=64, n_layer=2, n_head=4)
    ).named_parameters():
        values = p.numpy()
        if name.endswith(("bias", "beta")):
            assert not values.any(), name
        elif name.endswith("gamma"):
            assert (values == 1).all(), name
        else:
            assert abs(values.std() / 0.02 - 1) < 0.1 and np.abs(values).max() > 0.05, name


def test_the_arithmetic():
    """LN(x + attention), LN(x + MLP), written out in NumPy; gelu is the tanh form; no norm at either end."""
    model = GPT1(CFG).eval()
    with plm.no_grad():
        out = model(Tensor(IDS), output_hidden_states=True)
    w = {name: p.numpy().astype(np.float64) for name, p in model.named_parameters()}

    def norm(x, at):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * w[f"{at}.gamma"] + w[f"{at}.beta"]

    def dense(x, at):
        return x @ w[f"{at}.weight"].T + w[f"{at}.bias"]

    x = w["embeddings.tokens.weight"][IDS] + w["embeddings.positions.weight"][:7]
    np.testing.assert_allclose(out.hidden_states[0].numpy(), x, atol=1e-5)
    for i in range(2):
        q, k, v = (
            dense(x, f"blocks.{i}.attn.qkv").reshape(3, 7, 3, 3, 4).transpose(2, 0, 3, 1, 4)
        )  # [B, H, T, D] each
        scores = np.where(np.tri(7, dtype=bool), q @ k.swapaxes(-1, -2) / 2, -np.inf)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        y = (p / p.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(3, 7, 12)
        x = norm(x + dense(y, f"blocks.{i}.attn.out"), f"blocks.{i}.norm1")
        h = dense(x, f"blocks.{i}.mlp.up")
        h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        x = norm(x + dense(h, f"blocks.{i}.mlp.down"), f"blocks.{i}.norm2")
        np.testing.assert_allclose(out.hidden_states[i + 1].numpy(), x, atol=2e-5)
    np.testing.assert_allclose(out.last_hidden_state.numpy(), x, atol=2e-5)


def test_the_future_does_not_change_a_bit():
    model = GPT1CausalLM(CFG).eval()
    with plm.no_grad():
        for t in range(1, 7):
            other = IDS.copy()
            other[:, t:] = rng.integers(1, 31, other[:, t:].shape)
            a, b = (model(Tensor(ids)).logits.numpy() for ids in (IDS, other))
            assert (a[:, :t] == b[:, :t]).all() and (a[:, t:] != b[:, t:]).any(-1).any()


@pytest.mark.parametrize("left", [False, True])
def test_padding_changes_nothing_and_leaves_zeros(left):
    model, mask = GPT1(CFG).eval(), MASK[:, ::-1].copy() if left else MASK
    with plm.no_grad():
        out = model(Tensor(IDS), Tensor(mask)).last_hidden_state.numpy()
        assert not out[mask == 0].any()
        for b in range(3):
            at = np.flatnonzero(mask[b])
            alone = model(Tensor(IDS[b : b + 1, at]), position_ids=Tensor(at[None])).last_hidden_state.numpy()
            np.testing.assert_allclose(out[b, at], alone[0], atol=1e-5)


def test_it_learns():
    plm.seed(1)
    lm = plm.from_config(CFG.replace(initializer_range=0.02), "causal-lm")
    opt = plm.optim.AdamW(lm.parameters(), lr=0.01)
    losses = []
    for _ in range(150):
        opt.zero_grad()
        loss = lm(input_ids=IDS, attention_mask=MASK, labels=np.where(MASK == 1, IDS, -100)).loss
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[0] > 3 and losses[-1] < 0.3


@pytest.mark.parametrize("mask", [False, True])
def test_trace_runs_at_other_sizes(mask):
    model = GPT1CausalLM(CFG).eval()
    specs = {
        name: plm.spec("int64", "B", "T")
        for name in ("input_ids", "labels", *(["attention_mask"] if mask else []))
    }
    with plm.no_grad():
        program = plm.trace(model, **specs)
        for B, T in ((1, 2), (3, 7), (2, 3)):
            inputs = {name: rng.integers(0, 31, (B, T)) for name in ("input_ids", "labels")}
            if mask:
                inputs["attention_mask"] = MASK[:B, :T].copy()
            got, want = program(**inputs), model(**{k: Tensor(v) for k, v in inputs.items()})
            for field in ("loss", "logits"):
                np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), atol=1e-5, err_msg=field)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(afn="tanh"), "GPT1Config: afn must be one of gelu, relu, silu, swish, got 'tanh'"),
        (dict(n_head=5), "n_embd must be a multiple of n_head = 5, got 12"),
        (dict(n_positions=0), "n_positions must be at least 1, got 0"),
        (dict(summary_first_dropout=-1), r"summary_first_dropout must be in \[0, 1\), got -1"),
    ],
)
def test_wrong_configs(changes, message):
    with pytest.raises(ValueError, match=message):
        GPT1Config.from_dict({**CFG.to_dict(), **changes})
