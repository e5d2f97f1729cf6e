import json
import os
import subprocess

import installed
import plmcore as plm
import pytest
from plmcore import cli
from small_models import GPT2, SEQ2SEQ, TEXT, sharp


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tokenizer = plm.tokenizers.train_tokenizer(texts=[TEXT], kind="byte-bpe", vocab_size=290, out=folder)
    sharp(GPT2, "causal-lm", tokenizer).save(folder)
    return folder


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text(TEXT)
    return file


def lines(path, *records):
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return path


def test_the_module_is_a_function(folder, file):
    lm = plm.load(folder)
    want = lm.perplexity(TEXT, stride=4)
    got = plm.evaluate(folder, file, stride=4)
    assert got["per_token"] == pytest.approx(want) and got["words"] == len(TEXT.split())
    assert plm.evaluate(lm, [str(file), file])["tokens"] == 2 * want.tokens
    assert plm.evaluate.perplexity(lm, TEXT, stride=4) == want


def test_choices_and_last_words(folder, tmp_path):
    lm = plm.load(folder)
    records = [{"context": "the cat", "choices": [" sat", " zzz"], "label": i} for i in (0, 1)]
    got = plm.evaluate(lm, lines(tmp_path / "c.jsonl", *records), "choices", normalise="tokens")
    assert got == {"accuracy": 0.5, "records": 2}
    texts = [{"text": "the cat sat on the mat"}, {"text": "the dog ran"}]
    got = plm.evaluate(lm, lines(tmp_path / "l.jsonl", *texts), "last-word")
    assert got["texts"] == 2 and got["perplexity"] > 1
    (tmp_path / "l.txt").write_text("the cat sat on the mat\n\nthe dog ran\n")
    assert plm.evaluate(lm, tmp_path / "l.txt", "lambada") == got


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a b"}\n{"text": \n', "line 2: not valid JSON"),
        ("[1]\n", "line 1: one JSON object to a line, got a list"),
        ('\n{"words": 3}\n', "line 2: has no 'text', only words"),
        ("[" * 100_000, "line 1: not valid JSON"),
    ],
)
def test_bad_files(folder, tmp_path, content, message):
    file = tmp_path / "bad.jsonl"
    file.write_text(content)
    with pytest.raises(plm.FormatError, match=message):
        plm.evaluate(folder, file, "last-word")


def test_sources(tmp_path):
    tokenizer = plm.tokenizers.train_tokenizer(texts=[TEXT], kind="wordpiece", vocab_size=60)
    lm = sharp(SEQ2SEQ["t5"], "seq2seq-lm", tokenizer)
    target, source = tmp_path / "target.txt", tmp_path / "source.txt"
    target.write_text("the cat\nthe dog ran\n")
    source.write_text("a mat\nfar away")
    got = plm.evaluate(lm, target, source=source)
    assert (
        got["nll"] == lm.perplexity(["the cat", "the dog ran"], ["a mat", "far away"]).nll
        and got["words"] == 5
    )
    source.write_text("a mat\n")
    with pytest.raises(plm.FormatError, match="target.txt' has 2 lines and '.*source.txt' 1"):
        plm.evaluate(lm, target, source=source)
    with pytest.raises(ValueError, match="goes with one file of targets, got 2"):
        plm.evaluate(lm, [target, target], source=source)


def test_bad_arguments(folder, file, tmp_path):
    with pytest.raises(
        ValueError, match="there is no task 'ppl'; one of perplexity, last-word, lambada, choices"
    ):
        plm.evaluate(folder, file, "ppl")
    with pytest.raises(FileNotFoundError, match="there is no file '.*nothing.txt'"):
        plm.evaluate(folder, tmp_path / "nothing.txt")
    with pytest.raises(ValueError, match="there are no files"):
        plm.evaluate(folder, [])
    with pytest.raises(FileNotFoundError, match="has no config.json|model.safetensors"):
        plm.evaluate(tmp_path, file)


def test_command(folder, file, capsys):
    assert cli.main(["evaluate", str(folder), str(file), "--stride", "4"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.splitlines()[0].split() == [
        "per_token",
        f"{plm.load(folder).perplexity(TEXT, stride=4):,.4f}",
    ]
    assert cli.main(["evaluate", str(folder), str(file), "--json", "--start", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["characters"] == len(TEXT)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--stride", "99"], 1, "stride must be from 1 to the window's 16, got 99"),
        (["--normalise", "sum"], 2, "--normalise means nothing to perplexity"),
        (["--task", "choices"], 1, "not valid JSON"),
        (["--task", "fly"], 1, "there is no task 'fly'; one of perplexity, "),
        (["--task", "pair", "--stride", "3"], 2, "--stride means nothing to pair"),
        (["--set", "data.batch=3"], 2, "--set means nothing to perplexity"),
        (
            ["--task", "classification"],
            1,
            "has the head causal-lm, and classification needs sequence-classification: plmcore finetune",
        ),
    ],
)
def test_bad_command(folder, file, arguments, status, message):
    command = [*installed.COMMAND, "evaluate", str(folder), str(file), *arguments]
    r = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ)
    assert r.returncode == status and message in r.stderr and "Traceback" not in r.stderr


def test_few_shot(folder, tmp_path, capsys):
    """From files and from the command: as the call does it."""
    records = [{"question": "the cat", "answer": "sat"}, {"question": "the dog", "answer": "ran"}]
    test, shots = lines(tmp_path / "test.jsonl", *records), lines(tmp_path / "shots.jsonl", *records)
    got = plm.evaluate(folder, test, "few-shot", shots=shots, k=1, template="{question}:", max_new_tokens=3)
    assert got["records"] == 2 and got["shots"] <= 1 and {"exact_match", "f1"} <= got.keys()
    command = ["evaluate", str(folder), str(test), "--task", "few-shot", "--max-new-tokens", "3", "--json"]
    assert cli.main([*command, "--shots", str(shots), "--k", "1", "--template", r"{question}:"]) == 0
    assert json.loads(capsys.readouterr().out) == got
    assert cli.main([*command, "--shots", str(shots)]) == 1
    assert "k says how many of the shots" in capsys.readouterr().err
    assert cli.main([*command, "--stride", "3"]) == 2
    assert "--stride means nothing to few-shot" in capsys.readouterr().err
