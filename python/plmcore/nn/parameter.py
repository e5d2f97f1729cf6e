from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Never

from plmcore._core import Tensor, keep_layouts
from plmcore.nn import init

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from plmcore._core import TensorLike


class Parameter(Tensor):
    """A trainable tensor; as an attribute of a Module it belongs to the module's parameters."""

    if TYPE_CHECKING:  # its sizes are numbers, also while tracing

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def size(self) -> int: ...

    def __init__(
        self, data: TensorLike | float, dtype: DTypeLike | None = None, requires_grad: bool = True
    ) -> None:
        super().__init__(data, dtype=dtype, requires_grad=requires_grad)
        keep_layouts(self)

    @staticmethod
    def new(draw: init.Init, shape: Sequence[int]) -> Parameter:
        """A parameter with drawn values; inside init.skipped() only its shape."""
        return UnsetParameter(draw, shape) if init.is_skipped() else Parameter(draw(tuple(shape)))


class Buffer(Tensor):
    """A tensor of a Module that is saved with it but not trained, and no parameter:
    a table of sinusoids, a fixed bias.
    """

    if TYPE_CHECKING:  # its sizes are numbers, also while tracing

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def size(self) -> int: ...

    @staticmethod
    def new(draw: init.Init, shape: Sequence[int]) -> Buffer:
        """A buffer with these values; inside init.skipped() only its shape."""
        return UnsetBuffer(draw, shape) if init.is_skipped() else Buffer(draw(tuple(shape)))


class QuantizedWeight(Buffer):
    """A weight of a few bits: counted as a parameter, but not trained."""


NOTHING = Tensor([])


class Unset:
    """A tensor that has a shape and no memory yet: what a model is built of for counting, or before its
    weights are loaded.

    stored_as: a dtype that loading leaves as it is, whatever the others are converted to.
    """

    kind: ClassVar[type[Tensor]]

    def __init__(self, draw: init.Init, shape: Sequence[int], stored_as: str | None = None):
        super().__init__(NOTHING)  # type: ignore[call-arg]  # of the class of tensors beside this one
        self.draw, self._shape, self.stored_as = draw, tuple(shape), stored_as

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        return 4 * self.size

    def numpy(self) -> Never:
        raise RuntimeError(
            f"a parameter {list(self._shape)} of a model built inside nn.init.skipped() has no values"
        )

    def drawn(self) -> Tensor:
        return self.kind(self.draw(self._shape))


class UnsetParameter(Unset, Parameter):
    kind = Parameter


class UnsetBuffer(Unset, Buffer):
    kind = Buffer


class UnsetQuantizedWeight(Unset, QuantizedWeight):
    kind = QuantizedWeight
