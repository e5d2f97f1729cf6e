"""The options of a search: what the caller says, then generation_config.json, then config.json, under the
names that transformers users know.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, cast

from plmcore._core import ArgumentError, EarlyStopping, SearchOptions
from plmcore.files.whole import read_json
from plmcore.models.config import Config
from plmcore.runtime import kinds

LENGTH_PENALTIES = ("length", "gnmt")
MOST, MOST_ROWS = 1 << 24, 1 << 20  # tokens of a row, rows of a batch: beyond stands a slip of the pen


@dataclass(frozen=True, kw_only=True)
class Settings:
    """max_length and min_length count the prompt too. prefix_allowed_tokens_fn(prompt number, ids) returns
    the tokens that may follow.

    length_penalty_form: what a beam's log-probability is divided by. "length": n^length_penalty; "gnmt":
        ((5 + n) / 6)^length_penalty.
    seed: a number s gives prompt i the stream s + i; or a list, one number for each prompt.
    """

    max_new_tokens: int | None = None
    max_length: int | None = None
    min_new_tokens: int = 0
    min_length: int = 0
    num_beams: int = 1
    num_beam_groups: int = 1
    diversity_penalty: float = 0.0
    num_return_sequences: int = 1
    length_penalty: float = 1.0
    length_penalty_form: str = "length"
    early_stopping: bool | str = False
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 1.0
    typical_p: float = 1.0
    seed: int | Sequence[int] = 0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    bad_words_ids: Sequence[Sequence[int]] = ()
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | Sequence[int] | None = None
    prefix_allowed_tokens_fn: Callable[[int, list[int]], Sequence[int]] | None = None
    stop_strings: str | Sequence[str] = ()
    bos_token_id: int | None = None
    eos_token_id: int | Sequence[int] | None = None
    pad_token_id: int | None = None
    decoder_start_token_id: int | None = None
    output_scores: bool = False
    trace: bool = False

    @classmethod
    def of(cls, config: Config, folder: pathlib.Path | None, given: dict[str, Any]) -> Self:
        known = {f.name for f in fields(cls)}
        if unknown := [name for name in given if name not in known]:
            raise ArgumentError(f"generate has no option {unknown[0]!r}; one of {', '.join(sorted(known))}")
        stored = stored_settings(config, folder)
        values = {name: value for name, value in stored.items() if name in known and value is not None}
        values |= {
            name: value for name, value in given.items() if value is not None or name.endswith("_token_id")
        }
        for f in fields(cls):
            wanted = f"{f.type} | int" if f.type == "bool" else str(f.type)
            if f.name in values and not kinds.fits(values[f.name], wanted):
                raise ArgumentError(
                    f"{f.name} must be {kinds.spoken(str(f.type))}, got {kinds.given(values[f.name])}"
                )
        settings = cls(**values)
        for name in (
            "max_new_tokens",
            "max_length",
            "min_new_tokens",
            "min_length",
            "num_beams",
            "num_return_sequences",
        ):
            if (getattr(settings, name) or 0) > MOST:
                raise ArgumentError(f"{name} must be at most {MOST}, got {getattr(settings, name)}")
        if settings.pad_token_id is None and settings.eos:
            settings = replace(settings, pad_token_id=settings.eos[0])
        return settings

    @property
    def detailed(self) -> bool:
        """Whether the caller wants more than the sequences."""
        return bool(self.output_scores or self.trace)

    @property
    def eos(self) -> list[int]:
        return as_list(self.eos_token_id)

    @property
    def fill(self) -> int:
        """What stands after the end of a sequence in a batch.

        With beams transformers takes a padding token 0 for none.
        """
        if self.pad_token_id is None:
            return -1 if self.num_beams > 1 else 0
        if self.num_beams > 1 and not self.pad_token_id:
            return self.eos[0] if self.eos else self.pad_token_id
        return self.pad_token_id

    def search_options(
        self, prompts: int, longest_prompt: int, positions: int | None, starts: bool
    ) -> SearchOptions:
        """starts: the decoder starts from a single token, so that the first one can be forced."""
        o = SearchOptions()
        o.max_new_tokens = self.new_tokens(longest_prompt, positions)
        o.min_new_tokens = max(int(self.min_new_tokens), int(self.min_length) - longest_prompt, 0)
        o.eos = self.eos
        if (rows := prompts * self.num_beams * self.num_return_sequences) > MOST_ROWS:
            raise ArgumentError(
                f"{prompts} prompts with num_beams = {self.num_beams} and num_return_sequences = "
                f"{self.num_return_sequences} are {rows} rows, at most "
                f"{MOST_ROWS} are allowed at once"
            )
        o.returns, o.beams, o.groups = self.num_return_sequences, self.num_beams, self.num_beam_groups
        o.diversity, o.length_penalty = float(self.diversity_penalty), float(self.length_penalty)
        if self.length_penalty_form not in LENGTH_PENALTIES:
            raise ArgumentError(
                f"length_penalty_form must be one of {', '.join(LENGTH_PENALTIES)}, got "
                f"{self.length_penalty_form!r}"
            )
        o.gnmt = self.length_penalty_form == "gnmt"
        stops = {False: EarlyStopping.no, True: EarlyStopping.yes, "never": EarlyStopping.never}
        if self.early_stopping not in stops:
            raise ArgumentError(f'early_stopping must be True, False or "never", got {self.early_stopping!r}')
        o.early_stopping = stops[self.early_stopping]
        o.sample, o.temperature, o.top_k = bool(self.do_sample), float(self.temperature), self.top_k
        o.top_p, o.typical_p = float(self.top_p), float(self.typical_p)
        o.seeds = (
            [self.seed + i for i in range(prompts)]
            if isinstance(self.seed, int)
            else [int(s) for s in self.seed]
        )
        o.repetition_penalty, o.no_repeat_ngram = float(self.repetition_penalty), self.no_repeat_ngram_size
        o.bad_words = [[int(t) for t in word] for word in self.bad_words_ids]
        o.forced_first = as_list(self.forced_bos_token_id) if starts else []
        o.forced_last = as_list(self.forced_eos_token_id)
        if (allowed := self.prefix_allowed_tokens_fn) is not None:
            o.set_allowed(lambda prompt, ids: [int(t) for t in allowed(prompt, ids)])
        o.token_scores, o.trace = bool(self.output_scores), bool(self.trace)
        return o

    def new_tokens(self, prompt: int, positions: int | None) -> int:
        """The most new tokens. The last one needs no position: it is not run."""
        room = None if positions is None else positions - prompt + 1
        if room is not None and room < 1:
            raise ArgumentError(f"the prompt has {prompt} tokens, and the model {positions} positions")
        if self.max_new_tokens is None and self.max_length is None:
            return 20 if room is None else min(20, room)
        if self.max_new_tokens is not None:
            new = self.max_new_tokens
        elif (new := cast(int, self.max_length) - prompt) < 1:
            raise ArgumentError(
                f"max_length = {self.max_length} counts the prompt, which has {prompt} tokens already"
            )
        if not isinstance(new, int) or isinstance(new, bool):
            raise ArgumentError(f"max_new_tokens must be a whole number, got {new!r}")
        if room is not None and new > room:
            raise ArgumentError(
                f"{prompt} tokens and {new} new ones are more than the {positions} positions of the "
                f"model; at most {room} new ones fit"
            )
        return new


def as_list(tokens: int | Sequence[int] | None) -> list[int]:
    if tokens is None:
        return []
    return [tokens] if isinstance(tokens, int) else [int(t) for t in tokens]


def stored_settings(config: Config, folder: pathlib.Path | None) -> dict[str, Any]:
    """What comes with a model."""
    path = None if folder is None else folder / "generation_config.json"
    if path is not None and path.exists():
        return read_json(path)
    return {"forced_eos_token_id": config.forced_last, **config.to_dict()}
