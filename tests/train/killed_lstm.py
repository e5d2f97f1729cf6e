"""An LSTM language model trained by truncated backpropagation, for test_carrying to kill: python
killed_lstm.py DIR STEPS.

Goes on from the last checkpoint; writes DIR/done.npz.
"""

import pathlib
import sys
import time

import numpy as np
from plmcore import criteria, data, objectives, ops, optim, train
from plmcore.train import carrying
from small import weights
from toy_lstm import Recurrent, ToyLSTM

PERIOD, LENGTH, STREAMS = 5, 4, 3  # which token comes next is seen in no window alone


class Predicted(criteria.Criterion):
    """The next token of each, with what was read before the window; begin=True forgets that."""

    def __init__(self, forgets=False):
        self.forgets = forgets

    def counts(self, batch):
        return {"tokens": batch["input_ids"][:, 1:].size}

    def __call__(self, model, batch, state):
        ids = batch["input_ids"]
        logits, after = model(model.tensors({"ids": ids[:, :-1]})["ids"], state)
        total = ops.cross_entropy(logits, ids[:, 1:].copy(), reduction="sum")
        return {"tokens": criteria.Term(total, ids[:, 1:].size)}, None if self.forgets else after

    def state(self, tensors):
        return Recurrent(**tensors)


class Bits:
    """A tokenizer of two tokens."""

    vocab_size, special_ids, fingerprint = 2, np.zeros(0, np.int64), "two tokens"
    eos_token_id = pad_token_id = None
    family = type("Family", (), {"padding_side": "right", "pad_type": 0})

    def build(self, ids):
        return ids, np.zeros(len(ids), np.int64)


def batches():
    """A one after four zeros, over and over, in streams that begin at different places of it."""
    text = (np.arange(STREAMS * 401) % PERIOD == PERIOD - 1).astype(np.int64)
    corpus = data.Corpus.from_ids([text], 2)
    windows = objectives.CausalLM(corpus, Bits(), LENGTH + 1, stride=LENGTH, streams=STREAMS)
    return carrying.Continued(data.Batches(windows, STREAMS, seed=0, shuffle=False))


def trainer(steps, criterion=None, **options):
    model = ToyLSTM(2, 8)
    opt = optim.AdamW(model.parameters(), lr=2e-2)
    return train.Trainer(
        model, batches(), opt, steps=steps, clip_norm=1.0, criterion=criterion or Predicted(), **options
    )


def main(folder: pathlib.Path, steps: int) -> None:
    def pause(t, metrics):
        (folder / "alive").touch()
        time.sleep(0.004)

    with train.RunDirectory(folder, quiet=True) as d:
        t = trainer(steps, directory=d, save_every=3, callbacks=[pause])
        if saved := d.newest():
            t.restore(saved)
        d.forget_after(t.step)
        t.run()
        carried = {f"carried.{name}": x.numpy() for name, x in t.carried.tensors().items()}
    np.savez(folder / "done.npz", **weights(t.model), **carried)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
