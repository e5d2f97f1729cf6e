"""Sizes and settings of the recipes against the published ones."""

import pytest
from plmcore import ArgumentError, models
from plmcore.train import recipes, run_settings

COUNTS = {  # family, head, vocabulary -> parameters by size
    ("gpt2", "causal-lm", 50257): dict(
        small=124_439_808, base=124_439_808, medium=354_823_168, large=774_030_080, xl=1_557_611_200
    ),
    ("openai-gpt", "causal-lm", 40478): dict(base=116_534_784),
    ("bert", "pretraining", 30522): dict(base=110_106_428, large=336_226_108),
    ("roberta", "masked-lm", 50265): dict(base=124_697_433, large=355_412_057),
    ("albert", "base", 30000): dict(
        base=11_683_584, large=17_683_968, xlarge=58_724_864, xxlarge=222_595_584
    ),
    ("xlnet", "causal-lm", 32000): dict(base=116_750_336, large=360_300_800),
    ("glm", "causal-lm", 30592): dict(base=109_338_624, large=334_688_256),
    ("bart", "seq2seq-lm", 50265): dict(base=139_420_416, large=406_291_456),
    ("mass", "seq2seq-lm", 30522): dict(base=123_469_824, middle=208_666_624),
    ("t5", "seq2seq-lm", 32128): dict(small=60_506_624, base=222_903_552, large=737_668_096),
}
SHAPES = {  # GPT-3's table: layers, width, heads, rate
    "small": (12, 768, 12, 6e-4),
    "medium": (24, 1024, 16, 3e-4),
    "large": (24, 1536, 16, 2.5e-4),
    "xl": (24, 2048, 16, 2e-4),
}


def config(family, size, vocab):
    values = run_settings.defaults_of(family, size)["model"]
    values = {k: v for k, v in values.items() if v is not None and k != "head"}
    return models.config_class(family)(vocab_size=vocab, **values)


@pytest.mark.parametrize("family, head, vocab", COUNTS)
def test_published_sizes(family, head, vocab):
    found = {
        size: models.count_parameters(config(family, size, vocab), head)
        for size in COUNTS[family, head, vocab]
    }
    assert found == COUNTS[family, head, vocab]


@pytest.mark.parametrize("size", SHAPES)
def test_gpt3(size):
    known = run_settings.defaults_of("gpt3", size)
    model = known["model"]
    assert (model["n_layer"], model["n_embd"], model["n_head"], known["optim"]["lr"]) == SHAPES[size]
    assert model["n_positions"] == known["data"]["length"] == 2048


def test_sizes_that_there_are_not():
    with pytest.raises(
        ArgumentError, match="openai-gpt has no size 'large'; one of tiny, mini, small, medium, base$"
    ):
        recipes.defaults("openai-gpt", "large")
    assert recipes.sizes_of("gpt2") == ("tiny", "mini", "small", "medium", "base", "large", "xl")


def test_the_masks_of_roberta():
    """fairseq: int(0.15 n + u) tokens, random ones never special."""
    table = run_settings.defaults_of("roberta", "base")["objective"]
    assert table["exact"] is True and table["rounding"] == "random" and table["specials"] is False
