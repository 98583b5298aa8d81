"""A process in which kernels are plain Python, so that a change of them costs no compilation.

What a kernel does in machine code and Python does otherwise is put right here: integers without a sign wrap around, and
elements of structured arrays have their fields as attributes.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from tests.mutation.concerns import ROOT

WRAPPING = (
    "checkers.linearizable.deciders.register_values",
    "checkers.linearizable.search.configurations",
    "checkers.linearizable.search.events",
    "checkers.transactions.elle.rw_register.resolution",
)
"""They make hashes of numbers that may be negative."""
RECORDS = {"checkers.transactions.orders.weak.visibility_state": "VERSION"}
"""Types of structured arrays, by their modules."""


def enter() -> None:
    """To be called before anything is imported that has kernels."""
    sys.meta_path.insert(0, _Finder())
    import harness.compiled

    for name in ("compiled", "inlined", "modular"):
        setattr(harness.compiled, name, _plain(getattr(harness.compiled, name)))


def _plain(compiling: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Tests make up their long histories in machine code all the same."""
    made_up = str(ROOT / "benchmarks")
    return lambda function: compiling(function) if function.__code__.co_filename.startswith(made_up) else function


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in WRAPPING and fullname not in RECORDS:
            return None
        file = ROOT.joinpath(*fullname.split(".")).with_suffix(".py")
        return importlib.util.spec_from_file_location(fullname, file, loader=_Loader(fullname, str(file)))


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        if module.__name__ in WRAPPING:
            module.np = _Numpy()  # type: ignore[attr-defined]
        if module.__name__ in RECORDS:
            import numpy

            name = RECORDS[module.__name__]
            setattr(module, name, numpy.dtype((numpy.record, getattr(module, name))))


class _Numpy:
    """numpy, but for uint64 of what is negative."""

    def __getattr__(self, name: str) -> Any:
        import numpy

        return _unsigned if name == "uint64" else getattr(numpy, name)


def _unsigned(value: Any) -> Any:
    import numpy

    return numpy.uint64(int(value) & 0xFFFF_FFFF_FFFF_FFFF)
