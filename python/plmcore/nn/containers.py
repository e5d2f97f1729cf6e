from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, cast, overload

from plmcore._core import KindError
from plmcore.nn.module import Module


class ModuleList(Module):
    """A list of modules, named 0, 1, 2, ..."""

    def __init__(self, modules: Iterable[Module] = ()):
        self.items: list[Module] = []
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> None:
        """Adds a module at the end."""
        if not isinstance(module, Module):
            raise KindError(
                f"{type(self).__name__}: item {len(self.items)} must be a Module, got {type(module).__name__}"
            )
        self.items.append(module)

    def members(self) -> Iterator[tuple[str, Any]]:
        return ((str(i), m) for i, m in enumerate(self.items))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:  # the class of its modules is the caller's to know
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        """The module at this place."""
        return type(self)(self.items[index]) if isinstance(index, slice) else self.items[index]


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module]):
        self.items_by_name: dict[str, Module] = {}
        for name, module in modules.items():
            if not isinstance(module, Module) or not name or "." in name:
                raise KindError(
                    f"ModuleDict: {name!r} must be a name without dots, of a Module, got "
                    f"{type(module).__name__}"
                )
            self.items_by_name[name] = module

    def members(self) -> Iterator[tuple[str, Any]]:
        return iter(self.items_by_name.items())

    def keys(self) -> Iterable[str]:
        """The names, in the order they were given."""
        return self.items_by_name.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self.items_by_name.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of name and module."""
        return self.items_by_name.items()

    def __len__(self) -> int:
        return len(self.items_by_name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_by_name)

    def __contains__(self, name: object) -> bool:
        return name in self.items_by_name

    def __getitem__(self, name: str) -> Any:
        """The module of this name."""
        return self.items_by_name[name]


class Sequential(ModuleList):
    """Modules one after the other."""

    def __init__(self, *modules: Module | Iterable[Module]):
        one = len(modules) == 1 and not isinstance(modules[0], Module)
        super().__init__(cast("Iterable[Module]", modules[0] if one else modules))

    def __call__(self, x: Any) -> Any:
        """Applies the modules one after the other."""
        for module in self.items:
            x = module(x)
        return x
