"""The client of Redis, against a server of a few lines: what is sent, and what is made of each answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.errors import OperationError
from harness.operation import Operation
from system_under_test.runtime.real import RealHost
from workloads.systems.redis.client import GARBAGE, RedisClient, primary
from workloads.systems.redis.nodes import SENTINEL_PORT, SENTINELS, SERVER_PORT

TXN = [
    {"f": "append", "key": "1", "value": 7, "values": None},
    {"f": "r", "key": "1", "value": None, "values": None},
]
OF_SENTINEL = b"*2\r\n$2\r\nr1\r\n$4\r\n6379\r\n"


def serving(answer: bytes, received: bytearray) -> Callable[[Any, Any], Coroutine[Any, Any, None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):  # at the end of the test
            while data := await reader.read(65536):
                received.extend(data)
                writer.write(answer)
        writer.close()

    return serve


def completed(tmp_path: Path, f: str, value: Any, answer: bytes) -> tuple[Operation, bytes]:
    """The completion of an operation that is answered so, and what was sent. Raises OperationError."""

    async def carried_out() -> tuple[Operation, bytes]:
        received = bytearray()
        server = await asyncio.start_server(serving(answer, received), "127.0.0.1", 0)
        guide = await asyncio.start_server(serving(OF_SENTINEL, bytearray()), "127.0.0.1", 0)
        here, there = (f"127.0.0.1:{one.sockets[0].getsockname()[1]}" for one in (server, guide))
        addresses = {f"r1:{SERVER_PORT}": here, **{f"{name}:{SENTINEL_PORT}": there for name in SENTINELS}}
        host = RealHost("client", tmp_path, addresses)
        client = RedisClient(host, partial(primary, host, 0))
        try:
            await client.open()
            invocation = Operation(process=0, type="invoke", f=f, key="x", value=value)
            return await client.invoke(invocation), bytes(received)
        finally:
            await client.close()
            for one in (server, guide):
                one.close()
                await one.wait_closed()
            await asyncio.sleep(0)

    return asyncio.run(carried_out())


def test_a_transaction_is_one_multi_and_its_reads_are_whole_lists(tmp_path: Path) -> None:
    said = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n*2\r\n$1\r\n3\r\n$1\r\n7\r\n"
    completion, sent = completed(tmp_path, "txn", {"txn": TXN}, said)
    assert completion.type == "ok" and completion.node == "r1"
    assert [part["values"] for part in completion.value["txn"]] == [None, [3, 7]]
    assert sent.startswith(b"*1\r\n$5\r\nMULTI\r\n*3\r\n$5\r\nRPUSH\r\n") and sent.endswith(b"*1\r\n$4\r\nEXEC\r\n")


@pytest.mark.parametrize(
    ("answer", "code", "definite"),
    [
        (b"+OK\r\n-READONLY no\r\n+QUEUED\r\n-EXECABORT discarded\r\n", "readonly", True),
        (b"+OK\r\n-NOREPLICAS few\r\n+QUEUED\r\n-EXECABORT discarded\r\n", "noreplicas", True),
        (b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n-READONLY no\r\n", "outcome-unknown", False),
        (b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*-1\r\n", "outcome-unknown", False),
    ],
    ids=["a replica", "too few replicas", "a part of it was carried out", "nothing is said"],
)
def test_a_transaction_has_failed_for_certain_only_where_it_was_not_queued(
    tmp_path: Path, answer: bytes, code: str, definite: bool
) -> None:
    with pytest.raises(OperationError) as raised:
        completed(tmp_path, "txn", {"txn": TXN}, answer)
    assert (raised.value.error.code, raised.value.error.definite) == (code, definite)


def test_a_register_that_was_never_written_is_read_as_null(tmp_path: Path) -> None:
    completion, _ = completed(tmp_path, "read", {"value": None}, b"$-1\r\n")
    assert completion.value == {"value": None}


def test_what_is_no_number_is_read_as_what_nobody_wrote(tmp_path: Path) -> None:
    """A torn log may leave zeros within a value."""
    completion, _ = completed(tmp_path, "read", {"value": None}, b"$3\r\n1\x00\x00\r\n")
    assert completion.value == {"value": GARBAGE}
    completion, _ = completed(tmp_path, "read", {"value": None, "values": None}, b"*2\r\n$1\r\n7\r\n$2\r\n\x00\xff\r\n")
    assert completion.value["values"] == [GARBAGE, 7]
