"""The data of a fine-tuning run: its records, its classes, and examples of them for the model."""

from __future__ import annotations

import functools
import hashlib
import pathlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from plmcore import data
from plmcore._core import ArgumentError, FormatError
from plmcore.data import tables
from plmcore.data.readers import Record
from plmcore.data.tasks import SPLITS
from plmcore.files.whole import atomic_write
from plmcore.tasks import further, labels, records, spans
from plmcore.tasks.examples import Classification, Examples, MultipleChoice, Regression
from plmcore.tasks.rows import check_length
from plmcore.tasks.seq2seq import Seq2Seq, TextLabels
from plmcore.tasks.tagging import Tagging
from plmcore.tasks.task_settings import kind_of
from plmcore.tokenizers import Tokenizer
from plmcore.train import checkpoint, run_data
from plmcore.train.settings import Settings

if TYPE_CHECKING:
    from plmcore.models import Model

# Fields of which one must have text, where there is something to learn
WITH_TEXT = {
    "classification": ("text",),
    "pair": ("text", "pair"),
    "regression": ("text", "pair"),
    "seq2seq": ("source",),
}


class TaskData:
    """`records` by split, and `names`, the classes in the order of their numbers.

    The splits are train, dev and test, or the published ones that are evaluated, as dev_matched.
    """

    def __init__(self, settings: Settings, in_memory: Mapping[str, list[Record]] | None = None):
        """`in_memory`: the rows of splits that are tables in memory;
        the settings say in which files the run keeps them.
        """
        self.settings, self.table = settings, settings["data"]
        self.kind = kind_of(settings["run"]["task"])
        self.declared = data.TASKS.get(settings["run"]["task"])
        self.in_memory = dict(in_memory or {})
        if self.kind == "lm":  # whatever the column is called
            self.in_memory = {
                split: [{"text": r["text"]} for r in self._in_table(rows, split)]
                for split, rows in self.in_memory.items()
            }

    @property
    def published(self) -> data.Task:
        """The declared task that the run is for."""
        if self.declared is None:
            raise ArgumentError(f"{self.kind} is no published task: name files, not a folder")
        return self.declared

    def path(self, split: str) -> pathlib.Path:
        """The file of a split, for messages; a folder where the task is published as one."""
        if split in self.in_memory:
            return pathlib.Path(f"table {split}")
        return pathlib.Path(self.table.get(split) or self.table["folder"] or self.table["train"])

    def check_files(self) -> None:
        """Notes the digests of the files among the settings;
        an error if those of a run that goes on have changed.
        """
        given: list[pathlib.Path] = []
        now: list[str] = []
        others = [other.table[split] for other in self.further.values() for split in SPLITS]
        for path in filter(None, (self.table["unlabelled"], *others)):
            given.append(existing(path))
            now.append(checkpoint.digest(given[-1]))
        for key in (*SPLITS, "folder"):
            if key in self.in_memory:
                given.append(self.path(key))
                now.append(hashlib.sha256(tables.dumps(self.in_memory[key])).hexdigest())
            elif self.table[key]:
                path = existing(self.table[key])
                files = [path] if self.declared is None else self.declared.files_of(path)
                given += files
                now += [checkpoint.digest(f) for f in run_data.all_files(files)]
        if self.table.get("digests") not in (None, now):
            raise ArgumentError(
                f"the data has changed since this run began ({', '.join(map(str, given))}): "
                "it can go on with the old files, or begin again in another directory"
            )
        self.table["digests"] = now

    def keep_tables(self) -> None:
        """Writes what is in memory where the settings have it, so that the run can go on,
        and be repeated, without it.
        """
        for split, rows in self.in_memory.items():
            if not (path := pathlib.Path(self.table[split])).exists():
                with atomic_write(path) as f:
                    f.write(tables.dumps(rows))

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr((self.table["digests"], self.names)).encode()).hexdigest()

    @functools.cached_property
    def further(self) -> dict[str, TaskData]:
        """The tasks that are learnt beside this one, by name."""
        return {name: TaskData(chosen) for name, chosen in further.chosen(self.settings).items()}

    @functools.cached_property
    def splits(self) -> dict[str, list[str]]:
        """What is learnt from, watched and scored in the end,
        by the names that these splits have among the records.
        """
        found = {split: [split] if self.table[split] else [] for split in SPLITS}
        if self.table["folder"]:
            published = self.published.splits_in(self.table["folder"])
            found = {split: found[split] or published[split] for split in SPLITS}
            if not found["train"] and not {*self.published.roles.get("train", ("train",))} & {
                *self.published.splits
            }:
                raise ArgumentError(
                    f"{self.published.name} is published without a split to learn from: name one with --train"
                )
            if not found["train"]:
                list(
                    self.published.read(
                        self.table["folder"], self.published.roles.get("train", ("train",))[0]
                    )
                )
        return found

    @functools.cached_property
    def records(self) -> dict[str, list[Record]]:
        share = self.table["held_out"]
        if not 0 <= share < 1:
            raise ArgumentError(f"data.held_out must be in [0, 1), got {share}")
        [learnt], watched, scored = self.splits.values()
        found = {"train": self._read(learnt)} | {split: self._read(split) for split in (*watched, *scored)}
        if self.kind in ("classification", "pair", "regression"):
            labels.check_varied(found["train"], self.path("train"))
        elif self.kind == "tagging":
            labels.check_varied(found["train"], self.path("train"), "tags")
        if share and not watched:
            whole = found.pop("train")
            cut = len(whole) - int(len(whole) * share)
            if cut == len(whole):
                raise ArgumentError(
                    f"data.held_out is {share}: of the {cut} records of '{self.path('train')}' that is none"
                )
            found = {"train": whole[:cut], "dev": whole[cut:], **found}
        elif self.table["folder"] and len(found) == 1:
            raise FileNotFoundError(
                f"'{self.table['folder']}' has nothing to evaluate {self.published.name} on "
                f"({self._evaluated()}): set data.held_out=0.1, or name the file alone that is learnt "
                "from, with --train"
            )
        return found

    def _evaluated(self) -> str:
        """The files that a published task is evaluated on."""
        roles = [self.published.roles.get(role, (role,)) for role in ("dev", "test")]
        splits = [split for role in roles for split in role]
        names = [f.names(s) for f in self.published.files for s in splits if s in f.splits]
        return ", ".join(dict.fromkeys(name for pair in names for name in pair)) or "it has no such file"

    @property
    def watched(self) -> str | None:
        """The split that is evaluated while the model learns."""
        held_out = ["dev"] if self.kind != "lm" and "dev" in self.records else []
        return next(iter([*self.splits["dev"], *held_out]), None)

    def _read(self, split: str) -> list[Record]:
        found = self._in_files(split)
        if not found:
            raise FormatError(f"'{self.path(split)}' has no records")
        if self.kind == "tagging" and self.settings["task"]["scheme"] == "bioes":
            for r in found:
                r["tags"] = None if r["tags"] is None else labels.bioes(r["tags"])
        return found

    def _in_table(self, rows: list[Record], split: str) -> list[Record]:
        numbered, columns = enumerate(rows, 1), self.table["columns"] or None
        return records.of_rows(
            numbered,
            self.kind_in_file,
            columns,
            self.path(split),
            unit="row",
            labelled=self.needs_labels(split),
        )

    def needs_labels(self, split: str) -> bool:
        return split != "test"

    def _in_files(self, split: str) -> list[Record]:
        """A declared task in its published files, whatever their names;
        else a file as that of any task of the kind.
        """
        path = self.table.get(split)
        if split in self.in_memory:
            return self._in_table(self.in_memory[split], split)
        if not path:
            return self._numbered(
                self.published.read(self.table["folder"], split, errors=self.table["errors"]), split
            )
        if self.declared is not None and not self.table["columns"] and not tables.is_kept(path):
            published = self.declared.read_file(path, errors=self.table["errors"])
            if published is not None:
                return self._numbered(published, split)
        columns, labelled = self.table["columns"] or None, self.needs_labels(split)
        return records.read(path, self.kind_in_file, columns, self.table["errors"], labelled)

    def _numbered(self, found: Iterable[Record], split: str) -> list[Record]:
        return [self._named(r) | {"line": f"{split} record {i}"} for i, r in enumerate(found, 1)]

    @property
    def kind_in_file(self) -> str:
        """What a file of a declared task has in a line."""
        return (
            "pair"
            if self.declared is not None and self.declared.pair and self.kind == "classification"
            else self.kind
        )

    def _named(self, record: Record) -> Record:
        """A declared task numbers its labels; here they are texts."""
        label = record.get("label")
        if label is None:
            return {**record, "label": None} if self.kind != "tagging" else record
        return {**record, "label": self.published.labels[label] if self.published.labels else str(label)}

    @functools.cached_property
    def names(self) -> list[str]:
        """The classes: those given, those of the declared task, or those in what is learnt from."""
        if self.kind not in ("classification", "pair", "tagging"):
            return []
        train = self.records["train"]
        given = list(self.table["labels"]) or self.declared_names(train)
        names = given or labels.label_list(train, "tags" if self.kind == "tagging" else "label")
        if len(set(names)) < max(2, len(names)):
            raise ArgumentError(
                f"data.labels must name two classes or more, each once; got {', '.join(names)}"
            )
        return names

    def declared_names(self, found: list[Record]) -> list[str]:
        """The classes of a declared task, or their numbers where records have these."""
        names = list(self.declared.labels) if self.declared is not None else []
        there, numbers = {r.get("label") for r in found}, [str(i) for i in range(len(names))]
        return numbers if not there <= set(names) and there <= set(numbers) else names

    @property
    def as_text(self) -> bool:
        """Whether the model writes the label."""
        wanted = self.settings["task"]["as_text"]
        if wanted and self.kind not in ("classification", "pair", "regression"):
            raise ArgumentError(f"task.as_text is for classes and numbers, not for {self.kind}")
        return wanted

    @property
    def labels_needed(self) -> int:
        """How many numbers the head gives."""
        return 1 if self.kind == "regression" else max(2, len(self.names))

    def examples(self, split: str, tokenizer: Tokenizer, model: Model) -> Examples:
        """The records of a split for a model.

        Where texts are longer than data.length and data.overlong says so, an error.
        """
        length = self.table["length"]
        check_length(length, model.config.longest, tokenizer.format.added(True))
        common = (tokenizer, model, length, self.settings["task"])
        made = self._examples(split, common)
        if made.cut and self.table["overlong"] == "error":
            raise ArgumentError(
                f"'{self.path(split)}': {made.cut} texts have more than data.length = {length} tokens"
            )
        return made

    def targets(self, split: str) -> list[Any]:
        """The numbers of the labels. A file to learn from, or to watch, must have them all."""
        rs, path, needed = self.records[split], self.path(split), self.needed(split)
        if self.kind == "regression":
            return labels.values(rs, path, needed=needed)
        if self.kind == "multiple-choice":
            return labels.choices(rs, path, needed=needed)
        if self.kind == "tagging":
            return labels.tags(rs, self.names, path, needed=needed)
        if self.kind == "seq2seq":
            return labels.texts(rs, path, needed=needed)
        return labels.number(rs, self.names, path, self.aliases, needed=needed)

    def needed(self, split: str) -> bool:
        """Whether every record must have a label: only of what is scored in the end it may be kept back."""
        return split not in self.splits["test"]

    @property
    def aliases(self) -> dict[str, int]:
        """Other names of the classes: those of a declared task are also known by their numbers,
        and the other way round.
        """
        declared = list(self.declared.labels) if self.declared is not None else []
        numbers = [str(i) for i in range(len(declared))]
        if self.names not in (declared, numbers):
            return {}
        return {label: i for names in (declared, numbers) for i, label in enumerate(names)}

    def check(self) -> None:
        """Finds what is wrong with the files before anything is written."""
        self.check_files()
        if self.kind == "lm":
            return
        for other in self.further.values():
            other.check_records()
        self.check_records()

    def check_records(self) -> None:
        if (blank := self.blank("train")) and blank == len(self.records["train"]):
            raise FormatError(
                f"'{self.path('train')}': all {blank} texts are empty, so that there is nothing to learn"
            )
        if self.kind == "qa":
            self.settings["task"]["unanswerable"] |= any(r["impossible"] for r in self.records["train"])
        for split in self.records:
            if self.kind == "qa":
                spans.check_answers(self.records[split], self.path(split), needed=self.needed(split))
            else:
                self.targets(split)

    def blank(self, split: str) -> int:
        """How many records of a split have no text to learn from."""
        fields = WITH_TEXT.get(self.kind, ())
        return sum(
            bool(fields) and not any(str(r.get(f) or "").strip() for f in fields) for r in self.records[split]
        )

    def _examples(self, split: str, common: tuple[Any, ...]) -> Examples:
        rs = self.records[split]
        if self.kind == "qa":
            table, (tokenizer, _, length, _) = self.settings["task"], common
            spans.check_stride(
                table["stride"], length, tokenizer.format.added(True), table["question_length"]
            )
            return spans.Spans(rs, *common)
        targets = self.targets(split)
        if self.as_text:
            return TextLabels(rs, targets, self.names, self.settings["run"]["task"], *common)
        if self.kind == "seq2seq":
            return Seq2Seq(rs, *common)
        if self.kind == "multiple-choice":
            return MultipleChoice(rs, targets, *common)
        kinds = {"regression": Regression, "tagging": Tagging}
        return kinds.get(self.kind, Classification)(rs, targets, self.names, *common)


def existing(path: str) -> pathlib.Path:
    """A path that must be there."""
    if not (found := pathlib.Path(path)).exists():
        raise FileNotFoundError(f"there is no '{found}'")
    return found
