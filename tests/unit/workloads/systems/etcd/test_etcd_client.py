"""The client of etcd, against a gateway of a few lines: what is sent, and what is made of each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from aiohttp import web

from harness.errors import OperationError
from harness.operation import Operation
from harness.record.node_reports import NoReports
from workloads.systems.etcd.adapter import SYSTEM, EtcdSettings
from workloads.systems.etcd.client import EtcdClient
from workloads.systems.etcd.gateway import Gateway, packed

Answers = Sequence[Mapping[str, Any]]
APPEND_AND_READ = [
    {"f": "append", "key": "x", "value": 7, "values": None},
    {"f": "r", "key": "x", "value": None, "values": None},
]
READ = [{"f": "r", "key": "x", "value": None, "values": None}]


def completed(f: str, value: Any, answers: Answers, key: str = "x") -> tuple[Operation, list[tuple[str, Any]]]:
    """The completion of an operation whose requests are answered so, and what was asked. Raises OperationError."""

    async def carried_out() -> tuple[Operation, list[tuple[str, Any]]]:
        asked: list[tuple[str, Any]] = []

        async def serve(request: web.Request) -> web.Response:
            asked.append((request.path, await request.json()))
            answer = answers[len(asked) - 1]
            return web.json_response(answer, status=500 if "code" in answer else 200)

        application = web.Application()
        application.router.add_post("/{tail:.*}", serve)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        client = EtcdClient(Gateway("e1", f"127.0.0.1:{port}"), serializable_reads=False)
        try:
            return await client.invoke(Operation(process=0, type="invoke", f=f, key=key, value=value)), asked
        finally:
            await client.close()
            await runner.cleanup()

    return asyncio.run(carried_out())


def found(value: str, revision: str) -> Mapping[str, Any]:
    return {"responses": [{"response_range": {"kvs": [{"value": packed(value), "mod_revision": revision}]}}]}


def test_a_transaction_writes_only_if_nothing_it_read_was_written_meanwhile() -> None:
    completion, asked = completed("txn", {"txn": APPEND_AND_READ}, [found("3,5", "41"), {"succeeded": True}])
    assert completion.type == "ok" and completion.node == "e1"
    assert [part["values"] for part in completion.value["txn"]] == [None, [3, 5, 7]]
    assert [path for path, _ in asked] == ["/v3/kv/txn", "/v3/kv/txn"]
    (unchanged,) = asked[1][1]["compare"]
    assert unchanged == {"key": packed("x"), "target": "MOD", "result": "EQUAL", "mod_revision": "41"}
    assert asked[1][1]["success"] == [{"request_put": {"key": packed("x"), "value": packed("3,5,7")}}]


def test_a_transaction_that_lost_the_race_certainly_did_not_happen() -> None:
    with pytest.raises(OperationError) as failed:
        completed("txn", {"txn": APPEND_AND_READ}, [found("3", "41"), {}])
    assert (failed.value.error.code, failed.value.error.definite) == ("changed-meanwhile", True)


def test_a_transaction_that_only_reads_is_one_request() -> None:
    completion, asked = completed("txn", {"txn": READ}, [{"responses": [{"response_range": {}}]}])
    assert completion.value["txn"][0]["values"] == [] and len(asked) == 1


@pytest.mark.parametrize(
    ("f", "answer", "code", "definite"),
    [
        ("write", {"code": 14, "message": "etcdserver: request timed out"}, "outcome-unknown", False),
        ("write", {"code": 8, "message": "etcdserver: too many requests"}, "resource-exhausted", True),
        ("read", {"code": 14, "message": "etcdserver: leader changed"}, "read-failed", True),
        ("cas", {}, "precondition-failed", True),
    ],
)
def test_an_error_is_definite_only_where_nothing_was_proposed(
    f: str, answer: Mapping[str, Any], code: str, definite: bool
) -> None:
    with pytest.raises(OperationError) as failed:
        completed(f, {"value": 4, "expected": 3}, [answer])
    assert (failed.value.error.code, failed.value.error.definite) == (code, definite)


def test_who_is_not_there_was_certainly_asked_nothing() -> None:
    async def asked() -> None:
        client = EtcdClient(Gateway("e1", "127.0.0.1:1"), serializable_reads=False)
        try:
            await client.invoke(Operation(process=0, type="invoke", f="write", key="x", value={"value": 4}))
        finally:
            await client.close()

    with pytest.raises(OperationError) as failed:
        asyncio.run(asked())
    assert failed.value.error.code == "connect-failed"


STALE = {"register": ("nonlinearizable",), "set": ("stale",)}
LOST = {"lock": ("nonlinearizable",)}


@pytest.mark.parametrize(
    ("settings", "legal"),
    [
        (EtcdSettings(fencing=True), {}),
        (EtcdSettings(), LOST),
        (EtcdSettings(fencing=True, serializable_reads=True), STALE),
        (EtcdSettings(serializable_reads=True), STALE | LOST),
        (EtcdSettings(serializable_reads=True, strict=True), {}),
    ],
)
def test_only_reads_that_were_asked_to_may_be_stale_and_only_locks_without_tokens_lost(
    settings: EtcdSettings, legal: Mapping[str, Any]
) -> None:
    assert SYSTEM.legal_loss(settings, (), NoReports()).in_workloads == legal
