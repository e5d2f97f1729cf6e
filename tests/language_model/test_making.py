"""New models that read words: which words, and with which vectors."""

import json

import numpy as np
import plmcore as plm
import pytest
from plmcore.vectors import Vectors

TEXT = "The cat sees the dog .\nA zebra sees the cat .\n"
SMALL = dict(d_char=4, char_filters=[[2, 3]], d_uni=5, d_bi=4, d_projection=3)


@pytest.fixture
def files(tmp_path):
    words = ["the", "dog", "moon"]
    vectors = Vectors(words, np.arange(12, dtype=np.float32).reshape(3, 4) / 10)
    vectors.save(tmp_path / "vectors.txt", "glove")
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path


def words_of(lm):
    tokens = sorted(lm.tokenizer.backend.vocabulary.items(), key=lambda item: item[1])
    return [word for word, _ in tokens]


def test_words_of_a_text_with_their_vectors(files):
    out = files / "model"
    lm = plm.new("cvt", out=out, text=files / "text.txt", vectors=files / "vectors.txt", **SMALL)
    words = words_of(lm)
    assert words[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    # all that are there twice, and dog, which has a vector; neither zebra nor the moon
    assert set(words[4:]) == {"the", "cat", "sees", ".", "dog"}
    assert lm.config.d_embed == 4 and lm.config.vocab_size == len(words)
    again = plm.load(out)
    table = again.model.tokens.weight.numpy()
    for word, row in (("the", 0), ("dog", 1)):
        np.testing.assert_allclose(table[words.index(word)], np.arange(4 * row, 4 * row + 4) / 10, rtol=1e-6)
    assert np.abs(table[words.index("cat")]).max() > 0
    np.testing.assert_array_equal(
        again.tokenizer("THE Cat")["input_ids"], lm.tokenizer("the cat")["input_ids"]
    )
    upper, lower = again.tokenizer("THE")["char_ids"], again.tokenizer("the")["char_ids"]
    assert (upper != lower).any()  # spelled as written


def test_words_of_either_alone(files):
    of_vectors = plm.new("cvt", out=files / "a", vectors=files / "vectors.txt", **SMALL)
    assert words_of(of_vectors)[4:] == ["the", "dog", "moon"]
    of_text = plm.new(
        "cvt", out=files / "b", text=files / "text.txt", min_count=1, lower=False, **SMALL, seed=2
    )
    assert {"The", "the", "zebra"} <= set(words_of(of_text)) and of_text.config.d_embed == 300
    few = plm.new(
        "cvt", out=files / "c", text=[files / "text.txt"], vectors=files / "vectors.txt", vocab_size=6,
        **SMALL,
    )  # fmt: skip
    assert few.config.vocab_size == 6 and words_of(few)[4] == "the"
    same = plm.new("cvt", out=files / "d", vectors=Vectors(["a"], np.ones((1, 4))), **SMALL)
    assert same.model.tokens.weight.numpy()[4].tolist() == [1, 1, 1, 1]


def test_what_cannot_be_made(files):
    vectors = files / "vectors.txt"
    for options, message in (
        (
            dict(model_type="bert", vectors=vectors),
            r"new makes models that read words \(.*cvt.*pretrain bert",
        ),
        (dict(), "new needs words: a text"),
        (dict(vectors=vectors, d_embed=7), "d_embed is 4, from words and vectors, not 7"),
        (dict(vectors=vectors, d_unni=7), "new: there is no key 'd_unni'"),
        (dict(text=files / "text.txt", min_count=0), "min_count must be at least 1, got 0"),
        (dict(vectors=vectors, out=files), "is there, and not empty"),
    ):
        with pytest.raises(plm.ArgumentError, match=message):
            plm.new(**{"model_type": "cvt", "out": files / "model", **options})
    assert not (files / "model").exists()
    with pytest.raises(FileNotFoundError):
        plm.new("cvt", out=files / "model", text=files / "none.txt")


def test_command(files, capsys):
    from plmcore import cli

    given = ["--text", str(files / "text.txt"), "--vectors", str(files / "vectors.txt")]
    sizes = [
        "--set",
        "d_uni=5",
        "--set",
        "d_projection=3",
        "--set",
        "char_filters=[[2,3]]",
        "--set",
        "d_bi=4",
    ]
    assert cli.main(["new", "cvt", *given, *sizes, "--out", str(files / "model")]) == 0
    assert "model: 9 words, " in capsys.readouterr().out
    config = json.loads((files / "model" / "config.json").read_text())
    assert config["d_uni"] == 5 and config["char_filters"] == [[2, 3]]
    assert cli.main(["new", "cvt", *given, "--out", str(files / "model")]) == 1
    assert "not empty; name another directory" in capsys.readouterr().err
