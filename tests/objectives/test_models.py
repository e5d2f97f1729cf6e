"""Batches go through the models they are for, by the names of their arguments; the loss is near that of
guessing.
"""

import math

import fakes
import numpy as np
import plmcore as plm
import pytest
from plmcore import objectives

BERT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
STACKS = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "pad_token_id": 0,
    "decoder_start_token_id": 6,
}
T5 = {
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 32,
    "num_layers": 1,
    "num_heads": 2,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
}
CASES = {  # objective -> tokenizer family, config, head, tasks whose losses add up
    "causal-lm": ("gpt", {"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2}, "causal-lm"),
    "masked-lm": ("bert", {"model_type": "bert", **BERT}, "masked-lm"),
    "next-sentence": ("bert", {"model_type": "bert", **BERT}, "pretraining"),
    "sentence-order": ("bert", {"model_type": "albert", "embedding_size": 8, **BERT}, "pretraining"),
    "permutation-lm": (
        "xlnet",
        {"model_type": "xlnet", "d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 32},
        "causal-lm",
    ),
    "blank-infilling": (
        "bert",
        {
            "model_type": "glm",
            "hidden_size": 16,
            "num_layers": 1,
            "num_attention_heads": 2,
            "block_position_encoding": True,
        },
        "causal-lm",
    ),
    "denoising": ("bart", {"model_type": "bart", **STACKS}, "seq2seq-lm"),
    "fragment": ("bart", {"model_type": "bart", **STACKS}, "seq2seq-lm"),
    "masked-seq2seq": ("bart", {"model_type": "bart", **STACKS}, "seq2seq-lm"),
    "span-corruption": ("t5", {"model_type": "t5", **T5}, "seq2seq-lm"),
    "translation": ("t5", {"model_type": "t5", **T5}, "seq2seq-lm"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_batch_goes_through_its_model(name):
    family, config, head = CASES[name]
    tokenizer = fakes.Numbers(family, plain=300, sentinels=40)
    corpus = fakes.corpus(tokenizer)
    data = (corpus, corpus) if name == "translation" else (corpus,)
    objective = objectives.make(name, *data, tokenizer, length=48)
    plm.seed(0)
    model = plm.from_config(config | {"vocab_size": tokenizer.vocab_size}, head)
    batch = objective.batch(np.arange(4), seed=0, epoch=0)
    loss = model(**batch).loss
    guessing = math.log(tokenizer.vocab_size) + (math.log(2) if "sentence" in name else 0)
    assert abs(loss.item() - guessing) < (20 if "t5" == family else 0.6)  # T5's first logits are wide
    loss.backward()
    assert any(np.abs(p.grad.numpy()).max() > 0 for p in model.parameters() if p.grad is not None)


def test_a_prediction_does_not_depend_on_its_token_nor_on_later_ones():
    """Through a real two-stream model: another token in a target's place changes nothing for it and for
    targets before it.
    """
    tokenizer = fakes.Numbers("xlnet", plain=300)
    objective = objectives.PermutationLM(fakes.corpus(tokenizer), tokenizer, length=48, block=24)
    plm.seed(0)
    config = {
        "model_type": "xlnet",
        "d_model": 16,
        "n_layer": 3,
        "n_head": 2,
        "d_inner": 32,
        "vocab_size": tokenizer.vocab_size,
    }
    model = plm.from_config(config, "causal-lm").eval()
    batch = objective.batch([0], seed=0, epoch=0)
    labels, places = batch.pop("labels")[0], batch["target_mapping"][0].argmax(1)
    before = model(**batch).logits.numpy()[0]
    changed_any = 0
    for k, place in enumerate(places):
        other = batch["input_ids"].copy()
        other[0, place] = tokenizer.first + (labels[k] - tokenizer.first + 1) % 300
        after = model(**batch | {"input_ids": other}).logits.numpy()[0]
        same = (before == after).all(1)
        sees = batch["perm_mask"][0][places, place] == 0  # targets that come later in the order
        assert same[k] and same[~sees].all()
        changed_any += (~same).sum()
    assert changed_any > len(places)
