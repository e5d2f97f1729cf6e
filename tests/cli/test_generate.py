import io
import json
import sys

import plmcore as plm
import pytest
from generate.test_run import folder  # noqa: F401 - a fixture
from plmcore.cli import texts


def command(capsys, *args):
    from plmcore.cli import main

    code = main(["generate", *map(str, args)])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_command(folder, tmp_path, capsys):  # noqa: F811
    lm = plm.load(folder)
    code, out, _ = command(capsys, folder, "--prompt", "once upon", "--max-new-tokens", 5)
    assert code == 0 and out == lm.generate("once upon", max_new_tokens=5) + "\n"
    code, out, _ = command(
        capsys, folder, "--prompt", "once upon", "--max-new-tokens", 5, "--beams", 3, "--returns", 2
    )
    assert code == 0 and out.splitlines() == lm.generate(
        "once upon", max_new_tokens=5, num_beams=3, num_return_sequences=2
    )

    lines = tmp_path / "prompts.txt"
    prompts = ["once upon", "the cat", "the dog sat", "it was dark", "long ago"]
    lines.write_text("\n".join(prompts))
    result = tmp_path / "out.jsonl"
    asked = ("--max-new-tokens", 5, "--sample", "--seed", 4, "--batch", 2)
    code, out, _ = command(capsys, folder, "--prompts", lines, *asked, "--out", result)
    assert code == 0 and not out
    records = [json.loads(line) for line in result.read_text().splitlines()]
    assert [r["prompt"] for r in records] == prompts
    for i, r in enumerate(records):
        assert r["text"] == lm.generate(prompts[i], max_new_tokens=5, do_sample=True, seed=4 + i)
        assert r["score"] < 0 and 1 <= r["tokens"] <= 5

    lines.write_text("the cat\n" + "cat " * 30)
    code, _, err = command(capsys, folder, "--prompts", lines)
    assert code == 1 and "lines 1 to 2: the prompt has 30 tokens, and the model 24 positions" in err
    code, _, err = command(capsys, tmp_path / "nowhere", "--prompt", "x")
    assert code == 1 and "nowhere" in err


def test_a_text_appears_as_it_is_made(folder, capsys, monkeypatch):  # noqa: F811
    written = []

    class Terminal(io.StringIO):
        def flush(self):
            written.append(self.getvalue())

    monkeypatch.setattr(sys, "stdout", Terminal())
    assert command(capsys, folder, "--prompt", "once upon", "--max-new-tokens", 5)[0] == 0
    assert len(written) >= 5 and all(b.startswith(a) and a != b for a, b in zip(written, written[1:]))


def test_prompts_from_standard_input_are_read_as_they_are_needed(folder, capsys, monkeypatch):  # noqa: F811
    """Memory does not grow with their number: of a million lines no more than a batch is there at a time."""
    read = []

    def lines():
        for i in range(1_000_000):
            read.append(i)
            yield "the cat"

    found = texts.grouped(lines(), 4)
    assert next(found) == ["the cat"] * 4 and len(read) == 4
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the cat\nonce upon\n")))
    code, out, err = command(capsys, folder, "--prompts", "-", "--max-new-tokens", 3)
    assert code == 0 and [json.loads(line)["prompt"] for line in out.splitlines()] == ["the cat", "once upon"]
    assert not err  # no bar: this is no terminal


def test_an_output_takes_its_name_when_it_is_complete(folder, tmp_path, capsys):  # noqa: F811
    lines, out = tmp_path / "prompts", tmp_path / "out.jsonl"
    lines.write_bytes(b"the cat\nonce upon\n\xff\n")
    code, _, err = command(
        capsys, folder, "--prompts", lines, "--batch", 2, "--max-new-tokens", 3, "--out", out
    )
    assert code == 1 and "line 3, byte 18: 0xff is not UTF-8" in err and not out.exists()
    assert len((tmp_path / "out.jsonl.partial").read_text().splitlines()) == 2  # what was made is not lost
    lines.write_text("the cat\n")
    assert command(capsys, folder, "--prompts", lines, "--max-new-tokens", 3, "--out", out)[0] == 0
    assert len(out.read_text().splitlines()) == 1 and not (tmp_path / "out.jsonl.partial").exists()


@pytest.mark.parametrize("options", [(), ("--beams", 3, "--returns", 2), ("--sample", "--returns", 2)])
def test_trace(folder, tmp_path, capsys, options):  # noqa: F811
    page = tmp_path / "beams.html"
    asked = ("--prompt", "once upon", "--max-new-tokens", 4, *options)
    plain = command(capsys, folder, *asked)
    assert command(capsys, folder, *asked, "--trace", page) == plain and plain[0] == 0
    assert ": once upon</h1>" in page.read_text()


def test_trace_is_for_one_prompt(folder, tmp_path, capsys):  # noqa: F811
    code, _, err = command(capsys, folder, "--prompts", "-", "--trace", tmp_path / "a.html")
    assert code == 1 and "--trace is for one --prompt" in err


def test_rules(folder, capsys):  # noqa: F811
    lm = plm.load(folder)
    asked = (
        "--prompt",
        "once upon",
        "--max-new-tokens",
        6,
        "--min-new-tokens",
        6,
        "--repetition-penalty",
        5.0,
    )
    code, out, _ = command(capsys, folder, *asked)
    rules = dict(max_new_tokens=6, min_new_tokens=6, repetition_penalty=5.0)
    assert code == 0 and out == lm.generate("once upon", **rules) + "\n"


@pytest.mark.parametrize("returns", [1, 2])
def test_the_answer_to_a_blank_line_is_empty(folder, tmp_path, capsys, returns):  # noqa: F811
    """Lines of answers stay beside lines of prompts, and the seed of a line is that of its number."""
    lines = tmp_path / "prompts.txt"
    prompts = ["", "once upon", " ", "the cat", "", "", "", "long ago", ""]
    lines.write_text("\n".join(prompts) + "\n")
    asked = ("--max-new-tokens", 5, "--sample", "--seed", 4, "--batch", 3, "--returns", returns)
    code, out, _ = command(capsys, folder, "--prompts", lines, *asked)
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [r["prompt"] for r in records] == [p for p in prompts for _ in range(returns)]
    lm = plm.load(folder)
    for i, prompt in enumerate(prompts):
        found = [r["text"] for r in records[i * returns : (i + 1) * returns]]
        if prompt.strip():
            wanted = lm.generate(
                prompt, max_new_tokens=5, do_sample=True, seed=4 + i, num_return_sequences=returns
            )
            assert found == ([wanted] if returns == 1 else wanted)
        else:
            assert found == [""] * returns and records[i * returns]["tokens"] == 0
