"""Kernels on short arrays, run as the Python that they are written in: to load machine code would take far longer.

numpy's numbers differ from a kernel's where they overflow, and in nothing else that a kernel may do: there the call is
given up, the arrays are as they were before it, and machine code takes over. What was interpreted in this process
counts, and once it adds up to what loading costs, kernels are loaded as they are called.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

NEVER = "STORMPROOF_MACHINE_CODE_ONLY"
"""Says in the environment that nothing is interpreted: all that is called is compiled, and kept."""
MOST_BYTES = 1 << 17
"""How long the arrays of one call may be: with so many bytes, one that takes the square of its rows many steps still
ends in a second."""
MOST_S = 0.3
LOADING_S = 0.5
"""What loading takes, about."""
LEAST_NUMPY = 2
"""The version before gives numbers other types than kernels do."""
UNLIKE = (FloatingPointError, OverflowError)
"""Raised where numpy's numbers are not as a kernel's."""


class GivenUp(Exception):
    """The call had no effect."""


@dataclass
class Allowance:
    """How long kernels may yet be interpreted in this process."""

    left_s: float


allowance = Allowance(0.0 if os.environ.get(NEVER) else MOST_S)


def foresee(done: float) -> None:
    """A share, between 0 and 1, of what this process has to do is done. Where all of it would take longer at that pace
    than loading does, kernels are loaded from now on."""
    if MOST_S - allowance.left_s > done * LOADING_S:
        allowance.left_s = 0.0


class _Thread(threading.local):
    is_interpreting = False


_thread = _Thread()


def is_interpreting() -> bool:
    """Whether this thread is inside of such a call; what it calls is interpreted as well."""
    return _thread.is_interpreting


def are_short(arguments: tuple[Any, ...]) -> bool:
    """Whether the arguments of a kernel allow to interpret it, and there is time left to."""
    return allowance.left_s > 0 and _size(arguments) <= MOST_BYTES


def interpret(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What the function returns. Raises GivenUp where machine code has to be asked."""
    import numpy as np  # not before: help and completion load this module, too

    if int(np.__version__.partition(".")[0]) < LEAST_NUMPY:
        raise GivenUp
    before = [(array, array.copy()) for array in _arrays((*arguments, *named.values()))]
    begun = time.thread_time()
    _thread.is_interpreting = True
    try:
        with np.errstate(all="raise"):
            return function(*arguments, **named)
    except UNLIKE:
        for array, content in before:
            if array.flags.writeable:
                array[...] = content
        raise GivenUp from None
    finally:
        _thread.is_interpreting = False
        allowance.left_s -= time.thread_time() - begun


def wrapped(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a function within such a call returns whose numbers overflow on purpose."""
    import numpy as np

    with np.errstate(over="ignore"):
        return function(*arguments)


def _size(arguments: tuple[Any, ...]) -> int:
    """In bytes; of what is neither number nor array, more than any bound. Machine code returns records of kind void,
    whose fields have to be read otherwise than a kernel does."""
    size = 0
    for argument in arguments:
        if isinstance(argument, tuple):
            size += _size(argument)
        elif hasattr(argument, "nbytes") and argument.dtype.type.__name__ != "void":
            size += argument.nbytes
        elif not isinstance(argument, (int, float, str, type(None))):
            return MOST_BYTES + 1
    return size


def _arrays(arguments: tuple[Any, ...]) -> Iterator[Any]:
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _arrays(argument)
        elif getattr(argument, "shape", ()):
            yield argument
