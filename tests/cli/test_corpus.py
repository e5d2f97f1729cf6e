import json
import os
import pty
import re
import subprocess
import sys
import termios

import installed
import numpy as np
import plmcore as plm
import pytest
from plmcore import cli
from plmcore.data import Corpus

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "the", "ship", "sails"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tok").mkdir()
    (tmp_path / "tok" / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (tmp_path / "in.txt").write_text("The ship sails. The ship.\n\nSails\nthe ship.\n")
    return tmp_path


def arguments(folder, *more):
    return [
        "corpus",
        str(folder / "in.txt"),
        "--tokenizer",
        str(folder / "tok"),
        "--family",
        "bert",
        "--out",
        str(folder / "out"),
        *more,
    ]


def test_write_and_check(folder, capsys):
    assert cli.main(arguments(folder)) == 0
    corpus = Corpus.open(folder / "out")
    assert corpus.ids.tolist() == [6, 7, 8, 5, 6, 7, 5, 8, 6, 7, 5]
    assert corpus.sentences.tolist() == [0, 4, 7, 11] and corpus.documents.tolist() == [0, 7, 11]
    assert corpus.tokenizer["mask_token_id"] == 4 and corpus.tokenizer["kind"] == "wordpiece"
    assert cli.main(["corpus", "--check", str(folder / "out")]) == 0
    out, err = capsys.readouterr()
    assert "11 tokens, 3 sentences, 2 documents" in out and "sound" in out and err == ""


def test_options(folder):
    (folder / "in.jsonl").write_text(json.dumps({"body": "the\nship. The"}) + "\n")
    more = ["--field", "body", "--sentences", "document", "--unwrap", "--workers", "1", "--overwrite"]
    assert cli.main(arguments(folder)) == 0
    assert cli.main([a.replace("in.txt", "in.jsonl") for a in arguments(folder, *more)]) == 0
    corpus = Corpus.open(folder / "out")
    assert corpus.ids.tolist() == [6, 7, 5, 6] and len(corpus.sentences) == 2
    assert corpus.source["unwrap"] is True and corpus.source["field"] == "body"


def test_errors(folder, capsys):
    def fails(*args, code=1):
        assert cli.main(list(args)) == code
        return capsys.readouterr().err

    assert "are needed" in fails("corpus", code=2)
    assert "has no corpus.json" in fails("corpus", "--check", str(folder))
    assert "no file or folder" in fails(*[a.replace("in.txt", "absent") for a in arguments(folder)])
    (folder / "in.txt").write_bytes(b"the\n\xff\n")
    assert "in.txt', line 2, byte 4: 0xff is not UTF-8" in fails(*arguments(folder))
    assert cli.main(arguments(folder, "--errors", "replace")) == 0
    assert "is a corpus already" in fails(*arguments(folder))
    np.zeros(1, np.uint8).tofile(folder / "out" / "ids.bin")
    assert "ids.bin' has 1 bytes" in fails("corpus", "--check", str(folder / "out"))


def test_progress_on_a_terminal(folder):
    (folder / "in.txt").write_text("the ship sails.\n\n" * 70_000)
    terminal, side = pty.openpty()
    termios.tcsetwinsize(side, (24, 100))
    command = [*installed.COMMAND, *arguments(folder, "--workers", "1")]
    process = subprocess.Popen(command, stderr=side, stdout=subprocess.PIPE)
    os.close(side)
    shown = b""
    try:
        while data := os.read(terminal, 1000):
            shown += data
    except OSError:  # the other side is closed
        pass
    os.close(terminal)
    assert b"280,000 tokens" in process.communicate()[0] and process.returncode == 0
    assert b"1.19M/1.19M [" in shown and b"B/s]" in shown


def test_batches_of_an_objective(folder, capsys):
    (folder / "in.txt").write_text("The ship sails. The ship.\n\nSails the ship.\n\n" * 100)
    more = (
        "--objective",
        "masked-lm",
        "--length",
        "16",
        "--batch-size",
        "4",
        "--set",
        "packing=documents",
        "unit=word",
    )
    assert cli.main(arguments(folder, *more)) == 0
    assert re.search(
        r"masked-lm: 200 examples, 50 batches an epoch, [\d,]+ a second: input_ids \[4, \d+\], "
        r".*labels \[4, \d+\]; [\d,]+ MB of memory",
        capsys.readouterr().out,
    )
    for wrong, message in (
        (("--batch-size", "999"), "200 examples are too few for one batch of 999 examples"),
        (("--set", "colour=1"), "has no setting colour"),
        (("--set", "unit"), "--set takes NAME=VALUE, got 'unit'"),
    ):
        assert cli.main(arguments(folder, *more, *wrong, "--overwrite")) == 1
        assert message in capsys.readouterr().err


SMALL_BLOCKS = """
import sys
from plmcore import cli
from plmcore.data import blocks, mapped
blocks.SIZE = 1 << 17
assert cli.main(sys.argv[1:]) == 0
print("peak", mapped.peak() // 10**6)
"""


def test_memory_does_not_grow_with_the_text(folder):
    peaks = []
    for times in (1, 6):
        (folder / "in.txt").write_text(("The ship sails. " * 50 + "\n\n") * 2000 * times)
        command = [sys.executable, "-c", SMALL_BLOCKS, *arguments(folder, "--overwrite")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout.split()[-1]))
    assert peaks[1] < peaks[0] + 12, peaks  # 8 MB of text more, which would take 30 as sentences and ids


@pytest.mark.parametrize("content", ["", " \n\n"])
def test_no_text_is_an_error(tmp_path, capsys, content):
    plm.train_tokenizer(texts=["the cat sat"], kind="byte-bpe", vocab_size=257).save(tmp_path / "tokenizer")
    (tmp_path / "none.txt").write_text(content)
    run = ["corpus", str(tmp_path / "none.txt"), "--tokenizer", str(tmp_path / "tokenizer"), "--out"]
    assert cli.main([*run, str(tmp_path / "out")]) == 1 and not (tmp_path / "out").exists()
    assert f"there is no text in '{tmp_path / 'none.txt'}'" in capsys.readouterr().err
