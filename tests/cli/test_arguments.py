"""--help: every command has a description in sentences, help for each argument, and examples that parse.
--errors: every command that reads text.
"""

import argparse
import json
import re
import shlex

import plmcore as plm
import pytest
from plmcore import cli
from plmcore.cli import arguments


def parsers(parser: argparse.ArgumentParser, name: str = "plmcore"):
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from parsers(inner, f"{name} {word}")


ALL = dict(parsers(cli.parser()))


def examples(parser: argparse.ArgumentParser) -> list[list[str]]:
    """The arguments of each example; what stands two spaces behind them explains it."""
    found = re.findall(
        r"^  (?:\w[^|\n]*\| )?plmcore (.+?)(?: > \S+)?(?:   *\S.*)?$", parser.epilog or "", re.MULTILINE
    )
    return [shlex.split(command) for command in found]


@pytest.mark.parametrize("name", ALL)
def test_help(name):
    parser = ALL[name]
    assert re.fullmatch(r"[A-Z`p].*\.", parser.description, re.DOTALL), parser.description
    assert "python -m" not in parser.format_help()
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            assert action.help, f"{name} {action.option_strings or action.dest} has no help"
    assert examples(parser), f"{name} --help has no example"


@pytest.mark.parametrize("name", ALL)
def test_examples_parse(name):
    for words in examples(ALL[name]):
        try:
            parsed = cli.parser().parse_args(words)
        except SystemExit:
            pytest.fail(f"plmcore {shlex.join(words)}")
        assert parsed.command == words[0]


def test_descriptions_are_wrapped(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    text = ALL["plmcore generate"].format_help()
    assert max(map(len, text.partition("examples:")[0].splitlines())) <= 60
    assert "--beams 4 --out summaries.jsonl\n" in text  # an example stays on its line


WORDS = "the cat sat on the mat and the dog ran far away".split()
BAD = b"the cat\n\nthe caf\xe9 dog\n"  # byte 16
WHERE = "line 3, byte 16: 0xe9 is not UTF-8"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model for each command, and text that is not UTF-8."""
    path = tmp_path_factory.mktemp("arguments")
    lines = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))]
    shape = dict(
        vocab_size=300,
        model_type="bert",
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    wordpiece = plm.train_tokenizer(texts=lines, kind="wordpiece", vocab_size=200, family="bert")
    bytes_bpe = plm.train_tokenizer(texts=lines, kind="byte-bpe", vocab_size=300, family="gpt2")
    gpt2 = dict(vocab_size=300, model_type="gpt2", n_embd=8, n_layer=1, n_head=2, n_positions=64)
    for name, config, head, tokenizer in (
        ("bert", shape, "masked-lm", wordpiece),
        ("classifier", shape, "sequence-classification", wordpiece),
        ("gpt2", gpt2, "causal-lm", bytes_bpe),
    ):
        lm = plm.from_config(config, head)
        lm.tokenizer = tokenizer
        lm.save(path / name)
        tokenizer.save(path / name)
    (path / "bad.txt").write_bytes(BAD)
    (path / "bad.tsv").write_bytes(b"text\tlabel\nthe cat\ta\nthe caf\xe9\tb\nthe dog\ta\n")
    (path / "bad.jsonl").write_bytes(b'{"text": "the cat sat"}\n{"text": "the caf\xe9 sat"}\n')
    (path / "bad-choices.jsonl").write_bytes(
        b'{"context": "the caf\xe9", "choices": ["cat", "dog"], "label": 0}\n'
    )
    (path / "gaps.txt").write_bytes(b"the [MASK]\n\xff [MASK]\n")
    (path / "long.txt").write_bytes(b"\n".join([*(line.encode() for line in lines * 30), b"the caf\xe9 dog"]))
    return path


COMMANDS = {
    "tokenize train": "tokenize train {0}/bad.txt --kind words --out {1}/t",
    "tokenize encode": "tokenize encode {0}/bert {0}/bad.txt",
    "corpus": "corpus {0}/bad.txt --tokenizer {0}/bert --out {1}/c",
    "corpus of objects": "corpus {0}/bad.jsonl --tokenizer {0}/bert --out {1}/c",
    "pretrain": "pretrain gpt2 --text {0}/long.txt --steps 1 --set data.length=16 --tokenizer byte-bpe --set "
    "data.vocab=300 --out {1}/r",
    "pretrain with its tokenizer": "pretrain gpt2 --text {0}/long.txt --steps 1 --set data.length=16 "
    "--tokenizer {0}/gpt2 --out {1}/r",
    "finetune": "finetune {0}/bert --task classification --train {0}/bad.tsv --steps 1 --out {1}/r",
    "finetune lm": "finetune {0}/gpt2 --task lm --train {0}/long.txt --steps 1 "
    "--set data.length=16 --out {1}/r",
    "evaluate": "evaluate {0}/gpt2 {0}/bad.txt --task perplexity",
    "evaluate last-word": "evaluate {0}/gpt2 {0}/bad.jsonl --task last-word",
    "evaluate last-word of a text": "evaluate {0}/gpt2 {0}/bad.txt --task last-word",
    "evaluate choices": "evaluate {0}/gpt2 {0}/bad-choices.jsonl --task choices",
    "evaluate a classifier": "evaluate {0}/classifier {0}/bad.tsv --task classification "
    "--predictions {1}/p.jsonl",
    "embed": "embed {0}/bert {0}/bad.txt",
    "generate": "generate {0}/gpt2 --prompts {0}/bad.txt --max-new-tokens 2",
    "classify": "classify {0}/classifier {0}/bad.txt",
    "quantize": "quantize {0}/gpt2 --text {0}/bad.txt --out {1}/q",
    "fill-mask": "fill-mask {0}/bert {0}/gaps.txt",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_text_that_is_not_utf_8(command, models, tmp_path, capsys, monkeypatch):
    """An error that names the file, the place and the option; with the option none."""
    strict, replace = tmp_path / "strict", tmp_path / "replace"
    strict.mkdir(), replace.mkdir()
    if "classifier" in command:  # trained for classes a and b
        config = json.loads((models / "classifier/config.json").read_text())
        config |= {"id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0, "b": 1}}
        (models / "classifier/config.json").write_text(json.dumps(config))
    assert cli.main(COMMANDS[command].format(models, strict).split()) == 1
    error = capsys.readouterr().err
    assert "0xe9 is not UTF-8" in error or "0xff is not UTF-8" in error
    assert f"'{models}/" in error and ", byte " in error and "--errors replace" in error
    arguments = [*COMMANDS[command].format(models, replace).split(), "--errors", "replace"]
    assert cli.main(arguments) == 0, capsys.readouterr().err


def test_the_place_is_right(models, capsys):
    assert cli.main(["embed", str(models / "bert"), str(models / "bad.txt")]) == 1
    assert WHERE in capsys.readouterr().err


def test_a_run_keeps_the_choice(models, tmp_path):
    arguments = COMMANDS["finetune"].format(models, tmp_path).split()
    assert cli.main([*arguments, "--errors", "replace"]) == 0
    assert 'errors = "replace"' in (tmp_path / "r/config.toml").read_text()
    assert cli.main(["finetune", "--out", str(tmp_path / "r"), "--resume"]) == 0


def test_positive():
    assert arguments.positive("3") == 3
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1, got 0"):
        arguments.positive("0")
