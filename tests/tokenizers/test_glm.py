"""Tokenizers of GLM as they are published: a vocabulary of BERT, of GPT-2 or of sentencepiece, and the added
pieces.
"""

import json

import plmcore as plm
import pytest

LINES = ["the cat sat on the mat and ran home", "a dog was good or bad"] * 20
PIECES = ["<|startofpiece|>", "<|endofpiece|>", "[gMASK]", "[sMASK]"]
KINDS = {
    "GLMBertTokenizer": ("wordpiece", "bert", 60, PIECES),
    "GLMGPT2Tokenizer": ("byte-bpe", "gpt2", 280, [*PIECES, "[CLS]", "[SEP]", "[MASK]"]),
    "GLMChineseTokenizer": ("unigram", "xlnet", 27, ["<|endoftext|>", *PIECES, "[CLS]", "[SEP]", "[MASK]"]),
}
FILES = {
    "GLMBertTokenizer": {"vocab.txt": "vocab.txt"},
    "GLMGPT2Tokenizer": {"vocab.json": "vocab.json", "merges.txt": "merges.txt"},
    "GLMChineseTokenizer": {"spiece.model": "cog-pretrain.model"},
}


@pytest.fixture(params=KINDS)
def folder(request, tmp_path):
    """As the Hub has them: the old vocabulary, with the pieces in added_tokens.json."""
    kind, family, size, added = KINDS[request.param]
    bare = plm.train_tokenizer(texts=LINES, kind=kind, family=family, vocab_size=size, out=tmp_path / "bare")
    published = tmp_path / "published"
    published.mkdir()
    for name, other in FILES[request.param].items():
        (published / other).write_bytes((tmp_path / "bare" / name).read_bytes())
    ids = {token: bare.vocab_size + i for i, token in enumerate(added)}
    (published / "added_tokens.json").write_text(json.dumps(ids))
    (published / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": request.param}))
    return published, ids


def test_published_files(folder):
    published, ids = folder
    tokenizer = plm.load_tokenizer(published)
    assert {token: tokenizer.id_of(token) for token in ids} == ids
    found = tokenizer.tokenize("the [MASK] sat [gMASK]")
    assert [t for t in found if t.endswith("MASK]")] == ["[MASK]", "[gMASK]"]
    around = tokenizer("the cat")["input_ids"]
    last = "[SEP]" if tokenizer.kind == "wordpiece" else "<|endoftext|>"
    assert tokenizer.token_of(int(around[0])) == "[CLS]" and tokenizer.token_of(int(around[-1])) == last
    assert tokenizer.decode(around) == "the cat"
    assert {ids[t] for t in PIECES} <= set(tokenizer.special_ids.tolist())


def test_saved_and_loaded(folder, tmp_path):
    tokenizer = plm.load_tokenizer(folder[0])
    tokenizer.save(tmp_path / "again")
    again = plm.load_tokenizer(tmp_path / "again")
    text = "the [MASK] sat [gMASK] <|startofpiece|>"
    assert again(text)["input_ids"].tolist() == tokenizer(text)["input_ids"].tolist()
    assert again.family.name == tokenizer.family.name and again.vocab_size == tokenizer.vocab_size
