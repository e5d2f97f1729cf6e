"""plmcore convert: weights that torch.save wrote (pytorch_model.bin) as safetensors, without torch."""

from __future__ import annotations

import pathlib
import shutil

import numpy as np

from plmcore import safetensors, shards, torch_file

FILE = "pytorch_model.bin"
BESIDE = (
    ".json",
    ".txt",
    ".model",
    ".jinja",
    ".md",
)  # configuration, vocabularies, templates: what makes a model directory


def run(source: pathlib.Path, out: pathlib.Path, max_shard_bytes: int | None = None) -> list[pathlib.Path]:
    """Writes the weights of a file or a model directory; returns what was written.

    `out` is a file where it is named so (.safetensors), else a directory. A directory also gets the configuration and tokenizer
    files of the source. The metadata says "format": "pt", which transformers asks for.
    """
    index = source.suffix == ".json"
    if source.is_dir():
        path = weights_in(source)
        index = path.suffix == ".json"
    else:
        path = source
    tensors: dict[str, np.ndarray] = shards.read_files(path, torch_file.read) if index else torch_file.read(path)
    as_file = out.suffix == ".safetensors"
    if not as_file:
        out.mkdir(parents=True, exist_ok=True)
    written = safetensors.write(out, tensors, {"format": "pt"}, max_shard_bytes)
    if source.is_dir() and not as_file and not out.samefile(source):
        written += copy_beside(source, out)
    return written


def weights_in(folder: pathlib.Path) -> pathlib.Path:
    for name in (FILE, FILE + safetensors.INDEX):
        if (folder / name).exists():
            return folder / name
    has = [n for n in (safetensors.FILE, safetensors.FILE + safetensors.INDEX) if (folder / n).exists()]
    hint = f"; it has {has[0]}, which needs no conversion" if has else ""
    raise FileNotFoundError(f"'{folder}' has no {FILE} and no {FILE}{safetensors.INDEX}{hint}")


def copy_beside(source: pathlib.Path, out: pathlib.Path) -> list[pathlib.Path]:
    """Copies what is no weights: small files of the directory, and the configurations in its numbered folders (1_Pooling)."""
    copied = []
    for file in sorted([*source.iterdir(), *source.glob("[0-9]*_*/config.json")]):
        if file.suffix in BESIDE and file.is_file() and not file.name.endswith(safetensors.INDEX):
            target = out / file.relative_to(source)
            target.parent.mkdir(exist_ok=True)
            copied.append(pathlib.Path(shutil.copyfile(file, target)))
    return copied
