"""A process in which one module is changed, and kernels are plain Python, so that a change costs no compilation.

What a kernel does in machine code and Python does otherwise is put right here: integers without a sign wrap around, and
elements of structured arrays have their fields as attributes.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.mutation.changes import changed_tree
from tests.mutation.concerns import ROOT

WRAPPING = (
    "checkers.linearizable.deciders.register_values",
    "checkers.linearizable.search.configurations",
    "checkers.linearizable.search.events",
    "checkers.transactions.elle.rw_register.resolution",
)
"""They make hashes of numbers that may be negative."""
RECORDS = {"checkers.transactions.isolation.weak.visibility_state": "VERSION"}
"""Types of structured arrays, by their modules."""


def enter(path: str, place: int | None) -> None:
    """From now on the module is imported with this change, or as it is. To be called before anything is imported."""
    changed = None if place is None else ".".join(Path(path).with_suffix("").parts)
    sys.meta_path.insert(0, _Finder(changed, place))
    import harness.compiled

    harness.compiled.compiled = harness.compiled.inlined = lambda function: function


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, changed: str | None, place: int | None) -> None:
        self._changed, self._place = changed, place

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._changed and fullname not in WRAPPING and fullname not in RECORDS:
            return None
        file = ROOT.joinpath(*fullname.split(".")).with_suffix(".py")
        place = self._place if fullname == self._changed else None
        return importlib.util.spec_from_file_location(fullname, file, loader=_Loader(fullname, file, place))


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, file: Path, place: int | None) -> None:
        super().__init__(name, str(file))
        self._file, self._place = file, place

    def get_code(self, fullname: str) -> Any:
        if self._place is None:
            return super().get_code(fullname)
        return compile(changed_tree(self._file, self._place), str(self._file), "exec", dont_inherit=True)

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
