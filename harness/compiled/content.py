"""What the machine code of a function depends on, as one digest.

Of the function and of all kernels that it reaches: bytecode, constants, defaults, and the values of the globals that
are read, for numba compiles them in. Not where it stands, nor comments: a moved function is the same one. A moved
class is another one, for a kernel that is kept names it by its module.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

OWN_PACKAGES = ("harness", "checkers", "nemesis", "workloads", "results", "system_under_test")


class Unseen(TypeError):
    """A kernel reads something whose content cannot be known, so that a change of it would go unnoticed."""


def digest_of(function: FunctionType) -> str:
    """64 hex digits, the same in every process and checkout. Raises Unseen."""
    reached = [function]
    hasher = hashlib.sha256()
    for one in reached:  # grows meanwhile
        hasher.update(_of_code(one.__code__).encode())
        hasher.update(_of_value(one, one.__defaults__, "its defaults").encode())
        for name in sorted(set(_names(one.__code__)) & one.__globals__.keys()):
            value = one.__globals__[name]
            kernel = getattr(value, "__wrapped__", None)
            if isinstance(kernel, FunctionType):
                if kernel not in reached:
                    reached.append(kernel)
                described = f"{type(value).__name__.lower()} {reached.index(kernel)}"
            else:
                described = _of_value(one, value, name)
            hasher.update(f"\n{name} = {described}".encode())
        if one.__closure__:
            raise Unseen(f"{_named(one)} reads variables of the function around it; make them arguments")
    return hasher.hexdigest()


def _of_code(code: CodeType) -> str:
    return repr(
        (
            code.co_code,
            code.co_exceptiontable,
            [
                _of_code(constant) if isinstance(constant, CodeType) else _of_constant(constant)
                for constant in code.co_consts
            ],
            code.co_names,
            code.co_varnames,
            code.co_freevars,
            code.co_cellvars,
            code.co_argcount,
            code.co_posonlyargcount,
            code.co_kwonlyargcount,
            code.co_flags,
        )
    )


def _of_constant(constant: Any) -> str:
    """Elements of frozen sets lie in another order in every process."""
    if isinstance(constant, CodeType):
        return _of_code(constant)
    if isinstance(constant, frozenset):
        return f"frozenset({sorted(map(_of_constant, constant))})"
    if isinstance(constant, tuple):
        return f"({', '.join(map(_of_constant, constant))})"
    return repr(constant)


def _names(code: CodeType) -> Iterator[str]:
    """Of globals and attributes, also in functions within."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _of_value(reader: FunctionType, value: Any, name: str) -> str:
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return repr(value)
    if type(value) is tuple:
        return f"({', '.join(_of_value(reader, element, name) for element in value)})"
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__} {value.name} {value.value!r}"
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return f"{value.__qualname__} {[(member.name, member.value) for member in value]}"
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        return f"{value.__module__}.{value.__qualname__} {value._fields}"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype.descr} {value.shape} {value.strides} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, np.dtype):
        return f"dtype {value.descr}"
    if isinstance(value, np.generic):
        return f"{value.dtype} {value!r}"
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in OWN_PACKAGES:
        return f"module {value.__name__}"  # its version is part of what a kernel is kept under
    if isinstance(value, FunctionType):
        return "function"  # an attribute is called like it; itself no kernel can call it
    if isinstance(value, type) and (value.__module__ == "builtins" or issubclass(value, np.generic)):
        return f"type {value.__module__}.{value.__qualname__}"
    raise Unseen(
        f"{_named(reader)} reads {name}, {type(value).__name__}: of kernels only numbers, arrays, enumerations, named "
        "tuples and other kernels may be read, by their own names"
    )


def _named(function: FunctionType) -> str:
    return f"{function.__module__}.{function.__qualname__}"
