"""What a nemesis knows of the system when it picks its victims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Nodes by group, who plays which part now, and who is out already."""

    groups: Mapping[str, tuple[str, ...]]
    """Group -> its nodes, both sorted; the group `all` is always there."""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Role, such as `primary` -> nodes that play it, as the system last told."""
    unavailable: frozenset[str] = frozenset()
    """Nodes that are down or paused: no fault of a process is sent to them."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.groups["all"]

    def others(self, nodes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(node for node in self.nodes if node not in nodes)
