"""Damaged corpora: every file cut, every byte changed, every number of corpus.json wrong."""

import json
import zlib

import numpy as np
import plmcore as plm
import pytest
from plmcore.data import Corpus, manifest, write_corpus
from word_tokenizer import WordTokenizer

FILES = [manifest.IDS, manifest.SENTENCES, manifest.DOCUMENTS, manifest.DOCUMENT_SENTENCES]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "BLOCK", 64)
    (tmp_path / "in.txt").write_text("".join(f"Number {k} is here. And {k + 1}.\n\n" for k in range(50)))
    write_corpus(tmp_path / "out", tmp_path / "in.txt", WordTokenizer(), workers=1)
    return tmp_path / "out"


@pytest.mark.parametrize("name", FILES)
def test_truncated(corpus, name):
    data = (corpus / name).read_bytes()
    for changed in (data[:-1], data[: len(data) // 2], b"", data + b"\0"):
        (corpus / name).write_bytes(changed)
        with pytest.raises(
            plm.FormatError, match=rf"{name}' has {len(changed)} bytes, and corpus.json says {len(data)}"
        ):
            Corpus.open(corpus, verify=False)
    (corpus / name).unlink()
    with pytest.raises(plm.FormatError, match=f"{name}' is missing"):
        Corpus.open(corpus)


@pytest.mark.parametrize("name", FILES)
def test_any_changed_bit_is_found_with_its_block(corpus, name):
    data = (corpus / name).read_bytes()
    random = np.random.default_rng(1)
    for at in (0, len(data) - 1, *random.integers(0, len(data), 20)):
        changed = bytearray(data)
        changed[at] ^= 1 << random.integers(8)
        (corpus / name).write_bytes(changed)
        begin = at // 64 * 64
        with pytest.raises(
            plm.FormatError,
            match=rf"{name}' is damaged between bytes {begin} and {min(begin + 64, len(data))}",
        ):
            Corpus.open(corpus)


def test_any_changed_byte_of_the_manifest_is_an_error_or_harmless(corpus):
    data = (corpus / manifest.FILE).read_bytes()
    good = Corpus.open(corpus)
    random = np.random.default_rng(2)
    refused = 0
    for at in random.integers(0, len(data), 300):
        changed = bytearray(data)
        changed[at] = random.integers(32, 127)
        (corpus / manifest.FILE).write_bytes(changed)
        try:
            found = Corpus.open(corpus)
        except plm.FormatError:
            refused += 1
        else:  # in the description of tokenizer and source
            assert found.fingerprint == good.fingerprint and np.array_equal(found.ids, good.ids)
    assert refused > 50


def rewrite(folder, name, values, **changes):
    """A corpus that lies with right checksums."""
    content = json.loads((folder / manifest.FILE).read_bytes())
    (folder / name).write_bytes(values.tobytes())
    sums = manifest.Checksums()
    sums.update(values.tobytes())
    content["files"][name] = sums.entry()
    content |= changes
    content = manifest.describe(
        content["vocab_size"], content["tokenizer"], content["source"], content["files"]
    )
    (folder / manifest.FILE).write_text(json.dumps(content))


@pytest.mark.parametrize("name", FILES[1:])
def test_boundaries_must_rise(corpus, name):
    good = np.fromfile(corpus / name, "<i8")
    for k, value, message in [
        (0, 1, "must rise from 0"),
        (3, good[2], "must rise from 0, and does not from byte 0 on"),
        (9, -5, "must rise from 0, and does not from byte 64 on"),
        (8, good[7], "must rise from 0, and does not from byte 64 on"),
        (len(good) - 1, good[-1] + 1, rf"must end with {good[-1]}, got {good[-1] + 1}"),
    ]:
        changed = good.copy()
        changed[k] = value
        rewrite(corpus, name, changed)
        with pytest.raises(plm.FormatError, match=f"{name}' {message}"):
            Corpus.open(corpus)


def test_documents_end_where_sentences_end(corpus):
    documents = np.fromfile(corpus / manifest.DOCUMENTS, "<i8")
    documents[17] += 1
    rewrite(corpus, manifest.DOCUMENTS, documents)
    with pytest.raises(
        plm.FormatError,
        match=f"document 16 ends at token {documents[17]} .* ends at token {documents[17] - 1}",
    ):
        Corpus.open(corpus)


def test_ids_must_be_in_the_vocabulary(corpus):
    ids = np.fromfile(corpus / manifest.IDS, "<u2")
    ids[70] = 1000
    rewrite(corpus, manifest.IDS, ids)
    with pytest.raises(plm.FormatError, match="has id 1000 at token 70; vocab_size is 1000"):
        Corpus.open(corpus)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"{", "corpus.json' cannot be read: not valid JSON"),
        (b"[]", "it must hold one object, got a list"),
        (b"{}", "does not describe a corpus"),
        (b'{"format": "plmcore corpus", "version": 2}', "has version 2; this plmcore reads version 1"),
        (b'{"format": "plmcore corpus", "version": 1}', "incomplete or damaged .KeyError: 'vocab_size'"),
        (b"[" * 100_000, "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
    ],
)
def test_not_a_manifest(tmp_path, content, message):
    (tmp_path / manifest.FILE).write_bytes(content)
    with pytest.raises(plm.FormatError, match=message):
        Corpus.open(tmp_path)


def test_hostile_values(corpus):
    good = json.loads((corpus / manifest.FILE).read_bytes())
    for key, value in [
        ("vocab_size", "many"),
        ("tokenizer", 7),
        ("tokenizer", {"fingerprint": 7}),
        ("source", []),
        ("vocab_size", -1),
        ("vocab_size", None),
        ("files", []),
        ("files", good["files"] | {"ids.bin": {"bytes": "x", "crc32": []}}),
        ("files", good["files"] | {"ids.bin": {"bytes": 0, "crc32": 3}}),
        ("files", good["files"] | {"ids.bin": None}),
        ("dtype", "object"),
        ("tokens", 10**18),
        ("block_bytes", 0),
    ]:
        (corpus / manifest.FILE).write_text(json.dumps(good | {key: value}))
        with pytest.raises(plm.FormatError):
            Corpus.open(corpus)


def test_absent(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="has no corpus.json; is it a corpus, and was its writing finished"
    ):
        Corpus.open(tmp_path)


def test_checksums_in_pieces():
    data = np.random.default_rng(0).bytes(3 * manifest.BLOCK + 1000)
    sums = manifest.Checksums()
    for begin in range(0, len(data), 777_777):
        sums.update(data[begin : begin + 777_777])
    blocks = [data[k : k + manifest.BLOCK] for k in range(0, len(data), manifest.BLOCK)]
    assert sums.entry() == {"bytes": len(data), "crc32": [zlib.crc32(b) for b in blocks]}
