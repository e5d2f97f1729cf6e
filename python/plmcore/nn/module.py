from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from plmcore._core import ArgumentError, KindError, Tensor, assign, is_dtype
from plmcore.nn.modes import infers
from plmcore.nn.parameter import Buffer, Parameter, QuantizedWeight


class Module:
    """The base of layers and models. Parameters and sub-modules are its attributes.

    A subclass sets attributes in __init__ and computes in __call__. Neither needs super().
    """

    fixed: str | None = None  # what keeps a layer's weights from being trained or converted: "int8 weights"

    if TYPE_CHECKING:  # each subclass has its own

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def members(self) -> Iterator[tuple[str, Any]]:
        """Attributes in the order they were set; a container lists its items by number."""
        return iter(list(vars(self).items()))

    def children(self) -> Iterator[tuple[str, Module]]:
        """Pairs of name and module, of the modules directly inside this one."""
        for name, value in self.members():
            if isinstance(value, Module):
                yield name, value
            elif isinstance(value, (list, tuple)) and any(isinstance(v, (Module, Parameter)) for v in value):
                raise KindError(
                    f"{type(self).__name__}.{name} is a plain {type(value).__name__} of modules, whose "
                    f"parameters would be missed; use nn.ModuleList"
                )

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all below it, as (dotted name, module); the name of the first is empty."""
        yield prefix, self
        for name, child in self.children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module and all modules inside it."""
        return (module for _, module in self.named_modules())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """(dotted name, parameter); one that is shared comes once, under its first name."""
        return self._named(Parameter)

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """Pairs of name and buffer, of this module and all inside it."""
        return self._named(Buffer)

    def _named(self, kind: type | tuple[type, ...]) -> Iterator[tuple[str, Any]]:
        seen = set()
        for prefix, module in self.named_modules():
            for name, value in module.members():
                if isinstance(value, kind) and id(value) not in seen:
                    seen.add(id(value))
                    yield (f"{prefix}.{name}" if prefix else name), value

    def parameters(self) -> list[Parameter]:
        """All parameters, each once."""
        return [p for _, p in self.named_parameters()]

    def num_parameters(self) -> int:
        """The number of values in all parameters."""
        return sum(p.size for _, p in self._named((Parameter, QuantizedWeight)))

    # ---- state ----

    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and buffers by name.

        The tensors share memory with the module: np.savez(path, **module.state_dict()).
        """
        return {name: p.detach() for name, p in self._named((Parameter, Buffer))}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> tuple[list[str], list[str]]:
        """Copies values in by name, from tensors or arrays of any float dtype.

        Returns the names that were missing and those that were not expected, which strict=True does not
        allow. Nothing is changed when an error is raised.
        """
        own = dict(self._named((Parameter, Buffer)))
        missing, unexpected = [n for n in own if n not in state], [n for n in state if n not in own]
        shapes = [
            f"{n} {list(state[n].shape)}, expected {list(p.shape)}"
            for n, p in own.items()
            if n in state and tuple(state[n].shape) != tuple(p.shape)
        ]
        whole = [
            f"{n} {state[n].dtype}"
            for n, p in own.items()
            if n in state and "float" in p.dtype and "float" not in str(state[n].dtype)
        ]
        problems = [("wrong shape", shapes), ("not floating point", whole)] + (
            [("missing", missing), ("unexpected", unexpected)] if strict else []
        )
        if any(names for _, names in problems):
            raise ArgumentError(
                f"{type(self).__name__}: the state does not fit; "
                + "; ".join(f"{what}: {', '.join(names)}" for what, names in problems if names)
            )
        for name, p in own.items():
            if name in state:
                assign(p, state[name])
        return missing, unexpected

    # ---- modes ----

    _training = True

    @property
    def training(self) -> bool:
        """Whether this computes as in training: its mode, but for threads inside nn.inference()."""
        return self._training and not infers()

    @training.setter
    def training(self, mode: bool) -> None:
        self._training = mode

    def train(self, mode: bool = True) -> Self:
        """Switches training mode (dropout) on or off, here and in all modules inside; returns self."""
        if mode:
            self._refuse_fixed("train", "cannot be trained")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Switches training mode off; returns self."""
        return self.train(False)

    def requires_grad_(self, on: bool = True) -> Self:
        """Freezes (False) or unfreezes (True) all parameters."""
        if on:
            self._refuse_fixed("requires_grad_", "have no gradients")
        for p in self.parameters():
            p.requires_grad = on
            if not on:
                p.grad = None
        return self

    def zero_grad(self) -> None:
        """Forgets the gradients of all parameters."""
        for p in self.parameters():
            p.grad = None

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """fn(module) for this module and all below it."""
        for module in self.modules():
            fn(module)
        return self

    @property
    def device(self) -> str:
        """The name of the device of its parameters; "cpu" where it has none."""
        return next((t.device for _, t in self._named((Parameter, Buffer))), "cpu")

    def tensors(self, arrays: Mapping[str, Any]) -> dict[str, Tensor]:
        """Inputs by name as tensors on its device."""
        device = self.device
        return {name: Tensor(array, device=device) for name, array in arrays.items()}

    def to(self, target: str) -> Self:
        """Parameters and other tensors on another device, or those of floats in another dtype, as new
        tensors: make the optimiser afterwards.
        """
        if is_dtype(target):
            self._refuse_fixed("to", "have the one dtype")
            return self._converted(lambda t: "float" in t.dtype and t.dtype != str(target), target)
        place = Tensor([], device=target).device  # "cuda:0" is "cuda"
        return self._converted(lambda t: t.device != place, place)

    def _converted(self, chosen: Callable[[Tensor], bool], target: str) -> Self:
        converted: dict[int, Tensor] = {}
        for module in self.modules():
            for name, value in list(vars(module).items()):
                if not isinstance(value, Tensor) or not chosen(value):
                    continue
                if id(value) not in converted:
                    new = value.detach().to(target)
                    if isinstance(value, Parameter):
                        new = Parameter(new, requires_grad=value.requires_grad)
                    elif isinstance(value, Buffer):
                        new = (QuantizedWeight if isinstance(value, QuantizedWeight) else Buffer)(new)
                    converted[id(value)] = new
                setattr(module, name, converted[id(value)])
        return self

    def _refuse_fixed(self, what: str, rule: str) -> None:
        for name, module in self.named_modules():
            if module.fixed:
                raise ArgumentError(
                    f"{what}: '{name}' has {module.fixed}, which {rule}; plm.load(dir, "
                    f'dtype="float32") makes ordinary weights of them'
                )

    # ---- repr ----

    def describe(self) -> str:
        """The text in the brackets of repr: the shapes of the module's own parameters."""
        return ", ".join(f"{n}: {list(v.shape)}" for n, v in self.members() if isinstance(v, Parameter))

    def __repr__(self) -> str:
        lines = [f"  ({name}): " + repr(child).replace("\n", "\n  ") for name, child in self.children()]
        head = f"{type(self).__name__}({self.describe()}"
        return head + ("\n" + "\n".join(lines) + "\n)" if lines else ")")
