import json
import os
import pathlib

import pytest
from plmcore.evaluate import answers

DATA = pathlib.Path(os.environ.get("PLM_DATA", pathlib.Path(__file__).parents[2].parent / "shared" / "data"))


def test_normalised():
    assert answers.normalised("  The  Cat's an—idea, a b.c ") == "cats —idea bc"
    assert answers.normalised("theatre another") == "theatre another"  # articles are words


def test_squad_by_hand():
    got = answers.squad(
        ["the Eiffel Tower!", "in Paris, France", "", "no"],
        [["Eiffel tower"], ["Paris", "Paris France"], "", ["yes", "yes it is"]],
    )
    # 1; 2 of 3 words against 2: P 2/3, R 1, F 4/5; both without answer; nothing shared
    assert got == pytest.approx({"exact_match": 2 / 4, "f1": (1 + 0.8 + 1 + 0) / 4})
    # A is an article.
    assert answers.token_f1("a b b c", "b b b") == pytest.approx(2 * (2 / 3) * (2 / 3) / (4 / 3))
    assert answers.token_f1("", "x") == 0.0 == answers.token_f1("x", "the")


def test_corpus_f1():
    # of 3 answers 1 is right, of 2 questions with an answer 1
    assert answers.corpus_f1(["Bern", "x", "", "y"], ["bern", "", "z", ["", "."]]) == pytest.approx(2 / 5)


def test_bad_references():
    with pytest.raises(ValueError, match="example 1 has no reference"):
        answers.squad(["a", "b"], ["a", []])
    with pytest.raises(TypeError, match="example 0 has 3"):
        answers.squad(["a"], [[3]])


@pytest.mark.skipif(not DATA.exists(), reason="the shared data folder is not here")
def test_right_answers_of_xquad_score_one():
    articles = json.loads((DATA / "squad-xquad-en" / "xquad.en.json").read_text(encoding="utf-8"))["data"]
    right = [
        [a["text"] for a in question["answers"]]
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    assert answers.squad([r[0] for r in right], right) == {"exact_match": 1.0, "f1": 1.0}
    shifted = answers.squad([r[0] for r in right[1:] + right[:1]], right)
    assert len(right) == 1190 and shifted["exact_match"] < shifted["f1"] < 0.1
