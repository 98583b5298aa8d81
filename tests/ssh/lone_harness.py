"""A harness of its own that starts beacons, says so, and waits to be killed:
`lone_harness.py INVENTORY LOGS`."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from harness.environments import interruptible
from harness.environments.environment import Link
from harness.environments.remote.environment import RemoteEnvironment
from harness.environments.ssh.inventory import read_inventory
from harness.environments.ssh.machines import SshMachines
from harness.lifetime import interruption
from system_under_test.runtime.real import RealHost
from tests.conformance.promises import answered, nodes


async def main(inventory: str, logs: str) -> None:
    machines = SshMachines(read_inventory(inventory), faults=frozenset(), say=print)
    environment = RemoteEnvironment(machines, client_hosts=RealHost)
    try:
        await environment.start(nodes(), Path(logs))
        for node in ("a", "b"):
            await answered(environment, node)
        await environment.cut([Link("a", "b")])
        print("started", flush=True)
        await asyncio.Event().wait()
    finally:
        await environment.stop()


if __name__ == "__main__":
    interruption.install(print)
    # Tests that are run in the background, or under nohup, inherit that this signal is ignored.
    signal.signal(signal.SIGINT, signal.getsignal(signal.SIGTERM))
    interruptible.run(main(*sys.argv[1:]))
