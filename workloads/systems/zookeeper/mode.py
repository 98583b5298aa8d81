"""What a server of an ensemble says it is."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from system_under_test.runtime.host import ConnectFailed, ConnectionClosed
from workloads.systems.zookeeper.nodes import PORT

QUESTION_TIMEOUT_S = 2.0


async def mode(host: Any, name: str) -> str:
    """What a server says it is; empty where it does not answer, or serves nobody."""
    try:
        connection = await host.network.connect(f"{name}:{PORT}", QUESTION_TIMEOUT_S)
    except ConnectFailed:
        return ""
    said = bytearray()

    async def hear() -> None:
        connection.write(b"srvr")
        while True:
            said.extend(await connection.read_exactly(1))

    with suppress(ConnectionClosed, TimeoutError):
        await host.clock.within(QUESTION_TIMEOUT_S, hear())
    connection.close()
    return said.decode(errors="replace").partition("Mode: ")[2].partition("\n")[0].strip()
