"""What a smaller model costs and saves: bytes, tokens per second, and how far its answers are from those of
the model it was made of.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from plmcore._core import ArgumentError
from plmcore.evaluate.likelihood import Perplexity, perplexity
from plmcore.evaluate.scoring import kind_of
from plmcore.models.generates import Generates
from plmcore.nn import inference
from plmcore.tasks.rows import Rows, takes_types

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel

PROMPT, NEW = 32, 32  # tokens of a generation that is timed
BATCH, LENGTH = 8, 128  # of a forward pass that is timed, and of the rows whose outputs are compared
ROUNDS = 3  # of which the fastest counts


@dataclass(frozen=True)
class Comparison:
    """Pairs are before and after.

    speed: tokens per second, of greedy generation (`generates`) or of a forward pass.
    agreement: how often both choose the same first, of a model without choices the mean cosine between its
        states.
    error: |difference| / |outputs before|, Euclidean.
    """

    bytes: tuple[int, int]
    speed: tuple[float, float]
    generates: bool
    perplexity: tuple[Perplexity, Perplexity] | None
    agreement: float
    error: float


def compare(
    before: LanguageModel,
    after: LanguageModel,
    text: str,
    sources: Sequence[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Compares two models of one kind on a text.

    With an encoder each line is a target, given the line of `sources`, or given itself.

    The perplexity of a masked model hides one token at a time: give it a short text. progress: called with
    the bytes that were scored.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise ArgumentError("compare: the text is empty")
    inputs = rows_of(before, lines if sources is None else sources)
    agreement, error = difference(outputs(before, inputs), outputs(after, inputs))
    scored = None
    if before.tokenizer is not None and gives_probabilities(before):
        given: dict[str, Any] = dict(texts=text)
        if kind_of(before) == "seq2seq":
            given = fitting(before, lines, lines if sources is None else sources)
        done: list[Perplexity] = []
        for lm in (before, after):
            base, told = sum(p.bytes for p in done), cast(Any, progress)
            done.append(perplexity(lm, **given, progress=told and functools.partial(_from, told, base)))
        scored = (done[0], done[1])
    return Comparison(
        bytes=(weight_bytes(before), weight_bytes(after)),
        speed=speeds(before, after),
        generates=isinstance(before.model, Generates),
        perplexity=scored,
        agreement=agreement,
        error=error,
    )


def _from(told: Callable[[int], None], base: int, n: int) -> None:
    told(base + n)


def weight_bytes(lm: LanguageModel) -> int:
    return sum(t.nbytes for t in lm.model.state_dict().values())


def gives_probabilities(lm: LanguageModel) -> bool:
    try:
        kind = kind_of(lm)
    except ArgumentError:
        return False
    return kind != "masked" or getattr(lm.tokenizer, "mask_token_id", None) is not None


def fitting(lm: LanguageModel, targets: Sequence[str], sources: Sequence[str]) -> dict[str, list[str]]:
    """The lines that the model has positions for, with their sources."""
    if len(targets) != len(sources):
        raise ArgumentError(
            f"compare: {len(targets)} lines of text and {len(sources)} of sources; they belong together"
        )
    most, tokenizer = lm.config.longest, cast(Any, lm.tokenizer)
    pairs = [
        (target, source)
        for target, source in zip(targets, sources)
        if most is None or all(len(tokenizer(line).input_ids) <= most for line in {target, source})
    ]
    if not pairs:
        raise ArgumentError(
            f"compare: every line of the text is longer than the {most} positions of the model"
        )
    return dict(texts=[target for target, _ in pairs], sources=[source for _, source in pairs])


# ---- outputs ----


def rows_of(lm: LanguageModel, lines: Sequence[str]) -> dict[str, np.ndarray]:
    """The first lines as a batch, of random ids where there is no tokenizer."""
    longest = min(n for n in (lm.config.longest, LENGTH) if n)
    if lm.tokenizer is None:
        inputs = {"input_ids": np.random.default_rng(0).integers(0, lm.config.vocab_size, (BATCH, longest))}
        end = getattr(lm.config, "eos_token_id", None)
        if end is not None:
            inputs["input_ids"][inputs["input_ids"] == end] = (end + 1) % lm.config.vocab_size
            inputs["input_ids"][:, -1] = end  # some heads read from there
    else:
        rows = Rows(lm.tokenizer, takes_types(lm.model, lm.tokenizer))
        rows.add(list(lines[:BATCH]), None, max_length=longest)
        inputs = rows.batch(range(len(rows)))
    if lm.head in ("multiple-choice", "double-heads"):
        inputs = {name: a[None] for name, a in inputs.items()}
    body = getattr(lm.model, "body", lm.model)
    if lm.head in ("base", "seq2seq-lm") and hasattr(body, "shifted"):  # the decoder reads, too
        inputs["decoder_input_ids"] = inputs["input_ids"]
    return inputs


def outputs(lm: LanguageModel, inputs: dict[str, np.ndarray]) -> list[tuple[str, np.ndarray]]:
    """Logits, or the states of a model without a head, of the positions that are no padding."""
    with inference():
        out: Any = lm.model(**lm.model.tensors(inputs))
    names = ("logits", "prediction_logits", "start_logits", "end_logits", "last_hidden_state")
    mask = inputs.get("attention_mask")
    found = []
    for name in names:
        if name in out:
            values = out[name].numpy().astype(np.float64)
            if mask is not None and values.ndim == mask.ndim + 1 and values.shape[: mask.ndim] == mask.shape:
                values = values[mask.astype(bool)]
            found.append((name, values))
    return found


def difference(
    before: list[tuple[str, np.ndarray]], after: list[tuple[str, np.ndarray]]
) -> tuple[float, float]:
    """Agreement and error, as in Comparison."""
    agreement, squares, total = [], 0.0, 0.0
    for (name, a), (_, b) in zip(before, after, strict=True):
        squares, total = squares + float(((a - b) ** 2).sum()), total + float((a**2).sum())
        if name == "last_hidden_state":
            lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
            agreement.append(float(((a * b).sum(-1)[lengths > 0] / lengths[lengths > 0]).mean()))
        else:
            agreement.append(float((a.argmax(-1) == b.argmax(-1)).mean()))
    return float(np.mean(agreement)), (squares / total) ** 0.5 if total else 0.0


# ---- speed ----


def speeds(*models: LanguageModel) -> Any:
    """Tokens per second of each, in alternating rounds: what else the machine does falls on all."""
    jobs = [timed(lm) for lm in models]
    for _, work in jobs:
        work()  # brings the weights into memory
    best = [float("inf")] * len(jobs)
    for _ in range(ROUNDS):
        for k, (_, work) in enumerate(jobs):
            start = time.perf_counter()
            work()
            best[k] = min(best[k], time.perf_counter() - start)
    return tuple(tokens / seconds for (tokens, _), seconds in zip(jobs, best))


def timed(lm: LanguageModel) -> tuple[int, Callable[[], object]]:
    """What is timed, and its tokens: a greedy generation, or a forward pass of a model that makes no text."""
    longest = lm.config.longest or PROMPT + NEW
    if not isinstance(lm.model, Generates):
        inputs = rows_of(lm, ["x " * LENGTH] * BATCH)
        return inputs["input_ids"].size, lambda: outputs(lm, inputs)
    prompt = max(1, min(PROMPT, longest // 2))
    new = max(1, min(NEW, longest - prompt))
    ids = np.random.default_rng(0).integers(0, lm.config.vocab_size, (1, prompt))
    options: dict[str, Any] = dict(max_new_tokens=new, eos_token_id=None, pad_token_id=0)
    if getattr(lm.config, "decoder_start_token_id", 0) is None:
        options["decoder_start_token_id"] = 0
    return new, lambda: lm.generate(ids, **options)
