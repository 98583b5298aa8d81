"""What nodes' events mean, in words for people: a system's adapter knows them, nobody else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

MOST_WORDS = 160
"""Characters of an event that no adapter has words for."""


@dataclass(frozen=True, kw_only=True)
class Phrase:
    """An event in words, to follow on the node's name."""

    label: str
    """Two or three words, for a diagram: `master, epoch 2`."""
    sentence: str
    """What the node believed from then on, or did: `took itself for the master under epoch 2`."""
    weight: int
    """How much it tells about what went wrong, from 0, routine, to 10."""


class Narrator(Protocol):
    """Kept by a system's adapter for one run; told of all events in the order in which they happened."""

    def narrate(self, node: str, event: str, fields: Mapping[str, Any]) -> Phrase | None:
        """None for an event that is not worth a word."""


class PlainNarrator:
    """Of a system that brings none."""

    def narrate(self, node: str, event: str, fields: Mapping[str, Any]) -> Phrase | None:
        given = ", ".join(
            f"{name} {value if isinstance(value, str) else json.dumps(value)}" for name, value in fields.items()
        )
        words = f"{event} ({given})" if given else event
        return Phrase(label=event, sentence=f"reported {words[:MOST_WORDS]}", weight=5)
