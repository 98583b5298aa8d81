"""What one broker acknowledges in a second: messages of 1 KiB, an entry each, on three bookies at E/Qw/Qa 3/3/2.

A node of the metadata store, three bookies that sync their journals, and a broker are processes on loopback with their
files on real disks; this process sends, many at once, in several rounds. They share the machine's processors, so the
processor seconds of each are printed beside the messages a second. `--profile` shows where the time of the broker and
of a bookie goes.

python benchmarks/bookkeeper_broker.py [--seconds S] [--rounds N] [--at-once N ...] [--profile]
"""

from __future__ import annotations

import argparse
import asyncio
import pstats
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bookkeeper_cluster import Cluster, running
from processes import PATIENCE_S, free_ports

from system_under_test.bookkeeper.partition import wire
from system_under_test.bookkeeper.partition.payload import encode_messages
from system_under_test.remoting.client import RemotingClient
from system_under_test.runtime.host import ConnectFailed
from system_under_test.runtime.real import RealHost

PARTITION = "load"
PAYLOAD = encode_messages([bytes(1024)])
WARM_UP = 500
BROKER = "p1"


class Sender:
    def __init__(self, cluster: Cluster, remoting: RemotingClient, address: str) -> None:
        self._cluster = cluster
        self._remoting = remoting
        self._address = address

    async def send(self) -> bool:
        """Whether it is acknowledged."""
        answer = await self._remoting.invoke(self._address, wire.send(PARTITION, PAYLOAD), PATIENCE_S)
        return answer.code == wire.Code.SUCCESS

    async def make_ready(self) -> None:
        """Until the broker owns the partition; caches are warm then."""
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            try:
                if await self.send():
                    await asyncio.gather(*(self.send() for _ in range(WARM_UP)))
                    return
            except ConnectFailed:
                pass
            await asyncio.sleep(0.1)
        raise SystemExit("the broker takes no messages")

    async def load(self, seconds: float, at_once: int) -> tuple[float, list[float]]:
        """How many seconds it took, and how many each message."""
        latencies_s: list[float] = []

        async def send_until(end_s: float) -> None:
            now_s = time.monotonic()
            while now_s < end_s:
                if not await self.send():
                    raise SystemExit("a message was refused")
                began_s, now_s = now_s, time.monotonic()
                latencies_s.append(now_s - began_s)

        began_s = time.monotonic()
        await asyncio.gather(*(send_until(began_s + seconds) for _ in range(at_once)))
        return time.monotonic() - began_s, latencies_s


async def measure(cluster: Cluster, rounds: int, seconds: float, at_once: list[int]) -> None:
    [port] = free_ports(1)
    quorums = {"ensembleSize": 3, "writeQuorum": 3, "ackQuorum": 2}
    cluster.start_node(BROKER, "broker", {"brokerPort": port, "partitions": PARTITION, **quorums})
    host = RealHost("load", cluster.directory / "load")
    remoting = RemotingClient(host)
    sender = Sender(cluster, remoting, f"127.0.0.1:{port}")
    await sender.make_ready()
    print("at once   messages/s  half in ms  processor ms a message: broker, a bookie, this process")
    for count in at_once:
        took_s = 0.0
        latencies_s: list[float] = []
        names = [[BROKER], cluster.bookies]
        used_s = [cluster.processor_s(each) for each in names]
        own_s = time.process_time()
        for _ in range(rounds):
            turn = await sender.load(seconds, count)
            took_s += turn[0]
            latencies_s += turn[1]
        broker_s, bookies_s = (cluster.processor_s(each) - before for each, before in zip(names, used_s, strict=True))
        own_s = time.process_time() - own_s
        messages = len(latencies_s)
        each_ms = [1e3 * used / messages for used in (broker_s, bookies_s / len(cluster.bookies), own_s)]
        half_ms = sorted(latencies_s)[messages // 2] * 1e3
        shares = "  ".join(f"{each:.2f}" for each in each_ms)
        print(f"{count:7} {messages / took_s:12,.0f} {half_ms:11.1f}  {shares}", flush=True)
    remoting.close()
    await host.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 64, 512])
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    with running(3) as cluster:
        asyncio.run(measure(cluster, chosen.rounds, chosen.seconds, chosen.at_once))
    if chosen.profile:
        with TemporaryDirectory() as directory:
            with running(3, profile=Path(directory)) as cluster:
                asyncio.run(measure(cluster, 1, chosen.seconds, chosen.at_once[-1:]))
            for name in (BROKER, "b1"):
                pstats.Stats(str(Path(directory) / name)).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
