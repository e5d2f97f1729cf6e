from __future__ import annotations

from collections.abc import Callable

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.nn.module import Module

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda x: x,
    "relu": ops.relu,
    "gelu": ops.gelu,
    "gelu_tanh": lambda x: ops.gelu(x, tanh_form=True),
    "tanh": ops.tanh,
    "sigmoid": ops.sigmoid,
    "silu": ops.silu,
}


def check_activation(layer: str, name: str) -> None:
    if name not in FUNCTIONS:
        raise ArgumentError(f"{layer}: there is no activation '{name}'; one of {', '.join(FUNCTIONS)}")


class Activation(Module):
    """An activation by the name that `linear` also takes."""

    def __init__(self, name: str):
        check_activation("Activation", name)
        self.name = name

    def __call__(self, x: Tensor) -> Tensor:
        """The function of each element."""
        return FUNCTIONS[self.name](x)

    def describe(self) -> str:
        return self.name


class ReLU(Activation):
    """max(x, 0)."""

    def __init__(self) -> None:
        super().__init__("relu")


class GELU(Activation):
    """x Phi(x), or its tanh approximation."""

    def __init__(self, tanh_form: bool = False):
        super().__init__("gelu_tanh" if tanh_form else "gelu")


class Tanh(Activation):
    """tanh(x)."""

    def __init__(self) -> None:
        super().__init__("tanh")


class Sigmoid(Activation):
    """1 / (1 + e^-x)."""

    def __init__(self) -> None:
        super().__init__("sigmoid")


class SiLU(Activation):
    """x sigmoid(x)."""

    def __init__(self) -> None:
        super().__init__("silu")
