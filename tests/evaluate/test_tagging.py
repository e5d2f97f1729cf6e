import os
import pathlib
import zipfile
from collections import Counter, defaultdict

import numpy as np
import pytest
from plmcore.evaluate import tagging

DATA = pathlib.Path(os.environ.get("PLM_DATA", pathlib.Path(__file__).parents[2].parent / "shared" / "data"))

REFERENCES = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "I-ORG", "O"]]
PREDICTIONS = [["B-PER", "I-PER", "O", "B-ORG"], ["O", "B-ORG", "O", "O"]]


def test_token_accuracy():
    assert tagging.token_accuracy(PREDICTIONS, REFERENCES) == 6 / 8
    # Over tokens, not sentences.
    assert tagging.token_accuracy([["A"], ["B", "B", "B"]], [["A"], ["C", "C", "B"]]) == 0.5
    with pytest.raises(ValueError, match="sentence 1 has 2 tokens and 1 predicted tags"):
        tagging.token_accuracy([["A"], ["B"]], [["A"], ["B", "C"]])
    with pytest.raises(TypeError, match="sentence 0 is one str"):
        tagging.token_accuracy(["AB"], [["A", "B"]])
    with pytest.raises(ValueError, match="no tokens"):
        tagging.token_accuracy([[]], [[]])


def test_entities():
    pytest.importorskip("seqeval", reason="needs the extra eval")
    assert tagging.entities(PREDICTIONS, REFERENCES) == pytest.approx(
        {"precision": 1 / 3, "recall": 1 / 3, "f1": 1 / 3}
    )
    by_type = tagging.entities_by_type(PREDICTIONS, REFERENCES)
    assert by_type["PER"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1}
    assert by_type["ORG"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1}
    assert tagging.entities([["O", "O"]], [["O", "B-X"]])["f1"] == 0.0


def test_entities_as_conlleval_counts_them():
    pytest.importorskip("seqeval", reason="needs the extra eval")
    same = lambda a, b: tagging.entities([a], [b])["f1"]
    assert same(["I-PER", "I-PER"], ["B-PER", "I-PER"]) == 1.0  # an I- after nothing begins an entity
    assert same(["B-PER", "I-LOC"], ["B-PER", "B-LOC"]) == 1.0  # and so does one of another type
    assert same(["B-PER", "B-PER"], ["B-PER", "I-PER"]) == 0.0
    assert same(["B-A", "E-A", "S-A"], ["B-A", "I-A", "B-A"]) == 1.0  # BIOES
    # None goes on into the next sentence.
    assert tagging.entities([["B-X"], ["I-X"]], [["B-X"], ["B-X"]])["f1"] == 1.0


def conlleval(sequences):
    """The chunks of the published Perl program, from its rules on neighbouring tags."""
    chunks = set()
    for s, tags in enumerate(sequences):
        start, before = None, ("O", "")
        for i, tag in enumerate([*tags, "O"]):
            now = tuple((tag + "-").split("-")[:2])
            ends = before[0] in "BI" and (now[0] in "BO" or now[1] != before[1])
            begins = now[0] == "B" or (now[0] == "I" and (before[0] == "O" or now[1] != before[1]))
            if ends and start is not None:
                chunks.add((s, before[1], start, i))
                start = None
            if begins:
                start = i
            before = now
    return chunks


def test_entities_against_the_rules_of_conlleval():
    theirs = pytest.importorskip("seqeval.metrics", reason="needs the extra eval")
    rng = np.random.default_rng(0)
    tags = np.array(["O", "B-X", "I-X", "B-Y", "I-Y"])
    for _ in range(50):
        sides = [[tags[rng.integers(0, 5, 6)].tolist() for _ in range(4)] for _ in range(2)]
        p, r = map(conlleval, sides)
        got = tagging.entities(*sides)
        assert got["precision"] == pytest.approx(len(p & r) / max(1, len(p)))
        assert got["recall"] == pytest.approx(len(p & r) / max(1, len(r)))
        assert got["f1"] == pytest.approx(theirs.f1_score(sides[1], sides[0], zero_division=0))


@pytest.mark.skipif(not DATA.exists(), reason="the shared data folder is not here")
def test_published_baseline_of_conll2000():
    """The most frequent chunk tag of each part of speech:

    Tjong Kim Sang and Buchholz 2000 print 72.58, 82.14, 77.07.
    """
    pytest.importorskip("seqeval", reason="needs the extra eval")
    files = zipfile.ZipFile(DATA / "nltk-corpora" / "conll2000.zip")
    train, test = (
        [[line.split() for line in block.split("\n")] for block in text.strip().split("\n\n")]
        for text in (files.read(f"conll2000/{name}.txt").decode() for name in ("train", "test"))
    )
    counts = defaultdict(Counter)
    for sentence in train:
        for _, pos, tag in sentence:
            counts[pos][tag] += 1
    best = {pos: tags.most_common(1)[0][0] for pos, tags in counts.items()}
    predictions = [[best[pos] for _, pos, _ in sentence] for sentence in test]
    got = tagging.entities(predictions, [[tag for _, _, tag in sentence] for sentence in test])
    assert {k: round(100 * v, 2) for k, v in got.items()} == {
        "precision": 72.58,
        "recall": 82.14,
        "f1": 77.07,
    }


def test_roles():
    tags = ["B-A0", "I-A0", "B-V", "B-A1", "O", "B-C-A1"]
    assert tagging.spans(tags) == {("A0", ((0, 2),)), ("A1", ((3, 4), (5, 6)))}
    assert tagging.spans(["B-C-A1", "B-A1"]) == {("A1", ((0, 1),)), ("A1", ((1, 2),))}  # nothing to continue
    without = ["B-A0", "I-A0", "B-V", "B-A1", "O", "O"]
    assert tagging.roles([without], [tags]) == {"precision": 0.5, "recall": 0.5, "f1": 0.5}  # A1 is not whole
    assert tagging.roles([["B-V", "O"]], [["B-V", "B-A1"]]) == {
        "precision": 0.0,
        "recall": 0.0,
        "f1": 0.0,
    }  # V counts not
    with pytest.raises(ValueError, match="a tag is O, B-ROLE or I-ROLE, got 'A0'"):
        tagging.roles([["A0"]], [["O"]])
