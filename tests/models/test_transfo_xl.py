import json

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models.transfo_xl import HEADS, TransfoXLCausalLM, TransfoXLConfig

CFG = TransfoXLConfig(
    vocab_size=37,
    cutoffs=(9, 20),
    d_model=12,
    d_embed=8,
    n_head=3,
    d_head=5,
    d_inner=17,
    div_val=2,
    n_layer=3,
    mem_len=40,
    clamp_len=-1,
    same_length=False,
    dropout=0.0,
    init_std=0.5,
    proj_init_std=0.4,
    eos_token_id=None,
    pad_token_id=0,
)
KINDS = {
    "post-norm": {},
    "pre-norm": dict(pre_lnorm=True),
    "one table, shared biases": dict(div_val=1, d_embed=12, untie_r=False),
    "clamped": dict(clamp_len=3),
    "same length": dict(same_length=True, mem_len=6),
}
rng = np.random.default_rng(0)
B, T = 3, 6
TEXT = rng.integers(1, 37, (B, 4 * T))


def built(head="causal-lm", **changes):
    plm.seed(3)
    return plm.from_config(CFG.replace(**changes), head).eval()


def near(a, b, tolerance=1e-5):
    a, b = (x.numpy() if isinstance(x, Tensor) else x for x in (a, b))
    np.testing.assert_allclose(a, b, atol=tolerance * max(1, np.abs(b).max()))


def test_published_counts():
    """Of transfo-xl-wt103, and of the original program's base model."""
    assert models.count_parameters(TransfoXLConfig(), "causal-lm") == 285_205_322
    base = TransfoXLConfig(
        d_model=410, d_embed=410, n_head=10, d_head=41, d_inner=2100, div_val=1, n_layer=16, untie_r=False
    )
    assert models.count_parameters(base, "causal-lm") == 151_107_538


@pytest.mark.parametrize("head", HEADS)
def test_a_directory_comes_back(head, tmp_path):
    lm = built(head, untie_r=False)
    lm.save(tmp_path)
    again = plm.load(tmp_path)
    assert again.report == models.names.Report() and again.config.cutoffs == (9, 20)
    assert json.loads((tmp_path / "config.json").read_bytes())["tie_projs"] == [False, True, True]
    with plm.no_grad():
        for a, b in zip(lm(input_ids=TEXT).values(), again(input_ids=TEXT).values()):
            assert all(np.array_equal(x.numpy(), y.numpy()) for x, y in zip(a, b, strict=True))


# ---- memories ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [(T,) * 4, (1, 10, 3, 10)])
def test_segments_with_a_memory_that_holds_all_are_one_pass(kind, lengths):
    lm, mems, found, begin = built(**KINDS[kind]), (), [], 0
    with plm.no_grad():
        whole = lm(input_ids=TEXT, mems=())
        for n in lengths:
            out = lm(input_ids=TEXT[:, begin : begin + n], mems=mems, use_mems=True)
            mems, begin = out.mems, begin + n
            found.append(out.logits.numpy())
    near(np.concatenate(found, 1), whole.logits)
    assert [m.shape for m in mems] == [(4 * T, B, 12)] * 3


def test_beginnings():
    """mems=None: mem_len zero vectors; (): none; mem_len 0 remembers nothing."""
    lm = built(mem_len=5)
    zeros = np.zeros((3, 5, B, 12), np.float32)
    with plm.no_grad():
        given, fresh, empty = (lm(input_ids=TEXT, mems=m) for m in (zeros, None, ()))
        near(given.logits, fresh.logits, 0)
        assert np.abs(empty.logits.numpy() - fresh.logits.numpy()).max() > 1e-3
        none = built(mem_len=0)(input_ids=TEXT)
    assert none.mems is None and [m.shape[0] for m in fresh.mems] == [5] * 3
    near(none.logits, empty.logits, 0)


def test_nothing_flows_into_memories():
    lm = built().train()
    first = lm(input_ids=TEXT[:, :T], labels=TEXT[:, :T], mems=())
    assert not any(m.requires_grad for m in first.mems)
    lm(input_ids=TEXT[:, T:], labels=TEXT[:, T:], mems=first.mems).loss.backward()
    with_tape = {n: p.grad.numpy().copy() for n, p in lm.named_parameters()}
    for p in lm.parameters():
        p.grad = None
    copies = [Tensor(m.numpy()) for m in first.mems]
    lm(input_ids=TEXT[:, T:], labels=TEXT[:, T:], mems=copies).loss.backward()
    for name, p in lm.named_parameters():
        assert np.array_equal(p.grad.numpy(), with_tape[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_later_tokens_change_nothing_before(kind):
    lm, other = built(**KINDS[kind]), TEXT.copy()
    other[:, 9:] = 36 - other[:, 9:]
    with plm.no_grad():
        a, b = (lm(input_ids=ids, mems=()).logits.numpy() for ids in (TEXT, other))
    assert np.array_equal(a[:, :9], b[:, :9]) and not np.array_equal(a[:, 9], b[:, 9])


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_not_seen(side):
    lm, mask = built(), np.ones_like(TEXT)
    here = np.s_[:, :5] if side == "left" else np.s_[:, 19:]
    mask[here] = 0
    text = TEXT[:, 5:] if side == "left" else TEXT[:, :19]
    with plm.no_grad():
        padded = lm(input_ids=TEXT, attention_mask=mask, mems=()).logits.numpy()
        alone = lm(input_ids=text, mems=()).logits
    near(padded[mask == 1].reshape(*text.shape, -1), alone)
    assert not padded[mask == 0].any()


def test_keys_of_the_config_may_be_changed(tmp_path):
    built(mem_len=3).save(tmp_path)
    lm = plm.load(tmp_path, mem_len=9, clamp_len=4, same_length=True)
    with plm.no_grad():
        assert lm(input_ids=TEXT).mems[0].shape[0] == 9
    with pytest.raises(plm.ArgumentError, match="mem_len must be at least 1 with same_length"):
        plm.load(tmp_path, mem_len=0, same_length=True)


# ---- text ----


@pytest.mark.parametrize("kind", [*KINDS, "short memory"])
def test_generation_goes_on_from_the_memory_of_the_prompt(kind):
    """Token by token with out.mems, and the keys of the memory, which a search keeps."""
    lm = built(**KINDS.get(kind, dict(mem_len=4)))
    prompt, mems, ids = TEXT[:1, :7], None, TEXT[:1, :7]
    found = []
    with plm.no_grad():
        for _ in range(8):
            out = lm(input_ids=ids, mems=mems)
            scores = out.logits.numpy()[0, -1]
            found.append(scores.max())
            mems, ids = out.mems, scores.argmax()[None, None]
    ours = lm.generate(prompt, max_new_tokens=8, output_scores=True)
    near(ours.token_scores[0], np.array(found))


def test_without_memory_all_of_the_text_is_read():
    lm = built(mem_len=0)
    made = lm.generate(TEXT[:1, :5], max_new_tokens=6, output_scores=True)
    with plm.no_grad():
        whole = lm(input_ids=made.sequences).logits.numpy()[0]
    near(made.token_scores[0], whole[4:10].max(1))


def test_traced():
    lm = built(mem_len=4)
    with plm.no_grad():
        program = plm.trace(
            lambda input_ids, labels: {
                "logits": (out := lm.model(input_ids=input_ids, labels=labels)).logits,
                "loss": out.loss,
                "memory": out.mems[2],
            },
            weights=dict(lm.named_parameters()),
            input_ids=plm.spec("int64", "B", "T"),
            labels=plm.spec("int64", "B", "T"),
        )
        for ids in (TEXT, TEXT[:1, :3]):
            got, out = program(input_ids=ids, labels=ids), lm(input_ids=ids, labels=ids)
            for name, value in dict(logits=out.logits, loss=out.loss, memory=out.mems[2]).items():
                near(got[name], value, 1e-6)


@pytest.mark.parametrize("kind", ["post-norm", "one table, shared biases"])
def test_quantised(kind, tmp_path):
    lm = built(**KINDS[kind])
    lm.save(tmp_path / "a")
    plm.compress.quantize(tmp_path / "a", out=tmp_path / "b")
    other = plm.load(tmp_path / "b")
    with plm.no_grad():
        mems = lm(input_ids=TEXT).mems
        a, b = (m(input_ids=TEXT, mems=mems).logits.numpy() for m in (lm, other))
    assert 0 < np.abs(a - b).max() < 0.05 * np.abs(a).max()


# ---- bad input ----


@pytest.mark.parametrize(
    "shape, message",
    [
        ((3, 2, B + 1, 12), r"mems\[0\] must be \[2, 3, 12\], \[length, batch, width\]; got \[2, 4, 12\]"),
        ((3, 2, B, 10), r"mems\[0\] must be \[2, 3, 12\]"),
        ((2, 2, B, 12), "mems must have one tensor for each of the 3 layers, got 2"),
    ],
)
def test_memories_that_do_not_fit(shape, message):
    with pytest.raises(plm.ShapeError, match=message):
        built()(input_ids=TEXT, mems=np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(cutoffs=(9, 9)), "TransfoXLConfig: cutoffs must rise"),
        (dict(cutoffs=(9, 37)), "TransfoXLConfig: cutoffs must rise, from 1 to below the vocabulary's 37"),
        (dict(div_val=4), "TransfoXLConfig: div_val 4 leaves no width for cluster 2"),
        (dict(d_model=13), "d_model must be even"),
        (dict(attn_type=1), "attn_type must be one of 0"),
        (dict(mem_len=-1), "mem_len must be at least 0"),
        (dict(tie_projs=(True,)), "tie_projs must have a value for each of the 3 clusters"),
    ],
)
def test_configs_that_do_not_fit(changes, message):
    with pytest.raises(plm.ArgumentError, match=message):
        CFG.replace(**changes)


def test_ids_beyond_the_vocabulary():
    lm = TransfoXLCausalLM(CFG)
    with pytest.raises(IndexError):
        lm(Tensor([[5, 37]]))
    with pytest.raises(IndexError):
        lm(Tensor([[5, 7]]), labels=Tensor([[5, 37]]))
