"""What an earlier version wrote is read: runs go on, programs and quantised directories give what they gave.

tests/golden/make_runs.py and make_programs.py wrote the files. Other kernels round otherwise, so numbers are
compared, not bits.
"""

import json
import pathlib
import shutil

import numpy as np
import plmcore as plm
import pytest

GOLDEN = pathlib.Path(__file__).parent / "golden"
RUNS = sorted((GOLDEN / "runs").iterdir())
PROGRAMS = sorted((GOLDEN / "programs").glob("*.plm"))
TIMES = ("seconds", "tokens_per_second")


def told(line):
    return {k: v for k, v in line.items() if k not in TIMES}


@pytest.mark.parametrize("folder", RUNS, ids=lambda p: p.name)
def test_a_stopped_run_goes_on_to_the_end_that_it_had(folder, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path / folder.name)
    monkeypatch.chdir(tmp_path / folder.name)  # its settings name files of this folder
    resume = plm.finetune if (folder / "table.tsv").exists() else plm.pretrain
    resume(out="run", resume=True, quiet=True)
    lines = [json.loads(line) for line in pathlib.Path("run/metrics.jsonl").read_text().splitlines()]
    before = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    rest = json.loads((folder / "rest.json").read_text())
    half = min(line["step"] for line in rest) - 1
    kept = [line for line in before if line["step"] <= half]
    assert lines[: len(kept)] == kept
    for line, stored in zip(map(told, lines[len(kept) :]), rest, strict=True):
        assert line.keys() == stored.keys()
        for name, value in stored.items():
            if not isinstance(value, str):  # a sample turns on a hair
                assert line[name] == pytest.approx(value, rel=1e-4), f"step {line['step']}: {name}"
    assert "damaged" not in pathlib.Path("run/sessions.txt").read_text()
    plm.load("run/final")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
@pytest.mark.parametrize("mapped", [True, False])
def test_an_exported_program_gives_what_it_gave(path, mapped):
    with np.load(path.with_suffix(".npz")) as stored:
        inputs = {name: stored[name] for name in stored.files if not name.startswith("out.")}
        found = plm.load_programs(path, mapped=mapped)["main"](**inputs)
        outputs = {name.removeprefix("out."): stored[name] for name in stored.files if name not in inputs}
        assert outputs.keys() == found.keys() and outputs
        for name, y in outputs.items():
            np.testing.assert_allclose(found[name].numpy(), y, rtol=1e-5, atol=1e-5)


def test_a_quantised_directory_gives_what_it_gave():
    folder = GOLDEN / "quantized" / "gpt2"
    with np.load(folder / "outputs.npz") as stored:
        lm = plm.load(folder)
        found = lm(input_ids=stored["input_ids"], attention_mask=stored["attention_mask"]).logits
        np.testing.assert_allclose(found.numpy(), stored["logits"], rtol=1e-5, atol=1e-5)


def test_a_model_file_with_a_card_gives_what_it_gave():
    session = plm.Program.load(GOLDEN / "card.plm")
    session.model.verify()
    with np.load(GOLDEN / "card.npz") as stored:
        texts = stored["texts"].tolist()
        found = session.classify(texts)
        assert [c.label for c in found] == stored["labels"].tolist()
        np.testing.assert_allclose([c.probabilities for c in found], stored["probabilities"], rtol=1e-5)
        np.testing.assert_allclose(session.encode(texts), stored["vectors"], rtol=1e-5, atol=1e-6)
        assert session.text.encode(texts[1])[0] == stored["ids"].tolist()
