"""Attention in NumPy, with every mask written out."""

import numpy as np


def philox(seed, block):
    """Philox 4x32-10 of core/philox.h for an array of blocks: uint32 [..., 4]."""
    block = np.asarray(block, np.uint64)
    low = np.uint64(0xFFFFFFFF)
    c = [block & low, block >> np.uint64(32), np.zeros_like(block), np.zeros_like(block)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [
            (p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0),
            p1 & low,
            (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
            p0 & low,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, -1).astype(np.uint32)


def keep_mask(rows, S, p, seed):
    """1 / (1 - p) where a weight of [rows, S] is kept: half a word each, every row from a new group of 128
    on.
    """
    i = np.arange(rows)[:, None] * (-(-S // 128) * 128) + np.arange(S)
    words = philox(seed, i // 128 * 16 + i % 16)
    half = np.take_along_axis(words, (i // 16 % 4)[..., None], -1)[..., 0] >> (i // 64 % 2 * 16).astype(
        np.uint32
    ) & np.uint32(0xFFFF)
    return (half >= int(p * 65536 + 0.5)) / (1 - p)


def visible(B, T, S, lengths=None, causal=False, band=0, stride=0, prefix=None, start=None):
    """bool [B, 1, T, S]"""
    see = np.ones((B, 1, T, S), bool)
    j = np.arange(S)
    for b in range(B):
        position = (S - T if start is None else int(start[b])) + np.arange(T)[:, None]
        if causal:
            see[b, 0] = j <= position
            if band or stride:
                near = (j > position - band) if band else np.zeros((T, S), bool)
                far = ((position - j) % stride == 0) if stride else np.zeros((T, S), bool)
                see[b, 0] &= near | far
            if prefix is not None:
                see[b, 0] |= j < prefix[b]
        if lengths is not None:
            see[b, 0] &= j < lengths[b]
    return see


def attention(
    q,
    k=None,
    v=None,
    lengths=None,
    mask=None,
    bias=None,
    offsets=None,
    causal=False,
    band=0,
    stride=0,
    prefix=None,
    start=None,
    scale=None,
    dropout=0.0,
    weights=False,
    seed=7,
):
    if k is None:
        q, k, v = np.moveaxis(q, -3, 0)
    elif v is None:
        k, v = np.moveaxis(k, -3, 0)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if offsets is not None:
        out, N, H = np.zeros_like(q), q.shape[0], q.shape[1]
        keep = keep_mask(H * N, N, dropout, seed).reshape(H, N, N) if dropout else np.ones((H, N, N))
        for b, (i, e) in enumerate(zip(offsets[:-1], offsets[1:])):
            n = e - i
            at = lambda x: x[b : b + 1] if x.shape[0] > 1 else x  # noqa: E731
            plane = lambda x, rows: None if x is None else at(x)[:, :, :rows, :n]  # noqa: E731
            see = visible(1, n, n, None, causal, band, stride, None if prefix is None else prefix[b : b + 1])
            args = (see, plane(mask, n), plane(bias, n), scale, keep[None, :, i:e, :n])
            out[i:e] = dense(q[None, i:e], k[None, i:e], v[None, i:e], *args)[0][0]
        return out
    (B, T, H, _), S = q.shape, k.shape[1]
    keep = keep_mask(B * H * T, S, dropout, seed).reshape(B, H, T, S) if dropout else 1.0
    out, w = dense(
        q, k, v, visible(B, T, S, lengths, causal, band, stride, prefix, start), mask, bias, scale, keep
    )
    return (out, w) if weights else out


def dense(q, k, v, see, mask, bias, scale, keep):
    log2e = 1 / np.log(k.dtype.type(2))  # scores are in base 2 and keys are scaled once, as in the kernel
    s = np.einsum("bthd,bshd->bhts", q, k * (scale * log2e))
    if bias is not None:
        s = s + bias * log2e
    see = np.broadcast_to(see if mask is None else see & mask, s.shape)
    s = np.where(see, s, -np.inf)
    top = np.asarray(s).max(-1, keepdims=True, initial=-np.inf)
    e = np.exp2(s - np.where(np.isfinite(top), top, 0))
    total = e.sum(-1, keepdims=True)
    w = e / np.where(total == 0, 1, total) * keep
    return np.einsum("bhts,bshd->bthd", w, v), w
