"""What is known of a system at this very moment, from what its nodes say as they say it.

A fault that strikes at a moment cannot ask the system who plays which role: the answer would come too late. A `Watch`
knows it already, for it is fed every event of every node as it happens, and what the environment does to nodes and
links. From the same it makes the abstract state of the cluster, by which a search sees whether a storm led to somewhere
new. Only an environment in which everything happens in one place, the simulator, can feed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

BOOTED: Final = "environment:booted"
ENDED: Final = "environment:ended"
"""The node ended, of itself or not; `how` is `killed`, `power lost`, `panicked` or `stopped`."""
PAUSED: Final = "environment:paused"
RESUMED: Final = "environment:resumed"
CUT: Final = "environment:cut"
"""The direction from the node to the one called `to` was cut."""
HEALED: Final = "environment:healed"
"""The direction from the node to the one called `to` was healed."""


class Watch(Protocol):
    """Kept by a system's adapter for one run."""

    def saw(self, node: str, event: str, fields: Mapping[str, object]) -> None:
        """A node said this (`host.log`), or the environment did it to a node: the events named above.

        Called while the event happens, so it must be quick, and must not wait for anything.
        """

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """Role -> the nodes that play it as far as was seen; those that are known."""

    def state(self) -> tuple[str, ...]:
        """The abstract state of the cluster in a few words: equal where a search should see nothing new."""


class LastEvents:
    """The watch of a system that brings none: knows no roles, and of each node the last event it reported."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def saw(self, node: str, event: str, fields: Mapping[str, object]) -> None:
        self._last[node] = event

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        return {}

    def state(self) -> tuple[str, ...]:
        return tuple(f"{node} {event}" for node, event in sorted(self._last.items()))
