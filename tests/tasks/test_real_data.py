"""Published files as they are, through the command: the first records of each, and all counts."""

import gzip
import itertools
import json
import os
import pathlib
import zipfile

import pytest
from plmcore import cli, data

DATA = pathlib.Path(
    os.environ.get("PLM_DATA", pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data")
)
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no data folder '{DATA}' (PLM_DATA)")

# task, files to learn from and to evaluate, further arguments, the package that its metric needs
FILES = [
    ("cola", "glue-small/cola.train.tsv.gz", "glue-small/cola.dev.tsv.gz", [], "sklearn"),
    ("mrpc", "glue-small/mrpc.train.tsv.gz", "glue-small/mrpc.test.tsv.gz", [], "sklearn"),
    ("rte", "glue-small/rte.train.tsv.gz", "glue-small/rte.dev.tsv.gz", [], None),
    ("sst2", "sst2/train.tsv", "sst2/dev.tsv", [], None),
    ("snli", "snli/dev.tsv", "snli/test.tsv", [], None),
    ("stsb", "stsb/stsb-en-train.csv", "stsb/stsb-en-dev.csv", [], "scipy"),
    ("conll2003", "conll2003/eng.train.gz", "conll2003/eng.testa.gz", [], "seqeval"),
    (
        "ud-english-ewt",
        "ud-english-ewt/en_ewt-ud-dev.conllu",
        "ud-english-ewt/en_ewt-ud-test.conllu",
        [],
        None,
    ),
    ("imdb", "imdb/train.tsv.gz", "imdb/test.tsv.gz", ["--columns", "label,-,-,text"], None),
    (
        "classification",
        "ag-news/test.csv.gz",
        "ag-news/test.csv.gz",
        ["--columns", "text=content,label=label"],
        None,
    ),
    ("multi30k-en-de", "multi30k/train.en.gz", "multi30k/val.de.gz", [], "sacrebleu"),
]
COUNTS = {  # of all records, as published
    "cola": ("glue-small/cola.train.tsv.gz", 8551),
    "mrpc": ("glue-small/mrpc.train.tsv.gz", 4076),
    "rte": ("glue-small/rte.dev.tsv.gz", 277),
    "snli": ("snli/dev.tsv", 10_000),
    "conll2003": ("conll2003/eng.testb.gz", 3453),
    "lambada": ("lambada/lambada_test.jsonl.gz", 5153),
    "xquad-en": ("squad-xquad-en/xquad.en.json", 1190),
    "multi30k-en-de": ("multi30k/train.en.gz", 29_000),
}


def copied(folder, name, lines=300):
    """The beginning of a file, under its name, packed as it is."""
    source, target = DATA / name, folder / name
    if not source.exists():
        pytest.skip(f"there is no {name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    opened = gzip.open if source.suffix == ".gz" else open
    with opened(source, "rb") as f, opened(target, "wb") as out:
        out.writelines(itertools.islice(f, lines))
    return target


def learn(directory, out, family, *arguments):
    settings = ["--steps", "1", "--set", "data.length=48", "--set", "task.target_length=4", "--out", str(out)]
    assert cli.main(["finetune", str(directory(family)), *map(str, arguments), *settings]) == 0
    return json.loads((out / "scores.json").read_text())


@pytest.mark.parametrize("task, train, test, arguments, needed", FILES, ids=[row[0] for row in FILES])
def test_files_by_name(directory, tmp_path, capsys, task, train, test, arguments, needed):
    if needed:
        pytest.importorskip(needed, reason="the metric needs the extra eval")
    train, test = copied(tmp_path, train), copied(tmp_path, test)
    if task.startswith("multi30k"):
        copied(tmp_path, "multi30k/train.de.gz"), copied(tmp_path, "multi30k/val.en.gz")
    family = "bart" if task.startswith("multi30k") else "bert"
    common = ["--task", task, "--train", train, "--test", test, *arguments]
    scores = learn(directory, tmp_path / "run", family, *common)["test"]
    capsys.readouterr()
    assert cli.main(["evaluate", str(tmp_path / "run" / "final"), str(test), "--json", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.pop("records") >= 10 and found == {
        k: v if isinstance(v, str) else pytest.approx(v) for k, v in scores.items()
    }


@pytest.mark.parametrize("task", COUNTS)
def test_all_records(task):
    file, count = COUNTS[task]
    if not (DATA / file).exists():
        pytest.skip(f"there is no {file}")
    assert sum(1 for _ in data.task(task).read_file(DATA / file)) == count


@pytest.mark.parametrize(
    "task, archive",
    [("conll2000", "conll2000"), ("trec", "qc"), ("trec-fine", "qc"), ("imdb", "movie_reviews")],
)
def test_folders(directory, tmp_path, task, archive):
    if task == "conll2000":
        pytest.importorskip("seqeval", reason="the metric needs the extra eval")
    if not (DATA / "nltk-corpora" / f"{archive}.zip").exists():
        pytest.skip(f"there is no {archive}.zip")
    with zipfile.ZipFile(DATA / "nltk-corpora" / f"{archive}.zip") as f:
        f.extractall(tmp_path)
    folder = tmp_path / archive
    if task == "imdb":  # a folder that is one split
        for file in [*sorted((folder / "neg").iterdir())[20:], *sorted((folder / "pos").iterdir())[20:]]:
            file.unlink()
        scores = learn(
            directory, tmp_path / "run", "bert", "--task", task, "--train", folder, "--test", folder
        )
    else:
        for file in folder.glob("*.txt"):
            lines = file.read_bytes().splitlines(keepends=True)
            file.write_bytes(b"".join(lines[:800]))
        scores = learn(directory, tmp_path / "run", "bert", "--task", task, "--data", folder)
    assert list(scores) == ["test"] and scores["test"]


def test_questions(directory, tmp_path):
    source = DATA / "squad-xquad-en" / "xquad.en.json"
    if not source.exists():
        pytest.skip("there is no xquad.en.json")
    file = tmp_path / "xquad.en.json"
    text = json.loads(source.read_text())
    file.write_text(json.dumps(text | {"data": text["data"][:2]}))
    scores = learn(
        directory, tmp_path / "run", "bert", "--task", "xquad-en", "--train", file, "--data", tmp_path
    )
    assert {"exact_match", "f1"} <= scores["test"].keys()


@pytest.mark.parametrize("task, file", [
    ("cola", "glue-small/cola.dev.tsv.gz"), ("rte", "glue-small/rte.dev.tsv.gz"), ("sst2", "sst2/dev.tsv"),
    ("snli", "snli/test.tsv"),
    ("lambada", "lambada/lambada_test.jsonl.gz"),
])  # fmt: skip
def test_without_training(directory, tmp_path, capsys, task, file):
    if task == "cola":
        pytest.importorskip("sklearn", reason="the metric needs the extra eval")
    path = copied(tmp_path, file, 40)
    assert cli.main(["evaluate", str(directory("gpt2")), str(path), "--task", task, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.get("records", found.get("texts")) >= 39
    if task == "lambada":
        assert cli.main(["evaluate", str(directory("gpt2")), str(path.parent), "--task", task, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == pytest.approx(found)
