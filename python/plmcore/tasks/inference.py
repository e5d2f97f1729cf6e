"""What a trained model says about new texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from plmcore._core import ArgumentError
from plmcore.evaluate import scoring
from plmcore.nn import inference
from plmcore.tasks import cross_view, ensemble, task_settings
from plmcore.tasks.examples import softmax
from plmcore.tasks.features import Features
from plmcore.tasks.rows import Rows, takes_types
from plmcore.tasks.scoring import Scoring
from plmcore.tasks.seq2seq import TextLabels
from plmcore.tasks.spans import Spans

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel

Found = dict[str, Any]


def classify(
    lm: LanguageModel,
    texts: str | Sequence[str],
    pairs: str | Sequence[str] | None,
    batch_size: int,
    others: Sequence[LanguageModel] = (),
) -> Found | list[Found]:
    """See LanguageModel.classify."""
    if isinstance(texts, str):
        one = None if pairs is None else [cast(str, pairs)]
        return cast(list[Found], classify(lm, [texts], one, batch_size, others))[0]
    texts, pairs = list(texts), None if pairs is None else list(pairs)
    if not others:
        return classified(lm, texts, pairs, batch_size)
    ensemble.check_same_classes(lm, others)
    return ensemble.averaged([classified(model, texts, pairs, batch_size) for model in (lm, *others)])


def classified(lm: LanguageModel, texts: list[str], pairs: list[Any] | None, batch_size: int) -> list[Found]:
    """By one model."""
    tokenizer = needed_tokenizer(lm, "classify")
    lm = cross_view.of_task(lm, "classification")
    if pairs is not None and len(pairs) != len(texts):
        raise ArgumentError(f"classify: {len(texts)} texts and {len(pairs)} pairs; each text needs one")
    trained = task_settings.remembered(lm.config)
    if trained.get("as_text"):
        return written(lm, texts, pairs, batch_size)
    if not isinstance(lm.model, Features) and lm.head != "sequence-classification":
        raise ArgumentError(
            f"classify: this model has the head {lm.head}; fine-tune it, or load it with "
            f"head='sequence-classification'"
        )
    rows = Rows(tokenizer, takes_types(lm.model, tokenizer))
    limits = [n for n in (tokenizer.max_length, lm.config.longest) if n]
    rows.add(texts, pairs, max_length=min(limits, default=None))
    both = pairs is not None and bool(trained.get("both_orders"))  # as the model was trained
    if both:  # row n + i is row i the other way round
        rows.add(pairs or [], texts, max_length=min(limits, default=None))
    logits: dict[int, np.ndarray] = {}
    order = np.argsort(-rows.lengths[: len(texts)], kind="stable")
    with inference():
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            places = np.stack([chosen, chosen + len(texts)], 1).ravel() if both else chosen
            batch = rows.batch(places)
            if both:
                batch = {name: a.reshape(len(chosen), 2, -1) for name, a in batch.items()}
            out = lm.model(**lm.model.tensors(batch))
            logits.update(zip(chosen.tolist(), out.logits.numpy().astype(np.float64)))
    return [described(lm, logits[i]) for i in range(len(texts))]


def written(
    lm: LanguageModel, texts: Sequence[str], pairs: Sequence[str] | None, batch_size: int
) -> list[Found]:
    """The same of a model that writes its answers: a number, or how probable it makes the name of each class,
    next to the others.
    """
    if lm.head != "seq2seq-lm":
        raise ArgumentError(
            f"classify: this model was trained to write classes; load it with head='seq2seq-lm', not "
            f"{lm.head}"
        )
    task = task_settings.remembered(lm.config)["task"]
    chosen = task_settings.of_use(task, lm.config, {})
    stored = lm.config.extra.get("id2label") or {}
    names = [stored[str(i)] for i in range(len(stored))]
    keys = ("text",) if pairs is None else ("text", "pair")
    records: list[dict[str, Any]] = [
        dict(zip(keys, row)) for row in zip(texts, *(() if pairs is None else (pairs,)))
    ]
    if not records:
        return []
    unknown = [None] * len(records)
    examples = TextLabels(
        records, unknown, names, task, lm.tokenizer, lm.model, chosen["data"]["length"], chosen["task"]
    )
    if not names:
        return [{"value": examples.value(p["text"])} for p in examples.generated(lm.model, batch_size)]
    answers = Rows(needed_tokenizer(lm, "classify"), False)
    answers.add(examples.names)
    rows = [scoring.Row(ids, answer) for ids in examples.rows.ids for answer in answers.ids]
    found = [float(s.log_probs.sum()) for s in scoring.score(lm, rows, best=False)]
    return [described(lm, scores) for scores in np.reshape(found, (len(records), len(names)))]


def answer(
    lm: LanguageModel, questions: str | Sequence[str], contexts: str | Sequence[str], batch_size: int
) -> Found | list[Found]:
    """See LanguageModel.answer."""
    tokenizer = needed_tokenizer(lm, "answer")
    if isinstance(questions, str) != isinstance(contexts, str):
        raise ArgumentError("answer: questions and contexts must both be texts, or both be lists of texts")
    if isinstance(questions, str):
        return cast(list[Found], answer(lm, [questions], [cast(str, contexts)], batch_size))[0]
    questions, contexts = list(questions), list(contexts)
    if len(questions) != len(contexts):
        raise ArgumentError(
            f"answer: {len(questions)} questions and {len(contexts)} contexts; each question needs one"
        )
    if lm.head != "question-answering":
        raise ArgumentError(
            f"answer: this model has the head {lm.head}; fine-tune it for qa: plmcore finetune"
        )
    if not questions:
        return []
    chosen = task_settings.of_use("qa", lm.config, {})
    records = [
        {"id": "", "question": question, "context": context, "answers": [], "impossible": False}
        for question, context in zip(questions, contexts)
    ]
    asked = Scoring(
        Spans(records, tokenizer, lm.model, chosen["data"]["length"], chosen["task"]), batch_size, final=True
    )
    asked(lm.model)
    return [{"answer": found["answer"], "n_best": found["n_best"]} for found in asked.predictions]


def described(lm: LanguageModel, logits: np.ndarray) -> Found:
    if lm.config.num_labels == 1:
        return {"value": float(logits[0])}
    names = lm.config.extra.get("id2label", {})
    names = [names.get(str(i), f"LABEL_{i}") for i in range(len(logits))]
    several = lm.config.problem_type == "multi_label_classification"
    probabilities = 1 / (1 + np.exp(-logits)) if several else softmax(logits)
    best = int(probabilities.argmax())
    return {
        "label": names[best],
        "probability": float(probabilities[best]),
        "probabilities": dict(zip(names, probabilities.tolist())),
    }


def fill_mask(lm: LanguageModel, text: str, k: int) -> list[Found] | list[list[Found]]:
    """See LanguageModel.fill_mask."""
    tokenizer = needed_tokenizer(lm, "fill_mask")
    if lm.head not in ("masked-lm", "pretraining"):
        raise ArgumentError(f"fill_mask: this model has the head {lm.head}, not one for masked tokens")
    if k < 1:
        raise ArgumentError(f"fill_mask: k must be at least 1, got {k}")
    rows = Rows(tokenizer, takes_types(lm.model, tokenizer))
    rows.add([text])
    ids = rows.ids[0]
    places = np.flatnonzero(ids == tokenizer.mask_token_id)
    if not len(places):
        raise ArgumentError(f"fill_mask: the text has no {tokenizer.mask_token}: {text!r}")
    with inference():
        out = lm.model(**lm.model.tensors(rows.batch([0])))
        logits = (
            (out.prediction_logits if lm.head == "pretraining" else out.logits).numpy()[0].astype(np.float64)
        )
    found = [
        [filled(tokenizer, ids, int(at), i, p) for i, p in likeliest(logits[at], k, tokenizer.vocab_size)]
        for at in places
    ]
    return found[0] if len(found) == 1 else found


def likeliest(logits: np.ndarray, k: int, known: int) -> list[tuple[int, float]]:
    """Of the ids that are tokens: a model may have more rows, to fill up its matrix."""
    probabilities = softmax(logits)[:known]
    best = np.argsort(-probabilities, kind="stable")[:k]
    return [(int(i), float(probabilities[i])) for i in best]


def filled(tokenizer: Any, ids: np.ndarray, at: int, token: int, probability: float) -> Found:
    whole = ids.copy()
    whole[at] = token
    # other masks are to be seen
    keep = (whole == tokenizer.mask_token_id) | ~np.isin(whole, tokenizer.special_ids)
    return {
        "token": tokenizer.decode([token], skip_special_tokens=False).strip(),
        "id": token,
        "probability": probability,
        "text": tokenizer.decode(whole[keep], skip_special_tokens=False),
    }


def needed_tokenizer(lm: LanguageModel, what: str) -> Any:
    if lm.tokenizer is None:
        raise ArgumentError(
            f"{what}: this model has no tokenizer; load it from a directory with tokenizer files"
        )
    return lm.tokenizer
