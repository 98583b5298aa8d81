"""A broker's answers to clients, about the partitions that it would like to own."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

from system_under_test.bookkeeper.ledger.errors import LedgerError
from system_under_test.bookkeeper.partition import wire
from system_under_test.bookkeeper.partition.partition import NotServing, Partition
from system_under_test.bookkeeper.partition.payload import MalformedPayload, decode_messages
from system_under_test.bookkeeper.partition.wire import Code, MalformedRequest, Request
from system_under_test.metadata.access import Unavailable
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer


class Broker:
    def __init__(self, name: str, partitions: Mapping[str, Partition]) -> None:
        self._name = name
        self._partitions = partitions

    def handle(self, command: RemotingCommand, peer: Peer) -> RemotingCommand | Coroutine[Any, Any, RemotingCommand]:
        """A `Handler` of remoting."""
        if command.code not in list(Request):
            remark = f"a broker does not know request {command.code}"
            return RemotingCommand.response(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        return self._answer(command)

    async def _answer(self, command: RemotingCommand) -> RemotingCommand:
        try:
            return RemotingCommand.response(Code.SUCCESS, body=await self._done(command))
        except (MalformedRequest, MalformedPayload) as error:
            return RemotingCommand.response(Code.MALFORMED, remark=str(error))
        except NotServing:
            return RemotingCommand.response(Code.NOT_SERVING, remark=f"{self._name} does not serve the partition")
        except LedgerError as error:
            return RemotingCommand.response(Code.REFUSED if error.is_definite else Code.FAILED, remark=str(error))
        except Unavailable as error:
            return RemotingCommand.response(Code.FAILED, remark=str(error))

    async def _done(self, command: RemotingCommand) -> bytes:
        name = wire.partition_of(command)
        if name not in self._partitions:
            raise MalformedRequest(f"there is no partition {name[:100]!r} at {self._name}")
        partition = self._partitions[name]
        if command.code == Request.SEND:
            decode_messages(command.body)
            return wire.sent(await partition.send(command.body))
        if command.code == Request.READ:
            return wire.found(await partition.read(wire.offset_of(command)))
        await partition.seal()
        return b""
