"""The cases: models of published sizes with random weights, and the targets the project has set itself.

Needs numpy only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

PACKAGES = {
    "transformers": {"torch": "torch==2.13.0", "transformers": "transformers"},
    "ctranslate2": {"ctranslate2": "ctranslate2"},
    "llama.cpp": {"llama_cpp": "llama-cpp-python", "gguf": "gguf"},  # builds from source
}
ARCHITECTURES = {
    "gpt2": "GPT2LMHeadModel",
    "t5-small": "T5ForConditionalGeneration",
    "bart-base": "BartForConditionalGeneration",
    "bert-base": "BertModel",
}
INT8_PEERS = ("ctranslate2", "llama.cpp")  # transformers has no int8 of its own on the CPU
LLAMA_SIZES = ("gpt2",)
SIZES = {
    "gpt2": {},
    "t5-small": dict(
        vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8, decoder_start_token_id=0
    ),
    "bart-base": dict(
        vocab_size=50265,
        d_model=768,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
    ),
    "bert-base": {},
}
LAYERS = {
    "gpt2": ("n_layer",),
    "t5-small": ("num_layers",),
    "bart-base": ("encoder_layers", "decoder_layers"),
    "bert-base": ("num_hidden_layers",),
}


@dataclass(frozen=True)
class Case:
    name: str
    size: str
    batch: int
    prompt: int  # tokens, of the encoder where there is one
    new: int  # tokens made, all of them: nothing ends early; 0: an encoder, which makes none
    beams: int
    target: float  # at least this ratio to the fastest peer
    weights: str = "float32"
    rounds: int = 3

    def ids(self) -> np.ndarray:
        return np.random.default_rng(7).integers(10, 30000, (self.batch, self.prompt))

    def probe(self) -> tuple[np.ndarray, np.ndarray]:
        """A prompt or source [T], and a target [32] for models with an encoder, whose scores show what int8
        costs.
        """
        return self.ids()[0, :128], np.random.default_rng(8).integers(10, 30000, 32)

    @property
    def tokens(self) -> int:
        return self.batch * (self.new or self.prompt)

    @property
    def peers(self) -> tuple[str, ...]:
        those = tuple(PACKAGES) if self.weights == "float32" else INT8_PEERS
        return tuple(p for p in those if p != "llama.cpp" or self.size in LLAMA_SIZES)


def with_int8(cases: Sequence[Case], targets: dict[str, float]) -> Iterator[Case]:
    """Each case, and after it the same one with int8 weights where it has a target."""
    for case in cases:
        yield case
        if case.name in targets:
            yield replace(case, name=f"{case.name}, int8", weights="int8", target=targets[case.name])


FLOAT32 = (
    Case("GPT-2 124M, batch 1, prompt 32 + 128", "gpt2", 1, 32, 128, 1, 1.5),
    Case("GPT-2 124M, batch 8, prompt 32 + 128", "gpt2", 8, 32, 128, 1, 1.3, rounds=2),
    Case("T5-small, beam 4, batch 1, 128 -> 64", "t5-small", 1, 128, 64, 4, 1.5),
    Case("T5-small, beam 4, batch 8, 128 -> 64", "t5-small", 8, 128, 64, 4, 1.5, rounds=2),
    Case("BART-base, beam 4, batch 1, 128 -> 64", "bart-base", 1, 128, 64, 4, 1.5),
    Case("BART-base, beam 4, batch 8, 128 -> 64", "bart-base", 8, 128, 64, 4, 1.5, rounds=2),
    Case("GPT-2 124M, first token after 1,023", "gpt2", 1, 1023, 1, 1, 1.1, rounds=5),
)
INT8 = {
    case.name: 2.0 if case.name.startswith("GPT-2 124M, batch 1") else case.target
    for case in FLOAT32
    if case.new > 1
}
CASES = {
    case.name: case
    for case in (
        *with_int8(FLOAT32, INT8),
        Case("BERT-base, forward 8x128, int8", "bert-base", 8, 128, 0, 1, 1.5, "int8", 7),
    )
}
