import pytest
from plmcore import models, nn
from plmcore.train import groups
from small import gpt2


def named(model, group_list):
    names = {id(p): n for n, p in model.named_parameters()}
    return [({names[id(p)] for p in g["params"]}, g["lr"], g["weight_decay"]) for g in group_list]


def test_biases_and_norms_do_not_decay():
    model = gpt2()
    for names, lr, decay in named(model, groups.parameter_groups(model, lr=1e-3, weight_decay=0.1)):
        assert lr == 1e-3
        vectors = {n.rpartition(".")[2] for n in names}
        assert vectors <= ({"bias", "gamma", "beta"} if decay == 0 else {"weight"})


def test_every_parameter_is_in_one_group():
    model = gpt2()
    found = [
        n
        for names, *_ in named(model, groups.parameter_groups(model, lr=1, weight_decay=0, layer_decay=0.5))
        for n in names
    ]
    assert sorted(found) == sorted(n for n, _ in model.named_parameters())


def test_rates_fall_towards_the_embeddings():
    model = gpt2()
    rate = {
        n: lr
        for names, lr, _ in named(
            model, groups.parameter_groups(model, lr=8.0, weight_decay=0, layer_decay=0.5)
        )
        for n in names
    }
    assert rate["body.norm.gamma"] == 8.0
    assert rate["body.blocks.1.attn.qkv.weight"] == 4.0 and rate["body.blocks.0.attn.qkv.bias"] == 2.0
    assert rate["body.embeddings.tokens.weight"] == rate["body.embeddings.positions.weight"] == 1.0


def test_frozen_parameters_are_left_out():
    model = gpt2()
    model.body.embeddings.requires_grad_(False)
    found = {
        n for names, *_ in named(model, groups.parameter_groups(model, lr=1, weight_decay=0)) for n in names
    }
    assert found and not any("embeddings" in n for n in found)


@pytest.mark.parametrize(
    "model_type, head",
    [
        ("bert", "pretraining"),
        ("xlnet", "causal-lm"),
        ("t5", "seq2seq-lm"),
        ("bart", "seq2seq-lm"),
        ("albert", "pretraining"),
    ],
)
def test_families(model_type, head):
    """Embeddings are at the bottom; what is decayed is a matrix."""
    with nn.init.skipped():
        model = models.build(models.config_from_dict({"model_type": model_type}), head)
    decayed = groups.decayed(model)
    for name, _ in model.named_parameters():
        if name.endswith(("tokens.weight", "positions.weight", "shared.weight")):
            assert groups.depth(name, 99) == 0, name
        if name.startswith(("predictions.", "next_sentence.", "order.", "decoder.")):
            assert groups.depth(name, 99) == 99, name
        assert not (name in decayed and name.endswith(("bias", "gamma", "beta", "attn.u"))), name
    assert any(name.endswith("weight") for name in decayed)
