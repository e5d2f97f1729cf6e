"""Writes a model of a published size with random weights: by transformers, then for CTranslate2 and, with int8 weights, for plmcore.

python benchmarks/generate/write.py SIZE FOLDER LAYERS PEER...    (PEER int8: plmcore's own)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from models import cases as models_cases
from models import write as models_write
from models.write import complete

from generate.cases import ARCHITECTURES, LAYERS, SIZES


class Words:
    """All that the converter asks of a tokenizer."""

    bos_token = eos_token = unk_token = pad_token = "w1"

    def __init__(self, size: int):
        self.size = size

    def get_vocab(self) -> dict[str, int]:
        return {f"w{i}": i for i in range(self.size)}

    def convert_ids_to_tokens(self, i: int) -> str:
        return f"w{i}"

    def __len__(self) -> int:
        return self.size


def directory(folder: Path, name: str, layers: int) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    kind = getattr(transformers, ARCHITECTURES[name])
    values = SIZES[name] | (dict.fromkeys(LAYERS[name], layers) if layers else {})
    kind(kind.config_class(**values)).save_pretrained(folder)


def ctranslate2(folder: Path, source: Path) -> None:
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):
        def load_model(self, kind, path, **options):
            model = super().load_model(kind, path, **options)
            model.config.normalize_before = False  # a key that transformers no longer has, of BART
            return model

        def load_tokenizer(self, kind, path, **options):
            return Words(json.loads((source / "config.json").read_text())["vocab_size"])

    Converter(str(source)).convert(str(folder / "model"))  # in float32: it quantises as it loads


def encoder(folder: Path, source: Path) -> None:
    models_write.ctranslate2(folder, models_cases.SIZES["bert-base"], source)


def main(name: str, folder: str, layers: str, *peers: str) -> None:
    base = Path(folder)
    complete(base / "transformers", lambda at: directory(at, name, int(layers)))
    if "ctranslate2" in peers:
        convert = encoder if name == "bert-base" else ctranslate2
        complete(base / "ctranslate2", lambda at: convert(at, base / "transformers"))
    if "int8" in peers:
        import plmcore

        complete(base / "int8", lambda at: plmcore.quantize(base / "transformers", "int8", out=at / "model"))


if __name__ == "__main__":
    main(*sys.argv[1:])
