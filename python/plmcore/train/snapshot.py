from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping

import numpy as np

from plmcore import _core
from plmcore._core import Tensor, ops
from plmcore.train.interrupts import deferred


class Snapshot:
    """Copies of a run's tensors, in memory that is kept from one to the next.

    The system hands out new memory when it is first written to, which takes several times as long as the
    copying and, on a busy machine, many seconds. prepare() has a thread ask for it while the first steps are
    computed; the first copy would wait otherwise.
    """

    def __init__(self) -> None:
        self._memory: dict[Hashable, Tensor] = {}
        self._thread: threading.Thread | None = None

    @property
    def prepared(self) -> bool:
        return self._thread is not None

    def prepare(self, tensors: Mapping[Hashable, Tensor]) -> None:
        """Memory for tensors of these shapes.

        Those of other types than float32 are copied into what the allocator gives.
        """
        shapes = {name: tuple(t.shape) for name, t in tensors.items() if t.dtype == "float32"}

        def body() -> None:
            for name, shape in shapes.items():
                array = np.empty(shape, np.float32)
                array.fill(0)  # touches every page, without the interpreter's lock
                self._memory[name] = _core.from_dlpack(array)

        with deferred():
            self._thread = threading.Thread(target=body, name="plmcore snapshot", daemon=True)
            self._thread.start()

    def take(self, tensors: Mapping[Hashable, Tensor]) -> dict[Hashable, Tensor]:
        """The tensors as they are now. What was taken before is overwritten."""
        if self._thread is not None:
            self._thread.join()
        return {name: self._copy(name, t) for name, t in tensors.items()}

    def _copy(self, name: Hashable, tensor: Tensor) -> Tensor:
        memory = self._memory.get(name)
        if memory is None or memory.dtype != tensor.dtype or memory.shape != tensor.shape:
            memory = self._memory[name] = ops.copy(tensor).to("cpu")
        else:
            _core.assign(memory, tensor)
        return memory
