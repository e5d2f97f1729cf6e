"""Writes a model of a published size with random weights: by transformers, then for CTranslate2.

python benchmarks/generate/write.py SIZE FOLDER LAYERS PEER...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
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

    Converter(str(source)).convert(str(folder / "model"))


def main(name: str, folder: str, layers: str, *peers: str) -> None:
    base = Path(folder)
    complete(base / "transformers", lambda at: directory(at, name, int(layers)))
    if "ctranslate2" in peers:
        complete(base / "ctranslate2", lambda at: ctranslate2(at, base / "transformers"))


if __name__ == "__main__":
    main(*sys.argv[1:])
