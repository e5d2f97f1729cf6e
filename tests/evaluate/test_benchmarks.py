import pytest
from plmcore.evaluate import benchmarks

SCORES = {
    "cola": {"matthews": 0.5},
    "mrpc": {"accuracy": 0.8, "f1": 0.9},
    "mnli": {"accuracy": 0.84, "accuracy_mismatched": 0.82, "loss": 3.0},
}


def test_glue():
    got = benchmarks.glue(SCORES)
    assert got == pytest.approx({"cola": 50, "mrpc": 85, "mnli": 83, "glue": (50 + 85 + 83) / 3, "tasks": 3})
    assert benchmarks.glue({"mnli": {"accuracy": 0.8}})["glue"] == pytest.approx(80)
    table = benchmarks.glue_table(SCORES).splitlines()
    assert table[2].split() == ["mrpc", "85.0", "accuracy", "80.0,", "f1", "90.0"]
    assert table[-1] == "GLUE     72.7  without sst2, stsb, qqp, qnli, rte, wnli"


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"snli": {"accuracy": 1}}, "there is no task 'snli'; one of cola, sst2"),
        ({"mrpc": {"accuracy": 1}}, "mrpc needs accuracy, f1, got accuracy: f1 is missing"),
        ({"rte": {"accuracy": 70.1}}, "metrics are fractions, got accuracy = 70.1 of rte"),
        ({}, "there are no scores"),
    ],
)
def test_bad_glue(scores, message):
    with pytest.raises(ValueError, match=message):
        benchmarks.glue(scores)


def test_decascore():
    best = {
        "squad": 70.5,
        "iwslt": 16.0,
        "cnn_dm": 24.0,
        "mnli": 70.5,
        "sst": 86.0,
        "qa_srl": 75.0,
        "qa_zre": 28.0,
        "woz": 80.0,
        "wikisql": 62.0,
        "mwsc": 48.5,
    }
    assert benchmarks.decascore(best) == 560.5
    with pytest.raises(ValueError, match="missing or unknown: squad, sst2"):
        benchmarks.decascore({**{k: v for k, v in best.items() if k != "squad"}, "sst2": 1})
    with pytest.raises(ValueError, match="points from 0 to 100, got sst = 862"):
        benchmarks.decascore({**best, "sst": 862})
