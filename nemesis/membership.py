"""A node leaves the cluster, loses its disk, and is let in again empty: shapes, and the fault that they become.

    shrink one of members     the others let it go, then it is killed and its disk is gone
    wipe one of members       it is killed and its disk is gone while it belongs to them still, as a broken machine does

At the fault's end both are the same: the others certainly have let the old node go, before a new one is let in under
its name, and started. Who has forgotten what it promised must not come back as the one who promised it.

One node at a time is out, unless the system lets more go, and only while the others agree to it: a refused shrink
changes nothing. Letting a node in is tried until it succeeds, whatever else strikes meanwhile; it goes on beside the
storm. Another one may leave when it is over; where more may be out, as soon as the others have let go the one before,
for a disk that is lost while its node belongs to them is one too many already. What the verbs are is the system's
affair (`harness.abilities.Elastic`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from harness.environments.environment import Effect, Environment
from harness.environments.impairment import LostDisk
from harness.membership import SHRINK, WIPE, Membership
from harness.program import Program
from nemesis.asking import asked_once, asked_until_done
from nemesis.cluster import Cluster
from nemesis.target import Target

SHRINK_TIMEOUT_S = 5.0
"""Other faults wait meanwhile."""


@dataclass(frozen=True, slots=True)
class Leave:
    """One of the target's nodes leaves, as far as nothing holds it down and no other is out."""

    kind: str
    target: Target

    def strike(self, cluster: Cluster, draw: random.Random) -> Departure | None:
        membership = cluster.membership
        if membership is None or len(cluster.out) >= membership.most_out or not cluster.out <= cluster.let_go:
            return None
        nodes = [node for node in self.target.pick(cluster, draw) if node not in cluster.unavailable]
        return Departure(draw.choice(nodes), self.kind, membership) if nodes else None

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


def shrink(target: Target) -> Leave:
    return Leave(SHRINK, target)


def wipe(target: Target) -> Leave:
    return Leave(WIPE, target)


class Departure:
    """One node that is out from the start of the fault until it was let in again; `stop` awaits that without bound."""

    def __init__(self, node: str, kind: str, membership: Membership) -> None:
        self.kind = kind
        self.is_open = True
        """Whether it is out. Also as long as it is not known; not where the others have refused to let it go, and after
        its return."""
        self.refusal = ""
        """What kept it from being let in the last time."""
        self._node = node
        self._membership = membership
        self.is_let_go = False
        """Whether the others have certainly let it go, and not let it in again since."""
        self._parting = ""
        """How it was let go, where that came at the end."""

    @property
    def left(self) -> str:
        """What is wrong where its end never comes."""
        return f"{self._node} was not let in again"

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self._node,)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "nodes": self.nodes}

    async def start(self, environment: Environment) -> Effect:
        words = []
        if self.kind == SHRINK:
            gone = await asked_once(environment, SHRINK_TIMEOUT_S, self._let_go(), self._node, "let go")
            words.append(gone.evidence)
            if not gone.happened:
                self.is_open = False
                return gone
        lost = await environment.impair(self.nodes, LostDisk())
        return Effect(True, "; ".join((*words, lost.evidence)))

    async def stop(self, environment: Environment) -> Effect:
        if not self.is_open:
            return Effect(False, f"nothing to heal: {self._node} was not let go")
        words = await asked_until_done(self, environment, lambda: self._return(environment))
        self.is_open = False
        return Effect(True, words)

    async def _let_go(self) -> str:
        words = await self._membership.shrink(self._node)
        self.is_let_go = True
        return words

    async def _return(self, environment: Environment) -> str:
        if not self.is_let_go:
            self._parting = f"{await self._let_go()}; "

        async def start(program: Program) -> None:
            await environment.replace_program(self._node, program)
            await environment.relieve(self.nodes, LostDisk())
            await environment.boot(self.nodes)  # where it has ended since

        return self._parting + await self._membership.grow(self._node, start)
