import pickle
import random

import numpy as np
import plmcore as plm
import pytest

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat dog ##s".split()
ALL = [
    ("wordpiece", "bert"),
    ("wordpiece", "distilbert"),
    ("bpe", "openai-gpt"),
    ("byte-bpe", "gpt2"),
    ("byte-bpe", "roberta"),
    ("byte-bpe", "bart"),
    ("unigram", "t5"),
    ("unigram", "albert"),
    ("unigram", "xlnet"),
    ("unigram", "xlm-roberta"),
    ("unigram", "mbart"),
    ("characters", "characters"),
    ("words", "words"),
    ("words", "transformer"),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))
    return tmp_path


@pytest.fixture
def bert(folder):
    return plm.load_tokenizer(folder)


def test_one_text_and_several(bert):
    assert bert("The cats sat!").input_ids.tolist() == [2, 5, 6, 9, 7, 1, 3] and bert.vocab_size == 10
    batch = bert(["the cat", "dog"], pair=["sat", "sat"])
    assert batch.input_ids.tolist() == [[2, 5, 6, 3, 7, 3], [2, 8, 3, 7, 3, 0]]
    assert batch.attention_mask.tolist() == [[1] * 6, [1] * 5 + [0]]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]]
    assert set(batch) == {"input_ids", "attention_mask", "token_type_ids"} and len(batch) == 3
    assert batch.offsets.shape == (2, 6, 2) and batch.offsets[0, 1].tolist() == [0, 3]
    assert batch.sequence_ids[0].tolist() == [-1, 0, 0, -1, 1, -1] and batch.word_ids[0].tolist() == [
        -1,
        0,
        1,
        -1,
        0,
        -1,
    ]
    assert batch.input_ids.dtype == np.int64 and bert([]).input_ids.shape == (0, 0)
    assert bert.decode([2, 5, 6, 9, 3]) == "the cats"
    assert bert.decode([[2, 5], [6, 9]]) == ["the", "cats"] == bert.decode(np.array([[2, 5], [6, 9]]))
    assert bert("the", add_special_tokens=False).input_ids.tolist() == [5]
    with pytest.raises(AttributeError, match="no 'labels'"):
        batch.labels


def test_the_parts_that_objectives_use(bert):
    assert [ids.tolist() for ids in bert.encode_ids(["the cats", ""])] == [[5, 6, 9], []]
    assert (
        bert.special_ids.tolist() == [0, 1, 2, 3, 4] and bert.mask_token_id == 4 and bert.bos_token_id is None
    )
    assert bert.word_starts.tolist() == [True] * 9 + [False]
    ids, types = bert.build(np.array([5, 6]), [7])
    assert ids.tolist() == [2, 5, 6, 3, 7, 3] and types.tolist() == [0, 0, 0, 0, 1, 1]
    assert (
        bert.id_of("cat") == 6
        and bert.id_of("cow") is None
        and bert.token_of(6) == "cat"
        and bert.token_of(99) is None
    )
    assert bert.tokenize("cats cow") == ["cat", "##s", "[UNK]"]


def test_words_that_are_split_already(bert):
    batch = bert([["the", "cats"], ["dogs"]], words=True)
    assert batch.input_ids.tolist() == [[2, 5, 6, 9, 3], [2, 8, 9, 3, 0]]
    assert batch.word_ids.tolist() == [[-1, 0, 1, 1, -1], [-1, 0, 0, -1, -1]]
    assert batch.offsets[0, 3].tolist() == [3, 4]  # within its word
    assert bert(["the", "cats"], words=True).input_ids.tolist() == [2, 5, 6, 9, 3]
    with pytest.raises(TypeError, match="lists of words"):
        bert(["the cats", "x"], pair=["the"] * 2, words=False) and bert([["a"], "b"], words=True)


@pytest.mark.parametrize("kind, family", ALL)
def test_every_family(trained, kind, family):
    tokenizer = trained(kind, family)
    assert tokenizer.kind == kind and tokenizer.family.name == family
    texts = ["The list of values, 東京 1,000.", "", "a", "An if statement", "x " * 40]
    for pair in (None, texts[::-1]):
        batch = (
            tokenizer(texts, pair, max_length=30, stride=3)
            if pair is None
            else tokenizer(texts, pair, max_length=30)
        )
        assert batch.input_ids.shape[1] <= 30 and (batch.attention_mask.sum(1) <= 30).all()
        for r, i in enumerate(batch.sample):
            for t in range(batch.input_ids.shape[1]):
                start, end = batch.offsets[r, t]
                of = batch.sequence_ids[r, t]
                assert 0 <= start <= end <= len("" if of < 0 else (texts, pair)[of][i])
                assert (of >= 0) == (batch.word_ids[r, t] >= 0)
    bare = tokenizer.encode_ids(texts)
    for i, text in enumerate(texts):
        one = tokenizer(text)
        ids, types = tokenizer.build(bare[i])
        assert one.input_ids.tolist() == ids.tolist() and one.token_type_ids.tolist() == types.tolist()
        assert (one.sequence_ids == 0).sum() == len(bare[i]) and isinstance(tokenizer.decode(ids), str)
    assert tokenizer.vocab_size > max(ids.max(initial=0) for ids in bare)
    assert set(tokenizer.special_ids) >= {getattr(tokenizer, f"{role}_token_id") for role in tokenizer.roles}
    if kind == "bpe":
        with pytest.raises(ValueError, match="where words end"):
            tokenizer.word_starts
    else:
        assert (
            tokenizer.word_starts.shape == (tokenizer.vocab_size,)
            and tokenizer.word_starts[tokenizer.special_ids].all()
        )


@pytest.mark.parametrize("kind, family", ALL)
def test_saved_pickled_and_loaded(trained, tmp_path, kind, family):
    tokenizer = trained(kind, family)
    tokenizer.add_tokens(["<new>", "zzz"])
    text = ["An <new>zzz if, else.", "zzz <pad>"]
    ids = tokenizer(text).input_ids
    assert tokenizer.id_of("zzz") in ids and tokenizer.changed
    tokenizer.save(tmp_path)
    for other in (plm.load_tokenizer(tmp_path), pickle.loads(pickle.dumps(tokenizer))):
        assert np.array_equal(other(text).input_ids, ids) and np.array_equal(
            other(text).offsets, tokenizer(text).offsets
        )
        assert (
            other.special_ids.tolist() == tokenizer.special_ids.tolist()
            and other.vocab_size == tokenizer.vocab_size
        )
        assert other.fingerprint == tokenizer.fingerprint and other.roles == tokenizer.roles
        assert np.array_equal(other.encode_ids(text)[0], tokenizer.encode_ids(text)[0])
    tokenizer.add_tokens(["another"])
    assert other.fingerprint != tokenizer.fingerprint


def test_added_tokens(bert):
    before = bert.fingerprint
    assert bert.add_tokens(["<br>", "cat", "<br>"]) == 1 and bert.vocab_size == 11
    assert bert("the<br>cat").input_ids.tolist() == [2, 5, 10, 6, 3] and bert.fingerprint != before
    assert 10 not in bert.special_ids and bert.decode([5, 10, 6]) == "the <br> cat"
    assert (
        bert.add_tokens("<e>", special=True) == 1 and 11 in bert.special_ids and bert.decode([5, 11]) == "the"
    )
    with pytest.raises(ValueError, match="more than white space, got ' '"):
        bert.add_tokens([" "])


def test_padding_needs_no_padding_token_but_can_have_one(trained):
    tokenizer = trained("byte-bpe", "gpt2")
    assert (
        tokenizer.pad_token_id is None and tokenizer(["a b c", "a"]).attention_mask.tolist()[1].count(0) > 0
    )
    tokenizer.set_special("pad", "<pad>")
    assert tokenizer.pad_token == "<pad>" and tokenizer.pad_token_id == tokenizer.vocab_size - 1
    assert tokenizer(["a b c", "a"]).input_ids[1, -1] == tokenizer.pad_token_id
    with pytest.raises(ValueError, match="no role 'end'"):
        tokenizer.set_special("end", "x")


def test_languages(trained):
    tokenizer = trained("unigram", "mbart")
    assert tokenizer("a").input_ids[-2:].tolist() == [2, tokenizer.id_of("en_XX")]
    tokenizer.language = "de_DE"
    assert tokenizer("a").input_ids[-1] == tokenizer.id_of("de_DE") and tokenizer.language == "de_DE"
    with pytest.raises(ValueError, match="no language 'xx'"):
        tokenizer.language = "xx"


def random_text(r: random.Random) -> str:
    planes = [(0, 0x80), (0x80, 0x3000), (0x3000, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000)]
    runs = []
    for _ in range(r.randrange(8)):
        low, high = r.choice(planes)
        runs.append(
            "".join(chr(r.randrange(low, high)) for _ in range(r.randrange(1, 6)))
            + r.choice(["", " ", "\n", "  \t", "'s", "\u00a0"])
        )
    return "".join(runs)


@pytest.mark.parametrize("family", ["gpt2", "roberta"])
def test_byte_level_is_lossless_on_any_unicode(trained, family):
    tokenizer, r = trained("byte-bpe", family), random.Random(5)
    texts = [random_text(r) for _ in range(3000)]
    texts += [
        "",
        " ",
        "\x00",
        "\r\n",
        "\ufffd",
        "\ufeff",
        "e\u0301",
        "👩‍👩‍👧‍👦",
        "  lead",
        "trail  ",
        "a" * 5000,
    ]
    rows = tokenizer.encode_ids(texts)
    assert tokenizer.decode(rows) == texts
    for text, row in zip(texts[:500], rows):  # offsets, too, cover every character but the trimmed spaces
        spans = tokenizer(text, add_special_tokens=False).offsets
        covered = set().union(*(range(a, b) for a, b in spans)) if len(row) else set()
        assert all(i in covered or text[i].isspace() for i in range(len(text)))


def test_characters_are_lossless_on_their_alphabet(trained):
    tokenizer = trained("characters")
    text = "An if, else.\n\n東京 😀"
    assert tokenizer.decode(tokenizer.encode_ids([text])[0]) == text
    assert tokenizer.tokenize("a龍b") == ["a", "<unk>", "b"]


def test_errors(bert):
    for wrong in ([1], [None], 3):
        with pytest.raises(TypeError):
            bert(wrong)
    with pytest.raises(TypeError, match="takes a str or a list of them, got .*int"):
        bert([1])
    with pytest.raises(TypeError, match="a list of texts, got one str"):
        bert.encode_ids("the")
    with pytest.raises(TypeError, match="got int at 1"):
        bert.encode_ids(["the", 3])
    with pytest.raises(ValueError, match="2 texts need 2 second texts, got 1"):
        bert(["a", "b"], ["c"])
    with pytest.raises(ValueError, match=r"text 1 has half a surrogate pair, '\\ud800', at character 2"):
        bert(["a", "ab\ud800"])
    with pytest.raises(ValueError, match="no id -100; the vocabulary has 10"):
        bert.decode([5, -100])
    with pytest.raises(ValueError, match="no id 10;"):
        bert.decode([10])


@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe", "unigram", "characters", "words"])
def test_long_lines_and_nul_bytes(trained, kind):
    tokenizer = trained(kind)
    for text in ("a" * 500_000, "a b\x00" * 50_000, "\x00"):
        ids = tokenizer.encode_ids([text])[0]
        assert ids.dtype == np.int32 and len(ids) <= len(text) + 1
        with pytest.raises(ValueError, match="half a surrogate pair"):
            tokenizer.encode_ids([text[:10] + "\udfff"])
