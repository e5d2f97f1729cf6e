"""Every kind of model leaves samples for the report."""

import plmcore as plm
import pytest
from plmcore import train
from plmcore.cli import demo
from plmcore.train import samples

SMALL = {
    "gpt2": ["model.n_layer=1", "model.n_embd=32", "model.n_head=2"],
    "glm": ["model.num_layers=1", "model.hidden_size=32", "model.num_attention_heads=2"],
    "xlnet": ["model.n_layer=1", "model.d_model=32", "model.n_head=2", "model.d_inner=64"],
    "bert": [
        "model.num_hidden_layers=1",
        "model.hidden_size=32",
        "model.num_attention_heads=2",
        "model.intermediate_size=64",
    ],
    "roberta": [
        "model.num_hidden_layers=1",
        "model.hidden_size=32",
        "model.num_attention_heads=2",
        "model.intermediate_size=64",
    ],
    "t5": ["model.num_layers=1", "model.d_model=32", "model.num_heads=2", "model.d_ff=64", "model.d_kv=16"],
}


@pytest.mark.parametrize("family", SMALL)
def test_a_sample_after_each_evaluation(tmp_path, family):
    (tmp_path / "text.txt").write_text(demo.manual()[:40_000])
    (tmp_path / "sst2.tsv").write_text("text\tlabel\n" + "a fine film\t1\na dull one\t0\n" * 20)
    tables = [f"sst2={tmp_path / 'sst2.tsv'}"] if family == "t5" else []
    changes = [*SMALL[family], "data.vocab=400", "train.evaluate_batches=1"]
    lm = plm.pretrain(
        family,
        text=[tmp_path / "text.txt"],
        supervised=tables,
        out=tmp_path / "run",
        steps=2,
        quiet=True,
        changes=changes,
    )
    lines = train.run_directory.read_metrics(tmp_path / "run" / "metrics.jsonl")
    found = [m["sample"] for m in lines if "sample" in m]
    assert (
        len(found) == 2
        and all(found)
        and "Sample after step 2" in (tmp_path / "run" / "report.html").read_text()
    )
    if family in ("bert", "roberta"):
        hidden, whole = found[-1].split("\n-> ")
        assert lm.tokenizer.mask_token in hidden and len(whole) > 10
    if family == "t5":
        spans, task = found[-1].split("\n\n")
        assert "<extra_id_0>" in spans.split("\n-> ")[0] and task.startswith("sst2 sentence: a ")


def test_padding_is_not_shown():
    tokenizer = plm.train_tokenizer(
        texts=["a text of words " * 9], kind="wordpiece", vocab_size=60, family="bert"
    )
    ids = tokenizer(["a text", "a text of words"]).input_ids
    assert samples.visible(tokenizer, ids[0]) == "[CLS] a text [SEP]"
