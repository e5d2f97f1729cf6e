"""Writes runs/NAME: a training that was stopped halfway, and rest.json: what it told on its way to the end.

Run once per version that users have; the files are kept so that later versions prove that they resume it:
    python tests/golden/make_runs.py
"""

import json
import os
import pathlib
import shutil
import tempfile

import plmcore as plm

here = pathlib.Path(__file__).parent
STEPS, HALF = 8, 4
TIMES = ("seconds", "tokens_per_second")
SETTINGS = ["data.length=16", "data.batch=4", "train.log_every=1", "train.keep=1"]
TRAINING = [*SETTINGS, "train.evaluate_every=4", "train.evaluate_batches=1"]
GPT2 = ["data.vocab=260", "model.n_positions=16", "model.n_layer=1", "model.n_embd=8", "model.n_head=2"]
XLNET = ["model.n_layer=1", "model.d_model=16", "model.n_head=2", "model.d_inner=24", "train.mem_len=8"]
BERT = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24)
MODEL = [f"model.{key}={value}" for key, value in BERT.items()]
PIECES = ["data.tokenizer=wordpiece", "data.vocab=60"]
CHARACTERS = ["data.tokenizer=characters"]
PRETRAINED = {
    "gpt2": [*GPT2, "train.average=0.9", "data.accumulate=2"],
    "xlnet": [*XLNET, *CHARACTERS],  # with its memory
    "bert": [*MODEL, *PIECES, "optim.kind=adafactor", "train.activations=bfloat16"],
}


class Stop(Exception):
    pass


def stop(trainer, metrics) -> None:
    if trainer.step == HALF + 1:  # the checkpoint is that of the step before
        raise Stop


def told(out: pathlib.Path) -> list[dict]:
    """The lines of metrics of the second half, without what depends on the clock."""
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in TIMES} for line in lines if line["step"] > HALF]


def keep(name: str, train, *needed: str) -> None:
    """Stops train(**options) halfway, keeps the run and files that it needs; goes on, and keeps what that
    told.
    """
    try:
        train(callbacks=[stop])
    except Stop:
        pass
    for path in (".lock", "report.html", "loss.svg"):
        pathlib.Path("run", path).unlink(missing_ok=True)
    shutil.rmtree(here / "runs" / name, ignore_errors=True)
    shutil.copytree("run", here / "runs" / name / "run")
    for path in needed:
        copy = shutil.copytree if pathlib.Path(path).is_dir() else shutil.copy
        copy(path, here / "runs" / name / path)
    train(resume=True)
    lines = json.dumps(told(pathlib.Path("run")), indent=1)
    (here / "runs" / name / "rest.json").write_text(lines + "\n")
    shutil.rmtree("run")


def main() -> None:
    os.chdir(tempfile.mkdtemp())  # the run's settings have the paths that were given: these have no folder
    text = "".join(f"{a} and {b} are {a + b}. So said the cat.\n\n" for a in range(12) for b in range(12))
    pathlib.Path("text.txt").write_text(text)
    for family, changes in PRETRAINED.items():
        options = dict(steps=STEPS, save_every=HALF, quiet=True, changes=[*TRAINING, *changes])
        keep(family, lambda **more: plm.pretrain(family, text=["text.txt"], out="run", **options, **more))

    tokenizer = plm.train_tokenizer(["text.txt"], kind="wordpiece", vocab_size=60, family="bert")
    config = {"model_type": "bert", **BERT, "max_position_embeddings": 16}
    lm = plm.from_config(config, vocab_size=tokenizer.vocab_size)
    lm.tokenizer = tokenizer
    lm.save("model")
    rows = [(f"{a} and {b} are {a + b}", ("even", "odd")[(a + b) % 2]) for a in range(4) for b in range(4)]
    pathlib.Path("table.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    options = dict(train="table.tsv", dev="table.tsv", epochs=2, save_every=HALF, quiet=True)
    options |= dict(out="run", changes=SETTINGS)
    tune = lambda **more: plm.finetune("model", "classification", **options, **more)
    keep("bert-classification", tune, "model", "table.tsv")


if __name__ == "__main__":
    main()
