"""Hot loops as machine code: plain functions on arrays and numbers, compiled when they are first called on long ones
(and until then `interpreted`).

What was compiled is kept for later processes under a name made of its content (`content`): of the function, of all
that it calls in whatever file, of the constants that it reads, of the types that it is called with, and of what
compiled it for which processor. So a fresh checkout, another worktree and Spark's workers find what any of them
compiled, and nothing is found once anything changed on which the machine code depends.

numba is imported by the first such call, not by the import of a module that has kernels: most commands call none.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FunctionType
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, cast

from harness.compiled import interpreted

P = ParamSpec("P")
R = TypeVar("R")

_building = threading.RLock()
_listeners: list[Callable[[str], None]] = []


class Kernel(Generic[P, R]):
    """A compiled function; other compiled functions may call it."""

    options: ClassVar[Mapping[str, bool]] = {"nogil": True}

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        assert isinstance(function, FunctionType)
        self.function = function
        self._dispatcher: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if interpreted.is_interpreting():
            return cast(R, self.function(*args, **kwargs))
        if self._dispatcher is None and interpreted.are_short((*args, *kwargs.values())):
            with suppress(interpreted.GivenUp):
                return cast(R, interpreted.interpret(self.function, args, kwargs))
        return (self._dispatcher or self._built())(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.function.__qualname__

    @property
    def _numba_type_(self) -> Any:
        """By this numba knows what a kernel is where another one names it."""
        from numba.core.typing.typeof import typeof

        return typeof(self._dispatcher or self._built())

    def _built(self) -> Callable[P, R]:
        with _building:  # kernels are first called from several threads at once
            if self._dispatcher is None:
                from harness.compiled.machine_code import dispatcher_of

                self._dispatcher = cast(Callable[P, R], dispatcher_of(self.function, _compiling, type(self).options))
            return self._dispatcher


class Inlined(Kernel[P, R]):
    """A phase of kernels."""

    options: ClassVar[Mapping[str, bool]] = {"nogil": True, "forceinline": True, "_nrt": False}
    returned: ClassVar[frozenset[str]] = frozenset({"None", "bool", "int", "tuple"})

    def __init__(self, function: Callable[P, R]) -> None:
        super().__init__(function)
        names = set(re.findall(r"\w+", str(function.__annotations__["return"])))
        if not names <= self.returned:
            raise TypeError(f"{function.__qualname__} is inlined without counting references: it cannot return arrays")


class Modular(Inlined[P, R]):
    """A phase of kernels whose numbers overflow on purpose."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return cast(R, interpreted.wrapped(self.function, args))


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Machine code, which lets other threads run; later processes load it.

    On short arrays the function is interpreted. So one that may take many steps over few numbers takes only so many at
    once, and is called again to go on.
    """
    return Kernel(function)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A phase of kernels, which stands in their machine code as if it were written there.

    An ordinary call counts references to each array that it passes on: in a loop over edges that takes longer than the
    loop. This one does not count them, so it can neither make nor return arrays. Raises TypeError if it says it does.
    """
    return Inlined(function)


def modular(function: Callable[P, R]) -> Callable[P, R]:
    """As `inlined`, of a function that reckons modulo 2^64 with numbers of type uint64, as hashes do."""
    return Modular(function)


def on_compiling(listener: Callable[[str], None]) -> None:
    """Call it with the module's name whenever one of its kernels has to be compiled, which takes a second or so."""
    _listeners.append(listener)


def _compiling(module: str) -> None:
    for listener in _listeners:
        listener(module)
