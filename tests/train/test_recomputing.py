import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models, train
from plmcore.train.recomputing import recompute_blocks
from small import LENGTH, VOCAB, Counting, gpt2, same_bits, trainer

SMALL = {
    "gpt2": ("causal-lm", dict(n_positions=LENGTH, n_embd=32, n_layer=3, n_head=2)),
    "bert": (
        "masked-lm",
        dict(
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=LENGTH,
        ),
    ),
    "albert": (
        "masked-lm",
        dict(
            hidden_size=32,
            embedding_size=16,
            num_hidden_layers=3,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=LENGTH,
        ),
    ),
    "glm": (
        "causal-lm",
        dict(
            hidden_size=32,
            num_layers=3,
            num_attention_heads=2,
            max_sequence_length=LENGTH,
            block_position_encoding=True,
        ),
    ),
    "xlnet": ("causal-lm", dict(d_model=32, n_layer=3, n_head=2, d_inner=64)),
    "t5": ("seq2seq-lm", dict(d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2)),
    "bart": (
        "seq2seq-lm",
        dict(
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            max_position_embeddings=LENGTH,
        ),
    ),
}


def gradients(family, recomputed):
    plm.seed(0)
    head, sizes = SMALL[family]
    model = models.build(models.config_from_dict(dict(model_type=family, vocab_size=VOCAB, **sizes)), head)
    if recomputed:
        recompute_blocks(recompute_blocks(model))
    plm.seed(5)
    batch = Counting(4)[0]
    batch["attention_mask"] = (np.arange(LENGTH) < [[LENGTH], [9], [LENGTH], [4]]).astype(np.int64)
    loss = model(**{k: Tensor(a) for k, a in batch.items()}).loss
    loss.backward()
    return loss.item(), {
        n: np.array(p.grad.numpy()) for n, p in model.named_parameters() if p.grad is not None
    }


@pytest.mark.parametrize("family", SMALL)
def test_the_same_gradients(family):
    """With dropout: the second computation draws the same numbers."""
    (a, plain), (b, again) = gradients(family, False), gradients(family, True)
    assert a == b and set(plain) == set(again)
    for name in plain:
        np.testing.assert_allclose(again[name], plain[name], rtol=1e-5, atol=1e-7, err_msg=name)


def test_a_run_of_its_own_is_the_same():
    plain, again = trainer(steps=4), trainer(recompute_blocks(gpt2()), steps=4)
    plain.run()
    again.run()
    assert same_bits(plain.model, again.model)


def test_it_saves_memory():
    def peak(recomputed):
        model = gpt2(n_layer=12)
        if recomputed:
            recompute_blocks(model)
        t = train.Trainer(model, Counting(64), plm.optim.SGD(model.parameters()), steps=1)
        plm.trim_memory()
        plm.reset_peak_memory()
        t.run()
        return plm.memory_stats()["peak"]

    assert peak(True) < 0.7 * peak(False)
