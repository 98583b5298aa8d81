"""A node of CMQ: its part in each group, one transport for all of them, and the answers to clients and administrators.

A queue belongs to one group for ever, by its name. Requests about it are for that group's leader; any other node turns
them away before anything is appended, and says who leads if it has heard of one. What cannot be said for certain after
something was appended is answered OUTCOME_UNKNOWN. Nobody retries in secret.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Final

from system_under_test.cmq import mutants, wire
from system_under_test.cmq.config import CmqConfig
from system_under_test.cmq.entry import checked_queue
from system_under_test.cmq.group import DiskIsFull, QueueGroup, Refused
from system_under_test.cmq.membership import GroupMembers
from system_under_test.cmq.parts import CmqParts
from system_under_test.cmq.routing import group_of
from system_under_test.cmq.spread import LeaderSpread
from system_under_test.cmq.state_machine import Refusal
from system_under_test.cmq.wire import Code, MalformedRequest, Request
from system_under_test.node.assembly import Assembly
from system_under_test.node.settings import read_config
from system_under_test.raft.driver import LeadershipLost, NotLeader
from system_under_test.raft.membership import UnfitChange
from system_under_test.raft.transport import PeerTransport
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer, RemotingServer
from system_under_test.replicated.members import NotTakenOver
from system_under_test.replicated.shared_port import SharedPort
from system_under_test.runtime.host import Host

MOST_WAIT_MS: Final = 60_000
"""The longest time for which a pull waits."""
_REFUSED: Final = {
    Refusal.UNKNOWN_QUEUE: Code.UNKNOWN_QUEUE,
    Refusal.TOO_MANY_QUEUES: Code.TOO_MANY_QUEUES,
    Refusal.NEVER_PRODUCED: Code.UNKNOWN_MESSAGE,
}


class CmqNode:
    """`Service` of a node's process."""

    def __init__(self, host: Host, config: CmqConfig, parts: CmqParts) -> None:
        self._host = host
        self._config = config
        self._transport = PeerTransport(
            host, node=config.self_id, address=config.peers[config.self_id], silence_s=config.max_election_timeout_s
        )
        self._remoting = RemotingClient(host)
        self._groups = {
            number: QueueGroup(host, config, number, self._transport, parts) for number in range(1, config.groups + 1)
        }
        self._members = {
            number: GroupMembers(host, config, number, group.raft, self._remoting)
            for number, group in self._groups.items()
        }
        for number, group in self._groups.items():
            group.on_active = self._members[number].led
        self._spread = LeaderSpread(host, config, {number: group.raft for number, group in self._groups.items()})
        self._server = RemotingServer(host, self.handle)

    async def start(self) -> None:
        """Recover, take part in each group, and take requests. Raises OSError if the port is taken, StorageCorrupt."""
        for group in self._groups.values():
            await group.start()
        await SharedPort(self._host, self._server, self._transport).start(self._config.port)
        self._spread.start()

    async def stop(self) -> None:
        self._server.close()
        self._spread.stop()
        for members in self._members.values():
            members.stop()
        for group in self._groups.values():
            await group.stop()
        self._transport.close()
        self._remoting.close()

    def handle(self, command: RemotingCommand, peer: Peer) -> RemotingCommand | Coroutine[Any, Any, RemotingCommand]:
        """A `Handler` of remoting."""
        code = command.code
        try:
            if code in (Request.CREATE, Request.PRODUCE, Request.PULL, Request.ACK, Request.ROUTE):
                return self._about_queue(command)
            if code == Request.STATUS:
                return _success(wire.encode_status([self._status(number) for number in self._groups]))
            if code in (Request.ADD, Request.REMOVE, Request.TRANSFER):
                return self._about_members(command)
        except MalformedRequest as error:
            return RemotingCommand.response(Code.MALFORMED, remark=str(error))
        return RemotingCommand.response(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=f"a node of CMQ does not know request {code}"
        )

    # -- queues

    def _about_queue(self, command: RemotingCommand) -> RemotingCommand | Coroutine[Any, Any, RemotingCommand]:
        """Raises MalformedRequest."""
        try:
            queue = checked_queue(wire.text_field(command, "queue"))
        except ValueError as error:
            raise MalformedRequest(str(error)) from error
        number = group_of(queue, self._config.groups)
        group = self._groups[number]
        if command.code == Request.ROUTE:
            return RemotingCommand.response(Code.SUCCESS, {"group": str(number), **self._leader_fields(number)})
        work = self._work(command, group, queue)
        if isinstance(work, RemotingCommand):
            return work
        if not group.raft.is_active:
            # Most clients ask a follower first; no task is needed to turn them away.
            work.close()
            return self._not_leader(number)
        return self._answered(number, work)

    def _work(
        self, command: RemotingCommand, group: QueueGroup, queue: str
    ) -> RemotingCommand | Coroutine[Any, Any, bytes]:
        """Raises MalformedRequest."""
        if command.code == Request.CREATE:
            return _created(group, queue)
        if command.code == Request.PRODUCE:
            bodies = wire.bodies_of(command)
            longest, most = max(map(len, bodies)), self._config.message_bytes
            if longest > most:
                remark = f"a message has {longest} bytes, and at most {most} are taken"
                return RemotingCommand.response(Code.TOO_LONG, remark=remark)
            return _produced(group, queue, bodies)
        if command.code == Request.ACK:
            return _acknowledged(group, queue, wire.numbers_of(command))
        most = wire.number_field(command, "most")
        if not 1 <= most <= wire.MOST_MESSAGES:
            raise MalformedRequest(f"field 'most': expected 1 to {wire.MOST_MESSAGES}, got {most}")
        return _pulled(group, queue, most, min(wire.number_field(command, "waitMs"), MOST_WAIT_MS))

    # -- members

    def _about_members(self, command: RemotingCommand) -> Coroutine[Any, Any, RemotingCommand]:
        """Raises MalformedRequest."""
        number = wire.number_field(command, "group")
        if number not in self._groups:
            raise MalformedRequest(f"field 'group': expected 1 to {len(self._groups)}, got {number}")
        node, members = wire.text_field(command, "node"), self._members[number]
        if command.code == Request.ADD:
            return self._answered(number, members.add(node, wire.text_field(command, "address")))
        return self._answered(number, (members.remove if command.code == Request.REMOVE else members.transfer)(node))

    def _status(self, number: int) -> dict[str, Any]:
        raft = self._groups[number].raft
        return {
            "group": number,
            "term": raft.term,
            "leads": raft.is_active,
            "leader": raft.leader,
            "members": dict(raft.membership.voters),
            "learners": dict(raft.membership.learners),
            "membershipIndex": raft.committed_membership_index,
        }

    # -- answers

    async def _answered(self, number: int, work: Coroutine[Any, Any, bytes]) -> RemotingCommand:
        try:
            return _success(await work)
        except NotLeader:
            return self._not_leader(number)
        except (LeadershipLost, TimeoutError) as error:
            remark = "the leadership was lost" if isinstance(error, LeadershipLost) else "there was no answer in time"
            return RemotingCommand.response(Code.OUTCOME_UNKNOWN, remark=remark)
        except Refused as error:
            return RemotingCommand.response(_REFUSED[error.refusal], remark=str(error))
        except DiskIsFull:
            return RemotingCommand.response(Code.DISK_FULL, remark=f"the disk of {self._host.name} is full")
        except UnfitChange as error:
            return RemotingCommand.response(Code.UNFIT_CHANGE, remark=str(error))
        except NotTakenOver as error:
            return RemotingCommand.response(Code.NOT_TAKEN_OVER, remark=str(error))

    def _not_leader(self, number: int) -> RemotingCommand:
        remark = f"{self._config.self_id} does not lead group {number}"
        return RemotingCommand.response(Code.NOT_LEADER, self._leader_fields(number), remark=remark)

    def _leader_fields(self, number: int) -> dict[str, str]:
        raft = self._groups[number].raft
        address = raft.membership.addresses.get(raft.leader or "")
        is_of_use = raft.leader is not None and address is not None
        return {"leader": str(raft.leader), "leaderAddress": str(address)} if is_of_use else {}


async def _created(group: QueueGroup, queue: str) -> bytes:
    await group.create(queue)
    return b""


async def _produced(group: QueueGroup, queue: str, bodies: list[bytes]) -> bytes:
    return wire.produced(await group.produce(queue, bodies))


async def _acknowledged(group: QueueGroup, queue: str, numbers: list[int]) -> bytes:
    return wire.acknowledged(await group.acknowledge(queue, numbers))


async def _pulled(group: QueueGroup, queue: str, most: int, wait_ms: int) -> bytes:
    return wire.encode_pulled(await group.pull(queue, most, wait_ms / 1e3))


def _success(body: bytes) -> RemotingCommand:
    return RemotingCommand.response(Code.SUCCESS, body=body)


async def node(host: Host, config: Mapping[str, Any]) -> None:
    """Runs until it is cancelled. Raises ValueError for a wrong setting, before anything is started."""
    assembly = Assembly(host, config, mutants)
    await assembly.run([CmqNode(host, read_config(CmqConfig, assembly.config), assembly.parts(CmqParts))])
