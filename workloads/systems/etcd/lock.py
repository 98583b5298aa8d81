"""A lock of etcd, as its own recipes make one: a key that is there as long as the lease of its holder.

The lease is kept alive in the background while the lock is held. Where a member is paused for longer than the lease
lasts, it ends, and the holder of the lock does not know.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from harness.errors import PRECONDITION_FAILED, ErrorCode, OperationError
from harness.operation import Operation
from workloads.lock import LOCK_LOST
from workloads.systems.etcd.gateway import Gateway, packed

NO_LEASE = ErrorCode("no-lease", definite=True)
"""There was no lease to take a lock by, so none was asked for."""
KEPT_ALIVE_EVERY = 3
"""Times in the life of a lease."""


class LockClient:
    """Client of one process, which holds one lock at most."""

    def __init__(self, gateway: Gateway, keeper: Gateway, *, lease_s: int, fencing: bool) -> None:
        """`keeper`: another connection to the same member, which keeps leases alive."""
        self._gateway, self._keeper = gateway, keeper
        self._lease_s, self._fencing = lease_s, fencing
        self._lease: str | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """The first request connects."""

    async def close(self) -> None:
        """Its lease is left to end by itself, as that of a process which died."""
        await self._let_go()
        await self._gateway.close()
        await self._keeper.close()

    async def invoke(self, operation: Operation) -> Operation:
        key, value = f"lock/{operation.key}", dict(operation.value or {})
        if operation.f == "acquire":
            value["value"] = await self._acquired(key)
        else:
            await self._released(key, value["value"])
        return operation._replace(type="ok", value=value, node=self._gateway.node)

    async def _acquired(self, key: str) -> int:
        """The revision at which the lock was taken, which grows from holder to holder. Raises OperationError."""
        try:
            lease = str((await self._gateway.ask("lease/grant", {"TTL": self._lease_s}))["ID"])
        except OperationError as error:
            raise OperationError(NO_LEASE, str(error), node=self._gateway.node) from error
        free = {"key": packed(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
        put = {"request_put": {"key": packed(key), "value": "", "lease": lease}}
        answer = await self._gateway.ask("kv/txn", {"compare": [free], "success": [put]})
        if not answer.get("succeeded"):
            raise OperationError(PRECONDITION_FAILED, "somebody else holds it", node=self._gateway.node)
        self._lease, self._keeping = lease, asyncio.create_task(self._keep_alive(lease))
        return int(answer["header"]["revision"])

    async def _released(self, key: str, token: int | None) -> None:
        """Raises OperationError."""
        own = {"target": "CREATE", "create_revision": str(token)} if self._fencing else None
        own = own or {"target": "LEASE", "lease": self._lease or "0"}
        delete = {"request_delete_range": {"key": packed(key)}}
        compare = [{"key": packed(key), "result": "EQUAL", **own}]
        answer = await self._gateway.ask("kv/txn", {"compare": compare, "success": [delete]})
        await self._let_go()
        if self._fencing and not answer.get("succeeded"):
            raise OperationError(LOCK_LOST, node=self._gateway.node)

    async def _let_go(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        self._lease = self._keeping = None

    async def _keep_alive(self, lease: str) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(self._lease_s / KEPT_ALIVE_EVERY)
            with suppress(OperationError):
                await self._keeper.ask("lease/keepalive", {"ID": lease})
