"""A client of etcd: it stays with one member.

Registers are keys; a set is a key for each element. A transaction on lists reads the keys that it needs in one step,
and writes what it makes of them in another, on condition that none was written meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from workloads.systems.etcd.errors import CHANGED_MEANWHILE, READ_FAILED
from workloads.systems.etcd.gateway import Gateway, below, packed, unpacked


class EtcdClient:
    """Client of one process, for all workloads."""

    def __init__(self, gateway: Gateway, *, serializable_reads: bool) -> None:
        """`serializable_reads`: a member answers reads from what it has, without asking the others."""
        self._gateway, self._serializable_reads = gateway, serializable_reads

    async def open(self) -> None:
        """The first request connects."""

    async def close(self) -> None:
        await self._gateway.close()

    async def invoke(self, operation: Operation) -> Operation:
        try:
            value = await self._carried_out(operation)
        except OperationError as error:
            if operation.f == "read" and not error.error.definite:
                raise OperationError(READ_FAILED, str(error), node=self._gateway.node) from error
            raise
        return operation._replace(type="ok", value=value, node=self._gateway.node)

    async def _carried_out(self, operation: Operation) -> Mapping[str, Any]:
        """The value of the completion."""
        key, value = operation.key or "", dict(operation.value or {})
        if operation.f == "txn":
            value["txn"] = await self._lists(value["txn"])
        elif operation.f == "add":
            await self._put(f"{key}/{value['value']}", "")
        elif operation.f == "read" and "values" in value:
            value["values"] = sorted(int(name.rpartition("/")[2]) for name in await self._below(f"{key}/"))
        elif operation.f == "read":
            found = (await self._gateway.ask("kv/range", self._reading({"key": packed(key)}))).get("kvs")
            value["value"] = int(unpacked(found[0]["value"])) if found else None
        elif operation.f == "write":
            await self._put(key, str(value["value"]))
        else:
            expected = {"key": packed(key), "target": "VALUE", "value": packed(str(value["expected"]))}
            put = {"request_put": {"key": packed(key), "value": packed(str(value["value"]))}}
            if not await self._guarded([{**expected, "result": "EQUAL"}], [put]):
                raise OperationError(PRECONDITION_FAILED, node=self._gateway.node)
        return value

    def _reading(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**request, "serializable": self._serializable_reads}

    async def _put(self, key: str, value: str) -> None:
        await self._gateway.ask("kv/put", {"key": packed(key), "value": packed(value)})

    async def _below(self, prefix: str) -> list[str]:
        answer = await self._gateway.ask("kv/range", self._reading({**below(prefix), "keys_only": True}))
        return [unpacked(found["key"]) for found in answer.get("kvs", ())]

    async def _guarded(self, compare: Sequence[Mapping[str, Any]], puts: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the conditions held, so that everything was put."""
        answer = await self._gateway.ask("kv/txn", {"compare": compare, "success": puts})
        return bool(answer.get("succeeded"))

    async def _lists(self, txn: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Appends and reads of lists, as one transaction. Raises OperationError."""
        keys = sorted({part["key"] for part in txn})
        try:
            answer = await self._gateway.ask(
                "kv/txn", {"success": [{"request_range": {"key": packed(key)}} for key in keys]}
            )
        except OperationError as error:
            raise OperationError(READ_FAILED, str(error), node=self._gateway.node) from error
        found = [one["response_range"].get("kvs", [None])[0] for one in answer["responses"]]
        lists = {key: _elements(one) for key, one in zip(keys, found, strict=True)}
        done: list[Mapping[str, Any]] = []
        for part in txn:
            if part["f"] == "append":
                lists[part["key"]].append(part["value"])
                done.append(dict(part))
            else:
                done.append({**part, "values": list(lists[part["key"]])})
        written = {part["key"] for part in txn if part["f"] == "append"}
        if written:
            unchanged = [
                {
                    "key": packed(key),
                    "target": "MOD",
                    "result": "EQUAL",
                    "mod_revision": one["mod_revision"] if one else "0",
                }
                for key, one in zip(keys, found, strict=True)
            ]
            puts = [
                {"request_put": {"key": packed(key), "value": packed(",".join(map(str, lists[key])))}}
                for key in sorted(written)
            ]
            if not await self._guarded(unchanged, puts):
                raise OperationError(CHANGED_MEANWHILE, node=self._gateway.node)
        return done


def _elements(found: Mapping[str, Any] | None) -> list[int]:
    return [int(element) for element in unpacked(found["value"]).split(",")] if found else []
