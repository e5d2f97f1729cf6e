"""Bengio's model: the formula, contexts at the beginning of a text, steps, training from the command line."""

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, _core, cli, models
from plmcore.generate.steps import Steps
from plmcore.models.nplm import NPLMConfig

SIZES = dict(vocab_size=30, context=3, d_embed=5, d_hidden=7)
rng = np.random.default_rng(0)
IDS = rng.integers(1, 30, (3, 8))
MASK = (np.arange(8) < np.array([8, 2, 5])[:, None]).astype(np.int64)
near = dict(atol=1e-5, rtol=0)


def model(head="causal-lm", **changes):
    plm.seed(1)
    lm = plm.from_config({"model_type": "nplm", **SIZES, **changes}, head).eval()
    for _, p in lm.model.named_parameters():
        _core.assign(p, Tensor(rng.standard_normal(p.shape).astype(np.float32) * 0.5))
    return lm


def formula(lm, ids):
    """y of every place of one text, in float64."""
    w = {name: p.numpy().astype(np.float64) for name, p in lm.model.named_parameters()}
    n, pad = lm.config.context, lm.config.pad_token_id
    before = [pad] * (n - 1) + list(ids)
    found = []
    for t in range(len(ids)):
        x = w["C.weight"][before[t : t + n]].ravel()
        y = w["b"] + w["U.weight"] @ np.tanh(w["H.weight"] @ x + w["H.bias"])
        found.append(y + w["W.weight"] @ x if lm.config.direct else y)
    return np.array(found)


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("context", [1, 3, 12])
def test_the_formula(context, direct):
    lm = model(context=context, direct=direct, pad_token_id=4)
    found = lm(input_ids=IDS).logits.numpy()
    for row, logits in zip(IDS, found):
        np.testing.assert_allclose(logits, formula(lm, row), **near)


def test_names(tmp_path):
    lm = model()
    lm.save(tmp_path)
    shapes = {
        "C.weight": (30, 5), "H.weight": (7, 15), "H.bias": (7,), "U.weight": (30, 7), "W.weight": (30, 15),
        "b": (30,),
    }  # fmt: skip
    assert {k: tuple(t.shape) for k, t in plm.safetensors.read(tmp_path)[0].items()} == shapes
    assert {k: p.shape for k, p in lm.model.named_parameters()} == shapes
    assert "W.weight" not in dict(model(direct=False).model.named_parameters())
    again = plm.load(tmp_path)
    assert np.array_equal(again(input_ids=IDS).logits.numpy(), lm(input_ids=IDS).logits.numpy())
    assert models.count_parameters(lm.config, "causal-lm") == lm.model.num_parameters()


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_is_what_stands_before_a_text(side):
    lm = model()
    ids, mask = np.where(MASK == 1, IDS, 0), MASK
    if side == "left":
        ids = np.array([np.roll(row, 8 - n) for row, n in zip(ids, MASK.sum(1))])
        mask = MASK[:, ::-1].copy()
    out = lm(input_ids=ids, attention_mask=mask).logits.numpy()
    for b, n in enumerate(MASK.sum(1)):
        shown = out[b, 8 - n :] if side == "left" else out[b, :n]
        np.testing.assert_allclose(shown, formula(lm, IDS[b, :n]), **near)


def test_only_the_context_counts():
    """Bit for bit: a word more than `context` places back changes nothing."""
    lm = model()
    other = IDS.copy()
    other[:, 0] = (other[:, 0] + 1) % 29 + 1
    a, b = (lm(input_ids=x).logits.numpy() for x in (IDS, other))
    assert np.array_equal(a[:, 3:], b[:, 3:]) and not np.array_equal(a[:, 2], b[:, 2])


def test_gradients():
    """Against differences, in float64."""
    lm = model().to("float64")
    labels = IDS.copy()

    def loss():
        return lm(input_ids=IDS, labels=labels).loss

    loss().backward()
    for name, p in lm.model.named_parameters():
        grad, flat = p.grad.numpy(), p.numpy().reshape(-1)
        for i in rng.integers(0, flat.size, 4):
            before, eps = flat[i], 1e-6
            flat[i] = before + eps
            above = loss().item()
            flat[i] = before - eps
            below = loss().item()
            flat[i] = before
            assert abs((above - below) / (2 * eps) - grad.reshape(-1)[i]) < 1e-7, name


def test_beams_and_the_file(tmp_path):
    """Steps score as a whole pass does, in Python and from the exported programs."""
    lm = model()
    prompts = [[5, 6, 7, 8], [9], [4, 11]]
    found = lm.generate(
        prompts, num_beams=3, num_return_sequences=2, max_new_tokens=5, output_scores=True, eos_token_id=3
    )
    for k, scores in enumerate(found.token_scores):
        prompt = prompts[k // 2]
        text = [*prompt, *found.sequences[k][4 : 4 + len(scores)]]  # behind the longest prompt
        logits = formula(lm, text)
        logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        places = np.arange(len(prompt) - 1, len(text) - 1)
        np.testing.assert_allclose(logp[places, text[len(prompt) :]], scores, **near)
    plm.export(lm, tmp_path / "nplm.plm")
    assert set(plm.load_programs(tmp_path / "nplm.plm")) == {"score", "encode", "start", "select", "step"}

    def tokens(step):
        options = _core.SearchOptions()
        options.max_new_tokens, options.eos, options.beams = 6, [3], 3
        search = _core.Search(prompts, options)
        while not search.done:
            search.accept(step(search))
        return [[c.tokens for c in search.result(i)] for i in range(3)]

    with plm.nn.inference():
        expected = tokens(Steps(lm.model, [np.array(p) for p in prompts], 6))
    assert tokens(_core.Decoder(_core.Model.load(str(tmp_path / "nplm.plm")), prompts, [])) == expected


def test_from_the_command_line(tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat and the dog ran home . " * 60)
    options = [
        "--steps",
        "60",
        "--set",
        "data.batch=4",
        "--set",
        "data.length=16",
        "--set",
        "model.context=2",
    ]
    assert cli.main(["pretrain", "nplm", "--text", str(text), *options, "--out", str(tmp_path / "run")]) == 0
    lm = plm.load(tmp_path / "run" / "final")
    assert lm.config.context == 2 and lm.config.pad_token_id == lm.tokenizer.pad_token_id
    assert lm.perplexity("the cat sat on the mat and the dog ran home .") < 6
    assert lm.generate("the cat sat", max_new_tokens=2) == "the cat sat on the"
    capsys.readouterr()
    assert cli.main(["evaluate", str(tmp_path / "run" / "final"), str(text)]) == 0
    assert "per_token" in capsys.readouterr().out


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(context=0), "context must be at least 1, got 0"),
        (dict(context=20_000), "context must be at most 10000, got 20000"),
        (dict(pad_token_id=30), "pad_token_id must be below vocab_size = 30, got 30"),
    ],
)
def test_bad_config(changes, message):
    with pytest.raises(plm.ArgumentError, match=message):
        NPLMConfig(**{**SIZES, **changes})


def test_a_state_of_another_batch():
    lm = model()
    with plm.nn.inference():
        _, state = lm.model.prefill(Tensor(IDS))
        with pytest.raises(plm.ShapeError, match="the state is of 3 sequences, the batch has 2"):
            lm.model.step(Tensor([[2], [2]]), state)
