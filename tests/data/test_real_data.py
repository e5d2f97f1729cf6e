"""Published files as they are: counts as published, and corpora whose ids are those of the whole text."""

import os
import pathlib
import zipfile

import numpy as np
import pytest
from plmcore.data import Corpus, layouts, read_parallel, read_text, task, write_corpus
from plmcore.tokenizers import load_tokenizer

DATA = pathlib.Path(
    os.environ.get("PLM_DATA", pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data")
)
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no data folder '{DATA}' (PLM_DATA)")


def unpacked(folder, name):
    with zipfile.ZipFile(DATA / name) as f:
        f.extractall(folder)
    return folder


@pytest.mark.parametrize(
    "name, folder, counts",
    [
        ("snli", "snli", {"dev": 10_000, "test": 10_000}),
        ("xquad-en", "squad-xquad-en", {"test": 1190}),
        ("ud-english-ewt", "ud-english-ewt", {"dev": 2001, "test": 2077}),
        ("multi30k-en-de", "multi30k", {"train": 29_000, "dev": 1014, "test": 1000}),
    ],
)
def test_published_counts(name, folder, counts):
    assert {split: sum(1 for _ in task(name).read(DATA / folder, split)) for split in counts} == counts


def test_answers_are_in_their_contexts():
    for record in task("xquad-en").read(DATA / "squad-xquad-en", "test"):
        [answer] = record["answers"]
        assert record["context"][answer["start"] :].startswith(answer["text"])


def test_chunks(tmp_path):
    folder = unpacked(tmp_path, "nltk-corpora/conll2000.zip") / "conll2000"
    sentences = list(task("conll2000").read(folder, "train"))
    assert len(sentences) == 8936 and sum(len(s["tokens"]) for s in sentences) == 211_727
    assert sum(1 for _ in task("conll2000").read(folder, "test")) == 2012
    assert {tag[:2] for s in sentences for tag in s["tags"]} == {"B-", "I-", "O"}


def test_own_declarations(tmp_path):
    """Tables that others saved without a header."""
    sst = layouts.table({"text": "text"}, classes=("0", "1"), header=["text", "label"])
    assert [sum(1 for _ in sst(DATA / "sst2" / f"{s}.tsv", "strict")) for s in ("train", "dev", "test")] == [
        6920,
        872,
        1821,
    ]
    similar = layouts.table({"text": "a", "pair": "b"}, header=["a", "b", "label"])
    records = list(similar(DATA / "stsb" / "stsb-en-train.csv", "strict"))
    assert (
        len(records) == 5749
        and 0 <= min(r["label"] for r in records) <= max(r["label"] for r in records) == 5
    )
    questions = unpacked(tmp_path, "nltk-corpora/qc.zip") / "qc"
    for name, classes in (("trec", 6), ("trec-fine", 50)):
        labels = [[r["label"] for r in task(name).read(questions, split)] for split in ("train", "test")]
        assert [len(x) for x in labels] == [5452, 500] and set(labels[0]) == set(range(classes))
    reviews = layouts.folders(("neg", "pos"))
    labels = [
        r["label"]
        for r in reviews(unpacked(tmp_path, "nltk-corpora/movie_reviews.zip") / "movie_reviews", "strict")
    ]
    assert len(labels) == 2000 and sum(labels) == 1000


def test_pairs(tmp_path):
    folder = unpacked(tmp_path, "tatoeba/spa-eng.zip")
    assert next(task("tatoeba-en-es").read(folder, "all")) == {"source": "Go.", "target": "Ve."}
    pairs = read_parallel(DATA / "multi30k" / "val.en.gz", DATA / "multi30k" / "val.de.gz")
    assert sum(1 for _ in pairs) == 1014


@pytest.mark.parametrize("sentences", ["rule", "lines", "document"])
def test_a_corpus_of_byte_pairs_is_the_text(tmp_path, sentences):
    """Sentences are encoded apart, and give the ids of the whole document."""
    tokenizer = load_tokenizer(DATA / "vocab-gpt2", family="gpt2")
    text = (DATA / "wikitext-2" / "wiki.valid.raw").read_text()[:300_000]
    (tmp_path / "in.txt").write_text(text)
    corpus = write_corpus(tmp_path / "out", tmp_path / "in.txt", tokenizer, workers=1, sentences=sentences)
    texts = list(read_text(tmp_path / "in.txt"))
    assert len(corpus) == len(texts)
    for k, ids in enumerate(tokenizer.encode_ids(texts)):
        assert tokenizer.decode(corpus[k]) == texts[k]
        assert sentences == "lines" or np.array_equal(corpus[k], ids)
    assert Corpus.open(tmp_path / "out").fingerprint == corpus.fingerprint
