"""Copying and reversing strings: an encoder, a decoder, and attention between them that must find its place.
The Transformer of Vaswani et al. does both, a recurrent network reverses with attention and without it.
"""

from __future__ import annotations

import numpy as np
import plmcore as plm
from plmcore import models, optim, train
from plmcore.language_model import LanguageModel
from plmcore.runtime import draws
from plmcore.train import batching, schedules

SYMBOLS = 20
LENGTHS = (10, 20)
START, PAD, END, FIRST = 0, 1, 2, 3  # ids
BATCH, STEPS, WIDTH, LR = 64, 1500, 64, 2e-3
UNSEEN = 1 << 40  # the number of the first row that is not trained on
ORDERS = {"copy": 1, "reverse": -1}


class Strings:
    """Random strings of 20 symbols, of lengths from the one to the other, and the same read in one or the
    other direction.

    Row n is a function of seed and n.
    """

    def __init__(
        self, order: int, seed: int, rows: int = BATCH, first: int = 0, lengths: tuple[int, int] = LENGTHS
    ):
        self.order, self.seed, self.rows, self.first, self.lengths = order, seed, rows, first, lengths

    def __getitem__(self, step: int) -> dict[str, np.ndarray]:
        row = self.first + step * self.rows + np.arange(self.rows)
        shortest, longest = self.lengths
        lengths = shortest + draws.below(longest - shortest + 1, self.seed, row, 0)
        symbols = FIRST + draws.below(SYMBOLS, self.seed, row[:, None], 1 + np.arange(longest))
        places = np.arange(longest + 1)
        inside, last = places < lengths[:, None], places == lengths[:, None]
        text = np.where(inside, np.pad(symbols, ((0, 0), (0, 1))), PAD)
        turned = np.where(inside & (self.order < 0), lengths[:, None] - 1 - places, places)
        labels = np.where(inside, np.take_along_axis(text, turned, 1), np.where(last, END, -100))
        return {
            "input_ids": np.where(last, END, text),
            "attention_mask": (inside | last).astype(np.int64),
            "labels": labels,
        }


TRANSFORMER = dict(
    model_type="transformer",
    d_model=WIDTH,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=4 * WIDTH,
    decoder_ffn_dim=4 * WIDTH,
    max_position_embeddings=64,
    dropout=0.0,
)
RECURRENT = dict(model_type="rnn-seq2seq", d_embed=WIDTH, d_hidden=128, encoder_layers=1, decoder_layers=1)
# With and without attention, of strings of 20 symbols at the end
NETWORKS = {
    "reverse 20, LSTM and attention": dict(RECURRENT, attention="general"),
    "reverse 20, LSTM alone": dict(RECURRENT, attention="none"),
}


def run(
    name: str, seed: int, *, steps: int = STEPS, rows: int = 1000, lengths: tuple[int, int] = LENGTHS
) -> dict[str, float]:
    """Trains one model; the share of unseen strings that it writes without a fault, symbol by symbol and to
    the end. Recurrent networks are tested on the longest.
    """
    order, test = ORDERS.get(name, -1), lengths if name in ORDERS else (lengths[1], lengths[1])
    plm.seed(seed)
    config = models.config_from_dict(NETWORKS.get(name, TRANSFORMER) | {"vocab_size": FIRST + SYMBOLS})
    model = models.build(config, "seq2seq-lm")
    ahead = batching.Ahead(Strings(order, seed, lengths=lengths))
    train.Trainer(
        model,
        ahead,
        optim.Adam(model.parameters(), lr=LR, betas=(0.9, 0.98)),
        steps=steps,
        seed=seed,
        clip_norm=1.0,
        schedule=schedules.cosine(steps=steps, warmup=steps // 10),
    ).run()
    ahead.close()
    batch = Strings(order, seed, rows, UNSEEN, test)[0]
    written = LanguageModel(model.eval()).generate(
        batch["input_ids"], batch["attention_mask"], num_beams=1, max_new_tokens=lengths[1] + 1
    )[:, 1:]  # without the start token
    wanted = np.where(batch["labels"] == -100, PAD, batch["labels"])
    written = np.pad(written, ((0, 0), (0, max(0, lengths[1] + 1 - written.shape[1]))), constant_values=PAD)
    return {"exact": round(float((written == wanted).all(1).mean()), 4), "strings": rows}
