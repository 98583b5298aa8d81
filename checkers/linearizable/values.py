"""Values of a history in the states of objects: hashable, and equal only if they are equal in JSON.

Lists become tuples, maps become `Map`, and true and false become `Truth`, because Python's own are equal to 1 and 0.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

NEVER = int(np.iinfo(np.int64).max)
"""The end of an indefinite operation."""

SHOWN_CHARACTERS = 200


class Truth(Enum):
    """The true and false of JSON, which equal no number."""

    FALSE = False
    TRUE = True

    def __bool__(self) -> bool:
        return bool(self.value)


@dataclass(frozen=True, order=True)
class Map:
    """A map of JSON, which equals no list."""

    entries: tuple[tuple[Hashable, Hashable], ...]
    """The entries, sorted by key."""


def frozen(value: Any) -> Hashable:
    """The same value, hashable. 1.0 becomes 1; no other two values of JSON become equal."""
    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, list | tuple):
        return tuple(frozen(item) for item in value)
    if isinstance(value, Mapping):
        return Map(tuple(sorted(((key, frozen(item)) for key, item in value.items()), key=repr)))
    return value  # type: ignore[no-any-return]


def render(value: Any) -> str:
    """The value as JSON, shortened if it is long; sets are in the order of their JSON."""
    if isinstance(value, frozenset):
        text = f"{{{', '.join(sorted(render(item) for item in value))}}}"
    else:
        text = json.dumps(value, default=_written)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _written(value: Any) -> Any:
    if isinstance(value, Map):
        return dict(value.entries)
    return bool(value) if isinstance(value, Truth) else str(value)
