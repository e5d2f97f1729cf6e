import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import names
from plmcore.models.causal_attention import reaches
from plmcore.models.gpt2 import GPT2, GPT2CausalLM, GPT2Config
from plmcore.models.gpt3 import GPT3, HEADS, SIZES, GPT3CausalLM, GPT3Config

SHAPE = dict(
    vocab_size=31, n_embd=12, n_layer=3, n_head=3, n_positions=16, pad_token_id=0, initializer_range=0.4,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, summary_first_dropout=0.0, classifier_dropout=0.0,
)  # fmt: skip
CFG = GPT3Config(**SHAPE, attention_band=3)
rng = np.random.default_rng(0)
IDS = rng.integers(1, 31, (3, 11))
RIGHT = (np.arange(11) < np.array([11, 4, 7])[:, None]).astype(np.int64)
HOLES = (rng.random((3, 11)) < 0.6).astype(np.int64)
MASKS = {"none": None, "right": RIGHT, "left": RIGHT[:, ::-1].copy(), "holes": HOLES}
PATTERNS = {
    "alternating": (("dense", "banded"), 3, 1),
    "one": (("banded",), 1, 1),
    "wide": (("banded", "dense"), 8, 1),
    "strided": (("banded", "strided"), 2, 4),
    "stride": (("strided",), 1, 3),
    "joined": (("banded+strided", "dense"), 2, 5),
    "far": (("banded+strided", "strided"), 100, 100),
}


def config(pattern):
    layers, band, stride = PATTERNS[pattern]
    return GPT3Config(**SHAPE, attention_layers=layers, attention_band=band, attention_stride=stride)


def seen(cfg, layer, T):
    """bool [T, T], of the definition."""
    kind = cfg.attention_layers[layer % len(cfg.attention_layers)]
    i, j = np.mgrid[:T, :T]
    near, on = i - j < cfg.attention_band, (i - j) % cfg.attention_stride == 0
    return (j <= i) & {"dense": j <= i, "banded": near, "strided": on, "banded+strided": near | on}[kind]


def in_numpy(model, ids, mask):
    """Hidden states with a dense mask in each layer, in float64."""
    w = {name: p.numpy().astype(np.float64) for name, p in model.named_parameters()}
    B, T = ids.shape

    def norm(x, at):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * w[f"{at}.gamma"] + w[f"{at}.beta"]

    def dense(x, at):
        return x @ w[f"{at}.weight"].T + w[f"{at}.bias"]

    x = w["embeddings.tokens.weight"][ids] + w["embeddings.positions.weight"][:T]
    for i in range(3):
        q, k, v = (
            dense(norm(x, f"blocks.{i}.norm1"), f"blocks.{i}.attn.qkv")
            .reshape(B, T, 3, 3, 4)
            .transpose(2, 0, 3, 1, 4)
        )
        allowed = seen(model.config, i, T) & (mask == 1)[:, None, None, :]
        scores = np.where(allowed, q @ k.swapaxes(-1, -2) / 2, -1e300)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        y = (p / p.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(B, T, 12)
        x = x + dense(y, f"blocks.{i}.attn.out")
        h = dense(norm(x, f"blocks.{i}.norm2"), f"blocks.{i}.mlp.up")
        x = x + dense(
            0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3))), f"blocks.{i}.mlp.down"
        )
    return norm(x, "norm")


@pytest.mark.parametrize("size", SIZES)
def test_counts_of_the_sizes(size):
    """12 C^2 + 13 C in a layer, the tables, the last norm: near what the size is called."""
    n, C = SIZES[size]["n_layer"], SIZES[size]["n_embd"]
    before = plm.memory_stats()["allocations"]
    count = models.count_parameters(GPT3Config(**SIZES[size]), "causal-lm")
    assert plm.memory_stats()["allocations"] == before  # 700 GB, for the largest
    assert count == n * (12 * C * C + 13 * C) + (50257 + 2048) * C + 2 * C
    called = float(size[:-1]) * {"M": 1e6, "B": 1e9}[size[-1]]
    assert abs(count / called - 1) < 0.025


@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_names_and_its_count(head):
    model = models.build(CFG, head)
    assert sum(t.size for t in names.published(models.gpt3, model).values()) == models.count_parameters(
        CFG, head
    )
    assert models.head_name(model) == head
    assert models.head_of(CFG.replace(architectures=(models.architecture_of(CFG, head),))) == head


@pytest.mark.parametrize("side", MASKS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_dense_mask_gives_the_same(pattern, side):
    model, mask = GPT3(config(pattern)).eval(), MASKS[side]
    with plm.no_grad():
        out = model(Tensor(IDS), None if mask is None else Tensor(mask)).last_hidden_state.numpy()
    mask = np.ones_like(IDS) if mask is None else mask
    expected = in_numpy(model, IDS, mask)
    np.testing.assert_allclose(out[mask == 1], expected[mask == 1], atol=2e-5)
    assert not out[mask == 0].any()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_positions_that_a_head_reads_are_computed_though_they_are_padding(pattern):
    """Also those that see nothing but padding, which look at all positions alike."""
    model = models.build(config(pattern), "question-answering").eval()
    for mask in (RIGHT, MASKS["left"], HOLES):
        with plm.no_grad():
            out = model(Tensor(IDS), attention_mask=Tensor(mask))
        logits = in_numpy(model.body, IDS, mask) @ model.span.weight.numpy().T + model.span.bias.numpy()
        np.testing.assert_allclose(
            np.stack([out.start_logits.numpy(), out.end_logits.numpy()], -1), logits, atol=5e-5
        )


@pytest.mark.parametrize("side", MASKS)
@pytest.mark.parametrize(
    "full",
    [
        dict(attention_band=11),
        dict(attention_layers=("dense",)),
        dict(attention_layers=("strided",), attention_stride=1),
    ],
    ids=str,
)
def test_a_band_as_long_as_the_text_is_gpt2(full, side):
    model, twin = GPT3CausalLM(CFG.replace(**full)).eval(), GPT2CausalLM(GPT2Config(**SHAPE)).eval()
    twin.load_state_dict(model.state_dict())
    mask = None if MASKS[side] is None else Tensor(MASKS[side])
    with plm.no_grad():
        a, b = (m(Tensor(IDS), attention_mask=mask, labels=Tensor(IDS)) for m in (model, twin))
        shown = slice(None) if mask is None else MASKS[side] == 1
        np.testing.assert_allclose(a.logits.numpy()[shown], b.logits.numpy()[shown], atol=1e-5)
        assert a.loss.item() == pytest.approx(b.loss.item(), abs=1e-5)


def test_a_shorter_band_is_not():
    model, twin = GPT3(CFG).eval(), GPT2(GPT2Config(**SHAPE)).eval()
    twin.load_state_dict(model.state_dict())
    with plm.no_grad():
        a, b = (m(Tensor(IDS)).last_hidden_state.numpy() for m in (model, twin))
    np.testing.assert_allclose(a[:, :3], b[:, :3], atol=1e-5)
    assert (np.abs(a[:, 3:] - b[:, 3:]).max(-1) > 1e-3).all()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_future_does_not_change_a_bit(pattern):
    model = GPT3CausalLM(config(pattern)).eval()
    with plm.no_grad():
        for t in range(1, 11):
            other = IDS.copy()
            other[:, t:] = rng.integers(1, 31, other[:, t:].shape)
            a, b = (model(Tensor(ids)).logits.numpy() for ids in (IDS, other))
            assert (a[:, :t] == b[:, :t]).all() and (a[:, t:] != b[:, t:]).any(-1).any()


def test_what_is_beyond_every_band_does_not_change_a_bit():
    model = GPT3(
        GPT3Config(**SHAPE, attention_layers=("banded",), attention_band=2)
    ).eval()  # 3 layers back from 10: 7
    other = IDS.copy()
    other[:, :7] = rng.integers(1, 31, (3, 7))
    with plm.no_grad():
        a, b = (model(Tensor(ids)).last_hidden_state.numpy() for ids in (IDS, other))
    assert (a[:, 10] == b[:, 10]).all() and (a[:, 9] != b[:, 9]).any()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_attention_weights(pattern):
    cfg = config(pattern)
    with plm.no_grad():
        out = GPT3(cfg).eval()(Tensor(IDS), output_attentions=True)
    for i, w in enumerate(out.attentions):
        assert ((w.numpy() > 0) == seen(cfg, i, 11)).all()
        np.testing.assert_allclose(w.numpy().sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize(
    "T, band, stride",
    [(1, 0, 0), (9, 0, 0), (9, 1, 0), (9, 4, 0), (9, 0, 1), (40, 0, 3), (40, 5, 7), (300, 20, 49)],
)
def test_reaches(T, band, stride):
    i, j = np.mgrid[:T, :T]
    near, on = (
        i - j < (band or (0 if stride else T)),
        (i - j) % stride == 0 if stride else np.zeros((T, T), bool),
    )
    assert (reaches(T, band, stride, Tensor([0.0])).numpy() == ((j <= i) & (near | on))).all()


@pytest.mark.parametrize("side", MASKS)
def test_trace_runs_at_other_sizes(side):
    model, masked = GPT3CausalLM(CFG).eval(), MASKS[side] is not None
    specs = {
        n: plm.spec("int64", "B", "T")
        for n in ("input_ids", "labels", *(["attention_mask"] if masked else []))
    }
    with plm.no_grad():
        program = plm.trace(model, **specs)
        for B, T in ((1, 2), (3, 11), (2, 6)):
            inputs = {name: rng.integers(0, 31, (B, T)) for name in ("input_ids", "labels")}
            if masked:
                inputs["attention_mask"] = MASKS[side][:B, :T].copy()
            got, want = program(**inputs), model(**{k: Tensor(v) for k, v in inputs.items()})
            for field in ("loss", "logits"):
                np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), atol=1e-5, err_msg=field)


def test_saved_and_loaded(tmp_path):
    lm = plm.from_config(config("joined"), "causal-lm").eval()
    lm.save(tmp_path)
    again = plm.load(tmp_path)
    assert again.config.attention_layers == ("banded+strided", "dense") and again.config.attention_band == 2
    with plm.no_grad():
        assert (lm(input_ids=IDS).logits.numpy() == again(input_ids=IDS).logits.numpy()).all()


def test_it_learns():
    plm.seed(1)
    lm = plm.from_config(CFG.replace(initializer_range=0.02), "causal-lm")
    opt = plm.optim.AdamW(lm.parameters(), lr=0.01)
    losses = []
    for _ in range(150):
        opt.zero_grad()
        loss = lm(input_ids=IDS, attention_mask=RIGHT, labels=np.where(RIGHT == 1, IDS, -100)).loss
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[0] > 3 and losses[-1] < 0.3


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(attention_band=0), "GPT3Config: attention_band must be at least 1, got 0"),
        (dict(attention_stride=-1), "attention_stride must be at least 1, got -1"),
        (
            dict(attention_layers=[]),
            r"attention_layers must list kinds of layers, each one of dense, banded, .*got \(\)",
        ),
        (dict(attention_layers=["dense", "local"]), "attention_layers must list kinds of layers"),
        (dict(attention_layers="dense"), "attention_layers must be a list, got 'dense'"),
    ],
)
def test_wrong_configs(changes, message):
    with pytest.raises(ValueError, match=message):
        GPT3Config.from_dict({**CFG.to_dict(), **changes})
