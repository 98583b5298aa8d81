"""A partition as a queue of the workload `log`: sends go to the broker that owns it, and polls to it or to the bookies.

Who owns it, the metadata store says. Final reads show the log as it is at one bookie: what that bookie should have is
read there, and what it does not, as an entry that was acknowledged without it, at the others. They are read after the
ledger that takes entries was closed: before that bookies cannot know where it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

from harness.errors import CLIENT_TIMEOUT, CONNECT_FAILED, CONNECTION_LOST, PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.bookkeeper.entry import Entry
from system_under_test.bookkeeper.ledger.driver import MOST_AT_ONCE, LedgerReader
from system_under_test.bookkeeper.ledger.errors import EntryAbsent, EntryHarmed, LedgerError
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from system_under_test.bookkeeper.partition import wire
from system_under_test.bookkeeper.partition.ledger_list import owner_key_of, read_list
from system_under_test.bookkeeper.partition.payload import encode_messages
from system_under_test.bookkeeper.partition.position import Position, position_of
from system_under_test.bookkeeper.partition.reading import Found, PartitionReader, messages_from
from system_under_test.bookkeeper.partition.wire import MalformedAnswer
from system_under_test.metadata.access import MetadataError
from system_under_test.metadata.client import MetadataClient
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed
from workloads.systems.bookkeeper.errors import ENTRY_UNREAD, METADATA_UNAVAILABLE, NOT_SERVING, error_of
from workloads.systems.bookkeeper.nodes import BOOKIE_PORT, BROKER_PORT, METADATA_ADDRESSES, PARTITION
from workloads.systems.bookkeeper.settings import BookkeeperSettings, Readers

FINAL_READS = ("final-poll", "caught-up")


class PartitionClient:
    """Asks the owners of partitions."""

    def __init__(self, host: Any, patience_s: float) -> None:
        self.metadata = MetadataClient(host, METADATA_ADDRESSES, timeout_s=patience_s)
        self._remoting = RemotingClient(host)
        self._patience_s = patience_s
        self._owners: dict[str, str] = {}

    async def owner(self, partition: str) -> str | None:
        """The broker that has the owner's key, if there is one. Raises OperationError."""
        try:
            found = await self.metadata.get(owner_key_of(partition))
        except MetadataError as error:
            raise OperationError(METADATA_UNAVAILABLE, str(error)) from error
        return None if found is None else found.value

    async def ask(self, partition: str, command: RemotingCommand) -> tuple[str, bytes]:
        """Who answered, and what. A second broker is asked only where the first one certainly did nothing. Raises
        OperationError."""
        broker = self._owners.get(partition)
        if broker is not None:
            try:
                return broker, await self._ask(broker, command)
            except OperationError as error:
                del self._owners[partition]
                if error.error not in (NOT_SERVING, CONNECT_FAILED):
                    raise
        owner = await self.owner(partition)
        if owner is None:
            raise OperationError(NOT_SERVING, f"nobody owns {partition}")
        answer = await self._ask(owner, command)
        self._owners[partition] = owner
        return owner, answer

    async def _ask(self, broker: str, command: RemotingCommand) -> bytes:
        try:
            answer = await self._remoting.invoke(f"{broker}:{BROKER_PORT}", command, self._patience_s)
        except ConnectFailed as error:
            raise OperationError(CONNECT_FAILED, str(error), node=broker) from error
        except ConnectionClosed as error:
            raise OperationError(CONNECTION_LOST, str(error), node=broker) from error
        except TimeoutError as error:
            raise OperationError(CLIENT_TIMEOUT, str(error), node=broker) from error
        if answer.code != wire.Code.SUCCESS:
            raise OperationError(error_of(answer.code), answer.remark or f"code {answer.code}", node=broker)
        return answer.body

    async def close(self) -> None:
        self._remoting.close()
        await self.metadata.stop()


class LogClient:
    """`Client` of one process. As a consumer it begins at the first message."""

    def __init__(self, host: Any, settings: BookkeeperSettings, patience_s: float) -> None:
        self._partitions = PartitionClient(host, patience_s)
        self._reader = LedgerReader(host, self._partitions.metadata)
        self._readers = settings.readers
        self._next: dict[str, int] = {}
        self._closed: dict[int, LedgerMetadata] = {}
        """Of ledgers that were seen to be closed, for final reads; who has their entries may be others by now."""

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._reader.close()
        await self._partitions.close()

    async def invoke(self, operation: Operation) -> Operation:
        actions = {
            "send": self._send,
            "send-batch": self._send_batch,
            "poll": self._poll,
            "final-poll": self._final_poll,
            "caught-up": self._caught_up,
        }
        assert operation.key is not None
        partition = PARTITION.format(operation.key.rpartition("/")[2])
        try:
            node, value = await actions[operation.f](operation, partition)
        except MalformedAnswer as error:
            raise OperationError(CONNECTION_LOST, str(error)) from error
        except OperationError as error:
            if operation.f not in FINAL_READS:
                raise
            # The place that is read is the bookie's, not that of the broker which refused.
            raise OperationError(error.error, error.detail, node=operation.node) from error
        return operation._replace(type="ok", value=value, node=node)

    async def _send(self, operation: Operation, partition: str) -> tuple[str | None, Mapping[str, Any]]:
        value = dict(operation.value or {})
        node, offset = await self._append(partition, [value["message"]])
        return node, {**value, "offset": offset}

    async def _send_batch(self, operation: Operation, partition: str) -> tuple[str | None, Mapping[str, Any]]:
        value = dict(operation.value or {})
        parts = value["txn"]
        node, offset = await self._append(partition, [part["message"] for part in parts])
        return node, {**value, "txn": [{**part, "offset": offset + place} for place, part in enumerate(parts)]}

    async def _append(self, partition: str, messages: list[int]) -> tuple[str, int]:
        payload = encode_messages([b"%d" % message for message in messages])
        node, body = await self._partitions.ask(partition, wire.send(partition, payload))
        return node, wire.decode_sent(body)

    async def _poll(self, operation: Operation, partition: str) -> tuple[str | None, Mapping[str, Any]]:
        begin = self._next.get(partition, 0)
        if self._readers is Readers.OWNER:
            node, found = await self._read(partition, begin)
        else:
            node, found = None, await self._read_without_owner(partition, begin)
        self._next[partition] = found.next_offset
        return node, _read_value(found)

    async def _read(self, partition: str, offset: int) -> tuple[str, Found]:
        node, body = await self._partitions.ask(partition, wire.read(partition, offset))
        return node, wire.decode_found(body)

    async def _read_without_owner(self, partition: str, offset: int) -> Found:
        """At whatever bookies have it."""
        reader = PartitionReader(partition, self._partitions.metadata, self._reader)
        return await _at_bookies(reader.read(offset))

    async def _final_poll(self, operation: Operation, partition: str) -> tuple[str | None, Mapping[str, Any]]:
        assert operation.value is not None and operation.node is not None
        found = await _at_bookies(self._at_bookie(operation.node, partition, operation.value["offset"]))
        return operation.node, _read_value(found)

    async def _at_bookie(self, node: str, partition: str, offset: int) -> Found:
        """Of ledgers that are closed. Raises MetadataError, LedgerError, OperationError."""
        position = position_of(offset)
        bookie, listed = await asyncio.gather(
            self._reader.bookies.at(f"{node}:{BOOKIE_PORT}"), read_list(self._partitions.metadata, partition)
        )
        messages: list[tuple[int, bytes]] = []
        for place in range(position.ledger, len(listed.ledgers)):
            ledger = await self._ended(listed.ledgers[place], partition)
            if ledger.state is not LedgerState.CLOSED:
                # It is the last one, and has no entries.
                break
            position = position if position.ledger == place else Position(place, 0)
            while position.entry <= ledger.last_entry and not messages:
                numbers = range(position.entry, min(position.entry + MOST_AT_ONCE, ledger.last_entry + 1))
                held = {} if bookie is None else await self._reader.read_at(ledger, bookie, numbers)
                for entry in await asyncio.gather(*(self._entry(ledger, number, held) for number in numbers)):
                    messages += () if entry is None else messages_from(position, entry)
                position = Position(place, numbers.stop)
            if messages:
                break
        return Found(tuple(messages), position.offset)

    async def _entry(self, ledger: LedgerMetadata, entry: int, held: Mapping[int, Entry]) -> Entry | None:
        """`held`: what the bookie has. None where it is lost, or harmed at all bookies: readers go on behind it, for
        what was lost is to be judged. Raises LedgerError."""
        try:
            return held.get(entry) or await self._reader.read(ledger, entry)
        except (EntryAbsent, EntryHarmed):
            return None

    async def _ended(self, number: int, partition: str) -> LedgerMetadata:
        """Closed, unless it is the last one of the partition, and has no entries."""
        known = self._closed.get(number)
        if known is not None:
            return known
        ledger = await self._reader.metadata(number)
        if ledger.state is not LedgerState.CLOSED:
            await self._partitions.ask(partition, wire.seal(partition))
            ledger = await self._reader.metadata(number)
        if ledger.state is LedgerState.CLOSED:
            self._closed[number] = ledger
        return ledger

    async def _caught_up(self, operation: Operation, partition: str) -> tuple[str | None, Mapping[str, Any]]:
        """Ok only if neither this bookie nor the owner shows anything from the position on."""
        assert operation.value is not None
        begin = operation.value["offset"]
        _, found = await self._read(partition, begin)
        if found.messages or (await self._final_poll(operation, partition))[1]["messages"]:
            raise OperationError(PRECONDITION_FAILED, f"there is more behind {begin}", node=operation.node)
        return operation.node, operation.value


async def _at_bookies(reading: Awaitable[Found]) -> Found:
    """Raises OperationError."""
    try:
        return await reading
    except MetadataError as error:
        raise OperationError(METADATA_UNAVAILABLE, str(error)) from error
    except LedgerError as error:
        raise OperationError(ENTRY_UNREAD, str(error)) from error


def _read_value(found: Found) -> dict[str, Any]:
    messages = [{"offset": offset, "message": int(message)} for offset, message in found.messages]
    return {"message": None, "offset": found.next_offset, "messages": messages}
