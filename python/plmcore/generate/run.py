"""A search from prompts to ids or texts.  Shapes: B prompts, R sequences returned for each,
L the longest of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore import nn
from plmcore._core import ArgumentError, Completion, Search
from plmcore.files import pages
from plmcore.generate.inputs import Prompts, prompts_of
from plmcore.generate.settings import Settings, as_list
from plmcore.generate.steps import Steps, has_encoder, steps_of
from plmcore.generate.trace import Trace, traced


@dataclass
class Generated:
    """sequences: ids [B R, L], with the prompt where there is no encoder. scores: of beams with the length
    penalty, else the sums of token_scores, which are log-probabilities of the new tokens. texts: None without
    a tokenizer. trace: with trace=True, what the search looked at.
    """

    sequences: np.ndarray
    scores: np.ndarray
    token_scores: list[np.ndarray]
    texts: list[str] | None
    trace: Trace | None = None

    def html(self, path: str | os.PathLike[str], title: str = "Search") -> None:
        """Writes the search, step by step, as a page for a browser that needs no other file."""
        if self.trace is None:
            raise ArgumentError("html: the search was not traced; pass trace=True to generate")
        pages.drawer("search")(path, self.trace, title)


@dataclass
class Run:
    """A search that is under way. advance() runs the model once; result() is for when it is done."""

    lm: Any
    settings: Settings
    given: Prompts
    prompts: list[np.ndarray]  # of the decoder
    search: Search
    steps: Steps

    def advance(self) -> None:
        with nn.inference():
            self.search.accept(self.steps(self.search))

    def finish(self) -> Generated:
        while not self.search.done:
            self.advance()
        return self.result()

    def found(self) -> list[Completion]:
        return [s for i in range(len(self.prompts)) for s in self.search.result(i)]

    def result(self) -> Generated:
        found, R = self.found(), self.settings.num_return_sequences
        if has_encoder(self.lm.model):
            before = np.stack(self.prompts)
        else:
            before = self.given.left_padded(self.settings.fill)
        width = max(len(s.tokens) for s in found)
        new = np.full((len(found), width), self.settings.fill, np.int64)
        for row, s in zip(new, found):
            row[: len(s.tokens)] = s.tokens
        read = self.lm.tokenizer is not None and (self.given.text or self.settings.detailed)
        return Generated(
            np.concatenate([np.repeat(before, R, 0), new], 1),
            np.array([s.score for s in found]),
            [np.array(s.token_scores, np.float32) for s in found],
            [self.text(i // R, s.tokens) for i, s in enumerate(found)] if read else None,
            self.trace() if self.settings.trace else None,
        )

    def trace(self) -> Trace:
        kind = "samples" if self.settings.do_sample else "greedy"
        if self.settings.num_beams > 1:
            kind = "beams"
        return Trace(
            kind,
            self.settings.num_beams,
            [
                traced(self.search, i, ids.tolist(), self.lm.tokenizer, decode)
                for i, ids in enumerate(self.given.rows)
            ],
        )

    def text(self, prompt: int, new: list[int]) -> str:
        """With the prompt where there is no encoder."""
        before = [] if has_encoder(self.lm.model) else list(self.prompts[prompt])
        return decode(self.lm.tokenizer, [*before, *new])


def decode(tokenizer: Any, ids: list[int]) -> str:
    """Vocabularies of models are often rounded up: ids that the tokenizer does not have say nothing."""
    return tokenizer.decode([t for t in ids if t < tokenizer.vocab_size])


def begin(
    lm: Any, inputs: Any, attention_mask: Any = None, decoder_input_ids: Any = None, **options: Any
) -> Run:
    settings = Settings.of(lm.config, lm.source, options)
    model, V = lm.model, lm.config.vocab_size
    given = prompts_of(inputs, attention_mask, lm.tokenizer, V, settings.pad_token_id, settings.eos)
    prompts, sources = given.rows, None
    if has_encoder(model):
        prompts, sources = decoder_prompts(len(given.rows), decoder_input_ids, settings), given.rows
    elif decoder_input_ids is not None:
        raise ArgumentError("decoder_input_ids: this model has no encoder; they are its prompt")
    if settings.num_beams > V:
        raise ArgumentError(f"num_beams = {settings.num_beams} is more than the vocabulary of {V}")
    width = len(prompts[0]) if sources is not None else given.width
    longest = max(len(p) for p in prompts)
    rules = settings.search_options(
        len(prompts), width, lm.config.longest, sources is not None and longest == 1
    )
    if (
        stops := [settings.stop_strings]
        if isinstance(settings.stop_strings, str)
        else list(settings.stop_strings)
    ):
        if lm.tokenizer is None:
            raise ArgumentError("stop_strings need a tokenizer; this model has none")
        rules.set_stop(lambda i, ids: any(s in decode(lm.tokenizer, ids[len(prompts[i]) :]) for s in stops))
    search = Search([p.tolist() for p in prompts], rules)
    with nn.inference():
        steps = steps_of(model, prompts, sources, rules.max_new_tokens)
        return Run(lm, settings, given, prompts, search, steps)


def decoder_prompts(B: int, ids: Any, settings: Settings) -> list[np.ndarray]:
    """What a decoder with an encoder starts from: its start token, then the ids that the caller gives."""
    start = settings.decoder_start_token_id
    start = settings.bos_token_id if start is None else start
    if start is None:
        raise ArgumentError("the decoder needs a token to start from: pass decoder_start_token_id")
    if ids is None:
        return [np.array(as_list(start)[:1], np.int64)] * B
    ids = np.asarray(ids, np.int64)
    ids = np.repeat(ids[None], B, 0) if ids.ndim == 1 else ids
    if ids.ndim != 2 or len(ids) != B or not ids.size:
        raise ArgumentError(f"decoder_input_ids must be [{B}, length], got {list(ids.shape)}")
    if (ids[:, 0] != start).all():
        ids = np.pad(ids, ((0, 0), (1, 0)), constant_values=start)
    return list(ids)


def generate(
    lm: Any, inputs: Any, attention_mask: Any = None, decoder_input_ids: Any = None, **options: Any
) -> Any:
    run = begin(lm, inputs, attention_mask, decoder_input_ids, **options)
    result = run.finish()
    if run.settings.detailed:
        return result
    alone = run.given.single and run.settings.num_return_sequences == 1
    if run.given.text and result.texts is not None:
        return result.texts[0] if alone else result.texts
    return result.sequences[0] if alone else result.sequences


def stream(lm: Any, text: str, **options: Any) -> Iterator[str]:
    """Pieces of the text that follows, as they come; an unfinished character waits for the rest of it."""
    if lm.tokenizer is None:
        raise ArgumentError("stream makes text, and this model has no tokenizer")
    run = begin(lm, text, **options)
    if len(run.prompts) > 1 or run.settings.num_beams > 1 or run.settings.num_return_sequences > 1:
        raise ArgumentError("stream takes one prompt and makes one text, without beams")
    return pieces(run)


def pieces(run: Run) -> Iterator[str]:
    tokens: list[int] = []
    shown = run.text(0, [])
    while not run.search.done:
        run.advance()
        if run.search.done:
            tokens = run.search.result(0)[0].tokens
        else:
            assert run.search.tokens is not None  # after a step
            tokens = [*tokens, int(run.search.tokens.numpy()[0, 0])]
        text = run.text(0, tokens)
        if not run.search.done and text.endswith("\ufffd"):
            continue
        if text[len(shown) :]:
            yield text[len(shown) :]
        shown = text
