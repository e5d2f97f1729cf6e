"""A small config of every family, its heads, and inputs that fit them."""

import numpy as np
import plmcore as plm
from plmcore import models
from plmcore.nn.state import State

SMALL = dict(
    vocab_size=30,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=8,
    max_position_embeddings=12,
)
GPT = dict(vocab_size=30, n_embd=8, n_layer=1, n_head=2, n_positions=10, pad_token_id=0)
STACKS = dict(
    vocab_size=30,
    d_model=8,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=8,
    decoder_ffn_dim=8,
    max_position_embeddings=10,
)
CONFIGS = {
    "awd-lstm": dict(vocab_size=30, d_embed=8, d_hidden=12, n_layers=2, bptt=4, pad_token_id=0),
    "bert": SMALL,
    "roberta": SMALL,
    "xlm-roberta": SMALL,
    "albert": dict(SMALL, embedding_size=6),
    "cvt": dict(vocab_size=30, d_embed=6, d_char=4, char_filters=[[2, 3]], d_uni=5, d_bi=4, d_projection=3),
    "distilbert": dict(vocab_size=30, dim=8, n_layers=1, n_heads=2, hidden_dim=8, max_position_embeddings=12),
    "glm": dict(
        vocab_size=30,
        hidden_size=8,
        num_layers=1,
        num_attention_heads=2,
        max_sequence_length=10,
        block_position_encoding=True,
    ),
    "openai-gpt": GPT,
    "gpt2": GPT,
    "gpt3": GPT,
    "xlnet": dict(vocab_size=30, d_model=8, n_layer=1, n_head=2, d_inner=8),
    "transfo-xl": dict(
        vocab_size=30,
        cutoffs=[9, 20],
        d_model=8,
        d_embed=8,
        n_head=2,
        d_head=4,
        d_inner=8,
        div_val=2,
        n_layer=1,
        mem_len=5,
        pad_token_id=1,
    ),
    "t5": dict(vocab_size=30, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2),
    "bart": STACKS,
    "mbart": STACKS,
    "mass": dict(STACKS, eos_token_id=2, decoder_start_token_id=2),
    "transformer": STACKS,
    "marian": dict(STACKS, pad_token_id=29, decoder_start_token_id=29),
    "cnn": dict(vocab_size=30, d_embed=6, filters=[[2, 4], [3, 5]], layers=1),
    "nplm": dict(vocab_size=30, context=3, d_embed=5, d_hidden=8),
    "rnn-seq2seq": dict(
        vocab_size=30, d_embed=6, d_hidden=8, encoder_layers=1, decoder_layers=1, bidirectional=True
    ),
}
# Families whose input is not ids [B, T]: their own tests have what they refuse, and their programs.
OTHERS = {
    "cove": dict(d_embed=6, d_hidden=5, n_layers=2),
    "elmo": dict(
        vocab_size=30, char_embed_dim=4, filters=[[1, 4], [2, 8]], dim=12, projection_dim=6, sampled=8
    ),
}  # fmt: skip
HEADS = [(name, head) for name in CONFIGS for head in models.family(name).HEADS]


def config(name, **changes):
    return models.config_from_dict({"model_type": name, **(CONFIGS | OTHERS)[name], **changes})


def model(name, head):
    plm.seed(0)
    return plm.from_config(config(name), head).eval()


def ids(lm, head, value=5, length=6):
    """[B, T], or [B, K, T] for heads that choose; the end of a sequence where one is looked for."""
    shape = (2, 3, length) if head == "multiple-choice" else (2, length)
    found = np.full(shape, value)
    eos = getattr(lm.config, "eos_token_id", None)
    if head == "sequence-classification" and eos is not None:
        found[..., -1] = eos
    return found


def given(lm, head, **changes):
    batch = dict(input_ids=ids(lm, head))
    if hasattr(lm.model, "encode") and hasattr(lm.model, "decode") or head == "seq2seq-lm":
        batch["decoder_input_ids"] = np.full((2, 4), 5)
    return {**batch, **changes}


def flat(output):
    """A tuple's tensors are name.0, name.1, ...; those of a state have its names"""
    several = {k: dict(enumerate(v)) for k, v in output.items() if isinstance(v, tuple)}
    several |= {k: v.tensors() for k, v in output.items() if isinstance(v, State)}
    return {k: v for k, v in output.items() if k not in several} | {
        f"{k}.{i}": t for k, v in several.items() for i, t in v.items()
    }
