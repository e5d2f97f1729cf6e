"""The small LSTM language model of the Penn Treebank: 2 layers of 200, 13 epochs, without dropout, in the
setting of TensorFlow's classic tutorial (Zaremba et al. 2014), whose validation perplexity is about 121.

There the loss is a sum over the 20 steps of a window: rate 1 and norm 5 there are 20 and 0.25 here.
"""

from __future__ import annotations

import gzip
import pathlib

import plmcore as plm
from plmcore import criteria, data, objectives
from plmcore.train import carrying, held_out

BATCH, STEPS, EPOCHS, FULL = 20, 20, 13, 4  # from epoch 4 on the rate is halved
TRAIN = 929_589  # tokens with those at the ends of lines
SETTINGS = [
    "model.n_layers=2",
    "model.d_embed=200",
    "model.d_hidden=200",
    "model.drop_mult=0.0",
    "model.tie_word_embeddings=false",
    "data.vocab=20000",
    f"data.length={STEPS + 1}",
    f"data.batch={BATCH}",
    "data.held_out=0.0",
    "optim.lr=20.0",
    "optim.weight_decay=0.0",
    "train.vary=false",
    "train.ar=0.0",
    "train.tar=0.0",
    "train.average=none",
    "train.keep=1",
]


def run(folder_of_data: pathlib.Path, folder: pathlib.Path, seed: int) -> dict[str, float]:
    """Perplexities of the validation and the test text, read from beginning to end."""
    text = folder / "ptb.train.txt"
    if not text.exists():
        text.write_bytes(gzip.decompress((folder_of_data / "ptb" / "ptb.train.txt.gz").read_bytes()))
    epoch = (TRAIN // BATCH - STEPS - 1) // STEPS + 1
    rates = ["schedule.kind=halving", f"schedule.every={epoch}", f"schedule.start={FULL * epoch}"]
    lm = plm.pretrain(
        "awd-lstm",
        text=[text],
        out=folder / f"run-{seed}",
        steps=EPOCHS * epoch,
        save_every=epoch,
        seed=seed,
        changes=[*SETTINGS, *rates],
        resume=True,
        quiet=True,
    )
    return {
        name: round(perplexity(lm, folder_of_data / "ptb" / f"ptb.{split}.txt", folder), 2)
        for name, split in (("validation perplexity", "valid"), ("test perplexity", "test"))
    }


def perplexity(lm: plm.LanguageModel, text: pathlib.Path, folder: pathlib.Path) -> float:
    """In one stream, the state carried from window to window; ends of lines count."""
    corpus = folder / f"corpus-{text.stem}"
    data.write_corpus(corpus, [text], lm.tokenizer, documents="line", overwrite=True)
    objective = objectives.CausalLM(
        data.Corpus.open(corpus), lm.tokenizer, STEPS + 1, stride=STEPS, streams=1
    )
    batches = data.Batches(objective, 1, seed=0, shuffle=False)
    loss = held_out.HeldOutLoss(
        carrying.Continued(batches), batches.steps_per_epoch(0), criterion=lambda model: criteria.Carried()
    )
    return loss(lm.eval().model)["perplexity"]
