"""The tasks that models are compared on, as they are published: which files, and which columns of them.

for record in data.task("mrpc").read("glue/MRPC", "train"): ...
"""

from __future__ import annotations

import dataclasses
import difflib
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plmcore._core import ArgumentError
from plmcore.data import layouts
from plmcore.data.layouts import Layout
from plmcore.data.readers import Record
from plmcore.files.text import Path, check_errors

SPLITS = ("train", "dev", "test")  # what a run learns from, watches, and scores in the end
Paths = list[pathlib.Path]


@dataclasses.dataclass(frozen=True)
class Files:
    """Where the splits of a task are, and how they are read.

    `sides` fill the names of parallel files: {0} language, {1} src or ref.
    """

    read: Layout
    splits: Mapping[str, str]
    sides: Sequence[tuple[str, str]] = ()

    def names(self, split: str) -> list[str]:
        name = self.splits[split]
        return [name.format(*side) for side in self.sides] or [name]

    def found(self, folder: Path, split: str) -> Paths | None:
        """The files of a split, as they are or as .gz."""
        for suffix in ("", ".gz"):
            paths = [pathlib.Path(folder) / (name + suffix) for name in self.names(split)]
            if all(path.exists() for path in paths):
                return paths
        return None

    def beside(self, path: pathlib.Path) -> Paths | None:
        """A file of any name, with the one that is parallel to it."""
        if not self.sides:
            return [path]
        suffix = ".gz" if path.suffix == ".gz" else ""
        name = path.name.removesuffix(suffix)
        (one, _), (other, _) = self.sides
        pairs = [self.names(split) for split in self.splits]
        for language in (one, other):
            if name.endswith(f".{language}"):
                stem = name.removesuffix(f".{language}")
                pairs.append([f"{stem}.{one}", f"{stem}.{other}"])
        both = [[path.with_name(n + suffix) for n in pair] for pair in pairs if name in pair]
        return next((paths for paths in both if all(p.exists() for p in paths)), None)


@dataclasses.dataclass(frozen=True)
class Task:
    """A task has one kind of records and may be published in several layouts.

    `roles`: which splits are learnt from, watched and scored, where their names do not say it.
    """

    name: str
    kind: str  # classification, regression, choice, tagging, span, answer, translation
    files: Sequence[Files]
    labels: Sequence[str] = ()  # names of the classes, in the order of their numbers
    pair: bool = False  # whether classes are of two texts
    roles: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)

    def read(self, folder: Path, split: str, *, errors: str = "strict") -> Iterator[Record]:
        """The records of a split, from the files of a layout that are in the folder;
        they may also be there as .gz.
        """
        check_errors(errors)
        if split not in self.splits:
            raise ArgumentError(f"{self.name} has the splits {', '.join(self.splits)}, not {split!r}")
        known = [files for files in self.files if split in files.splits]
        there = [(files.read, paths) for files in known if (paths := files.found(folder, split))]
        if there:  # what is wrong is wrong with the first, where none can be read
            layout, paths = next(((r, ps) for r, ps in there if len(there) > 1 and r.fits(*ps)), there[0])
            return layout(*paths, errors=errors)
        tried = dict.fromkeys(" and ".join(files.names(split)) for files in known)
        raise FileNotFoundError(
            f"'{folder}' has no {' or '.join(tried)} for the split {split!r} of {self.name}"
        )

    def read_file(self, path: Path, *, errors: str = "strict") -> Iterator[Record] | None:
        """The records of a file of any name, or of a folder that is published as one split, in the first
        layout that it has; None where it has none of them. Of parallel texts either file may be named.
        """
        check_errors(errors)
        for files in self.files:
            paths = files.beside(pathlib.Path(path))
            if paths is not None and files.read.fits(*paths):
                return files.read(*paths, errors=errors)
        return None

    def files_of(self, path: pathlib.Path) -> Paths:
        """What `read_file` reads: the path, and what is parallel to it."""
        both = (files.beside(path) for files in self.files if files.sides and path.is_file())
        return next((paths for paths in both if paths is not None), [path])

    @property
    def splits(self) -> list[str]:
        """The names of the splits that the published files have."""
        return list(dict.fromkeys(split for files in self.files for split in files.splits))

    def splits_in(self, folder: Path) -> dict[str, list[str]]:
        """Of each role the splits that a folder has; one is learnt from, and not watched."""
        there = [s for s in self.splits if any(s in f.splits and f.found(folder, s) for f in self.files)]
        found = {role: [s for s in self.roles.get(role, (role,)) if s in there] for role in SPLITS}
        found["train"] = found["train"][:1]
        found["dev"] = [s for s in found["dev"] if s not in found["train"]]
        return found


def task(name: str) -> Task:
    """The published task of this name; data.TASKS lists them."""
    if name not in TASKS:
        near = difflib.get_close_matches(name, TASKS, 1)
        raise ArgumentError(
            f"there is no task {name!r}{f'; did you mean {near[0]!r}?' if near else ''} Known: "
            f"{', '.join(TASKS)}"
        )
    return TASKS[name]


TSV = {split: f"{split}.tsv" for split in SPLITS}
ENTAILMENT = ("entailment", "neutral", "contradiction")
TWO_WAY = ("entailment", "not_entailment")
BINARY = ("0", "1")
PAIR = {"text": "sentence1", "pair": "sentence2"}
AGREED_JSON = layouts.jsonl(PAIR, label="gold_label", classes=ENTAILMENT, skip="-")


def _glue() -> Iterator[Task]:
    """GLUE's nine; their test files come without labels. Some had been published in other files."""
    table = layouts.table

    def one(name: str, read: Layout, labels: Sequence[str], *others: Files, pair: bool = True) -> Task:
        kind = "classification" if labels else "regression"
        return Task(name, kind, [Files(read, TSV), *others], labels, pair)

    cola = table({"text": "text"}, classes=BINARY, header=["source", "label", "star", "text"])
    with_header = table({"text": "sentence"}, classes=BINARY)
    original = {
        "train": "in_domain_train.tsv",
        "dev_in_domain": "in_domain_dev.tsv",
        "dev_out_of_domain": "out_of_domain_dev.tsv",
    }
    yield Task(
        "cola",
        "classification",
        [
            Files(cola, {"train": "train.tsv", "dev": "dev.tsv"}),
            Files(with_header, {"test": "test.tsv"}),
            Files(cola, original),
        ],
        ("unacceptable", "acceptable"),
        roles={"dev": ("dev", "dev_in_domain", "dev_out_of_domain")},
    )
    positive = layouts.sentiment_trees({"0": 0, "1": 0, "3": 1, "4": 1})
    yield one("sst2", with_header, ("negative", "positive"), *_trees(positive), pair=False)
    mrpc = table({"text": "#1 String", "pair": "#2 String"}, label="Quality", classes=BINARY)
    original = {"train": "msr_paraphrase_train.txt", "test": "msr_paraphrase_test.txt"}
    yield one("mrpc", mrpc, ("not_equivalent", "equivalent"), Files(mrpc, original))
    qqp = table(
        {"text": "question1", "pair": "question2"}, label="is_duplicate", classes=BINARY, ragged="skip"
    )
    yield one("qqp", qqp, ("not_duplicate", "duplicate"))  # some rows of its training file are broken off
    columns = ["genre", "file", "year", "id", "score", "sentence1", "sentence2"]
    benchmark = table(PAIR, label="score", header=columns, delimiter="\t", quoted=False, ragged="fit")
    yield one("stsb", table(PAIR, label="score"), (), Files(benchmark, {s: f"sts-{s}.csv" for s in SPLITS}))
    yield _multi_nli()
    yield one("qnli", table({"text": "question", "pair": "sentence"}, classes=TWO_WAY), TWO_WAY)
    yield one("rte", table(PAIR, classes=TWO_WAY), TWO_WAY)
    yield one("wnli", table(PAIR, classes=BINARY), ("not_entailment", "entailment"))
    marks = {str(mark): mark for mark in range(5)}
    classes = ("very negative", "negative", "neutral", "positive", "very positive")
    yield Task("sst5", "classification", _trees(layouts.sentiment_trees(marks)), classes)


def _trees(read: Layout) -> list[Files]:
    return [Files(read, {split: f"{folder}{split}.txt" for split in SPLITS}) for folder in ("", "trees/")]


def _agreed(**options: Any) -> Layout:
    """Two sentences with the label that most annotators gave; -: they did not agree."""
    return layouts.table(PAIR, label="gold_label", classes=ENTAILMENT, skip="-", **options)


def _multi_nli() -> Task:
    roles = {role: (f"{role}_matched", f"{role}_mismatched") for role in ("dev", "test")}
    splits = ["train", *roles["dev"], *roles["test"]]
    files = [
        Files(_agreed(), {s: f"{s}.tsv" for s in splits}),
        Files(AGREED_JSON, {s: f"multinli_1.0_{s}.jsonl" for s in splits[:3]}),
        Files(_agreed(ragged="fit"), {s: f"multinli_1.0_{s}.txt" for s in splits[:3]}),
    ]
    return Task("mnli", "classification", files, ENTAILMENT, True, roles)


def _inference() -> Iterator[Task]:
    plain = layouts.table(
        {"text": "premise", "pair": "hypothesis"},
        classes=ENTAILMENT,
        header=["label", "premise", "hypothesis"],
    )
    files = [
        Files(AGREED_JSON, {s: f"snli_1.0_{s}.jsonl" for s in SPLITS}),
        Files(_agreed(ragged="fit"), {s: f"snli_1.0_{s}.txt" for s in SPLITS}),
        Files(_agreed(), TSV),
        Files(plain, TSV),
    ]
    yield Task("snli", "classification", files, ENTAILMENT, True)
    classes = ("entails", "neutral")
    columns = ["premise", "hypothesis", "label"]
    scitail = layouts.table({"text": "premise", "pair": "hypothesis"}, classes=classes, header=columns)
    as_snli = layouts.jsonl(PAIR, label="gold_label", classes=("entailment", "neutral"))
    files = [
        Files(scitail, {s: f"{folder}scitail_1.0_{s}.tsv" for s in SPLITS}) for folder in ("", "tsv_format/")
    ]
    files += [
        Files(as_snli, {s: f"{folder}scitail_1.0_{s}.txt" for s in SPLITS}) for folder in ("", "snli_format/")
    ]
    yield Task("scitail", "classification", files, classes, True)


def _choices() -> Iterator[Task]:
    yield Task("race", "choice", [Files(layouts.race, {s: s for s in SPLITS})])
    swag = layouts.choices(["sent1"], [f"ending{k}" for k in range(4)], question="sent2", label="label")
    yield Task("swag", "choice", [Files(swag, {"train": "train.csv", "dev": "val.csv", "test": "test.csv"})])
    story = layouts.choices(
        [f"InputSentence{k}" for k in range(1, 5)],
        ["RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2"],
        label="AnswerRightEnding",
        first=1,
    )
    by_year = {
        "dev2016": "cloze_test_val__spring2016 - cloze_test_ALL_val.csv",
        "test2016": "cloze_test_test__spring2016 - cloze_test_ALL_test.csv",
        "dev2018": "cloze_test_val__winter2018-cloze_test_ALL_val - 1 - 1.csv",
        "test2018": "cloze_test_test__winter2018-cloze_test_ALL_test - 1.csv",
    }
    roles = {  # stories with two endings are in the validation sets, which by custom are learnt from
        "train": ("train", "dev2016", "dev2018", "dev"),
        "dev": ("dev", "dev2018"),
        "test": ("test", "test2016", "test2018"),
    }
    # as some copies of 2018's are called
    shorter = {split: name.replace(" - 1", "") for split, name in by_year.items()}
    files = [Files(story, names) for names in ({s: f"{s}.csv" for s in SPLITS}, by_year, shorter)]
    yield Task("story-cloze", "choice", files, roles=roles)
    for kind in ("NE", "CN", "V", "P"):
        names = {"train": "train", "dev": "valid_2000ex", "test": "test_2500ex"}
        files = [
            Files(layouts.cloze_book, {s: f"{folder}cbtest_{kind}_{name}.txt" for s, name in names.items()})
            for folder in ("", "data/")
        ]
        yield Task(f"cbt-{kind.lower()}", "choice", files)


QUESTIONS = {  # TREC's six kinds of answers, and what is asked for
    "ABBR": "abb exp",
    "DESC": "def desc manner reason",
    "ENTY": "animal body color cremat currency dismed event food instru lang letter other plant product "
    "religion sport substance symbol techmeth termeq veh word",
    "HUM": "desc gr ind title",
    "LOC": "city country mount other state",
    "NUM": "code count date dist money ord other perc period speed temp volsize weight",
}


def _questions() -> Iterator[Task]:
    fine = tuple(f"{coarse}:{name}" for coarse, names in QUESTIONS.items() for name in names.split())
    published, renamed = (
        {"train": "train_5500.label", "test": "TREC_10.label"},
        {"train": "train.txt", "test": "test.txt"},
    )
    for name, classes in (("trec", tuple(QUESTIONS)), ("trec-fine", fine)):
        files = [Files(layouts.questions(classes), splits) for splits in (published, renamed)]
        yield Task(name, "classification", files, classes)


def _tagging() -> Iterator[Task]:
    chunks = layouts.conll(["tokens", "pos", "tags"])
    yield Task("conll2000", "tagging", [Files(chunks, {"train": "train.txt", "test": "test.txt"})])
    entities = layouts.conll(["tokens", "pos", "chunks", "tags"])
    published = {"train": "eng.train", "dev": "eng.testa", "test": "eng.testb"}
    renamed = {"train": "train.txt", "dev": "valid.txt", "test": "test.txt"}
    yield Task("conll2003", "tagging", [Files(entities, published), Files(entities, renamed)])
    folders = {"train": "train", "dev": "development", "test": "test"}
    places = ("{}", "v4/data/{}", "data/{}")  # of the distributions by CoNLL-2012 and by others
    files = [Files(layouts.ontonotes, {s: p.format(folder) for s, folder in folders.items()}) for p in places]
    yield Task("ontonotes", "tagging", files)
    treebank = {split: f"en_ewt-ud-{split}.conllu" for split in SPLITS}
    yield Task("ud-english-ewt", "tagging", [Files(layouts.parts_of_speech, treebank)])


def _reading() -> Iterator[Task]:
    for version in ("1.1", "2.0"):
        files = {"train": f"train-v{version}.json", "dev": f"dev-v{version}.json"}
        yield Task("squad" if version == "1.1" else "squad2", "span", [Files(layouts.squad, files)])
    yield Task("xquad-en", "span", [Files(layouts.squad, {"test": "xquad.en.json"})])
    text = {"dev": "lambada_development_plain_text.txt", "test": "lambada_test_plain_text.txt"}
    yield Task(
        "lambada",
        "answer",
        [Files(layouts.last_word, text), Files(layouts.last_word, {"test": "lambada_test.jsonl"})],
    )
    classes = ("neg", "pos")
    yield Task(
        "imdb",
        "classification",
        [Files(layouts.folders(classes), {s: s for s in ("train", "test")})],
        classes,
    )


def _translation() -> Iterator[Task]:
    plain = {"train": "train.{0}"}
    text = {
        "wmt14-en-de": ("en", "de", {"dev": "newstest2013.{0}", "test": "newstest2014.{0}"}),
        "wmt15-en-cs": ("en", "cs", {"dev": "newstest2014.{0}", "test": "newstest2015.{0}"}),
        "iwslt15-en-vi": ("en", "vi", {"dev": "tst2012.{0}", "test": "tst2013.{0}"}),
        "multi30k-en-de": ("en", "de", {"dev": "val.{0}", "test": "test_2016_flickr.{0}"}),
    }
    tagged = {
        "wmt14-en-de": {"dev": "newstest2013-{1}.{0}.sgm", "test": "newstest2014-deen-{1}.{0}.sgm"},
        "wmt15-en-cs": {"dev": "newstest2014-csen-{1}.{0}.sgm", "test": "newstest2015-encs-{1}.{0}.sgm"},
        "iwslt15-en-vi": {
            "train": "train.tags.en-vi.{0}",
            "dev": "IWSLT15.TED.tst2012.en-vi.{0}.xml",
            "test": "IWSLT15.TED.tst2013.en-vi.{0}.xml",
        },
    }
    for name, (source, target, splits) in text.items():
        sides = [(source, "src"), (target, "ref")]
        files = [Files(layouts.parallel, found, sides) for found in (plain | splits, tagged.get(name, {}))]
        yield Task(name, "translation", files)
    for language, file in (("fr", "fra.txt"), ("es", "spa.txt")):
        yield Task(
            f"tatoeba-en-{language}",
            "translation",
            [Files(layouts.columns_of_pairs, {"all": file})],
            roles={"train": ("all",)},
        )


TASKS = {
    t.name: t
    for group in (_glue, _inference, _questions, _choices, _tagging, _reading, _translation)
    for t in group()
}
