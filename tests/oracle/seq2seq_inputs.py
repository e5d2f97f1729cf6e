"""What the parity tests of encoder-decoder families call the models with."""

import numpy as np
from oracle import parity

B, S, T = 4, 9, 7
SOURCE, TARGET = "attention_mask", "decoder_attention_mask"
HIDDEN_BY = dict(
    last_hidden_state=TARGET,
    logits=TARGET,
    decoder_hidden_states=TARGET,
    decoder_attentions=TARGET,
    cross_attentions=TARGET,
    encoder_last_hidden_state=SOURCE,
    encoder_hidden_states=SOURCE,
    encoder_attentions=SOURCE,
)
CAUSAL = dict(cross_attentions=SOURCE)  # of a decoder alone


def source(rng, config, side, shape=(B, S)):
    batch = dict(input_ids=rng.integers(0, config["vocab_size"], shape))
    if side:
        batch[SOURCE] = parity.mask(rng, *shape, side)
    return batch


def target(rng, config, side, shape=(B, T)):
    batch = dict(decoder_input_ids=rng.integers(0, config["vocab_size"], shape))
    if side:
        batch[TARGET] = parity.mask(rng, *shape, side)
    return batch


def with_eos(rng, config, side, shape=(B, S), eos=2):
    """Texts with two end-of-sequence tokens each, which the mask may hide."""
    batch = source(rng, config, side, shape)
    ids = np.where(batch["input_ids"] == eos, eos + 1, batch["input_ids"])
    for row in ids:
        row[rng.choice(shape[1], 2, replace=False)] = eos
    return {**batch, "input_ids": ids}


def batches(rng, config, name, labels=2, copies=True):
    """For each kind of padding: the bare inputs, and with labels. copies: the decoder may read the source."""
    found = []
    for side in (None, "right", "left", "holes"):
        if "Classification" in name:
            batch = with_eos(rng, config, side)
            found += [batch, {**batch, "labels": rng.integers(0, labels, B)}]
        elif "Question" in name:
            batch = source(rng, config, side)
            answer = dict(start_positions=rng.integers(0, S + 3, B), end_positions=rng.integers(-1, S, B))
            found += [batch, {**batch, **answer}]
        else:
            pair = {**source(rng, config, side), **target(rng, config, None)}
            both = {**pair, **target(rng, config, side)}
            found += [both] if side is None else [pair, both]
            if copies and side == "right":
                found.append(source(rng, config, side))
            if "Model" not in name or "MT" in name:
                some = parity.labels(rng, config["vocab_size"], (B, T))
                shifted = {**source(rng, config, side), "labels": some}
                seen = np.where(both.get(TARGET, 1) == 1, some, -100)
                found += [shifted, {**both, "labels": seen}]
                found += [{**both, "labels": some}] if side else []  # on hidden positions too
    return found


def causal(rng, config, side):
    batch = source(rng, config, side)
    some = parity.labels(rng, config["vocab_size"], (B, S))
    states = rng.standard_normal((B, T, config["d_model"])).astype(np.float32)
    cross = dict(encoder_hidden_states=states, encoder_attention_mask=parity.mask(rng, B, T, side or "right"))
    seen = np.where(batch.get(SOURCE, 1) == 1, some, -100)
    return [batch, {**batch, "labels": seen}, {**batch, "labels": some}, {**batch, **cross, "labels": some}]


def check_trace(rng, lm, config, name, side):
    """A program at several sizes of source and target gives what the model gives."""
    found = []
    for size, length, other in ((3, 5, 4), (2, 12, 7), (7, 2, 1)):
        if "Classification" in name:
            batch = {**with_eos(rng, config, side, (size, length)), "labels": rng.integers(0, 2, size)}
        elif "Question" in name:
            answer = {f"{end}_positions": rng.integers(0, length, size) for end in ("start", "end")}
            batch = {**source(rng, config, side, (size, length)), **answer}
        elif "Model" in name and "MT" not in name:
            batch = {**source(rng, config, side, (size, length)), **target(rng, config, side, (size, other))}
        else:
            batch = {
                **source(rng, config, side, (size, length)),
                "labels": parity.labels(rng, config["vocab_size"], (size, other)),
            }
        found.append(batch)
    fields = ["loss", "start_logits", "end_logits"] if "Question" in name else ["loss", "logits"]
    if "Model" in name and "MT" not in name:
        fields = ["last_hidden_state"]
    parity.check_trace(lm, found, [*fields, "encoder_last_hidden_state"])
