"""What a search looked at, step by step: lm.generate(..., trace=True).trace. plmcore.viz.beams draws it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from plmcore._core import Completion, Considered, Fate, Search

FATES = {Fate.kept: "kept", Fate.dropped: "dropped", Fate.finished: "finished"}


@dataclass(frozen=True, eq=False)
class Node:
    """A continuation that a step looked at: of beams one of the best, else the token that was taken or one of
    the likeliest others.

    score: the sum of the log-probabilities of the new tokens.
    final_score: of a finished one, with the length penalty.
    group: of diverse beams; of samples, which of them.
    """

    step: int  # 0 is the first
    place: int  # in its step
    parent: Node | None = field(repr=False)  # None: it follows the prompt
    token: int
    text: str  # what the token adds
    score: float
    fate: str  # "kept", "dropped" or "finished"
    final_score: float | None
    group: int

    def tokens(self) -> list[int]:
        """From the first new one to its own."""
        found: list[int] = []
        node: Node | None = self
        while node is not None:
            found.append(node.token)
            node = node.parent
        return found[::-1]


@dataclass
class PromptTrace:
    prompt: list[int]
    prompt_text: str
    steps: list[list[Node]]
    results: list[Node]  # where the sequences that were returned end, the best first
    result_texts: list[str]


@dataclass
class Trace:
    kind: str  # "beams", "greedy" or "samples"
    beams: int
    prompts: list[PromptTrace]


def traced(
    search: Search, number: int, prompt: Sequence[int], tokenizer: Any, decode: Callable[..., str]
) -> PromptTrace:
    """The trace of one prompt of a search that is done. decode(tokenizer, ids) -> text; without a tokenizer
    ids are their own text.
    """
    reader = Reader(tokenizer, decode)
    steps: list[list[Node]] = []
    for considered in search.trace(number):
        before = steps[-1] if steps else []
        nodes: list[Node] = []
        for c in considered:
            parent = before[c.parent] if c.parent >= 0 else None
            nodes.append(node_of(c, len(steps), len(nodes), parent, reader))
        steps.append(nodes)
    results = search.result(number)
    ends = ends_of(results, [n for nodes in steps for n in nodes if n.fate == "finished"])
    return PromptTrace(
        list(map(int, prompt)),
        reader.text(prompt),
        steps,
        ends,
        [reader.text(found.tokens) for found in results],
    )


def node_of(c: Considered, step: int, place: int, parent: Node | None, reader: Reader) -> Node:
    fate = FATES[c.fate]
    text = reader.piece([] if parent is None else parent.tokens(), c.token)
    return Node(
        step,
        place,
        parent,
        c.token,
        text,
        c.score,
        fate,
        c.final_score if fate == "finished" else None,
        c.group,
    )


def ends_of(results: Sequence[Completion], finished: list[Node]) -> list[Node]:
    """The node of each result. Groups may find the same sequence: each of them is taken once."""
    left, ends = list(finished), []
    for found in results:
        match = next(n for n in left if n.step + 1 == len(found.tokens) and n.tokens() == found.tokens)
        left.remove(match)
        ends.append(match)
    return ends


class Reader:
    """Ids as text."""

    def __init__(self, tokenizer: Any, decode: Callable[..., str]):
        self.tokenizer, self.decode = tokenizer, decode
        self.special = frozenset() if tokenizer is None else frozenset(tokenizer.special_ids.tolist())

    def text(self, ids: Sequence[int]) -> str:
        return " ".join(map(str, ids)) if self.tokenizer is None else self.decode(self.tokenizer, list(ids))

    def piece(self, before: list[int], token: int) -> str:
        """What a token adds to the text; its name where it adds nothing that can be read."""
        if self.tokenizer is None or token >= self.tokenizer.vocab_size:
            return str(token)
        if token not in self.special:
            shorter = self.text(before)
            longer = self.text([*before, token])
            if (
                longer.startswith(shorter)
                and longer[len(shorter) :]
                and "\ufffd" not in longer[len(shorter) :]
            ):
                return longer[len(shorter) :]
        return self.tokenizer.token_of(token) or str(token)
