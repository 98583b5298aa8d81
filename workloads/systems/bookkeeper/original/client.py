"""A partition of a release as a queue of the workload `log`: sends and polls go to the broker that owns it.

Final reads show the log as it is at one bookie, by way of a broker's client: what that bookie should have is read
there, and what it does not, at the others. They are read after the ledger that takes entries was closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.bookkeeper.partition.position import Position, position_of
from workloads.systems.bookkeeper.nodes import BOOKIE_PORT, PARTITION
from workloads.systems.bookkeeper.original.brokers import Brokers

FINAL_READS = ("final-poll", "caught-up")


class OriginalLogClient:
    """`Client` of one process. As a consumer it begins at the first message."""

    def __init__(self, host: Any, names: Sequence[str], patience_s: float) -> None:
        self._brokers = Brokers(host, names, patience_s)
        self._next: dict[str, int] = {}

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._brokers.close()

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
        node, answer = await self._brokers.ask_any(f="send", partition=partition, messages=messages)
        return node, Position(answer["place"], answer["entry"]).offset

    async def _poll(self, operation: Operation, partition: str) -> tuple[str | None, Mapping[str, Any]]:
        node, value, _ = await self._read("read", partition, self._next.get(partition, 0))
        self._next[partition] = value["offset"]
        return node, value

    async def _final_poll(self, operation: Operation, partition: str) -> tuple[str | None, Mapping[str, Any]]:
        assert operation.value is not None and operation.node is not None
        begin, bookie = operation.value["offset"], f"{operation.node}:{BOOKIE_PORT}"
        _, value, is_open = await self._read("read-at", partition, begin, bookie=bookie)
        if is_open and not value["messages"]:
            await self._brokers.ask_any(f="seal", partition=partition)
            # What is open now is the last one, and had no entries.
            _, value, _ = await self._read("read-at", partition, begin, bookie=bookie)
        return operation.node, value

    async def _read(self, request: str, partition: str, offset: int, **more: str) -> tuple[str, dict[str, Any], bool]:
        """Who answered, what is there from an offset on, and whether an open ledger follows. Raises OperationError."""
        begin = position_of(offset)
        node, answer = await self._brokers.ask_any(
            f=request, partition=partition, place=begin.ledger, entry=begin.entry, **more
        )
        messages = [
            {"offset": at.offset, "message": message}
            for place, entry, batch in answer["entries"]
            for number, message in enumerate(batch)
            if (at := Position(place, entry, number)) >= begin
        ]
        end = Position(answer["place"], answer["entry"]).offset
        return node, {"message": None, "offset": end, "messages": messages}, answer["open"]

    async def _caught_up(self, operation: Operation, partition: str) -> tuple[str | None, Mapping[str, Any]]:
        """Ok only if neither this bookie nor the owner shows anything from the position on."""
        assert operation.value is not None
        begin = operation.value["offset"]
        _, found, _ = await self._read("read", partition, begin)
        if found["messages"] or (await self._final_poll(operation, partition))[1]["messages"]:
            raise OperationError(PRECONDITION_FAILED, f"there is more behind {begin}", node=operation.node)
        return operation.node, operation.value
