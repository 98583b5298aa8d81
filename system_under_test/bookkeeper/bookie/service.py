"""The bookie of a process: settled who it is, registered, and answering by remoting.

The service takes the access to a metadata store that the process has; what keeps its session alive is not its business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

from system_under_test.bookkeeper import mutants
from system_under_test.bookkeeper.bookie.config import BookieConfig
from system_under_test.bookkeeper.bookie.identity import IdentityChoice, IdentityFile
from system_under_test.bookkeeper.bookie.message import BookieAnswer, BookieRequest
from system_under_test.bookkeeper.bookie.registration import Registration, unclosed_ledgers
from system_under_test.bookkeeper.bookie.reports import BookieReports
from system_under_test.bookkeeper.bookie.wire import MalformedBookieCommand, decode_request, encode_answer
from system_under_test.bookkeeper.parts import BookieParts
from system_under_test.metadata.access import MetadataAccess
from system_under_test.node.assembly import Assembly
from system_under_test.node.settings import read_config
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer, RemotingServer
from system_under_test.runtime.host import Host


class BookieService:
    """A `Service` of a node's process."""

    def __init__(self, host: Host, config: BookieConfig, metadata: MetadataAccess, parts: BookieParts) -> None:
        self._host = host
        self._config = config
        self._metadata = metadata
        self.address = f"{host.name}:{config.port}"
        """Under which it is registered."""
        self.bookie = parts.bookie(host, config, parts.digest())
        self._server = RemotingServer(host, self._handle)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Raises IdentityUnfit, StorageCorrupt, StorageFailed, DiskFull; OSError if the port is taken."""
        host, bookie, metadata = self._host, self.bookie, self._metadata
        is_empty = bookie.disk_is_empty
        choice = IdentityChoice(
            host.clock,
            metadata,
            IdentityFile(host.disk, f"{self._config.directory}/identity"),
            place=f"the directory {self._config.directory!r} on the disk of {host.name}",
            address=self.address,
            draw=partial(bookie.draw_identity, host.random),
        )
        identity = await choice.settle(is_empty=is_empty)
        BookieReports(host).identity(identity.own, is_fresh=identity.is_drawn)
        await bookie.open()
        unclosed = await unclosed_ledgers(host.clock, metadata, identity.own) if bookie.may_have_lost else []
        registration = Registration(host.clock, metadata, identity.own)
        await bookie.start(identity, registration, unclosed)
        await self._server.start(self._config.port)
        self._tasks = [
            host.spawn(registration.follow_sessions(), "bookie session"),
            host.spawn(registration.run(), "bookie registration"),
        ]

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await self.bookie.stop()

    def _handle(
        self, command: RemotingCommand, peer: Peer
    ) -> RemotingCommand | Coroutine[Any, Any, RemotingCommand | None]:
        try:
            request = decode_request(command)
        except MalformedBookieCommand as error:
            return RemotingCommand.response(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=str(error))
        answer = self.bookie.answer(request)
        return encode_answer(request, answer) if isinstance(answer, BookieAnswer) else self._later(request, answer)

    async def _later(self, request: BookieRequest, answer: Coroutine[Any, Any, BookieAnswer]) -> RemotingCommand:
        return encode_answer(request, await answer)


async def serve(host: Host, config: Mapping[str, Any], metadata: MetadataAccess) -> None:
    """A process with a bookie and nothing else. Raises ValueError for a wrong or unknown setting."""
    node = Assembly(host, config, mutants)
    service = BookieService(host, read_config(BookieConfig, node.config), metadata, node.parts(BookieParts))
    await node.run([service])
