"""--help: every command has a description in sentences, help for each argument, and examples that parse."""

import argparse
import re
import shlex

import pytest
from plmcore import cli


def parsers(parser: argparse.ArgumentParser, name: str = "plmcore"):
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from parsers(inner, f"{name} {word}")


ALL = dict(parsers(cli.parser()))


def examples(parser: argparse.ArgumentParser) -> list[list[str]]:
    """The arguments of each example; what stands two spaces behind them explains it."""
    found = re.findall(r"^  (?:\w[^|\n]*\| )?plmcore (.+?)(?: > \S+)?(?:   *\S.*)?$", parser.epilog or "", re.MULTILINE)
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
