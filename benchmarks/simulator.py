"""How fast the simulator itself is: chunks of a ping-pong, events of a gossiping cluster without faults.

python benchmarks/simulator.py
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.runtime.host import ConnectionClosed

ROUNDS = 100_000
NODES = ("n1", "n2", "n3", "n4", "n5", "n6")
BEATS_PER_S = 50
GOSSIP_S = 20.0
FRAME = (200).to_bytes(4, "big") + bytes(200)


async def echo(host: Any, config: Mapping[str, Any]) -> None:
    """Send every frame back."""

    async def accept(connection: Any) -> None:
        try:
            while True:
                length = await connection.read_exactly(4)
                connection.write(length + await connection.read_exactly(int.from_bytes(length, "big")))
        except ConnectionClosed:
            connection.close()

    await host.network.listen(1, accept)
    await asyncio.Event().wait()


async def gossip(host: Any, config: Mapping[str, Any]) -> None:
    """Send each peer a frame many times a second and wait for each answer; write and sync what came."""
    file = host.disk.open("log")

    async def accept(connection: Any) -> None:
        while True:
            frame = await connection.read_exactly(204)
            file.append(frame)
            connection.write(frame)

    async def talk(peer: str) -> None:
        connection = await host.network.connect(f"{peer}:1", 5.0)
        while True:
            connection.write(FRAME)
            await host.clock.within(3.0, connection.read_exactly(204))
            await host.clock.sleep(1 / BEATS_PER_S)

    await host.network.listen(1, accept)
    await host.clock.sleep(0.1)
    for peer in NODES:
        if peer != host.name:
            host.spawn(talk(peer), f"talk to {peer}")
    while True:
        await host.clock.sleep(0.05)
        await file.fsync()


async def ping_pong(environment: SimulatedEnvironment) -> None:
    with tempfile.TemporaryDirectory() as logs:
        await environment.start(
            [NodeSpec(name="n1", groups=(), program=PythonProgram(main=f"{__name__}:echo"))], Path(logs)
        )
        connection = await environment.client_host("client").network.connect("n1:1", 1.0)
        before_s = time.perf_counter()
        for _ in range(ROUNDS):
            connection.write(FRAME)
            await connection.read_exactly(204)
        took_s = time.perf_counter() - before_s
        print(f"ping-pong: {took_s / ROUNDS / 2 * 1e6:.2f} us a chunk sent, delivered and read")
        await environment.stop()


async def cluster(environment: SimulatedEnvironment) -> None:
    with tempfile.TemporaryDirectory() as logs:
        specs = [NodeSpec(name=name, groups=(), program=PythonProgram(main=f"{__name__}:gossip")) for name in NODES]
        await environment.start(specs, Path(logs))
        before_s, events = time.perf_counter(), environment.trace.count
        await environment.timeline.sleep(GOSSIP_S)
        took_s, events = time.perf_counter() - before_s, environment.trace.count - events
        print(
            f"gossip of {len(NODES)}: {events / took_s:,.0f} events/s, "
            f"{events / GOSSIP_S:,.0f} events a simulated second, {GOSSIP_S / took_s:.1f} simulated s/s"
        )
        await environment.stop()


if __name__ == "__main__":
    run_simulation(ping_pong, Seed(7), Trace(), regime=Regime.calm())
    run_simulation(cluster, Seed(7), Trace(), regime=Regime.calm())
