"""Whether Python finds the packages that Stormproof is made of, and not others of the same names.

Their names are common words: a folder `results` beside a test is enough to hide one of them.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGES = ("harness", "nemesis", "workloads", "checkers", "system_under_test", "results")
_BESIDE = Path(__file__).resolve().parents[1]


@cache
def require_own_packages() -> None:
    """Raises ImportError that names each package which is hidden, and by what. (One that is missing says so itself.)"""
    hidden = [f"{name!r} by {', '.join(places)}" for name in PACKAGES if (places := _others(name))]
    if hidden:
        raise ImportError(
            f"packages of Stormproof are hidden by others of the same name: {'; '.join(hidden)}. "
            f"Rename those, or start from a folder without them: Stormproof's own are in {_BESIDE}"
        )


def _others(name: str) -> tuple[str, ...]:
    """Where Python finds a package of this name, if it is not the one that belongs to this installation."""
    found = _places(name)
    own = (_BESIDE / name).resolve()
    return () if own in {place.resolve() for place in found} else tuple(map(str, found))


def _places(name: str) -> tuple[Path, ...]:
    """The folders of a package, or the file of a module."""
    imported = sys.modules.get(name)
    spec = imported.__spec__ if imported is not None else importlib.util.find_spec(name)
    if spec is None:
        return ()
    folders: Iterable[str] | None = spec.submodule_search_locations
    if spec.origin is None or folders is None:
        return tuple(Path(folder) for folder in folders or (spec.origin or name,))
    return (Path(spec.origin).parent,)
