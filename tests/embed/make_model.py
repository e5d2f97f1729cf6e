"""Writes a Transformer block and a whole model with their weights, and what they give at several shapes.

python tests/embed/make_model.py FOLDER  # FOLDER/block.plm, expected.bin, gpt2.plm, logits.bin, tokens.bin
"""

import pathlib
import struct
import sys

import numpy as np
import plmcore as plm
from plmcore import Tensor, _core, ops

C, H = 96, 4
rng = np.random.default_rng(0)


def weight(*shape: int, scale: float = 0.1, shift: float = 0.0) -> Tensor:
    return Tensor((rng.standard_normal(shape) * scale + shift).astype("float32"))


WEIGHTS = {
    "norm1.gamma": weight(C, shift=1.0), "norm1.beta": weight(C),
    "attn.qkv.weight": weight(3 * C, C), "attn.qkv.bias": weight(3 * C),
    "attn.out.weight": weight(C, C), "attn.out.bias": weight(C),
    "norm2.gamma": weight(C, shift=1.0), "norm2.beta": weight(C),
    "mlp.up.weight": weight(4 * C, C), "mlp.up.bias": weight(4 * C),
    "mlp.down.weight": weight(C, 4 * C), "mlp.down.bias": weight(C),
}  # fmt: skip


def block(x: Tensor) -> Tensor:
    """A pre-norm block, causal. x [B, T, C]."""
    w = WEIGHTS
    B, T, _ = x.shape
    h = ops.layer_norm(x, w["norm1.gamma"], w["norm1.beta"])
    qkv = ops.reshape(ops.linear(h, w["attn.qkv.weight"], w["attn.qkv.bias"]), (B, T, 3, H, C // H))
    a = ops.reshape(ops.attention(qkv, causal=True), (B, T, C))
    a = ops.linear(a, w["attn.out.weight"], w["attn.out.bias"])
    h, s = ops.residual_layer_norm(a, x, w["norm2.gamma"], w["norm2.beta"])  # s = a + x
    h = ops.linear(h, w["mlp.up.weight"], w["mlp.up.bias"], activation="gelu")
    return ops.add(s, ops.linear(h, w["mlp.down.weight"], w["mlp.down.bias"]))


def reference(x: np.ndarray) -> np.ndarray:
    """The same in NumPy, float64."""
    w = {name: t.numpy().astype(np.float64) for name, t in WEIGHTS.items()}
    erf = np.vectorize(__import__("math").erf)

    def norm(x, name):
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return y * w[name + ".gamma"] + w[name + ".beta"]

    def linear(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    B, T, _ = x.shape
    q, k, v = linear(norm(x, "norm1"), "attn.qkv").reshape(B, T, 3, H, C // H).transpose(2, 0, 3, 1, 4)
    scores = np.where(np.tri(T, dtype=bool), q @ k.swapaxes(-1, -2) / np.sqrt(C // H), -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    s = x + linear((p / p.sum(-1, keepdims=True) @ v).swapaxes(1, 2).reshape(B, T, C), "attn.out")
    h = linear(norm(s, "norm2"), "mlp.up")
    return s + linear(h * 0.5 * (1 + erf(h / np.sqrt(2))), "mlp.down")


def write_block(folder: pathlib.Path) -> None:
    trace = _core.Tracer()
    x = trace.input("x", (_core.Dim("B"), _core.Dim("T"), C), "float32")
    for name, tensor in WEIGHTS.items():
        trace.name_constant(tensor, name)
    program = trace.finish(["y"], [block(x)])
    plm.export(program, folder / "block.plm")
    cases = [rng.standard_normal((b, t, C)).astype("float32") for b, t in [(2, 5), (3, 67), (1, 1)]]
    with open(folder / "expected.bin", "wb") as file:
        file.write(struct.pack("<q", len(cases)))
        for x in cases:
            y = block(Tensor(x)).numpy()
            np.testing.assert_allclose(y, reference(x), rtol=1e-4, atol=1e-4)
            file.write(struct.pack("<3q", *x.shape) + x.tobytes() + y.tobytes())


def write_model(folder: pathlib.Path) -> plm.LanguageModel:
    sizes = dict(vocab_size=211, n_embd=48, n_layer=2, n_head=4, n_positions=64)
    lm = plm.from_config({"model_type": "gpt2", **sizes}, "causal-lm").eval()
    plm.export(lm, folder / "gpt2.plm")
    with open(folder / "logits.bin", "wb") as file, plm.no_grad():
        file.write(struct.pack("<q", 2))
        for shape in [(2, 5), (3, 64)]:
            ids = rng.integers(0, 211, shape)
            logits = lm(input_ids=ids).logits.numpy()
            file.write(struct.pack("<3q", *logits.shape) + ids.tobytes() + logits.tobytes())
    return lm


def write_tokens(folder: pathlib.Path, lm: plm.LanguageModel) -> None:
    """What Python generates with the model of write_model: greedily, and with beams."""
    prompts = [rng.integers(3, 211, n) for n in (5, 1, 9)]
    packed = lambda rows: (
        struct.pack("<q", len(rows)) + b"".join(struct.pack(f"<{len(r) + 1}q", len(r), *r) for r in rows)
    )
    with open(folder / "tokens.bin", "wb") as file:
        file.write(struct.pack("<q", 2))
        for beams in (1, 4):
            options = dict(max_new_tokens=12, num_beams=beams, eos_token_id=2, pad_token_id=0)
            found = [lm.generate(p, **options)[len(p) :] for p in prompts]
            ends = [f[: np.flatnonzero(f == 2)[0] + 1] if 2 in f else f for f in found]
            file.write(struct.pack("<q", beams) + packed(prompts) + packed(ends))


if __name__ == "__main__":
    write_block(pathlib.Path(sys.argv[1]))
    lm = write_model(pathlib.Path(sys.argv[1]))
    write_tokens(pathlib.Path(sys.argv[1]), lm)
