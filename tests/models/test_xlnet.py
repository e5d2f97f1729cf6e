import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import names
from plmcore.models.xlnet import HEADS, XLNet, XLNetCausalLM, XLNetConfig

CFG = XLNetConfig(
    vocab_size=31,
    d_model=12,
    n_layer=2,
    n_head=3,
    d_inner=17,
    dropout=0.0,
    summary_last_dropout=0.0,
    mem_len=None,
)
BASE = XLNetConfig(d_model=768, n_layer=12, n_head=12, d_inner=3072)
LARGE = XLNetConfig()
rng = np.random.default_rng(0)
B, T, M = 3, 7, 2
IDS = rng.integers(0, 31, (B, T))
TYPES = rng.integers(0, 3, (B, T))
LEFT = (np.arange(T) >= np.array([0, 5, 3])[:, None]).astype(np.int64)


def built(kind=XLNet, config=CFG, **changes):
    """Weights of a size at which attention prefers some keys, the same for each config of one shape."""
    plm.seed(3)
    return kind(config.replace(initializer_range=0.5, **changes)).eval()


def call(model, **inputs):
    with plm.no_grad():
        return model(**{k: v if isinstance(v, (bool, tuple)) else Tensor(v) for k, v in inputs.items()})


def ordered(order, targets):
    """Of one sequence: who may not see whom, and where the targets are, the last `targets` of the order."""
    n = len(order)
    rank = np.argsort(order)
    context = rank < n - targets  # these see one another
    hidden = (rank >= rank[:, None]) & ~(context & context[:, None])
    return dict(
        perm_mask=hidden[None].astype(np.float32),
        target_mapping=np.eye(n, dtype=np.float32)[None, order[n - targets :]],
    )


@pytest.mark.parametrize("config, count", [(BASE, 116_750_336), (LARGE, 360_300_800)])
def test_published_counts(config, count):
    before = plm.memory_stats()["allocations"]
    assert models.count_parameters(config, "causal-lm") == count
    assert plm.memory_stats()["allocations"] == before  # no weights were made


@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_names_and_its_count(head):
    model = models.build(CFG, head)
    assert model.num_parameters() == models.count_parameters(CFG, head)
    written = names.published(models.xlnet, model)
    assert sum(t.size for t in written.values()) == model.num_parameters()
    assert {tuple(t.shape) for n, t in written.items() if n[-2:] in (".q", ".k", ".v", ".o", ".r")} == {
        (12, 3, 4)
    }
    assert models.head_of(CFG.replace(architectures=(models.architecture_of(CFG, head),))) == head


def test_published_initialisation():
    plm.seed(0)
    model = XLNetCausalLM(XLNetConfig(vocab_size=500, d_model=64, n_layer=1, n_head=4, d_inner=128))
    for name, p in model.named_parameters():
        values = p.numpy()
        if name.endswith(("bias", "beta")):
            assert not values.any(), name
        elif name.endswith("gamma"):
            assert (values == 1).all(), name
        else:
            assert abs(values.std() - 0.02) < 0.004 and abs(values.mean()) < 0.01, name
    assert model.decoder.weight is model.body.tokens.weight


# ---- who sees whom ----


def test_a_target_does_not_see_its_own_token_nor_later_ones():
    model, order = built(), rng.permutation(T)
    inputs, ids = ordered(order, 4), IDS[:1]
    before = call(model, input_ids=ids, **inputs).last_hidden_state.numpy()
    for n in range(T):
        changed = ids.copy()
        changed[0, order[n]] = (ids[0, order[n]] + 7) % 31
        after = call(model, input_ids=changed, **inputs).last_hidden_state.numpy()
        same = (before == after).all(-1)[0]
        assert same.tolist() == [n >= T - 4 + m for m in range(4)]  # bit for bit where it comes no earlier


def test_the_content_stream_sees_itself_and_what_comes_before():
    model, order = built(), rng.permutation(T)
    inputs = dict(perm_mask=ordered(order, T)["perm_mask"])
    before = call(model, input_ids=IDS[:1], **inputs).last_hidden_state.numpy()
    for n in range(T):
        changed = IDS[:1].copy()
        changed[0, order[n]] = (changed[0, order[n]] + 7) % 31
        after = call(model, input_ids=changed, **inputs).last_hidden_state.numpy()
        assert sorted(np.flatnonzero((before != after).any(-1)[0])) == sorted(order[n:])


def test_the_natural_order_is_causal():
    inputs = dict(input_ids=IDS, token_type_ids=TYPES)
    hidden = np.triu(np.ones((T, T), np.float32), 1)[None].repeat(B, 0)
    a = call(built(), **inputs, perm_mask=hidden).last_hidden_state.numpy()
    b = call(built(attn_type="uni"), **inputs).last_hidden_state.numpy()
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_a_target_that_sees_nothing_attends_to_nothing():
    order = np.arange(T)
    inputs = dict(input_ids=IDS[:1], **ordered(order, T), output_attentions=True)
    first = call(built(), **inputs)
    assert not first.attentions[0][1].numpy()[0, :, 0].any()  # the published code: 1 / T each
    np.testing.assert_allclose(first.attentions[0][1].numpy()[0, :, 1:].sum(-1), 1, atol=1e-6)
    memory = Tensor(rng.standard_normal((2, 1, 1, 12)), dtype="float32")
    later = call(built(), **inputs, mems=(memory[0], memory[1]))
    np.testing.assert_allclose(later.attentions[0][1].numpy()[0, :, 0, 0], 1, atol=1e-6)


def test_both_streams_have_states_and_attentions():
    out = call(
        built(),
        input_ids=IDS[:1],
        **ordered(np.arange(T), M),
        output_hidden_states=True,
        output_attentions=True,
    )
    assert [x.shape[1] for x in out.hidden_states] == [T, M] * 3 and out.last_hidden_state.shape == (1, M, 12)
    assert [[w.shape for w in pair] for pair in out.attentions] == [[(1, 3, T, T)] * 2] * 2
    np.testing.assert_array_equal(out.last_hidden_state.numpy(), out.hidden_states[-1].numpy())


# ---- positions and segments ----


def test_only_same_or_other_segment_counts():
    model = built()
    renamed = np.array([4, 9, 1])[TYPES]
    a, b, c = (
        call(model, input_ids=IDS, token_type_ids=t).last_hidden_state.numpy()
        for t in (TYPES, renamed, 0 * TYPES)
    )
    assert (a == b).all() and np.abs(a - c).max() > 1e-2


def test_only_distances_count():
    """Left padding moves a text, and nothing changes."""
    model = built()
    out = call(model, input_ids=IDS, attention_mask=LEFT, token_type_ids=TYPES).last_hidden_state.numpy()
    alone = call(
        model, input_ids=IDS[2:, 3:].copy(), token_type_ids=TYPES[2:, 3:].copy()
    ).last_hidden_state.numpy()
    np.testing.assert_allclose(out[2, 3:], alone[0], atol=1e-5)
    other = call(model, input_ids=IDS[:, ::-1].copy()).last_hidden_state.numpy()[:, ::-1]
    assert np.abs(other - call(model, input_ids=IDS).last_hidden_state.numpy()).max() > 1e-2


def test_the_second_half_runs_backwards():
    both = np.concatenate([IDS, IDS[:, ::-1]])
    out = call(built(bi_data=True), input_ids=both).last_hidden_state.numpy()
    np.testing.assert_allclose(out[B:, ::-1], out[:B], atol=1e-5)


def test_distances_are_clamped():
    a, b, c = (call(built(clamp_len=n), input_ids=IDS).last_hidden_state.numpy() for n in (-1, T - 1, 1))
    assert (a == b).all() and np.abs(a - c).max() > 1e-2


# ---- memories ----


@pytest.mark.parametrize("cuts", [[3], [1, 2, 6]])
def test_a_memory_equals_a_longer_text(cuts):
    model, mems, found = built(attn_type="uni"), {}, []
    for ids in np.split(IDS, cuts, 1):
        out = call(model, input_ids=ids.copy(), **mems)
        found.append(out.last_hidden_state.numpy())
        mems = dict(mems=out.mems)
    whole = call(model, input_ids=IDS)
    np.testing.assert_allclose(np.concatenate(found, 1), whole.last_hidden_state.numpy(), atol=1e-5)
    for a, e in zip(out.mems, whole.mems):
        np.testing.assert_allclose(a.numpy(), e.numpy(), atol=1e-5)


def test_a_memory_before_an_order_equals_a_longer_text():
    """Tokens that come first in the order may as well be a memory, where they do not look ahead."""
    model, order = built(), 3 + rng.permutation(T - 3)
    inputs = ordered(np.concatenate([[0, 1, 2], order]), M)
    inputs["perm_mask"][:, :3, 3:] = 1
    whole = call(model, input_ids=IDS[:1], **inputs).last_hidden_state.numpy()
    mems = call(model, input_ids=IDS[:1, :3].copy()).mems
    short = dict(
        perm_mask=inputs["perm_mask"][:, 3:, 3:].copy(),
        target_mapping=inputs["target_mapping"][:, :, 3:].copy(),
    )
    np.testing.assert_allclose(
        call(model, input_ids=IDS[:1, 3:].copy(), **short, mems=mems).last_hidden_state.numpy(),
        whole,
        atol=1e-5,
    )


def test_lengths_of_memories():
    def lengths(model, **inputs):
        mems = call(model, input_ids=IDS, **inputs).mems
        return None if mems is None else [m.shape for m in mems]

    assert lengths(built()) == [(T, B, 12)] * 2
    assert lengths(built(mem_len=4)) == [(4, B, 12)] * 2
    assert lengths(built(reuse_len=2)) == [(2, B, 12)] * 2
    assert lengths(built(use_mems_eval=False)) is None and lengths(built(), use_mems=False) is None
    assert lengths(built().train()) is None and lengths(built().train(), use_mems=True) == [(T, B, 12)] * 2


def test_memories_of_padding_are_made_when_they_are_read():
    """A later segment sees all of the memory, as published, so that padding counts there."""
    out = call(built(), input_ids=IDS, attention_mask=LEFT)
    assert "mems: computed when read" in repr(out)
    kept = call(built(), input_ids=IDS, attention_mask=LEFT, output_attentions=True)  # does not drop padding
    for a, e in zip(out.mems, kept.mems):
        np.testing.assert_allclose(a.numpy(), e.numpy(), atol=1e-5)
        assert a.numpy().transpose(1, 0, 2)[LEFT == 0].all()


# ---- padding ----


def test_padding_changes_nothing_and_leaves_zeros():
    model = built()
    out = call(model, input_ids=IDS, attention_mask=LEFT, output_hidden_states=True)
    kept = call(model, input_ids=IDS, attention_mask=LEFT, output_attentions=True)
    for x in (out.last_hidden_state, *out.hidden_states):
        assert not x.numpy()[LEFT == 0].any() and x.numpy()[LEFT == 1].all()
    np.testing.assert_allclose(kept.last_hidden_state.numpy(), out.last_hidden_state.numpy(), atol=1e-5)
    for w in kept.attentions:
        assert w.shape == (B, 3, T, T) and not w.numpy()[1, :, :5].any() and not w.numpy()[1, :, :, :5].any()
        np.testing.assert_allclose(w.numpy()[1, :, 5:].sum(-1), 1, atol=1e-6)


def test_dropped_rows_cost_nothing():
    model = built()
    program = plm.trace(
        lambda **inputs: model(**inputs, use_mems=False),
        input_ids=plm.spec("int64", "B", "T"),
        attention_mask=plm.spec("int64", "B", "T"),
    )
    products = [line for line in repr(program).splitlines() if " linear(" in line]
    assert len(products) == 12 and sum("[N" in line for line in products) == 10  # all but those of distances


def test_input_mask_is_the_opposite():
    a, b = (
        call(built(), input_ids=IDS, **m).last_hidden_state.numpy()
        for m in (dict(attention_mask=LEFT), dict(input_mask=1.0 - LEFT))
    )
    assert (a == b).all()


# ---- training and programs ----


def test_it_learns_in_random_orders():
    plm.seed(1)
    lm = plm.from_config(CFG, "causal-lm")
    opt = plm.optim.AdamW(lm.parameters(), lr=0.02)
    draw, losses = np.random.default_rng(1), []
    for _ in range(400):
        inputs = [ordered(draw.permutation(T), 3) for _ in range(B)]
        batch = {name: np.concatenate([x[name] for x in inputs]) for name in inputs[0]}
        labels = (batch["target_mapping"] @ IDS[..., None])[..., 0].astype(np.int64)
        opt.zero_grad()
        loss = lm(input_ids=IDS, **batch, labels=labels).loss
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[0] > 3 and np.mean(losses[-10:]) < 0.5


def test_dropout_is_on_in_training_only():
    lm = plm.from_config(CFG.replace(dropout=0.5), "causal-lm")
    x = [lm(input_ids=IDS).logits.numpy() for _ in range(2)]
    assert (x[0] != x[1]).any()
    lm.eval()
    assert (lm(input_ids=IDS).logits.numpy() == lm(input_ids=IDS).logits.numpy()).all()


@pytest.mark.parametrize(
    "changes",
    [{}, dict(mem_len=4, reuse_len=3, bi_data=True, clamp_len=2), dict(attn_type="uni", same_length=True)],
)
def test_trace_runs_at_other_sizes(changes):
    model = built(XLNetCausalLM, **changes)
    specs = dict(
        input_ids=plm.spec("int64", "B", "T"),
        token_type_ids=plm.spec("int64", "B", "T"),
        labels=plm.spec("int64", "B", "M"),
        perm_mask=plm.spec("float32", "B", "T", "T"),
        target_mapping=plm.spec("float32", "B", "M", "T"),
        mems=plm.spec("float32", 2, "P", "B", 12),
    )
    with plm.no_grad():
        program = plm.trace(model, **specs)
        for b, t, m, p in ((2, 3, 1, 4), (4, 9, 5, 12), (2, 1, 1, 1)):
            inputs = dict(
                input_ids=rng.integers(0, 31, (b, t)),
                token_type_ids=rng.integers(0, 3, (b, t)),
                labels=rng.integers(0, 31, (b, m)),
                perm_mask=rng.integers(0, 2, (b, t, t)).astype(np.float32),
                target_mapping=np.eye(t, dtype=np.float32)[rng.integers(0, t, (b, m))],
                mems=rng.standard_normal((2, p, b, 12)).astype(np.float32),
            )
            got, want = program(**inputs), call(model, **inputs)
            assert set(got) == {"loss", "logits", "mems.0", "mems.1"}
            for field in ("loss", "logits"):
                np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), atol=1e-5, err_msg=field)
            for i in range(2):
                np.testing.assert_allclose(got[f"mems.{i}"].numpy(), want.mems[i].numpy(), atol=1e-5)


# ---- bad input ----


@pytest.mark.parametrize(
    "inputs, error, message",
    [
        (dict(input_ids=[[1, 31]]), IndexError, "31"),
        (
            dict(input_ids=[1, 2]),
            ValueError,
            r"input_ids must be whole numbers \[batch, length\], got int64 \[2\]",
        ),
        (dict(input_ids=[[1, 2]], attention_mask=[[1]]), ValueError, r"attention_mask must be \[1, 2\]"),
        (dict(input_ids=[[1, 2]], input_mask=[[1]]), ValueError, r"input_mask must be \[1, 2\]"),
        (
            dict(input_ids=[[1, 2]], attention_mask=[[1, 1]], input_mask=[[0, 0]]),
            ValueError,
            "attention_mask and input_mask .* pass one",
        ),
        (dict(input_ids=[[1, 2]], token_type_ids=[[0]]), ValueError, r"token_type_ids must be \[1, 2\]"),
        (
            dict(input_ids=[[1, 2]], perm_mask=[[[0.0, 0.0]]]),
            ValueError,
            r"perm_mask must be \[1, 2, 2\], \[batch, length, length\]; got \[1, 1, 2\]",
        ),
        (
            dict(input_ids=[[1, 2]], target_mapping=[[[1.0]]]),
            ValueError,
            r"target_mapping must be \[1, 1, 2\], \[batch, targets, length\]; got \[1, 1, 1\]",
        ),
        (
            dict(input_ids=[[1, 2]], target_mapping=[1.0, 0.0]),
            ValueError,
            r"target_mapping must be .*got \[2\]",
        ),
        (
            dict(input_ids=[[1, 2]], mems=np.zeros((1, 3, 1, 12), np.float32)),
            ValueError,
            "mems must have one tensor for each of the 2 layers, got 1",
        ),
        (
            dict(input_ids=[[1, 2]], mems=np.zeros((2, 3, 2, 12), np.float32)),
            ValueError,
            r"mems\[0\] must be \[3, 1, 12\], .*got \[3, 2, 12\]",
        ),
    ],
)
def test_wrong_inputs(inputs, error, message):
    with pytest.raises(error, match=message):
        plm.from_config(CFG)(**inputs)


def test_half_a_batch_must_be_whole():
    with pytest.raises(ValueError, match="it must be even, got 3"):
        call(built(bi_data=True), input_ids=IDS)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(n_head=5), "XLNetConfig: d_model must be a multiple of n_head = 5, got 12"),
        (dict(d_model=9, n_head=3), "d_model must be even, for sines and cosines, got 9"),
        (dict(d_head=5), "d_head must be d_model / n_head = 4, got 5"),
        (dict(attn_type="tri"), "attn_type must be one of bi, uni, got 'tri'"),
        (dict(summary_type="attn"), "summary_type must be one of last, .*got 'attn'"),
        (dict(ff_activation="quick"), "ff_activation must be one of gelu, .*got 'quick'"),
        (dict(mem_len=-1), "mem_len must be at least 0, got -1"),
        (dict(dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
        (dict(n_layer=0), "n_layer must be at least 1, got 0"),
    ],
)
def test_wrong_configs(changes, message):
    with pytest.raises(ValueError, match=message):
        XLNetConfig.from_dict({**CFG.to_dict(), **changes})
