"""Planted bugs, one module each: `<name_with_underscores>.py` with a constant `MUTANT`."""

from __future__ import annotations

import importlib
import pkgutil

from system_under_test.rocketmq.mutants.mutant import Mutant

__all__ = ["Mutant", "mutant", "mutant_names"]


def mutant_names() -> tuple[str, ...]:
    """All planted bugs, sorted by name."""
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name.replace("_", "-") for name in modules if name != "mutant"))


def mutant(name: str) -> Mutant:
    """The planted bug of this name. Raises ValueError that lists the known ones."""
    if name not in mutant_names():
        raise ValueError(f"no mutant {name!r}; known are: {', '.join(mutant_names())}")
    found: Mutant = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").MUTANT
    if found.name != name:
        raise ValueError(f"module {name.replace('-', '_')} calls its mutant {found.name!r}")
    return found
