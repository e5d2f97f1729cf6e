"""Losses, composed of ops. Each takes reduction "mean", "sum" or "none"."""

from __future__ import annotations

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.runtime.kinds import checked


@checked
def cross_entropy(
    logits: Tensor,
    labels: Tensor,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    smoothing: str = "pytorch",
    reduction: str = "mean",
) -> Tensor:
    """-log softmax(logits)[label].  logits [..., V]; labels int [...] or float [..., V].

    The mean is over labels other than ignore_index.
    """
    return ops.cross_entropy(
        logits,
        labels,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        smoothing=smoothing,
        reduction=reduction,
    )


@checked
def mse(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(x - target)^2."""
    d = ops.sub(x, target)
    return _reduce(ops.mul(d, d), reduction)


@checked
def binary_cross_entropy_with_logits(logits: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """-target log s - (1 - target) log(1 - s), s = sigmoid(logits),
    as max(x, 0) - x * target + log(1 + e^-|x|), which never overflows.
    """
    tail = ops.log(ops.affine(ops.exp(ops.affine(ops.abs(logits), -1.0, 0.0)), 1.0, 1.0))
    return _reduce(ops.add(ops.sub(ops.relu(logits), ops.mul(logits, target)), tail), reduction)


@checked
def kl_div(
    logits: Tensor, target_logits: Tensor, temperature: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """KL(p || q), p = softmax(target_logits / temperature), q = softmax(logits / temperature), one value per
    row.  [..., V] -> [...]

    The mean is over rows. Distillation multiplies it by temperature^2, which keeps the size of the gradients.
    """
    log_q = ops.log_softmax(ops.affine(logits, 1 / temperature, 0.0))
    log_p = ops.log_softmax(ops.affine(target_logits, 1 / temperature, 0.0))
    return _reduce(ops.sum(ops.mul(ops.exp(log_p), ops.sub(log_p, log_q)), [-1]), reduction)


def _reduce(x: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return x
    if reduction not in ("mean", "sum"):
        raise ArgumentError(f"reduction must be 'mean', 'sum' or 'none', got '{reduction}'")
    return ops.mean(x) if reduction == "mean" else ops.sum(x)
