"""How long a snapshot of CMQ stops the flow, how long it takes, and how long a restart from it does, by messages kept.

A group of one member in this process, with its files on a real disk, takes messages of 100 bytes of which nobody
acknowledges any but the last one. Then requests of one message go on, many at once, while snapshots are made. "Held" is
the longest time for which the snapshot's own work holds the event loop without a break, the copy of the state or the
encoding of the record. "Gap" is the longest time between two entries that are applied during a snapshot, and beside it
the longest in a span of the same length without one: the disk and whoever shares the processors stop the flow as well.
A snapshot is "published" once it is durable and has its name. A "restart" is the recovery, with a log behind the
snapshot. Each is the median, and of "held" and "gap" the greatest as well.

python benchmarks/cmq_snapshots.py [--messages N ...] [--snapshots N] [--at-once N]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Coroutine, Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from processes import free_ports

from system_under_test.cmq.config import CmqConfig
from system_under_test.cmq.entry import MAX_MESSAGES
from system_under_test.cmq.group import QueueGroup
from system_under_test.cmq.parts import CmqParts
from system_under_test.node.settings import read_config
from system_under_test.raft.transport import PeerTransport
from system_under_test.runtime.real import RealHost

BODY = bytes(100)
QUEUE = "kept"
FILLERS = 64
"""So many requests at once fill the queue."""
REST_S = 0.2
NEVER = {"snapshotInterval": 10**9, "snapshotLogBytes": 10**12}
"""Settings by which no snapshot is made but those that are wanted here."""


class TimedSteps:
    """Awaits work, and notes the longest time, in seconds, for which it held the event loop."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work
        self.longest_s = 0.0

    def __await__(self) -> Generator[Any, Any, None]:
        while True:
            began_s = time.perf_counter()
            try:
                awaited = self._work.send(None)
            except StopIteration:
                return
            finally:
                self.longest_s = max(self.longest_s, time.perf_counter() - began_s)
            yield awaited


class WatchedGroup(QueueGroup):
    """A group that makes snapshots when it is asked to, and notes when entries are applied."""

    longest_s = 0.0
    """The longest time between two entries since it was set to zero."""
    _last_s = 0.0

    def apply(self, data: bytes, index: int = 0) -> Any:
        now_s = time.monotonic()
        self.longest_s, self._last_s = max(self.longest_s, now_s - self._last_s), now_s
        return super().apply(data, index)

    def begin_span(self) -> None:
        self.longest_s, self._last_s = 0.0, time.monotonic()

    def end_span(self) -> float:
        """The longest time without an applied entry, in seconds."""
        return max(self.longest_s, time.monotonic() - self._last_s)

    async def published(self) -> tuple[float, float]:
        """Makes a snapshot: how many seconds that took, and for how many it held the event loop at most."""
        began_s, work = time.monotonic(), TimedSteps(self._make_snapshot())
        await work
        return time.monotonic() - began_s, work.longest_s


async def recovered(host: RealHost, leads: asyncio.Event) -> WatchedGroup:
    """`leads` is set later, once it leads."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    settings = {"peers": f"n1-{address}", "selfId": "n1", "groups": 1, "reportsEntries": False, **NEVER}
    transport = PeerTransport(host, node="n1", address=address, silence_s=1.0)
    group = WatchedGroup(host, read_config(CmqConfig, settings), 1, transport, CmqParts())
    group.on_active = leads.set
    await group.start()
    return group


async def fill(group: WatchedGroup, messages: int) -> None:
    await group.create(QUEUE)
    sizes = iter(
        [MAX_MESSAGES] * (messages // MAX_MESSAGES) + [messages % MAX_MESSAGES] * (messages % MAX_MESSAGES > 0)
    )

    async def produce() -> None:
        for size in sizes:
            await group.produce(QUEUE, (BODY,) * size)

    await asyncio.gather(*(produce() for _ in range(FILLERS)))
    await group.acknowledge(QUEUE, [messages - 1])


async def measure(directory: Path, messages: int, snapshots: int, at_once: int) -> None:
    host = RealHost("n1", directory, events=lambda line: None)
    leads = asyncio.Event()
    group = await recovered(host, leads)
    await leads.wait()
    await fill(group, messages)
    is_over = False

    async def flow() -> None:
        while not is_over:
            await group.produce(QUEUE, (BODY,))

    flows = [asyncio.create_task(flow()) for _ in range(at_once)]
    held_ms, published_ms, gaps_ms, without_ms = [], [], [], []
    await group.published()  # the first one makes most files durable
    for _ in range(snapshots):
        await asyncio.sleep(REST_S)
        group.begin_span()
        took_s, held_s = await group.published()
        gaps_ms.append(group.end_span() * 1e3)
        published_ms.append(took_s * 1e3)
        held_ms.append(held_s * 1e3)
        await asyncio.sleep(REST_S)
        group.begin_span()
        await asyncio.sleep(took_s)
        without_ms.append(group.end_span() * 1e3)
    is_over = True
    await asyncio.gather(*flows)
    await group.stop()
    began_s = time.monotonic()
    group = await recovered(host, leads)
    restart_s = time.monotonic() - began_s
    await group.stop()
    await host.close()
    shown = [f"{statistics.median(times_ms):7.2f}" for times_ms in (held_ms, gaps_ms, without_ms, published_ms)]
    greatest = [f"{max(times_ms):7.2f}" for times_ms in (held_ms, gaps_ms, without_ms)]
    columns = (f"{shown[0]} {greatest[0]}", f"{shown[1]} {greatest[1]}", f"{shown[2]} {greatest[2]}", shown[3])
    print(f"{messages:10,}  {'  '.join(columns)}  {restart_s:9.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--messages", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--snapshots", type=int, default=9, help="of each number of messages")
    parser.add_argument("--at-once", type=int, default=16, help="requests while snapshots are made")
    chosen = parser.parse_args()
    print("  messages  held ms    most   gap ms    most  without    most  publ. ms  restart s")
    for messages in chosen.messages:
        with TemporaryDirectory() as directory:
            asyncio.run(measure(Path(directory), messages, chosen.snapshots, chosen.at_once))


if __name__ == "__main__":
    main()
