import math
import pickle
from pathlib import Path

import numpy as np
import plmcore as plm
import pytest
from plmcore.data import Corpus
from plmcore.evaluate.likelihood import Perplexity, perplexity, windows
from small_models import CAUSAL, GPT2, MASKED, SEQ2SEQ, TEXT, log_softmax, sharp


@pytest.fixture(scope="module")
def characters():
    return plm.tokenizers.train_tokenizer(texts=[TEXT], kind="characters", vocab_size=None)


@pytest.fixture(scope="module")
def wordpiece():
    return plm.tokenizers.train_tokenizer(texts=[TEXT], kind="wordpiece", vocab_size=60)


@pytest.mark.parametrize("n", [1, 2, 9, 10, 11, 12, 50])
@pytest.mark.parametrize(("window", "stride"), [(10, 10), (10, 1), (10, 3), (1, 1)])
@pytest.mark.parametrize("before", [[], [-5]])
def test_windows_score_each_token_once_with_as_much_context_as_fits(n, window, stride, before):
    ids = np.arange(n)
    for piece in (1, 4, 100):
        scored = []
        for tokens, first in windows(
            (ids[i : i + piece] for i in range(0, n, piece)), window, stride, before
        ):
            assert len(tokens) <= window + 1 and 1 <= first < len(tokens)
            for i in range(first, len(tokens)):
                token = tokens[i]
                scored.append(token)
                assert i >= min(token + len(before), window + 1 - stride)  # tokens before it
                assert np.array_equal(
                    tokens[i - min(i, token) : i + 1], np.arange(token - min(i, token), token + 1)
                )
        assert scored == list(range(n))[0 if before else 1 :]


@pytest.mark.parametrize("family", CAUSAL)
def test_causal(family):
    lm = sharp(CAUSAL[family], "causal-lm")
    ids = np.random.default_rng(1).integers(4, 40, 45)
    for window, stride in [(16, 16), (16, 5), (7, 2)]:
        nll = 0.0
        for at in range(1, 45):  # the window that scores this token, by formula
            begin = 0 if at <= window else stride * math.ceil((at - window) / stride)
            with plm.no_grad():
                logp = log_softmax(lm(input_ids=ids[None, begin:at]).logits)[0, -1]
            nll -= logp[ids[at]]
        got = perplexity(lm, ids, window=window, stride=stride, batch_tokens=50)
        assert (
            got.tokens == 44
            and got.nll == pytest.approx(nll, rel=1e-5)
            and got == pytest.approx(math.exp(nll / 44))
        )
    assert perplexity(lm, ids).nll == pytest.approx(perplexity(lm, ids, window=16, stride=8).nll)
    assert math.isnan(got.per_word) and "words" not in got.to_dict()


def remembering(tokenizer=None, **changes):
    return sharp(
        dict(
            model_type="transfo-xl", cutoffs=[8, 20], d_model=12, d_embed=12, n_head=2, d_head=6, d_inner=16,
            div_val=2, n_layer=2, mem_len=100, clamp_len=-1, same_length=False, **changes,
        ),
        "causal-lm",
        tokenizer,
    )  # fmt: skip


def test_a_model_with_a_memory_reads_on():
    """Windows with a memory that holds all are one pass; a shorter memory is another model."""
    lm, ids = remembering(), np.random.default_rng(1).integers(0, 40, 70)
    with plm.no_grad():
        scores = lm(input_ids=ids[None], mems=()).logits.numpy()[0].astype(np.float64)
    nll = -scores[np.arange(69), ids[1:]].sum()
    for window in (7, 35, 69, 100):
        found = perplexity(lm, ids, window=window)
        assert found.tokens == 69 and found.nll == pytest.approx(nll, rel=1e-5)
    two = perplexity(lm, [ids, ids[:30]], window=9)  # texts do not see each other
    assert two.nll == pytest.approx(nll + perplexity(lm, ids[:30], window=9).nll, rel=1e-6)
    lm.model.body.config = lm.config.replace(mem_len=3)
    assert abs(perplexity(lm, ids, window=7).nll - nll) > 0.1
    with pytest.raises(plm.ArgumentError, match="windows do not overlap"):
        perplexity(lm, ids, stride=3)
    with pytest.raises(plm.ArgumentError, match="at least 1 token, got 0"):
        perplexity(lm, ids, window=0)


def test_units(characters):
    lm = sharp(GPT2, "causal-lm", characters)
    text = "the cat sat on\n the other mat."
    got = lm.perplexity(text)
    assert (got.tokens, got.words, got.characters, got.bytes) == (len(text) - 1, 7, len(text), len(text))
    assert got.per_token == float(got) == pytest.approx(math.exp(got.nll / 29))
    assert got.per_word == pytest.approx(math.exp(got.nll / 7))
    assert got.bits_per_token == pytest.approx(math.log2(got))
    assert 2**got.bits_per_byte == pytest.approx(got.per_byte) and 2**got.bits_per_character == pytest.approx(
        got.per_character
    )
    assert got.to_dict()["per_word"] == got.per_word and pickle.loads(pickle.dumps(got)).words == 7
    start = lm.perplexity(text, start=0)
    assert start.tokens == len(text)
    assert lm.perplexity("été été été").bytes == 17


def test_texts_files_and_ids_agree(characters, tmp_path, monkeypatch):
    lm = sharp(GPT2, "causal-lm", characters)
    file = tmp_path / "text.txt"
    file.write_text(TEXT)
    want = lm.perplexity(TEXT)
    ids = characters.encode_ids([TEXT])[0]
    assert lm.perplexity(ids).nll == lm.perplexity(ids.tolist()).nll == want.nll
    monkeypatch.setattr("plmcore.evaluate.texts.pieces.__defaults__", (50, "strict"))
    seen = []
    got = lm.perplexity(file, progress=seen.append)
    assert got.nll == pytest.approx(want.nll) and got.words == want.words and got.bytes == want.bytes
    assert seen == sorted(seen) and seen[-1] == len(TEXT) and len(seen) > 3


def test_several_texts_do_not_see_each_other(characters):
    lm = sharp(GPT2, "causal-lm", characters)
    texts = ["the cat sat", "on", "the mat and the dog ran far"]
    apart = [lm.perplexity(t) for t in texts]
    got = lm.perplexity(texts)
    assert got.nll == pytest.approx(sum(p.nll for p in apart), rel=1e-5) and got.words == 11
    corpus = Corpus.from_ids(characters.encode_ids(texts), vocab_size=characters.vocab_size)
    assert lm.perplexity(corpus).nll == pytest.approx(got.nll, rel=1e-5)


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert"])
def test_masked(family, wordpiece):
    lm = sharp(MASKED[family], "masked-lm", wordpiece)
    text = "the cat sat on the mat and the dog ran"
    ids = wordpiece(text).input_ids
    assert len(ids) <= 16
    nll = 0.0
    for i in range(1, len(ids) - 1):
        hidden = ids.copy()
        hidden[i] = wordpiece.mask_token_id
        with plm.no_grad():
            nll -= log_softmax(lm(input_ids=hidden[None]).logits)[0, i, ids[i]]
    got = lm.perplexity(text)
    assert got.tokens == len(ids) - 2 and got.nll == pytest.approx(nll, rel=1e-5) and got.words == 10
    long = lm.perplexity(text + " " + text, window=len(ids))  # two windows, each with its own [CLS] and [SEP]
    assert long.nll == pytest.approx(2 * nll, rel=1e-5)


def test_pretraining_head(wordpiece):
    lm = sharp(MASKED["bert"], "pretraining", wordpiece)
    assert lm.perplexity("the cat sat").tokens == len(wordpiece.encode_ids(["the cat sat"])[0])


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_seq2seq(family, wordpiece):
    lm = sharp(SEQ2SEQ[family], "seq2seq-lm", wordpiece)
    sources, targets = ["the cat sat on the mat", "home"], ["the dog", "ran far away from home"]
    nll = tokens = 0
    for source, target in zip(sources, targets):
        labels = wordpiece(target).input_ids[None]
        with plm.no_grad():
            nll += lm(input_ids=wordpiece(source).input_ids[None], labels=labels).loss.item() * labels.size
        tokens += labels.size
    got = lm.perplexity(targets, sources)
    assert got.nll == pytest.approx(nll, rel=1e-5) and got.tokens == tokens and got.words == 7
    assert lm.perplexity(targets[0], sources[0]).words == 2
    other = plm.tokenizers.train_tokenizer(texts=[TEXT], kind="wordpiece", vocab_size=40)
    got = lm.perplexity(targets[0], sources[0], target_tokenizer=other)
    assert got.tokens == len(other(targets[0]).input_ids) > len(wordpiece(targets[0]).input_ids)


def test_a_uniform_model_has_the_size_of_its_vocabulary(characters):
    lm = plm.from_config(GPT2, "causal-lm", vocab_size=characters.vocab_size, n_layer=1).eval()
    lm.tokenizer = characters
    lm.model.load_state_dict({k: np.zeros(v.shape, np.float32) for k, v in lm.model.state_dict().items()})
    assert lm.perplexity(TEXT) == pytest.approx(characters.vocab_size, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda lm: lm.perplexity("x"), ValueError, "no tokens to score; a text needs at least two"),
        (lambda lm: lm.perplexity(""), ValueError, "no tokens to score"),
        (lambda lm: lm.perplexity([]), ValueError, "no tokens to score"),
        (
            lambda lm: lm.perplexity("the cat", window=17),
            ValueError,
            "17 tokens is more than the 16 positions",
        ),
        (
            lambda lm: lm.perplexity("the cat", stride=17),
            ValueError,
            "stride must be from 1 to the window's 16, got 17",
        ),
        (lambda lm: lm.perplexity("the cat", stride=0), ValueError, "stride must be from 1"),
        (lambda lm: lm.perplexity("the cat", window=0), ValueError, "at least 1 token, got 0"),
        (lambda lm: lm.perplexity("the cat", "a source"), ValueError, "a causal model takes no sources"),
        (lambda lm: lm.perplexity(np.zeros((2, 3, 4))), TypeError, "arrays of ids"),
        (lambda lm: lm.perplexity([1.5, 2.5]), TypeError, "takes texts, paths of files and arrays of ids"),
        (lambda lm: lm.perplexity(Path("nowhere.txt")), FileNotFoundError, "nowhere.txt"),
        (lambda lm: lm.perplexity([1, 2, 99999]), (ValueError, IndexError), "99999"),
    ],
)
def test_bad_input(characters, call, error, message):
    with pytest.raises(error, match=message):
        call(sharp(GPT2, "causal-lm", characters))


def test_bad_models(wordpiece):
    with pytest.raises(ValueError, match="perplexity: this model has no tokenizer"):
        sharp(GPT2, "causal-lm").perplexity("the cat")
    with pytest.raises(ValueError, match="needs sources="):
        sharp(SEQ2SEQ["t5"], "seq2seq-lm", wordpiece).perplexity("the cat")
    with pytest.raises(ValueError, match="2 texts and 1 sources"):
        sharp(SEQ2SEQ["t5"], "seq2seq-lm", wordpiece).perplexity(["a", "b"], ["c"])
    masked = sharp(MASKED["bert"], "masked-lm", wordpiece)
    with pytest.raises(ValueError, match="so there is no stride"):
        masked.perplexity("the cat", stride=2)
    with pytest.raises(ValueError, match="more than 2 and at most 16 tokens, got 2"):
        masked.perplexity("the cat", window=2)


def test_broken_weights(characters):
    lm = sharp(GPT2, "causal-lm", characters)
    lm.model.load_state_dict({k: v.numpy() * np.nan for k, v in lm.model.state_dict().items()})
    with pytest.raises(ValueError, match="the model gives nan among the first"):
        lm.perplexity("the cat")


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_other_dtypes(characters, dtype):
    lm = sharp(GPT2, "causal-lm", characters)
    want = lm.perplexity(TEXT)
    lm.model.to(dtype)
    assert lm.perplexity(TEXT).nll == pytest.approx(want.nll, rel=1e-5 if dtype == "float64" else 0.05)


def test_extremes():
    assert Perplexity(1e6, 1) == math.inf and math.isnan(Perplexity(0.0, 0)) and Perplexity(0.0, 5) == 1.0


def test_memory_does_not_grow_with_the_text(characters, tmp_path):
    import tracemalloc

    lm = sharp(dict(GPT2, n_layer=1, n_embd=8, n_positions=64), "causal-lm", characters)
    peaks = []
    for times in (500, 2500):
        file = tmp_path / f"{times}.txt"
        file.write_text(TEXT * times)
        stop = [0]

        class Enough(Exception):
            pass

        def progress(done, stop=stop):
            stop[0] += 1
            if stop[0] == 3:
                raise Enough

        tracemalloc.start()
        with pytest.raises(Enough):
            lm.perplexity(file, stride=64, progress=progress)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
