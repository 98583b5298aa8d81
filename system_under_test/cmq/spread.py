"""Leaders are spread over nodes: group g would be led by the (g mod n)-th of its n voters.

Who leads a group that another one should lead hands over to that one, once it has been level for a while. Where that
fails, the next attempt waits twice as long as the one before, up to a bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from system_under_test.cmq.config import CmqConfig, group_name
from system_under_test.raft.driver import NotLeader, RaftNode
from system_under_test.runtime.host import Host

LOOKS: Final = 4
"""So often a group is looked at in the time for which its preferred leader has to be level."""
MOST_DOUBLINGS: Final = 6


def preferred_leader(group: int, voters: Mapping[str, str]) -> str:
    return sorted(voters)[group % len(voters)]


@dataclass(slots=True)
class Patience:
    """Of a leader, with the one to which it should hand over; pure."""

    after_ns: int
    """So long that one has to be level."""
    node: str = ""
    level_since_ns: int | None = None
    failures: int = 0

    def is_over(self, node: str, is_level: bool, now_ns: int) -> bool:
        """Whether to hand over to this node now."""
        if node != self.node:
            self.node, self.level_since_ns, self.failures = node, None, 0
        if not is_level:
            self.level_since_ns = None
        elif self.level_since_ns is None:
            self.level_since_ns = now_ns
        since_ns = self.level_since_ns
        return since_ns is not None and now_ns - since_ns >= self.after_ns << min(self.failures, MOST_DOUBLINGS)

    def failed(self) -> None:
        self.level_since_ns = None
        self.failures += 1


class LeaderSpread:
    """At one node, for the groups that it leads."""

    def __init__(self, host: Host, config: CmqConfig, groups: Mapping[int, RaftNode]) -> None:
        self._host = host
        self._config = config
        self._groups = groups
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        if self._config.spread:
            spawn = self._host.spawn
            self._tasks = [
                spawn(self._look_after(number, raft), f"spread of {group_name(number)}")
                for number, raft in self._groups.items()
            ]

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _look_after(self, number: int, raft: RaftNode) -> None:
        clock, after_s = self._host.clock, self._config.spread_after_s
        patience = Patience(int(after_s * 1e9))
        while True:
            await clock.sleep(after_s / LOOKS)
            if not raft.is_active:
                patience = Patience(patience.after_ns)
                continue
            node = preferred_leader(number, raft.membership.voters)
            if node == self._config.self_id or not patience.is_over(node, raft.is_level(node), clock.monotonic_ns()):
                continue
            self._host.reached("about-to-hand-over", group=number)
            try:
                handed_over = await raft.transfer_leadership(node)
            except NotLeader:
                continue
            self._host.log("handed_over", group=group_name(number), to=node, succeeded=handed_over)
            if not handed_over:
                patience.failed()
