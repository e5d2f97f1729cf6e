from __future__ import annotations

from plmcore._core import Tensor, keep_packed


class Parameter(Tensor):
    """A trainable tensor; as an attribute of a Module it belongs to the module's parameters."""

    def __init__(self, data, dtype=None, requires_grad: bool = True):
        super().__init__(data, dtype=dtype, requires_grad=requires_grad)
        keep_packed(self)
