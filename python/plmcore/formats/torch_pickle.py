"""The pickles inside files of torch.save, read by a machine that can build maps of tensors and plain data.

Python's own unpickler calls what a file names. This one calls nothing: a global that is not in GLOBALS, an
opcode that torch.save does not write, or a value in the wrong place is a FormatError, and what it builds is
bounded by the bytes it has read.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from typing import Any

from plmcore._core import FormatError

# Of one pickle; that of a large model has less than one megabyte. A byte can make an empty list, which has
# 56.
MAX_BYTES, MAX_STEPS = 64 << 20, 4_000_000
# A list that is kept can be used again and again: what goes over its members has few of them, or takes them
# from the file.
MAX_ARGUMENTS, MAX_AXES = 8, 64


@dataclasses.dataclass(frozen=True)
class StorageType:
    dtype: str


@dataclasses.dataclass(frozen=True)
class Storage:
    """Elements start ... start + count of the stored block `key`, which has `whole` elements."""

    key: str
    dtype: str
    whole: int
    start: int
    count: int


@dataclasses.dataclass(frozen=True)
class TensorRecord:
    """A view of a storage; offset and strides in elements. Checked by whoever lays it over the bytes."""

    storage: Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


@dataclasses.dataclass
class Fields:
    """An object of a known class as the map of its attributes; `name` is that of the class."""

    name: str
    values: dict[str | int, Any] = dataclasses.field(default_factory=dict)


def rebuild_tensor(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: bool = False,
    hooks: object = None,
    metadata: object = None,
) -> TensorRecord:
    if not isinstance(storage, Storage):
        raise FormatError(f"a tensor needs a storage, got a {type(storage).__name__}")
    sizes = isinstance(size, tuple) and isinstance(stride, tuple) and len(size) == len(stride) <= MAX_AXES
    if not sizes or not all(type(n) is int and n >= 0 for n in (offset, *size, *stride)):
        raise FormatError(
            "a tensor's offset, sizes and strides must be integers from 0, as many sizes as strides"
        )
    return TensorRecord(storage, offset, size, stride)


def rebuild_parameter(tensor: Any, requires_grad: bool = False, hooks: object = None) -> TensorRecord:
    if not isinstance(tensor, TensorRecord):
        raise FormatError(f"a parameter needs a tensor, got a {type(tensor).__name__}")
    return tensor


def ordered_dict(pairs: Any = ()) -> dict[str | int, Any]:
    """Python 2 wrote the members as a list of [key, value]."""
    if not isinstance(pairs, (list, tuple)) or not all(
        isinstance(p, (list, tuple)) and len(p) == 2 for p in pairs
    ):
        raise FormatError("an OrderedDict is made of pairs")
    return {_key(k): v for k, v in pairs}


@dataclasses.dataclass(frozen=True)
class Allowed:
    """A function of this file under the name that a pickle knows it by."""

    name: str
    call: Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class DataClass:
    """A class whose objects are read as their attributes: nothing of it is run."""

    name: str


def listed(items: Any = ()) -> list[Any]:
    if not isinstance(items, (list, tuple)):
        raise FormatError("a set is made of a list")
    return list(items)


GLOBALS: dict[tuple[str, str], Allowed | StorageType | DataClass] = {
    ("collections", "OrderedDict"): Allowed("OrderedDict", ordered_dict),
    ("torch._utils", "_rebuild_tensor_v2"): Allowed("_rebuild_tensor_v2", rebuild_tensor),
    ("torch._utils", "_rebuild_parameter"): Allowed("_rebuild_parameter", rebuild_parameter),
    # of fairseq's checkpoints: the settings, and the meters of its training
    ("argparse", "Namespace"): DataClass("argparse.Namespace"),
    ("fairseq.meters", "AverageMeter"): DataClass("fairseq.meters.AverageMeter"),
    ("fairseq.meters", "TimeMeter"): DataClass("fairseq.meters.TimeMeter"),
    ("fairseq.meters", "StopwatchMeter"): DataClass("fairseq.meters.StopwatchMeter"),
    # of DeepSpeed's: the names of sparse tensors
    ("builtins", "set"): Allowed("set", listed),
    ("__builtin__", "set"): Allowed("set", listed),
    ("torch", "DoubleStorage"): StorageType("float64"),
    ("torch", "FloatStorage"): StorageType("float32"),
    ("torch", "HalfStorage"): StorageType("float16"),
    ("torch", "BFloat16Storage"): StorageType("bfloat16"),
    ("torch", "LongStorage"): StorageType("int64"),
    ("torch", "IntStorage"): StorageType("int32"),
    ("torch", "CharStorage"): StorageType("int8"),
    ("torch", "ByteStorage"): StorageType("uint8"),
    ("torch", "BoolStorage"): StorageType("bool"),
}


def _key(key: object) -> str | int:
    if not isinstance(key, (str, int)):
        raise FormatError(f"a key must be a text or an integer, got a {type(key).__name__}")
    if isinstance(key, int) and not -(2**63) <= key < 2**63:
        raise FormatError("a key must be an integer of 64 bits, got a larger one")
    return key


def load(data: Any, start: int = 0, storages: dict[str, Storage] | None = None) -> tuple[object, int]:
    """The value of the pickle that begins at `start` of a bytes-like object, and where it ends; `storages`
    gets those that it names, by key.

    FormatError otherwise.
    """
    machine = _Machine(data, start, {} if storages is None else storages)
    try:
        return machine.run(), machine.at
    except FormatError as e:
        raise FormatError(f"pickle, byte {machine.last}: {e}") from None


class _Machine:
    def __init__(self, data: Any, start: int, storages: dict[str, Storage]):
        self.data, self.at, self.last = data, start, start
        self.storages = storages
        self.end = min(len(data), start + MAX_BYTES)
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks under each mark
        self.memo: dict[int, object] = {}
        self.copied = 0  # members of lists that became dicts

    def run(self) -> object:
        for _ in range(MAX_STEPS):
            self.last = self.at
            opcode = self.take(1)
            if opcode == b".":
                return self.pop()
            step = OPCODES.get(opcode)
            if step is None:
                raise FormatError(
                    f"the opcode {opcode!r} is not one that torch.save writes for a map of tensors"
                )
            step(self)
        raise FormatError(f"it has more than {MAX_STEPS} steps")

    # ---- bytes ----
    def take(self, n: int) -> bytes:
        if n > self.end - self.at:
            raise FormatError(
                "it is cut off" if self.end == len(self.data) else f"it has more than {MAX_BYTES} bytes"
            )
        self.at += n
        return bytes(self.data[self.at - n : self.at])

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        end = self.data.find(b"\n", self.at, min(self.end, self.at + 256))
        if end < 0:
            self.take(256)  # cut off, unless the name is that long
            raise FormatError("the name of a global is too long")
        text = self.take(end - self.at)
        self.take(1)
        return _text(text)

    # ---- the stack ----
    def push(self, value: object) -> None:
        self.stack.append(value)

    def pop(self) -> object:
        if not self.stack:
            raise FormatError("it takes a value that is not there")
        return self.stack.pop()

    def top(self, kind: type) -> object:
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise FormatError(f"it adds to a {kind.__name__} that is not there")
        return self.stack[-1]

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[Any]:
        if not self.below:
            raise FormatError("it goes back to a mark that is not there")
        items, self.stack = self.stack, self.below.pop()
        return items

    def tuple_of(self, n: int) -> None:
        items = [self.pop() for _ in range(n)]
        self.push(tuple(reversed(items)))

    # ---- the memo ----
    def put(self, index: int) -> None:
        value = self.pop()
        self.memo[index] = value
        self.push(value)

    def get(self, index: int) -> None:
        if index not in self.memo:
            raise FormatError(f"it uses the value {index} before it is there")
        self.push(self.memo[index])

    # ---- building ----
    def set_items(self, items: list[Any]) -> None:
        target: Any = self.top(dict)
        if len(items) % 2:
            raise FormatError("a key has no value")
        for key, value in zip(items[::2], items[1::2]):
            target[_key(key)] = value

    def set_item(self) -> None:
        value, key = self.pop(), self.pop()
        self.set_items([key, value])

    def append(self) -> None:
        value = self.pop()
        target: Any = self.top(list)
        target.append(value)

    def extend(self, items: list[Any]) -> None:
        target: Any = self.top(list)
        target.extend(items)

    def find_global(self, module: object, name: object) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise FormatError("the name of a global must be a text")
        known = GLOBALS.get((module, name))
        if known is None:
            raise FormatError(
                f"it uses the global {f'{module}.{name}'[:200]!r}; only those that rebuild tensors are "
                f"allowed. Nothing was run. "
                "If you trust the file, load it with torch and save its state_dict as safetensors"
            )
        self.push(known)

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        self.find_global(module, name)

    def reduce(self) -> None:
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, Allowed) or not isinstance(arguments, tuple):
            raise FormatError("it calls what is not a function")
        if len(arguments) > MAX_ARGUMENTS:
            raise FormatError(f"it calls {function.name} with {len(arguments)} arguments")
        self.copied += sum(len(a) for a in arguments if isinstance(a, (list, tuple)))
        if self.copied > self.at:
            raise FormatError("it makes more of its lists than the file has bytes")
        try:
            self.push(function.call(*arguments))
        except TypeError:
            raise FormatError(f"it calls {function.name} with {len(arguments)} arguments") from None

    def new(self) -> None:
        arguments, kind = self.pop(), self.pop()
        if not isinstance(kind, DataClass) or arguments != ():
            raise FormatError("it makes an object of what is not a known class")
        self.push(Fields(kind.name))

    def build(self) -> None:
        """Gives an object its attributes. A state dict carries versions of its modules as one; nothing here
        needs them.
        """
        state = self.pop()
        if not (self.stack and isinstance(self.stack[-1], Fields)):
            self.top(dict)
        elif not isinstance(state, dict):
            raise FormatError(f"the attributes of {self.stack[-1].name} must be a map")
        else:
            self.stack[-1].values = state

    def persistent(self) -> None:
        """("storage", type, key, device, elements), in old files with a view (key, start, elements) of it or
        None after that.
        """
        pid = self.pop()
        view = None
        if isinstance(pid, tuple) and len(pid) == 6:
            *pid, view = pid
        match pid:
            case ("storage", StorageType() as kind, str() as key, str(), int() as whole) if whole >= 0:
                pass
            case _:
                raise FormatError("it refers to something outside that is not a storage of a known type")
        self.storages[key] = Storage(key, kind.dtype, whole, 0, whole)
        match view:
            case None:
                self.push(self.storages[key])
            case (str(), int() as start, int() as count) if (
                start >= 0 and count >= 0 and start + count <= whole
            ):
                self.push(Storage(key, kind.dtype, whole, start, count))
            case _:
                raise FormatError(f"the view of the storage {key[:100]!r} does not lie in it")

    def protocol(self) -> None:
        version = self.number("<B")
        if not 2 <= version <= 5:
            raise FormatError(f"it has protocol {version}, this version of plmcore reads 2 to 5")

    def long(self) -> None:
        self.push(int.from_bytes(self.take(self.number("<B")), "little", signed=True))


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FormatError("a text is not valid UTF-8") from None


M = _Machine
OPCODES: dict[bytes, Callable[[_Machine], None]] = {
    b"\x80": M.protocol,
    b"\x95": lambda m: m.number("<Q"),  # FRAME: a hint for readers from a stream
    b"(": M.mark,
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"J": lambda m: m.push(m.number("<i")),
    b"K": lambda m: m.push(m.number("<B")),
    b"M": lambda m: m.push(m.number("<H")),
    b"\x8a": M.long,
    b"G": lambda m: m.push(m.number(">d")),
    b"X": lambda m: m.push(_text(m.take(m.number("<I")))),
    b"\x8c": lambda m: m.push(_text(m.take(m.number("<B")))),
    b"\x8d": lambda m: m.push(_text(m.take(m.number("<Q")))),
    b"T": lambda m: m.push(_text(m.take(m.number("<I")))),  # text of Python 2
    b"U": lambda m: m.push(_text(m.take(m.number("<B")))),
    b"}": lambda m: m.push({}),
    b"]": lambda m: m.push([]),
    b")": lambda m: m.push(()),
    b"t": lambda m: m.push(tuple(m.since_mark())),
    b"\x85": lambda m: m.tuple_of(1),
    b"\x86": lambda m: m.tuple_of(2),
    b"\x87": lambda m: m.tuple_of(3),
    b"s": M.set_item,
    b"u": lambda m: m.set_items(m.since_mark()),
    b"a": M.append,
    b"e": lambda m: m.extend(m.since_mark()),
    b"q": lambda m: m.put(m.number("<B")),
    b"r": lambda m: m.put(m.number("<I")),
    b"\x94": lambda m: m.put(len(m.memo)),
    b"h": lambda m: m.get(m.number("<B")),
    b"j": lambda m: m.get(m.number("<I")),
    b"c": lambda m: m.find_global(m.line(), m.line()),
    b"\x93": M.stack_global,
    b"R": M.reduce,
    b"\x81": M.new,
    b"b": M.build,
    b"Q": M.persistent,
}
