"""Every objective with every head that takes its labels: the loss is that of the tokens which the objective
claims are predicted.
"""

import fakes
import numpy as np
import plmcore as plm
import pytest
from plmcore import criteria, models, objectives
from plmcore.models import labels as kinds
from plmcore.train import recipes

LENGTH = 32
SMALL = {
    "awd-lstm": dict(d_embed=16, d_hidden=24, n_layers=2),
    "openai-gpt": dict(n_embd=16, n_layer=1, n_head=2),
    "gpt2": dict(n_embd=16, n_layer=1, n_head=2),
    "gpt3": dict(n_embd=16, n_layer=2, n_head=2),
    "bert": dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32),
    "xlnet": dict(d_model=16, n_layer=1, n_head=2, d_inner=32),
    "transfo-xl": dict(
        cutoffs=[100, 200],
        d_model=16,
        d_embed=16,
        n_head=2,
        d_head=8,
        d_inner=32,
        div_val=2,
        n_layer=1,
        mem_len=9,
    ),
    "bart": dict(
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        pad_token_id=0,
        decoder_start_token_id=6,
    ),
    "t5": dict(
        d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, pad_token_id=0, decoder_start_token_id=0
    ),
}
SMALL["glm"] = dict(hidden_size=16, num_layers=1, num_attention_heads=2, block_position_encoding=True)
SMALL["roberta"] = SMALL["bert"] | dict(pad_token_id=0)
SMALL["albert"] = SMALL["bert"] | dict(embedding_size=8)
SMALL["transformer"] = SMALL["mass"] = SMALL["bart"]
SMALL["nplm"] = dict(d_embed=8, d_hidden=8, pad_token_id=0)
SMALL["rnn-seq2seq"] = dict(d_embed=8, d_hidden=8, pad_token_id=0, decoder_start_token_id=2)
TOKENIZERS = {
    "awd-lstm": "gpt",
    "glm": "bert",
    "openai-gpt": "gpt",
    "gpt2": "gpt",
    "gpt3": "gpt",
    "transfo-xl": "gpt",
    "roberta": "bart",
    "albert": "bert",
    "transformer": "bart",
    "mass": "bart",
    "nplm": "gpt",
    "rnn-seq2seq": "bart",
}


def spells(family):
    """Its inputs are characters: tests/objectives/test_bidirectional.py looks at its labels."""
    return any(form.spelled for form in models.family(family).TOKENIZERS)


def pairs():
    """(family, head, objective) wherever the head takes what the objective gives."""
    for family in recipes.names():
        if spells(family):
            continue
        for head, cls in models.family(family).HEADS.items():
            for name in objectives.NAMES:
                if name not in objectives.WITHOUT_TEXT and objectives.labels_of(name) in kinds.taken(cls):
                    yield family, head, name


PAIRS = list(pairs())


def claimed(objective, name, corpus, tokenizer, batch, examples):
    """Which token each place of the logits predicts, -100 for none, from the text itself and not from the
    labels.
    """
    ids = batch["input_ids"]
    if name == "causal-lm":
        text = fakes.stream(corpus, tokenizer.eos_token_id)
        starts, _ = objective.packing.runs(examples)
        following = text[starts[:, None] + np.arange(1, LENGTH + 1)]
        following[:, -1] = -100  # the window ends
        return following
    if name == "permutation-lm":
        return np.where(
            batch["labels"] == -100, -100, np.take_along_axis(ids, batch["target_mapping"].argmax(2), 1)
        )
    if name in ("masked-lm", "next-sentence", "sentence-order"):
        hidden = batch["labels"] != -100
        objective.masking.shares = (0.0, 0.0, 1.0)  # the same draws, and nothing is hidden
        whole = objective.batch(examples, seed=0, epoch=0)["input_ids"]
        return np.where(hidden, whole, -100)
    if name == "blank-infilling":  # in a piece the next token, at its end the end token
        block = np.pad(batch["block_position_ids"], ((0, 0), (0, 1)))
        goes_on = block[:, 1:] == block[:, :-1] + 1
        following = np.where(goes_on, np.roll(ids, -1, 1), tokenizer.id_of("<|endofpiece|>"))
        return np.where(block[:, :-1] > 0, following, -100)
    return None  # a decoder: below


def cross_entropy(logits, wanted):
    z = logits.astype(np.float64)
    z = z - z.max(-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    kept = wanted != -100
    return -np.take_along_axis(logp, np.where(kept, wanted, 0)[..., None], -1)[..., 0][kept].mean()


@pytest.mark.parametrize("family, head, name", PAIRS, ids=["-".join(p) for p in PAIRS])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_what_is_claimed(family, head, name, smoothing):
    tokenizer = fakes.Numbers(TOKENIZERS.get(family, family), plain=300, sentinels=40)
    corpus = fakes.corpus(tokenizer)
    data = (corpus, corpus) if name == "translation" else (corpus,)
    streams = {"streams": 3} if name in ("causal-lm", "permutation-lm") else {}
    objective = objectives.make(name, *data, tokenizer, length=LENGTH, **streams)
    config = {"model_type": family, "vocab_size": tokenizer.vocab_size, **SMALL[family]}
    if kinds.NEXT in kinds.taken(models.family(family).HEADS[head]) and family in ("bert", "roberta"):
        config["is_decoder"] = True
    plm.seed(0)
    lm = plm.from_config(config, head)
    model = lm.model.eval()
    examples = np.array([0, 5, 7])
    batch = objective.batch(examples, seed=0, epoch=0)
    terms, _ = criteria.run(criteria.of(model, smoothing), model, batch)
    found = criteria.loss(terms, {name: term.count for name, term in terms.items()}).item()

    tensors = {k: plm.Tensor(v) for k, v in batch.items()}
    wanted = claimed(objective, name, corpus, tokenizer, batch, examples)
    rest = {k: t for k, t in tensors.items() if k != "labels" and not k.endswith("_label")}
    if wanted is None:  # the decoder writes the labels, each from those before it
        wanted = batch["labels"]
        if "decoder_input_ids" not in batch:
            first = np.full((len(wanted), 1), SMALL[family]["decoder_start_token_id"])
            rest["decoder_input_ids"] = plm.Tensor(
                np.hstack([first, np.where(wanted == -100, 0, wanted)[:, :-1]])
            )
    out = model(**rest)
    logits = (out.prediction_logits if head == "pretraining" else out.logits).numpy()
    expected = cross_entropy(logits, wanted)
    if smoothing:
        everything = [
            cross_entropy(logits, np.where(wanted == -100, -100, k)) for k in range(logits.shape[-1])
        ]
        expected = (1 - smoothing) * expected + smoothing * np.mean(everything)
    for label, scores in kinds.OF_SEQUENCES.items():
        if label in batch:
            expected += cross_entropy(out[scores].numpy(), batch[label].ravel())
    assert found == pytest.approx(expected, rel=1e-4)
    assert terms["labels"].count == np.count_nonzero(wanted != -100)


def test_every_recipe_is_among_them():
    found = {family: recipes.recipe(family) for family in recipes.names() if not spells(family)}
    mine = {(family, recipe.head, recipe.objective["name"]) for family, recipe in found.items()}
    assert mine <= set(PAIRS)


def test_every_head_with_a_loss_of_tokens_says_which_labels_it_takes():
    """By the name of its loss: heads of classes, spans and choices have labels of their own."""
    for family in models.FAMILIES:
        for head, cls in models.family(family).HEADS.items():
            if head in ("masked-lm", "causal-lm", "seq2seq-lm", "pretraining"):
                assert kinds.taken(cls), (family, head)
