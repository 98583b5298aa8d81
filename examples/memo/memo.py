"""A system of one's own, whole: `memo`, one node that keeps registers in a file, and how it is shown to the harness.

    pip install -e examples/memo
    stormproof run memo --workload register --nemesis 'kill all every 8 for 2'
    stormproof run memo --workload register --nemesis 'kill all every 8 for 2' --set keep=memory

The first is VALID. The second, which forgets everything when it is killed, is INVALID: reads miss what was written.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stormproof import (
    CLIENT_TIMEOUT,
    CONNECT_FAILED,
    CONNECTION_LOST,
    PRECONDITION_FAILED,
    Client,
    ConnectFailed,
    Connection,
    ConnectionClosed,
    Declaration,
    FaultWindow,
    Host,
    LegalLoss,
    NodeReports,
    NodeSpec,
    Operation,
    OperationError,
    PythonProgram,
)

NAME, PORT = "memo-1", 7000
ANSWER_TIMEOUT_S = 2.0


async def node(host: Host, config: Mapping[str, Any]) -> None:
    """The program on trial. It knows a Host and nothing else: no clock, no socket, no file of its own."""
    log = host.disk.open("log")
    registers: dict[str, int] = {}
    good = 0
    for line in log.read_at(0, log.size).splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break  # torn by a loss of power, so never answered
        good += len(line)
        registers |= json.loads(line)
    log.truncate(good)
    one_at_a_time = asyncio.Lock()

    async def answer(request: dict[str, Any]) -> dict[str, Any]:
        key = request["key"]
        async with one_at_a_time:  # nobody reads what is not durable yet
            if request["f"] == "cas" and registers.get(key) != request["expected"]:
                return {"refused": True}
            if request["f"] != "read":
                written = {key: request["value"]}
                if config["keep"] == "disk":
                    log.append(json.dumps(written).encode() + b"\n")
                    await log.fsync()
                registers.update(written)
            return {"value": registers.get(key)}

    async def serve(connection: Connection) -> None:
        try:
            while True:
                send(connection, await answer(await receive(connection)))
        except ConnectionClosed:
            connection.close()

    await host.network.listen(PORT, serve)
    while True:
        await host.clock.sleep(3600)


def send(connection: Connection, data: dict[str, Any]) -> None:
    body = json.dumps(data).encode()
    connection.write(len(body).to_bytes(4, "big") + body)


async def receive(connection: Connection) -> dict[str, Any]:
    size = int.from_bytes(await connection.read_exactly(4), "big")
    data: dict[str, Any] = json.loads(await connection.read_exactly(size))
    return data


class MemoClient:
    """One request an operation, and never a guess: each error says whether the operation certainly did not happen."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._connection: Connection | None = None

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def invoke(self, operation: Operation) -> Operation:
        answer = await self._ask({"f": operation.f, "key": operation.key, **(operation.value or {})})
        if "refused" in answer:
            raise OperationError(PRECONDITION_FAILED)
        value = {"value": answer["value"], "expected": None} if operation.f == "read" else operation.value
        return operation._replace(type="ok", value=value, node=NAME)

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            if self._connection is None:
                self._connection = await self._host.network.connect(f"{NAME}:{PORT}", ANSWER_TIMEOUT_S)
            send(self._connection, request)
            return await self._host.clock.within(ANSWER_TIMEOUT_S, receive(self._connection))
        except ConnectFailed as error:
            raise OperationError(CONNECT_FAILED, str(error)) from error
        except (ConnectionClosed, TimeoutError) as error:
            await self.close()
            code = CLIENT_TIMEOUT if isinstance(error, TimeoutError) else CONNECTION_LOST
            raise OperationError(code) from error


@dataclass(frozen=True, kw_only=True)
class MemoSettings:
    keep: Literal["disk", "memory"] = "disk"


class Memo:
    """A `harness.system.System`."""

    name = "memo"
    settings_type = MemoSettings
    workloads = ("register",)
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: MemoSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return (
            NodeSpec(
                name=NAME,
                groups=("memos",),
                program=PythonProgram(main="memo:node", config={"keep": settings.keep}),
                ports=(PORT,),
            ),
        )

    def cluster(self, settings: MemoSettings) -> Declaration:
        return Declaration(groups=("memos",), data=("memos",), roles={"primary": "memos"})

    def client(self, workload: str, settings: MemoSettings, host: Host, process: int) -> Client:
        return MemoClient(host)

    async def ready(self, settings: MemoSettings, host: Host, workload: str) -> None:
        client = MemoClient(host)
        while True:
            try:
                await client.invoke(Operation(0, "invoke", "read", key="ready"))
                return await client.close()
            except OperationError:
                await host.clock.sleep(0.1)

    async def roles(self, settings: MemoSettings, host: Host) -> Mapping[str, tuple[str, ...]]:
        return {"primary": (NAME,)}

    def legal_loss(self, settings: MemoSettings, struck: tuple[FaultWindow, ...], reports: NodeReports) -> LegalLoss:
        return LegalLoss()


SYSTEM = Memo()
