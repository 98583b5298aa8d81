"""Members of a group of CMQ come and go; a node belongs to each group by itself."""

from __future__ import annotations

import re
from typing import Final

from system_under_test.cmq import wire
from system_under_test.cmq.config import CmqConfig, group_name
from system_under_test.cmq.wire import MalformedAnswer, MalformedRequest
from system_under_test.raft.driver import RaftNode
from system_under_test.raft.membership import UnfitChange
from system_under_test.remoting.client import RemotingClient
from system_under_test.replicated.members import MemberChanges
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host

NEWCOMER_TIMEOUT_S: Final = 2.0
"""How long a node that is to be added may take to answer."""
_ID = re.compile(r"[A-Za-z0-9_.]{1,64}")
_ADDRESS = re.compile(r"[A-Za-z0-9_.-]{1,200}:[0-9]{1,5}")


class GroupMembers:
    """Of one group, at one node. Requests are answered with an empty body."""

    def __init__(self, host: Host, config: CmqConfig, group: int, raft: RaftNode, remoting: RemotingClient) -> None:
        self._group = group
        self._node = config.self_id
        self._raft = raft
        self._remoting = remoting
        fields = {"group": group_name(group)}
        self._changes = MemberChanges(host, raft, config.self_id, self._check_newcomer, "node", fields)

    def led(self) -> None:
        """This node leads from now on; a leader before may have added one that does not vote yet."""
        self._changes.promote_learners()

    def stop(self) -> None:
        self._changes.stop()

    async def add(self, node: str, address: str) -> bytes:
        """Raises UnfitChange, NotLeader, LeadershipLost."""
        if not _ID.fullmatch(node):
            raise UnfitChange(f"expected a node of 1 to 64 letters, digits, _ and ., got {node[:64]!r}")
        if not _ADDRESS.fullmatch(address):
            raise UnfitChange(f"expected an address host:port, got {address[:64]!r}")
        # A node that lags takes one for a member that was removed.
        await self._raft.read_barrier()
        await self._changes.add(node, address)
        return b""

    async def remove(self, node: str) -> bytes:
        """Raises UnfitChange, NotLeader, LeadershipLost."""
        await self._changes.remove(node)
        return b""

    async def transfer(self, node: str) -> bytes:
        """Raises UnfitChange, NotTakenOver, NotLeader."""
        await self._changes.transfer(node)
        return b""

    async def _check_newcomer(self, node: str, address: str) -> None:
        """It has to be there, and to follow nobody in this group but this node. Raises UnfitChange."""
        try:
            answer = await self._remoting.invoke(address, wire.status(), NEWCOMER_TIMEOUT_S)
            groups = {status.get("group"): status for status in wire.decode_status(answer.body)}
        except (ConnectFailed, ConnectionClosed, TimeoutError, MalformedAnswer, MalformedRequest) as error:
            raise UnfitChange(f"no node answers at {address}: {error}") from error
        status = groups.get(self._group)
        if status is None:
            raise UnfitChange(f"the node at {address} has no group {self._group}")
        if status.get("leader") not in (None, self._node):
            raise UnfitChange(f"the node at {address} follows {status['leader']} in group {self._group}")
