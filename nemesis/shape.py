"""Shapes of faults: values that become concrete faults when they strike a cluster.

The text of a shape is how it is written down; `nemesis/grammar.py` reads it back as an equal value.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from harness.environments.environment import Link
from nemesis.cluster import Cluster
from nemesis.fault import ClockSkew, Compound, Fault, Kill, Partition, Pause, PowerLoss, Restart, Skew, Upgrade
from nemesis.links import Between, OneDirection, between
from nemesis.target import Target


class Shape(Protocol):
    """`strike` returns None where no node or link fits."""

    @property
    def kind(self) -> str:
        """Of the faults it becomes, as in `Environment.faults`; several with `+` between."""

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None: ...

    def __str__(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Isolate:
    """The target on one side, everybody else on the other."""

    target: Target
    kind = "partition"

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        nodes = self.target.pick(cluster, draw)
        rest = cluster.others(nodes)
        return Partition(between(nodes, rest), str(self)) if nodes and rest else None

    def __str__(self) -> str:
        return f"isolate {self.target}"


@dataclass(frozen=True, slots=True)
class IsolateWithCompany:
    """The target and one random node of a group on one side, everybody else on the other."""

    target: Target
    group: str
    kind = "partition"

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        nodes = self.target.pick(cluster, draw)
        company = [node for node in cluster.groups.get(self.group, ()) if node not in nodes]
        if not nodes or not company:
            return None
        side = (*nodes, draw.choice(company))
        return Partition(between(side, cluster.others(side)), str(self))

    def __str__(self) -> str:
        return f"isolate {self.target} with one of {self.group}"


@dataclass(frozen=True, slots=True)
class OneWay:
    """Either nothing reaches the target, or nothing that it sends arrives, at random."""

    target: Target
    kind = "partition"

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        nodes = self.target.pick(cluster, draw)
        rest = cluster.others(nodes)
        if not nodes or not rest:
            return None
        outwards = draw.random() < 0.5
        links = [Link(a, b) if outwards else Link(b, a) for a in nodes for b in rest]
        return Partition(tuple(sorted(links)), f"{self.target} {'unheard' if outwards else 'deaf'}")

    def __str__(self) -> str:
        return f"one way around {self.target}"


@dataclass(frozen=True, slots=True)
class Apart:
    """Two targets cannot reach each other; both still reach the rest."""

    left: Target
    right: Target
    kind = "partition"

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        left = self.left.pick(cluster, draw)
        right = tuple(node for node in self.right.pick(cluster, draw) if node not in left)
        return Partition(between(left, right), str(self)) if left and right else None

    def __str__(self) -> str:
        return f"{self.left} apart from {self.right}"


@dataclass(frozen=True, slots=True)
class CutLink:
    """Every node of one target and every node of another cannot reach each other, in both directions.

    A node of both targets keeps its links to itself; with a group on both sides its nodes are cut off from each other.
    """

    left: Target
    right: Target
    kind = "partition"

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        links = Between(self.left, self.right).pick(cluster, draw)
        return Partition(links, str(self)) if links else None

    def __str__(self) -> str:
        return f"cut {Between(self.left, self.right)}"


@dataclass(frozen=True, slots=True)
class CutOneDirection:
    """Nothing that nodes of one target send reaches those of another; what those send arrives."""

    source: Target
    target: Target
    kind = "partition"

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        links = OneDirection(self.source, self.target).pick(cluster, draw)
        return Partition(links, str(self)) if links else None

    def __str__(self) -> str:
        return f"cut {OneDirection(self.source, self.target)}"


@dataclass(frozen=True, slots=True)
class RandomHalves:
    """All nodes, split in two at random."""

    kind = "partition"

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        nodes = list(cluster.nodes)
        draw.shuffle(nodes)
        half = len(nodes) // 2
        return Partition(between(nodes[:half], nodes[half:]), str(self)) if half else None

    def __str__(self) -> str:
        return "random halves"


@dataclass(frozen=True, slots=True)
class Bridge:
    """A group split in two halves that only one node of the middle can reach."""

    group: str
    kind = "partition"

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        nodes = list(cluster.groups.get(self.group, ()))
        if len(nodes) < 3:
            return None
        draw.shuffle(nodes)
        half = (len(nodes) - 1) // 2
        return Partition(between(nodes[1 : 1 + half], nodes[1 + half :]), f"bridge over {nodes[0]}")

    def __str__(self) -> str:
        return f"bridge in {self.group}"


@dataclass(frozen=True, slots=True)
class MajoritiesRing:
    """Every node of a group sees a majority, and no two see the same one.

    With three nodes the link of one random pair is cut, which makes the third a bridge.
    """

    group: str
    kind = "partition"

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        nodes = list(cluster.groups.get(self.group, ()))
        if len(nodes) < 3:
            return None
        draw.shuffle(nodes)
        count, reach = len(nodes), len(nodes) // 4 + (len(nodes) % 2 == 0)
        reach = max(1, reach if count > 3 else 1)
        links: set[Link] = set()
        for i in range(count):
            for j in range(i + 1, count):
                distance = min(j - i, count - (j - i))
                if distance > reach or (count == 3 and (i, j) == (0, 1)):
                    links.update(between((nodes[i],), (nodes[j],)))
        return Partition(tuple(sorted(links)), str(self)) if links else None

    def __str__(self) -> str:
        return f"majorities ring of {self.group}"


@dataclass(frozen=True, slots=True)
class OnNodes:
    """A fault that strikes the target's nodes themselves, as far as nothing holds them already."""

    verb: str
    fault: type[Kill | Restart | Upgrade | Pause | PowerLoss]
    target: Target

    @property
    def kind(self) -> str:
        return self.fault.kind

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        nodes = tuple(node for node in self.target.pick(cluster, draw) if node not in cluster.unavailable)
        return self.fault(nodes) if nodes else None

    def __str__(self) -> str:
        return f"{self.verb} {self.target}"


def kill(target: Target) -> Shape:
    return OnNodes("kill", Kill, target)


def restart(target: Target) -> Shape:
    return OnNodes("restart", Restart, target)


def upgrade(target: Target) -> Shape:
    return OnNodes("upgrade", Upgrade, target)


def pause(target: Target) -> Shape:
    return OnNodes("pause", Pause, target)


def power_off(target: Target) -> Shape:
    return OnNodes("power off", PowerLoss, target)


@dataclass(frozen=True, slots=True)
class Together:
    """Several shapes at one moment; those that fit no node or link are left out."""

    shapes: tuple[Shape, ...]

    @property
    def kind(self) -> str:
        return "+".join(sorted({kind for shape in self.shapes for kind in shape.kind.split("+")}))

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        struck = [shape.strike(cluster, draw) for shape in self.shapes]
        faults = tuple(fault for fault in struck if fault is not None)
        return Compound(faults) if faults else None

    def __str__(self) -> str:
        return " and ".join(str(shape) for shape in self.shapes)


@dataclass(frozen=True, slots=True)
class ClockShape:
    """Jumps of milliseconds to minutes either way, and drift of up to ± 50 %, drawn by node."""

    target: Target
    kind = "clock"

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        skews = []
        for node in self.target.pick(cluster, draw):
            offset_s = draw.choice((-1, 1)) * 10 ** draw.uniform(-3, 2.3) if draw.random() < 0.8 else 0.0
            rate = round(draw.uniform(0.5, 1.5), 3) if draw.random() < 0.4 or offset_s == 0.0 else 1.0
            skews.append(Skew(node, round(offset_s, 3), rate))
        return ClockSkew(tuple(skews)) if skews else None

    def __str__(self) -> str:
        return f"skew clocks of {self.target}"
