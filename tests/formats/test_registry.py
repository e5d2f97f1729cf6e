"""One registry of file formats: what it knows of files, and a format that a test adds to it."""

import json
import pathlib
import subprocess
import sys
import types

import numpy as np
import plmcore as plm
import pytest
from plmcore import cli, formats
from plmcore.formats import registry
from plmcore.formats.registry import Format

TENSORS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(2, np.float32)}


def read(path, mapped):
    """Lines of JSON: a name, a shape and the numbers."""
    first, *lines = path.read_text().splitlines()
    if first != "LINES":
        raise plm.FormatError(f"'{path}' cannot be read: it has no first line LINES")
    rows = [json.loads(line) for line in lines]
    return {r["name"]: np.array(r["values"], np.float32).reshape(r["shape"]) for r in rows}, {"by": "lines"}


def write(path, tensors, metadata=None, max_shard_bytes=None):
    path = path / "model.lines" if path.is_dir() else path
    rows = {n: np.asarray(t.numpy() if isinstance(t, plm.Tensor) else t) for n, t in tensors.items()}
    lines = (dict(name=n, shape=a.shape, values=a.ravel().tolist()) for n, a in rows.items())
    path.write_text("\n".join(["LINES", *map(json.dumps, lines)]))
    return [path]


@pytest.fixture
def lines(monkeypatch):
    monkeypatch.setattr(registry, "FORMATS", dict(registry.FORMATS))
    monkeypatch.setattr(registry, "_MODULES", dict(registry._MODULES))
    module = types.ModuleType("my_lines")
    module.FORMAT = Format(
        known=lambda start: start.startswith(b"LINES\n"),
        endings=(".lines",),
        read=read,
        write=write,
        file="model.lines",
        loads=True,
    )
    formats.register("lines", module)
    formats.register("lines", module)  # the same again, as after a reload
    return module


def run(capsys, *arguments):
    status = cli.main(list(map(str, arguments)))
    return status, "".join(capsys.readouterr())


def model(folder):
    lm = plm.from_config(dict(model_type="gpt2", n_embd=8, n_layer=1, n_head=2, n_positions=8, vocab_size=11))
    lm.save(folder)
    return lm


# ---- a new format ----


def test_a_model_directory_of_a_new_format(lines, tmp_path, capsys):
    lm = model(tmp_path)
    tensors, _ = registry.read(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    registry.write(tmp_path / "model.lines", tensors)
    again = plm.load(tmp_path)
    ids = np.array([[1, 2, 3]])
    assert np.array_equal(
        lm.eval()(input_ids=ids).last_hidden_state.numpy(), again(input_ids=ids).last_hidden_state.numpy()
    )
    status, said = run(capsys, "info", tmp_path)
    assert status == 0 and "gpt2" in said and "float32" in said
    again.save(tmp_path / "saved")  # in the first format that can be written
    assert (tmp_path / "saved" / "model.safetensors").exists()


def test_convert_in_both_directions(lines, tmp_path, capsys):
    plm.safetensors.write(tmp_path / "w.safetensors", TENSORS)
    assert run(capsys, "convert", tmp_path / "w.safetensors", tmp_path / "w.lines")[0] == 0
    assert (tmp_path / "w.lines").read_text().startswith("LINES\n")
    (tmp_path / "w.lines").rename(tmp_path / "any-name")  # the content tells
    assert run(capsys, "convert", tmp_path / "any-name", tmp_path / "back.safetensors")[0] == 0
    back, _ = plm.safetensors.read(tmp_path / "back.safetensors")
    assert (
        all(np.array_equal(back[n].numpy(), a) for n, a in TENSORS.items()) and back.keys() == TENSORS.keys()
    )


def test_info_of_a_file(lines, tmp_path, capsys):
    write(tmp_path / "w", TENSORS)
    status, said = run(capsys, "info", tmp_path / "w")
    assert status == 0 and "format      lines" in said and "tensors     2" in said


def test_shards_of_a_new_format(lines, tmp_path):
    for name in TENSORS:
        write(tmp_path / f"{name}.lines", {name: TENSORS[name]})
    index = {"weight_map": {name: f"{name}.lines" for name in TENSORS}}
    (tmp_path / "model.lines.index.json").write_text(json.dumps(index))
    tensors, metadata = registry.read(tmp_path)
    assert sorted(tensors) == ["a", "b"] and metadata == {"by": "lines"}
    assert isinstance(tensors["a"], plm.Tensor)


def test_a_damaged_file_of_a_new_format(lines, tmp_path):
    """Its name tells the format, whose own message names the file."""
    (tmp_path / "w.lines").write_text("LINE")
    with pytest.raises(plm.FormatError, match="w.lines' cannot be read: it has no first line LINES"):
        registry.read(tmp_path / "w.lines")


# ---- those that are there ----


def test_by_content(tmp_path, capsys):
    plm.safetensors.write(tmp_path / "a", TENSORS)
    plm.export(plm.trace(lambda x: x + 1, x=plm.spec("float32", "B")), tmp_path / "b")
    assert registry.of_file(tmp_path / "a") == "safetensors" and registry.of_file(tmp_path / "b") == "program"
    status, said = run(capsys, "info", tmp_path / "b")
    assert status == 0 and "format      program" in said and "main        x float32 [B] ->" in said
    status, said = run(capsys, "convert", tmp_path / "b", tmp_path / "c.safetensors")
    assert status == 1 and "is a program file, which holds no tensors by name" in said


@pytest.mark.parametrize("content", [b"", b"hello, this is a text", b"\0" * 100])
def test_none_of_them(tmp_path, capsys, content):
    (tmp_path / "x").write_bytes(content)
    status, said = run(capsys, "info", tmp_path / "x")
    assert status == 1 and "of none of the formats safetensors, torch, program" in said


def test_every_format_is_one_module():
    """A line of the table for each module that declares one, and none beside."""
    folder = pathlib.Path(formats.__file__).parent
    declared = {f.stem for f in folder.glob("*.py") if "\nFORMAT = " in f.read_text()}
    assert declared == set(registry.FORMATS.values())
    assert all(isinstance(found, Format) for _, found in registry.every())


@pytest.mark.parametrize("given", [None, 3, Format])
def test_a_module_without_a_declaration(given):
    module = types.ModuleType("mine")
    module.FORMAT = given
    with pytest.raises(plm.ArgumentError, match="mine declares no format: FORMAT must .*adding-a-format"):
        formats.register("mine", module)
    assert "mine" not in registry.FORMATS


def test_another_formats_name():
    module = types.ModuleType("mine")
    module.FORMAT = registry.get("torch")
    with pytest.raises(plm.ArgumentError, match="the format 'torch' is that of torch_file"):
        formats.register("torch", module)
    with pytest.raises(plm.ArgumentError, match="there is no format 'xyz'"):
        registry.get("xyz")


def test_a_format_is_imported_when_it_is_needed(tmp_path):
    """Loading a model needs no reader of pickles."""
    model(tmp_path)
    code = f"import plmcore, sys; plmcore.load({str(tmp_path)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "plmcore.formats.safetensors" in done.stdout.split(), done.stderr
    assert "plmcore.formats.torch_file" not in done.stdout.split()
