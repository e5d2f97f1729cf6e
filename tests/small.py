"""A small GPT-2, and batches of counting sequences: what the tests of training train."""

import numpy as np
import plmcore as plm
from plmcore import models, optim, train
from plmcore.runtime import draws

VOCAB, LENGTH = 50, 16


class Counting:
    """Rows that count up from a random number, modulo VOCAB."""

    def __init__(self, rows=4, ragged=False):
        self.rows, self.ragged = rows, ragged

    def __getitem__(self, step):
        row = step * self.rows + np.arange(self.rows)
        ids = (draws.below(VOCAB, 7, row)[:, None] + np.arange(LENGTH)) % VOCAB
        labels = ids.copy()
        if self.ragged:
            labels[np.arange(LENGTH) > draws.below(LENGTH, 8, row)[:, None]] = -100
        return {"input_ids": ids, "labels": labels}


def gpt2(dropout=0.1, seed=0, **changes):
    plm.seed(seed)
    config = dict(model_type="gpt2", vocab_size=VOCAB, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=2,
                  resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout)  # fmt: skip
    return models.build(models.config_from_dict(config, **changes), "causal-lm")


def trainer(model=None, batches=None, *, steps=30, lr=1e-2, **options):
    model = model or gpt2()
    opt = optim.AdamW(train.parameter_groups(model, lr=lr, weight_decay=0.1), lr=lr)
    return train.Trainer(model, batches or Counting(), opt, steps=steps, clip_norm=1.0, **options)


def weights(model):
    return {name: np.array(t.numpy()) for name, t in model.state_dict().items()}


def same_bits(a, b):
    a, b = (weights(m) for m in (a, b))
    return all(a[name].tobytes() == b[name].tobytes() for name in a)
