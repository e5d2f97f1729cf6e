import io
import json
import pickle
import random
import unicodedata

import numpy as np
import plmcore as plm
import pytest
import sentencepiece
from plmcore.tokenizers import pieces
from plmcore.tokenizers.families import FAMILIES

TEXTS = [
    "An if statement, else.",
    "",
    "  two  spaces ",
    "Café naïve 東京 😀",
    "1,000, and 2010, (x)",
    "a\tb\nc\u200bd",
    "``q'' ﬁ ㎏",
]


@pytest.fixture(scope="session")
def model(corpus) -> bytes:
    written = io.BytesIO()
    lines = [line for line in corpus.read_text(encoding="utf-8").splitlines() if line.strip()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines[:1500] + ["in 2010, 1,000, 11,"] * 300),
        model_writer=written,
        vocab_size=400,
        minloglevel=2,
        user_defined_symbols=["(", ")", "2010,"],
        num_threads=1,
    )
    return written.getvalue()


@pytest.fixture(scope="session")
def reference(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def folder_of(tmp_path, family, **files):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    for name, content in files.items():
        (tmp_path / name.replace("__", ".")).write_bytes(content)
    return tmp_path


def test_fairseq_ids(tmp_path, model, reference):
    """<s> <pad> </s> <unk> come first, a piece is one above its number, <mask> is last."""
    folder = folder_of(tmp_path, "xlm-roberta", sentencepiece__bpe__model=model)
    tokenizer, n = plm.load_tokenizer(folder), len(reference)
    assert (
        tokenizer.bos_token_id,
        tokenizer.pad_token_id,
        tokenizer.eos_token_id,
        tokenizer.unk_token_id,
    ) == (
        0,
        1,
        2,
        3,
    )
    assert tokenizer.mask_token_id == n + 1 == tokenizer.vocab_size - 1
    for text in TEXTS:
        ids = [3 if i == 0 else i + 1 for i in reference.encode(text)]
        assert tokenizer(text).input_ids.tolist() == [0, *ids, 2]
    assert tokenizer("a<mask>").input_ids.tolist()[-2] == n + 1
    pair = tokenizer("a", "b").input_ids.tolist()
    assert pair == [0, *tokenizer.encode_ids(["a"])[0], 2, 2, *tokenizer.encode_ids(["b"])[0], 2]


@pytest.mark.parametrize("family", ["t5", "xlm-roberta"])
def test_models_of_merges(tmp_path, corpus, family):
    """A .model may hold BPE instead of a unigram model: its pieces have ids the same way."""
    written = io.BytesIO()
    lines = [line for line in corpus.read_text(encoding="utf-8").splitlines() if line.strip()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines[:1500]),
        model_writer=written,
        vocab_size=400,
        model_type="bpe",
        minloglevel=2,
        num_threads=1,
    )
    tokenizer = plm.load_tokenizer(folder_of(tmp_path, family, spiece__model=written.getvalue()))
    known = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    for text, ids in zip(TEXTS, tokenizer.encode_ids(TEXTS)):
        assert [tokenizer.token_of(i) for i in ids] == [
            piece if known.piece_to_id(piece) else "<unk>" for piece in known.encode(text, out_type=str)
        ]
        if known.unk_id() not in known.encode(text):
            assert tokenizer.decode(ids) == known.decode(known.encode(text))


def test_mbart_codes_follow_the_pieces(tmp_path, model, reference):
    folder = folder_of(tmp_path, "mbart", sentencepiece__bpe__model=model)
    tokenizer = plm.load_tokenizer(folder, language="ro_RO")
    first = len(reference) + 1
    assert (
        tokenizer.id_of("ar_AR") == first
        and tokenizer.id_of("zh_CN") == first + 24
        and tokenizer.mask_token_id == first + 25
    )
    assert tokenizer("a").input_ids.tolist()[-2:] == [2, tokenizer.id_of("ro_RO")]
    fifty = plm.load_tokenizer(folder, family="mbart50", language="ro_RO")
    assert (
        fifty("a").input_ids.tolist() == [fifty.id_of("ro_RO"), *fifty.encode_ids(["a"])[0], 2]
        and fifty.mask_token_id == first + 52
    )


def test_sentinels(trained):
    tokenizer = trained("unigram", "t5")
    assert (
        tokenizer.id_of("<extra_id_0>") == tokenizer.vocab_size - 1
        and tokenizer.id_of("<extra_id_99>") == tokenizer.vocab_size - 100
    )
    ids = tokenizer("a <extra_id_0> b").input_ids.tolist()
    assert tokenizer.vocab_size - 1 in ids and ids[-1] == 1
    assert tokenizer.decode(ids, skip_special_tokens=False) == "a <extra_id_0> b</s>".replace("</s>", " </s>")


def test_the_number_of_sentinels_is_a_setting(tmp_path, trained):
    made = trained("unigram", "t5")
    made.save(tmp_path)
    few = plm.load_tokenizer(tmp_path, extra_ids=2)
    assert few.vocab_size == made.vocab_size - 98 and few.token_of(few.vocab_size - 1) == "<extra_id_0>"
    assert few.id_of("<extra_id_2>") is None


def test_xlnet_puts_cls_last_and_pads_left(trained):
    tokenizer = trained("unigram", "xlnet")
    batch = tokenizer(["an if", "a"], ["x", "y"])
    assert (batch.input_ids[:, -1] == tokenizer.cls_token_id).all() and (
        batch.token_type_ids[:, -1] == 2
    ).all()
    pad = batch.attention_mask[1] == 0
    assert pad[0] and (batch.input_ids[1][pad] == 5).all() and (batch.token_type_ids[1][pad] == 3).all()


def albert_as_published(processor, text: str, lower: bool = True) -> list[int]:
    """A direct transcription of what ALBERT's tokenization does, piece by piece."""
    text = " ".join(text.strip().split()).replace("``", '"').replace("''", '"')
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    out = []
    for piece in processor.encode(text.lower() if lower else text, out_type=str):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            inner = processor.encode(piece[:-1].replace("▁", ""), out_type=str)
            if piece[0] != "▁" and inner[0][0] == "▁":
                inner = inner[1:] if len(inner[0]) == 1 else [inner[0][1:], *inner[1:]]
            out += [*inner, piece[-1]]
        else:
            out.append(piece)
    return [processor.piece_to_id(piece) for piece in out]


def test_normalising_families_prepare_text_and_split_commas_off_numbers(model, reference):
    backend = pieces.read(model, "model", FAMILIES["albert"])
    for text in [*TEXTS, "in 2010, there", "2010, 2010,", "x2010,y"]:
        want = albert_as_published(reference, text)
        ((ids, offsets, _),) = backend.rows([text])
        assert backend.flat([text])[0].tolist() == want == ids.tolist() and len(offsets) == len(ids)
        assert (offsets[:, 0] <= offsets[:, 1]).all() and (np.diff(offsets[:, 0]) >= 0).all()
    assert any(backend._commas[reference.encode("in 2010, there")])  # or the test shows nothing
    ((ids, offsets, words),) = backend.rows(["  In 2010,  x"])
    spelled = ["  In 2010,  x"[a:b] for a, b in offsets]
    assert spelled[-1] == "x" and "," in spelled and "".join(spelled).startswith("In") and words[-1] == 2


def test_normalised_text_and_places_agree():
    r = random.Random(0)
    ranges = [(32, 127), (0x300, 0x370), (0, 0x3000), (0xAC00, 0xAD00), (0xFB00, 0xFFFF)]
    for _ in range(2000):
        codes = [
            r.choice([r.randrange(*r.choice(ranges)), ord(r.choice(" \t\n\u3000`'"))])
            for _ in range(r.randrange(12))
        ]
        text = "".join(map(chr, codes))
        normalised, places = pieces.normalise_with_places(text, False)
        plain = "".join(
            c
            for c in unicodedata.normalize(
                "NFKD", " ".join(text.split()).replace("``", '"').replace("''", '"')
            )
            if not unicodedata.combining(c)
        )
        assert normalised == pieces.normalise(text, False) == plain and len(places) == max(len(normalised), 1)
        assert all(a < b <= len(text) for a, b in places[: len(normalised)])


def test_offsets_and_words(tmp_path, model):
    folder = folder_of(tmp_path, "xlm-roberta", sentencepiece__bpe__model=model)
    tokenizer = plm.load_tokenizer(folder)
    text = "An  if\nstatement"
    batch = tokenizer(text, add_special_tokens=False)
    found = {}
    for (a, b), word in zip(batch.offsets.tolist(), batch.word_ids.tolist()):
        found[word] = found.get(word, "") + text[a:b]
    assert list(found.values()) == ["An", "if", "statement"]


@pytest.fixture
def marian(tmp_path, model, reference):
    tokens = [
        "</s>",
        "<unk>",
        *[reference.id_to_piece(i) for i in range(len(reference) - 1, 3, -1)],
        ">>fr<<",
        "▁only▁target",
        "<pad>",
    ]
    (tmp_path / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(tokens)}))
    return folder_of(tmp_path, "marian", source__spm=model, target__spm=model)


def test_marian(marian, reference):
    tokenizer = plm.load_tokenizer(marian)
    vocabulary = json.loads((marian / "vocab.json").read_text())
    for text in TEXTS:
        want = [vocabulary.get(piece, 1) for piece in reference.encode(text, out_type=str)]
        assert tokenizer(text).input_ids.tolist() == [*want, 0]
    assert (
        tokenizer(">>fr<< an if").input_ids[0] == vocabulary[">>fr<<"]
        and tokenizer.pad_token_id == len(vocabulary) - 1
    )
    assert (
        tokenizer.decode([*tokenizer("an if").input_ids, vocabulary["▁only▁target"]]) == "an if only target"
    )
    target = plm.load_tokenizer(marian, side="target")
    assert target("an if").input_ids.tolist() == tokenizer("an if").input_ids.tolist()
    tokenizer.save(marian / "copy")
    other = plm.load_tokenizer(marian / "copy")
    assert other.fingerprint == tokenizer.fingerprint == pickle.loads(pickle.dumps(tokenizer)).fingerprint
    (marian / "target.spm").unlink()
    with pytest.raises(FileNotFoundError, match="has no target.spm"):
        plm.load_tokenizer(marian, side="target")
    (marian / "vocab.json").write_text('{"</s>": 0}')
    with pytest.raises(plm.FormatError, match="has no '<unk>'"):
        plm.load_tokenizer(marian)


def test_a_model_alone(tmp_path, model, trained):
    (tmp_path / "spiece.model").write_bytes(model)
    with pytest.raises(ValueError, match="does not tell its family"):
        plm.load_tokenizer(tmp_path)
    (tmp_path / "spiece.model").write_bytes(trained("unigram", "albert").backend.model)
    assert plm.load_tokenizer(tmp_path).family.name == "albert"


def test_a_model_beside_its_conversion(tmp_path, model, trained):
    """The table's families read the model; others, whose way with it is not known, the tokenizer.json."""
    trained("wordpiece").save(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "sentencepiece.bpe.model").write_bytes(model)
    assert plm.load_tokenizer(tmp_path).kind == "wordpiece"
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "xlm-roberta"}))
    assert plm.load_tokenizer(tmp_path).kind == "unigram"


def test_hostile_models(tmp_path, model):
    """Cut, flipped and foreign bytes: an error of ours, or a model that works; never a crash."""
    file = tmp_path / "spiece.model"
    for content in (
        b"",
        b"\0",
        b"hello",
        b"\x0a\x00",
        b"\x0a\x03\x0a\x01a",
        model[: len(model) // 2],
        model[:100],
        b"\x0a\xff\xff\xff\xff\x0f",
    ):
        file.write_bytes(content)
        with pytest.raises(plm.FormatError, match="spiece.model'"):
            plm.load_tokenizer(tmp_path, family="xlm-roberta")
    r, worked = random.Random(3), 0
    for _ in range(300):
        damaged = bytearray(model)
        for _ in range(r.choice([1, 3, 20])):
            damaged[r.randrange(6000)] = r.randrange(256)
        file.write_bytes(damaged)
        try:
            tokenizer = plm.load_tokenizer(tmp_path, family="xlm-roberta")
            tokenizer.decode(tokenizer(TEXTS).input_ids)
            worked += 1
        except (plm.FormatError, plm.tokenizers.TokenizerError):
            pass
    assert 0 < worked < 300
