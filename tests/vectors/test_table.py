"""Vectors: look-ups, neighbours, analogies, similarities, files in four formats, and files that are wrong."""

import struct

import numpy as np
import plmcore as plm
import pytest
from plmcore.vectors import Vectors

FORMATS = ("word2vec-bin", "word2vec-text", "glove", "safetensors")
BINARY = b"2 3\na " + struct.pack("<3f", 1, 2, 3) + b"\nb " + struct.pack("<3f", 4, 5, 6) + b"\n"


@pytest.fixture
def vectors():
    rows = np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32)
    rows[3] = 1 / np.float32(3)
    return Vectors([f"wört{i}" for i in range(40)], rows, np.arange(40)[::-1] + 5)


@pytest.mark.parametrize("format", FORMATS)
def test_round_trip(vectors, tmp_path, format):
    vectors.save(tmp_path / "v", format=format)
    again = plm.load_vectors(tmp_path / "v")
    assert again.words == vectors.words and np.array_equal(again.matrix, vectors.matrix)
    if format == "safetensors":
        assert np.array_equal(again.counts, vectors.counts)
    else:
        assert again.counts is None


def test_neighbours(vectors):
    v = vectors
    unit = v.matrix / np.linalg.norm(v.matrix, axis=1, keepdims=True)
    assert np.array_equal(v["wört3"], v.matrix[3]) and "wört3" in v and "x" not in v and len(v) == 40
    assert v.similarity("wört1", "wört2") == pytest.approx(float(unit[1] @ unit[2]), abs=1e-6)
    wanted = unit[1] + unit[2] - unit[3]
    scores = unit @ wanted / np.linalg.norm(wanted)
    scores[[1, 2, 3]] = -9
    found = v.most_similar(["wört1", "wört2"], negative=["wört3"], k=4)
    assert [w for w, _ in found] == [v.words[i] for i in np.argsort(-scores)[:4]]
    assert found[0][1] == pytest.approx(scores.max(), abs=1e-6)
    assert v.most_similar("wört1", k=100)[0][0] != "wört1" and len(v.most_similar("wört1", k=100)) == 39
    with pytest.raises(KeyError, match="no vector of 'x'"):
        v["x"]
    with pytest.raises(plm.ArgumentError, match="k must be"):
        v.most_similar("wört1", k=0)
    with pytest.raises(plm.ArgumentError, match="at least one word"):
        v.most_similar([])


def test_analogies_and_similarities(tmp_path):
    rows = [[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1]]
    v = Vectors(["man", "woman", "king", "queen", "other"], np.array(rows, np.float32))
    file = tmp_path / "q.txt"
    file.write_text(": family\nMan Woman King Queen\nman woman queen other\nman woman king nobody\n")
    found = v.analogies(file)
    assert (found.right, found.total, found.accuracy) == (1, 2, 0.5)
    assert v.analogies(file, restrict=3).total == 0
    pairs = tmp_path / "p.txt"
    pairs.write_text("man woman 9\nKing\tqueen\t8\nman king 1\nman nobody 5\n")
    found = v.similarities(pairs)
    assert (
        found.pairs == 3 and found.missing == 1 and found.spearman == pytest.approx(np.sqrt(0.75), abs=1e-6)
    )
    for text in ("man woman king\n", "a b c d e\n"):
        file.write_text(text)
        with pytest.raises(plm.FormatError, match="line 1: it must have"):
            v.analogies(file)
    file.write_text("man woman much\n")
    with pytest.raises(plm.FormatError, match="line 1: it must have two words and a number"):
        v.similarities(file)


BAD = {
    "truncated": (BINARY[:-4], "ends in word 2"),
    "too few": (b"900 3\n" + BINARY[4:], "too few for 900 words"),
    "more": (BINARY + b"c " + bytes(12), "goes on behind its 2 words"),
    "nan": (
        BINARY.replace(struct.pack("<f", 5), struct.pack("<f", np.nan)),
        "'b' has a number that is not finite",
    ),
    "twice": (BINARY.replace(b"\nb ", b"\na "), "the word 'a' is there twice"),
    "dim": (b"2 0\na \nb \n", "dimensions"),
    "text count": (b"3 2\na 1.0 2.0\nb 1.0 2.0\n", "it has 2 words, and its first line says 3"),
    "text dim": (b"2 2\na 1.0 2.0\nb 1.0 2.0 3.0\n", "line 3 has more than 2 numbers"),
    "text short": (b"2 2\na 1.0 2.0\nb 1.0\n", "line 3 has 1 numbers"),
    "text space": (b"1 2\na 1.0 2.0\nb c 1.0 2.0\n", "line 3 has more than 2 numbers"),
    "text nan": (b"1 2\na 1.0 nan\n", "not finite"),
    "glove dim": (b"a 1.0 2.0\nb 1.0 2.0 3.0\n", "line 2 has more than 2 numbers"),
    "glove short": (b"a 1.0 2.0\nb 1.0\n", "line 2 has 1 numbers"),
    "glove word": (b"a 1.0 2.0\nb 1.0 x\n", "line 2 has something that is not a number"),
    "glove twice": (b"a 1.0 2.0\na 1.0 2.0\n", "the word 'a' is there twice"),
    "utf8": (b"a 1.0 2.0\n\xff 1.0 2.0\n", "not UTF-8"),
    "none": (b"hello world\n", "none of the formats"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_files(tmp_path, name):
    content, message = BAD[name]
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(plm.FormatError, match=message):
        plm.load_vectors(tmp_path / "v")


def test_words_with_spaces(tmp_path):
    v = Vectors(["a", "at home"], np.eye(2, dtype=np.float32))
    v.save(tmp_path / "v", format="glove")
    assert plm.load_vectors(tmp_path / "v").words == ["a", "at home"]
    for format in ("word2vec-bin", "word2vec-text"):
        with pytest.raises(plm.ArgumentError, match="'at home' has a space"):
            v.save(tmp_path / "v", format=format)


def test_wrong_arguments(tmp_path):
    one = np.ones((1, 2), np.float32)
    for words, matrix, message in (
        (["a", "b"], one, "2 words need a matrix"),
        (["a", "a"], np.ones((2, 2)), "'a' is there twice"),
        (["a"], one * np.nan, "not finite"),
    ):
        with pytest.raises(plm.ArgumentError, match=message):
            Vectors(words, matrix)
    with pytest.raises(plm.ArgumentError, match="format must be"):
        Vectors(["a"], one).save(tmp_path / "v", format="csv")
    with pytest.raises(FileNotFoundError):
        plm.load_vectors(tmp_path / "none")
    plm.safetensors.write(tmp_path / "m.safetensors", {"x": one})
    with pytest.raises(plm.FormatError, match="holds no word vectors"):
        plm.load_vectors(tmp_path / "m.safetensors")


@pytest.mark.parametrize("format", FORMATS)
def test_damaged_files(vectors, tmp_path, format):
    """Any damage is an error of ours or gives vectors; nothing else."""
    path, rng = tmp_path / "v", np.random.default_rng(1)
    vectors.save(path, format=format)
    whole = path.read_bytes()
    for _ in range(150):
        data = bytearray(whole[: rng.integers(len(whole))] if rng.random() < 0.3 else whole)
        for _ in range(rng.integers(0, 4)):
            if data:
                data[rng.integers(min(len(data), rng.choice([12, 100, len(data)])))] = rng.integers(256)
        path.write_bytes(data)
        try:
            assert len(plm.load_vectors(path)) > 0
        except plm.FormatError:
            pass
