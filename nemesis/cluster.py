"""What the nemesis knows of the system when a fault strikes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.administration import Acts
from harness.membership import Membership


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Nodes by group, which of them play which role now, and which are down or paused already."""

    groups: Mapping[str, tuple[str, ...]]
    """Group -> its nodes, sorted; the group `all` is always there."""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Role -> nodes that play it, as last reported by the system."""
    machines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Node -> all nodes on its machine, sorted; those that are not in it have machines of their own."""
    unavailable: frozenset[str] = frozenset()
    """Nodes that are down or paused: no fault of a process is sent to them."""
    out: frozenset[str] = frozenset()
    """Nodes that left the cluster, or lost their disks, and were not let in again."""
    let_go: frozenset[str] = frozenset()
    """Those of them that the others have certainly let go."""
    membership: Membership | None = None
    """Lets nodes go and in; None where the system has no means for it."""
    acts: Acts | None = None
    """What administrators do; None where the system declares nothing."""
    under_way: frozenset[str] = frozenset()
    """Acts that have begun and not ended: none is begun again meanwhile."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.groups["all"]

    def others(self, nodes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(node for node in self.nodes if node not in nodes)
