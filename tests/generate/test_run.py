import json
import os
import signal
import threading

import numpy as np
import plmcore as plm
import pytest
from generating_models import EOS, MODELS, PAD, TOKENS, V, model
from plmcore.generate.steps import Steps
from plmcore.models import bert, gpt2
from soak import settled, soak


def full_greedy(lm, ids, n):
    """Without caches: the whole sequence at each step."""
    ids = np.asarray(ids)
    source, out = ids, ids[:, :0]
    encodes = lm.head == "seq2seq-lm"
    start = np.full((len(ids), 1), lm.config.decoder_start_token_id) if encodes else ids
    with plm.no_grad():
        for _ in range(n):
            now = np.concatenate([start, out], 1)
            logits = (lm(input_ids=source, decoder_input_ids=now) if encodes else lm(now)).logits.numpy()[
                :, -1
            ]
            out = np.concatenate([out, logits.argmax(-1)[:, None]], 1)
    return np.concatenate([start, out], 1)


@pytest.mark.parametrize("family", ["gpt2", "gpt3", "bart", "mass", "t5"])
def test_greedy_without_and_with_caches(family):
    lm = model(family)
    ids = np.random.default_rng(1).integers(3, V, (3, 5))
    found = lm.generate(ids, max_new_tokens=10, eos_token_id=None, forced_eos_token_id=None)
    np.testing.assert_array_equal(found, full_greedy(lm, ids, 10))
    assert found.dtype == np.int64


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(num_beams=4, num_return_sequences=2),
        dict(do_sample=True, num_return_sequences=3),
        dict(num_beams=3, no_repeat_ngram_size=2),
    ],
    ids=["greedy", "beams", "samples", "ngrams"],
)
def test_prompts_of_any_length_together(family, options):
    lm, rng = model(family), np.random.default_rng(3)
    prompts = [list(rng.integers(3, V, n)) for n in (4, 2, 7, 3, 7)]
    asked = dict(max_new_tokens=8, eos_token_id=EOS, pad_token_id=PAD, output_scores=True) | options
    together = lm.generate(prompts, **asked, seed=5)
    R = asked.get("num_return_sequences", 1)
    for i, prompt in enumerate(prompts):
        alone = lm.generate([prompt], **asked, seed=5 + i)
        for j in range(R):
            ours, theirs = together.sequences[i * R + j], alone.sequences[j]
            if lm.head == "causal-lm":
                ours = ours[7 - len(prompt) :]
            n = min(len(ours), len(theirs))
            assert (ours[:n] == theirs[:n]).all() and (ours[n:] == PAD).all() and (theirs[n:] == PAD).all()
            np.testing.assert_allclose(
                together.token_scores[i * R + j], alone.token_scores[j], atol=1e-5, rtol=1e-5
            )
        np.testing.assert_allclose(together.scores[i * R : (i + 1) * R], alone.scores, atol=1e-5, rtol=1e-5)


def test_padding_is_no_text():
    lm = model("gpt2")
    ids = np.array([[PAD, PAD, 5, 9, 3], [7, 8, 4, 11, 6]])
    asked = dict(max_new_tokens=6, eos_token_id=EOS, pad_token_id=PAD, num_beams=2)
    found = lm.generate(ids, **asked)
    np.testing.assert_array_equal(found[:, :5], ids)
    np.testing.assert_array_equal(lm.generate(ids, attention_mask=ids != PAD, **asked), found)
    alone = lm.generate(ids[:1, 2:], **asked)[0, 3:]
    np.testing.assert_array_equal(found[0, 5 : 5 + len(alone)], alone)
    np.testing.assert_array_equal(lm.generate(ids[0, 2:], **asked)[3:], alone)  # one prompt in, one out
    text = lm.generate(ids, **asked | dict(pad_token_id=EOS))  # the end of sequences is text
    assert text.shape[0] == 2


def test_modes():
    lm = model("gpt2").train()
    ids = [[5, 6, 7]]
    found = lm.generate(ids, max_new_tokens=6)
    assert lm.model.training
    np.testing.assert_array_equal(found, lm.eval().generate(ids, max_new_tokens=6))
    assert not any(p.grad is not None for p in lm.parameters())


@pytest.mark.parametrize(
    "ids, options, message",
    [
        ([[]], {}, "not empty"),
        ([], {}, "not empty"),
        ([[1, 2], []], {}, "prompt 1 is empty"),
        ([[1, 99]], {}, "the id 99 is not in the vocabulary of 30"),
        ([[1.5, 2.0]], {}, "whole numbers"),
        ([list(range(3, 28))], {}, "25 tokens, and the model 24 positions"),
        ([[3, 4]], dict(max_new_tokens=24), "at most 23 new ones fit"),
        ([[3, 4]], dict(max_new_tokens=0), "at least 1, got 0"),
        ([[3, 4]], dict(max_length=2), "max_length = 2"),
        ([[3, 4]], dict(num_beams=31), "num_beams = 31 is more than the vocabulary of 30"),
        ([[3, 4]], dict(num_beam=3), "no option 'num_beam'"),
        ([[3, 4]], dict(num_beams=2, do_sample=True), "sampling has no beams"),
        ([[3, 4]], dict(num_return_sequences=2), "at most num_beams = 1"),
        (
            [[3, 4]],
            dict(min_new_tokens=9, max_new_tokens=5),
            "min_new_tokens must be at most max_new_tokens = 5",
        ),
        ([[3, 4]], dict(num_beams=4, num_beam_groups=3), "a multiple of num_beam_groups"),
        ([[3, 4]], dict(max_new_tokens=2.5), "a whole number"),
        ([[3, 4]], dict(early_stopping="maybe"), "early_stopping"),
        ([[3, 4]], dict(length_penalty_form="log"), "length_penalty_form"),
        ([[3, 4]], dict(stop_strings="x"), "tokenizer"),
        ([[3, 4]], dict(attention_mask=[[1]]), "attention_mask must be"),
        ([[3, 4]], dict(decoder_input_ids=[[1]]), "no encoder"),
        ("text", {}, "no tokenizer"),
        (5, {}, "not empty"),
        ({"a": 1}, {}, "got dict"),
    ],
)
def test_bad_input(ids, options, message):
    lm = model("gpt2")
    with pytest.raises(ValueError, match=message):
        lm.generate(ids, **options)
    assert lm.generate([[3, 4]], max_new_tokens=23).shape == (1, 25)


def test_not_every_head_makes_text():
    config = bert.BertConfig(vocab_size=V, hidden_size=8, num_attention_heads=2, num_hidden_layers=1)
    with pytest.raises(ValueError, match="makes no text"):
        plm.from_config(config, "masked-lm").generate([[3]])


def test_a_model_that_fails_leaves_no_trace():
    lm = model("gpt2")
    before = lm.generate([[3, 4]], max_new_tokens=5)
    weight = lm.model.body.norm.gamma
    kept = weight.numpy().copy()
    plm._core.assign(weight, plm.Tensor(np.full_like(kept, np.nan)))
    with pytest.raises(ValueError, match="logits for prompt 0 hold NaN"):
        lm.generate([[3, 4]], max_new_tokens=5)
    plm._core.assign(weight, plm.Tensor(kept))
    np.testing.assert_array_equal(lm.generate([[3, 4]], max_new_tokens=5), before)


@pytest.mark.parametrize("options", [dict(), dict(num_beams=3), dict(do_sample=True), dict(trace=True)])
@pytest.mark.parametrize("family", MODELS)
def test_a_step_that_raises(family, options, monkeypatch):
    """At whatever step it happens, the caller sees it; nothing stays, and the model works afterwards."""
    lm, asked = model(family), dict(max_new_tokens=6, eos_token_id=None, forced_eos_token_id=None) | options
    before = as_ids(lm.generate([[3, 4], [5, 6]], **asked))
    in_use = settled()[1]
    real = Steps.__call__
    for last in (0, 1, 4):

        def step(self, search):
            if search.steps == last:
                raise RuntimeError("the disk is gone")
            return real(self, search)

        with monkeypatch.context() as patch:
            patch.setattr(Steps, "__call__", step)
            with pytest.raises(RuntimeError, match="the disk is gone"):
                lm.generate([[3, 4], [5, 6]], **asked)
        assert settled()[1] == in_use
    np.testing.assert_array_equal(as_ids(lm.generate([[3, 4], [5, 6]], **asked)), before)


def as_ids(found):
    return found if isinstance(found, np.ndarray) else found.sequences


def test_memory_stays_flat():
    """tests/soak.py is the long one."""
    grown, tensors = soak(100)
    assert tensors == 0
    assert grown < 4e6 or "asan" in os.environ.get("LD_PRELOAD", "")  # which keeps what is freed


def test_it_can_be_interrupted():
    """Within a step, and the model works afterwards."""
    lm = plm.from_config(
        gpt2.GPT2Config(vocab_size=V, n_positions=4000, n_embd=12, n_layer=2, n_head=3), "causal-lm"
    )
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    timer = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in range(50):
                lm.generate([[3, 4]], max_new_tokens=3990, eos_token_id=None)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert lm.generate([[3, 4]], max_new_tokens=3).shape == (1, 5)


@pytest.mark.parametrize("options", [dict(), dict(num_beams=3), dict(do_sample=True)])
def test_ctrl_c_ends_it_within_a_step(options, monkeypatch):
    lm, begun, real = model("gpt2"), [], Steps.step

    def step(self, *asked):
        begun.append(asked)
        if len(begun) == 4:
            signal.raise_signal(signal.SIGINT)
        return real(self, *asked)

    monkeypatch.setattr(Steps, "step", step)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            lm.generate([[3, 4]], max_new_tokens=20, eos_token_id=None, **options)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(begun) == 4
    assert lm.generate([[3, 4]], max_new_tokens=3, eos_token_id=None, **options).shape == (1, 5)


# ---- texts ----


@pytest.fixture
def folder(tmp_path):
    """A directory with a tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    model("gpt2").save(tmp_path)
    words = Tokenizer(models.WordLevel({t: i for i, t in enumerate(TOKENS)}, unk_token="<s>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.add_special_tokens(["<pad>", "<s>", "</s>"])
    words.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_texts(folder):
    lm = plm.load(folder)
    text = lm.generate("once upon a time", max_new_tokens=6)
    assert text.startswith("once upon a time ") and len(text.split()) <= 10
    both = lm.generate(["once upon a time", "the cat"], max_new_tokens=6)
    assert both[0] == text and both[1].startswith("the cat ")
    many = lm.generate("the cat", max_new_tokens=6, num_beams=3, num_return_sequences=3)
    assert len(many) == len(set(many)) == 3
    word = text.split()[6]
    stopped = lm.generate("once upon a time", max_new_tokens=6, stop_strings=[word])
    assert stopped == " ".join(text.split()[: text.split().index(word, 4) + 1])


@pytest.mark.parametrize(
    "options", [dict(), dict(num_beams=3, num_return_sequences=2), dict(do_sample=True, seed=4)]
)
def test_stop_strings_end_each_sequence_on_its_own(folder, options):
    lm = plm.load(folder)
    prompts = ["once upon a time", "the cat", "a dog and the cat"]
    asked = dict(max_new_tokens=9, eos_token_id=None, output_scores=True) | options
    free = lm.generate(prompts, **asked)
    R = len(free.texts) // len(prompts)
    new_words = lambda found, i: (
        found.texts[i].removeprefix(prompts[i // R]).split()[: len(found.token_scores[i])]
    )
    stops = sorted({new_words(free, i)[2] for i in range(len(free.texts))})
    found = lm.generate(prompts, stop_strings=stops, **asked)
    lengths = set()
    for i in range(len(found.texts)):
        new = new_words(found, i)
        assert not any(stop in " ".join(new[:-1]) for stop in stops)  # what a prompt has is no end
        assert len(new) == 9 or any(stop in new[-1] for stop in stops)
        lengths.add(len(new))
    assert min(lengths) <= 3


def test_texts_without_tokens(folder):
    lm = plm.load(folder)
    for text in ("", "   ", ["once upon", ""], []):
        with pytest.raises(ValueError, match="empty"):
            lm.generate(text)
    with pytest.raises(ValueError, match="prompt 0 is empty"):
        lm.stream("")
    with pytest.raises(ValueError, match="30 tokens, and the model 24 positions"):
        lm.generate("cat " * 30)
    assert lm.generate("once upon", max_new_tokens=2)


def test_streams(folder):
    lm = plm.load(folder)
    for options in (dict(), dict(do_sample=True, seed=3)):
        pieces = list(lm.stream("once upon a time", max_new_tokens=6, **options))
        assert len(pieces) > 1
        assert "once upon a time" + "".join(pieces) == lm.generate(
            "once upon a time", max_new_tokens=6, **options
        )
    with pytest.raises(ValueError, match="without beams"):
        lm.stream("once", num_beams=2)


def test_stored_options(folder):
    (folder / "generation_config.json").write_text(
        json.dumps(dict(max_new_tokens=3, num_beams=2, eos_token_id=[2, 4]))
    )
    lm = plm.load(folder)
    assert lm.generate([[5, 6]]).shape[1] <= 5
    assert lm.generate([[5, 6]], max_new_tokens=7, eos_token_id=None).shape[1] == 9
    np.testing.assert_array_equal(lm.generate([[5, 6]]), lm.generate([[5, 6]], num_beams=2, max_new_tokens=3))
    (folder / "generation_config.json").write_text("[1")
    with pytest.raises(plm.FormatError, match="not valid JSON"):
        lm.generate([[5, 6]])


# ---- scores ----


def test_score():
    lm = model("gpt2")
    rows = [[5, 6, 7, 8], [9, 3], [4, 11, 6]]
    found = lm.score(rows)
    for row, scores in zip(rows, found):
        with plm.no_grad():
            logits = lm([row]).logits.numpy()[0].astype(np.float64)
        expected = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        np.testing.assert_allclose(scores, [expected[i, t] for i, t in enumerate(row[1:])], atol=1e-5)
    made = lm.generate([[5, 6]], max_new_tokens=5, output_scores=True)
    np.testing.assert_allclose(lm.score(made.sequences)[0][1:], made.token_scores[0], atol=1e-5)


def test_score_of_targets():
    lm = model("t5")
    sources, targets = [[5, 6, 7], [9, 3]], [[4, 8, 1], [7, 1]]
    for source, target, scores in zip(sources, targets, lm.score(sources, targets)):
        with plm.no_grad():
            logits = lm(input_ids=[source], labels=[target]).logits.numpy()[0].astype(np.float64)
        expected = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        np.testing.assert_allclose(scores, [expected[i, t] for i, t in enumerate(target)], atol=1e-5)
    with pytest.raises(ValueError, match="takes targets"):
        lm.score(sources)
    with pytest.raises(ValueError, match="takes no targets"):
        model("gpt2").score(sources, targets)
