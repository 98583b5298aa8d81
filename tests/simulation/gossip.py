"""A toy cluster that uses every part of a host, and a storm over it. Also a program:

python gossip.py ORDER SEED… runs each seed and prints its trace's hash; with RECORDING=DIR it records the traces, too.

ORDER is `sorted`, or `hash` for a planted mistake: peers are walked in the order of a set of strings.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.environments.environment import Link
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed

NAMES = ("n1", "n2", "n3", "n4", "n5", "n6")
PORT = 7000


async def node(host: Any, config: Mapping[str, Any]) -> None:
    """Tell every peer the highest number known, remember it on disk, and log what changed."""
    peers = {name for name in NAMES if name != host.name}
    log = host.disk.open("numbers")
    known = log.size // 8

    async def accept(connection: Any) -> None:
        nonlocal known
        try:
            while True:
                number = int.from_bytes(await connection.read_exactly(8), "big")
                if number > known:
                    known = number
                    log.append(number.to_bytes(8, "big"))
                    await log.fsync()
                    host.log("learnt", number=number, monotonic=host.clock.monotonic_ns())
                connection.write(known.to_bytes(8, "big"))
        except ConnectionClosed:
            connection.close()

    async def tell(peer: str) -> None:
        try:
            connection = await host.network.connect(f"{peer}:{PORT}", 0.5)
            try:
                for _ in range(3):
                    connection.write(known.to_bytes(8, "big"))
                    await host.clock.within(0.3, connection.read_exactly(8))
            finally:
                connection.close()
        except (ConnectFailed, ConnectionClosed, TimeoutError) as error:
            host.reached(f"failed to tell: {type(error).__name__}")

    await host.network.listen(PORT, accept)
    while True:
        await host.clock.sleep(host.random.uniform(0.05, 0.3))
        if host.unusual("skip"):
            continue
        if host.random.random() < 0.3:
            known += 1
        order = sorted(peers) if config["order"] == "sorted" else list(peers)
        async with asyncio.TaskGroup() as group:
            for peer in order:
                group.create_task(tell(peer))


async def storm(environment: SimulatedEnvironment, seed: Seed, duration_s: float) -> None:
    """Every verb, by turns."""
    draw = seed.child("nemesis").stream()
    end_ns = environment.timeline.now_ns() + int(duration_s * 1e9)
    while environment.timeline.now_ns() < end_ns:
        await environment.timeline.sleep(draw.uniform(0.1, 1.0))
        victim = draw.choice(NAMES)
        others = [name for name in NAMES if name != victim]
        verb = draw.randrange(8)
        if verb == 0:
            await environment.cut([Link(victim, other) for other in others])
        elif verb == 1:
            await environment.heal()
        elif verb == 2:
            await environment.kill([victim])
        elif verb == 3:
            await environment.power_off([victim])
        elif verb == 4:
            await environment.boot(NAMES)
        elif verb == 5:
            await environment.pause([victim])
        elif verb == 6:
            await environment.resume(NAMES)
        else:
            await environment.set_clock(victim, offset_s=draw.uniform(-60, 60), rate=draw.uniform(0.5, 2))


def run(seed: Seed, trace: Trace, *, order: str, duration_s: float) -> None:
    async def main(environment: SimulatedEnvironment) -> None:
        with tempfile.TemporaryDirectory() as logs:
            specs = [
                NodeSpec(
                    name=name,
                    groups=("nodes",),
                    program=PythonProgram(main=f"{__name__}:node", config={"order": order}),
                )
                for name in NAMES
            ]
            await environment.start(specs, Path(logs))
            await storm(environment, seed, duration_s)
            await environment.stop()

    run_simulation(main, seed, trace)


if __name__ == "__main__":
    directory = os.environ.get("RECORDING")
    for text in sys.argv[2:]:
        recording = Path(directory) / f"{text}.trace" if directory else None
        trace = Trace(recording=recording)
        run(Seed(int(text)), trace, order=sys.argv[1], duration_s=8.0)
        print(text, trace.count, trace.digest(), flush=True)
