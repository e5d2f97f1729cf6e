"""What is timed: names -> functions that prepare a case and return the call, whose results are tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plmcore as plm
from plmcore import ops

Call = Callable[[], list[plm.Tensor]]

BERT = dict(model_type="bert", vocab_size=30522)
GPT2 = dict(model_type="gpt2", vocab_size=50257)


def tensor(*shape: int, grad: bool = False) -> plm.Tensor:
    values = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
    return plm.Tensor(values, requires_grad=grad)


def ids(rows: int, length: int, below: int) -> np.ndarray:
    return np.random.default_rng(length).integers(0, below, (rows, length))


def op(call: Callable[..., plm.Tensor], *shapes: tuple[int, ...], times: int = 1) -> Callable[[], Call]:
    def prepared() -> Call:
        inputs = [tensor(*shape) for shape in shapes]

        def run() -> list[plm.Tensor]:
            for _ in range(times - 1):
                call(*inputs)
            return [call(*inputs)]

        return run

    return prepared


def with_gradient(call: Callable[..., plm.Tensor], *shapes: tuple[int, ...]) -> Callable[[], Call]:
    def prepared() -> Call:
        inputs = [tensor(*shape, grad=True) for shape in shapes]

        def run() -> list[plm.Tensor]:
            for x in inputs:
                x.grad = None
            ops.sum(call(*inputs)).backward()
            return [x.grad for x in inputs]

        return run

    return prepared


def forward(config: dict[str, Any], head: str, rows: int, length: int) -> Callable[[], Call]:
    def prepared() -> Call:
        lm, batch = plm.from_config(config, head), ids(rows, length, config["vocab_size"])
        lm.eval()

        def run() -> list[plm.Tensor]:
            with plm.no_grad():
                return [lm(input_ids=batch).logits]

        return run

    return prepared


def step(config: dict[str, Any], head: str, rows: int, length: int) -> Callable[[], Call]:
    """Forward, backward and AdamW."""

    def prepared() -> Call:
        lm, batch = plm.from_config(config, head), ids(rows, length, config["vocab_size"])
        lm.train()
        optimiser = plm.optim.AdamW(lm.parameters(), lr=1e-4)

        def run() -> list[plm.Tensor]:
            optimiser.zero_grad()
            loss = lm(input_ids=batch, labels=batch).loss
            loss.backward()
            optimiser.step()
            return [loss]

        return run

    return prepared


def decoding(config: dict[str, Any], beams: int, new: int) -> Callable[[], Call]:
    def prepared() -> Call:
        lm, prompt = plm.from_config(config, "causal-lm"), ids(1, 16, config["vocab_size"])
        lm.eval()

        def run() -> list[plm.Tensor]:
            found = lm.generate(prompt, max_new_tokens=new, num_beams=beams, eos_token_id=None)
            return [plm.Tensor(np.asarray(found))]

        return run

    return prepared


HEADS = (8, 128, 12, 64)
CASES: dict[str, Callable[[], Call]] = {
    "add of 16 numbers, 1000 times": op(ops.add, (16,), (16,), times=1000),
    "linear 1x768x3072, 20 times": op(ops.linear, (1, 768), (3072, 768), times=20),
    "linear 128x768x768": op(ops.linear, (128, 768), (768, 768)),
    "linear 1024x768x3072": op(ops.linear, (1024, 768), (3072, 768)),
    "linear 128x768x768 +grad": with_gradient(ops.linear, (128, 768), (768, 768)),
    "layer_norm 1024x768": op(ops.layer_norm, (1024, 768), (768,), (768,)),
    "layer_norm 1024x768 +grad": with_gradient(ops.layer_norm, (1024, 768), (768,), (768,)),
    "softmax 1024x5000": op(ops.softmax, (1024, 5000)),
    "gelu 1024x3072": op(ops.gelu, (1024, 3072)),
    "attention 8x128x12x64": op(ops.attention, HEADS, HEADS, HEADS),
    "attention 8x128x12x64 +grad": with_gradient(ops.attention, HEADS, HEADS, HEADS),
    "BERT-base forward 8x128": forward(BERT, "masked-lm", 8, 128),
    "GPT-2 forward 4x256": forward(GPT2, "causal-lm", 4, 256),
    "BERT, 4 layers, step 8x128": step(BERT | dict(num_hidden_layers=4), "masked-lm", 8, 128),
    "GPT-2, 4 layers, step 4x128": step(GPT2 | dict(n_layer=4), "causal-lm", 4, 128),
    "GPT-2, 4 layers, 32 tokens": decoding(GPT2 | dict(n_layer=4), 1, 32),
    "GPT-2, 4 layers, beam 4": decoding(GPT2 | dict(n_layer=4), 4, 32),
}
