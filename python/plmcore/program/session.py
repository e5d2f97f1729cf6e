"""A model file without the model's code: plm.Program.load("model.plm") offers the entry points of C++."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plmcore import _core
from plmcore._core import ArgumentError, Options, Tensor
from plmcore.runtime.kinds import checked

Rows = str | Sequence[str] | Sequence[Sequence[int]] | np.ndarray
NAMES = {  # options that plmcore::Options calls otherwise
    "num_beams": "beams",
    "num_beam_groups": "groups",
    "num_return_sequences": "returns",
    "diversity_penalty": "diversity",
    "do_sample": "sample",
    "no_repeat_ngram_size": "no_repeat_ngram",
    "bad_words_ids": "bad_words",
    "output_scores": "token_scores",
}


class Session:
    """One user of a model file. Texts or rows of ids go in; results are those of the C++ API.

    `model` has the programs, `card` what the file says of its model, `text` the tokenizer or None where there
    is none that C++ serves.
    """

    def __init__(self, model: _core.Model, threads: int = 0) -> None:
        self.model, self.card = model, model.card
        self.text = _core.Text(model) if _core.Text.serves(model) else None
        self._session = _core.Session(model, threads)

    @property
    def entries(self) -> list[str]:
        """The names of the entry points."""
        return self.model.names

    @checked
    def run(self, entry: str, **inputs: Any) -> dict[str, Tensor]:
        """Runs an entry point: arrays or tensors by name."""
        specs = {name: dtype for name, _, dtype in self.model.program(entry).inputs}
        given = {
            name: value if isinstance(value, Tensor) else Tensor(np.asarray(value), dtype=specs.get(name))
            for name, value in inputs.items()
        }
        return self._session.run(entry, given)

    @checked
    def encode(self, rows: Any, max_length: int = 0) -> np.ndarray:
        """A vector for each text or row of ids, pooled as the file says.  float32 [n, C], or [C] for one"""
        most = max_length or self.card.pooled_length
        found = self._session.encode(*self._rows(rows, None, most)).numpy()
        return found[0] if isinstance(rows, str) else found

    @checked
    def classify(self, rows: Any, pairs: Any = None) -> list[_core.Classified]:
        """A label for each text, pair of texts or row of ids."""
        return self._session.classify(*self._rows(rows, pairs))

    @checked
    def tag(self, rows: Any) -> list[list[_core.Classified]]:
        """A label for each token, special ones included."""
        return self._session.tag(*self._rows(rows))

    @checked
    def answer(self, rows: Any, pairs: Any = None, **options: Any) -> list[list[_core.Span]]:
        """The best spans of tokens for each question (a text) and passage (its pair), or row of ids."""
        return self._session.answer(*self._rows(rows, pairs), **options)

    @checked
    def generate(
        self, prompts: Any, stream: Callable[[int, int], bool] | None = None, **options: Any
    ) -> list[list[_core.Completion]]:
        """What follows each prompt. Options are those of docs/generation.md, and else those of the file."""
        return self._session.generate(self._rows(prompts)[0], self._options(options), stream)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids."""
        return self._needed().decode(list(ids))

    def _options(self, given: dict[str, Any]) -> Options:
        options: Any = self.card.generation
        for name, value in given.items():
            if name == "eos_token_id":
                options.eos = [value] if isinstance(value, int) else list(value)
                continue
            ours = NAMES.get(name, name)
            if not hasattr(options, ours) or ours.startswith("_"):
                raise ArgumentError(f"generate from a file has no option {name!r}")
            setattr(options, ours, value)
        return options

    def _rows(self, rows: Any, pairs: Any = None, most: int = 0) -> tuple[list[Any], list[Any]]:
        texts = [rows] if isinstance(rows, str) else list(rows)
        if not texts or not isinstance(texts[0], str):
            return [list(map(int, row)) for row in texts], []
        text = self._needed()
        if pairs is None:
            found = [text.encode(t, most) for t in texts]
        else:
            both = [pairs] if isinstance(pairs, str) else list(pairs)
            found = [text.encode_pair(a, b, most) for a, b in zip(texts, both, strict=True)]
        return [ids for ids, _ in found], [types for _, types in found]

    def _needed(self) -> _core.Text:
        if self.text is None:
            kind = self.card.tokenizer
            why = f"its tokenizer, {kind}, is not served" if kind else "it has no tokenizer"
            raise ArgumentError(f"this file takes ids: {why}")
        return self.text


@checked
def load(path: str | os.PathLike[str], *, threads: int = 0, mapped: bool = True) -> Session:
    """Opens a model file. threads: of the pool, that its calls use; 0: all."""
    return Session(_core.Model.load(os.fspath(path), mapped), threads)
