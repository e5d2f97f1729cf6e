"""Small files that we wrote ourselves in the layouts in which tasks are published: names, headers or none,
quotes, order of columns.
"""

import itertools
import json

ANIMALS = ["cat", "dog", "horse", "bird", "mouse", "cow"]
CHOICES_OF_BOOKS = ["cat", "dog", "horse", "bird", "mouse", "cow", "house", "garden", "river", "street"]
STORY = (
    "InputStoryid,"
    + ",".join(f"InputSentence{k}" for k in range(1, 5))
    + ",RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2"
)
SENTENCES = (
    "sentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\tsentence1\tsentence2"
)
MNLI = f"index\tpromptID\tpairID\tgenre\t{SENTENCES}"
AGREED = f"gold_label\t{SENTENCES}"
ENTAILMENT = ["neutral", "entailment", "contradiction"]


def text(i):
    return f"the {ANIMALS[i % 6]} is in the house"


def rows(header, row, n=8):
    return "".join(
        "\t".join(map(str, r)) + "\n"
        for r in ([header.split("\t")] if header else []) + [row(i) for i in range(n)]
    )


def jsonl(record, n=8):
    return "".join(json.dumps(record(i)) + "\n" for i in range(n))


def three(i):
    return ENTAILMENT[i % 3]


def glue_pairs(first, second, labels, label="label"):
    header = f"index\t{first}\t{second}"
    named = rows(f"{header}\t{label}", lambda i: (i, text(i), f'"{text(i + 1)}', labels[i % 2]))
    return {"train.tsv": named, "dev.tsv": named, "test.tsv": rows(header, lambda i: (i, text(i), text(i)))}


def mnli():
    row = lambda i: (i, i, f"{i}n", "fiction", "(", "(", "(", "(", text(i), text(i + 1))  # noqa: E731
    dev = rows(
        MNLI + "".join(f"\tlabel{k}" for k in range(1, 6)) + "\tgold_label",
        lambda i: (*row(i), *[three(i)] * 6),
    )
    files = {"train.tsv": rows(MNLI + "\tlabel1\tgold_label", lambda i: (*row(i), three(i), three(i)), 9)}
    files |= {f"dev_{half}.tsv": dev for half in ("matched", "mismatched")}
    return files | {f"test_{half}.tsv": rows(MNLI, row) for half in ("matched", "mismatched")}


def agreed_text(i):
    """A row of SNLI's and MultiNLI's .txt; the annotators' labels are one or five."""
    label = "-" if i == 0 else three(i)
    return (label, "(", "(", "(", "(", text(i), text(i + 1), "p", "p1", *[three(i)] * (5 if i % 2 else 1))


AGREED_TEXT = rows(
    AGREED + "\tcaptionID\tpairID" + "".join(f"\tlabel{k}" for k in range(1, 6)), agreed_text, 10
)
AGREED_JSON = jsonl(
    lambda i: {
        "annotator_labels": [three(i)],
        "captionID": "c",
        "gold_label": "-" if i == 0 else three(i),
        "pairID": str(i),
        "sentence1": text(i),
        "sentence1_binary_parse": "(",
        "sentence2": text(i + 1),
        "sentence2_parse": "(",
    },
    10,
)


def stories(label=True):
    def row(i):
        ending = f'"The ""{ANIMALS[i % 6]}"", too."'
        return f'id{i},A cat.,"Big, and fat.",It sat.,It ran.,{ending},It ended.' + (
            f",{i % 2 + 1}" if label else ""
        )

    return STORY + (",AnswerRightEnding" if label else "") + "\n" + "".join(row(i) + "\n" for i in range(6))


def swag(label=True):
    header = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"
    row = lambda i: f'{i},lsmdc{i},{i},"A cat, it","A cat, grey.",It,gold,runs.,"sits, down.",ends.,is.'  # noqa: E731
    return (
        header
        + ",label\n" * label
        + "\n" * (not label)
        + "".join(f"{row(i)}{f',{i % 4}' * label}\n" for i in range(6))
    )


def race():
    passage = {
        "article": "A cat sat.\nIt ran.",
        "questions": ["Who sat _ .", "What ran ?"],
        "options": [["cat", "dog", "cow", "bird"], ["dog", "cat", "cow", "bird"]],
        "answers": ["A", "B"],
    }
    splits = itertools.product(("train", "dev", "test"), ("high", "middle"), (1, 2))
    return {
        f"{split}/{level}/{k}.txt": json.dumps(passage | {"id": f"{level}{k}.txt"})
        for split, level, k in splits
    }


def book():
    passage = lambda i: "".join(f"{k} {text(i + k)} .\n" for k in range(1, 21))  # noqa: E731
    question = lambda i: f"21 the XXXXX is big .\t{CHOICES_OF_BOOKS[i]}\t\t{'|'.join(CHOICES_OF_BOOKS)}\n\n"  # noqa: E731
    return "".join(passage(i) + question(i) for i in range(4))


def squad(version):
    def asked(i):
        answers = [{"text": ANIMALS[i], "answer_start": 4}]
        if version == "1.1":
            return {"id": f"q{i}", "question": "who is in the house ?", "answers": answers}
        return {
            "id": f"q{i}",
            "question": "who is it ?",
            "is_impossible": i % 2 == 1,
            "answers": answers[i % 2 :],
            "plausible_answers": answers,
        }

    paragraphs = [{"context": text(i), "qas": [asked(i)]} for i in range(6)]
    return json.dumps({"version": version, "data": [{"title": "House", "paragraphs": paragraphs}]})


def tagged(width):
    """Sentences of 3 or 4 columns; entities are IOB1, chunks IOB2."""
    tags = {3: ["B-NP", "I-NP", "B-VP", "O"], 4: ["O", "I-LOC", "O", "I-ORG"]}[width]
    words = lambda i: ["the", ANIMALS[i % 6], "is", "."]  # noqa: E731
    middle = ["NN", "I-NP"][: width - 2]
    sentence = lambda i: "".join(" ".join([w, *middle, t]) + "\n" for w, t in zip(words(i), tags)) + "\n"  # noqa: E731
    return ("-DOCSTART- -X- -X- O\n\n" if width == 4 else "") + "".join(map(sentence, range(6)))


def treebank():
    words = ["the", "cat", "is", "."]
    line = lambda k, w, t: f"{k}\t{w}\t{w}\t{t}\tX\t_\t{k - 1}\tdep\t_\t_\n"  # noqa: E731
    block = "".join(line(k, w, t) for k, (w, t) in enumerate(zip(words, ["DET", "NOUN", "AUX", "PUNCT"]), 1))
    return f"# sent_id = 1\n# text = the cat is.\n{block}\n" * 5


def ontonotes():
    line = lambda k, w, t, e: (
        f"bc/x/00/x_0000   0   {k}   {w}   {t}   (S*   -   -   -   Speaker   {e}   *   -\n"
    )  # noqa: E731
    words = [
        ("the", "DT", "*"),
        ("cat", "NNP", "(PERSON*"),
        ("dog", "NNP", "*)"),
        ("is", "VBZ", "*"),
        ("house", "NNP", "(GPE)"),
    ]
    sentence = "".join(line(k, *word) for k, word in enumerate(words)) + "\n"
    return f"#begin document (bc/x/00/x_0000); part 000\n{sentence * 4}#end document\n"


def sides(names, n=6):
    return {name: "".join(f"{text(i)}\n" for i in range(n)) for name in names}


def trees():
    mark = lambda i: (0, 1, 2, 3, 4)[i % 5]  # noqa: E731
    return "".join(
        f"({mark(i)} (2 (2 the) (2 {ANIMALS[i % 6]})) ({mark(i)} (2 -LRB-) (3 sat)))\n" for i in range(10)
    )


def acceptability():
    return "".join(f"gj04\t{i % 2}\t{'*' if i % 2 == 0 else ''}\t{text(i)}\n" for i in range(8))


def reviews():
    return {
        f"{split}/{kind}/{i}_{stars}.txt": f"{text(i)}<br />{kind}"
        for split in ("train", "test")
        for kind, stars in (("neg", 2), ("pos", 9))
        for i in range(4)
    } | {"train/unsup/0_0.txt": "?"}


def similarity():
    header = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
    row = lambda i: (i, "main-news", "MSRpar", "2012test", i, "none", "none", text(i), f'"{text(i + 1)}')  # noqa: E731
    named = rows(header + "\tscore", lambda i: (*row(i), f"{i % 6}.000"))
    return {"train.tsv": named, "dev.tsv": named, "test.tsv": rows(header, row)}


def questions():
    kinds = ("NUM:date", "HUM:ind", "LOC:city")
    return "".join(f"{kinds[i % 3]} What is the {ANIMALS[i % 6]} ?\n" for i in range(9))


QQP = rows(
    "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", lambda i: (i, i, i, text(i), text(i + 1), i % 2)
)
MRPC = rows(
    "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", lambda i: (i % 2, i, i, text(i), f'He said "{text(i)}')
)
SCITAIL = rows("", lambda i: (text(i), text(i + 1), ("entails", "neutral")[i % 2]))
AS_SNLI = jsonl(
    lambda i: {
        "annotator_labels": [],
        "gold_label": ("entailment", "neutral")[i % 2],
        "sentence1": text(i),
        "sentence2": text(i),
    }
)
SENTENCES = rows("sentence\tlabel", lambda i: (f"{text(i)} ", i % 2))
HIDDEN = rows("index\tsentence", lambda i: (i, text(i)), 3)
BENCHMARK = rows(
    "",
    lambda i: (
        "main-news",
        "headlines",
        "2013",
        f"{i:04}",
        f"{i % 6}.0",
        f'"{text(i)}',
        text(i),
        *["url"] * (i % 2),
    ),
)
STORIES = "cloze_test_{}__spring2016 - cloze_test_ALL_{}.csv"

# task -> files of a folder, the file that is learnt from, and those that are evaluated by the names of their
# scores
PUBLISHED = {
    "cola": (
        {"train.tsv": acceptability(), "dev.tsv": acceptability(), "test.tsv": HIDDEN},
        "train.tsv",
        {"dev": "dev.tsv", "test": "test.tsv"},
    ),
    "cola in files of its own": (
        {
            "in_domain_train.tsv": acceptability(),
            "in_domain_dev.tsv": acceptability(),
            "out_of_domain_dev.tsv": acceptability(),
        },
        "in_domain_train.tsv",
        {"dev_in_domain": "in_domain_dev.tsv", "dev_out_of_domain": "out_of_domain_dev.tsv"},
    ),
    "sst2": (
        {"train.tsv": SENTENCES, "dev.tsv": SENTENCES, "test.tsv": HIDDEN},
        "train.tsv",
        {"dev": "dev.tsv", "test": "test.tsv"},
    ),
    "sst2 as trees": (
        {f"{s}.txt": trees() for s in ("train", "dev", "test")},
        "train.txt",
        {"dev": "dev.txt", "test": "test.txt"},
    ),
    "sst5": (
        {f"{s}.txt": trees() for s in ("train", "dev", "test")},
        "train.txt",
        {"dev": "dev.txt", "test": "test.txt"},
    ),
    "mrpc": (
        {"msr_paraphrase_train.txt": "\ufeff" + MRPC, "msr_paraphrase_test.txt": "\ufeff" + MRPC},
        "msr_paraphrase_train.txt",
        {"test": "msr_paraphrase_test.txt"},
    ),
    "qqp": ({"train.tsv": QQP + "9\t9\t9\tbroken\n", "dev.tsv": QQP}, "train.tsv", {"dev": "dev.tsv"}),
    "stsb": (similarity(), "train.tsv", {"dev": "dev.tsv", "test": "test.tsv"}),
    "stsb of its benchmark": (
        {f"sts-{s}.csv": BENCHMARK for s in ("train", "dev", "test")},
        "sts-train.csv",
        {"dev": "sts-dev.csv", "test": "sts-test.csv"},
    ),
    "mnli": (
        mnli(),
        "train.tsv",
        {s: f"{s}.tsv" for s in ("dev_matched", "dev_mismatched", "test_matched", "test_mismatched")},
    ),
    "mnli as json": (
        {f"multinli_1.0_{s}.jsonl": AGREED_JSON for s in ("train", "dev_matched", "dev_mismatched")},
        "multinli_1.0_train.jsonl",
        {s: f"multinli_1.0_{s}.jsonl" for s in ("dev_matched", "dev_mismatched")},
    ),
    "qnli": (
        glue_pairs("question", "sentence", ("entailment", "not_entailment")),
        "train.tsv",
        {"dev": "dev.tsv", "test": "test.tsv"},
    ),
    "rte": (
        glue_pairs("sentence1", "sentence2", ("entailment", "not_entailment")),
        "train.tsv",
        {"dev": "dev.tsv", "test": "test.tsv"},
    ),
    "wnli": (
        glue_pairs("sentence1", "sentence2", ("0", "1")),
        "train.tsv",
        {"dev": "dev.tsv", "test": "test.tsv"},
    ),
    "snli": (
        {f"snli_1.0_{s}.jsonl": AGREED_JSON for s in ("train", "dev", "test")},
        "snli_1.0_train.jsonl",
        {s: f"snli_1.0_{s}.jsonl" for s in ("dev", "test")},
    ),
    "snli as text": (
        {f"snli_1.0_{s}.txt": AGREED_TEXT for s in ("train", "dev", "test")},
        "snli_1.0_train.txt",
        {s: f"snli_1.0_{s}.txt" for s in ("dev", "test")},
    ),
    "scitail": (
        {f"tsv_format/scitail_1.0_{s}.tsv": SCITAIL for s in ("train", "dev", "test")},
        "tsv_format/scitail_1.0_train.tsv",
        {s: f"tsv_format/scitail_1.0_{s}.tsv" for s in ("dev", "test")},
    ),
    "scitail as snli": (
        {f"snli_format/scitail_1.0_{s}.txt": AS_SNLI for s in ("train", "dev", "test")},
        "snli_format/scitail_1.0_train.txt",
        {s: f"snli_format/scitail_1.0_{s}.txt" for s in ("dev", "test")},
    ),
    "race": (race(), "train", {"dev": "dev", "test": "test"}),
    "swag": (
        {"train.csv": swag(), "val.csv": swag(), "test.csv": swag(False)},
        "train.csv",
        {"dev": "val.csv", "test": "test.csv"},
    ),
    "story-cloze": (
        {STORIES.format("val", "val"): stories(), STORIES.format("test", "test"): stories()},
        STORIES.format("val", "val"),
        {"test2016": STORIES.format("test", "test")},
    ),
    **{
        f"cbt-{kind.lower()}": (
            {f"cbtest_{kind}_{s}.txt": book() for s in ("train", "valid_2000ex", "test_2500ex")},
            f"cbtest_{kind}_train.txt",
            {"dev": f"cbtest_{kind}_valid_2000ex.txt", "test": f"cbtest_{kind}_test_2500ex.txt"},
        )
        for kind in ("NE", "P")
    },
    "trec": (
        {"train_5500.label": questions(), "TREC_10.label": questions()},
        "train_5500.label",
        {"test": "TREC_10.label"},
    ),
    "trec-fine": (
        {"train_5500.label": questions(), "TREC_10.label": questions()},
        "train_5500.label",
        {"test": "TREC_10.label"},
    ),
    "conll2000": ({f"{s}.txt": tagged(3) for s in ("train", "test")}, "train.txt", {"test": "test.txt"}),
    "conll2003": (
        {f"eng.{s}": tagged(4) for s in ("train", "testa", "testb")},
        "eng.train",
        {"dev": "eng.testa", "test": "eng.testb"},
    ),
    "ontonotes": (
        {
            f"{s}/data/english/annotations/bc/x_0000.v4_gold_conll": ontonotes()
            for s in ("train", "development", "test")
        },
        "train",
        {"dev": "development", "test": "test"},
    ),
    "ud-english-ewt": (
        {f"en_ewt-ud-{s}.conllu": treebank() for s in ("train", "dev", "test")},
        "en_ewt-ud-train.conllu",
        {s: f"en_ewt-ud-{s}.conllu" for s in ("dev", "test")},
    ),
    "squad": (
        {f"{s}-v1.1.json": squad("1.1") for s in ("train", "dev")},
        "train-v1.1.json",
        {"dev": "dev-v1.1.json"},
    ),
    "squad2": (
        {f"{s}-v2.0.json": squad("v2.0") for s in ("train", "dev")},
        "train-v2.0.json",
        {"dev": "dev-v2.0.json"},
    ),
    "imdb": (reviews(), "train", {"test": "test"}),
    "multi30k-en-de": (
        sides([f"{s}.{l}" for s in ("train", "val", "test_2016_flickr") for l in ("en", "de")]),
        "train.en",
        {"dev": "val.en", "test": "test_2016_flickr.en"},
    ),
    "wmt14-en-de": (
        sides([f"{s}.{l}" for s in ("train", "newstest2013", "newstest2014") for l in ("en", "de")]),
        "train.de",
        {"dev": "newstest2013.en", "test": "newstest2014.de"},
    ),
    "wmt15-en-cs": (
        sides([f"{s}.{l}" for s in ("train", "newstest2014", "newstest2015") for l in ("en", "cs")]),
        "train.en",
        {"dev": "newstest2014.en", "test": "newstest2015.en"},
    ),
    "iwslt15-en-vi": (
        sides([f"{s}.{l}" for s in ("train", "tst2012", "tst2013") for l in ("en", "vi")]),
        "train.en",
        {"dev": "tst2012.en", "test": "tst2013.en"},
    ),
}


def write(folder, name):
    """The files of a task in a folder: the task, what is learnt from, and what is evaluated."""
    files, learnt, evaluated = PUBLISHED[name]
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content.encode())
    return name.split()[0], folder / learnt, {split: folder / file for split, file in evaluated.items()}
