"""Model and run directories that a stranger made: links, pipes and devices in place of files, files that
change while they are in use, and sizes that would take all memory or time. Through the calls that users make.
"""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import time

import numpy as np
import plmcore as plm
import pytest
from plmcore import safetensors
from plmcore.cli import main

GOLDEN = pathlib.Path(__file__).parent / "golden" / "models"
VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat dog ran ##s far away home".split()


@pytest.fixture
def folder(tmp_path):
    folder = pathlib.Path(shutil.copytree(GOLDEN / "bert", tmp_path / "model"))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
    return folder


@pytest.fixture
def program():
    return plm.trace(lambda x: x * 2, x=plm.spec("float32", "B"))


def device(path):
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    return path


def link(path, target):
    target.write_bytes(b"somebody's own")
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    return target


# ---- writing ----


def put_pipe(path):
    os.mkfifo(path)


def put_link(path):
    path.symlink_to("/dev/null")


PUT = {"device": device, "pipe": put_pipe, "link": put_link}


@pytest.mark.parametrize("put", PUT.values(), ids=PUT)
def test_only_regular_files_are_replaced(tmp_path, put, program, folder):
    writers = {
        "out.plm": lambda path: plm.export(program, path),
        "out.safetensors": lambda path: safetensors.write(path, {"x": np.zeros(3, np.float32)}),
        "quantized.safetensors": lambda path: safetensors.write(
            path, {"x": np.zeros(3, np.float32)}, aligned=True
        ),
        "beams.html": lambda path: plm.load(folder).attention("the cat").html(path),
        "quantized": lambda path: plm.quantize(folder, out=path),
    }
    for name, write in writers.items():
        put(tmp_path / name)
        before = os.lstat(tmp_path / name)
        with pytest.raises((ValueError, OSError), match="only|must be"):
            write(tmp_path / name)
        assert os.lstat(tmp_path / name).st_ino == before.st_ino, name
    assert not [p.name for p in tmp_path.iterdir() if "tmp" in p.name]


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt", "tokenizer.json"])
def test_saving_writes_through_no_link(tmp_path, folder, name):
    out = tmp_path / "out"
    out.mkdir()
    target = link(out / name, tmp_path / "mine")
    lm = plm.load(folder)
    lm.tokenizer.changed = True
    with pytest.raises(plm.ArgumentError, match=f"{name}' is a link; only regular files are written"):
        lm.save(out)
    assert target.read_bytes() == b"somebody's own" and (out / name).is_symlink()


@pytest.mark.parametrize(
    "name",
    [".lock", "log.txt", "sessions.txt", "metrics.jsonl", "config.toml", "report.html", "final", "tokenizer"],
)
def test_a_run_writes_through_no_link(tmp_path, name, capsys):
    text, out = tmp_path / "text.txt", tmp_path / "run"
    text.write_text("the cat sat on the mat. " * 200)
    out.mkdir()
    target = link(out / name, tmp_path / "mine")
    # A new run finds the directory in use; one that goes on opens it.
    command = [
        "pretrain",
        "gpt2",
        "--size",
        "tiny",
        "--text",
        str(text),
        "--steps",
        "1",
        "--out",
        str(out),
        "--set",
        "model.n_layer=1",
    ]
    for resume in ([], ["--resume"]):
        assert main([*command, *resume]) == 1, capsys.readouterr()
        assert target.read_bytes() == b"somebody's own" and (out / name).is_symlink()
    assert "Traceback" not in capsys.readouterr().err


def test_generated_lines_go_through_no_link(tmp_path, folder, capsys):
    gpt2 = pathlib.Path(shutil.copytree(GOLDEN / "gpt2", tmp_path / "gpt2"))
    tokens = {c: i for i, c in enumerate(["<|endoftext|>", *"abcdefghijklmnop"])}
    (gpt2 / "vocab.json").write_text(json.dumps(tokens))
    (gpt2 / "merges.txt").write_text("#version: 0.2\n")
    (tmp_path / "prompts.txt").write_text("abc\n")
    for name in ("out.jsonl", "out.jsonl.partial"):
        target = link(tmp_path / name, tmp_path / "mine")
        command = [
            "generate",
            str(gpt2),
            "--prompts",
            str(tmp_path / "prompts.txt"),
            "--out",
            str(tmp_path / "out.jsonl"),
        ]
        assert main(command) == 1 and "is a link" in capsys.readouterr().err
        assert target.read_bytes() == b"somebody's own"
        (tmp_path / name).unlink()


def test_a_linked_vocabulary_is_not_copied_out_of_its_directory(tmp_path, folder, capsys):
    secret = tmp_path / "secret"
    shutil.move(folder / "vocab.txt", secret)
    (folder / "vocab.txt").symlink_to(secret)
    lm = plm.load(folder)
    with pytest.raises(plm.FormatError, match="vocab.txt' is a link to .*secret', outside the directory"):
        lm.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(plm.FormatError, match="outside the directory"):
        plm.quantize(folder, out=tmp_path / "small")
    table = tmp_path / "train.tsv"
    table.write_text("text\tlabel\nthe cat\tgood\nthe dog\tbad\n")
    command = [
        "finetune",
        str(folder),
        "--task",
        "classification",
        "--train",
        str(table),
        "--out",
        str(tmp_path / "run"),
    ]
    assert main(command) == 1 and "outside the directory" in capsys.readouterr().err
    assert not (tmp_path / "run" / "final").exists()


def test_links_inside_a_directory_and_of_a_hub_s_cache_are_copied(tmp_path, folder):
    shutil.move(folder / "vocab.txt", folder / "words")
    (folder / "vocab.txt").symlink_to("words")
    plm.load(folder).save(tmp_path / "out")
    assert (tmp_path / "out" / "vocab.txt").read_text().split("\n") == VOCABULARY
    assert not (tmp_path / "out" / "vocab.txt").is_symlink()
    hub = tmp_path / "models--bert"
    (hub / "blobs").mkdir(parents=True)
    snapshot = hub / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    for i, file in enumerate(("config.json", "model.safetensors", "vocab.txt")):
        shutil.copy(folder / file, hub / "blobs" / str(i))
        (snapshot / file).symlink_to(f"../../blobs/{i}")
    plm.load(snapshot).save(tmp_path / "saved")
    assert (
        plm.load(tmp_path / "saved").tokenizer("the cat").input_ids.tolist()
        == plm.load(folder).tokenizer("the cat").input_ids.tolist()
    )


# ---- mapped files ----


CUT = """
import os, sys, plmcore as plm
lm = plm.load(sys.argv[1], mapped=sys.argv[2] == "True")
program = plm.load_program(sys.argv[1] + "/x.plm", mapped=sys.argv[2] == "True")
for name in ("model.safetensors", "x.plm"):
    os.truncate(sys.argv[1] + "/" + name, 10)
weights = sum(float(p.sum()) for p in lm.parameters())
print(lm(input_ids=[[1, 2, 3]]).loss, weights != 0, program(x=[1.0]).tolist())
"""


def test_a_file_that_is_cut_short_while_it_is_in_use(folder):
    weight = plm.Tensor(np.ones(1 << 20, np.float32))
    for mapped, code in ((False, 0), (True, -7)):
        for name in ("config.json", "model.safetensors"):
            shutil.copy(GOLDEN / "bert" / name, folder)
        plm.export(plm.trace(lambda x: x + weight[-1:], x=plm.spec("float32", "B")), folder / "x.plm")
        done = subprocess.run(
            [sys.executable, "-c", CUT, folder, str(mapped)], capture_output=True, text=True
        )
        if not mapped:
            assert done.returncode == 0 and done.stdout == "None True [2.0]\n", done.stderr
        else:
            assert done.returncode in (0, -7)  # SIGBUS, unless what was lost had been read


def test_read_into_memory_is_the_same(folder):
    mapped, memory = (plm.load(folder, mapped=m).model.state_dict() for m in (True, False))
    assert all(np.array_equal(t.numpy(), memory[name].numpy()) for name, t in mapped.items())
    tensors, metadata = safetensors.read(folder, mapped=False)
    assert metadata == safetensors.read(folder)[1] and list(tensors) == list(safetensors.read(folder)[0])


# ---- what it costs ----


def seconds(call):
    start = time.monotonic()
    call()
    return time.monotonic() - start


@pytest.mark.parametrize("family", ["gpt2", "bert", "t5", "albert", "bart"])
def test_sizes_of_a_config_are_looked_at_before_anything_is_made(tmp_path, family):
    """Each would take all memory, or minutes, were it done."""
    folder = pathlib.Path(shutil.copytree(GOLDEN / family, tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    numbers = [key for key, value in config.items() if type(value) is int and not key.endswith("_id")]
    plm.set_memory_cap(1 << 30)
    try:
        for key in [*numbers, "num_labels"]:
            for value in (2**31 - 1, 1048576, 10000, 10**40):
                (folder / "config.json").write_text(json.dumps({**config, key: value}))

                def load():
                    try:
                        plm.load(folder)  # what is never looked at may be any number
                    except (plm.ArgumentError, plm.FormatError, plm.OutOfMemoryError):
                        pass

                assert seconds(load) < 10, (key, value)
    finally:
        plm.set_memory_cap(0)


def test_a_model_that_memory_cannot_hold():
    for sizes in (dict(n_embd=1048576), dict(n_layer=10000, n_embd=7680), dict(vocab_size=2**31 - 1)):
        with pytest.raises(
            plm.OutOfMemoryError, match="parameters by its config: they take .* the system can still give"
        ):
            plm.from_config(dict(model_type="gpt2", n_head=1, **sizes), "causal-lm")
    with pytest.raises(plm.ArgumentError, match="num_labels must be at most 1000000, got 2147483647"):
        plm.load(GOLDEN / "bert", head="sequence-classification", num_labels=2147483647)
    with pytest.raises(
        plm.FormatError, match="asks for .* parameters, and its files hold .* numbers: a size in it is wrong"
    ):
        plm.load(GOLDEN / "bert", num_hidden_layers=10000)


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "model.safetensors",
        "tokenizer_config.json",
        "generation_config.json",
        "modules.json",
        "vocab.txt",
        "features.json",
    ],
)
@pytest.mark.parametrize("put", ["pipe", "directory", "loop", "sparse", "deep"])
def test_files_that_are_none(folder, name, put):
    """None waits for a writer, reads without end, or takes a terabyte."""
    path = folder / name
    path.unlink(missing_ok=True)
    if put == "pipe":
        os.mkfifo(path)
    elif put == "directory":
        path.mkdir()
    elif put == "loop":
        path.symlink_to(name)
    elif put == "sparse":
        with open(path, "wb") as f:
            f.truncate(1 << 40)
    else:
        path.write_text("[" * 100_000)

    def use():
        try:
            lm = plm.load(folder)
            lm.encode(["the cat"])
            lm.generate([[5, 6]], max_new_tokens=2)
        except (plm.FormatError, plm.ArgumentError, plm.OutOfMemoryError, OSError):
            pass

    assert seconds(use) < 20


def test_an_index_of_a_million_files(folder):
    (folder / "model.safetensors").unlink()
    weights = {f"t{i}": f"file-{i}.safetensors" for i in range(1_000_000)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))

    def load():
        with pytest.raises(plm.FormatError, match="it lists more than 10000 files"):
            plm.load(folder)

    assert seconds(load) < 20


def test_numbers_of_generation_are_bounded():
    lm = plm.load(GOLDEN / "gpt2")
    for options in (
        dict(max_new_tokens=10**18),
        dict(num_beams=10**9),
        dict(num_return_sequences=10**9, do_sample=True),
        dict(max_length=10**30),
    ):
        with pytest.raises((plm.ArgumentError, plm.OutOfMemoryError, plm.ShapeError)):
            lm.generate([[1, 2]], **options)
