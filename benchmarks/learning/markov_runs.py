"""Every pre-training objective on text of a Markov chain, held to the best that any model could do on the
same held-out batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import plmcore as plm
from markov import Chain, States, blanks, corrupted, optimum
from plmcore import criteria, data, models, objectives, optim, train
from plmcore.models import labels
from plmcore.objectives.span_corruption import raw_length
from plmcore.train import batching, schedules

STATES, WIDTH, HEADS, LENGTH = 20, 64, 4, 16
# Layers: where a token and its neighbours say all, and where what they say must be brought together first.
SHALLOW, DEEP = (
    1,
    2,
)
# of fresh weights: the published 0.02 is for wider models, and such narrow ones take long to leave it
SPREAD = 0.1
SENTENCE, DOCUMENT = 4, 32  # tokens of a sentence; sentences of a document, for pairs
SHARE, MEAN, HIDING = (
    0.3,
    2.0,
    12,
)  # of infilling that hides lengths: hidden tokens, mean length of spans, tokens of a text
BLANK = 0.25  # of the text is in blanks, whose pieces have the same mean length
HELD_OUT = 60_000  # tokens
SCORED = 256  # rows of a held-out batch
FAR = -9  # for optimum.evidence: behind the end of a row

ENCODER = dict(
    hidden_size=WIDTH,
    num_hidden_layers=DEEP,
    num_attention_heads=HEADS,
    intermediate_size=4 * WIDTH,
    max_position_embeddings=64,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    initializer_range=SPREAD,
)
STACKS = dict(
    d_model=WIDTH,
    encoder_layers=DEEP,
    decoder_layers=DEEP,
    encoder_attention_heads=HEADS,
    decoder_attention_heads=HEADS,
    encoder_ffn_dim=4 * WIDTH,
    decoder_ffn_dim=4 * WIDTH,
    max_position_embeddings=64,
    dropout=0.0,
    attention_dropout=0.0,
    activation_dropout=0.0,
    init_std=SPREAD,
)


@dataclass(frozen=True)
class Case:
    """`best` gives the best loss of every label of a batch; of pairs, `pairs` the log odds of label 1 for
    every row.
    """

    family: str
    head: str
    config: dict[str, Any]
    objective: str
    settings: dict[str, Any]
    steps: int
    best: Callable[[Chain, States, dict], np.ndarray]
    lr: float = 3e-3
    batch: int = 128
    layout: str = "bert"
    sentinels: int = 0
    body: int = LENGTH  # tokens of text in an example
    pairs: str | None = None  # the label of a pair
    weight: float = 1.0  # of the question about the pair beside that about masked tokens
    special: dict[str, str] = field(default_factory=dict)  # config key -> role of a token


def of_causal(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    states = batch["input_ids"] - tokens.first
    return -np.log(chain.P[states[:, :-1], states[:, 1:]]).ravel()


def observed_states(tokens: States, ids: np.ndarray) -> np.ndarray:
    """As optimum.masked takes them: other special tokens are numbers that are no states."""
    return np.where(
        ids == tokens.mask_token_id, optimum.NONE, np.where(ids < tokens.first, STATES, ids - tokens.first)
    )


def of_masked(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    ids, labels = (batch[name][:, 1:-1] for name in ("input_ids", "labels"))
    labels = np.where(labels == -100, -100, labels - tokens.first)
    return optimum.masked(chain, observed_states(tokens, ids), labels, vocab_size=tokens.vocab_size)


def of_masks(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    """Where all that is hidden is a mask, so that what is seen is certain."""
    ids, labels = (batch[name][:, 1:-1] for name in ("input_ids", "labels"))
    labels = np.where(labels == -100, -100, labels - tokens.first)
    observed = observed_states(tokens, ids)
    return optimum.masked(chain, observed, labels, vocab_size=tokens.vocab_size, shares=(1.0, 0.0, 0.0))


def of_permutation(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    text = batch["input_ids"] >= tokens.first
    states = batch["input_ids"] - tokens.first
    return optimum.permutation(chain, states, batch["perm_mask"], batch["target_mapping"], text)


def of_spans(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    return np.concatenate(
        [
            optimum.corrupted_spans(chain, between(tokens, seen), between(tokens, labels)[1:])
            for seen, labels in zip(batch["input_ids"], batch["labels"], strict=True)
        ]
    )


def between(tokens: States, ids: np.ndarray) -> list[list[int]]:
    """Runs of states, cut at sentinels; the end token ends all."""
    runs: list[list[int]] = [[]]
    for i in ids.tolist():
        if i in (tokens.eos_token_id, tokens.pad_token_id, -100):
            break
        runs[-1].append(i - tokens.first) if i >= tokens.first else runs.append([])
    return runs


def of_infilling(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    """With a mask for each hidden token the places agree: what is seen costs nothing, what is hidden is known
    on its left as far as it was written, and on its right where the next seen token stands.
    """
    labels, visible = batch["labels"], batch["input_ids"] >= tokens.first
    losses = np.zeros(labels.shape)
    row, place = np.nonzero((batch["input_ids"] == tokens.mask_token_id) & (labels >= tokens.first))
    text = labels >= tokens.first
    places = np.arange(labels.shape[1])
    known = text[row] & ((places < place[:, None]) | (visible[row] & (places > place[:, None])))
    losses[row, place] = optimum.seen(chain, (labels - tokens.first)[row], place, known)
    return losses.ravel()


def texts_of(tokens: States, batch: dict) -> tuple[list[np.ndarray], np.ndarray]:
    """What is seen of every row, None for masks, and what is to be written, both as states without special
    tokens.
    """
    seen = [
        row[mask == 1][1:-1] for row, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]
    return seen, batch["labels"][:, 1:-1] - tokens.first


def with_ends(losses: np.ndarray) -> np.ndarray:
    """The begin and the end token are certain.  [B, T] -> [B (T + 2)]"""
    return np.pad(losses, ((0, 0), (1, 1))).ravel()


def of_deletion(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    seen, texts = texts_of(tokens, batch)
    return with_ends(corrupted.deleted(chain, np.stack(seen) - tokens.first, texts))


def of_rotation(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    seen, texts = texts_of(tokens, batch)
    each = zip(seen, texts, strict=True)
    return with_ends(
        np.stack([corrupted.reordered(chain, corrupted.rotations(s - tokens.first), t) for s, t in each])
    )


def of_orders(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    seen, texts = texts_of(tokens, batch)
    each = zip(seen, texts, strict=True)
    return with_ends(
        np.stack(
            [corrupted.reordered(chain, corrupted.orders(s - tokens.first, SENTENCE), t) for s, t in each]
        )
    )


def of_hidden_lengths(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    losses = []
    for seen, text in zip(*texts_of(tokens, batch), strict=True):
        states = [None if i == tokens.mask_token_id else int(i) - tokens.first for i in seen]
        losses.append(corrupted.infilled(chain, states, text, SHARE, MEAN))
    return with_ends(np.stack(losses))


def of_fragment(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    """A run of the text, from what is around it and what of it was written."""
    ids, labels = batch["input_ids"], batch["labels"]
    row, place = np.nonzero(ids == tokens.mask_token_id)
    states = ids - tokens.first
    states[row, place] = labels.ravel() - tokens.first
    text, hidden = ids >= tokens.first, ids == tokens.mask_token_id
    known = text[row] | (hidden[row] & (np.arange(ids.shape[1]) < place[:, None]))
    return optimum.seen(chain, states[row], place, known)


def of_blanks(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    losses = []
    rows = (batch[name] for name in ("input_ids", "position_ids", "source_lengths", "labels"))
    for ids, places, source, wanted in zip(*rows, strict=True):
        text, wanted = ids[1 : source - 1], wanted[source:]
        masks = np.flatnonzero(text == tokens.mask_token_id)
        runs = np.split(text, masks)
        seen = [(run[run != tokens.mask_token_id] - tokens.first).tolist() for run in runs]
        begins = source + np.flatnonzero(ids[source:] == tokens.bos_token_id)
        order = np.searchsorted(masks, places[begins] - 1)  # before the text stands the first token
        ends = np.flatnonzero(wanted == tokens.eos_token_id)
        pieces = {j: (wanted[b - source : e] - tokens.first).tolist() for j, b, e in zip(order, begins, ends)}
        in_text = [pieces[j] for j in range(len(masks))]
        losses.append(blanks.filled(chain, seen, in_text, order, rate=BLANK, mean=MEAN))
    return np.concatenate(losses)


def segments(tokens: States, batch: dict) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The states of both segments of every row, as they are seen."""
    states = observed_states(tokens, batch["input_ids"])
    second = batch["token_type_ids"] == 1
    first = ~second & (batch["attention_mask"] == 1)
    return [s[m][1:-1] for s, m in zip(states, first)], [s[m][:-1] for s, m in zip(states, second)]


def log_evidence(chain: Chain, tokens: States, rows: list[np.ndarray]) -> np.ndarray:
    padded = np.full((len(rows), max(map(len, rows))), FAR)
    for i, states in enumerate(rows):
        padded[i, : len(states)] = states
    return optimum.evidence(chain, padded, vocab_size=tokens.vocab_size, rate=0.15)


def odds_of_order(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    first, second = segments(tokens, batch)
    in_order, swapped = (
        [np.concatenate(ab) for ab in zip(*both)] for both in ((first, second), (second, first))
    )
    return log_evidence(chain, tokens, swapped) - log_evidence(chain, tokens, in_order)


def odds_of_other(chain: Chain, tokens: States, batch: dict) -> np.ndarray:
    """Of a B from elsewhere: one sentence, as the B that follows."""
    first, second = segments(tokens, batch)
    together = log_evidence(chain, tokens, [np.concatenate(ab) for ab in zip(first, second)])
    apart = log_evidence(chain, tokens, first) + log_evidence(chain, tokens, second)
    return apart - together


CASES = {
    "causal LM, GPT-2": Case(
        "gpt2",
        "causal-lm",
        dict(
            n_embd=WIDTH,
            n_layer=SHALLOW,
            n_head=HEADS,
            n_positions=LENGTH,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        ),
        "causal-lm",
        {},
        600,
        of_causal,
        layout="gpt2",
    ),
    "causal LM, GPT-1": Case(
        "openai-gpt",
        "causal-lm",
        dict(
            n_embd=WIDTH,
            n_layer=SHALLOW,
            n_head=HEADS,
            n_positions=LENGTH,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            initializer_range=SPREAD,
        ),
        "causal-lm",
        {},
        600,
        of_causal,
        layout="gpt2",
    ),
    "masked LM, BERT": Case("bert", "masked-lm", ENCODER, "masked-lm", {}, 5000, of_masked),
    "masked LM, RoBERTa": Case(
        "roberta",
        "masked-lm",
        ENCODER | dict(type_vocab_size=1, layer_norm_eps=1e-5, intermediate_size=WIDTH),
        "masked-lm",
        {},
        12_000,
        of_masked,
        layout="bart",
    ),
    "masked n-grams, BERT": Case(
        "bert",
        "masked-lm",
        ENCODER | dict(intermediate_size=WIDTH),
        "masked-lm",
        dict(unit="ngram", exact=True, rate=0.25, shares=(1.0, 0.0, 0.0)),
        4000,
        of_masks,
    ),
    "permutation LM, XLNet": Case(
        "xlnet",
        "causal-lm",
        dict(
            d_model=WIDTH,
            n_layer=SHALLOW,
            n_head=HEADS,
            d_inner=4 * WIDTH,
            dropout=0.0,
            mem_len=None,
            initializer_range=SPREAD,
        ),
        "permutation-lm",
        dict(alpha=3),
        2500,
        of_permutation,
        lr=5e-3,
        layout="xlnet",
    ),
    "span corruption, T5": Case(
        "t5",
        "seq2seq-lm",
        dict(
            d_model=WIDTH,
            num_layers=DEEP,
            num_heads=HEADS,
            d_kv=WIDTH // HEADS,
            d_ff=4 * WIDTH,
            dropout_rate=0.0,
        ),
        "span-corruption",
        dict(rate=0.3),
        2500,
        of_spans,
        layout="t5",
        sentinels=8,
        body=raw_length(LENGTH, 0.3)[0],
        special=dict(decoder_start_token_id="pad"),
    ),
    "infilling, BART": Case(
        "bart",
        "seq2seq-lm",
        STACKS,
        "denoising",
        dict(noise="infilling", replace=-1),
        1500,
        of_infilling,
        layout="bart",
        special=dict(decoder_start_token_id="eos", bos_token_id="bos"),
    ),
    **{
        f"{title}, BART": Case(
            "bart",
            "seq2seq-lm",
            STACKS,
            objective,
            settings,
            steps,
            best,
            layout="bart",
            body=body,
            special=dict(decoder_start_token_id="eos", bos_token_id="bos"),
        )
        for title, objective, settings, steps, best, body in (
            ("masked tokens", "denoising", dict(noise="masking"), 1500, of_infilling, LENGTH),
            ("deleted tokens", "denoising", dict(noise="deletion"), 3000, of_deletion, LENGTH),
            (
                "infilling that hides lengths",
                "denoising",
                dict(noise="infilling", mask=SHARE, mean=MEAN),
                3000,
                of_hidden_lengths,
                HIDING,
            ),
            ("permuted sentences", "denoising", dict(noise="permutation"), 3000, of_orders, LENGTH),
            ("rotation", "denoising", dict(noise="rotation"), 3000, of_rotation, LENGTH),
            ("MASS fragments", "fragment", dict(shares=(1.0, 0.0, 0.0)), 2000, of_fragment, LENGTH),
        )
    },
    "MASS fragments, MASS": Case(
        "mass",
        "seq2seq-lm",
        STACKS,
        "fragment",
        dict(shares=(1.0, 0.0, 0.0), positions=True),
        2000,
        of_fragment,
        layout="bart",
        special=dict(decoder_start_token_id="eos"),
    ),
    "blank infilling, GLM": Case(
        "glm",
        "causal-lm",
        dict(
            hidden_size=WIDTH,
            num_layers=DEEP,
            num_attention_heads=HEADS,
            max_sequence_length=32,
            embedding_dropout_prob=0.0,
            attention_dropout_prob=0.0,
            output_dropout_prob=0.0,
            block_position_encoding=True,
            initializer_range=SPREAD,
        ),
        "blank-infilling",
        dict(rate=BLANK, mean=MEAN),
        5000,
        of_blanks,
    ),
    "next sentence, BERT": Case(
        "bert",
        "pretraining",
        ENCODER,
        "next-sentence",
        dict(short=0.0),
        8000,
        odds_of_other,
        lr=1.5e-3,
        body=2 * SENTENCE,
        weight=5.0,
        pairs="next_sentence_label",
    ),
    "sentence order, ALBERT": Case(
        "albert",
        "pretraining",
        ENCODER | dict(embedding_size=WIDTH),
        "sentence-order",
        dict(short=0.0),
        6000,
        odds_of_order,
        lr=2e-3,
        body=2 * SENTENCE,
        weight=3.0,
        pairs="sentence_order_label",
    ),
    "causal LM, NPLM": Case(
        "nplm",
        "causal-lm",
        dict(context=2, d_embed=WIDTH, d_hidden=WIDTH),
        "causal-lm",
        {},
        600,
        of_causal,
        layout="gpt2",
    ),
}


class Weighted(criteria.Tokens):
    """The loss of a batch, with a weight on the question about the pair."""

    def __init__(self, model: Any, weight: float):
        super().__init__(labels.taken(model)[0])
        self.weight = weight

    def counts(self, batch: criteria.Batch) -> dict[str, int]:
        found = super().counts(batch)
        more = {f"more {name}": n for name, n in found.items() if name in labels.OF_SEQUENCES}
        return found | more if self.weight != 1 else found

    def means(self, out: Any, inputs: dict[str, plm.Tensor]) -> dict[str, plm.Tensor]:
        return {
            **super().means(out, inputs),
            **{
                f"more {name}": (self.weight - 1) * plm.ops.cross_entropy(out[logits], inputs[name])
                for name, logits in labels.OF_SEQUENCES.items()
                if name in inputs
            },
        }


def make_objective(case: Case, chain: Chain, tokens: States, size: int, seed: int) -> objectives.Objective:
    """The objective over a new text of about `size` tokens."""
    if case.pairs:
        each = SENTENCE * DOCUMENT
        corpus = chain.corpus(size // each, each, first=tokens.first, sentence=SENTENCE, seed=seed)
        return objectives.make(case.objective, corpus, tokens, length=case.body + 3, **case.settings)
    corpus = chain.corpus(size // case.body, case.body, first=tokens.first, sentence=SENTENCE, seed=seed)
    settings = dict(case.settings)
    if case.objective == "blank-infilling":  # the chain's tokenizer has none of GLM's pieces
        settings |= dict(masks=[tokens.mask_token_id] * 3, start=tokens.bos_token_id, end=tokens.eos_token_id)
    length = LENGTH if case.family == "t5" else case.body + len(tokens.build(np.zeros(0, np.int64))[0])
    return objectives.make(case.objective, corpus, tokens, length=length, packing="documents", **settings)


def make_model(case: Case, tokens: States, seed: int) -> Any:
    special = {"pad_token_id": "pad", "eos_token_id": "eos"} | case.special
    config = models.config_from_dict(
        {"model_type": case.family, "vocab_size": tokens.vocab_size, **case.config}
        | {key: getattr(tokens, f"{role}_token_id") for key, role in special.items()}
    )
    plm.seed(seed)
    return models.build(config, case.head)


def run(name: str, seed: int, *, steps: int | None = None, held_out: int = HELD_OUT) -> dict[str, float]:
    """Trains one model; the loss on held-out text, and the best one on the same."""
    case = CASES[name]
    chain = Chain.random(STATES, 0.3, seed)
    tokens = States(case.layout, STATES, case.sentinels)
    steps = steps or case.steps
    # Nothing is seen twice.
    text = make_objective(case, chain, tokens, steps * case.batch * case.body, 2 * seed + 1)
    batches = data.Batches(text, case.batch, seed=seed)
    model = make_model(case, tokens, seed)
    groups = train.parameter_groups(model, lr=case.lr, weight_decay=0.01)
    schedule = schedules.cosine(steps=steps, warmup=steps // 20)
    optimizer = optim.AdamW(groups, lr=case.lr, betas=(0.9, 0.98))
    ahead = batching.Ahead(batches)
    criterion = Weighted(model, case.weight)
    train.Trainer(
        model, ahead, optimizer, steps=steps, schedule=schedule, seed=seed, criterion=criterion, clip_norm=1.0
    ).run()
    ahead.close()
    unseen = data.Batches(
        make_objective(case, chain, tokens, held_out, 2 * seed + 2), SCORED, seed=seed + 1, shuffle=False
    )
    count = unseen.steps_per_epoch(0)
    score = of_pairs if case.pairs else of_labels
    return score(case, chain, tokens, model.eval(), [unseen[i] for i in range(count)])


def of_labels(case: Case, chain: Chain, tokens: States, model: Any, batches: list[dict]) -> dict[str, float]:
    sums, best = criteria.Sums(), 0.0
    criterion = criteria.of(model)
    for batch in batches:
        each = case.best(chain, tokens, batch)
        with plm.no_grad():
            terms, _ = criteria.run(criterion, model, batch)
        if len(each) != terms["labels"].count:
            raise ValueError(f"{len(each)} losses of {terms['labels'].count} labels")
        sums.add(terms)
        best += each.sum()
    count = sums.counts["labels"]
    loss, best = sums.loss(), float(best) / count
    return {
        "loss": round(loss, 5),
        "optimum": round(best, 5),
        "above": round(loss / best - 1, 5),
        "labels": count,
    }


def of_pairs(case: Case, chain: Chain, tokens: States, model: Any, batches: list[dict]) -> dict[str, float]:
    """Of the question about the pair alone."""
    found, odds, right = [], [], []
    for batch in batches:
        with plm.no_grad():
            out = model(**{k: plm.Tensor(v) for k, v in batch.items() if "label" not in k})
        logits = (
            (out.seq_relationship_logits if case.family == "bert" else out.sop_logits)
            .numpy()
            .astype(np.float64)
        )
        found.append(logits[:, 1] - logits[:, 0])
        odds.append(case.best(chain, tokens, batch))
        right.append(batch[case.pairs])
    found, odds, right = (np.concatenate(x) for x in (found, odds, right))
    sign = 1 - 2 * right
    loss, best = (float(np.logaddexp(0.0, sign * x).mean()) for x in (found, odds))
    accuracy, bayes = (float(((x > 0) == right).mean()) for x in (found, odds))
    return {"loss": round(loss, 5), "optimum": round(best, 5), "above": round(loss / best - 1, 5),
            "accuracy": round(accuracy, 4), "Bayes": round(bayes, 4), "labels": len(right)}  # fmt: skip
