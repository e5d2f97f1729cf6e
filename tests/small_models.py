"""Small models with fresh weights and a tokenizer, for tests."""

import numpy as np
import plmcore as plm

TEXT = "the cat sat on the mat and the dog ran far away from home to see the other cat that sat there. " * 3
GPT2 = dict(model_type="gpt2", n_embd=16, n_layer=2, n_head=2, n_positions=16)
SMALL = dict(hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16)
STACKS = dict(
    d_model=12, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
    encoder_ffn_dim=16, decoder_ffn_dim=16,
)  # fmt: skip
CAUSAL = {
    "gpt2": GPT2,
    "openai-gpt": dict(GPT2, model_type="openai-gpt"),
    "gpt3": dict(GPT2, model_type="gpt3"),
    "bert": dict(SMALL, model_type="bert", is_decoder=True, max_position_embeddings=16),
    "roberta": dict(SMALL, model_type="roberta", is_decoder=True, max_position_embeddings=18),
    "bart": dict(STACKS, model_type="bart", max_position_embeddings=16),
}
MASKED = {
    "bert": dict(SMALL, model_type="bert", max_position_embeddings=16),
    "roberta": dict(SMALL, model_type="roberta", max_position_embeddings=18),
    "distilbert": dict(
        model_type="distilbert", dim=12, n_layers=2, n_heads=2, hidden_dim=16, max_position_embeddings=16
    ),
    "albert": dict(SMALL, model_type="albert", embedding_size=8, max_position_embeddings=16),
}
SEQ2SEQ = {
    "bart": dict(STACKS, model_type="bart", max_position_embeddings=64),
    "t5": dict(model_type="t5", d_model=12, d_kv=6, d_ff=16, num_layers=2, num_heads=2),
    "transformer": dict(STACKS, model_type="transformer"),
}


def sharp(config, head, tokenizer=None, vocab_size=40):
    """A model whose probabilities are far from equal."""
    plm.seed(7)
    lm = plm.from_config(config, head, vocab_size=tokenizer.vocab_size if tokenizer else vocab_size).eval()
    lm.tokenizer = tokenizer
    lm.model.load_state_dict(
        {k: v.numpy() * (8 if v.ndim == 2 else 1) for k, v in lm.model.state_dict().items()}
    )
    return lm


def log_softmax(logits):
    logits = logits.numpy().astype(np.float64)
    top = logits.max(-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
