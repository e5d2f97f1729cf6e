"""Small models of each kind of decoder, with weights that make clear choices."""

import numpy as np
import plmcore as plm
from plmcore.models import bart, gpt2, gpt3, mass, t5, xlnet

V, EOS, PAD = 30, 2, 1
MODELS = {
    "gpt2": lambda: gpt2.GPT2Config(vocab_size=V, n_positions=24, n_embd=12, n_layer=2, n_head=3),
    "gpt3": lambda: gpt3.GPT3Config(
        vocab_size=V, n_positions=24, n_embd=12, n_layer=2, n_head=3, attention_band=4
    ),
    "bart": lambda: bart.BartConfig(
        vocab_size=V,
        d_model=12,
        max_position_embeddings=24,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
    ),  # fmt: skip
    "mass": lambda: mass.MassConfig(
        vocab_size=V,
        d_model=12,
        max_position_embeddings=24,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=EOS,
    ),
    "t5": lambda: t5.T5Config(vocab_size=V, d_model=12, d_kv=4, d_ff=16, num_layers=2, num_heads=3),
    "xlnet": lambda: xlnet.XLNetConfig(vocab_size=V, d_model=12, n_layer=2, n_head=3, d_inner=16),
}
TOKENS = (
    "<pad> <s> </s> once upon a time the cat sat on mat dog ran far away home and then it was dark so long "
    "ago in an old"
).split()


def model(family, peaked=True):
    plm.seed(1)
    config = MODELS[family]()
    lm = plm.from_config(config, "seq2seq-lm" if family in ("bart", "mass", "t5") else "causal-lm").eval()
    rng = np.random.default_rng(2)
    for p in lm.parameters() if peaked else []:
        if len(p.shape) > 1:
            plm._core.assign(p, plm.Tensor((rng.normal(size=p.shape) * 0.7).astype(np.float32)))
    return lm
