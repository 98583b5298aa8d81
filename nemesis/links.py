"""Links as values: which directions are struck, decided when the fault strikes, as with targets."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from harness.environments.environment import Link
from nemesis.cluster import Cluster
from nemesis.target import Target

PICKS: Final = 8
"""So often both ends of a link are picked where they come out as one node."""


def between(left: Iterable[str], right: Iterable[str]) -> tuple[Link, ...]:
    """All directions from each node on the left to each on the right, and back."""
    pairs = [(a, b) for a in left for b in right if a != b]
    return tuple(sorted({Link(a, b) for a, b in pairs} | {Link(b, a) for a, b in pairs}))


def towards(sources: Iterable[str], targets: Iterable[str]) -> tuple[Link, ...]:
    """The direction from each source to each target."""
    targets = tuple(targets)
    return tuple(sorted({Link(source, target) for source in sources for target in targets if source != target}))


class Links(Protocol):
    """Which directions are struck, decided when the fault strikes; none where no node fits."""

    def pick(self, cluster: Cluster, draw: random.Random) -> tuple[Link, ...]: ...

    def __str__(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Between:
    """Both directions between each node of one target and each of another."""

    left: Target
    right: Target

    def pick(self, cluster: Cluster, draw: random.Random) -> tuple[Link, ...]:
        picks = (between(self.left.pick(cluster, draw), self.right.pick(cluster, draw)) for _ in range(PICKS))
        return next(filter(None, picks), ())

    def __str__(self) -> str:
        return f"link {self.left} to {self.right}"


@dataclass(frozen=True, slots=True)
class OneDirection:
    """From each node of one target to each of another, not back."""

    source: Target
    target: Target

    def pick(self, cluster: Cluster, draw: random.Random) -> tuple[Link, ...]:
        picks = (towards(self.source.pick(cluster, draw), self.target.pick(cluster, draw)) for _ in range(PICKS))
        return next(filter(None, picks), ())

    def __str__(self) -> str:
        return f"link {self.source} to {self.target} one way"
