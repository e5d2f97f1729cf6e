"""The cases: Transformer-XL, the adaptive softmax, GLM and MASS at the sizes of the targets, with random
weights.

Needs numpy only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

XL, TORCH, FULL, GPT2, BART = "transformers 4.35.2", "torch", "torch, all words", "GPT-2", "BART"
OTHERS = (FULL, GPT2)  # other models, whose outputs are not compared

WORDS = 267_735  # of WikiText-103
CUTOFFS = (20_000, 40_000, 200_000)
ROWS, WIDTH, DIV = 512, 1024, 4

DEEP = 6
TRANSFO_XL = dict(
    model_type="transfo-xl",
    vocab_size=20_000,
    cutoffs=[4_000, 10_000],
    div_val=2,
    d_model=512,
    d_embed=512,
    n_head=8,
    d_head=64,
    d_inner=2048,
    n_layer=DEEP,
    mem_len=64,
    clamp_len=-1,
    same_length=False,
    dropout=0.0,
    dropatt=0.0,
)
GLM = dict(
    model_type="glm",
    vocab_size=30_592,
    hidden_size=512,
    num_layers=DEEP,
    num_attention_heads=8,
    max_sequence_length=512,
    block_position_encoding=True,
    embedding_dropout_prob=0.0,
    attention_dropout_prob=0.0,
    output_dropout_prob=0.0,
)
SAME = dict(  # as GLM: plmcore's GPT-2 of that size
    model_type="gpt2",
    vocab_size=30_592,
    n_embd=512,
    n_layer=DEEP,
    n_head=8,
    n_positions=512,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
)
STACKS = dict(
    vocab_size=30_522,
    d_model=768,
    encoder_layers=6,
    decoder_layers=6,
    encoder_attention_heads=12,
    decoder_attention_heads=12,
    encoder_ffn_dim=3072,
    decoder_ffn_dim=3072,
    max_position_embeddings=512,
    dropout=0.0,
    attention_dropout=0.0,
    activation_dropout=0.0,
    scale_embedding=True,
    pad_token_id=0,
    bos_token_id=101,
    eos_token_id=102,
    decoder_start_token_id=102,
)


@dataclass(frozen=True)
class Case:
    """kind: the function of a side (worker.py) that runs it. targets: at least so many times the speed of a
    peer. memory: at most so much of the peak of the first peer. rows x length tokens; `new` are made.
    """

    name: str
    kind: str
    targets: dict[str, float]
    rows: int = 8
    length: int = 64
    new: int = 0
    mem_len: int = 64
    memory: float | None = None
    tolerance: float = 1e-4

    def ids(self, high: int) -> np.ndarray:
        return np.random.default_rng(5).integers(200, high, (self.rows, self.length))

    def blanks(self) -> dict[str, np.ndarray]:
        """Rows whose last quarter is one piece, for a mask in the middle of the text."""
        ids = self.ids(GLM["vocab_size"])
        source = self.length * 3 // 4
        column = np.arange(self.length)
        places = np.where(column < source, column, source // 2)
        blocks = np.maximum(0, column - source + 1)
        each = lambda row: np.broadcast_to(row, ids.shape).copy()
        return {
            "input_ids": ids,
            "position_ids": each(places),
            "block_position_ids": each(blocks),
            "source_lengths": np.full(self.rows, source),
            "labels": np.where(column < source, -100, np.roll(ids, -1, 1)),
        }


def words() -> dict[str, np.ndarray]:
    """Hidden states, labels as frequent as the words of a text (1 / rank), and weights of all clusters."""
    rng = np.random.default_rng(7)
    normal = lambda *shape: 0.02 * rng.standard_normal(shape, dtype=np.float32)
    found = {
        "hidden": rng.standard_normal((ROWS, WIDTH), dtype=np.float32),
        "labels": np.minimum(np.exp(rng.random(ROWS) * np.log(WORDS)).astype(np.int64), WORDS - 1),
        "others": normal(len(CUTOFFS), WIDTH),
    }
    edges = (0, *CUTOFFS, WORDS)
    for i, (low, high) in enumerate(zip(edges, edges[1:])):
        found[f"table{i}"] = normal(high - low, WIDTH // DIV**i)
        if i:
            found[f"projection{i}"] = normal(WIDTH // DIV**i, WIDTH)
    return found


CASES = {
    case.name: case
    for case in (
        Case("Transformer-XL step, 8 x 64 + 64", "xl_step", {XL: 1.4}, memory=0.7),
        Case("Transformer-XL forward, 8 x 64 + 64", "xl_forward", {XL: 1.4}),
        Case("Transformer-XL greedy, 64 tokens, memory 256", "xl_greedy", {XL: 3.0}, 1, 64, 64, 256),
        Case("adaptive softmax, 512 rows, loss and gradients", "softmax_step", {FULL: 3.0, TORCH: 1.3}),
        Case("adaptive softmax, 512 rows, loss", "softmax_loss", {FULL: 3.0, TORCH: 1.3}),
        Case("GLM step, 8 x 128, a quarter part B", "glm_step", {TORCH: 1.3, GPT2: 0.95}, 8, 128),
        Case("GLM filling, 64 + 64 tokens", "glm_fill", {GPT2: 0.95}, 1, 64, 64),
        Case("MASS step, 8 x 64", "mass_step", {BART: 0.95}, 8, 64, tolerance=2e-4),
        Case("MASS, 4 beams, 128 -> 64", "mass_beams", {BART: 0.95}, 1, 128, 64),
    )
}
