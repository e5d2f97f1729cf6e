from collections.abc import Sequence

from numpy.typing import ArrayLike as TensorLike
from numpy.typing import DTypeLike

from . import ops as ops
from . import safetensors as safetensors

class ShapeError(ValueError):
    pass

class ArgumentError(ValueError):
    pass

class IndexRangeError(IndexError):
    pass

class DTypeError(TypeError):
    pass

class DeviceError(RuntimeError):
    pass

class GraphError(RuntimeError):
    pass

class TraceError(RuntimeError):
    pass

class FormatError(ValueError):
    pass

class OutOfMemoryError(MemoryError):
    pass

class Dim:
    """
    A size that has no number yet: a symbol of a trace (B, T), or an expression over symbols (P+T).
    """

    def __init__(self, text: str) -> None: ...
    def __repr__(self) -> str: ...
    def __hash__(self) -> int: ...
    def __add__(self, arg: int | Dim, /) -> int | Dim: ...
    def __radd__(self, arg: int | Dim, /) -> int | Dim: ...
    def __sub__(self, arg: int | Dim, /) -> int | Dim: ...
    def __rsub__(self, arg: int | Dim, /) -> int | Dim: ...
    def __mul__(self, arg: int | Dim, /) -> int | Dim: ...
    def __rmul__(self, arg: int | Dim, /) -> int | Dim: ...
    def __floordiv__(self, arg: int | Dim, /) -> int | Dim: ...
    def __eq__(self, arg: int | Dim, /) -> bool: ...
    def __ne__(self, arg: int | Dim, /) -> bool: ...
    def __lt__(self, arg: int | Dim, /) -> bool: ...
    def __le__(self, arg: int | Dim, /) -> bool: ...
    def __gt__(self, arg: int | Dim, /) -> bool: ...
    def __ge__(self, arg: int | Dim, /) -> bool: ...
    def __index__(self) -> int: ...
    def __bool__(self) -> bool: ...

class Tensor:
    """A contiguous array on one device, with automatic gradients."""

    def __init__(
        self, data: object, dtype: object | None = None, device: object | None = None, requires_grad: bool = False
    ) -> None:
        """
        From a number, nested lists or a NumPy array, which is copied; Python's floats become float32. From a tensor: the same memory, outside the graph.
        """

    @property
    def shape(self) -> Sequence[int | Dim]:
        """The sizes as a tuple."""

    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int | Dim:
        """The number of elements."""

    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def requires_grad(self) -> bool: ...
    @requires_grad.setter
    def requires_grad(self, arg: bool, /) -> None: ...
    @property
    def grad(self) -> object:
        """The gradient that backward() collected; None when there is none."""

    @grad.setter
    def grad(self, value: object | None) -> None: ...
    def zero_grad(self) -> None:
        """Forgets the gradient."""

    @property
    def is_leaf(self) -> bool: ...
    @property
    def is_row_sparse(self) -> bool: ...
    @property
    def rows(self) -> object:
        """Of a row-sparse gradient: the numbers of its rows, int64 [n]."""

    @property
    def values(self) -> Tensor:
        """Of a row-sparse gradient: its rows, [n, ...]."""

    @staticmethod
    def row_sparse(rows: Tensor, values: Tensor, V: int | Dim) -> Tensor:
        """
        A gradient of [V, ...] that is zero but in these rows. rows int64 [n], increasing; values [n, ...].
        """

    def backward(self, gradient: Tensor | None | None = None, retain_graph: bool = False) -> None:
        """
        Adds the gradients of this tensor to the .grad of every leaf it was computed from.
        """

    def detach(self) -> Tensor:
        """The same memory outside the graph."""

    def __bool__(self) -> bool: ...
    def __float__(self) -> float: ...
    def __int__(self) -> object: ...
    def __index__(self) -> object: ...
    def __repr__(self) -> str: ...
    def __reduce__(self) -> object: ...
    def __add__(self, other: TensorLike, /) -> Tensor: ...
    def __radd__(self, other: TensorLike, /) -> Tensor: ...
    def __sub__(self, other: TensorLike, /) -> Tensor: ...
    def __rsub__(self, other: TensorLike, /) -> Tensor: ...
    def __mul__(self, other: TensorLike, /) -> Tensor: ...
    def __rmul__(self, other: TensorLike, /) -> Tensor: ...
    def __truediv__(self, other: TensorLike, /) -> Tensor: ...
    def __rtruediv__(self, other: TensorLike, /) -> Tensor: ...
    def __pow__(self, other: TensorLike, /) -> Tensor: ...
    def __rpow__(self, other: TensorLike, /) -> Tensor: ...
    def __matmul__(self, other: TensorLike, /) -> Tensor: ...
    def __rmatmul__(self, other: TensorLike, /) -> Tensor: ...
    def __and__(self, other: TensorLike, /) -> Tensor: ...
    def __rand__(self, other: TensorLike, /) -> Tensor: ...
    def __or__(self, other: TensorLike, /) -> Tensor: ...
    def __ror__(self, other: TensorLike, /) -> Tensor: ...
    def __lt__(self, other: TensorLike, /) -> Tensor: ...
    def __le__(self, other: TensorLike, /) -> Tensor: ...
    def __gt__(self, other: TensorLike, /) -> Tensor: ...
    def __ge__(self, other: TensorLike, /) -> Tensor: ...
    def __eq__(self, other: object, /) -> Tensor: ...
    def __ne__(self, other: object, /) -> Tensor: ...
    def __hash__(self) -> int: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __getitem__(self, key: object, /) -> Tensor: ...
    def __setitem__(self, key: object | None, value: object | None) -> None: ...
    def __iter__(self) -> object: ...
    def __len__(self) -> int: ...
    def reshape(self, *shape: int | Dim | Sequence[int | Dim]) -> Tensor:
        """Another shape over the same memory; one size may be -1."""

    def transpose(self, *axes: int | Sequence[int]) -> Tensor:
        """The axes in another order; reversed without arguments."""

    def permute(self, *axes: int | Sequence[int]) -> Tensor:
        """The axes in another order."""

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""

    def swapaxes(self, a: int, b: int) -> Tensor: ...
    def flatten(self, start: int = 0, end: int = -1) -> Tensor:
        """The axes from start to end as one."""

    def squeeze(self, axis: object | None = None) -> Tensor:
        """Without an axis of size 1; without all of them when none is named."""

    def unsqueeze(self, axis: int) -> Tensor:
        """With a new axis of size 1."""

    def broadcast_to(self, *shape: int | Dim | Sequence[int | Dim]) -> Tensor: ...
    def split(self, sizes: Sequence[int | Dim], axis: int = 0) -> Sequence[Tensor | None]: ...
    def astype(self, dtype: DTypeLike) -> Tensor:
        """In another dtype; the tensor itself when it has it."""

    def to(self, target: object) -> Tensor:
        """On another device, or in another dtype."""

    def copy(self) -> Tensor:
        """In new memory; gradients pass."""

    def clone(self) -> Tensor:
        """In new memory; gradients pass."""

    def sum(self, axis: int | Sequence[int] | None | None = None, keepdims: bool = False) -> Tensor: ...
    def mean(self, axis: int | Sequence[int] | None | None = None, keepdims: bool = False) -> Tensor: ...
    def max(self, axis: object | None = None, keepdims: bool = False) -> Tensor: ...
    def min(self, axis: object | None = None, keepdims: bool = False) -> Tensor: ...
    def argmax(self, axis: object | None = None, keepdims: bool = False) -> Tensor: ...
    def cumsum(self, axis: int) -> Tensor: ...
    def softmax(self) -> Tensor:
        """Over the last axis."""

    def log_softmax(self) -> Tensor:
        """Over the last axis."""

    def exp(self) -> Tensor: ...
    def log(self) -> Tensor: ...
    def sqrt(self) -> Tensor: ...
    def rsqrt(self) -> Tensor: ...
    def abs(self) -> Tensor: ...
    def tanh(self) -> Tensor: ...
    def sigmoid(self) -> Tensor: ...
    def relu(self) -> Tensor: ...
    def silu(self) -> Tensor: ...
    def gelu(self, tanh_form: bool = False) -> Tensor: ...

    __array_priority__: int = 1000

    __array_ufunc__: None = None

    def numpy(self) -> object:
        """The values as a NumPy array; shares memory on the CPU."""

    def __array__(self, dtype: object | None = None, copy: object | None = None) -> object: ...
    def tolist(self) -> object:
        """The values as nested lists of Python numbers."""

    def item(self) -> object:
        """The value of a tensor with one element, as a Python number."""

    def __dlpack__(
        self,
        *,
        stream: object | None = None,
        max_version: object | None = None,
        dl_device: object | None = None,
        copy: object | None = None,
    ) -> object: ...
    def __dlpack_device__(self) -> tuple: ...

def keep_packed(weight: Tensor) -> None:
    """
    Lets linear keep a copy of this weight in the layout of its inner loop between calls without gradients, until its values change.
    """

def assign(target: Tensor, source: Tensor) -> None:
    """
    Copies the values of `source`, in any float dtype, into the memory of `target`.
    """

def from_numpy(array: object) -> Tensor:
    """
    A tensor over the memory of a C-contiguous NumPy array, which it keeps alive. A read-only array gives a read-only tensor.
    """

def from_dlpack(array: object) -> Tensor:
    """
    A tensor over the memory of an array of another library; one that is not contiguous is copied.
    """

def num_threads() -> int: ...
def set_num_threads(n: int) -> None:
    """Threads of the pool; results do not depend on it."""

def manual_seed(seed: int) -> None: ...
def random_state() -> list[int]: ...
def set_random_state(seed: int, offset: int) -> None: ...
def memory_stats(device: object | None = None) -> dict: ...
def reset_peak_memory(device: object | None = None) -> None: ...
def set_memory_cap(bytes: int, device: object | None = None) -> None:
    """MemoryError above this many bytes; 0 lifts the cap."""

def trim_memory(device: object | None = None) -> None:
    """Gives cached memory back to the system."""

def isa() -> str:
    """The instruction set of the CPU kernels in use."""

def blas() -> str: ...
def synchronize(device: object) -> None:
    """Waits for what a device has queued."""

def device_problem(device: str) -> str:
    """Why a device cannot be used; empty when it can."""

def op_names() -> list[str]: ...
def has_kernel(op: str, device: object | None = None) -> bool:
    """Whether the op runs on this device."""

def is_differentiable(op: str) -> bool: ...
def grad_enabled() -> bool:
    """Whether ops on this thread are recorded for gradients."""

def set_grad_enabled(on: bool) -> bool:
    """Recording of gradients on this thread; returns what it was."""

def grad(
    outputs: Sequence[Tensor | None],
    inputs: Sequence[Tensor | None],
    seeds: Sequence[Tensor | None] = (),
    retain_graph: bool = False,
) -> Sequence[Tensor | None]: ...
def recompute(
    body: object, inputs: Sequence[Tensor | None], params: Sequence[Tensor | None]
) -> Sequence[Tensor | None]:
    """
    body(inputs), a function of a tuple of tensors to another, without keeping what it computes inside.
    """

class Program:
    """A traced list of op calls; runs at any sizes that its guards allow."""

    def run(self, inputs: Sequence[Tensor | None]) -> Sequence[Tensor | None]: ...
    def __call__(self, **kwargs) -> object:
        """
        Runs the program; inputs by name. One output comes as it is, several as a tuple, named ones as a dict.
        """

    def __repr__(self) -> str: ...
    def __len__(self) -> int: ...
    @property
    def inputs(self) -> list: ...
    @property
    def outputs(self) -> list: ...

class Model:
    """The programs of one file, with their weights."""

    @staticmethod
    def load(path: str) -> Model: ...
    @staticmethod
    def save(path: str, programs: Sequence[tuple[str, Program]]) -> None: ...
    @property
    def names(self) -> list[str]: ...
    def program(self, name: str) -> Program: ...

class Tracer:
    def __init__(self) -> None: ...
    def input(self, name: str, shape: Sequence[int | Dim], dtype: object) -> Tensor: ...
    def name_constant(self, tensor: Tensor, name: str) -> bool: ...
    def stop(self) -> None:
        """Ends the trace without a program."""

    def finish(self, names: Sequence[str], outputs: Sequence[Tensor | None]) -> Program: ...

class ParamState:
    """One trainable tensor and what its optimiser remembers of it."""

    def __init__(self, param: Tensor) -> None: ...
    @property
    def param(self) -> Tensor: ...
    @property
    def m(self) -> object: ...
    @m.setter
    def m(self, value: Tensor | None | None) -> None: ...
    @property
    def v(self) -> object: ...
    @v.setter
    def v(self, value: Tensor | None | None) -> None: ...
    @property
    def step(self) -> int: ...
    @step.setter
    def step(self, arg: int, /) -> None: ...

def step_all(
    optimiser: str,
    states: list,
    lr: float,
    beta1: float = 0.0,
    beta2: float = 0.0,
    eps: float = 0.0,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    nesterov: bool = False,
    power: float = 0.8,
    floor: float = 0.001,
    threshold: float = 1.0,
    relative: bool = True,
    lazy: bool = False,
    scale: Tensor | None | None = None,
) -> None:
    """Steps every parameter that has a gradient."""

def gradients(states: list) -> Sequence[Tensor | None]:
    """The gradients that the parameters have."""

def ema_all(averages: Sequence[Tensor | None], params: Sequence[Tensor | None], decay: float) -> None:
    """ema_step for each pair."""

def zero_grad(states: list) -> None: ...
