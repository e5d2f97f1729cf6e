"""What fine-tuning leaves, opened by transformers."""

import json
import pathlib
import sys

import numpy as np
import plmcore as plm
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tasks"))
import samples

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.oracle

FAST = ["data.length=32", "data.batch=16", "optim.lr=3e-3"]


def made(family, folder):
    kind, config, head = samples.MODELS[family]
    text = folder / "text.txt"
    text.write_text("\n".join(samples.lines(200)))
    tokenizer = plm.train_tokenizer(
        [text], kind=kind, vocab_size=samples.VOCABULARY.get(family, 300), family=family
    )
    lm = plm.from_config({"model_type": family, **config}, head, vocab_size=tokenizer.vocab_size)
    lm.tokenizer = tokenizer
    lm.save(folder / "model")
    return folder / "model"


@pytest.mark.parametrize("family", ["bert", "gpt2", "xlnet"])
def test_a_classifier(tmp_path, family):
    rows = samples.reviews(64)
    (tmp_path / "train.tsv").write_text("".join(f"{t}\t{label}\n" for t, label in rows))
    out = tmp_path / "run"
    plm.finetune(
        made(family, tmp_path),
        "classification",
        train=tmp_path / "train.tsv",
        dev=tmp_path / "train.tsv",
        out=out,
        epochs=1,
        quiet=True,
        changes=FAST,
    )
    pipeline = transformers.pipeline("text-classification", model=str(out / "final"), top_k=None)
    ours = [json.loads(line) for line in (out / "dev-predictions.jsonl").read_text().splitlines()]
    for (text, _), mine, theirs in zip(rows[:8], ours, pipeline([t for t, _ in rows[:8]]), strict=False):
        assert mine["label"] == theirs[0]["label"], text
        for entry in theirs:
            assert mine["probabilities"][entry["label"]] == pytest.approx(entry["score"], abs=1e-4)


def test_a_tagger_and_answers(tmp_path):
    folder = made("bert", tmp_path)
    (tmp_path / "train.txt").write_text(samples.tagged(32))
    (tmp_path / "train.json").write_text(json.dumps(samples.questions(32)))
    changes = [*FAST, "task.stride=4", "task.question_length=8"]
    for task, file, kind in (
        ("tagging", "train.txt", "TokenClassification"),
        ("qa", "train.json", "QuestionAnswering"),
    ):
        out = tmp_path / task
        lm = plm.finetune(folder, task, train=tmp_path / file, out=out, epochs=1, quiet=True, changes=changes)
        theirs = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(out / "final").eval()
        ids = np.arange(6, 22).reshape(2, 8)
        with torch.no_grad():
            expected = theirs(torch.tensor(ids))
        found = lm(input_ids=ids)
        name = "logits" if task == "tagging" else "start_logits"
        np.testing.assert_allclose(found[name].numpy(), expected[name].numpy(), atol=1e-5)
    assert theirs.config.architectures == ["BertForQuestionAnswering"]
