"""Fine-tuning of a translation model with sources that have no translation."""

import json

import killing
import numpy as np
import plmcore as plm
import pytest
from plmcore.tasks import cross_view

pytest.importorskip("sacrebleu", reason="BLEU needs the extra eval")
WORDS = {"eins": "one", "zwei": "two", "drei": "three", "vier": "four", "acht": "eight"}


def source(rng):
    return [list(WORDS)[i] for i in rng.integers(0, len(WORDS), rng.integers(2, 5))]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("translation"), np.random.default_rng(0)
    pairs = [(s, [WORDS[w] for w in s]) for s in (source(rng) for _ in range(120))]
    rows = [f"{' '.join(s)}\t{' '.join(t)}\n" for s, t in pairs]
    (folder / "train.tsv").write_text("".join(rows[:100]))
    (folder / "dev.tsv").write_text("".join(rows[100:]))
    (folder / "source.txt").write_text("".join(" ".join(source(rng)) + "\n" for _ in range(64)))
    tokenizer = plm.train_tokenizer(
        texts=[r.replace("\t", " ") for r in rows], kind="words", family="rnn-seq2seq", vocab_size=None
    )
    plm.seed(0)
    special = {f"{role}_token_id": getattr(tokenizer, f"{role}_token_id") for role in ("pad", "eos")}
    lm = plm.from_config(
        dict(model_type="rnn-seq2seq", d_embed=24, d_hidden=32, encoder_layers=1, decoder_layers=1,
             bidirectional=True, dropout=0.2, decoder_start_token_id=tokenizer.eos_token_id),
        "seq2seq-lm", vocab_size=tokenizer.vocab_size, **special,
    )  # fmt: skip
    lm.tokenizer = tokenizer
    lm.save(folder / "fresh")
    changes = ["data.batch=16", "data.length=12", "optim.lr=0.005", "schedule.kind=constant"]
    options = dict(train=folder / "train.tsv", steps=900, changes=changes, quiet=True)
    plm.finetune(folder / "fresh", "seq2seq", out=folder / "run", **options)
    (folder / "run" / "final").rename(folder / "model")  # one that translates
    return folder


def tune(files, out, **options):
    changes = ["data.batch=16", "data.length=12", "optim.lr=0.002", "schedule.kind=constant", "task.beams=2"]
    changes += ["train.save_every=4"]
    return plm.finetune(
        files / "model", "seq2seq", train=files / "train.tsv", dev=files / "dev.tsv",
        unlabelled=files / "source.txt", out=out, quiet=True, changes=changes, **options,
    )  # fmt: skip


def test_the_primary_decoder_is_the_result(files, tmp_path):
    lm = tune(files, tmp_path / "run", steps=60)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())["dev"]
    assert scores["bleu"] > 80 and lm.head == "seq2seq-lm"
    again = plm.load(tmp_path / "run" / "final")
    assert again.report.unexpected == [] and again.generate("zwei acht", max_new_tokens=6) == "two eight"


def test_a_stopped_run_goes_on_bit_for_bit(files, tmp_path):
    tune(files, tmp_path / "whole", steps=10)
    with pytest.raises(killing.Stop):
        tune(files, tmp_path / "halves", steps=10, callbacks=[killing.stop_at(7)])
    plm.finetune(None, None, out=tmp_path / "halves", resume=True, quiet=True)
    whole, halves = ((tmp_path / n / "final" / "model.safetensors").read_bytes() for n in ("whole", "halves"))
    assert whole == halves


def test_targets_are_written_without_dropout(files):
    lm = plm.load(files / "model").train()
    batch = lm.tokenizer(["eins zwei", "drei vier acht"])
    data = type("Data", (), dict(
        table=dict(unlabelled=files / "source.txt", length=12, errors="strict", batch=4),
        settings=dict(task=dict(target_length=8, beams=2)),
    ))()  # fmt: skip
    _, _, criterion = cross_view.translation(lm, data, _Own(), None, lm.tokenizer, seed=0)
    found = [criterion.write(batch.input_ids, batch.attention_mask) for _ in range(3)]
    assert all(np.array_equal(found[0], f) for f in found) and lm.model.training
    still = plm.load(files / "model").generate(
        batch.input_ids, batch.attention_mask, max_new_tokens=8, num_beams=2
    )
    np.testing.assert_array_equal(found[0], cross_view.written(still[:, 1:], lm.config.eos_token_id))


class _Own:
    def steps_per_epoch(self, epoch=0):
        return 1


def test_what_was_written_ends():
    ids = np.array([[4, 5, 2, 1, 1], [4, 2, 2, 6, 1], [4, 5, 6, 7, 8]])
    wanted = [[4, 5, 2, -100, -100], [4, 2, -100, -100, -100], [4, 5, 6, 7, 8]]
    assert cross_view.written(ids, 2).tolist() == wanted


def test_other_models_are_refused(files, directory, tmp_path):
    with pytest.raises(
        plm.ArgumentError, match="text without translations is for rnn-seq2seq, and this is t5"
    ):
        plm.finetune(
            directory("t5"), "seq2seq", train=files / "train.tsv", unlabelled=files / "source.txt",
            out=tmp_path / "run", quiet=True,
        )  # fmt: skip
    assert not (tmp_path / "run").exists()
