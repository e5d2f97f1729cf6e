import json

import numpy as np
import plmcore as plm
import pytest
import samples


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_the_likeliest_tokens_for_a_mask(directory, family):
    lm = plm.load(directory(family))
    mask = lm.tokenizer.mask_token
    found = lm.fill_mask(f"the cat is in {mask} house", k=3)
    assert [f["probability"] for f in found] == sorted(
        (f["probability"] for f in found), reverse=True
    ) and len(found) == 3
    batch = lm.tokenizer(f"the cat is in {mask} house")
    out = lm(**{k: batch[k][None] for k in ("input_ids", "attention_mask")})
    logits = (out.prediction_logits if family == "bert" else out.logits).numpy()[0]
    row = logits[batch.input_ids.tolist().index(lm.tokenizer.mask_token_id)].astype(np.float64)
    chances = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
    assert [f["id"] for f in found] == np.argsort(-chances, kind="stable")[:3].tolist()
    np.testing.assert_allclose([f["probability"] for f in found], np.sort(chances)[::-1][:3], rtol=1e-4)
    assert mask not in found[0]["text"]
    two = lm.fill_mask(f"the {mask} is in the {mask}", k=2)
    assert len(two) == 2 and len(two[0]) == 2 and mask in two[0][0]["text"]


def test_what_cannot_be_asked(directory):
    lm = plm.load(directory("bert"))
    with pytest.raises(ValueError, match=r"the text has no \[MASK\]"):
        lm.fill_mask("the cat")
    with pytest.raises(ValueError, match="k must be at least 1"):
        lm.fill_mask("the [MASK]", k=0)
    with pytest.raises(ValueError, match="this model has the head pretraining; fine-tune it"):
        lm.classify("the cat")
    with pytest.raises(ValueError, match="not one for masked tokens"):
        plm.load(directory("gpt2")).fill_mask("the cat")
    with pytest.raises(ValueError, match="2 texts and 1 pairs; each text needs one"):
        lm.classify(["a cat", "a dog"], ["the cat"])
    lm.tokenizer = None
    with pytest.raises(ValueError, match="no tokenizer"):
        lm.classify("the cat")


def test_rows_of_a_batch_do_not_matter_to_each_other(directory):
    with pytest.warns(UserWarning, match="drawn at random"):
        lm = plm.load(directory("xlnet"), head="sequence-classification", num_labels=3)
    texts = ["the cat", "the lovely horse is in the garden", "dog"]
    together = lm.classify(texts)
    for text, found in zip(texts, together, strict=True):
        alone = lm.classify(text)
        assert alone["label"] == found["label"] in ("LABEL_0", "LABEL_1", "LABEL_2")
        assert alone["probability"] == pytest.approx(found["probability"], abs=1e-5)
    assert lm.classify([]) == []


def test_answers_in_a_context(directory, tmp_path):
    """Like the predictions of a run; what the directory remembers of questions without answers holds here
    too.
    """
    questions = samples.questions(24)
    for paragraph in questions["data"][0]["paragraphs"][:18]:
        paragraph["qas"][0] |= {"answers": [], "is_impossible": True}
    file, out = tmp_path / "questions.json", tmp_path / "run"
    file.write_text(json.dumps(questions))
    changes = ["data.length=32", "optim.lr=3e-3"]
    plm.finetune(
        directory("bert"), "squad2", train=file, dev=file, out=out, quiet=True, steps=20, changes=changes
    )
    wanted = [json.loads(line) for line in (out / "dev-predictions.jsonl").read_text().splitlines()]
    lm = plm.load(out / "final")
    paragraphs = questions["data"][0]["paragraphs"]
    asked = [p["qas"][0]["question"] for p in paragraphs], [p["context"] for p in paragraphs]
    found = lm.answer(*asked)
    assert [f["answer"] for f in found] == [w["answer"] for w in wanted] and "" in [
        f["answer"] for f in found
    ]
    assert lm.answer(asked[0][0], asked[1][0])["answer"] == found[0]["answer"] and lm.answer([], []) == []
    assert found[0]["n_best"][0]["answer"] in paragraphs[0]["context"]
    with pytest.raises(plm.ArgumentError, match="1 questions and 2 contexts"):
        lm.answer(["who"], ["a", "b"])
    with pytest.raises(plm.ArgumentError, match="both be texts"):
        lm.answer("who", ["a"])
    with pytest.raises(plm.ArgumentError, match="has the head pretraining; fine-tune it for qa"):
        plm.load(directory("bert")).answer("who", "a")


@pytest.mark.parametrize("family", ["bert", "gpt2", "xlnet"])
def test_vectors_do_not_depend_on_the_side_of_padding(directory, tmp_path, family):
    """Absolute positions count from the beginning of the text, not of the padding."""
    lm = plm.load(directory(family), head="base")
    if lm.tokenizer.pad_token is None:
        lm.tokenizer.set_special("pad", lm.tokenizer.eos_token)
    texts = ["the cat", "the lovely horse is in the garden"]
    alone = [lm.encode(text) for text in texts]
    for side in ("left", "right"):
        lm.tokenizer.padding_side = side
        np.testing.assert_allclose(lm.encode(texts), alone, atol=1e-5)


def test_a_model_that_writes_its_answers(directory, table, tmp_path):
    """How probable each class's name is to it, as evaluate.choose finds it, behind the published prefix."""
    rows = [(text, int(label == "good")) for text, label in samples.reviews(16)]
    files = dict(train=table("train.tsv", rows), steps=2, quiet=True)
    options = ["task.as_text=true", "data.length=24"]
    lm = plm.finetune(directory("t5"), "sst2", out=tmp_path / "classes", changes=options, **files)
    texts = [text for text, _ in rows[:3]]
    found = lm.classify(texts)
    choices = [{"context": f"sst2 sentence: {text}", "choices": ["negative", "positive"]} for text in texts]
    for f, scores in zip(found, plm.evaluate.choose(lm, choices).scores, strict=True):
        chances = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        np.testing.assert_allclose([f["probabilities"]["0"], f["probabilities"]["1"]], chances, rtol=1e-4)
        assert f["label"] == str(int(scores.argmax())) and f["probability"] == max(
            f["probabilities"].values()
        )
    assert lm.classify(texts[0])["label"] == found[0]["label"] and lm.classify([]) == []
    with pytest.raises(ValueError, match="load it with head='seq2seq-lm', not base"):
        plm.load(tmp_path / "classes" / "final", head="base").classify(texts)


def test_a_model_that_writes_numbers(directory, table, tmp_path):
    pytest.importorskip("scipy")
    rows = samples.weights()[:16]
    lm = plm.finetune(
        directory("t5"),
        "regression",
        train=table("numbers.tsv", rows),
        out=tmp_path / "run",
        steps=2,
        quiet=True,
        changes=["task.as_text=true", "data.length=24"],
    )
    assert isinstance(lm.classify(rows[0][0])["value"], float)
