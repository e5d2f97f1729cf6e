import json
import pathlib
import shutil

import numpy as np
import plmcore as plm
import pytest
from killing import Stop, stop_at
from plmcore import cli, train
from plmcore.cli import demo
from plmcore.objectives.mixture import Mixture
from plmcore.train import run_data, run_settings, settings, supervised

FAST = [
    "data.vocab=400",
    "data.length=32",
    "model.num_layers=1",
    "model.d_model=32",
    "model.num_heads=2",
    "model.d_ff=64",
    "model.d_kv=16",
    "train.evaluate_batches=2",
    "train.evaluate_every=3",
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "manual.txt"
    path.write_text(demo.manual()[:60_000])
    return path


@pytest.fixture
def tables(tmp_path):
    """Two tables as they may come."""
    one, other = tmp_path / "sst2.tsv", tmp_path / "topics.tsv"
    one.write_text("sentence\tlabel\n" + "".join(f"a statement of {i}\t{i % 2}\n" for i in range(100)))
    other.write_text("".join(f"{('loops', 'names')[i % 2]}\tthe text {i}\n" for i in range(60)))
    topic = dict(task="topic", file=str(other), columns=["label", "text"], source="topic: {text}", rate=0.25)
    return [{"task": "sst2", "file": str(one)}, topic]


# ---- tables ----


def test_the_command_line():
    assert supervised.parse("sst2=a/b=c.tsv") == {"task": "sst2", "file": "a/b=c.tsv"}
    table = supervised.parse(
        '{task = "x", file = "x.tsv", columns = ["label", "text"], source = "x: {text}", rate = 0.5}'
    )
    assert table == {
        "task": "x",
        "file": "x.tsv",
        "columns": ["label", "text"],
        "source": "x: {text}",
        "rate": 0.5,
    }
    for bad, message in (
        ("sst2", "is TASK=FILE or"),
        ("=x", "is TASK=FILE or"),
        ("{task = x}", "cannot be read: Invalid value"),
    ):
        with pytest.raises(settings.SettingError, match=message):
            supervised.parse(bad)


def test_rows_become_pairs_of_texts(tables):
    assert supervised.pairs(tables[0])[:2] == [
        {"source": "sst2 sentence: a statement of 0", "target": "negative"},
        {"source": "sst2 sentence: a statement of 1", "target": "positive"},
    ]
    assert supervised.pairs(tables[1])[1] == {"source": "topic: the text 1", "target": "names"}
    own = tables[0] | {"source": "is it good? {text}", "target": "it is {label}"}
    assert supervised.pairs(own)[0] == {"source": "is it good? a statement of 0", "target": "it is negative"}


def test_folders_of_published_tasks(tmp_path):
    (tmp_path / "train.txt").write_text("NUM:count How many ?\nHUM:ind Who ?\n")
    table = {"task": "trec", "file": str(tmp_path), "source": "trec question: {text}"}
    assert supervised.pairs(table) == [
        {"source": "trec question: How many ?", "target": "NUM"},
        {"source": "trec question: Who ?", "target": "HUM"},
    ]
    (tmp_path / "stsb").mkdir()
    (tmp_path / "stsb" / "train.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t3.27\n")
    answer = {"text": "a cat", "answer_start": 0}
    asked = {"id": "q", "question": "who", "answers": [answer]}
    (tmp_path / "squad.json").write_text(
        json.dumps({"data": [{"paragraphs": [{"context": "a cat", "qas": [asked]}]}]})
    )
    [pair] = supervised.pairs({"task": "squad", "file": str(tmp_path / "squad.json")})
    assert pair == {"source": "question: who context: a cat", "target": "a cat"}
    [pair] = supervised.pairs({"task": "stsb", "file": str(tmp_path / "stsb")})
    assert pair == {"source": "stsb sentence1: a sentence2: b", "target": "3.2"}


@pytest.mark.parametrize(
    "change, message",
    [
        (
            dict(fil="x"),
            r"there is no setting mixture\.tables: sst2\.fil; did you mean mixture\.tables: sst2\.file\?",
        ),
        (dict(rate="much"), r"sst2\.rate must be a number, got 'much'"),
        (dict(file=""), r"sst2 must have file = "),
        (dict(task="text"), "its own and not 'text'"),
        (dict(task="../x"), "a name of letters, digits"),
        (
            dict(task="poems"),
            r"poems is none of T5's tasks \(cola, .*\): say how its rows read, "
            r"as in source = \"poems: \{text\}\"",
        ),
        (dict(source="{text"), r"sst2\.source: expected '}' before end of string: '\{text'"),
        (dict(source="{}"), r"braces hold the name of a field, got \{\} in"),
        (dict(target="{label[0]}"), r"braces hold the name of a field, got \{label\[0\]\}"),
    ],
)
def test_bad_settings(tables, change, message):
    with pytest.raises(settings.SettingError, match=message):
        supervised.check_tables([tables[0] | change])
    supervised.check_tables(tables)


def test_a_task_has_one_table(tables):
    with pytest.raises(settings.SettingError, match="its own"):
        supervised.check_tables([tables[0], tables[0]])
    with pytest.raises(settings.SettingError, match="must have tables, got 'sst2'"):
        supervised.check_tables(["sst2"])


def test_rates_are_checked_before_anything_is_read(tables):
    mixture = dict(tables=tables, text_rate=None, limit=10, temperature=1.0)
    supervised.check(mixture)
    assert (
        supervised.rates_of(mixture) == {"topic": 0.25}
        and supervised.rates_of(mixture | {"text_rate": 0.5})["text"] == 0.5
    )
    for change, message in (
        (dict(text_rate=0.75), "make 1 together and leave nothing for sst2"),
        (dict(text_rate="much"), "text_rate must be a number, got 'much'"),
        (dict(temperature=0.0), "temperature must be above 0"),
        (dict(tables=[tables[0] | {"rate": -0.1}]), "above 0 and at most 1, got -0.1 for sst2"),
    ):
        with pytest.raises(ValueError, match=message):
            supervised.check(mixture | change)


@pytest.mark.parametrize(
    "rows, message",
    [
        ("sentence\tlabel\nfine\t1\nbad\n", "line 3: 2 fields expected (sentence, label), got 1"),
        ("sentence\tlabel\nfine\t1\nbad\tawful\n", "line 3: the label must be one of 0, 1, got 'awful'"),
        (
            "sentence\tlabel\nfine\t2\n",
            "line 2: the label must be one of negative, positive or its number, got '2'",
        ),
        ("words\tlabel\nfine\t1\n", "line 2: the record has no field 'text'; it has words, label"),
        ("fine\t1\nbad\t7\n", "line 2: the label must be one of negative, positive or its number, got '7'"),
        ("sentence\tmark\nfine\t1\n", "record 1: the record has no field 'label'; it has text"),
        ("sentence\tlabel\n", "has no records"),
        ("", "has no records"),
    ],
)
def test_bad_rows_are_named_by_file_and_line(tables, rows, message):
    file = pathlib.Path(tables[0]["file"])
    file.write_text(rows)
    with pytest.raises(plm.FormatError) as error:
        supervised.pairs(tables[0])
    assert str(file) in str(error.value) and message in str(error.value)


def test_empty_texts_and_bad_numbers(tables, tmp_path):
    file = pathlib.Path(tables[1]["file"])
    file.write_text("loops\ta\n \tb\n")
    with pytest.raises(plm.FormatError, match=r"topics\.tsv', line 2: the target is empty"):
        supervised.pairs(tables[1])
    (tmp_path / "s.tsv").write_text("sentence1\tsentence2\tscore\na\tb\tmuch\n")
    with pytest.raises(plm.FormatError, match=r"s\.tsv', line 2: could not convert string to float: 'much'"):
        supervised.pairs({"task": "stsb", "file": str(tmp_path / "s.tsv")})


def test_what_is_written_is_read(tables, tmp_path):
    supervised.write(tmp_path / "mixture", tables)
    for table in tables:
        assert supervised.read(tmp_path / "mixture", table["task"]) == supervised.pairs(table)
    (tmp_path / "lines.jsonl").write_text('{"text": "one\\ntwo\\u2028three", "label": 1}\n')
    supervised.write(tmp_path / "lines", [{"task": "sst2", "file": str(tmp_path / "lines.jsonl")}])
    assert supervised.read(tmp_path / "lines", "sst2") == [
        {"source": "sst2 sentence: one two three", "target": "positive"}
    ]
    pathlib.Path(tables[1]["file"]).write_text("")
    with pytest.raises(plm.FormatError, match="has no records"):
        supervised.write(tmp_path / "other", tables)
    assert not (tmp_path / "other").exists()


# ---- runs ----


def run(text, out, tables, *, family="t5", steps=6, changes=(), **options):
    return plm.pretrain(
        family,
        text=[text],
        supervised=tables,
        out=out,
        steps=steps,
        save_every=2,
        quiet=True,
        changes=[*FAST, *changes],
        **options,
    )


def bits(folder):
    return (folder / "final" / "model.safetensors").read_bytes()


def test_a_run_on_a_mixture(text, tables, tmp_path):
    """It is recorded, evaluated by task, repeated and resumed bit for bit; without its files, too."""
    lm = run(text, tmp_path / "a", tables)
    assert lm.head == "seq2seq-lm"
    lines = train.run_directory.read_metrics(tmp_path / "a" / "metrics.jsonl")
    evaluated = next(m for m in lines if "eval_loss" in m)
    assert set(evaluated) == {"step", "eval_loss", "eval_perplexity", "eval_sst2_loss", "eval_topic_loss"}
    assert "a mixture of text 0." in (tmp_path / "a" / "log.txt").read_text()
    plm.pretrain(config=tmp_path / "a" / "config.toml", out=tmp_path / "b", quiet=True)
    assert bits(tmp_path / "a") == bits(tmp_path / "b")
    run(text, tmp_path / "plain", [])
    assert bits(tmp_path / "a") != bits(tmp_path / "plain")
    for step in (1, 5):
        out = tmp_path / f"stopped-{step}"
        with pytest.raises(Stop):
            run(text, out, tables, callbacks=[stop_at(step)])
        if step == 5:
            pathlib.Path(tables[1]["file"]).unlink()
        plm.pretrain(out=out, resume=True, quiet=True)
        assert bits(tmp_path / "a") == bits(out)


def test_changed_tables_do_not_resume(text, tables, tmp_path):
    with pytest.raises(Stop):
        run(text, tmp_path / "run", tables, callbacks=[stop_at(3)])
    with pytest.raises(settings.SettingError, match=r"has mixture\.tables = .* not "):
        plm.pretrain(out=tmp_path / "run", supervised=tables[:1], resume=True, quiet=True)
    with pytest.raises(settings.SettingError, match=r"has mixture\.temperature = 1\.0, not 2\.0"):
        plm.pretrain(out=tmp_path / "run", changes=["mixture.temperature=2"], resume=True, quiet=True)
    file = pathlib.Path(tables[0]["file"])
    before = file.read_text()
    file.write_text(before.replace("statement", "question"))
    with pytest.raises(plm.ArgumentError, match=r"the text has changed since this run began \(.*sst2\.tsv"):
        plm.pretrain(out=tmp_path / "run", resume=True, quiet=True)
    file.write_text(before)
    copy = tmp_path / "run" / "mixture" / "sst2.source.txt"
    copy.write_text(copy.read_text().replace("statement", "question", 1))
    with pytest.raises(plm.ArgumentError, match="the corpus has changed"):
        plm.pretrain(out=tmp_path / "run", resume=True, quiet=True)


def test_batches_have_the_wanted_shares(text, tables, tmp_path):
    """150 steps of 12 rows, within three standard deviations, for rates and for sizes with a limit."""
    prefixes = {"sst2": "sst2 sentence", "topic": "topic:"}
    made = run(text, tmp_path / "run", tables, steps=1)
    for change, wanted in (
        (dict(), None),
        (dict(text_rate=0.5), {"sst2": 0.25, "topic": 0.25}),
        (dict(limit=95, temperature=1e9), {"sst2": 0.375, "topic": 0.25}),
    ):
        chosen = run_settings.new(
            {}, tmp_path / "run" / "config.toml", [f"mixture.{k}={v}" for k, v in change.items()]
        )
        with train.RunDirectory(tmp_path / "run", quiet=True) as directory:
            data = run_data.RunData(directory, chosen)
            mixture = data.mixed()
            assert isinstance(mixture, Mixture)
            windows, n = mixture.sizes[0], mixture.sizes[1]
            wanted = wanted or {"sst2": 0.75 * n / (n + windows), "topic": 0.25}
            batches = data.batches(seed=1)
            rows = np.zeros(0, object)
            for step in range(150):
                rows = np.append(rows, [made.tokenizer.decode(ids) for ids in batches[step]["input_ids"]])
        for task, share in wanted.items():
            hits = sum(row.startswith(prefixes[task]) for row in rows)
            assert abs(hits - len(rows) * share) <= 3 * np.sqrt(len(rows) * share * (1 - share)), (
                change,
                task,
                hits,
            )


def test_bad_tables_leave_nothing_behind(text, tables, tmp_path):
    file = pathlib.Path(tables[0]["file"])
    file.write_text("sentence\tlabel\nfine\t1\nbad\n")
    with pytest.raises(plm.FormatError, match=r"sst2\.tsv', line 3: 2 fields expected"):
        run(text, tmp_path / "run", tables)
    file.write_text("sentence\tlabel\n" + "fine\t1\n" * 30)
    run(text, tmp_path / "run", tables, steps=1)  # the directory is still as good as empty
    shutil.rmtree(tmp_path / "run")
    for family, changed, message in (
        ("gpt2", tables, "can be mixed with the text of bart and t5, not of gpt2"),
        ("t5", [tables[0] | {"rate": 1.0}], "the rates make 1.25 together and leave nothing for text"),
        ("t5", ["sst2=nowhere.tsv"], "nowhere.tsv"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            plm.pretrain(
                family,
                text=[text],
                supervised=[*changed[:1], tables[1]],
                out=tmp_path / "x" / family / message[:9],
                steps=1,
                quiet=True,
                changes=["data.vocab=400"],
            )


def test_the_command(text, tables, tmp_path, capsys):
    chosen = [x for change in FAST for x in ("--set", change)]
    sst2 = f"sst2={tables[0]['file']}"
    args = [
        "pretrain",
        "bart",
        "--text",
        str(text),
        "--supervised",
        sst2,
        "--steps",
        "2",
        "--out",
        str(tmp_path / "run"),
    ]
    sizes = [
        "--set",
        "model.d_model=32",
        "--set",
        "model.encoder_layers=1",
        "--set",
        "model.decoder_layers=1",
        "--set",
        "data.vocab=400",
    ]
    assert cli.main([*args, *sizes]) == 0
    assert "a mixture of text 0." in capsys.readouterr().out
    assert (
        cli.main(
            [
                "pretrain",
                "t5",
                "--text",
                str(text),
                "--supervised",
                "sst2",
                "--out",
                str(tmp_path / "x"),
                *chosen,
            ]
        )
        == 1
    )
    assert capsys.readouterr().err.startswith("plmcore pretrain: --supervised is TASK=FILE")
