"""The names that targets may use in one system: its nodes, groups and roles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.bounds import quote
from harness.errors import UsageError
from harness.system import Declaration, NodeSpec

EVERYBODY = "all"
"""The group of all nodes, which every system has."""
CLIENTS = "clients"
"""The group of the hosts of clients, which are no nodes; who they are is known once a storm begins."""
IT = "it"
"""The node that reached the point at which a fault strikes; stands where a role stands."""
MOMENTS = ("when", "after")
"""Words with which a trigger begins."""
RESERVED = (EVERYBODY, CLIENTS, "one", "minority", "majority", "machine", "and", "every", IT, *MOMENTS)
"""Words of the grammar where a name could stand."""
_NAME = re.compile(r"[^\s,+\[\]]+")
_POINT = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Raises UsageError for names that a sentence could not tell apart from each other or from its own words."""

    groups: Mapping[str, tuple[str, ...]]
    """Group -> its nodes, sorted; the group `all` is the last."""
    roles: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    """What nodes reach, for triggers."""
    acts: tuple[str, ...] = ()
    """What administrators do."""
    machines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Node -> all nodes on its machine, sorted, where it shares it."""

    def __post_init__(self) -> None:
        names = (*self.roles, *(group for group in self.groups if group not in (EVERYBODY, CLIENTS)), *self.nodes)
        for place, name in enumerate(names):
            if name in RESERVED or not _NAME.fullmatch(name):
                raise UsageError(
                    f"{quote(name)} cannot be the name of a node, a group or a role: targets could not use it"
                )
            if name in names[:place]:
                raise UsageError(f"{quote(name)} is the name of two things among the system's nodes, groups and roles")
        for point in self.points:
            if not _POINT.fullmatch(point):
                raise UsageError(f"{quote(point)} cannot be the name of a point: it reads like alter-proposed")
        for act in self.acts:
            if not _POINT.fullmatch(act):
                raise UsageError(f"{quote(act)} cannot be the name of an act: it reads like remake-groups")

    def of_groups(self, groups: Iterable[str], roles: Iterable[str]) -> Vocabulary:
        """The part of it that tells of these; where no group is named, all of it."""
        some = {group: self.groups[group] for group in groups if group in self.groups}
        if not some:
            return self
        everybody = tuple(sorted({node for nodes in some.values() for node in nodes}))
        machines = {
            node: tuple(one for one in on_it if one in everybody)
            for node, on_it in self.machines.items()
            if node in everybody
        }
        return replace(self, groups={**some, EVERYBODY: everybody}, roles=tuple(roles), machines=machines)

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.groups[EVERYBODY]

    @property
    def names(self) -> tuple[str, ...]:
        """All that a target can be in one word, but for several nodes."""
        return (*self.roles, *self.groups, *self.nodes, *((IT,) if self.points else ()))


def vocabulary_of(system: Declaration, nodes: Sequence[NodeSpec]) -> Vocabulary:
    """Raises UsageError for a node in a group that the system does not declare, and as `Vocabulary` does."""
    for node in nodes:
        for group in node.groups:
            if group not in system.groups:
                raise UsageError(
                    f"node {node.name} belongs to the group {quote(group)}, which the system does not declare"
                )
    groups = {group: tuple(sorted(node.name for node in nodes if group in node.groups)) for group in system.groups}
    everybody = tuple(sorted(node.name for node in nodes))
    on = {
        machine: tuple(sorted(node.name for node in nodes if node.machine == machine))
        for machine in {node.machine for node in nodes if node.machine}
    }
    return Vocabulary(
        groups={**groups, CLIENTS: (), EVERYBODY: everybody},
        roles=(*system.roles, system.spare),
        points=tuple(system.points),
        acts=tuple(system.acts),
        machines={node.name: on[node.machine] for node in nodes if node.machine},
    )
