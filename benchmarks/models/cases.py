"""The cases: sizes of the models, inputs, and the targets the project has set itself. Needs numpy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FASTEST = "fastest peer"
FORWARD_PEERS = ("transformers", "onnxruntime", "ctranslate2")
PACKAGES = {  # peer -> what it needs: module, and the name pip knows
    "transformers": {"torch": "torch==2.13.0", "transformers": "transformers", "safetensors": "safetensors"},
    "onnxruntime": {"onnxruntime": "onnxruntime", "onnx": "onnx", "onnxscript": "onnxscript"},
    "ctranslate2": {"ctranslate2": "ctranslate2"},
}


@dataclass(frozen=True)
class Size:
    """A model that transformers writes with random weights."""

    architecture: str
    config: dict
    layers: tuple[str, ...]  # the keys that --layers changes


def bert(**changes) -> dict:
    return {"model_type": "bert", "vocab_size": 30522} | changes


SIZES = {
    "bert-base": Size("BertModel", bert(), ("num_hidden_layers",)),
    "minilm": Size(
        "BertModel",
        bert(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536),
        ("num_hidden_layers",),
    ),
    "bert-base-mlm": Size("BertForMaskedLM", bert(), ("num_hidden_layers",)),
    "bert-base-50k": Size("BertModel", bert(vocab_size=50_000), ("num_hidden_layers",)),
    "gpt2": Size("GPT2LMHeadModel", {"model_type": "gpt2"}, ("n_layer",)),
    "t5-small": Size(
        "T5ForConditionalGeneration",
        {
            "model_type": "t5",
            "vocab_size": 32128,
            "d_model": 512,
            "d_kv": 64,
            "d_ff": 2048,
            "num_layers": 6,
            "num_heads": 8,
            "decoder_start_token_id": 0,
            "pad_token_id": 0,
            "eos_token_id": 1,
        },
        ("num_layers", "num_decoder_layers"),
    ),
}

DROPOUT = {  # the keys that hold a model's dropout
    "bert": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
    "gpt2": ("resid_pdrop", "embd_pdrop", "attn_pdrop"),
    "t5": ("dropout_rate",),
}


@dataclass(frozen=True)
class Target:
    """At least `ratio` times the speed of a peer, which is a library or the fastest one."""

    peer: str
    ratio: float


@dataclass(frozen=True)
class Forward:
    name: str
    size: str
    lengths: tuple[int, ...]  # of the sequences of the batch
    targets: tuple[Target, ...]
    tolerance: float = 1e-4

    peers = FORWARD_PEERS

    @property
    def padded(self) -> float:
        """Padded tokens / real tokens."""
        return len(self.lengths) * max(self.lengths) / sum(self.lengths)

    def inputs(self) -> dict[str, np.ndarray]:
        """input_ids and attention_mask [B, T], int64; padding at the end, with id 0."""
        mask = np.arange(max(self.lengths)) < np.asarray(self.lengths)[:, None]
        ids = np.random.default_rng(5).integers(1000, 30_000, mask.shape)
        return {"input_ids": np.where(mask, ids, 0), "attention_mask": mask.astype(np.int64)}


@dataclass(frozen=True)
class Train:
    name: str
    size: str
    batch: int
    length: int
    dropout: float
    targets: tuple[Target, ...]
    memory: float | None = None  # our peak over torch's, at most
    target_length: int | None = None  # of the decoder
    tolerance: float = 1e-4  # losses before any step
    step_tolerance: float = 2e-3  # losses after steps, which amplify rounding: Adam divides small by small

    peers = ("transformers",)

    def inputs(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(5)
        ids = rng.integers(1000, 30_000, (self.batch, self.length))
        if self.target_length:
            return {"input_ids": ids, "labels": rng.integers(1000, 30_000, (self.batch, self.target_length))}
        if SIZES[self.size].config["model_type"] == "bert":  # 15 % of the positions are labelled, and masked
            chosen = rng.random(ids.shape) < 0.15
            return {"input_ids": np.where(chosen, 103, ids), "labels": np.where(chosen, ids, -100)}
        return {"input_ids": ids, "labels": ids.copy()}

    def changes(self) -> dict[str, float]:
        return dict.fromkeys(DROPOUT[SIZES[self.size].config["model_type"]], self.dropout)


@dataclass(frozen=True)
class Load:
    name: str
    size: str
    targets: tuple[Target, ...]
    tolerance: float = 1e-4

    peers = ("transformers",)

    def inputs(self) -> dict[str, np.ndarray]:
        return {"input_ids": np.random.default_rng(5).integers(1000, 30_000, (1, 128))}


Case = Forward | Train | Load


def forward_cases():
    fastest = lambda ratio: (Target(FASTEST, ratio),)
    yield Forward("BERT-base 1x128", "bert-base", (128,), fastest(1.35))
    yield Forward("BERT-base 8x128", "bert-base", (128,) * 8, fastest(1.25))
    yield Forward("BERT-base 32x128", "bert-base", (128,) * 32, fastest(1.25))
    lengths = tuple(int(n) for n in np.random.default_rng(3).integers(16, 129, 32))
    mixed = Forward("BERT-base 32 of 16..128", "bert-base", lengths, ())
    targets = (Target("ctranslate2", 1.2), Target("transformers", 1.2 * mixed.padded))
    yield Forward(mixed.name, mixed.size, lengths, targets)
    yield Forward("MiniLM 1x128", "minilm", (128,), fastest(1.3))
    yield Forward("MiniLM 8x128", "minilm", (128,) * 8, fastest(1.3))


def train_cases():
    for dropout in (0.1, 0.0):
        end = f"dropout {dropout:g}"
        faster = lambda ratio: (Target("transformers", ratio),)
        yield Train(f"train BERT-base MLM 8x128 {end}", "bert-base-mlm", 8, 128, dropout, faster(1.4), 0.8)
        yield Train(f"train GPT-2 4x256 {end}", "gpt2", 4, 256, dropout, faster(1.35), 0.7)
        yield Train(f"train T5-small 8x128+64 {end}", "t5-small", 8, 128, dropout, faster(1.4), None, 64)


def load_cases():
    yield Load("load BERT 500 MB", "bert-base-50k", (Target("transformers", 2.0),))
    yield Load("load GPT-2 500 MB", "gpt2", (Target("transformers", 2.0),))


CASES: dict[str, Case] = {c.name: c for make in (forward_cases, train_cases, load_cases) for c in make()}
