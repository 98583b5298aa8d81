"""The program on trial: a primary keeps registers on its disk and copies them to its backups. Put your own here.

It knows a `Host` (clock, network, disk, randomness) and nothing else of where it runs, so that the same code runs in
the simulator, in containers and on machines. The primary is always the same node; yours will elect one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from stormproof import ConnectFailed, Connection, ConnectionClosed, Host

PORT = 7000
COPY_TIMEOUT_S = 1.0
PAUSE_S = 0.1
FILE, NEW_FILE = "registers", "registers.new"


async def node(host: Host, config: Mapping[str, Any]) -> None:
    """`config`: the names of the primary and its backups, and what the node keeps its registers in: disk or memory."""
    store = Store(host, config["kept_in"])
    primary = Primary(host, store, config["backups"]) if host.name == config["primary"] else None

    async def answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["f"] == "role":
            return {"role": "backup" if primary is None else "primary"}
        if primary is not None:
            return await primary.answer(request)
        if request["f"] == "copy":
            await store.keep(request["version"], request["registers"])
            return {"version": store.version}
        return {"error": "not-primary"}

    async def serve(connection: Connection) -> None:
        try:
            while True:
                send(connection, await answer(await receive(connection)))
        except ConnectionClosed:
            connection.close()

    await host.network.listen(PORT, serve)
    while True:
        await host.clock.sleep(3600)


class Store:
    """Registers, and how often they were changed, in a file that is replaced as a whole."""

    def __init__(self, host: Host, kept_in: str) -> None:
        self._disk, self._kept_in = host.disk, kept_in
        self._one_at_a_time = asyncio.Lock()
        self.version = 0
        self.registers: dict[str, int] = {}
        if self._disk.exists(FILE):
            file = self._disk.open(FILE)
            self.version, self.registers = json.loads(file.read_at(0, file.size))
            file.close()

    async def keep(self, version: int, registers: dict[str, int]) -> None:
        """Returns once they are durable; an older version than what is here changes nothing."""
        async with self._one_at_a_time:
            if version <= self.version:
                return
            if self._kept_in == "disk":
                file = self._disk.open(NEW_FILE)
                file.truncate(0)
                file.append(json.dumps([version, registers]).encode())
                await file.fsync()
                file.close()
                await self._disk.replace(NEW_FILE, FILE)
            self.version, self.registers = version, registers


class Primary:
    """Answers clients: what is written is durable here, and at so many backups that most nodes have it."""

    def __init__(self, host: Host, store: Store, backups: list[str]) -> None:
        self._host, self._store = host, store
        self._needed = (len(backups) + 1) // 2
        self._copied = dict.fromkeys(backups, 0)
        self._one_at_a_time, self._changed = asyncio.Lock(), asyncio.Condition()
        for backup in backups:
            host.spawn(self._follow_up(backup), f"copies to {backup}")

    async def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        key = request["key"]
        async with self._one_at_a_time:  # nobody reads what is not durable yet
            if request["f"] == "cas" and self._store.registers.get(key) != request["expected"]:
                return {"error": "mismatch"}
            if request["f"] != "read":
                registers = {**self._store.registers, key: request["value"]}
                await self._store.keep(self._store.version + 1, registers)
                if not await self._is_copied():
                    return {"error": "not-copied"}
            return {"value": self._store.registers.get(key)}

    async def _is_copied(self) -> bool:
        version = self._store.version

        def most_have_it() -> bool:
            return sum(copied >= version for copied in self._copied.values()) >= self._needed

        async with self._changed:
            self._changed.notify_all()
            try:
                await self._host.clock.within(COPY_TIMEOUT_S, self._changed.wait_for(most_have_it))
            except TimeoutError:
                return False
        return True

    async def _follow_up(self, backup: str) -> None:
        """Whenever there is something new, copy all of it."""
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._copied[backup] < self._store.version)
            version, registers = self._store.version, self._store.registers
            try:
                await asked(self._host, backup, {"f": "copy", "version": version, "registers": registers})
            except (ConnectFailed, ConnectionClosed, TimeoutError):
                await self._host.clock.sleep(PAUSE_S)
                continue
            async with self._changed:
                self._copied[backup] = version
                self._changed.notify_all()


async def asked(host: Host, name: str, request: dict[str, Any]) -> dict[str, Any]:
    """The answer of a node, over a connection of its own. Raises ConnectFailed, ConnectionClosed, TimeoutError."""
    connection = await host.network.connect(f"{name}:{PORT}", COPY_TIMEOUT_S)
    try:
        send(connection, request)
        return await host.clock.within(COPY_TIMEOUT_S, receive(connection))
    finally:
        connection.close()


def send(connection: Connection, data: dict[str, Any]) -> None:
    body = json.dumps(data).encode()
    connection.write(len(body).to_bytes(4, "big") + body)


async def receive(connection: Connection) -> dict[str, Any]:
    size = int.from_bytes(await connection.read_exactly(4), "big")
    data: dict[str, Any] = json.loads(await connection.read_exactly(size))
    return data
