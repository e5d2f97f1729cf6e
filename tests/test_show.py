import re

import plmcore as plm
import pytest
from plmcore import cli, objectives
from plmcore.cli import show

TWO = {"translation": ["the house is red", "das Haus ist rot"]}


def lines(objective, **settings):
    """Name -> tokens."""
    page = show.show(objective, TWO.get(objective), **settings).splitlines()
    return {line[:9].strip(): line[11:].split() for line in page[1:]}


def test_every_objective_shows_an_example():
    for name in objectives.NAMES:
        page = show.show(name, TWO.get(name), {"label": "positive"} if name == "text-to-text" else {})
        assert page.startswith(f"{name}: example 0 of ") and len(page.splitlines()) > 2, page
        assert "None" not in page and "[UNK]" not in page and "<unk>" not in page and "\x1b" not in page


def test_masks_and_what_they_hide():
    found = lines("masked-lm", settings={"rate": 0.4, "shares": (1, 0, 0)})
    hidden = {i: w for i, w in enumerate(found["before"]) if found["input"][i] != w}
    assert len(hidden) > 5 and set(found["input"][i] for i in hidden) == {"[MASK]"}
    predicted = dict(re.findall(r"(\d+): (\S+)", " ".join(found["predict"])))
    assert {int(i): w for i, w in predicted.items()} == hidden


def test_two_sides():
    found = lines("translation", settings={"reverse": True})
    assert (
        found["input"] == ["red", "is", "house", "the", "</s>"]
        and found["predict"] == "das Haus ist rot </s>".split()
    )
    found = lines("span-corruption")
    assert (
        "<extra_id_0>" in found["input"]
        and found["predict"][0] == "<extra_id_0>"
        and found["predict"][-1] == "</s>"
    )
    found = lines("text-to-text", settings={"task": "stsb", "label": 2.0})
    assert found["input"][:3] == ["stsb", "sentence1", ":"] and found["predict"][-1] == "</s>"


def test_a_seed_gives_the_same_page():
    assert show.show("denoising", seed=5) == show.show("denoising", seed=5) != show.show("denoising", seed=6)


def test_colour_marks_what_is_predicted():
    page = show.show("masked-lm", settings={"rate": 0.5}, colour=True)
    assert "\x1b[1;32m" in page and "\x1b[31m[MASK]\x1b[0m" in page and "\x1b[2m[CLS]\x1b[0m" in page
    assert re.sub(r"\x1b\[[\d;]*m", "", page) == show.show("masked-lm", settings={"rate": 0.5})


def test_next_sentence_of_a_single_document_borrows_another():
    page = show.show("next-sentence", ["One two three. Four five six."])
    assert "from a built-in text" in page


def test_own_tokenizer(tmp_path):
    (tmp_path / "text").write_text(show.TEXT)
    plm.train_tokenizer([tmp_path / "text"], kind="wordpiece", family="bert", vocab_size=150).save(
        tmp_path / "dir"
    )
    page = show.show("masked-lm", tokenizer=tmp_path / "dir", settings={"unit": "word"})
    assert "[CLS]" in page and "##" in page


def test_the_command(capsys):
    text = ["--text", "The cat sat on the mat. It purred."]
    assert cli.main(["show", "masked-lm", *text, "--set", "unit=word", "rate=0.3", "--seed", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("masked-lm: example 0 of 1, seed 2, epoch 0\n") and "predict" in out
    for arguments, message in (
        (["--set", "rate"], "--set takes NAME=VALUE, got 'rate'"),
        (["--set", "rate=7"], "rate must be above 0 and up to 1, got 7"),
        (["--set", "speed=7"], "masked-lm has no setting speed"),
        (["--example", "9"], "MaskedLM has 1 examples in epoch 0, got index 9"),
        (["--tokenizer", "nowhere"], "nowhere"),
        (["--text", " "], "the text is empty"),
    ):
        wrong = [*(text if "--text" not in arguments else []), *arguments]
        assert cli.main(["show", "masked-lm", *wrong]) == 1
        assert message in capsys.readouterr().err
    assert cli.main(["show", "translation", *text]) == 1
    assert "takes --text twice" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["show", "nothing"])


def test_where_a_model_looks(tmp_path, capsys):
    tokenizer = plm.train_tokenizer(
        texts=["the cat sat on the mat"], kind="words", vocab_size=20, family="rnn-seq2seq"
    )
    sizes = dict(vocab_size=tokenizer.vocab_size, d_embed=6, d_hidden=8, encoder_layers=1, decoder_layers=1)
    lm = plm.from_config(dict(model_type="rnn-seq2seq", **sizes), "seq2seq-lm")
    lm.save(tmp_path / "lm")
    tokenizer.save(tmp_path / "lm")
    asked = [
        "show",
        "attention",
        "--model",
        str(tmp_path / "lm"),
        "--text",
        "the cat sat",
        "--target",
        "the mat",
    ]
    assert cli.main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and [line.split()[0] for line in lines] == ["</s>", "the", "mat"]
    assert cli.main([*asked, "--out", str(tmp_path / "page.html")]) == 0
    assert "from target to source" in (tmp_path / "page.html").read_text()
    plm.from_config(dict(model_type="rnn-seq2seq", attention="none", **sizes), "seq2seq-lm").save(
        tmp_path / "none"
    )
    tokenizer.save(tmp_path / "none")
    capsys.readouterr()
    for wrong, message in (
        (["show", "attention"], "attention needs --model DIR"),
        (["show", "masked-lm", "--model", "x"], "go with `plmcore show attention`"),
        (
            ["show", "attention", "--model", str(tmp_path / "none"), "--text", "the cat"],
            "no attention to show",
        ),
    ):
        assert cli.main(wrong) == 1
        assert message in capsys.readouterr().err
