"""`Replication` by a DLedger group: this broker's member of it, the log that it has, and how others reach it.

Decisions are those of `system_under_test/dledger`; nothing of a broker's decides what is committed or who leads.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from system_under_test.dledger.node import MemberServer
from system_under_test.dledger.parts import MemberParts
from system_under_test.dledger.remote_peers import RemotePeers
from system_under_test.dledger.store import FileStore
from system_under_test.dledger.vote_file import VoteFile
from system_under_test.dledger.wire import RequestCode
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer, RemotingServer
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.dledger.mastership import DledgerMastership
from system_under_test.rocketmq.broker.dledger.replicated_log import ReplicatedLog
from system_under_test.runtime.host import Host

_UNLIMITED = 1 << 62


class DledgerGroup:
    """`start` comes after the log was recovered."""

    def __init__(self, host: Host, config: BrokerConfig, parts: MemberParts) -> None:
        settings = self._settings = config.member_config()
        self.max_pending = settings.max_pending
        self._listen_port = config.listen_port
        self.mastership: DledgerMastership | None = None
        """As long as this broker is the master; `DledgerRoles` decides that."""
        directory = f"{config.store_path}/dledger-{settings.node}"
        entries = FileStore(host.disk, directory, settings.sizes())
        self._addresses = settings.addresses()
        self._peers = RemotePeers(host, settings.group, settings.node, self._addresses, settings.push_timeout_s)
        self.member = parts.member(
            host,
            settings.group,
            # A master counts those that wait for itself: what is asked for by one request is written as one.
            replace(settings.core(), max_pending=_UNLIMITED),
            settings.times(),
            store=entries,
            votes=VoteFile(host.disk, f"{directory}/vote"),
            peers=self._peers,
            parts=parts.core,
        )
        self._peers.on_connected = self.member.connected
        self.log = ReplicatedLog(entries, self.member)
        self._members = MemberServer(settings, self.member, self._addresses)
        self._server = RemotingServer(host, self._handle)

    @property
    def node(self) -> str:
        return self._settings.node

    @property
    def hears_master(self) -> bool:
        return self.member.leader not in (None, self._settings.node)

    async def start(self) -> None:
        """Other members are answered from now on. Raises OSError if the port is taken."""
        await self._server.start(_port(self._addresses[self._settings.node]))

    async def stop(self) -> None:
        self._server.close()
        await self.member.stop()
        self._peers.close()

    def address_of(self, node: str) -> str:
        """Where the broker of this member takes requests: all use the same distance between their ports."""
        name, _, port = self._addresses[node].rpartition(":")
        return f"{name}:{int(port) + self._listen_port - _port(self._addresses[self._settings.node])}"

    def _handle(
        self, command: RemotingCommand, peer: Peer
    ) -> RemotingCommand | Coroutine[Any, Any, RemotingCommand | None]:
        if command.code == RequestCode.APPEND:
            raise RemotingError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "only the broker appends, and messages alone")
        return self._members.handle(command, peer)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
