"""A lock of ZooKeeper, as its own recipe makes one: ephemeral sequential children, of which the first one holds it
(https://zookeeper.apache.org/doc/r3.8.0/recipes.html#sc_recipes_Locks).

Nobody waits in line here: who is not the first takes its child away again. A child lasts as long as the session that
made it. Where a session ends while its client does not know, the lock is lost unseen.
"""

from __future__ import annotations

from typing import Any

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from workloads.lock import LOCK_LOST
from workloads.systems.zookeeper.session import Session, opened

PREFIX = "held-"


class LockClient:
    """Client of one process, which holds one lock at most, as long as its session lasts."""

    def __init__(self, host: Any, node: str, *, session_s: float, fencing: bool) -> None:
        self._host, self._node, self._session_s, self._fencing = host, node, session_s, fencing
        self._session: Session | None = None
        self._child = ""

    async def open(self) -> None:
        self._session = await opened(self._host, self._node, lasts_s=self._session_s)

    async def close(self) -> None:
        """Its session ends, and what it holds with that: at once if the server is told, or when it has not been heard
        of for so long."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def invoke(self, operation: Operation) -> Operation:
        if self._session is None:
            await self.open()
        assert self._session is not None and operation.key is not None
        value = dict(operation.value or {})
        if operation.f == "acquire":
            value["value"] = await self._acquired(self._session, f"/{operation.key}")
        else:
            await self._released(self._session)
        return operation._replace(type="ok", value=value, node=self._node)

    async def _acquired(self, session: Session, lock: str) -> int:
        """The place in line, one more from child to child. Raises OperationError."""
        made: str = await session.ask(
            lambda client: client.create_async(f"{lock}/{PREFIX}", b"", ephemeral=True, sequence=True, makepath=True)
        )
        # Whatever came before the child is known to the server that made it, so no child before it can be missing.
        children: list[str] = await session.ask(lambda client: client.get_children_async(lock))
        name = made.rpartition("/")[2]
        if name != min(children, default=""):
            await self._delete(session, made)
            raise OperationError(PRECONDITION_FAILED, "somebody else holds it", node=self._node)
        self._child = made
        return int(name.removeprefix(PREFIX)) + 1

    async def _released(self, session: Session) -> None:
        """Raises OperationError."""
        if not await self._delete(session, self._child) and self._fencing:
            raise OperationError(LOCK_LOST, node=self._node)

    async def _delete(self, session: Session, child: str) -> bool:
        """Whether it was there. Raises OperationError."""
        from kazoo.exceptions import NoNodeError

        try:
            await session.ask(lambda client: client.delete_async(child))
        except NoNodeError:
            return False
        return True
