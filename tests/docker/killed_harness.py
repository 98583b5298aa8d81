"""A harness of its own that starts one probe, says so, and waits to be killed: `killed_harness.py IMAGE RUN LOGS`."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from probe_cluster import Cluster, probe

from harness.environments import interruptible
from harness.environments.docker import docker_environment, engine
from harness.lifetime import interruption
from system_under_test.runtime.real import RealHost


async def main(client: object, image: str, run: str, logs: str) -> None:
    environment = docker_environment(client, image_of=lambda node: image, client_hosts=RealHost, run=run, say=print)
    try:
        await environment.start([probe("p1")], Path(logs))
        await Cluster(environment, client).until_serving("p1")
        print("started", flush=True)
        await asyncio.Event().wait()
    finally:
        await environment.stop()


if __name__ == "__main__":
    interruption.install(print)
    # Tests that are run in the background, or under nohup, inherit that these signals are ignored.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.getsignal(signal.SIGTERM))
    with engine() as opened:
        interruptible.run(main(opened, *sys.argv[1:]))
