"""Writes a model of a published size with random weights: by transformers, then for CTranslate2 and llama.cpp
and, with int8 weights, for plmcore.

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


def llama(folder: Path, source: Path) -> None:
    """GPT-2 as GGUF, in float32 and as Q8_0: names and layout as llama.cpp's own converter has them, without
    a vocabulary.
    """
    import gguf
    from safetensors.numpy import load_file

    config = json.loads((source / "config.json").read_text())
    state = {
        name.removeprefix("transformer."): a for name, a in load_file(source / "model.safetensors").items()
    }
    folder.mkdir(parents=True)
    for kind in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.Q8_0):
        out = gguf.GGUFWriter(folder / f"{kind.name}.gguf", "gpt2")
        out.add_context_length(config["n_positions"])
        out.add_embedding_length(config["n_embd"])
        out.add_feed_forward_length(4 * config["n_embd"])
        out.add_block_count(config["n_layer"])
        out.add_head_count(config["n_head"])
        out.add_layer_norm_eps(config["layer_norm_epsilon"])
        out.add_vocab_size(config["vocab_size"])
        out.add_tokenizer_model("none")
        for name, array in state.items():
            if (called := llama_name(name)) is None:
                continue
            # These are stored [in, out]
            array = array.T if name.startswith("h.") and array.ndim == 2 else array
            small = array.ndim == 1 or name == "wpe.weight"  # stays float32 there
            stored = gguf.GGMLQuantizationType.F32 if small else kind
            out.add_tensor(called, gguf.quants.quantize(array.copy(), stored), raw_dtype=stored)
        out.write_header_to_file()
        out.write_kv_data_to_file()
        out.write_tensors_to_file()
        out.close()


LLAMA_NAMES = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}


def llama_name(name: str) -> str | None:
    """h.3.mlp.c_fc.weight -> blk.3.ffn_up.weight; None for what is no weight, or one that is tied."""
    module, _, kind = name.rpartition(".")
    block = ""
    if module.startswith("h."):
        _, number, module = module.split(".", 2)
        block = f"blk.{number}."
    return f"{block}{LLAMA_NAMES[module]}.{kind}" if module in LLAMA_NAMES else None


def main(name: str, folder: str, layers: str, *peers: str) -> None:
    base = Path(folder)
    complete(base / "transformers", lambda at: directory(at, name, int(layers)))
    if "ctranslate2" in peers:
        convert = encoder if name == "bert-base" else ctranslate2
        complete(base / "ctranslate2", lambda at: convert(at, base / "transformers"))
    if "llama.cpp" in peers:
        complete(base / "llama.cpp", lambda at: llama(at / "model", base / "transformers"))
    if "int8" in peers:
        import plmcore

        complete(base / "int8", lambda at: plmcore.quantize(base / "transformers", "int8", out=at / "model"))


if __name__ == "__main__":
    main(*sys.argv[1:])
