"""A client of ZooKeeper at one server.

A register is a node of the tree, a set a node with a child for each element, a queue a node with sequential children. A
dequeue reads the first of these and deletes it; it counts as delivered also where nobody knows what came of the
deletion, so that delivery is at least once.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from workloads.systems.zookeeper.errors import READ_FAILED
from workloads.systems.zookeeper.session import Session, opened

FIRST = 3
"""A dequeue tries so many of the first children, which others may take before it."""
DELETES_WITHIN_S, DELETED_WITHIN_S = 3.0, 1.5
"""So long after its beginning a dequeue still deletes:
the harness gives an operation up after five seconds, and what was deleted and never shown would be taken for lost."""


class ZookeeperClient:
    """Client of one process, for all workloads."""

    def __init__(self, host: Any, node: str, *, sync: bool) -> None:
        """`sync`: a read of a register asks its server to catch up with the leader first. All other reads do."""
        self._host, self._node, self._sync = host, node, sync
        self._session: Session | None = None

    async def open(self) -> None:
        self._session = await opened(self._host, self._node)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def invoke(self, operation: Operation) -> Operation:
        began_ns = self._host.clock.monotonic_ns()
        if self._session is None:
            await self.open()
        assert self._session is not None
        try:
            value = await self._carried_out(self._session, operation, began_ns)
        except OperationError as error:
            if error.error is not PRECONDITION_FAILED:
                await self.close()
            if operation.f in ("read", "drain") and not error.error.definite:
                raise OperationError(READ_FAILED, str(error), node=self._node) from error
            raise
        return operation._replace(type="ok", value=value, node=self._node)

    async def _carried_out(self, session: Session, operation: Operation, began_ns: int) -> Mapping[str, Any]:
        """The value of the completion."""
        path, value = "/" + (operation.key or "").replace("/", "-"), dict(operation.value or {})
        if operation.f == "add":
            await _make(session, f"{path}/{value['value']}", b"")
        elif operation.f == "read" and "values" in value:
            value["values"] = sorted(map(int, await _children(session, path)))
        elif operation.f == "read":
            value["value"] = (await _value(session, path, sync=self._sync))[0]
        elif operation.f == "write":
            await _write(session, path, value["value"])
        elif operation.f == "cas":
            await _compare_and_set(session, path, value, node=self._node)
        elif operation.f == "enqueue":
            await _make(session, f"{path}/", b"%d" % value["value"], sequence=True)
        elif operation.f == "dequeue":
            value["values"] = await self._dequeued(session, path, began_ns)
        else:
            value["values"] = await _left(session, path)
        return value

    async def _dequeued(self, session: Session, path: str, began_ns: int) -> list[int]:
        from kazoo.exceptions import NoNodeError

        for child in (await _children(session, path))[:FIRST]:
            place = f"{path}/{child}"
            try:
                data, _ = await session.ask(partial(_get, place))
                if self._host.clock.monotonic_ns() - began_ns > DELETES_WITHIN_S * 1e9:
                    raise OperationError(READ_FAILED, "no time is left to delete what was read", node=self._node)
                with suppress(OperationError):
                    await session.ask(partial(_delete, place), DELETED_WITHIN_S)
            except NoNodeError:
                continue
            return [int(data)]
        return []


async def _make(session: Session, path: str, data: bytes, *, sequence: bool = False) -> None:
    """Parents that are missing are made first, which changes nothing that is looked at."""
    from kazoo.exceptions import NodeExistsError, NoNodeError

    try:
        await session.ask(lambda client: client.create_async(path, data, sequence=sequence))
    except NoNodeError:
        parent = path.rpartition("/")[0]
        with suppress(NodeExistsError):
            await session.ask(lambda client: client.create_async(parent, b""))
        await session.ask(lambda client: client.create_async(path, data, sequence=sequence))


async def _children(session: Session, path: str) -> list[str]:
    from kazoo.exceptions import NoNodeError

    await session.ask(lambda client: client.sync_async(path))
    try:
        children: list[str] = await session.ask(lambda client: client.get_children_async(path))
    except NoNodeError:
        return []
    return sorted(children)


async def _value(session: Session, path: str, *, sync: bool) -> tuple[int | None, int]:
    """What a register holds, and its version; None before the first write."""
    from kazoo.exceptions import NoNodeError

    if sync:
        await session.ask(lambda client: client.sync_async(path))
    try:
        data, known = await session.ask(lambda client: client.get_async(path))
    except NoNodeError:
        return None, -1
    return int(data), known.version


async def _write(session: Session, path: str, value: int) -> None:
    from kazoo.exceptions import NodeExistsError, NoNodeError

    data = b"%d" % value
    try:
        await session.ask(lambda client: client.set_async(path, data))
    except NoNodeError:
        try:
            await session.ask(lambda client: client.create_async(path, data))
        except NodeExistsError:
            await session.ask(lambda client: client.set_async(path, data))


async def _compare_and_set(session: Session, path: str, value: Mapping[str, Any], *, node: str) -> None:
    from kazoo.exceptions import BadVersionError, NoNodeError

    try:
        shown, version = await _value(session, path, sync=True)
    except OperationError as error:
        raise OperationError(READ_FAILED, str(error), node=node) from error
    if shown != value["expected"]:
        raise OperationError(PRECONDITION_FAILED, node=node)
    try:
        await session.ask(lambda client: client.set_async(path, b"%d" % value["value"], version=version))
    except (BadVersionError, NoNodeError) as error:
        raise OperationError(PRECONDITION_FAILED, node=node) from error


async def _left(session: Session, path: str) -> list[int]:
    found = []
    for child in await _children(session, path):
        data, _ = await session.ask(partial(_get, f"{path}/{child}"))
        found.append(int(data))
    return found


def _get(path: str, client: Any) -> Any:
    return client.get_async(path)


def _delete(path: str, client: Any) -> Any:
    return client.delete_async(path)
