"""A node of the metadata store: its part in the Raft group, and the answers to clients.

Only the active leader answers. A read waits for a read barrier, a change until it is applied; a request that waits for
changes is answered when there is one, at the latest after the time that it brings. The leader ends sessions of which it
has heard nothing for the time-out, by commands like any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from system_under_test.metadata import store as commands
from system_under_test.metadata import wire
from system_under_test.metadata.config import MetadataConfig
from system_under_test.metadata.parts import MetadataParts
from system_under_test.metadata.sessions import SessionClock
from system_under_test.metadata.store import MalformedCommand
from system_under_test.metadata.wire import MalformedRequest, Request
from system_under_test.node.assembly import Assembly
from system_under_test.node.settings import read_config
from system_under_test.raft.driver import LeadershipLost, NotLeader, RaftNode
from system_under_test.raft.message import Entry
from system_under_test.raft.snapshot import Snapshot
from system_under_test.raft.transport import PeerTransport
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Answer, Peer, RemotingServer
from system_under_test.replicated.answers import Answers, not_leader
from system_under_test.replicated.shared_port import SharedPort
from system_under_test.runtime.host import Host

MAX_WAITING: Final = 1024
"""Requests that wait for a change; those beyond are answered SYSTEM_BUSY."""
MAX_HOLD_MS: Final = 60_000
"""The longest time for which a request waits for a change."""
MAX_SESSIONS: Final = 4096
"""Sessions that are open at one time; one more is refused with SYSTEM_BUSY."""
SHORTEST_REST_S: Final = 0.05
"""The least time between two looks at silent sessions, also where one of them could not be ended."""


@dataclass(slots=True)
class _Waiting:
    prefix: str
    since: int
    change: asyncio.Future[None]


class MetadataNode:
    """`Service` of a node's process."""

    def __init__(self, host: Host, config: MetadataConfig, parts: MetadataParts) -> None:
        self._host = host
        self._config = config
        self._parts = parts
        self._store = parts.store()
        self._sessions = SessionClock(int(config.session_timeout_s * 1e9))
        self._transport = PeerTransport(
            host,
            node=config.self_id,
            address=config.peers[config.self_id],
            silence_s=config.raft_max_election_timeout_s,
        )
        raft = config.raft()
        self._raft = RaftNode(
            host,
            raft,
            core=parts.raft_core,
            storage=parts.raft_storage(host.disk, raft.directory),
            transport=self._transport,
            check=commands.check,
            apply=self._apply,
            snapshot=self._store.snapshot,
            restore=self._restore,
            on_leadership=self._on_leadership,
        )
        self._answers = Answers(host, lambda: config.apply_timeout_s, self._not_leader)
        self._server = RemotingServer(host, self._handle)
        self._leads = asyncio.Event()
        self._waiting: dict[int, _Waiting] = {}
        self._serial = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Recover, take part in Raft, and take requests. Raises OSError if the port is taken, StorageCorrupt."""
        await self._raft.start()
        await SharedPort(self._host, self._server, self._transport).start(self._config.port)
        self._tasks = [self._host.spawn(self._end_silent_sessions(), "metadata sessions")]

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await self._raft.stop()
        self._transport.close()

    # -- requests

    def _handle(self, command: RemotingCommand, peer: Peer) -> Answer | Coroutine[Any, Any, Answer]:
        try:
            return self._answer(command)
        except (MalformedRequest, MalformedCommand) as error:
            return RemotingCommand.response(ResponseCode.CONTROLLER_INVALID_REQUEST, remark=str(error))

    def _answer(self, command: RemotingCommand) -> Answer | Coroutine[Any, Any, Answer]:
        code = command.code
        if code == Request.GET:
            key = wire.text_field(command, "key")
            return self._read(lambda: wire.encode_entry(self._store.get(key)))
        if code == Request.LIST:
            prefix = wire.text_field(command, "prefix")
            return self._read(lambda: wire.encode_entries(self._store.list(prefix)))
        if code == Request.CHANGE:
            commands.check(command.body)
            # Most clients ask a follower first; no task is needed to turn them away.
            return self._change(command.body) if self._raft.is_active else self._not_leader(self._raft.leader)
        if code == Request.RENEW:
            return self._renew(wire.text_field(command, "session"))
        if code == Request.WAIT:
            prefix, since = wire.text_field(command, "prefix"), wire.number_field(command, "since")
            return self._wait(prefix, since, min(wire.number_field(command, "holdMs"), MAX_HOLD_MS))
        return RemotingCommand.response(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=f"a node of the metadata store does not know request {code}"
        )

    async def _read(self, look: Callable[[], bytes]) -> RemotingCommand:
        return await self._answers.wait(self._parts.read_barrier, self._raft) or _success(look())

    async def _change(self, command: bytes) -> RemotingCommand:
        if len(self._store.sessions) >= MAX_SESSIONS and commands.opens_session(command):
            return RemotingCommand.response(ResponseCode.SYSTEM_BUSY, remark="too many sessions")
        result = await self._answers.wait(self._raft.propose, command)
        return result if isinstance(result, RemotingCommand) else _success(wire.encode_result(result))

    async def _renew(self, session: str) -> RemotingCommand:
        """The session was heard of when the request came, though this node may have to find out whether it leads."""
        if self._raft.is_active:
            self._sessions.hear(session, self._host.clock.monotonic_ns())
        refusal = await self._answers.wait(self._parts.read_barrier, self._raft)
        if refusal is not None:
            return refusal
        is_open = self._store.has_session(session)
        return _success(wire.encode_renewal(round(self._config.session_heartbeat_s * 1e3) if is_open else None))

    async def _wait(self, prefix: str, since: int, hold_ms: int) -> RemotingCommand:
        if not self._raft.is_active:
            return self._not_leader(self._raft.leader)
        if self._store.has_changed(prefix, since):
            return _success(wire.encode_change(True, self._store.version))
        if len(self._waiting) >= MAX_WAITING:
            return RemotingCommand.response(ResponseCode.SYSTEM_BUSY, remark="too many requests wait for changes")
        self._serial = serial = self._serial + 1
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[serial] = _Waiting(prefix, since, change)
        try:
            await self._host.clock.within(hold_ms / 1e3, change)
        except TimeoutError:
            return _success(wire.encode_change(False, since))
        except NotLeader as error:
            return self._not_leader(error.leader)
        finally:
            del self._waiting[serial]
        return _success(wire.encode_change(True, self._store.version))

    def _not_leader(self, leader: str | None) -> RemotingCommand:
        node = self._config.self_id
        address = None if leader is None else self._config.peers.get(leader)
        return not_leader(node, leader, address, f"{node} does not lead the metadata store")

    # -- what was agreed on

    def _apply(self, entry: Entry) -> commands.Result:
        self._answers.applied = entry.index
        version = self._store.version
        result = self._store.apply(entry.data)
        if self._store.version > version:
            self._host.log("metadata_changed", version=self._store.version, command=entry.data.decode())
            self._host.reached("metadata-changed", index=entry.index, version=self._store.version)
            self._wake()
        return result

    def _restore(self, snapshot: Snapshot) -> None:
        self._answers.applied = snapshot.index
        self._store.restore(snapshot.data)
        self._wake()

    def _wake(self) -> None:
        for waiting in self._waiting.values():
            if not waiting.change.done() and self._store.has_changed(waiting.prefix, waiting.since):
                waiting.change.set_result(None)

    # -- the leader's own business

    def _on_leadership(self, is_active: bool) -> None:
        self._host.log("leader" if is_active else "follower", term=self._raft.term)
        if is_active:
            self._sessions.begin_anew()
            self._leads.set()
            return
        self._leads.clear()
        for waiting in self._waiting.values():
            if not waiting.change.done():
                waiting.change.set_exception(NotLeader(self._raft.leader))

    async def _end_silent_sessions(self) -> None:
        clock = self._host.clock
        while True:
            await self._leads.wait()
            for session in self._sessions.silent(self._store.sessions, clock.monotonic_ns()):
                self._host.reached("session-silent")
                try:
                    await self._raft.propose(commands.end_session(session))
                    self._host.reached("session-ended")
                except (NotLeader, LeadershipLost):
                    break
            now_ns = clock.monotonic_ns()
            left_s = (self._sessions.next_deadline_ns(now_ns) - now_ns) / 1e9
            await clock.sleep(max(left_s, SHORTEST_REST_S))


async def serve(host: Host, node: Assembly) -> None:
    """A node of the metadata store, until it is cancelled. Raises ValueError for a wrong setting."""
    service = MetadataNode(host, read_config(MetadataConfig, node.config), node.parts(MetadataParts))
    await node.run([service])


def _success(body: bytes) -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.SUCCESS, body=body)
