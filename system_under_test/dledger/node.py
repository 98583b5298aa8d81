"""A process of a DLedger group: its member, and the server that answers other members and clients by remoting.

The config has DLedger's setting names (`config.py`), and `mutant`: the name of a planted bug. A wrong or unknown
setting raises ValueError that names it, before anything is started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from system_under_test.dledger import mutants
from system_under_test.dledger.client_message import (
    AppendAnswer,
    AppendRequest,
    ClientAnswer,
    EntriesAnswer,
    GetRequest,
    MetadataAnswer,
    MetadataRequest,
    PullRequest,
)
from system_under_test.dledger.config import MemberConfig, StoreType
from system_under_test.dledger.driver import GroupMember, Store
from system_under_test.dledger.json_fields import MalformedBody
from system_under_test.dledger.memory_store import MemoryStore
from system_under_test.dledger.message import Answer, AnyAnswer, Code, Request
from system_under_test.dledger.parts import MemberParts
from system_under_test.dledger.remote_peers import RemotePeers
from system_under_test.dledger.store import FileStore
from system_under_test.dledger.vote_file import VoteFile
from system_under_test.dledger.wire import Addressed, decode_request, encode_answer
from system_under_test.node.assembly import Assembly, AtPort
from system_under_test.node.settings import read_config
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer, RemotingServer
from system_under_test.runtime.host import Host

READ_BYTES = 64 * 1024
"""How many bytes of entries an answer has at most, unless the first one is longer."""


class MemberServer:
    """Answers requests of members and clients."""

    def __init__(self, config: MemberConfig, member: GroupMember, addresses: Mapping[str, str]) -> None:
        self._group = config.group
        self._node = config.node
        self._member = member
        self._addresses = addresses

    def handle(
        self, command: RemotingCommand, peer: Peer
    ) -> RemotingCommand | Coroutine[Any, Any, RemotingCommand | None]:
        try:
            asked = decode_request(command.code, command.body)
        except MalformedBody as error:
            return RemotingCommand.response(Code.UNEXPECTED_ARGUMENT, remark=str(error))
        refusal = asked.refusal(self._group, self._node)
        if refusal is not None:
            return self._answer(asked, self._plain(refusal))
        request = asked.request
        if isinstance(request, AppendRequest):
            return self._append(asked, request)
        if isinstance(request, Request):
            answer = self._member.receive(request)
            return self._answer(asked, answer.result()) if answer.done() else self._later(asked, answer)
        return self._answer(asked, self._read(request))

    async def _append(self, asked: Addressed, request: AppendRequest) -> RemotingCommand:
        appended = await self._member.append(request.bodies)
        answer = AppendAnswer(
            code=appended.code,
            term=self._member.term,
            leader=self._member.leader,
            index=appended.index,
            position=appended.position,
        )
        return self._answer(asked, answer)

    async def _later(self, asked: Addressed, answer: asyncio.Future[AnyAnswer]) -> RemotingCommand:
        return self._answer(asked, await answer)

    def _plain(self, code: Code) -> Answer:
        return Answer(code, self._member.term, self._member.leader)

    def _answer(self, asked: Addressed, answer: AnyAnswer | ClientAnswer) -> RemotingCommand:
        return RemotingCommand.response(Code.SUCCESS, body=encode_answer(asked, answer))

    def _read(self, request: GetRequest | PullRequest | MetadataRequest) -> ClientAnswer:
        if isinstance(request, GetRequest):
            code = Code.SUCCESS if self._member.is_leader else Code.NOT_LEADER
            return self._entries(code, request.begin, request.max_bytes)
        if isinstance(request, PullRequest):
            return self._entries(Code.SUCCESS, request.begin, READ_BYTES)
        return MetadataAnswer(
            code=Code.SUCCESS, term=self._member.term, leader=self._member.leader, peers=self._addresses
        )

    def _entries(self, code: Code, begin: int, max_bytes: int) -> EntriesAnswer:
        most_bytes = min(max_bytes if max_bytes > 0 else READ_BYTES, READ_BYTES)
        entries = self._member.entries(begin, most_bytes) if code is Code.SUCCESS else []
        return EntriesAnswer(code=code, term=self._member.term, leader=self._member.leader, entries=tuple(entries))


async def member(host: Host, config: Mapping[str, Any]) -> None:
    node = Assembly(host, config, mutants)
    settings = read_config(MemberConfig, node.config)
    parts = node.parts(MemberParts)
    addresses = settings.addresses()
    peers = RemotePeers(host, settings.group, settings.node, addresses, settings.push_timeout_s)
    own = parts.member(
        host,
        settings.group,
        settings.core(),
        settings.times(),
        store=store(host, settings),
        votes=VoteFile(host.disk, "dledger/vote"),
        peers=peers,
        cleaning=settings.cleaning(),
        parts=parts.core,
    )
    peers.on_connected = own.connected
    port = int(addresses[settings.node].rpartition(":")[2])
    server = MemberServer(settings, own, addresses)
    await node.run([own, AtPort(RemotingServer(host, server.handle), port)])


def store(host: Host, settings: MemberConfig) -> Store:
    if settings.store_type is StoreType.MEMORY:
        return MemoryStore()
    return FileStore(host.disk, "dledger", settings.sizes(), settings.full_share)
