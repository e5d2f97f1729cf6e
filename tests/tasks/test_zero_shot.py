"""Published tasks put to a language model that was not trained for them."""

import json

import numpy as np
import plmcore as plm
import published_files
import pytest
from plmcore import cli

NEEDED = {"cola": "sklearn", "mrpc": "sklearn", "qqp": "sklearn", "multi30k-en-de": "sacrebleu"}


@pytest.mark.parametrize(
    "name",
    [
        "race",
        "swag",
        "story-cloze",
        "cbt-ne",
        "squad",
        "squad2",
        "cola",
        "qnli",
        "snli",
        "sst5",
        "trec",
        "imdb",
        "multi30k-en-de",
    ],
)
def test_from_published_files(directory, tmp_path, capsys, name):
    """The folder, and a file by its name."""
    if name in NEEDED:
        pytest.importorskip(NEEDED[name], reason="the metric needs the extra eval")
    task, _, evaluated = published_files.write(tmp_path / "data", name)
    split = "test" if "test" in evaluated and name not in ("cola", "qnli", "swag") else next(iter(evaluated))
    arguments = ["--task", task, "--json"]
    if name in ("multi30k-en-de", "squad", "squad2"):
        arguments += ["--max-new-tokens", "3"]
    scores = []
    for path in (tmp_path / "data", evaluated[split]):
        assert cli.main(["evaluate", str(directory("gpt2")), str(path), *arguments]) == 0
        scores.append(json.loads(capsys.readouterr().out))
    assert scores[0] == scores[1] and scores[0]["records"] >= 4
    judged = {"cola": "matthews", "squad": "exact_match", "squad2": "exact_match", "multi30k-en-de": "bleu"}
    assert judged.get(name, "accuracy") in scores[0]


def test_choices_follow_their_context(directory, tmp_path):
    """SWAG: a choice goes on with the sentence; Children's Book Test: it fills the blank, and the rest of the
    sentence counts too.
    """
    lm = plm.load(directory("gpt2"))
    _, _, files = published_files.write(tmp_path, "swag")
    record = {
        "context": "A cat, grey. It",
        "choices": [" runs.", " sits, down.", " ends.", " is."],
        "label": 0,
    }
    right = plm.evaluate.choose(lm, [record]).predictions[0]
    assert plm.evaluate(lm, files["dev"], "swag")["accuracy"] == np.mean([i % 4 == right for i in range(6)])
    _, _, files = published_files.write(tmp_path, "cbt-ne")
    asked = []
    for i, r in enumerate(plm.data.task("cbt-ne").read_file(files["dev"])):
        asked.append(
            {
                "context": f"{r['context']} the",
                "choices": [f" {c} is big ." for c in r["choices"]],
                "label": i,
            }
        )
    assert plm.evaluate(lm, files["dev"], "cbt-ne", normalise="tokens")["accuracy"] == pytest.approx(
        plm.evaluate.choose(lm, asked, "tokens").accuracy
    )


def test_texts_that_do_not_fit_lose_their_beginning(directory, tmp_path):
    lm = plm.load(directory("gpt2"))
    text = json.loads(published_files.squad("1.1"))
    for paragraph in text["data"][0]["paragraphs"]:
        paragraph["context"] += " and the dog" * 40
    (tmp_path / "dev.json").write_text(json.dumps(text))
    assert plm.evaluate(lm, tmp_path / "dev.json", "squad", max_new_tokens=2)["records"] == 6
    (tmp_path / "dev.tsv").write_text(published_files.SENTENCES.replace("house", "house and the dog" * 40))
    assert plm.evaluate(lm, tmp_path / "dev.tsv", "sst2")["records"] == 8


def test_solved_examples_and_a_template(directory, tmp_path):
    lm = plm.load(directory("gpt2"))
    _, learnt, files = published_files.write(tmp_path, "rte")
    found = plm.evaluate(lm, files["dev"], "rte", shots=learnt, k=1, template="{text} {pair} ?")
    assert found["records"] == 8
    with pytest.raises(plm.ArgumentError, match="k says how many of the shots"):
        plm.evaluate(lm, files["dev"], "rte", shots=learnt)
    with pytest.raises(plm.FormatError, match="test record 1: there is no label, and nothing to score"):
        plm.evaluate(lm, files["test"], "rte")


def test_what_must_be_learnt(directory, tmp_path):
    _, _, files = published_files.write(tmp_path, "conll2003")
    with pytest.raises(plm.ArgumentError, match="has no head for tagging|needs token-classification"):
        plm.evaluate(directory("gpt2"), files["dev"], "conll2003")
    _, _, files = published_files.write(tmp_path, "swag")
    with pytest.raises(plm.ArgumentError, match="max_new_tokens means nothing to swag"):
        plm.evaluate(directory("gpt2"), files["dev"], "swag", max_new_tokens=3)
    with pytest.raises(plm.ArgumentError, match="has the head pretraining, and swag needs multiple-choice"):
        plm.evaluate(directory("bert"), files["dev"], "swag")
