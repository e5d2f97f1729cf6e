"""Writes models/NAME: a tiny model directory saved by transformers, and inputs.npz and outputs.npz of it, for
tests without PyTorch.

    python tests/golden/make_models.py NAME...      (all without a name; needs torch and transformers)

A family adds an entry to MODELS: the transformers class, its config, and what it is called with.
"""

import pathlib
import shutil
import sys

import numpy as np

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here.parent))

IDS = np.array([[5, 9, 2, 14, 3], [7, 1, 12, 0, 0]])
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
LABELS = np.array([[-100, 4, -100, 11, -100], [8, -100, 2, -100, -100]])
PADDED_IDS = np.array([[0, 5, 9, 14, 2], [0, 7, 2, 1, 1]])  # of RoBERTa: the token 1 is padding
TYPES = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])
SMALL = dict(
    vocab_size=16,
    hidden_size=6,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=8,
    max_position_embeddings=8,
)
STACKS = dict(
    vocab_size=16,
    d_model=6,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=3,
    decoder_attention_heads=3,
    encoder_ffn_dim=8,
    decoder_ffn_dim=8,
    max_position_embeddings=8,
)
TARGET = np.array([[5, 12, 9, 2], [13, 2, -100, -100]])

MODELS = {
    "bert": (
        "BertForPreTraining",
        dict(
            vocab_size=16,
            hidden_size=12,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=20,
            max_position_embeddings=8,
        ),
        dict(
            input_ids=IDS,
            attention_mask=MASK,
            token_type_ids=TYPES,
            labels=LABELS,
            next_sentence_label=np.array([0, 1]),
        ),
    ),
    "roberta": (
        "RobertaForMaskedLM",
        dict(SMALL, hidden_size=9, layer_norm_eps=1e-5),
        dict(input_ids=PADDED_IDS, attention_mask=MASK, labels=LABELS),
    ),
    "xlm-roberta": (
        "XLMRobertaForSequenceClassification",
        dict(SMALL, num_labels=3),
        dict(input_ids=PADDED_IDS, attention_mask=MASK, labels=np.array([2, 0])),
    ),
    "distilbert": (
        "DistilBertForMaskedLM",
        dict(vocab_size=16, dim=6, n_layers=2, n_heads=3, hidden_dim=8, max_position_embeddings=8),
        dict(input_ids=IDS, attention_mask=MASK, labels=LABELS),
    ),
    "albert": (
        "AlbertForPreTraining",
        dict(SMALL, embedding_size=4, num_hidden_layers=3, num_hidden_groups=2, inner_group_num=2),
        dict(
            input_ids=IDS,
            attention_mask=MASK,
            token_type_ids=TYPES,
            labels=LABELS,
            sentence_order_label=np.array([0, 1]),
        ),
    ),
    "xlnet": (  # the order is 0, 2 before 4 before 1 before 3; 3 and 1 are predicted
        "XLNetLMHeadModel",
        dict(vocab_size=16, d_model=12, n_layer=2, n_head=3, d_inner=20, mem_len=4),
        dict(
            input_ids=IDS,
            token_type_ids=np.array([[0, 0, 1, 1, 2], [0, 1, 1, 1, 2]]),
            perm_mask=np.array(
                [[[0, 1, 0, 1, 1], [0, 1, 0, 1, 0], [0, 1, 0, 1, 1], [0, 0, 0, 1, 0], [0, 1, 0, 1, 1]]] * 2,
                np.float32,
            ),
            target_mapping=np.array([[[0, 0, 0, 1, 0], [0, 1, 0, 0, 0]]] * 2, np.float32),
            labels=np.array([[14, 9], [-100, 1]]),
            mems=np.linspace(-1, 1, 2 * 3 * 2 * 12, dtype=np.float32).reshape(2, 3, 2, 12),
        ),
    ),
    "xlnet-classification": (
        "XLNetForSequenceClassification",
        dict(vocab_size=16, d_model=8, n_layer=2, n_head=2, d_inner=10, mem_len=None, num_labels=3),
        dict(
            input_ids=IDS[:, ::-1].copy(),
            attention_mask=MASK[:, ::-1].copy(),
            token_type_ids=np.array([[0, 0, 1, 1, 2], [3, 3, 0, 0, 2]]),
            labels=np.array([2, 0]),
        ),
    ),
    "openai-gpt": (
        "OpenAIGPTDoubleHeadsModel",
        dict(vocab_size=16, n_embd=6, n_layer=2, n_head=3, n_positions=8),
        dict(
            input_ids=IDS[None], labels=LABELS[None], mc_token_ids=np.array([[4, 2]]), mc_labels=np.array([1])
        ),
    ),
    "gpt2": (  # padded on the left: the first token of the second text is predicted from padding
        "GPT2LMHeadModel",
        dict(vocab_size=16, n_embd=6, n_layer=2, n_head=3, n_positions=8),
        dict(
            input_ids=IDS[:, ::-1].copy(),
            attention_mask=MASK[:, ::-1].copy(),
            labels=np.where(MASK, IDS, -100)[:, ::-1].copy(),
        ),
    ),
    "gpt2-classification": (
        "GPT2ForSequenceClassification",
        dict(
            vocab_size=16,
            n_embd=6,
            n_layer=2,
            n_head=2,
            n_inner=5,
            n_positions=8,
            scale_attn_by_inverse_layer_idx=True,
            pad_token_id=0,
            num_labels=3,
        ),
        dict(input_ids=IDS, attention_mask=MASK, labels=np.array([2, 0])),
    ),
    "t5": (
        "T5ForConditionalGeneration",
        dict(
            vocab_size=16,
            d_model=6,
            d_kv=4,
            d_ff=9,
            num_layers=2,
            num_heads=2,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=5,
            decoder_start_token_id=0,
        ),
        dict(input_ids=IDS, attention_mask=MASK, labels=LABELS[:, :4]),
    ),
    "t5-v1.1": (  # gated, and without scaling before the output layer
        "T5ForConditionalGeneration",
        dict(
            vocab_size=16,
            d_model=5,
            d_kv=3,
            d_ff=7,
            num_layers=2,
            num_decoder_layers=3,
            num_heads=3,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=5,
            decoder_start_token_id=0,
            feed_forward_proj="gated-gelu",
            tie_word_embeddings=False,
        ),
        dict(input_ids=IDS[:, ::-1].copy(), attention_mask=MASK[:, ::-1].copy(), labels=LABELS[:, :3]),
    ),
    "t5-encoder": (
        "T5EncoderModel",
        dict(
            vocab_size=16,
            d_model=6,
            d_kv=4,
            d_ff=9,
            num_layers=2,
            num_heads=2,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=5,
        ),
        dict(input_ids=IDS, attention_mask=np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1]])),
    ),
    "bart": (
        "BartForConditionalGeneration",
        dict(STACKS, decoder_attention_heads=2, decoder_ffn_dim=9),
        dict(input_ids=PADDED_IDS, attention_mask=MASK, labels=TARGET),
    ),
    "bart-classification": (
        "BartForSequenceClassification",
        dict(STACKS, num_labels=4, scale_embedding=True),
        dict(input_ids=PADDED_IDS, attention_mask=MASK, labels=np.array([3, 0])),
    ),
    "mbart": (
        "MBartForConditionalGeneration",
        dict(STACKS, scale_embedding=True),
        dict(
            input_ids=PADDED_IDS,
            attention_mask=MASK,
            labels=TARGET,
            decoder_attention_mask=np.array([[1, 1, 1, 1], [1, 1, 0, 0]]),
        ),
    ),
    "marian": (
        "MarianMTModel",
        dict(
            STACKS,
            pad_token_id=1,
            decoder_start_token_id=1,
            eos_token_id=2,
            decoder_vocab_size=18,
            share_encoder_decoder_embeddings=False,
        ),
        dict(input_ids=PADDED_IDS, attention_mask=MASK, labels=TARGET),
    ),
}


def make(name):
    from oracle import parity

    kind, config, inputs = MODELS[name]
    folder = here / "models" / name
    shutil.rmtree(folder, ignore_errors=True)
    model = parity.reference(kind, config, folder)
    out = parity.theirs(model, inputs, **parity.EXTRAS)
    found = {}
    for field in parity.fields(out):
        values = parity.arrays(out[field])
        found |= {field: values[0]} if len(values) == 1 else {f"{field}.{i}": v for i, v in enumerate(values)}
    np.savez_compressed(folder / "inputs.npz", **inputs)
    np.savez_compressed(folder / "outputs.npz", **found)


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        make(name)
