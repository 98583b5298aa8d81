"""Planted bugs: each is healthy parts with a few others among them, chosen by name when a node starts.

The healthy code knows nothing of them. Those of a system are the modules of one package, each
`<name_with_underscores>.py` with a constant `MUTANT`.
"""

from __future__ import annotations

import copy
import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TypeVar

P = TypeVar("P")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    name: str
    """What the user writes: words joined by hyphens."""

    breaks: str
    """The guarantee it breaks, in a few words; which anomaly shows it is the checkers' business."""

    parts: tuple[object, ...]
    """Those of each kind of node that it changes, with the bug among them."""

    def parts_of(self, kind: type[P]) -> P:
        """The healthy ones of a kind that it leaves alone. What a part remembers is one node's own: it gets copies."""
        return next((copy.deepcopy(parts) for parts in self.parts if isinstance(parts, kind)), None) or kind()


@cache
def mutant_names(package: ModuleType) -> tuple[str, ...]:
    """All planted bugs of a system, sorted by name."""
    return tuple(sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(package.__path__)))


def find_mutant(package: ModuleType, name: str) -> Mutant:
    """The planted bug of this name. Raises ValueError that lists those that there are."""
    if name not in mutant_names(package):
        raise ValueError(f"no mutant {name!r}; known are: {', '.join(mutant_names(package))}")
    found: Mutant = importlib.import_module(f"{package.__name__}.{name.replace('-', '_')}").MUTANT
    if found.name != name:
        raise ValueError(f"module {name.replace('-', '_')} calls its mutant {found.name!r}")
    return found
