"""Writes a model of a published size with random weights: by transformers, then for ONNX Runtime and
CTranslate2.

    python benchmarks/models/write.py SIZE FOLDER LAYERS PEER...

Runs in a process of its own, so that the benchmark itself imports no framework. What is already there is left
alone.
"""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from models.cases import SIZES, Size


def model_class(size: Size):
    import transformers

    return getattr(transformers, size.architecture)


def directory(folder: Path, size: Size, layers: int) -> None:
    import torch

    torch.manual_seed(0)
    kind = model_class(size)
    values = {key: value for key, value in size.config.items() if key != "model_type"}
    values |= dict.fromkeys(size.layers, layers) if layers else {}
    kind(kind.config_class(**values)).save_pretrained(folder)


def onnx(folder: Path, size: Size, source: Path) -> None:
    """plain.onnx takes input_ids [B, T]; masked.onnx an attention_mask [B, T] beside: a graph without it has
    less to do.
    """
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask=None):
            return self.model(input_ids, attention_mask=attention_mask, return_dict=False)

    model = Encoder(model_class(size).from_pretrained(source)).eval()
    ids = torch.randint(5, 1000, (2, 16))
    for name, inputs in {
        "plain": {"input_ids": ids},
        "masked": {"input_ids": ids, "attention_mask": torch.ones_like(ids)},
    }.items():
        torch.onnx.export(
            model,
            tuple(inputs.values()),
            str(folder / f"{name}.onnx"),
            input_names=list(inputs),
            dynamo=True,
            verbose=False,
            output_names=["last_hidden_state", "pooler_output"],
            dynamic_shapes={i: {0: "B", 1: "T"} for i in inputs},
        )


def ctranslate2(folder: Path, size: Size, source: Path) -> None:
    """The converter wants a tokenizer and a config key that transformers no longer writes."""
    from ctranslate2.converters import TransformersConverter

    inner = folder / "source"
    shutil.copytree(source, inner)
    config = json.loads((inner / "config.json").read_text())
    (inner / "config.json").write_text(json.dumps(config | {"position_embedding_type": "absolute"}))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [f"w{i}" for i in range(len(words), config["vocab_size"])]
    (inner / "vocab.txt").write_text("\n".join(words) + "\n")
    TransformersConverter(str(inner)).convert(str(folder / "model"))
    shutil.rmtree(inner)


def complete(folder: Path, make) -> None:
    """make(folder) into a folder that appears under its name when it is complete."""
    if folder.exists():
        return
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    make(partial)
    partial.rename(folder)


def main(name: str, folder: str, layers: str, *peers: str) -> None:
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    warnings.filterwarnings("ignore")
    size, base = SIZES[name], Path(folder)
    source = base / "transformers"
    complete(source, lambda at: directory(at, size, int(layers)))
    if "onnxruntime" in peers:
        complete(base / "onnxruntime", lambda at: onnx(at, size, source))
    if "ctranslate2" in peers:
        complete(base / "ctranslate2", lambda at: ctranslate2(at, size, source))


if __name__ == "__main__":
    main(*sys.argv[1:])
