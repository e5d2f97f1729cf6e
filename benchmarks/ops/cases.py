"""The cases: what plmcore runs and what its peer runs, from the same arrays.

A case builds a zero-argument function per library. `train` cases run forward and backward; the others run
without recording gradients. `target` is the ratio (peer's time / ours) that the project has set itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Case:
    name: str
    arrays: Callable[[np.random.Generator], dict]  # inputs by name
    plm: Callable  # plm(lib, **inputs) -> outputs
    torch: Callable
    train: tuple[str, ...] = ()  # inputs that need gradients; empty: forward only
    target: float = 1.0
    share: float = 0.0  # of the machine's measured rate that must be reached
    flops: float = 0.0
    bytes: float = 0.0
    compare: bool = True  # False where the outputs are random numbers
    tolerance: float = 2e-4
    heads_first: bool = False  # torch takes and gives [B, H, T, D] for [B, T, H, D]
    iterate: bool = False  # `plm` and `torch` build a function to be timed, instead of being timed


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def linear_cases():
    for M, K, N in [
        (128, 384, 384), (128, 768, 768), (512, 768, 768), (1024, 768, 3072), (1024, 3072, 768),
        (4096, 768, 768), (512, 1024, 4096), (512, 768, 30522),
    ]:  # fmt: skip
        arrays = lambda rng, M=M, K=K, N=N: {
            "x": normal(rng, M, K),
            "w": normal(rng, N, K) / 8,
            "b": normal(rng, N),
        }  # noqa: E731
        plm = lambda lib, x, w, b: lib.ops.linear(x, w, b)  # noqa: E731
        torch = lambda lib, x, w, b: lib.nn.functional.linear(x, w, b)  # noqa: E731
        flops = 2.0 * M * K * N
        yield Case(f"linear {M}x{K}x{N}", arrays, plm, torch, flops=flops)
        yield Case(f"linear {M}x{K}x{N} +grad", arrays, plm, torch, train=("x", "w", "b"), flops=3 * flops)

    def packed(lib, x, w, b):
        weight, N = lib.ops.pack_weight(w), w.shape[0]
        return lambda: lib.ops.linear_packed(x, weight, b, N=N)

    for M, K, N in [(128, 768, 768), (128, 768, 3072), (1024, 768, 3072), (1024, 3072, 768)]:
        arrays = lambda rng, M=M, K=K, N=N: {
            "x": normal(rng, M, K),
            "w": normal(rng, N, K) / 8,
            "b": normal(rng, N),
        }  # noqa: E731
        plain = lambda lib, x, w, b: lambda: lib.nn.functional.linear(x, w, b)  # noqa: E731
        yield Case(
            f"linear packed {M}x{K}x{N}",
            arrays,
            packed,
            plain,
            target=1.05,
            flops=2.0 * M * K * N,
            iterate=True,
        )
    for M, K, N in [(128, 768, 3072), (1024, 768, 3072)]:
        arrays = lambda rng, M=M, K=K, N=N: {
            "x": normal(rng, M, K),
            "w": normal(rng, N, K) / 8,
            "b": normal(rng, N),
        }  # noqa: E731
        gelu = lambda lib, x, w, b: lib.nn.functional.gelu(lib.nn.functional.linear(x, w, b))  # noqa: E731
        fused = lambda lib, x, w, b: lib.ops.linear(x, w, b, "gelu")  # noqa: E731
        yield Case(f"linear+gelu {M}x{K}x{N}", arrays, fused, gelu, target=1.3, flops=2.0 * M * K * N)
        yield Case(
            f"linear+gelu {M}x{K}x{N} +grad",
            arrays,
            fused,
            gelu,
            train=("x", "w", "b"),
            target=1.0,
            flops=6.0 * M * K * N,
        )
    for K, N in [(1024, 24576), (4096, 6144)]:
        arrays = lambda rng, K=K, N=N: {"x": normal(rng, 1, K), "w": normal(rng, N, K)}  # noqa: E731
        yield Case(
            f"linear 1x{K}x{N}",
            arrays,
            lambda lib, x, w: lib.ops.linear(x, w),
            lambda lib, x, w: lib.nn.functional.linear(x, w),
            bytes=4.0 * K * N,
            share=0.85,
        )


def attention_cases():
    def torch_attention(lib, q, k, v, causal=False):
        return lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def plm_attention(lib, q, k, v, causal=False):
        return lib.ops.attention(q, k, v, causal=causal)

    for B, T, target in [(8, 128, 1.3), (4, 256, 1.3), (2, 512, 1.3), (1, 1024, 1.1), (1, 2048, 1.1)]:
        for causal in (False, True):
            arrays = lambda rng, B=B, T=T: {n: normal(rng, B, T, 12, 64) for n in "qkv"}  # noqa: E731
            flops = 4.0 * B * 12 * T * T * 64 / (2 if causal else 1)
            name = f"attention {B}x{T}x12x64{' causal' if causal else ''}"
            plm = lambda lib, q, k, v, c=causal: plm_attention(lib, q, k, v, c)  # noqa: E731
            torch = lambda lib, q, k, v, c=causal: torch_attention(lib, q, k, v, c)  # noqa: E731
            both = dict(arrays=arrays, plm=plm, torch=torch, heads_first=True)
            yield Case(name, **both, target=target, flops=flops)
            yield Case(name + " +grad", **both, train=("q", "k", "v"), target=1.2, flops=3.5 * flops)
    for B, S in [(1, 4096), (8, 1024)]:  # one query over a cache
        arrays = lambda rng, B=B, S=S: {
            "q": normal(rng, B, 1, 12, 64),
            "k": normal(rng, B, S, 12, 64),
            "v": normal(rng, B, S, 12, 64),
        }  # noqa: E731
        yield Case(
            f"attention decode {B}x{S}x12x64",
            arrays,
            plm_attention,
            torch_attention,
            bytes=8.0 * B * S * 768,
            heads_first=True,
        )


def row_cases():
    def both(name, arrays, plm, torch, train, bytes, target=1.0, compare=True):
        yield Case(name, arrays, plm, torch, bytes=bytes, target=target, compare=compare)
        yield Case(name + " +grad", arrays, plm, torch, train=train, target=target, compare=compare)

    for N, C in [(1024, 768), (4096, 768), (4096, 1024)]:
        norm = lambda rng, N=N, C=C: {"x": normal(rng, N, C), "g": normal(rng, C), "b": normal(rng, C)}  # noqa: E731
        size = 4.0 * N * C
        yield from both(
            f"layer_norm {N}x{C}",
            norm,
            lambda lib, x, g, b: lib.ops.layer_norm(x, g, b, 1e-5),
            lambda lib, x, g, b: lib.nn.functional.layer_norm(x, g.shape, g, b, 1e-5),
            ("x", "g", "b"),
            2 * size,
        )
        residual = lambda rng, N=N, C=C: {
            "x": normal(rng, N, C),
            "r": normal(rng, N, C),
            "g": normal(rng, C),
            "b": normal(rng, C),
        }  # noqa: E731
        yield from both(
            f"residual_layer_norm {N}x{C}",
            residual,
            lambda lib, x, r, g, b: lib.ops.residual_layer_norm(x, r, g, b, 1e-5)[0],
            lambda lib, x, r, g, b: lib.nn.functional.layer_norm(x + r, g.shape, g, b, 1e-5),
            ("x", "r", "g", "b"),
            4 * size,
            target=1.3,
        )
        yield from both(
            f"dropout {N}x{C}",
            lambda rng, N=N, C=C: {"x": normal(rng, N, C)},
            lambda lib, x: lib.ops.dropout(x, 0.1),
            lambda lib, x: lib.nn.functional.dropout(x, 0.1),
            ("x",),
            2 * size,
            compare=False,
        )
    for N, C in [(1024, 3072), (4096, 3072)]:
        for form in ("none", "tanh"):
            yield from both(
                f"gelu {form} {N}x{C}", lambda rng, N=N, C=C: {"x": normal(rng, N, C)},
                lambda lib, x, f=form: lib.ops.gelu(x, f == "tanh"),
                lambda lib, x, f=form: lib.nn.functional.gelu(x, approximate=f), ("x",), 8.0 * N * C,
            )  # fmt: skip
    for shape in [(4096, 512), (12288, 128), (512, 30522)]:
        yield from both(
            f"softmax {shape[0]}x{shape[1]}",
            lambda rng, s=shape: {"x": normal(rng, *s)},
            lambda lib, x: lib.ops.softmax(x),
            lambda lib, x: lib.nn.functional.softmax(x, -1),
            ("x",),
            8.0 * shape[0] * shape[1],
        )
    yield from both(
        "embedding 4096 of 30522x768",
        lambda rng: {"w": normal(rng, 30522, 768), "ids": rng.integers(0, 30522, 4096)},
        lambda lib, w, ids: lib.ops.embedding(w, ids),
        lambda lib, w, ids: lib.nn.functional.embedding(ids, w),
        ("w",),
        8.0 * 4096 * 768,
    )
    for N, V in [(512, 30522), (1024, 50257)]:
        logits = lambda rng, N=N, V=V: {"x": normal(rng, N, V), "y": rng.integers(0, V, N)}  # noqa: E731
        plm = lambda lib, x, y: lib.ops.cross_entropy(x, y)  # noqa: E731
        yield from both(
            f"cross_entropy {N}x{V}",
            logits,
            plm,
            lambda lib, x, y: lib.nn.functional.cross_entropy(x, y),
            ("x",),
            4.0 * N * V,
        )
        unfused = lambda lib, x, y: lib.nn.functional.nll_loss(lib.nn.functional.log_softmax(x, -1), y)  # noqa: E731
        if V > 50000:
            yield from both(
                f"cross_entropy {N}x{V} vs unfused", logits, plm, unfused, ("x",), 4.0 * N * V, target=1.3
            )


def step_cases():
    sizes = [(768, 768)] * 16 + [(3072, 768), (768, 3072)] * 3 + [(768,)] * 12

    def parameters(rng):
        return {f"p{i}": normal(rng, *s) for i, s in enumerate(sizes)} | {
            f"g{i}": normal(rng, *s) for i, s in enumerate(sizes)
        }

    def build(make):
        def ready(lib, **inputs):
            params = [inputs[f"p{i}"] for i in range(len(sizes))]
            for i, p in enumerate(params):
                p.requires_grad = True
                p.grad = inputs[f"g{i}"]
            opt = make(lib, params)

            def step():
                opt.step()
                return params

            return step

        return ready

    plm = build(lambda lib, p: lib.optim.AdamW(p, lr=1e-3, weight_decay=0.01))
    count = sum(int(np.prod(s)) for s in sizes)
    for name, target, options in [("default", 2.0, {}), ("fused", 1.0, {"fused": True})]:
        torch = build(lambda lib, p, o=options: lib.optim.AdamW(p, lr=1e-3, weight_decay=0.01, **o))
        yield Case(
            f"AdamW {count / 1e6:.0f}M vs {name}",
            parameters,
            plm,
            torch,
            target=target,
            bytes=28.0 * count,
            iterate=True,
        )

    def tiny(lib, a, b):
        add = lib.ops.add if hasattr(lib, "ops") and hasattr(lib.ops, "add") else lib.add
        return lambda: add(a, b)

    small = lambda rng: {"a": normal(rng, 4, 4), "b": normal(rng, 4, 4)}  # noqa: E731
    yield Case("tiny add 4x4 from Python", small, tiny, lambda lib, a, b: lambda: lib.add(a, b), iterate=True)

    def mlp_inputs(rng):
        return (
            {"x": normal(rng, 64, 64), "y": normal(rng, 64, 64)}
            | {n: normal(rng, 64, 64) / 8 for n in ("w1", "w2")}
            | {n: normal(rng, 64) for n in ("b1", "b2")}
        )

    def mlp(linear_relu, linear, sgd):
        def ready(lib, x, y, w1, w2, b1, b2):
            params = [w1, b1, w2, b2]
            for p in params:
                p.requires_grad = True
            opt = sgd(lib, params)

            def step():
                opt.zero_grad()
                d = linear(lib, linear_relu(lib, x, w1, b1), w2, b2) - y
                loss = (d * d).mean()
                loss.backward()
                opt.step()
                return [loss, *params]

            return step

        return ready

    yield Case(
        "MLP 64x64 training step",
        mlp_inputs,
        mlp(
            lambda lib, x, w, b: lib.ops.linear(x, w, b, "relu"),
            lambda lib, x, w, b: lib.ops.linear(x, w, b),
            lambda lib, p: lib.optim.SGD(p, lr=0.01),
        ),
        mlp(
            lambda lib, x, w, b: lib.relu(lib.nn.functional.linear(x, w, b)),
            lambda lib, x, w, b: lib.nn.functional.linear(x, w, b),
            lambda lib, p: lib.optim.SGD(p, lr=0.01),
        ),
        target=2.0,
        iterate=True,
    )


CASES = {c.name: c for make in (linear_cases, attention_cases, row_cases, step_cases) for c in make()}
