"""Targets as values: which nodes are struck, decided when the fault strikes.

A target picks nodes of a `Cluster`; it draws from the stream it is given and from nothing else.
An empty pick means that no node fits now (it is not known who plays a role, say): the fault then has no effect,
and is recorded as such.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from nemesis.cluster import Cluster


class Target(Protocol):
    def pick(self, cluster: Cluster, draw: random.Random) -> tuple[str, ...]: ...

    def __str__(self) -> str: ...


def _sample(nodes: tuple[str, ...], count: int, draw: random.Random) -> tuple[str, ...]:
    return tuple(sorted(draw.sample(nodes, min(count, len(nodes)))))


@dataclass(frozen=True, slots=True)
class Role:
    """The nodes that play a role when the fault strikes, as far as is known."""

    role: str

    def pick(self, cluster: Cluster, draw: random.Random) -> tuple[str, ...]:
        return tuple(node for node in cluster.roles.get(self.role, ()) if node in cluster.nodes)

    def __str__(self) -> str:
        return self.role


@dataclass(frozen=True, slots=True)
class Group:
    """All nodes of a group."""

    group: str

    def pick(self, cluster: Cluster, draw: random.Random) -> tuple[str, ...]:
        return cluster.groups.get(self.group, ())

    def __str__(self) -> str:
        return self.group


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes by name, each once."""

    names: tuple[str, ...]

    def pick(self, cluster: Cluster, draw: random.Random) -> tuple[str, ...]:
        return tuple(node for node in self.names if node in cluster.nodes)

    def __str__(self) -> str:
        return "+".join(self.names)


@dataclass(frozen=True, slots=True)
class One:
    """One random node of a group."""

    group: str = "all"

    def pick(self, cluster: Cluster, draw: random.Random) -> tuple[str, ...]:
        return _sample(cluster.groups.get(self.group, ()), 1, draw)

    def __str__(self) -> str:
        return f"one of {self.group}"


@dataclass(frozen=True, slots=True)
class Minority:
    """A random minority of a group: at most floor((n - 1) / 2) nodes, at least one where n > 1."""

    group: str

    def pick(self, cluster: Cluster, draw: random.Random) -> tuple[str, ...]:
        nodes = cluster.groups.get(self.group, ())
        return _sample(nodes, draw.randint(1, max(1, (len(nodes) - 1) // 2)), draw)

    def __str__(self) -> str:
        return f"minority of {self.group}"


@dataclass(frozen=True, slots=True)
class Majority:
    """The smallest majority of a group, at random."""

    group: str

    def pick(self, cluster: Cluster, draw: random.Random) -> tuple[str, ...]:
        nodes = cluster.groups.get(self.group, ())
        return _sample(nodes, len(nodes) // 2 + 1, draw)

    def __str__(self) -> str:
        return f"majority of {self.group}"


@dataclass(frozen=True, slots=True)
class MachineOf:
    """All nodes on the machines on which nodes of a target run."""

    target: Target

    def pick(self, cluster: Cluster, draw: random.Random) -> tuple[str, ...]:
        struck = self.target.pick(cluster, draw)
        return tuple(sorted({node for name in struck for node in cluster.machines.get(name, (name,))}))

    def __str__(self) -> str:
        return f"machine of {self.target}"


ALL = Group("all")
