"""plmcore show: an example of a pre-training objective, before and after; or where a model looks."""

from __future__ import annotations

import argparse
import ast
import pathlib
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.cli.arguments import Help
from plmcore.objectives import NAMES, make

SEQ2SEQ = ("denoising", "fragment", "masked-seq2seq", "span-corruption", "translation", "text-to-text")
TEXT = (
    "The river rises in the hills. It runs south through three valleys and a gorge. Below the town it "
    "meets the sea, where it has built a wide delta.\n\nBakers start before dawn. "
    "The dough has rested all night in a cool room. When the oven is hot, the first loaves go in."
)
EXAMPLES = """\
examples:
  plmcore show masked-lm --text "The cat sat on the mat. It purred."
  plmcore show masked-lm --set unit=word rate=0.3 --tokenizer bert-base-uncased
  plmcore show denoising --set noise=infilling --seed 3
  plmcore show blank-infilling --set modes=0,1,0
  plmcore show translation --text "the house is red" --text "das Haus ist rot" --set reverse=True
  plmcore show text-to-text --text "a fine film" --set task=sst2 label=positive
  plmcore show attention --model run/final --text "das Haus" --target "the house" --out page.html
"""
ATTENTION = "attention"
DIM, CHANGED, PREDICTED = "2", "31", "1;32"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    show = commands.add_parser(
        "show",
        help="print an example of a pre-training objective, or where a model looks",
        description="Prints a text, the input that the objective makes of it, and the tokens that the model "
        "predicts. The output has colours on a terminal. `plmcore show attention` prints, or writes as a "
        "page, where each token of a text looks; of a translation model, the alignment.",
        epilog=f"objectives: {', '.join(NAMES)}\n{EXAMPLES}",
        formatter_class=Help,
    )
    show.add_argument(
        "objective",
        choices=(*NAMES, ATTENTION),
        metavar="OBJECTIVE",
        help="one of the objectives below, or attention",
    )
    show.add_argument(
        "--text",
        action="append",
        metavar="TEXT",
        help="documents, separated by blank lines; give it twice for pairs (default: a built-in text)",
    )
    show.add_argument(
        "--tokenizer",
        type=pathlib.Path,
        metavar="DIR",
        help="a tokenizer directory (default: every word is a token)",
    )
    show.add_argument(
        "--length", type=int, default=64, metavar="N", help="tokens in an example (default: %(default)s)"
    )
    show.add_argument(
        "--example", type=int, default=0, metavar="I", help="number of the example (default: %(default)s)"
    )
    show.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of the noise (default: %(default)s)"
    )
    show.add_argument(
        "--epoch", type=int, default=0, metavar="E", help="epoch of the noise (default: %(default)s)"
    )
    show.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="settings of the objective",
    )
    of_model = show.add_argument_group("attention")
    of_model.add_argument("--model", type=pathlib.Path, metavar="DIR", help="the model directory")
    of_model.add_argument(
        "--target",
        metavar="TEXT",
        help="what the decoder of a model with an encoder reads (default: what it writes itself)",
    )
    of_model.add_argument(
        "--out", type=pathlib.Path, metavar="FILE.html", help="write a page for a browser, with all heads"
    )


def run(args: argparse.Namespace) -> int:
    try:
        if args.objective == ATTENTION:
            print(attention(args.model, args.text, args.target, args.out))
            return 0
        if args.model or args.target or args.out:
            raise ArgumentError("--model, --target and --out go with `plmcore show attention`")
        settings = dict(setting(s) for s in args.set)
        colour = sys.stdout.isatty()
        print(
            show(
                args.objective,
                args.text,
                settings,
                args.tokenizer,
                args.length,
                args.example,
                args.seed,
                args.epoch,
                colour,
            )
        )
    except (ValueError, TypeError, IndexError, OSError) as e:
        print(f"plmcore show: {e}", file=sys.stderr)
        return 1
    return 0


def attention(
    model: pathlib.Path | None, texts: Sequence[str] | None, target: str | None, out: pathlib.Path | None
) -> str:
    """What `plmcore show attention` prints: the most that each token looks at in the first head of the last
    layer, or where the page is.
    """
    import plmcore

    if model is None:
        raise ArgumentError("attention needs --model DIR, the model that reads the text")
    text, *pair = texts or [TEXT.partition(".")[0]]
    found = plmcore.load(model).attention(text, pair[0] if pair else None, target=target)
    if not found.maps:
        raise ArgumentError(f"'{model}' has no attention to show")
    if out is not None:
        found.html(out)
        return str(out)
    kind = [*found.maps][-1]
    return found.text(found.maps[kind].layers[-1], 0, kind)


def setting(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ArgumentError(f"--set takes NAME=VALUE, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def show(
    objective: str,
    texts: Sequence[str] | None = None,
    settings: dict[str, object] | None = None,
    tokenizer: pathlib.Path | None = None,
    length: int = 64,
    example: int = 0,
    seed: int = 0,
    epoch: int = 0,
    colour: bool = False,
) -> str:
    """The lines that `plmcore show` prints."""
    settings = dict(settings or {})
    texts = [TEXT] if not texts else list(texts)
    if not all(t.strip() for t in texts):
        raise ArgumentError("the text is empty")
    notes = []
    if objective == "next-sentence" and len(documents(texts[0])) < 2:
        texts[0] += "\n\n" + TEXT
        notes.append("sentences of other documents are from a built-in text")
    task = str(settings.pop("task", "sst2"))
    records = {"text": texts[0], "pair": texts[-1]} | settings if objective == "text-to-text" else {}
    known = load(tokenizer) if tokenizer else words(objective, [*texts, *map(str, records.values())], task)
    if objective == "text-to-text":
        made = make(objective, {task: [records]}, known, length=length)
    elif objective == "translation":
        if len(texts) != 2:
            raise ArgumentError(f"translation takes --text twice, for source and target, got {len(texts)}")
        made = make(objective, *(corpus([[t]], known) for t in texts), known, length=length, **settings)
    else:
        made = make(objective, corpus(documents("\n\n".join(texts)), known), known, length=length, **settings)
    batch = made.batch([example], seed=seed, epoch=epoch)
    lines = Page(known, {name: value[0] for name, value in batch.items()}, colour).lines(objective in SEQ2SEQ)
    head = f"{objective}: example {example} of {len(made)}, seed {seed}, epoch {epoch}"
    return "\n".join([head, *notes, *lines])


# ---- text ----


def documents(text: str) -> list[list[str]]:
    """Sentences of each."""
    from plmcore.data import sentences

    return [sentences.split(" ".join(part.split())) for part in re.split(r"\n\s*\n", text.strip())]


def corpus(documents: Sequence[Sequence[str]], tokenizer: Any) -> Any:
    from plmcore.data import Corpus

    parts = [[ids for ids in tokenizer.encode_ids(list(sentences)) if len(ids)] for sentences in documents]
    parts = [p for p in parts if p]
    return Corpus.from_ids(
        [np.concatenate(p) for p in parts], tokenizer.vocab_size, [[len(s) for s in p] for p in parts]
    )


def load(folder: pathlib.Path) -> Any:
    from plmcore.tokenizers import load_tokenizer

    return load_tokenizer(folder)


def words(objective: str, texts: Sequence[str], task: str) -> Any:
    """A tokenizer of the texts' own words and marks, with the special tokens of the objective's family."""
    import tokenizers

    from plmcore.objectives.text_to_text import DECANLP, TASKS
    from plmcore.tokenizers import Tokenizer, families
    from plmcore.tokenizers.library import Library

    family = families.of_objective(objective)
    special = [*dict.fromkeys(family.roles.values()), *family.extra]
    cast = (TASKS | DECANLP).get(task)
    told = [*texts, cast.source, cast.target, *(cast.labels or ())] if cast else texts
    found = dict.fromkeys(w for t in told for w in re.findall(r"\w+|[^\w\s]", t))
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys([*special, *found]))}
    native = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=family.roles["unk"]))
    native.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.WhitespaceSplit(),
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[^\w\s]"), "isolated"),
        ]
    )
    native.add_special_tokens(special)
    return Tokenizer(Library(native), family)


# ---- the page ----


class Page:
    """One example as lines: a name, then tokens.

    Special tokens are dim, changed ones red, predicted ones green.
    """

    def __init__(self, tokenizer: Any, row: dict[str, np.ndarray], colour: bool):
        self.tokenizer, self.row, self.colour = tokenizer, row, colour
        self.special = set(np.asarray(tokenizer.special_ids).tolist())

    def lines(self, seq2seq: bool) -> list[str]:
        row = self.row
        if "position_ids" in row:
            return self.blanks()
        ids, labels = self.real("input_ids"), row.get("labels")
        if "perm_mask" in row:
            return self.permutation(ids)
        if labels is not None and not seq2seq:
            shown = self.aligned(ids, labels[self.mask("input_ids")])
        else:
            shown = [self.line("input", ids)]
            if "decoder_input_ids" in row:
                shown.append(self.line("decoder", row["decoder_input_ids"]))
            if labels is not None:
                shown.append(self.line("predict", labels[labels != -100], PREDICTED))
        for name in ("forward_labels", "backward_labels"):
            if name in row:
                kept = row[name][self.mask("input_ids")]
                shown.append(self.line(name.split("_")[0], kept, PREDICTED))
        for name in ("positive", "negative"):
            if f"{name}_input_ids" in row:
                shown.append(self.line(name, self.real(f"{name}_input_ids")))
        if "next_sentence_label" in row:
            shown.append(
                f"{'next':>9}  "
                f"{'no: B is of another document' if row['next_sentence_label'] else 'yes: B follows A'}"
            )
        if "sentence_order_label" in row:
            shown.append(
                f"{'order':>9}  {'B stood before A' if row['sentence_order_label'] else 'A, then B'}"
            )
        return shown

    def aligned(self, ids: np.ndarray, labels: np.ndarray) -> list[str]:
        """Labels of the same places."""
        chosen = labels != -100
        if chosen.all():  # a language model's
            return [self.line("input", ids), self.line("predict", ids[1:], PREDICTED)]
        before = np.where(chosen, labels, ids)
        styles = [PREDICTED if c else None for c in chosen]
        for i in np.flatnonzero(before != ids):
            styles[i] = CHANGED
        predicted = [f"{i}: {self.word(labels[i], PREDICTED)}" for i in np.flatnonzero(chosen)]
        return [
            self.line("before", before, [PREDICTED if c else None for c in chosen]),
            self.line("input", ids, styles),
            f"{'predict':>9}  {'  '.join(predicted)}",
        ]

    def permutation(self, ids: np.ndarray) -> list[str]:
        """Targets in the order in which they are predicted: one that sees more targets comes later."""
        mask, blocked = self.mask("input_ids"), self.row["perm_mask"]
        places = self.row["target_mapping"].argmax(1)[self.row["labels"] != -100]
        known = [sum(not blocked[p, q] for q in places) for p in places]
        styles = [PREDICTED if i in set(places.tolist()) else None for i in np.flatnonzero(mask)]
        lines = [self.line("input", ids, styles)]
        for n, p in sorted(zip(known, places.tolist())):
            also = [self.word(int(self.row["input_ids"][q])) for q in places if not blocked[p, q]]
            sees = f"the rest{' and ' + ', '.join(also) if also else ''}"
            lines.append(
                f"{f'{n + 1}.':>9}  {self.word(int(self.row['input_ids'][p]), PREDICTED)} (place {p}) "
                f"from {sees}"
            )
        return lines

    def blanks(self) -> list[str]:
        n, total = int(self.row["source_lengths"]), int(self.row["attention_mask"].sum())
        ids, labels = self.row["input_ids"], self.row["labels"]
        return [
            self.line("text", ids[:n]),
            self.line("pieces", ids[n:total]),
            self.line("predict", labels[n:total], PREDICTED),
            f"{'place':>9}  {' '.join(map(str, self.row['position_ids'][n:total]))}",
            f"{'in piece':>9}  {' '.join(map(str, self.row['block_position_ids'][n:total]))}",
        ]

    def mask(self, name: str) -> np.ndarray:
        mask = self.row.get(name.replace("input_ids", "attention_mask"))
        return np.ones(len(self.row[name]), bool) if mask is None else mask == 1

    def real(self, name: str) -> np.ndarray:
        return self.row[name][self.mask(name)]

    def line(
        self, name: str, ids: Sequence[int] | np.ndarray, style: str | Sequence[str | None] | None = None
    ) -> str:
        styles = [style] * len(ids) if style is None or isinstance(style, str) else style
        return f"{name:>9}  {' '.join(self.word(i, s) for i, s in zip(ids, styles))}"

    def word(self, i: int, style: str | None = None) -> str:
        token = "-" if i == -100 else self.tokenizer.token_of(int(i))
        style = DIM if style is None and int(i) in self.special else style
        return f"\x1b[{style}m{token}\x1b[0m" if self.colour and style else str(token)
