import os
import subprocess
import sys

import numpy as np
import plmcore as plm
import pytest

SCRIPT = """
import sys, plmcore as plm
for kind in ("wordpiece", "bpe", "byte-bpe", "words", "characters", "unigram"):
    print(plm.train_tokenizer(sys.argv[1], kind=kind, vocab_size=400).fingerprint)
"""


def test_the_same_text_gives_the_same_tokenizer(corpus):
    """In other processes, with other seeds of hash tables and other numbers of threads."""
    found = []
    for environment in (
        {"RAYON_NUM_THREADS": "1", "PYTHONHASHSEED": "1"},
        {"RAYON_NUM_THREADS": "3", "PYTHONHASHSEED": "2"},
    ):
        command = [sys.executable, "-c", SCRIPT, corpus]
        run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
        assert run.returncode == 0, run.stderr
        found.append(run.stdout.split())
    assert found[0] == found[1] and len(set(found[0])) == 6


def test_sizes_and_special_tokens(corpus):
    for kind, family, size in (
        ("wordpiece", None, 500),
        ("byte-bpe", "bart", 400),
        ("unigram", "xlnet", 300),
        ("unigram", "t5", 400),
    ):
        tokenizer = plm.train_tokenizer(
            corpus, kind=kind, family=family, vocab_size=size, special_tokens=["<x>"]
        )
        assert (
            tokenizer.vocab_size == size + (kind == "unigram")
            and tokenizer.id_of("<x>") in tokenizer.special_ids
        )
        assert (
            tokenizer.decode(tokenizer("The <x> list").input_ids, skip_special_tokens=False).count("<x>") == 1
        )
    ids = plm.train_tokenizer(corpus, kind="byte-bpe", family="roberta", vocab_size=400)
    assert [ids.bos_token_id, ids.pad_token_id, ids.eos_token_id, ids.unk_token_id, ids.mask_token_id] == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_case(corpus):
    lowered = plm.train_tokenizer(corpus, kind="wordpiece", vocab_size=500)
    kept = plm.train_tokenizer(corpus, kind="wordpiece", vocab_size=500, lower=False)
    assert np.array_equal(lowered("THE").input_ids, lowered("the").input_ids)
    assert not np.array_equal(kept("The").input_ids, kept("the").input_ids)
    words = plm.train_tokenizer(texts=["A a b"], kind="words", lower=True)
    assert words.tokenize("a A B c") == ["a", "a", "b", "<unk>"]


def test_words_and_characters_by_count():
    texts = ["b a b c b a", "d"]
    words = plm.train_tokenizer(texts=texts, kind="words", vocab_size=6)
    # The most frequent first.
    assert words.tokenize("a b c d") == ["a", "b", "<unk>", "<unk>"] and words.id_of("b") == 4
    assert plm.train_tokenizer(texts=texts, kind="words", vocab_size=None, min_count=2).tokenize("a c") == [
        "a",
        "<unk>",
    ]
    letters = plm.train_tokenizer(texts=iter(texts), kind="characters", vocab_size=4)
    assert letters.tokenize("ab cd") == ["a", "b", " ", "<unk>", "<unk>"]
    assert plm.train_tokenizer(texts=texts, kind="characters", vocab_size=None).vocab_size == 6
    # told apart: </w> at the end of a word
    assert plm.train_tokenizer(texts=texts * 3, kind="bpe", vocab_size=100).tokenize("b a") == [
        "b</w>",
        "a</w>",
    ]


def test_merges_are_learned():
    tokenizer = plm.train_tokenizer(texts=["low lower lowest " * 50], kind="wordpiece", vocab_size=60)
    assert tokenizer.tokenize("lowest low") == ["lowest", "low"]
    assert plm.train_tokenizer(texts=["low lower\n" * 50], kind="byte-bpe", vocab_size=300).tokenize(
        "low lower"
    ) == [
        "low",
        "Ġlower",
    ]


def test_saves_as_it_trains(corpus, tmp_path):
    made = plm.train_tokenizer([corpus], kind="byte-bpe", vocab_size=300, out=tmp_path / "new")
    assert plm.load_tokenizer(tmp_path / "new").fingerprint == made.fingerprint


def test_a_sample_of_lines_for_unigram(tmp_path):
    (tmp_path / "text").write_text("".join(f"line {i % 7} of many\n" for i in range(4000)))
    few = plm.train_tokenizer(
        tmp_path, kind="unigram", family="albert", vocab_size=22, sample_bytes=20_000, seed=1
    )
    assert few("line 3 of many").input_ids.tolist().count(few.unk_token_id) == 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(kind="letters"), "no kind of tokenizer 'letters'"),
        (dict(kind="unigram", family="bert"), "unigram tokenizer cannot be of the family 'bert'"),
        (
            dict(kind="byte-bpe", vocab_size=100),
            "256 bytes and 1 special tokens; vocab_size=100 is too small",
        ),
        (dict(kind="unigram", vocab_size=100), "leaves no room"),
        (
            dict(kind="unigram", vocab_size=9000),
            "vocab_size=9000 is more than this text has pieces for: at most",
        ),
        (dict(kind="wordpiece", vocab_size=None), "needs a vocab_size"),
        (dict(kind="words", vocab_size=0), "at least 1, got 0"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        plm.train_tokenizer(texts=["some text"] * 20, **arguments)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "byte-bpe", "unigram", "characters", "words"])
def test_bad_files(tmp_path, kind):
    with pytest.raises(FileNotFoundError, match="there is no file .*nothing"):
        plm.train_tokenizer(tmp_path / "nothing", kind=kind)
    with pytest.raises(FileNotFoundError, match="there are no files in"):
        plm.train_tokenizer(tmp_path, kind=kind)
    (tmp_path / "text").write_bytes(b"")
    with pytest.raises(ValueError, match="there is no text in .*text"):
        plm.train_tokenizer(tmp_path, kind=kind)
    (tmp_path / "text").write_bytes(b"good \xc3\xa9\n" + b"x" * 3_000_000 + b"\nbad \xff\n")
    with pytest.raises(plm.FormatError, match=r"text', line \d+, byte 3000013: 0xff is not UTF-8"):
        plm.train_tokenizer(tmp_path, kind=kind)
    with pytest.raises(ValueError, match="either files or texts"):
        plm.train_tokenizer(kind=kind)


def test_bytes_that_are_no_text_can_be_replaced(tmp_path):
    (tmp_path / "text").write_bytes(b"good \xff\x00 text\n" * 10)
    assert "\ufffd" in plm.train_tokenizer(tmp_path, kind="characters", errors="replace").backend.vocabulary
