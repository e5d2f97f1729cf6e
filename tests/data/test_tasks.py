"""Every task on a few records in the layout in which it is published."""

import gzip
import itertools
import json

import plmcore as plm
import pytest
from plmcore.data import TASKS, task

MNLI = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
    "sentence1_parse\tsentence2_parse\tsentence1\tsentence2"
)
CBT = "".join(f"{k} Sentence {k} .\n" for k in range(1, 21))
PASSAGE = {
    "answers": ["D", "A"],
    "options": [list("wxyz"), list("abcd")],
    "questions": ["Q1 _ ?", "Q2 ?"],
    "article": "Long.",
}
STORY = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,"
    "RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2"
)

# task -> split -> (files, first record)
SAMPLES = {
    "cola": {
        "train": (
            {"train.tsv": "gj04\t1\t\tOur friends won't.\n"},
            {"text": "Our friends won't.", "label": 1},
        ),
        "test": (
            {"test.tsv": "index\tsentence\n0\tBill whistled.\n"},
            {"text": "Bill whistled.", "label": None},
        ),
    },
    "sst2": {
        "dev": ({"dev.tsv": "sentence\tlabel\nit 's \"good \t1\n"}, {"text": "it 's \"good ", "label": 1}),
        "test": ({"test.tsv": "index\tsentence\n0\tuneasy .\n"}, {"text": "uneasy .", "label": None}),
    },
    "trec": {
        "train": (
            {"train_5500.label": "DESC:manner How did it go ?\n\nNUM:date When ?\n"},
            {"text": "How did it go ?", "label": 1},
        ),
        "test": ({"test.txt": "NUM:date When ?\n"}, {"text": "When ?", "label": 5}),
    },
    "trec-fine": {"train": ({"train.txt": "ABBR:exp What 's TV ?\n"}, {"text": "What 's TV ?", "label": 1})},
    "mrpc": {
        "train": (
            {
                "msr_paraphrase_train.txt": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 "
                'String\r\n1\t7\t8\tHe said "a\tHe\r\n'
            },
            {"text": 'He said "a', "pair": "He", "label": 1},
        ),
        "test": (
            {"test.tsv": "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tA\tB\n"},
            {"text": "A", "pair": "B", "label": None},
        ),
    },
    "qqp": {
        "train": (
            {
                "train.tsv": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
                "1\t2\t3\tbroken\n4\t5\t6\tHow?\tWhy?\t0\n"
            },
            {"text": "How?", "pair": "Why?", "label": 0},
        ),
    },
    "stsb": {
        "train": (
            {
                "train.tsv": "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\t"
                "sentence1\tsentence2\tscore\n"
                "0\tmain\tMSR\t2012\t1\tnone\tnone\tA plane.\tAn air plane.\t4.750\n"
            },
            {"text": "A plane.", "pair": "An air plane.", "label": 4.75},
        ),
    },
    "mnli": {
        "train": (
            {
                "train.tsv": f"{MNLI}\tlabel1\tgold_label\n"
                "0\t1\t1n\tgov\t(\t(\t(\t(\tCream.\tProduct.\tneutral\tneutral\n"
            },
            {"text": "Cream.", "pair": "Product.", "label": 1},
        ),
        "dev_mismatched": (
            {
                "dev_mismatched.tsv": f"{MNLI}\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
                "0\t1\t1n\tgov\t(\t(\t(\t(\tA.\tB.\tneutral\tn\tn\tn\tn\tcontradiction\n"
            },
            {"text": "A.", "pair": "B.", "label": 2},
        ),
        "test_matched": (
            {"test_matched.tsv": f"{MNLI}\n0\t1\t1n\tgov\t(\t(\t(\t(\tA.\tB.\n"},
            {"text": "A.", "pair": "B.", "label": None},
        ),
    },
    "qnli": {
        "dev": (
            {"dev.tsv": "index\tquestion\tsentence\tlabel\n0\tWhat?\tThis.\tnot_entailment\n"},
            {"text": "What?", "pair": "This.", "label": 1},
        ),
    },
    "rte": {
        "dev": (
            {"dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tentailment\n"},
            {"text": "A.", "pair": "B.", "label": 0},
        ),
    },
    "wnli": {
        "dev": (
            {"dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\t1\n"},
            {"text": "A.", "pair": "B.", "label": 1},
        ),
    },
    "snli": {
        "train": (
            {
                "snli_1.0_train.jsonl": "".join(
                    json.dumps({"gold_label": l, "sentence1": "A.", "sentence2": l, "pairID": "3"}) + "\n"
                    for l in ("-", "contradiction")
                )
            },
            {"text": "A.", "pair": "contradiction", "label": 2},
        ),
        "dev": ({"dev.tsv": "neutral\tA.\tB.\n"}, {"text": "A.", "pair": "B.", "label": 1}),
    },
    "scitail": {
        "test": (
            {"tsv_format/scitail_1.0_test.tsv": "A.\tB.\tentails\n"},
            {"text": "A.", "pair": "B.", "label": 0},
        ),
    },
    "race": {
        "dev": (
            {"dev/high/1.txt": json.dumps(PASSAGE), "dev/middle/2.txt": json.dumps(PASSAGE)},
            {"context": "Long.", "question": "Q1 _ ?", "choices": list("wxyz"), "label": 3, "level": "high"},
        ),
    },
    "swag": {
        "dev": (
            {
                "val.csv": ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,"
                "ending0,ending1,ending2,ending3,label\n"
                '0,lsmdc1,5,"A, b","Students lower, slowly.",He,gold,a.,"b, c.",c.,d.,2\n'
            },
            {
                "context": "Students lower, slowly.",
                "question": "He",
                "choices": ["a.", "b, c.", "c.", "d."],
                "label": 2,
            },
        ),
    },
    "story-cloze": {
        "dev2016": (
            {
                "cloze_test_val__spring2016 - cloze_test_ALL_val.csv": f"{STORY},AnswerRightEnding\n"
                '1,A.,B.,C.,D.,"E ""x"".",F.,2\n'
            },
            {"context": "A. B. C. D.", "question": "", "choices": ['E "x".', "F."], "label": 1},
        ),
        "test": (
            {"test.csv": f"{STORY}\n1,A.,B.,C.,D.,E.,F.\n"},
            {"context": "A. B. C. D.", "question": "", "choices": ["E.", "F."], "label": None},
        ),
    },
    "cbt-ne": {
        "dev": (
            {
                "cbtest_NE_valid_2000ex.txt": f"{CBT}21 `` XXXXX !\tBaby\t\tOne|Baby|Two\n\n"
                f"{CBT}21 XXXXX\tA\t\tA|B\n\n"
            },
            {
                "context": " ".join(f"Sentence {k} ." for k in range(1, 21)),
                "question": "`` XXXXX !",
                "choices": ["One", "Baby", "Two"],
                "label": 1,
            },
        ),
    },
    "conll2000": {
        "test": (
            {"test.txt": "Rockwell NNP B-NP\nsaid VBD B-VP\n\nIt PRP B-NP\n"},
            {"tokens": ["Rockwell", "said"], "pos": ["NNP", "VBD"], "tags": ["B-NP", "B-VP"]},
        ),
    },
    "conll2003": {
        "train": (
            {"eng.train": "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n"},
            {
                "tokens": ["EU", "rejects"],
                "pos": ["NNP", "VBZ"],
                "chunks": ["I-NP", "I-VP"],
                "tags": ["I-ORG", "O"],
            },
        ),
        "dev": (
            {"valid.txt": "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\n"},
            {"tokens": ["EU"], "pos": ["NNP"], "chunks": ["B-NP"], "tags": ["B-ORG"]},
        ),
    },
    "squad2": {
        "dev": (
            {
                "dev-v2.0.json": json.dumps(
                    {
                        "version": "v2.0",
                        "data": [
                            {
                                "title": "T",
                                "paragraphs": [
                                    {
                                        "context": "In 1999.",
                                        "qas": [
                                            {
                                                "id": "x",
                                                "question": "When?",
                                                "is_impossible": False,
                                                "answers": [{"text": "1999", "answer_start": 3}],
                                            }
                                        ],
                                    }
                                ],
                            }
                        ],
                    }
                )
            },
            {
                "id": "x",
                "title": "T",
                "context": "In 1999.",
                "question": "When?",
                "answers": [{"text": "1999", "start": 3}],
                "impossible": False,
            },
        ),
    },
    "lambada": {
        "dev": (
            {"lambada_development_plain_text.txt": "he saw a dog\n"},
            {"context": "he saw a", "answers": ["dog"]},
        ),
        "test": (
            {"lambada_test.jsonl": '{"text": "\\"he\\" saw it\\n"}\n'},
            {"context": '"he" saw', "answers": ["it"]},
        ),
    },
    "imdb": {
        "train": (
            {"train/neg/0_3.txt": "Bad.<br />", "train/pos/0_9.txt": "Good.", "train/unsup/0_0.txt": "?"},
            {"text": "Bad.<br />", "label": 0, "id": "0_3"},
        ),
    },
    "wmt14-en-de": {
        "train": ({"train.en": "A\n\nB", "train.de": "a\n\nb\n"}, {"source": "A", "target": "a"}),
        "test": (
            {
                "newstest2014-deen-src.en.sgm": '<srcset>\n<seg id="1">Tom &amp; I</seg>\n</srcset>',
                "newstest2014-deen-ref.de.sgm": '<refset><seg id="1"> Tom und ich </seg></refset>',
            },
            {"source": "Tom & I", "target": "Tom und ich"},
        ),
    },
    "iwslt15-en-vi": {
        "train": (
            {
                "train.tags.en-vi.en": "<url>x</url>\nHello .\n",
                "train.tags.en-vi.vi": "<url>x</url>\nXin chào .\n",
            },
            {"source": "Hello .", "target": "Xin chào ."},
        ),
        "dev": (
            {"tst2012.en": "Hello .\n", "tst2012.vi": "Xin chào .\n"},
            {"source": "Hello .", "target": "Xin chào ."},
        ),
    },
    "tatoeba-en-fr": {"all": ({"fra.txt": "Go.\tVa !\tCC-BY 2.0\n"}, {"source": "Go.", "target": "Va !"})},
}


def write(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode())


@pytest.mark.parametrize(
    "name, split", [(name, split) for name, splits in SAMPLES.items() for split in splits]
)
def test_published_layout(tmp_path, name, split):
    files, first = SAMPLES[name][split]
    write(tmp_path, files)
    found = list(task(name).read(tmp_path, split))
    assert found[0] == first
    kind, label = task(name).kind, first.get("label")
    assert {"classification": int, "choice": int, "regression": float}.get(kind, type(label)) is type(
        label
    ) or label is None
    if kind == "classification" and label is not None:
        assert 0 <= label < len(task(name).labels)


def test_other_records(tmp_path):
    write(tmp_path, SAMPLES["race"]["dev"][0] | SAMPLES["cbt-ne"]["dev"][0] | SAMPLES["imdb"]["train"][0])
    write(tmp_path, SAMPLES["wmt14-en-de"]["train"][0])
    assert [(r["label"], r["level"]) for r in task("race").read(tmp_path, "dev")] == [
        (3, "high"),
        (0, "high"),
        (3, "middle"),
        (0, "middle"),
    ]
    assert [r["choices"] for r in task("cbt-ne").read(tmp_path, "dev")] == [
        ["One", "Baby", "Two"],
        ["A", "B"],
    ]
    assert [r["label"] for r in task("imdb").read(tmp_path, "train")] == [0, 1]
    assert [tuple(r.values()) for r in task("wmt14-en-de").read(tmp_path, "train")] == [
        ("A", "a"),
        ("", ""),
        ("B", "b"),
    ]


def test_compressed(tmp_path):
    for name, content in SAMPLES["wmt14-en-de"]["train"][0].items():
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    (tmp_path / "dev.tsv.gz").write_bytes(gzip.compress(SAMPLES["rte"]["dev"][0]["dev.tsv"].encode()))
    assert next(task("wmt14-en-de").read(tmp_path, "train")) == {"source": "A", "target": "a"}
    assert next(task("rte").read(tmp_path, "dev"))["label"] == 0


DAMAGED = {
    "sst2": (
        "dev.tsv",
        "sentence\tlabel\nfine\t1\nbad\t2\n",
        "dev.tsv', line 3: the label must be one of 0, 1, got '2'",
    ),
    "rte": (
        "dev.tsv",
        "index\tsentence1\tlabel\n0\tA.\tentailment\n",
        "line 2 has no 'sentence2', only index, sentence1, label",
    ),
    "stsb": (
        "dev.tsv",
        "sentence1\tsentence2\tscore\nA\tB\thigh\n",
        "line 2: the label must be a number, got 'high'",
    ),
    "qnli": (
        "dev.tsv",
        "index\tquestion\tsentence\tlabel\n0\tWhat?\n",
        "line 2: 4 fields expected .*, got 2",
    ),
    "snli": (
        "snli_1.0_dev.jsonl",
        '{"gold_label": "maybe", "sentence1": "a", "sentence2": "b"}\n',
        "line 1: the label must be one of entailment",
    ),
    "race": (
        "dev/high/1.txt",
        json.dumps(PASSAGE | {"answers": ["A"]}),
        "1.txt' is no passage of RACE: ValueError",
    ),
    "swag": ("val.csv", "sent1,label\nA,0\n", "line 2: there is no column 'ending0', only sent1, label"),
    "cbt-ne": (
        "cbtest_NE_valid_2000ex.txt",
        CBT + "21 XXXXX\tC\t\tA|B\n",
        "line 21: question, answer and choices",
    ),
    "cbt-cn": ("cbtest_CN_valid_2000ex.txt", "1 A\n3 B\n", "line 2: line 2 of a passage expected, got '3 B'"),
    "cbt-v": ("cbtest_V_valid_2000ex.txt", "1 A\n2 B\n", "ends inside a passage, behind its line 2"),
    "lambada": (
        "lambada_development_plain_text.txt",
        "a b\nalone\n",
        "line 2: a passage of at least two words expected, got 'alone'",
    ),
    "conll2003": ("eng.testa", "EU NNP I-ORG\n", "line 1: 4 columns expected, got 3: 'EU NNP I-ORG'"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged(tmp_path, name):
    file, content, message = DAMAGED[name]
    write(tmp_path, {file: content})
    with pytest.raises(plm.FormatError, match=message):
        list(task(name).read(tmp_path, "dev"))


def test_questions(tmp_path):
    """One byte of TREC's training file is no UTF-8, but Latin-1."""
    (tmp_path / "train_5500.label").write_bytes(
        b"LOC:city Which sister\xf0city ?\n" + "HUM:ind Qui est né ?\n".encode()
    )
    assert [r["text"] for r in task("trec").read(tmp_path, "train")] == [
        "Which sister\xf0city ?",
        "Qui est né ?",
    ]
    assert len(task("trec").labels) == 6 and len(set(task("trec-fine").labels)) == 50
    for line, message in (
        ("DESC how ?", "line 1: COARSE:fine and a question expected, got 'DESC how ?"),
        ("DESC:manner", "line 1: COARSE:fine and a question expected"),
        ("WHAT:ever is it ?", "line 1: the label must be one of ABBR, DESC, .*, got 'WHAT'"),
    ):
        (tmp_path / "train_5500.label").write_text(line + "\n")
        with pytest.raises(plm.FormatError, match=message):
            list(task("trec").read(tmp_path, "train"))


def test_parallel_files_of_different_lengths(tmp_path):
    write(tmp_path, {"train.en": "A\nB\n", "train.de": "a\n"})
    with pytest.raises(
        plm.FormatError, match="train.en' and '.*train.de' do not have as many sentences each"
    ):
        list(task("wmt14-en-de").read(tmp_path, "train"))


def test_names():
    with pytest.raises(ValueError, match="there is no task 'sst-2'; did you mean 'sst2'?"):
        task("sst-2")
    with pytest.raises(ValueError, match="mnli has the splits train, dev_matched, .*, not 'dev'"):
        task("mnli").read(".", "dev")
    assert list(TASKS)[:9] == ["cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte", "wnli"]
    assert all(name == t.name for name, t in TASKS.items())


def test_absent_files(tmp_path):
    with pytest.raises(
        FileNotFoundError,
        match="has no snli_1.0_dev.jsonl or snli_1.0_dev.txt or dev.tsv for the split 'dev' of snli",
    ):
        task("snli").read(tmp_path, "dev")
    (tmp_path / "train" / "pos").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="has no folder neg"):
        next(task("imdb").read(tmp_path, "train"))


def test_replacing_bytes(tmp_path):
    (tmp_path / "dev.tsv").write_bytes(b"sentence\tlabel\ncaf\xe9\t1\n")
    with pytest.raises(plm.FormatError, match="dev.tsv', line 2, byte 18: 0xe9 is not UTF-8"):
        list(task("sst2").read(tmp_path, "dev"))
    assert list(task("sst2").read(tmp_path, "dev", errors="replace")) == [{"text": "caf\ufffd", "label": 1}]


def test_records_come_one_by_one(tmp_path):
    write(tmp_path, {"dev.tsv": "sentence\tlabel\n" + "a\t1\n" * 5 + "broken\n"})
    assert len(list(itertools.islice(task("sst2").read(tmp_path, "dev"), 5))) == 5


def test_a_file_of_any_name(tmp_path):
    """Its layout is known by its content; a label of another name is not passed over."""
    write(
        tmp_path,
        {
            "a": SAMPLES["cola"]["train"][0]["train.tsv"],
            "b": "index\tsentence\n0\tHidden.\n",
            "c": "sentence\tclass\nNamed.\tx\n",
        },
    )
    assert list(task("cola").read_file(tmp_path / "a")) == [{"text": "Our friends won't.", "label": 1}]
    assert list(task("cola").read_file(tmp_path / "b")) == [{"text": "Hidden.", "label": None}]
    assert task("cola").read_file(tmp_path / "c") is None and task("race").read_file(tmp_path / "a") is None
    write(tmp_path, SAMPLES["race"]["dev"][0])
    for path, count in (("dev", 4), ("dev/high", 2), ("dev/high/1.txt", 2)):
        assert sum(1 for _ in task("race").read_file(tmp_path / path)) == count
    write(tmp_path, {"snli.tsv": "neutral\tA.\tB.\n", "own.tsv": "A.\tB.\tneutral\n"})
    assert list(task("snli").read_file(tmp_path / "snli.tsv")) == [{"text": "A.", "pair": "B.", "label": 1}]
    assert task("snli").read_file(tmp_path / "own.tsv") is None


def test_either_of_two_parallel_files(tmp_path):
    write(tmp_path, {"mine.en": "A\n", "mine.de": "a\n", **SAMPLES["wmt14-en-de"]["test"][0]})
    for name in ("mine.en", "mine.de"):
        assert list(task("wmt14-en-de").read_file(tmp_path / name)) == [{"source": "A", "target": "a"}]
    for name in SAMPLES["wmt14-en-de"]["test"][0]:
        assert next(task("wmt14-en-de").read_file(tmp_path / name)) == {
            "source": "Tom & I",
            "target": "Tom und ich",
        }
    (tmp_path / "mine.de").unlink()
    assert task("wmt14-en-de").read_file(tmp_path / "mine.en") is None


def test_what_is_learnt_from_and_evaluated(tmp_path):
    names = [files.splits for files in task("story-cloze").files][1]
    for file in names.values():
        (tmp_path / file).touch()
    found = task("story-cloze").splits_in(tmp_path)
    assert found == {"train": ["dev2016"], "dev": ["dev2018"], "test": ["test2016", "test2018"]}
    (tmp_path / names["dev2016"]).unlink()
    assert task("story-cloze").splits_in(tmp_path)["train"] == ["dev2018"]
    assert task("story-cloze").splits_in(tmp_path)["dev"] == []
    for file in ("train.tsv", "dev_matched.tsv.gz", "test_mismatched.tsv"):
        (tmp_path / file).touch()
    assert task("mnli").splits_in(tmp_path) == {
        "train": ["train"],
        "dev": ["dev_matched"],
        "test": ["test_mismatched"],
    }


def test_entities_of_ontonotes(tmp_path):
    line = "bc/x 0 {} {} {} * - - - A {} * -\n"
    words = [("New", "NNP", "(GPE*"), ("York", "NNP", "*)"), ("met", "VBD", "*"), ("Ada", "NNP", "(PERSON)")]
    text = (
        "#begin document (x); part 000\n"
        + "".join(line.format(k, *w) for k, w in enumerate(words))
        + "\n#end document\n"
    )
    write(
        tmp_path,
        {
            "train/data/english/annotations/x.v4_gold_conll": text,
            "train/data/chinese/annotations/y.v4_gold_conll": "broken\n",
        },
    )
    assert list(task("ontonotes").read(tmp_path, "train")) == [
        {
            "tokens": ["New", "York", "met", "Ada"],
            "pos": ["NNP", "NNP", "VBD", "NNP"],
            "tags": ["B-GPE", "I-GPE", "O", "B-PERSON"],
        }
    ]
    write(tmp_path, {"broken": "a b c\n"})
    assert task("ontonotes").read_file(tmp_path / "broken") is None


def test_sentiment_trees(tmp_path):
    write(tmp_path, {"dev.txt": "(3 (2 It) (4 (2 -LRB-) (3 works)))\n(2 (2 So) (2 so))\n"})
    assert list(task("sst5").read(tmp_path, "dev")) == [
        {"text": "It ( works", "label": 3},
        {"text": "So so", "label": 2},
    ]
    assert list(task("sst2").read(tmp_path, "dev")) == [{"text": "It ( works", "label": 1}]
    write(tmp_path, {"dev.txt": "(3 (2 It) (4 works))\nno tree\n"})
    with pytest.raises(
        plm.FormatError, match="line 2: a tree with marks from 0 to 4 expected, got 'no tree'"
    ):
        list(task("sst5").read(tmp_path, "dev"))
