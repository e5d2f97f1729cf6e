"""The tasks that models are compared on, as they are published: which files, and which columns of them.

for record in data.task("mrpc").read("glue/MRPC", "train"): ...
"""

from __future__ import annotations

import dataclasses
import difflib
import pathlib
from collections.abc import Iterator, Mapping, Sequence

from plmcore.data import layouts
from plmcore.data.layouts import Read
from plmcore.data.readers import Record
from plmcore.text_files import Path, check_errors


@dataclasses.dataclass(frozen=True)
class Files:
    """Where the splits of a task are, and how they are read. `sides` fill the names of parallel files: {0} language, {1} src or ref."""

    read: Read
    splits: Mapping[str, str]
    sides: Sequence[tuple[str, str]] = ()


@dataclasses.dataclass(frozen=True)
class Task:
    """A task has one kind of records and may be published in several layouts."""

    name: str
    kind: str  # classification, regression, choice, tagging, span, answer, translation
    files: Sequence[Files]
    labels: Sequence[str] = ()  # names of the classes, in the order of their numbers

    def read(self, folder: Path, split: str, *, errors: str = "strict") -> Iterator[Record]:
        """The records of a split, from the first layout whose files are in the folder. Files may also be there as .gz."""
        check_errors(errors)
        tried = []
        for files in self.files:
            if split in files.splits:
                name = files.splits[split]
                names = [name.format(*side) for side in files.sides] or [name]
                for suffix in ("", ".gz"):
                    paths = [pathlib.Path(folder) / (name + suffix) for name in names]
                    if all(path.exists() for path in paths):
                        return files.read(*paths, errors=errors)
                tried.append(" and ".join(names))
        if not tried:
            raise ValueError(f"{self.name} has the splits {', '.join(self.splits)}, not {split!r}")
        raise FileNotFoundError(f"'{folder}' has no {' or '.join(tried)} for the split {split!r} of {self.name}")

    @property
    def splits(self) -> list[str]:
        return list(dict.fromkeys(split for files in self.files for split in files.splits))


def task(name: str) -> Task:
    if name not in TASKS:
        near = difflib.get_close_matches(name, TASKS, 1)
        raise ValueError(
            f"there is no task {name!r}{f'; did you mean {near[0]!r}?' if near else ''} Known: {', '.join(TASKS)}"
        )
    return TASKS[name]


TSV = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
ENTAILMENT = ("entailment", "neutral", "contradiction")
TWO_WAY = ("entailment", "not_entailment")
BINARY = ("0", "1")
PAIR = {"text": "sentence1", "pair": "sentence2"}


def _glue() -> Iterator[Task]:
    """GLUE's nine; their test files come without labels."""
    table = layouts.table

    def one(name: str, read: Read, labels: Sequence[str], splits: Mapping[str, str] = TSV) -> Task:
        return Task(name, "classification" if labels else "regression", [Files(read, splits)], labels)

    cola = table({"text": "text"}, classes=BINARY, header=["source", "label", "star", "text"])
    yield Task(
        "cola",
        "classification",
        [
            Files(cola, {"train": "train.tsv", "dev": "dev.tsv"}),
            Files(table({"text": "sentence"}), {"test": "test.tsv"}),
        ],
        ("unacceptable", "acceptable"),
    )
    yield one("sst2", table({"text": "sentence"}, classes=BINARY), ("negative", "positive"))
    mrpc = table({"text": "#1 String", "pair": "#2 String"}, label="Quality", classes=BINARY)
    yield Task(
        "mrpc",
        "classification",
        [Files(mrpc, TSV), Files(mrpc, {"train": "msr_paraphrase_train.txt", "test": "msr_paraphrase_test.txt"})],
        ("not_equivalent", "equivalent"),
    )
    qqp = table({"text": "question1", "pair": "question2"}, label="is_duplicate", classes=BINARY, ragged="skip")
    yield one("qqp", qqp, ("not_duplicate", "duplicate"))  # some rows of its training file are broken off
    yield one("stsb", table(PAIR, label="score"), ())
    mnli = {"train": "train.tsv"}
    for half in ("matched", "mismatched"):
        mnli |= {f"dev_{half}": f"dev_{half}.tsv", f"test_{half}": f"test_{half}.tsv"}
    yield one("mnli", table(PAIR, label="gold_label", classes=ENTAILMENT), ENTAILMENT, mnli)
    yield one("qnli", table({"text": "question", "pair": "sentence"}, classes=TWO_WAY), TWO_WAY)
    yield one("rte", table(PAIR, classes=TWO_WAY), TWO_WAY)
    yield one("wnli", table(PAIR, classes=BINARY), ("not_entailment", "entailment"))


def _inference() -> Iterator[Task]:
    splits = ("train", "dev", "test")
    snli = layouts.jsonl(PAIR, label="gold_label", classes=ENTAILMENT, skip="-")  # -: the annotators did not agree
    plain = layouts.table(
        {"text": "premise", "pair": "hypothesis"}, classes=ENTAILMENT, header=["label", "premise", "hypothesis"]
    )
    official = {s: f"snli_1.0_{s}.jsonl" for s in splits}
    yield Task("snli", "classification", [Files(snli, official), Files(plain, TSV)], ENTAILMENT)
    classes = ("entails", "neutral")
    columns = ["premise", "hypothesis", "label"]
    scitail = layouts.table({"text": "premise", "pair": "hypothesis"}, classes=classes, header=columns)
    files = [Files(scitail, {s: f"{folder}scitail_1.0_{s}.tsv" for s in splits}) for folder in ("", "tsv_format/")]
    yield Task("scitail", "classification", files, classes)


def _choices() -> Iterator[Task]:
    yield Task("race", "choice", [Files(layouts.race, {s: s for s in ("train", "dev", "test")})])
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
    yield Task("story-cloze", "choice", [Files(story, {"dev": "dev.csv", "test": "test.csv"}), Files(story, by_year)])
    for kind in ("NE", "CN", "V", "P"):
        names = {"train": "train", "dev": "valid_2000ex", "test": "test_2500ex"}
        files = {split: f"cbtest_{kind}_{name}.txt" for split, name in names.items()}
        yield Task(f"cbt-{kind.lower()}", "choice", [Files(layouts.cloze_book, files)])


QUESTIONS = {  # TREC's six kinds of answers, and what is asked for
    "ABBR": "abb exp",
    "DESC": "def desc manner reason",
    "ENTY": "animal body color cremat currency dismed event food instru lang letter other plant product religion sport substance symbol techmeth termeq veh word",
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
    treebank = {split: f"en_ewt-ud-{split}.conllu" for split in ("train", "dev", "test")}
    yield Task("ud-english-ewt", "tagging", [Files(layouts.parts_of_speech, treebank)])


def _reading() -> Iterator[Task]:
    for version in ("1.1", "2.0"):
        files = {"train": f"train-v{version}.json", "dev": f"dev-v{version}.json"}
        yield Task("squad" if version == "1.1" else "squad2", "span", [Files(layouts.squad, files)])
    yield Task("xquad-en", "span", [Files(layouts.squad, {"test": "xquad.en.json"})])
    text = {"dev": "lambada_development_plain_text.txt", "test": "lambada_test_plain_text.txt"}
    yield Task(
        "lambada", "answer", [Files(layouts.last_word, text), Files(layouts.last_word, {"test": "lambada_test.jsonl"})]
    )
    classes = ("neg", "pos")
    yield Task("imdb", "classification", [Files(layouts.folders(classes), {s: s for s in ("train", "test")})], classes)


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
        yield Task(f"tatoeba-en-{language}", "translation", [Files(layouts.columns_of_pairs, {"all": file})])


TASKS = {
    t.name: t for group in (_glue, _inference, _questions, _choices, _tagging, _reading, _translation) for t in group()
}
