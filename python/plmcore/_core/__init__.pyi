import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Any, Protocol, Self, SupportsIndex, TypeAlias

import numpy
from numpy.typing import ArrayLike, DTypeLike, NDArray
from typing_extensions import CapsuleType

from . import ops as ops
from . import safetensors as safetensors
from . import text as text
from . import vectors as vectors

__version__: str
Index: TypeAlias = SupportsIndex | slice | EllipsisType | Tensor | NDArray[Any] | list[Any] | None
TensorLike: TypeAlias = Tensor | NDArray[Any] | numpy.number[Any] | numpy.bool_ | list[Any]
Operand: TypeAlias = TensorLike | float | Dim

class SupportsDLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

class ShapeError(ValueError):
    """Shapes that do not fit an op."""

class ArgumentError(ValueError):
    """
    A value that a function does not take. The message names the value and says what to do.
    """

class IndexRangeError(IndexError):
    """An index outside of its range."""

class DTypeError(TypeError):
    """A dtype that an op does not take."""

class DeviceError(RuntimeError):
    """A device that is missing, cannot be used, or reports a failure."""

class GraphError(RuntimeError):
    """A gradient that cannot be computed from what was recorded."""

class TraceError(RuntimeError):
    """Code that cannot be traced, for instance a branch on a symbolic size."""

class FormatError(ValueError):
    """
    A file that is damaged or of another format. The message names the place.
    """

class OutOfMemoryError(MemoryError):
    """A request for more memory than the machine or the cap allows."""

class BusyError(RuntimeError):
    """A session that another thread is using."""

class KindError(ArgumentError, TypeError):
    """
    An argument of a wrong kind. The message names the function, the argument and both kinds.
    """

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
    def __eq__(self, arg: int | Dim, /) -> bool: ...  # type: ignore[override]
    def __ne__(self, arg: int | Dim, /) -> bool: ...  # type: ignore[override]
    def __lt__(self, arg: int | Dim, /) -> bool: ...
    def __le__(self, arg: int | Dim, /) -> bool: ...
    def __gt__(self, arg: int | Dim, /) -> bool: ...
    def __ge__(self, arg: int | Dim, /) -> bool: ...
    def __index__(self) -> int: ...
    def __bool__(self) -> bool: ...

class Tensor:
    """A contiguous array on one device, with automatic gradients."""

    def __init__(
        self,
        data: Tensor | ArrayLike,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: bool = False,
    ) -> None:
        """
        From a number, nested lists or a NumPy array, which is copied; Python's floats become float32. From a tensor: the same memory, outside the graph.
        """

    @property
    def shape(self) -> tuple[int | Dim, ...]:
        """The sizes as a tuple."""

    @property
    def ndim(self) -> int:
        """The number of axes."""

    @property
    def size(self) -> int | Dim:
        """The number of elements."""

    @property
    def dtype(self) -> str:
        """The name of the dtype: "float32", "int64", ..."""

    @property
    def device(self) -> str:
        """The name of the device: "cpu", "cuda", "cuda:1"."""

    @property
    def nbytes(self) -> int:
        """The size of the data in bytes."""

    @property
    def requires_grad(self) -> bool:
        """Whether backward() computes a gradient for this tensor."""

    @requires_grad.setter
    def requires_grad(self, arg: bool, /) -> None: ...
    def requires_grad_(self, on: bool = True) -> Self:
        """Sets requires_grad; returns the tensor."""

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward() collected; None when there is none."""

    @grad.setter
    def grad(self, value: TensorLike | None) -> None: ...
    def zero_grad(self) -> None:
        """Forgets the gradient."""

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made this tensor."""

    @property
    def is_row_sparse(self) -> bool:
        """Whether this is a gradient that holds some rows only."""

    @property
    def rows(self) -> Tensor | None:
        """Of a row-sparse gradient: the numbers of its rows, int64 [n]."""

    @property
    def values(self) -> Tensor:
        """Of a row-sparse gradient: its rows, [n, ...]."""

    @staticmethod
    def row_sparse(rows: Tensor, values: Tensor, V: int | Dim) -> Tensor:
        """
        A gradient of [V, ...] that is zero but in these rows. rows int64 [n], increasing; values [n, ...].
        """

    def backward(self, gradient: Tensor | None = None, retain_graph: bool = False) -> None:
        """
        Adds the gradients of this tensor to the .grad of every leaf it was computed from.
        """

    def detach(self) -> Tensor:
        """The same memory outside the graph."""

    def __bool__(self) -> bool: ...
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __repr__(self) -> str: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __add__(self, other: Operand, /) -> Tensor: ...
    def __radd__(self, other: Operand, /) -> Tensor: ...
    def __sub__(self, other: Operand, /) -> Tensor: ...
    def __rsub__(self, other: Operand, /) -> Tensor: ...
    def __mul__(self, other: Operand, /) -> Tensor: ...
    def __rmul__(self, other: Operand, /) -> Tensor: ...  # type: ignore[misc]
    def __truediv__(self, other: Operand, /) -> Tensor: ...
    def __rtruediv__(self, other: Operand, /) -> Tensor: ...
    def __pow__(self, other: Operand, /) -> Tensor: ...
    def __rpow__(self, other: Operand, /) -> Tensor: ...
    def __matmul__(self, other: Operand, /) -> Tensor: ...
    def __rmatmul__(self, other: Operand, /) -> Tensor: ...
    def __and__(self, other: Operand, /) -> Tensor: ...
    def __rand__(self, other: Operand, /) -> Tensor: ...
    def __or__(self, other: Operand, /) -> Tensor: ...
    def __ror__(self, other: Operand, /) -> Tensor: ...
    def __lt__(self, other: Operand, /) -> Tensor: ...  # type: ignore[misc]
    def __le__(self, other: Operand, /) -> Tensor: ...  # type: ignore[misc]
    def __gt__(self, other: Operand, /) -> Tensor: ...  # type: ignore[misc]
    def __ge__(self, other: Operand, /) -> Tensor: ...  # type: ignore[misc]
    def __eq__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __hash__(self) -> int: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __getitem__(self, key: Index | tuple[Index, ...], /) -> Tensor:
        """
        A part of the tensor, indexed as in NumPy. Slices of the first axis share its memory.
        """

    def __iter__(self) -> Iterator[Tensor]: ...
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

    def swapaxes(self, a: int, b: int) -> Tensor:
        """Two axes exchanged."""

    def flatten(self, start: int = 0, end: int = -1) -> Tensor:
        """The axes from start to end as one."""

    def squeeze(self, axis: int | None = None) -> Tensor:
        """Without an axis of size 1; without all of them when none is named."""

    def unsqueeze(self, axis: int) -> Tensor:
        """With a new axis of size 1."""

    def broadcast_to(self, *shape: int | Dim | Sequence[int | Dim]) -> Tensor:
        """Repeated to a larger shape by NumPy's rules."""

    def split(self, sizes: Sequence[int | Dim], axis: int = 0) -> tuple[Tensor, ...]:
        """Parts of these sizes along an axis."""

    def astype(self, dtype: DTypeLike) -> Tensor:
        """In another dtype; the tensor itself when it has it."""

    def to(self, target: DTypeLike) -> Tensor:
        """On another device, or in another dtype."""

    def copy(self) -> Tensor:
        """In new memory; gradients pass."""

    def clone(self) -> Tensor:
        """In new memory; gradients pass."""

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """The sum over axes; over all without `axis`."""

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """The mean over axes; over all without `axis`."""

    def max(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The largest value along an axis; of all without `axis`."""

    def min(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The smallest value along an axis; of all without `axis`."""

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The index of the largest value along an axis; of all without `axis`."""

    def cumsum(self, axis: int) -> Tensor:
        """Sums of the values up to each place along an axis."""

    def softmax(self) -> Tensor:
        """Over the last axis."""

    def log_softmax(self) -> Tensor:
        """Over the last axis."""

    def exp(self) -> Tensor:
        """e^x."""

    def log(self) -> Tensor:
        """The natural logarithm."""

    def sqrt(self) -> Tensor:
        """The square root."""

    def rsqrt(self) -> Tensor:
        """1 / sqrt(x)."""

    def abs(self) -> Tensor:
        """|x|."""

    def tanh(self) -> Tensor:
        """tanh(x)."""

    def sigmoid(self) -> Tensor:
        """1 / (1 + e^-x)."""

    def relu(self) -> Tensor:
        """max(x, 0)."""

    def silu(self) -> Tensor:
        """x * sigmoid(x)."""

    def gelu(self, tanh_form: bool = False) -> Tensor:
        """x Phi(x), or its tanh approximation."""
    __array_priority__: int = 1000
    __array_ufunc__: None = None

    def numpy(self) -> NDArray[Any]:
        """The values as a NumPy array; shares memory on the CPU."""

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]: ...
    def tolist(self) -> Any:
        """The values as nested lists of Python numbers."""

    def item(self) -> float:
        """The value of a tensor with one element, as a Python number."""

    def __dlpack__(
        self,
        *,
        stream: object | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def keep_layouts(weight: Tensor) -> None:
    """
    Lets the device keep this weight in the layouts of its products between calls without gradients, until its values change.
    """

class Packing(enum.Enum):
    usual = 0
    found = 1

def set_packing(packing: Packing) -> Packing:
    """
    Whether products of this thread make packed copies of weights (usual), or take those that are there and make none (found). -> what was set before
    """

def assign(target: Tensor, source: Tensor) -> None:
    """
    Copies the values of `source`, in any float dtype, into the memory of `target`.
    """

def from_numpy(array: NDArray[Any]) -> Tensor:
    """
    A tensor over the memory of a C-contiguous NumPy array, which it keeps alive. A read-only array gives a read-only tensor.
    """

def from_dlpack(array: SupportsDLPack | CapsuleType) -> Tensor:
    """
    A tensor over the memory of an array of another library; one that is not contiguous is copied.
    """

def num_threads() -> int:
    """The number of threads of the pool."""

def set_num_threads(n: int) -> None:
    """Threads of the pool; results do not depend on it."""

def manual_seed(seed: int) -> None:
    """Seeds the random numbers of the calling thread."""

def random_state() -> list[int]:
    """The [seed, offset] of the calling thread's random numbers."""

def set_random_state(seed: int, offset: int) -> None:
    """Continues the calling thread's random numbers from random_state()."""

def memory_stats(device: str | None = None) -> dict[str, int]:
    """
    Memory of a device in bytes: in_use, peak, reserved, cap; and the counts allocations, system_allocations.
    """

def reset_peak_memory(device: str | None = None) -> None:
    """Sets the peak of memory_stats to the memory in use."""

def set_memory_cap(bytes: int, device: str | None = None) -> None:
    """MemoryError above this many bytes; 0 lifts the cap."""

def trim_memory(device: str | None = None) -> None:
    """Gives cached memory back to the system."""

def available_memory() -> int:
    """How many bytes the system could still give to this process."""

def isa() -> str:
    """The instruction set of the CPU kernels in use."""

def multiplies_bytes() -> bool:
    """Whether products with int8 weights multiply bytes: AVX512-VNNI."""

def blas() -> str: ...
def synchronize(device: str) -> None:
    """Waits for what a device has queued."""

def device_waits(device: object) -> int:
    """
    How often the host has waited for a device: reads of its values, and synchronize().
    """

def device_problem(device: str) -> str:
    """Why a device cannot be used; empty when it can."""

def is_dtype(target: object) -> bool:
    """
    Whether what .to() is given means a dtype; else it is the name of a device.
    """

def op_names() -> list[str]: ...
def has_kernel(op: str, device: str | None = None) -> bool:
    """Whether the op runs on this device."""

def is_differentiable(op: str) -> bool: ...
def grad_enabled() -> bool:
    """Whether ops on this thread are recorded for gradients."""

def set_grad_enabled(on: bool) -> bool:
    """Recording of gradients on this thread; returns what it was."""

def rounds_activations() -> bool:
    """Whether what this thread records is kept in bfloat16."""

def set_rounds_activations(on: bool) -> bool:
    """Keeping activations in bfloat16 on this thread; returns what it was."""

def grad(
    outputs: Sequence[Tensor | None],
    inputs: Sequence[Tensor | None],
    seeds: Sequence[Tensor | None] = (),
    retain_graph: bool = False,
) -> tuple[Tensor | None, ...]: ...
def recompute(
    body: Callable[[tuple[Tensor, ...]], Sequence[Tensor]],
    inputs: Sequence[Tensor | None],
    params: Sequence[Tensor | None],
) -> tuple[Tensor, ...]:
    """
    body(inputs), a function of a tuple of tensors to another, without keeping what it computes inside.
    """

class Program:
    """A traced list of op calls; runs at any sizes that its guards allow."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def run(self, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
        """Runs the program; inputs in their order, outputs as a list."""

    def __call__(self, **kwargs: TensorLike | float) -> Any:
        """
        Runs the program; inputs by name. One output comes as it is, several as a tuple, named ones as a dict.
        """

    def to(self, device: object) -> None:
        """Moves the weights to a device; the program runs there from now on."""

    @property
    def device(self) -> str:
        """The name of the device of its weights."""

    @staticmethod
    def load(path: object, *, threads: int = 0, mapped: bool = True) -> object:
        """Opens a model file for use: a plmcore.program.session.Session."""

    def __repr__(self) -> str: ...
    def __len__(self) -> int: ...
    @property
    def inputs(self) -> list[tuple[str, tuple[int | Dim, ...], str]]:
        """(name, shape, dtype) of each input."""

    @property
    def outputs(self) -> list[tuple[str, tuple[int | Dim, ...], str]]:
        """(name, shape, dtype) of each output."""

class Model:
    """The programs of one file, with their weights."""

    @staticmethod
    def load(path: str, mapped: bool = True) -> Model: ...
    @staticmethod
    def save(
        path: str,
        programs: Sequence[tuple[str, Program]],
        card: str = "",
        tensors: Sequence[tuple[str, Tensor]] = [],
    ) -> None:
        """
        Writes programs to a file, with what it says of the model, as JSON, and the tensors of that.
        """

    def verify(self) -> None:
        """Reads all weights; FormatError where a checksum differs."""

    def to(self, device: object) -> None:
        """Moves the weights of all programs to a device."""

    @property
    def names(self) -> list[str]: ...
    @property
    def card(self) -> Card:
        """What the file says of the model."""

    def has(self, name: str) -> bool:
        """Whether there is such a program; "main" is a model's forward pass."""

    def program(self, name: str) -> Program: ...

class Tracer:
    def __init__(self) -> None: ...
    def input(
        self, name: str, shape: int | Dim | Sequence[int | Dim], dtype: DTypeLike, device: str | None = None
    ) -> Tensor: ...
    def name_constant(self, tensor: Tensor, name: str) -> bool: ...
    def stop(self) -> None:
        """Ends the trace without a program."""

    def finish(self, names: Sequence[str], outputs: Sequence[Tensor | None]) -> Program: ...

class Decoder:
    """Runs the entry points of an exported model for a search."""

    def __init__(
        self, model: Model, prompts: Sequence[Sequence[int]], sources: Sequence[Sequence[int]] = []
    ) -> None: ...
    def __call__(self, search: Search) -> Tensor:
        """The logits that a search asks for."""

class EarlyStopping(enum.Enum):
    no = 0
    yes = 1
    never = 2

class SearchOptions:
    """The rules of a search; docs/generation.md."""

    def __init__(self) -> None: ...
    @property
    def max_new_tokens(self) -> int: ...
    @max_new_tokens.setter
    def max_new_tokens(self, arg: int, /) -> None: ...
    @property
    def min_new_tokens(self) -> int: ...
    @min_new_tokens.setter
    def min_new_tokens(self, arg: int, /) -> None: ...
    @property
    def eos(self) -> list[int]: ...
    @eos.setter
    def eos(self, arg: Sequence[int], /) -> None: ...
    @property
    def returns(self) -> int: ...
    @returns.setter
    def returns(self, arg: int, /) -> None: ...
    @property
    def beams(self) -> int: ...
    @beams.setter
    def beams(self, arg: int, /) -> None: ...
    @property
    def groups(self) -> int: ...
    @groups.setter
    def groups(self, arg: int, /) -> None: ...
    @property
    def diversity(self) -> float: ...
    @diversity.setter
    def diversity(self, arg: float, /) -> None: ...
    @property
    def length_penalty(self) -> float: ...
    @length_penalty.setter
    def length_penalty(self, arg: float, /) -> None: ...
    @property
    def gnmt(self) -> bool: ...
    @gnmt.setter
    def gnmt(self, arg: bool, /) -> None: ...
    @property
    def early_stopping(self) -> EarlyStopping: ...
    @early_stopping.setter
    def early_stopping(self, arg: EarlyStopping, /) -> None: ...
    @property
    def sample(self) -> bool: ...
    @sample.setter
    def sample(self, arg: bool, /) -> None: ...
    @property
    def temperature(self) -> float: ...
    @temperature.setter
    def temperature(self, arg: float, /) -> None: ...
    @property
    def top_p(self) -> float: ...
    @top_p.setter
    def top_p(self, arg: float, /) -> None: ...
    @property
    def typical_p(self) -> float: ...
    @typical_p.setter
    def typical_p(self, arg: float, /) -> None: ...
    @property
    def top_k(self) -> int: ...
    @top_k.setter
    def top_k(self, arg: int, /) -> None: ...
    @property
    def seeds(self) -> list[int]: ...
    @seeds.setter
    def seeds(self, arg: Sequence[int], /) -> None: ...
    @property
    def repetition_penalty(self) -> float: ...
    @repetition_penalty.setter
    def repetition_penalty(self, arg: float, /) -> None: ...
    @property
    def no_repeat_ngram(self) -> int: ...
    @no_repeat_ngram.setter
    def no_repeat_ngram(self, arg: int, /) -> None: ...
    @property
    def bad_words(self) -> list[list[int]]: ...
    @bad_words.setter
    def bad_words(self, arg: Sequence[Sequence[int]], /) -> None: ...
    @property
    def forced_first(self) -> list[int]: ...
    @forced_first.setter
    def forced_first(self, arg: Sequence[int], /) -> None: ...
    @property
    def forced_last(self) -> list[int]: ...
    @forced_last.setter
    def forced_last(self, arg: Sequence[int], /) -> None: ...
    @property
    def token_scores(self) -> bool: ...
    @token_scores.setter
    def token_scores(self, arg: bool, /) -> None: ...
    @property
    def trace(self) -> bool: ...
    @trace.setter
    def trace(self, arg: bool, /) -> None: ...
    def set_allowed(self, allowed: Callable[[int, list[int]], Sequence[int]]) -> None:
        """allowed(prompt, ids) -> the tokens that may follow."""

    def set_stop(self, stop: Callable[[int, list[int]], bool]) -> None:
        """stop(prompt, ids) -> whether the sequence is complete."""

class Completion:
    """Tokens after a prompt, with their score."""

    @property
    def tokens(self) -> list[int]: ...
    @property
    def score(self) -> float: ...
    @property
    def token_scores(self) -> list[float]: ...

class Fate(enum.Enum):
    kept = 0
    dropped = 1
    finished = 2

class Considered:
    """A continuation that a step of a search looked at."""

    @property
    def group(self) -> int: ...
    @property
    def parent(self) -> int: ...
    @property
    def token(self) -> int: ...
    @property
    def score(self) -> float: ...
    @property
    def fate(self) -> Fate: ...
    @property
    def final_score(self) -> float: ...

class Search:
    """Says which tokens a model runs next, and takes the logits."""

    def __init__(self, prompts: Sequence[Sequence[int]], options: SearchOptions) -> None: ...
    @property
    def done(self) -> bool: ...
    @property
    def steps(self) -> int: ...
    @property
    def live(self) -> Tensor | None: ...
    @property
    def parents(self) -> Tensor | None: ...
    @property
    def tokens(self) -> Tensor | None: ...
    @property
    def prompts(self) -> list[int]: ...
    def accept(self, logits: Tensor) -> None:
        """The logits of the run that was asked for, [L, n, V] or [L * n, V]."""

    def result(self, prompt: int) -> list[Completion]:
        """The sequences of a prompt, the best first."""

    def trace(self, prompt: int) -> list[list[Considered]]:
        """What each step looked at, with the option trace."""

class Options(SearchOptions):
    """The rules of Session.generate: a search's, and lengths."""

    def __init__(self) -> None: ...
    @property
    def max_length(self) -> int: ...
    @max_length.setter
    def max_length(self, arg: int, /) -> None: ...
    @property
    def min_length(self) -> int: ...
    @min_length.setter
    def min_length(self, arg: int, /) -> None: ...
    @property
    def seed(self) -> int: ...
    @seed.setter
    def seed(self, arg: int, /) -> None: ...

class Card:
    """What a model file says of its model; docs/program-format.md."""

    @property
    def family(self) -> str: ...
    @property
    def head(self) -> str: ...
    @property
    def main(self) -> str: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def ids(self) -> dict[str, list[int]]: ...
    @property
    def labels(self) -> list[str]: ...
    @property
    def problem(self) -> str: ...
    @property
    def pooled_length(self) -> int:
        """The most tokens of a text that is pooled; 0: any number."""

    @property
    def tokenizer(self) -> str:
        """The kind of the tokenizer; empty: none."""

    @property
    def generation(self) -> Options:
        """A copy of the defaults, to change."""

class Classified:
    """A label with its probabilities, or the value of a regression."""

    @property
    def label(self) -> str: ...
    @property
    def probability(self) -> float: ...
    @property
    def probabilities(self) -> list[float]: ...
    @property
    def value(self) -> float: ...

class Span:
    """Tokens from begin to end, both included."""

    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def score(self) -> float: ...

class Session:
    """
    One user of a model file. A second thread that calls it gets a BusyError.
    """

    def __init__(self, model: Model, threads: int = 0) -> None: ...
    def run(self, entry: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Runs an entry point; tensors by name."""

    def encode(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]] = []) -> Tensor:
        """A vector for each row, pooled as the file says."""

    def classify(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]] = []) -> list[Classified]:
        """A label for each row."""

    def tag(
        self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]] = []
    ) -> list[list[Classified]]:
        """A label for each token of each row."""

    def answer(
        self,
        ids: Sequence[Sequence[int]],
        types: Sequence[Sequence[int]] = [],
        first: Sequence[int] = [],
        best: int = 1,
        longest: int = 30,
    ) -> list[list[Span]]:
        """The best spans of each row."""

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        options: Options,
        stream: object | None = None,
        begun: Sequence[Sequence[int]] = [],
    ) -> list[list[Completion]]:
        """The sequences that follow each prompt."""

class Text:
    """The tokenizer of a model file."""

    def __init__(self, model: Model) -> None: ...
    @staticmethod
    def serves(model: Model) -> bool:
        """Whether its kind is served."""

    def encode(self, text: str, max_length: int = 0) -> tuple[list[int], list[int]]:
        """(ids, types) with the special tokens."""

    def encode_pair(self, text: str, pair: str, max_length: int = 0) -> tuple[list[int], list[int]]:
        """(ids, types) of two texts."""

    def ids(self, text: str) -> list[int]:
        """Without special tokens."""

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str: ...
    def token(self, id: int) -> str: ...
    @property
    def size(self) -> int: ...

class ParamState:
    """One trainable tensor and what its optimiser remembers of it."""

    def __init__(self, param: Tensor) -> None: ...
    @property
    def param(self) -> Tensor: ...
    @property
    def m(self) -> Tensor | None: ...
    @m.setter
    def m(self, value: Tensor | None) -> None: ...
    @property
    def v(self) -> Tensor | None: ...
    @v.setter
    def v(self, value: Tensor | None) -> None: ...
    @property
    def step(self) -> int: ...
    @step.setter
    def step(self, arg: int, /) -> None: ...

def step_all(
    optimiser: str, states: list[ParamState], options: dict[str, float], scale: Tensor | None = None
) -> None:
    """
    Steps every parameter that has a gradient. Options that are not given have the optimiser's defaults.
    """

def gradients(states: list[ParamState]) -> tuple[Tensor, ...]:
    """The gradients that the parameters have."""

def ema_all(averages: Sequence[Tensor | None], params: Sequence[Tensor | None], decay: float) -> None:
    """ema_step for each pair."""

def zero_grad(states: list[ParamState]) -> None: ...
