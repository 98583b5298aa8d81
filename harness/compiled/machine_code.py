"""numba's side of kernels: its dispatchers, with a cache that goes by content.

numba's own goes by path, line and source of the one file that a function stands in: it compiles again for each
checkout, and does not notice when a kernel in another file changes that was compiled into this one.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from types import FunctionType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config, sigutils, types
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps

from harness.compiled import store
from harness.compiled.content import digest_of

SIMPLE = (
    types.Number,
    types.Boolean,
    types.NoneType,
    types.UnicodeType,
    types.Omitted,
    types.Literal,
    types.Array,
)
"""Types whose names say all of them."""


def dispatcher_of(function: FunctionType, compiling: Callable[[str], None], options: Mapping[str, bool]) -> Any:
    """What numba calls by the types of the arguments; `compiling` is called with the module before it compiles."""
    dispatcher = numba.njit(**options)(function)
    if isinstance(dispatcher, Dispatcher):  # numba returns the function itself where NUMBA_DISABLE_JIT is set
        dispatcher._cache = ByContent(function, compiling, options)
    return dispatcher


class ByContent(_Cache):  # type: ignore[misc]
    """The cache of one kernel, which numba asks while it holds its lock."""

    def __init__(self, function: FunctionType, compiling: Callable[[str], None], options: Mapping[str, bool]) -> None:
        self._function = function
        self._compiling = compiling
        self._options = sorted(options.items())
        self._digest = ""

    @property
    def cache_path(self) -> str:
        return str(store.directory())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None where it has to be compiled."""
        target_context.refresh()
        name = self._name(sig, target_context.codegen())
        payload = None if name is None else store.read(name)
        if payload is not None:
            with suppress(ImportError, AttributeError):  # it names a class that lies somewhere else by now
                return CompileResult._rebuild(target_context, *pickle.loads(payload))
        self._compiling(self._function.__module__)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; not what holds addresses of this process."""
        name = self._name(sig, data.codegen)
        if name is not None and not data.library.has_dynamic_globals and all(code.can_cache for code in data.lifted):
            store.write(name, dumps(data._reduce()))

    def enable(self) -> None:
        raise NotImplementedError

    def disable(self) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError

    def _name(self, sig: Any, codegen: Any) -> str | None:
        """None where the types are not known."""
        names = [_type_name(type_) for type_ in sigutils.normalize_signature(sig)[0]]
        if None in names:
            return None
        self._digest = self._digest or digest_of(self._function)
        key = repr(((*compiler(), self._options), codegen.magic_tuple(), self._digest, names))
        return f"{self._function.__module__}.{self._function.__name__}-{hashlib.sha256(key.encode()).hexdigest()[:40]}"


def _type_name(type_: Any) -> str | None:
    """A type in words, with the names of fields: a field is read by its place, but named in the source."""
    if isinstance(type_, types.BaseTuple):
        elements = [_type_name(element) for element in type_]
        fields = (_class_name(type_.instance_class), type_.fields) if isinstance(type_, types.BaseNamedTuple) else ()
        return None if None in elements else repr((fields, elements))
    if isinstance(type_, types.List):
        element = _type_name(type_.dtype)
        return None if element is None else f"{'reflected ' if type_.reflected else ''}list of {element}"
    return str(type_) if isinstance(type_, SIMPLE) else None


def _class_name(class_: type) -> str:
    """With its module: a kernel that was kept names its classes by it."""
    return f"{class_.__module__}.{class_.__qualname__}"


@cache
def compiler() -> tuple[object, ...]:
    """What else decides how a function is compiled: versions and switches."""
    versions = (sys.implementation.cache_tag, tuple(sys.version_info), numba.__version__, llvmlite.__version__)
    switches = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT)
    return (*versions, np.__version__, config.USING_SVML, *switches)
