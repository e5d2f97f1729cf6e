"""Ids as transformers' generate gives them, over random prompts, greedy and with beams and the options that
change scores.
"""

import zlib

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed

torch = pytest.importorskip("torch")
V, EOS, PAD = 40, 2, 1
GPT = dict(vocab_size=V, n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=None, eos_token_id=None)
STACKS = dict(
    vocab_size=V,
    d_model=16,
    max_position_embeddings=64,
    encoder_layers=1,
    decoder_layers=2,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=24,
    decoder_ffn_dim=24,
    pad_token_id=PAD,
    eos_token_id=EOS,
    bos_token_id=0,
)
T5 = dict(
    vocab_size=V,
    d_model=16,
    d_kv=8,
    d_ff=24,
    num_layers=2,
    num_heads=2,
    relative_attention_num_buckets=8,
    relative_attention_max_distance=12,
    decoder_start_token_id=0,
)
FAMILIES = {
    "gpt2": ("GPT2LMHeadModel", GPT),
    "gpt1": ("OpenAIGPTLMHeadModel", GPT),
    "bart": ("BartForConditionalGeneration", STACKS),
    "mbart": ("MBartForConditionalGeneration", STACKS | dict(decoder_start_token_id=3)),
    "marian": ("MarianMTModel", STACKS | dict(decoder_start_token_id=PAD, forced_eos_token_id=None)),
    "t5": ("T5ForConditionalGeneration", T5),
    "xlnet": (
        "XLNetLMHeadModel",
        dict(vocab_size=V, d_model=16, n_layer=2, n_head=2, d_inner=24, mem_len=None),
    ),
}
OPTIONS = [
    dict(),
    dict(num_beams=2),
    dict(num_beams=4),
    dict(num_beams=8, num_return_sequences=3),
    dict(num_beams=4, length_penalty=2.0, early_stopping=True),
    dict(num_beams=3, length_penalty=0.0, early_stopping="never"),
    dict(num_beams=4, length_penalty=-1.0, early_stopping="never", min_new_tokens=4),
    dict(num_beams=3, no_repeat_ngram_size=2, repetition_penalty=1.4),
    dict(no_repeat_ngram_size=2, repetition_penalty=0.8, min_new_tokens=6),
    dict(num_beams=2, bad_words_ids=[[5], [7, 8], [9, 4, 3], [EOS]], forced_eos_token_id=EOS),
    dict(num_beams=4, eos_token_id=[EOS, 6, 11], num_return_sequences=4),
    dict(bad_words_ids=[[5], [7, 8]], eos_token_id=[EOS, 6]),
]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Both models of each family; the head is peaked, so that scores are far apart, and ends often enough."""
    found = {}

    def pair(family):
        if family not in found:
            name, config = FAMILIES[family]
            folder = tmp_path_factory.mktemp(family)
            model = parity.reference(name, config, folder, seed=4)
            found[family] = model, plm.load(folder)
        return found[family]

    return pair


@pytest.mark.parametrize("family", FAMILIES)
def test_same_ids(family, pairs):
    model, lm = pairs(family)
    rng = np.random.default_rng(zlib.crc32(family.encode()))
    encodes, count, differ = model.config.is_encoder_decoder, 0, []
    for number, options in enumerate(OPTIONS * 3):
        B, T = int(rng.integers(5, 8)), int(rng.integers(1 if family != "xlnet" else 2, 9))
        ids = rng.integers(3, V, (B, T))
        options = dict(max_new_tokens=int(rng.integers(3, 15)), eos_token_id=EOS, pad_token_id=PAD) | options
        options["min_new_tokens"] = min(options.get("min_new_tokens", 0), options["max_new_tokens"])
        mask = None
        if family in ("gpt2", "bart", "t5", "marian", "mbart") and number % 2:
            mask = parity.mask(rng, B, T, "right" if encodes else "left")
            if "no_repeat_ngram_size" in options and not encodes:
                mask = None  # there padding counts as text
        with torch.no_grad():
            given = dict(attention_mask=None if mask is None else torch.tensor(mask))
            theirs = model.generate(torch.tensor(ids), **given, **options).numpy()
        ours = lm.generate(ids, attention_mask=mask, **options)
        count += B
        if ours.shape != theirs.shape or not (ours == theirs).all():
            differ.append((options, ours.tolist(), theirs.tolist()))
    assert count >= 200
    assert not differ, differ[0]


@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_scores(family, pairs):
    model, lm = pairs(family)
    ids = np.random.default_rng(8).integers(3, V, (4, 6))
    for options in (dict(num_beams=3, length_penalty=0.6), dict()):
        asked = dict(max_new_tokens=9, eos_token_id=EOS, pad_token_id=PAD, forced_eos_token_id=None) | options
        with torch.no_grad():
            there = model.generate(
                torch.tensor(ids), **asked, output_scores=True, return_dict_in_generate=True
            )
            steps = model.compute_transition_scores(
                there.sequences,
                there.scores,
                getattr(there, "beam_indices", None),
                normalize_logits="num_beams" not in options,
            ).numpy()
        here = lm.generate(ids, **asked, output_scores=True)
        assert (here.sequences == there.sequences.numpy()).all()
        if options:
            np.testing.assert_allclose(here.scores, there.sequences_scores.numpy(), atol=1e-5)
        for ours, theirs in zip(here.token_scores, steps):
            np.testing.assert_allclose(ours, theirs[: len(ours)], atol=1e-5)


def test_constraint_and_forced_first_token(pairs):
    def allowed(prompt, ids):
        return [int(ids[-1]) % 7 + 3, 20 + prompt, EOS]

    for family in ("gpt2", "bart"):
        model, lm = pairs(family)
        ids = np.random.default_rng(9).integers(3, V, (3, 5))
        for beams in (1, 3):
            asked = dict(
                max_new_tokens=8,
                num_beams=beams,
                eos_token_id=EOS,
                pad_token_id=PAD,
                prefix_allowed_tokens_fn=allowed,
            )
            asked |= dict(forced_bos_token_id=0) if family == "bart" else {}
            asked |= dict(forced_eos_token_id=None)
            with torch.no_grad():
                theirs = model.generate(torch.tensor(ids), **asked).numpy()
            np.testing.assert_array_equal(lm.generate(ids, **asked), theirs)
