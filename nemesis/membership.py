"""A node leaves the cluster, loses its disk, and is let in again empty: shapes, and the fault that they become.

    shrink one of members     the others let it go, then it is killed and its disk is gone
    shrink members            the same of as many of them as may be out, at once
    wipe one of members       it is killed and its disk is gone while it belongs to them still, as a broken machine does

At the fault's end both are the same: the others certainly have let the old node go, before a new one is let in under
its name, and started. Who has forgotten what it promised must not come back as the one who promised it.

One node at a time is out, unless the system lets more go, and only while the others agree to it: a refused shrink
changes nothing. Where more may be out, several may leave at once and come back at once, as administrators have them do
who know nothing of each other. Letting a node in is tried until it succeeds, whatever else strikes meanwhile; it goes
on beside the storm. Another one may leave when it is over; where more may be out, as soon as the others have let go
those before, for a disk that is lost while its node belongs to them is one too many already. What the verbs are is the
system's affair (`harness.abilities.Elastic`).
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Iterable, Sequence
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
    """Nodes of the target leave, as many as may be out and nothing holds down; of those that lose their disks while
    they belong to the others, one."""

    kind: str
    target: Target

    def strike(self, cluster: Cluster, draw: random.Random) -> Departure | None:
        membership = cluster.membership
        if membership is None or not cluster.out <= cluster.let_go:
            return None
        most = membership.most_out - len(cluster.out)
        nodes = [node for node in self.target.pick(cluster, draw) if node not in cluster.unavailable]
        if most <= 0 or not nodes:
            return None
        leaving = draw.sample(nodes, min(len(nodes), most if self.kind == SHRINK else 1))
        return Departure(leaving, self.kind, membership)

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


def shrink(target: Target) -> Leave:
    return Leave(SHRINK, target)


def wipe(target: Target) -> Leave:
    return Leave(WIPE, target)


class Departure:
    """Nodes that are out from the start of the fault until they were let in again; `stop` awaits that without bound."""

    def __init__(self, nodes: Sequence[str], kind: str, membership: Membership) -> None:
        self.kind = kind
        self._leavers = tuple(_Leaver(node, kind, membership) for node in nodes)

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(one.node for one in self._leavers)

    @property
    def is_open(self) -> bool:
        """Whether any of them is out, as far as is known."""
        return any(one.is_open for one in self._leavers)

    @property
    def let_go(self) -> frozenset[str]:
        """Those that the others have certainly let go, and not let in again since."""
        return frozenset(one.node for one in self._leavers if one.is_let_go)

    @property
    def left(self) -> str:
        """What is wrong where its end never comes."""
        return " and ".join(one.left for one in self._leavers if one.is_open)

    @property
    def refusal(self) -> str:
        """What kept them from being let in the last time."""
        return "; ".join(one.refusal for one in self._leavers if one.is_open and one.refusal)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "nodes": self.nodes}

    async def start(self, environment: Environment) -> Effect:
        effects = await _each(one.start(environment) for one in self._leavers)
        if self.is_open:
            # The fault is none of those that the others refused to let go.
            self._leavers = tuple(one for one in self._leavers if one.is_open)
        return _joined(effects)

    async def stop(self, environment: Environment) -> Effect:
        return _joined(await _each(one.stop(environment) for one in self._leavers))


async def _each(asking: Iterable[Awaitable[Effect]]) -> list[Effect]:
    """At once; what one fails with is raised once all are over."""
    import asyncio  # what is asked for help imports this module, and no event loop

    effects = await asyncio.gather(*asking, return_exceptions=True)
    failures = [failure for failure in effects if isinstance(failure, BaseException)]
    if failures:
        raise failures[0]
    return [effect for effect in effects if isinstance(effect, Effect)]


def _joined(effects: Sequence[Effect]) -> Effect:
    return Effect(any(effect.happened for effect in effects), "; ".join(effect.evidence for effect in effects))


class _Leaver:
    """One node that is out from the start of the fault until it was let in again."""

    def __init__(self, node: str, kind: str, membership: Membership) -> None:
        self._kind = kind
        self.is_open = True
        """Whether it is out. Also as long as it is not known; not where the others have refused to let it go, and after
        its return."""
        self.refusal = ""
        """What kept it from being let in the last time."""
        self.node = node
        self._membership = membership
        self.is_let_go = False
        """Whether the others have certainly let it go, and not let it in again since."""
        self._parting = ""
        """How it was let go, where that came at the end."""

    @property
    def left(self) -> str:
        """What is wrong where its end never comes."""
        return f"{self.node} was not let in again"

    async def start(self, environment: Environment) -> Effect:
        words = []
        if self._kind == SHRINK:
            gone = await asked_once(environment, SHRINK_TIMEOUT_S, self._let_go(), self.node, "let go")
            words.append(gone.evidence)
            if not gone.happened:
                self.is_open = False
                return gone
        lost = await environment.impair((self.node,), LostDisk())
        return Effect(True, "; ".join((*words, lost.evidence)))

    async def stop(self, environment: Environment) -> Effect:
        if not self.is_open:
            return Effect(False, f"nothing to heal: {self.node} was not let go")
        words = await asked_until_done(self, environment, lambda: self._return(environment))
        self.is_open = False
        return Effect(True, words)

    async def _let_go(self) -> str:
        words = await self._membership.shrink(self.node)
        self.is_let_go = True
        return words

    async def _return(self, environment: Environment) -> str:
        if not self.is_let_go:
            self._parting = f"{await self._let_go()}; "

        async def start(program: Program) -> None:
            await environment.replace_program(self.node, program)
            await environment.relieve((self.node,), LostDisk())
            await environment.boot((self.node,))  # where it has ended since

        return self._parting + await self._membership.grow(self.node, start)
