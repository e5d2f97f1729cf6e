import importlib
import subprocess
import sys

import pytest
from plmcore import evaluate
from plmcore.evaluate import metrics
from plmcore.evaluate.needed import PACKAGES

# A right answer for every metric, and its score
TAGS = [["B-A0", "O"]]
EXAMPLES = {
    "accuracy": ([1, 0], [1, 0], 1.0),
    "f1": ([1, 0], [1, 0], 1.0),
    "f1_micro": ([1, 2], [1, 2], 1.0),
    "f1_macro": ([1, 2], [1, 2], 1.0),
    "matthews": ([1, 0], [1, 0], 1.0),
    "senses": (["a"], ["a"], {"precision": 1.0, "recall": 1.0, "f1": 1.0}),
    "reciprocal_rank": ([[1, 2]], [1], 1.0),
    "pearson": ([1, 2], [2, 4], 1.0),
    "spearman": ([1, 2], [2, 9], 1.0),
    "token_accuracy": (TAGS, TAGS, 1.0),
    "entities": (TAGS, TAGS, {"precision": 1.0, "recall": 1.0, "f1": 1.0}),
    "chunks": (TAGS, TAGS, {"precision": 1.0, "recall": 1.0, "f1": 1.0}),
    "roles": (TAGS, TAGS, {"precision": 1.0, "recall": 1.0, "f1": 1.0}),
    "squad": (["a b"], [["b"]], {"exact_match": 1.0, "f1": 1.0}),
    "corpus_f1": (["b"], ["b"], 1.0),
    "bleu": (["a b c d"], ["a b c d"], 100.0),
    "rouge": (["a b"], ["a b"], {"rouge1": 1.0, "rouge2": 1.0, "rougeL": 1.0, "rougeLsum": 1.0}),
    "cider": (["a b c d", "e f g h"], ["a b c d", "e f g h"], 10.0),
    "coreference": ([["ab"]], [["ab"]], {"muc": 1.0, "b_cubed": 1.0, "ceaf": 1.0, "conll": 1.0}),
    "muc": ([["ab"]], [["ab"]], {"precision": 1.0, "recall": 1.0, "f1": 1.0}),
    "b_cubed": ([["ab"]], [["ab"]], {"precision": 1.0, "recall": 1.0, "f1": 1.0}),
    "ceaf": ([["ab"]], [["ab"]], {"precision": 1.0, "recall": 1.0, "f1": 1.0}),
    "wer": (["a b"], ["a b"], 0.0),
    "cer": (["a b"], ["a b"], 0.0),
}


def found(name):
    predictions, references, _ = EXAMPLES[name]
    try:
        return evaluate.metric(name)(predictions, references)
    except ModuleNotFoundError as e:
        assert "pip install 'plmcore[eval]'" in str(e)
        pytest.skip("needs the extra eval")


@pytest.mark.parametrize("name", metrics.METRICS)
def test_every_metric(name):
    got, want = found(name), EXAMPLES[name][2]
    assert (got["bleu"] if name == "bleu" else got) == pytest.approx(want)


def test_every_task_has_known_metrics():
    names = {name for task in metrics.TASKS for name in evaluate.metrics_of(task)}
    assert names <= set(metrics.METRICS)
    with pytest.raises(ValueError, match="there is no task 'sst'; one of captioning"):
        evaluate.metrics_of("sst")
    with pytest.raises(ValueError, match="there is no metric 'acc'; one of accuracy"):
        evaluate.metric("acc")


def test_compute():
    got = evaluate.compute(["accuracy", "rouge"], ["a b", "c"], ["a b", "d"])
    assert got["accuracy"] == got["rougeL"] == 0.5
    assert evaluate.compute("cer", ["ab"], ["ac"]) == {"cer": 0.5}
    with pytest.raises(ValueError, match="b_cubed and another metric both have the score 'f1'"):
        evaluate.compute(["muc", "b_cubed"], [["ab"]], [["ab"]])


@pytest.mark.parametrize("module", PACKAGES)
def test_a_missing_library_is_one_sentence(module, monkeypatch):
    metric = {"sklearn": "matthews", "scipy": "ceaf", "sacrebleu": "bleu", "seqeval": "entities"}[module]
    for name in [m for m in sys.modules if m.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    real = importlib.import_module

    def without(name, *args):
        if name.partition(".")[0] == module:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args)

    monkeypatch.setattr("plmcore.evaluate.needed.import_module", without)
    with pytest.raises(ModuleNotFoundError) as e:
        evaluate.metric(metric)(*EXAMPLES[metric][:2])
    assert (
        str(e.value)
        == f"{metric} needs {PACKAGES[module]}, which is not installed: pip install 'plmcore[eval]'"
    )


def test_importing_is_light():
    code = (
        "import sys, plmcore; plmcore.evaluate.metric('matthews'); print([m for m in ('sklearn', 'scipy', "
        "'sacrebleu', 'seqeval') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize("metric", metrics.METRICS)
def test_the_libraries_of_metrics_are_known(metric, monkeypatch):
    """With none of them installed those metrics fail, and those alone, that are said to need one; and
    check_installed says it before.
    """

    def without(name, *args):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("plmcore.evaluate.needed.import_module", without)
    if metric not in metrics.LIBRARIES:
        evaluate.metric(metric)(*EXAMPLES[metric][:2])
        metrics.check_installed([metric])
        return
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        evaluate.metric(metric)(*EXAMPLES[metric][:2])
    with pytest.raises(ModuleNotFoundError, match=f"^{metric} needs .*, which is not installed: pip install"):
        metrics.check_installed(["accuracy", metric])
