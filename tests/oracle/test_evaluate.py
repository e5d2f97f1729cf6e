"""Perplexity and choices against transformers, and metrics on real data where it is at hand."""

import math
import os
import pathlib

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed

torch = parity.torch
pytestmark = pytest.mark.oracle
DATA = pathlib.Path(os.environ.get("PLM_DATA", pathlib.Path(__file__).parents[2].parent / "shared" / "data"))
GPT2 = dict(vocab_size=60, n_embd=16, n_layer=2, n_head=2, n_positions=16)


def strided(model, ids, length, stride):
    """The loop of transformers' guide to perplexity: windows of `length` tokens, of which those are scored
    that are new.
    """
    nll, count, before = 0.0, 0, 0
    for begin in range(0, len(ids), stride):
        end = min(begin + length, len(ids))
        window = torch.tensor(ids[None, begin:end])
        labels = window.clone()
        labels[:, : -(end - before)] = -100
        with torch.no_grad():
            loss = model(window, labels=labels).loss.item()
        scored = int((labels[:, 1:] != -100).sum())
        nll, count, before = nll + loss * scored, count + scored, end
        if end == len(ids):
            return math.exp(nll / count), count


@pytest.mark.parametrize("stride", [1, 5, 15])
@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "OpenAIGPTLMHeadModel"])
def test_sliding_windows(name, stride, tmp_path):
    theirs = parity.reference(name, GPT2, tmp_path)
    lm = plm.load(tmp_path)
    ids = np.random.default_rng(stride).integers(0, 60, 101)
    got = lm.perplexity(ids, window=15, stride=stride)  # and the token that follows them: 16
    want, count = strided(theirs, ids, 16, stride)
    assert got == pytest.approx(want, rel=1e-4) and got.tokens == count == 100
    short = torch.tensor(ids[None, :16])
    assert lm.perplexity(ids[:16]) == pytest.approx(
        math.exp(theirs(short, labels=short).loss.item()), rel=1e-5
    )


def test_xlnet(tmp_path):
    theirs = parity.reference(
        "XLNetLMHeadModel", dict(vocab_size=60, d_model=12, n_layer=2, n_head=3, d_inner=20), tmp_path
    )
    ids = np.random.default_rng(0).integers(0, 60, 12)
    nll = 0.0
    for at in range(1, 12):  # one target at a time, from the tokens before it
        hide, target = torch.zeros(1, at + 1, at + 1), torch.zeros(1, 1, at + 1)
        hide[:] = torch.triu(torch.ones(at + 1, at + 1))
        target[0, 0, at] = 1
        with torch.no_grad():
            out = theirs(
                torch.tensor(ids[None, : at + 1]), perm_mask=hide, target_mapping=target, use_mems=False
            )
        nll -= torch.log_softmax(out.logits[0, 0].double(), -1)[ids[at]].item()
    assert plm.load(tmp_path).perplexity(ids).nll == pytest.approx(nll, rel=1e-4)


@pytest.mark.skipif(not DATA.exists(), reason="the shared data folder is not here")
def test_real_vocabulary_and_text(tmp_path):
    """GPT-2's tokenizer on Wikipedia: read in pieces, the text gives the tokens and the perplexity of the
    whole.
    """
    config = dict(vocab_size=50257, n_embd=16, n_layer=1, n_head=2, n_positions=64)
    theirs = parity.reference("GPT2LMHeadModel", config, tmp_path)
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).write_bytes((DATA / "vocab-gpt2" / name).read_bytes())
    text = (DATA / "wikitext-2" / "wiki.test.raw").read_text(encoding="utf-8")[:60_000]
    file = tmp_path / "text.txt"
    file.write_text(text, encoding="utf-8")
    lm = plm.load(tmp_path)
    ids = parity.transformers.GPT2Tokenizer.from_pretrained(tmp_path)(text)["input_ids"]
    got = lm.perplexity(file, stride=64)
    assert got.tokens == len(ids) - 1 and got.words == len(text.split()) and got.bytes == len(text.encode())
    few = np.array(ids[:500])
    want, _ = strided(theirs, few, 64, 32)
    assert lm.perplexity(few, window=63, stride=32) == pytest.approx(want, rel=1e-4)
