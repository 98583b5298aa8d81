"""A node's program over the seam alone, so that the same runs in every environment: one byte asks, JSON answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed, Host

PORT = 7000
PATIENCE_S = 2.0
TICK_S = 0.02
NAP_S = 1.0
BURNT = 2_000_000
TAKEN_BYTES = 48_000_000

KEPT, NAMED, FINALLY = "kept", "named", "finally"
"""Its files: letters one by one; one that is always replaced as a whole; a byte for each `finally` carried out."""


async def main(host: Host, config: Mapping[str, Any]) -> None:
    await Beacon(host, config["other"], config.get("version", 1)).serve()


class Beacon:
    """Answers questions of one byte:

    `w`: wall time; `m`: monotonic time; `z`: sleep for NAP_S, then monotonic time; `g`: the longest time in ns between
    two ticks of its timer in this life; `b`: how long it takes to compute
    something, in ns; `f`: how often a `finally` was carried out.
    `+`: one more letter on the disk; `!`: one more, and an fsync; `x`: one more in a file that replaces another;
    `r`, `y`: what is in the first file, in the second.
    `>`: whether the other node answers; `h`: connect to it and keep the connection; `s`: whether it answers over that
    one; `n`: send a note over that one; `c`: how many notes came. `.` is a note, and not answered.
    `v`: as which version it runs; `*`: whether it could use TAKEN_BYTES of memory, which it gives back.
    """

    def __init__(self, host: Host, other: str, version: int) -> None:
        self._host = host
        self._version = version
        self._other = other
        self._held: list[Connection] = []
        self._notes = 0
        self._longest_gap_ns = 0
        self._answers = {
            "w": self._wall_ns,
            "m": self._monotonic_ns,
            "z": self._nap,
            "b": self._burn_ns,
            "g": self._gap_ns,
            "f": self._finished,
            "+": self._append,
            "!": self._append_durably,
            "x": self._replace,
            "r": self._kept,
            "y": self._named,
            ">": self._reaches_other,
            "h": self._hold,
            "s": self._reaches_other_over_held,
            "n": self._note,
            "c": self._noted,
            "v": self._of_version,
            "*": self._take_memory,
        }

    async def serve(self) -> None:
        self._host.spawn(self._tick(), "ticks")
        await self._host.network.listen(PORT, self._accept)
        try:
            await asyncio.Event().wait()
        finally:
            self._host.disk.open(FINALLY).append(b"f")

    async def _tick(self) -> None:
        clock = self._host.clock
        try:
            last_ns = clock.monotonic_ns()
            while True:
                await clock.sleep(TICK_S)
                now_ns = clock.monotonic_ns()
                self._longest_gap_ns = max(self._longest_gap_ns, now_ns - last_ns)
                last_ns = now_ns
        finally:
            self._host.disk.open(FINALLY).append(b"t")

    async def _accept(self, connection: Connection) -> None:
        try:
            while True:
                question = (await connection.read_exactly(1)).decode()
                if question == ".":
                    self._notes += 1
                    continue
                answer = json.dumps(await self._answers[question]()).encode()
                connection.write(len(answer).to_bytes(2, "big") + answer)
        except ConnectionClosed:
            return

    async def _wall_ns(self) -> int:
        return self._host.clock.wall_ns()

    async def _monotonic_ns(self) -> int:
        return self._host.clock.monotonic_ns()

    async def _nap(self) -> int:
        await self._host.clock.sleep(NAP_S)
        return self._host.clock.monotonic_ns()

    async def _burn_ns(self) -> int:
        from_ns = self._host.clock.monotonic_ns()
        sum(range(BURNT))
        return self._host.clock.monotonic_ns() - from_ns

    async def _gap_ns(self) -> int:
        return self._longest_gap_ns

    async def _of_version(self) -> int:
        return self._version

    async def _take_memory(self) -> bool:
        return len(bytearray(b"x") * TAKEN_BYTES) == TAKEN_BYTES

    async def _finished(self) -> int:
        return self._host.disk.open(FINALLY).size

    async def _append(self) -> str:
        file = self._host.disk.open(KEPT)
        file.append(bytes([ord("a") + file.size % 26]))
        return await self._kept()

    async def _append_durably(self) -> str:
        await self._append()
        await self._host.disk.open(KEPT).fsync()
        return await self._kept()

    async def _replace(self) -> str:
        disk = self._host.disk
        if disk.exists("new"):
            disk.remove("new")
        file = disk.open("new")
        file.append((await self._named()).encode() + b"x")
        await file.fsync()
        await disk.replace("new", NAMED)
        return await self._named()

    async def _kept(self) -> str:
        return self._content(KEPT)

    async def _named(self) -> str:
        return self._content(NAMED)

    def _content(self, path: str) -> str:
        file = self._host.disk.open(path)
        return file.read_at(0, file.size).decode()

    async def _reaches_other(self) -> bool:
        return await ask(self._host, self._other, "w") is not None

    async def _hold(self) -> bool:
        self._held.append(await self._host.network.connect(f"{self._other}:{PORT}", PATIENCE_S))
        return await self._reaches_other_over_held()

    async def _reaches_other_over_held(self) -> bool:
        try:
            return await self._host.clock.within(PATIENCE_S, over(self._held[-1], "w")) is not None
        except (TimeoutError, ConnectionClosed):
            return False

    async def _note(self) -> bool:
        self._held[-1].write(b".")
        return True

    async def _noted(self) -> int:
        return self._notes


async def ask(host: Host, node: str, question: str, patience_s: float = PATIENCE_S) -> Any:
    """The answer; None where none came in time."""
    try:
        return await host.clock.within(patience_s, _asked(host, node, question))
    except (TimeoutError, ConnectFailed, ConnectionClosed):
        return None


async def _asked(host: Host, node: str, question: str) -> Any:
    connection = await host.network.connect(f"{node}:{PORT}", PATIENCE_S)
    try:
        return await over(connection, question)
    finally:
        connection.close()


async def over(connection: Connection, question: str) -> Any:
    connection.write(question.encode())
    return await answer_from(connection)


async def answer_from(connection: Connection) -> Any:
    length = int.from_bytes(await connection.read_exactly(2), "big")
    return json.loads(await connection.read_exactly(length))
