"""Tokenizers of model files: the ids and texts of C++ are those of Python."""

import os
import pathlib
import pydoc_data.topics
import shutil

import every_family
import numpy as np
import plmcore as plm
import pytest
from plmcore import _core

DATA = pathlib.Path(os.environ.get("PLM_DATA", pathlib.Path(__file__).parents[2] / "../shared/data"))
TEXT = "\n\n".join(text for _, text in sorted(pydoc_data.topics.topics.items()))[:60_000]
ODD = [
    "",
    " ",
    "\n\n  a",
    "Café naïve, 東京 と 日本語 😀👩‍👩‍👧 \u0000\u0007 \t 1,000, 2010, ﬁ ㎏ İ\n",
    "don't I'm we've they'll he'd it's 'tis ''s 'S",
    "a  b   c\t\td \n e   ",
    "[CLS] a[MASK]b [MASK] <s> </s> <mask>x <|endoftext|><|endoftext|> y",
    "e\u0301 Å Ǻ ñ Ω ß ẞ ﷺ ｆｕｌｌ",
    "Ελληνικά ΣΑΣ Привет العربية हिन्दी 한국어 ไทย",
    "x" * 300 + " " + "ab" * 120,
    "½ ² Ⅷ ৩ 12३ _a_ a_b #tag @me $5 €7 100%",
    "\u00a0\u2003a\u3000b\u200bc\u00add\ufeff",
    "日本語中文字。、「」",
    "".join(chr(c) for c in range(32, 0x250)),
]


def pieces(text):
    return [text[i : i + 700] for i in range(0, len(text), 700)]


def opened(tokenizer, folder, family):
    model = every_family.model("gpt2" if "bpe" in tokenizer.kind else "bert", "base")
    lm = plm.LanguageModel(model.model, tokenizer)
    plm.export(lm, folder / "model.plm")
    return _core.Text(_core.Model.load(str(folder / "model.plm")))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "topics.txt"
    file.write_text(TEXT + "\n".join(ODD), encoding="utf-8")
    return file


def real(name):
    """A published vocabulary as a tokenizer."""
    folder, files = {
        "bert-uncased": ("vocab-bert", {"bert-base-uncased-vocab.txt": "vocab.txt"}),
        "bert-cased": ("vocab-bert", {"bert-base-cased-vocab.txt": "vocab.txt"}),
        "gpt2": ("vocab-gpt2", {"vocab.json": "vocab.json", "merges.txt": "merges.txt"}),
        "roberta": ("vocab-roberta", {"vocab.json": "vocab.json", "merges.txt": "merges.txt"}),
    }[name]
    if not (DATA / folder).is_dir():
        pytest.skip(f"needs {folder} in PLM_DATA")
    return DATA / folder, files


def check(tokenizer, text):
    for piece in [*ODD, *pieces(TEXT)]:
        [expected] = tokenizer.encode_ids([piece])
        got = text.ids(piece)
        assert got == expected.tolist(), repr(piece[:80])
        assert text.decode(got) == tokenizer.decode(got), repr(piece[:80])
        assert text.decode(got, False) == tokenizer.decode(got, skip_special_tokens=False)
    batch = tokenizer(ODD[3], ODD[4], max_length=24)
    ids, types = text.encode_pair(ODD[3], ODD[4], 24)
    assert (ids, types) == (batch["input_ids"].tolist(), batch["token_type_ids"].tolist())
    for most in (9, 12, 10**6):
        batch = tokenizer(ODD[7], max_length=most)
        assert text.encode(ODD[7], most)[0] == batch["input_ids"].tolist()


@pytest.mark.parametrize(
    ("kind", "family"), [("wordpiece", "bert"), ("byte-bpe", "gpt2"), ("byte-bpe", "roberta")]
)
def test_trained_tokenizers(kind, family, corpus, tmp_path):
    tokenizer = plm.train_tokenizer(corpus, kind=kind, family=family, vocab_size=700)
    tokenizer.add_tokens(["Zyx", "_a_"])
    tokenizer.add_tokens(["<odd>"], special=True)
    check(tokenizer, opened(tokenizer, tmp_path, family))


@pytest.mark.parametrize("name", ["bert-uncased", "bert-cased", "gpt2", "roberta"])
def test_published_vocabularies(name, tmp_path):
    source, files = real(name)
    for old, new in files.items():
        shutil.copy(source / old, tmp_path / new)
    changes = {"do_lower_case": False} if name == "bert-cased" else {}
    tokenizer = plm.load_tokenizer(tmp_path, family=name.partition("-")[0], **changes)
    check(tokenizer, opened(tokenizer, tmp_path, name))


def test_every_character_is_read_alike(corpus, tmp_path):
    """But for those that are newer than one of the tables, which differ in what counts as punctuation."""
    text = [chr(c) for c in range(0x30000) if not 0xD800 <= c < 0xE000]
    for kind, family in (("wordpiece", "bert"), ("byte-bpe", "gpt2")):
        tokenizer = plm.train_tokenizer(corpus, kind=kind, family=family, vocab_size=700)
        native = opened(tokenizer, tmp_path, family)
        lines = [f"the{c}the" for c in text]
        expected = tokenizer.encode_ids(lines)
        differ = [c for c, line, ids in zip(text, lines, expected) if native.ids(line) != ids.tolist()]
        known = [c for c in differ if ord(c) < 0x600]
        assert not known and len(differ) < 0.03 * len(text), (kind, len(differ), list(map(ord, known[:9])))


def test_invalid_text(corpus, tmp_path):
    tokenizer = plm.train_tokenizer(corpus, kind="byte-bpe", family="gpt2", vocab_size=400)
    text = opened(tokenizer, tmp_path, "gpt2")
    with pytest.raises(plm.IndexRangeError, match="there is no id 99999"):
        text.decode([99999])
    broken = [i for i in range(256) if text.decode([i]) == "\ufffd"][:3]
    assert text.decode(broken) == tokenizer.decode(broken) == "\ufffd" * 3


def test_other_kinds_take_ids(corpus, tmp_path):
    tokenizer = plm.train_tokenizer(corpus, kind="unigram", family="albert", vocab_size=300)
    lm = plm.LanguageModel(every_family.model("albert", "base").model, tokenizer)
    plm.export(lm, tmp_path / "model.plm")
    session = plm.Program.load(tmp_path / "model.plm")
    with pytest.raises(plm.ArgumentError, match="takes ids: its tokenizer, unigram, is not served"):
        session.encode("a text")
    assert session.encode([[4, 5]]).shape == (1, 8)
    with pytest.raises(plm.ArgumentError, match="of the kind 'unigram', which is not served in"):
        _core.Text(session.model)


def test_texts_go_in_and_come_out(corpus, tmp_path):
    tokenizer = plm.train_tokenizer(corpus, kind="byte-bpe", family="gpt2", vocab_size=400)
    config = every_family.config("gpt2", vocab_size=tokenizer.vocab_size, n_positions=32)
    lm = plm.LanguageModel(plm.from_config(config, "causal-lm").eval().model, tokenizer)
    plm.export(lm, tmp_path / "model.plm")
    session = plm.Program.load(tmp_path / "model.plm")
    np.testing.assert_allclose(session.encode(["the cat", "a"]), lm.encode(["the cat", "a"]), atol=1e-6)
    [[found]] = session.generate("the cat", max_new_tokens=5)
    assert lm.generate("the cat", max_new_tokens=5) == "the cat" + session.decode(found.tokens)
