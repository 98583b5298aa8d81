"""A log on etcd, read by watches: a message is a key that is put once, and its offset the revision at which it was.

Offsets grow, and pass over the revisions of whatever else was written. A consumer reads by a watch at its member that
begins at the revision where it goes on, so that an event which a watch leaves out, repeats or tells out of order is an
anomaly of the log (https://etcd.io/docs/v3.4/learning/api/#watch-streams says that it does neither). Final reads put
a mark behind everything, and watch from the beginning until they see it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.errors import CLIENT_TIMEOUT, OperationError
from harness.operation import Operation
from workloads.systems.etcd.errors import READ_FAILED
from workloads.systems.etcd.gateway import Gateway, below, packed, unpacked

FIRST_REVISION = 1
NEWS_AWAITED_S = 0.2
"""So long a poll waits for an event where there is none."""
MARK_AWAITED_S = 3.0
MARK = "mark"
MOST_AT_ONCE = 32

Message = Mapping[str, int]


class WatchLogClient:
    """Client of one process: a producer, and a consumer with a group of its own. It stays with one member, but for
    final reads, which say whom they ask."""

    def __init__(self, node: str, gateway_of: Callable[[str], Gateway], group: str) -> None:
        self._gateway, self._gateway_of, self._group = gateway_of(node), gateway_of, group
        self._asked_in_the_end: dict[str, Gateway] = {}
        self._watches: dict[str, Watch] = {}
        self._positions: dict[str, int] = {}
        self._committed: dict[str, int] = {}

    async def open(self) -> None:
        """The first request connects."""

    async def close(self) -> None:
        for watch in self._watches.values():
            await watch.close()
        for gateway in (self._gateway, *self._asked_in_the_end.values()):
            await gateway.close()

    async def invoke(self, operation: Operation) -> Operation:
        if operation.f == "send":
            value = await self._sent(operation)
        else:
            reading = {"poll": self._polled, "final-poll": self._read_to_the_end, "caught-up": self._caught_up}
            try:
                value = await reading[operation.f](operation)
            except OperationError as error:
                if error.error.definite:
                    raise
                raise OperationError(READ_FAILED, str(error), node=self._gateway.node) from error
        return operation._replace(type="ok", value=value, node=operation.node or self._gateway.node)

    async def _sent(self, operation: Operation) -> Mapping[str, Any]:
        assert operation.key is not None and operation.value is not None
        put = {"key": packed(f"{_prefix(operation.key)}{operation.value['message']}")}
        answer = await self._gateway.ask("kv/put", put)
        return {**operation.value, "offset": int(answer["header"]["revision"])}

    async def _polled(self, operation: Operation) -> Mapping[str, Any]:
        assert operation.key is not None
        key, resumed = operation.key, None
        position = self._positions.get(key)
        if position is None:
            resumed = position = await self._group_position(key)
        elif position != self._committed.get(key):
            await self._commit(key, position)
        watch = self._watches.setdefault(key, Watch(self._gateway, _prefix(key)))
        found = await watch.messages(position, MOST_AT_ONCE)
        position = self._positions[key] = found[-1]["offset"] + 1 if found else position
        return {**_messages(position, found), "group": self._group, "resumed": resumed}

    async def _group_position(self, key: str) -> int:
        found = (await self._gateway.ask("kv/range", {"key": packed(f"{self._group}/{key}")})).get("kvs")
        return int(unpacked(found[0]["value"])) if found else FIRST_REVISION

    async def _commit(self, key: str, position: int) -> None:
        """What earlier polls have returned. A commit that fails means redelivery, which is legal."""
        put = {"key": packed(f"{self._group}/{key}"), "value": packed(str(position))}
        try:
            await self._gateway.ask("kv/put", put)
        except OperationError:
            return
        self._committed[key] = position

    async def _read_to_the_end(self, operation: Operation) -> Mapping[str, Any]:
        """All that its member tells from the position on, by a watch of its own."""
        assert operation.key is not None and operation.value is not None
        prefix, position = _prefix(operation.key), max(operation.value["offset"], FIRST_REVISION)
        gateway = self._of(operation)
        marked = await gateway.ask("kv/put", {"key": packed(prefix + MARK)})
        watch = Watch(gateway, prefix)
        try:
            found = await watch.until(position, int(marked["header"]["revision"]))
        finally:
            await watch.close()
        return _messages(found[-1]["offset"] + 1 if found else position, found)

    def _of(self, operation: Operation) -> Gateway:
        assert operation.node is not None
        if operation.node not in self._asked_in_the_end:
            self._asked_in_the_end[operation.node] = self._gateway_of(operation.node)
        return self._asked_in_the_end[operation.node]

    async def _caught_up(self, operation: Operation) -> Mapping[str, Any]:
        """Ok if no message was put at the position or behind it, by a read that is not stale."""
        assert operation.key is not None and operation.value is not None
        prefix = _prefix(operation.key)
        newer = {**below(prefix), "keys_only": True, "min_mod_revision": str(operation.value["offset"])}
        found = (await self._of(operation).ask("kv/range", newer)).get("kvs", ())
        if any(unpacked(one["key"]) != prefix + MARK for one in found):
            raise OperationError(READ_FAILED, "there is more to be read", node=self._gateway.node)
        return operation.value


class Watch:
    """Events of all keys below a prefix, as one member tells them; opened where somebody reads, also again."""

    def __init__(self, gateway: Gateway, prefix: str) -> None:
        self._gateway, self._prefix = gateway, prefix
        self._reading: asyncio.Task[None] | None = None
        self._messages: list[Message] = []
        self._news = asyncio.Event()
        self._reached = 0
        """Revision of the newest event, marks among them."""

    async def messages(self, position: int, most: int) -> list[Message]:
        """The next ones from this revision on, which are not told again; it is where the last ones ended. Waits a
        moment where there are none. Raises OperationError where the watch has ended; it is opened again then."""
        await self._await(position, lambda: bool(self._messages), NEWS_AWAITED_S)
        found, self._messages = self._messages[:most], self._messages[most:]
        return found

    async def until(self, position: int, revision: int) -> list[Message]:
        """All from one revision to another, at which there is an event. Raises OperationError."""
        if not await self._await(position, lambda: self._reached >= revision, MARK_AWAITED_S):
            raise OperationError(CLIENT_TIMEOUT, "the mark was not seen", node=self._gateway.node)
        return [one for one in self._messages if one["offset"] < revision]

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._reading = None
        self._messages = []

    async def _await(self, position: int, seen: Callable[[], bool], seconds: float) -> bool:
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(position))
        deadline = asyncio.get_running_loop().time() + seconds
        while not seen() and not self._reading.done():
            self._news.clear()
            left = deadline - asyncio.get_running_loop().time()
            try:
                await asyncio.wait_for(self._news.wait(), left)
            except TimeoutError:
                break
        if not seen() and self._reading.done():
            ended, self._reading = self._reading, None
            ended.result()
            raise OperationError(READ_FAILED, "the watch has ended", node=self._gateway.node)
        return seen()

    async def _read(self, position: int) -> None:
        """Until the watch ends. Raises OperationError."""
        create = {**below(self._prefix), "start_revision": str(position)}
        try:
            async for result in self._gateway.stream("watch", {"create_request": create}):
                if result.get("canceled"):
                    words = result.get("cancel_reason") or "the watch was cancelled"
                    raise OperationError(READ_FAILED, str(words), node=self._gateway.node)
                self._take(result.get("events", ()))
        finally:
            self._news.set()

    def _take(self, events: Sequence[Mapping[str, Any]]) -> None:
        for event in events:
            name, revision = unpacked(event["kv"]["key"]).removeprefix(self._prefix), int(event["kv"]["mod_revision"])
            self._reached = max(self._reached, revision)
            if name != MARK:
                self._messages.append({"offset": revision, "message": int(name)})
        self._news.set()


def _prefix(key: str) -> str:
    return f"log/{key}/"


def _messages(position: int, found: Sequence[Message]) -> dict[str, Any]:
    return {"message": None, "offset": position, "messages": list(found)}
