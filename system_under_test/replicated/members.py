"""Members of a Raft group come and go while it serves, as administrators ask for it: one is added, removed, or made the
leader.

Who is added gets the log as a learner and votes as soon as it has caught up, whichever member leads then. Each change
is one entry of Raft's log, made by the leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from system_under_test.raft.driver import LeadershipLost, NotLeader, RaftNode
from system_under_test.raft.membership import AddLearner, Promote, Remove, UnfitChange
from system_under_test.runtime.host import Host

MAX_MEMBERS: Final = 16
"""Each is sent all entries, and asked in each round."""
PROMOTION_PACE_S: Final = 0.1
"""How long it is between two looks at who has caught up."""


class NotTakenOver(Exception):
    """The leadership stays where it is."""


class MemberChanges:
    """`check_newcomer(node, address)` raises UnfitChange for a node that is not there, or belongs to another group, of
    which what is committed would be cut from its log. `noun` is what a member is called in events, which have `fields`
    beside what they are about."""

    def __init__(
        self,
        host: Host,
        raft: RaftNode,
        node: str,
        check_newcomer: Callable[[str, str], Awaitable[None]],
        noun: str,
        fields: Mapping[str, object],
    ) -> None:
        self._host = host
        self._raft = raft
        self._node = node
        self._check_newcomer = check_newcomer
        self._noun = noun
        self._fields = dict(fields)
        self._promoting: asyncio.Task[None] | None = None

    def stop(self) -> None:
        if self._promoting is not None:
            self._promoting.cancel()

    def promote_learners(self) -> None:
        """Have them vote once they have caught up, as long as this node leads."""
        if self._raft.membership.learners and (self._promoting is None or self._promoting.done()):
            self._promoting = self._host.spawn(self._promote(), "promotion of learners")

    async def add(self, node: str, address: str) -> None:
        """Done when it votes. Asking again for one that is there already, or on its way, is waiting for it.

        Raises UnfitChange and NotLeader: nothing was changed; LeadershipLost."""
        members = self._raft.membership.addresses
        present = members.get(node)
        if present not in (None, address):
            raise UnfitChange(f"{node} is a member already, at {present}")
        if present is None:
            holder = next((other for other, at in members.items() if at == address), None)
            if holder is not None:
                raise UnfitChange(f"{address} is the address of {holder}")
            if len(members) >= MAX_MEMBERS:
                raise UnfitChange(f"there are {MAX_MEMBERS} {self._noun}s already")
            await self._check_newcomer(node, address)
            await self._raft.change_membership(AddLearner(node, address))
            self._host.log(f"{self._noun}_added", node=node, address=address, **self._fields)
        self.promote_learners()
        while node not in self._raft.membership.voters or self._raft.committed_membership_index is None:
            if not self._raft.is_active:
                raise LeadershipLost
            if node not in self._raft.membership.addresses:
                raise UnfitChange(f"{node} was removed meanwhile")
            await self._host.clock.sleep(PROMOTION_PACE_S)

    async def remove(self, node: str) -> None:
        """Done when that is committed. Raises UnfitChange and NotLeader: nothing was changed; LeadershipLost."""
        await self._raft.change_membership(Remove(node))
        self._host.log(f"{self._noun}_removed", node=node, **self._fields)

    async def transfer(self, node: str) -> None:
        """Done when it leads. Raises UnfitChange, NotTakenOver, NotLeader."""
        if not self._raft.is_active:
            raise NotLeader(self._raft.leader)
        if node not in self._raft.membership.voters:
            raise UnfitChange(f"{node} is no {self._noun} that votes")
        if node != self._node and not await self._raft.transfer_leadership(node):
            raise NotTakenOver(f"{node} did not take over in time")

    async def _promote(self) -> None:
        while self._raft.is_active and self._raft.membership.learners:
            for node in sorted(self._raft.membership.learners):
                try:
                    await self._raft.change_membership(Promote(node))
                except UnfitChange:
                    continue
                except (NotLeader, LeadershipLost):
                    return
                self._host.log(f"{self._noun}_promoted", node=node, **self._fields)
            await self._host.clock.sleep(PROMOTION_PACE_S)
