"""Models that make text from their exported file: the ids of Python's generation, over the same cache."""

import numpy as np
import plmcore as plm
import pytest
from generating_models import EOS, MODELS, model
from plmcore import _core
from plmcore.generate.steps import Steps

GROWS = ("bart", "gpt2", "gpt3", "mass", "t5")  # a state with room for more tokens
PROMPTS = [[4, 9, 5, 7], [11, 3], [8, 8, 6]]
SOURCES = [[5, 6, 7, 8, 9], [4, 4], [12, 13, 14]]
RULES = {
    "greedy": {},
    "beams": dict(beams=3),
    "samples": dict(sample=True, returns=2, seeds=[1, 2, 3]),
    "long": dict(beams=4, max_new_tokens=19),  # grows more than once
}


def search(prompts, **rules):
    options = _core.SearchOptions()
    for name, value in (dict(max_new_tokens=8, eos=[EOS], token_scores=True) | rules).items():
        setattr(options, name, value)
    return _core.Search(prompts, options)


def found(step, prompts, **rules):
    s = search(prompts, **rules)
    while not s.done:
        s.accept(step(s))
    return [[(c.tokens, c.token_scores) for c in s.result(i)] for i in range(len(prompts))]


@pytest.fixture(scope="module", params=MODELS)
def exported(request, tmp_path_factory):
    lm = model(request.param)
    path = tmp_path_factory.mktemp("exported") / "model.plm"
    plm.export(lm, path)
    return lm, path, SOURCES if lm.head == "seq2seq-lm" else None


@pytest.mark.parametrize("rules", RULES)
def test_the_same_tokens(exported, rules):
    lm, path, sources = exported
    prompts = PROMPTS
    rows = lambda those: None if those is None else [np.array(r) for r in those]
    limit = RULES[rules].get("max_new_tokens", 8)
    with plm.nn.inference():
        expected = found(Steps(lm.model, rows(prompts), limit, rows(sources)), prompts, **RULES[rules])
    decoder = _core.Decoder(_core.Model.load(str(path)), prompts, sources or [])
    got = found(decoder, prompts, **RULES[rules])
    for a, b in zip(expected, got, strict=True):
        assert [tokens for tokens, _ in a] == [tokens for tokens, _ in b]
        for (_, x), (_, y) in zip(a, b):
            np.testing.assert_allclose(x, y, atol=1e-5)


def test_the_entry_points(exported):
    """XLNet and Transformer-XL, which take no padding, have a state that a step replaces."""
    lm, path, _ = exported
    names = {"score", "encode", "start", "select", "step"}
    grows = {"grow"} if lm.config.model_type in GROWS else set()
    assert set(plm.load_programs(path)) == names | grows
    assert plm.load_program(path).inputs[0][0] == "input_ids"  # the forward pass


def test_other_files_are_refused(exported, tmp_path):
    lm, path, sources = exported
    file = _core.Model.load(str(path))
    wrong = [] if sources else SOURCES
    with pytest.raises(ValueError, match="encoder"):
        _core.Decoder(file, PROMPTS, wrong)
    plm.export(plm.load_program(path), tmp_path / "main.plm")
    with pytest.raises(ValueError, match="no entry points that make text; export a model with the head"):
        _core.Decoder(_core.Model.load(str(tmp_path / "main.plm")), PROMPTS)


@pytest.mark.parametrize(
    "family, changes",
    [
        ("transfo-xl", dict(mem_len=0)),
        ("transfo-xl", dict(same_length=True, clamp_len=4)),
        ("transfo-xl", dict(pre_lnorm=True, untie_r=False)),
        ("xlnet", dict(mem_len=4)),
        ("xlnet", dict(mem_len=None)),
        ("xlnet", dict(use_mems_eval=False)),
    ],
    ids=str,
)
def test_memories_of_other_lengths(family, changes, tmp_path):
    """Beams over memories that are all of the text, a part of it, or none."""
    lm = model(family)
    lm.save(tmp_path / "dir")
    lm = plm.load(tmp_path / "dir", **changes)
    plm.export(lm, tmp_path / "model.plm")
    prompts, rules = PROMPTS, dict(beams=3, max_new_tokens=11)
    with plm.nn.inference():
        expected = found(Steps(lm.model, [np.array(p) for p in prompts], 11), prompts, **rules)
    got = found(_core.Decoder(_core.Model.load(str(tmp_path / "model.plm")), prompts), prompts, **rules)
    for a, b in zip(expected, got, strict=True):
        assert [tokens for tokens, _ in a] == [tokens for tokens, _ in b]
        for (_, x), (_, y) in zip(a, b):
            np.testing.assert_allclose(x, y, atol=1e-5)
