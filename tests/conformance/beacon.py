"""A node's program over the seam alone, so that the same runs in every environment: one byte asks, JSON answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed, Host

PORT = 7000
PATIENCE_S = 2.0


async def main(host: Host, config: Mapping[str, Any]) -> None:
    """`w`: wall time; `m`: monotonic time; `+`: one more byte on the disk; `=`: how many bytes are on the disk;
    `>`: whether the node that the config names answers; `h`: connect to it and keep the connection; `s`: whether it
    answers over that one; `f`: how often a `finally` was carried out."""
    held: list[Connection] = []

    async def accept(connection: Connection) -> None:
        try:
            while True:
                answer = json.dumps(await answered((await connection.read_exactly(1)).decode())).encode()
                connection.write(len(answer).to_bytes(2, "big") + answer)
        except ConnectionClosed:
            return

    async def answered(question: str) -> Any:
        if question in "wm":
            return host.clock.wall_ns() if question == "w" else host.clock.monotonic_ns()
        if question == ">":
            return await ask(host, config["other"], "w") is not None
        if question in "hs":
            if question == "h":
                held.append(await host.network.connect(f"{config['other']}:{PORT}", PATIENCE_S))
            try:
                return await host.clock.within(PATIENCE_S, _over(held[-1], "w")) is not None
            except TimeoutError:
                return False
        if question == "f":
            return host.disk.open("finally").size
        file = host.disk.open("kept")
        if question == "+":
            file.append(b"+")
        return file.size

    await host.network.listen(PORT, accept)
    try:
        await asyncio.Event().wait()
    finally:
        host.disk.open("finally").append(b"f")


async def ask(host: Host, node: str, question: str, patience_s: float = PATIENCE_S) -> Any:
    """The answer; None where none came in time."""
    try:
        return await host.clock.within(patience_s, _asked(host, node, question))
    except (TimeoutError, ConnectFailed, ConnectionClosed):
        return None


async def _asked(host: Host, node: str, question: str) -> Any:
    connection = await host.network.connect(f"{node}:{PORT}", PATIENCE_S)
    try:
        return await _over(connection, question)
    finally:
        connection.close()


async def _over(connection: Connection, question: str) -> Any:
    connection.write(question.encode())
    length = int.from_bytes(await connection.read_exactly(2), "big")
    return json.loads(await connection.read_exactly(length))
