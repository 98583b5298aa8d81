"""What ledgers take in a second, and how long a change of the ensemble, a recovery, a repair and a reader's wait last.

Bookies and a node of the metadata store are processes on loopback with their files on real disks; this process writes
and reads ledgers, entries of 1 KiB. All share the machine's processors, so what is printed of one run is to be held
against other lines of the same run. Parts, of which each may be asked for alone:

    adds       a second and a processor second of all processes, by E/Qw/Qa, with journals synced and not, in turns;
               and with 1, 64 and 512 outstanding at 3/3/2
    change     how long it takes to publish another ensemble, after one of three bookies was killed; and the longest
               time without an acknowledgement in two seconds with that and without, three times
    recovery   of a ledger whose last so many entries nobody confirmed
    repair     copies a second after a bookie died, by entries of the ledger
    reader     how long after the acknowledgement a reader at the bookies sees an entry, one a second, with an explicit
               LAC and without

python benchmarks/bookkeeper_ledgers.py [PART ...] [--rounds N] [--seconds S]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from statistics import median
from typing import Any

from bookkeeper_cluster import Cluster, running
from processes import PATIENCE_S

from system_under_test.bookkeeper.bookie.message import AddRequest
from system_under_test.bookkeeper.entry import NOTHING, Digest, Entry, encode_entry
from system_under_test.bookkeeper.ledger.driver import LedgerClient, OpenLedger
from system_under_test.bookkeeper.ledger.event import Reply
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata, Quorums
from system_under_test.bookkeeper.ledger.placement import bookies_of
from system_under_test.metadata.client import MetadataClient
from system_under_test.runtime.real import RealHost

PAYLOAD = bytes(1024)
SHAPES = ("3/3/2", "3/2/2", "4/3/2", "5/3/2", "2/2/1")
OUTSTANDING = (1, 64, 512)
AT_ONCE = 64
TAILS = (1, 100, 1_000, 10_000)
SIZES = (500, 2_000, 8_000)
CHANGES, FEW = 3, 8
"""So many changes are made, with so many adds outstanding."""
ENTRIES_READ = 10
EXPLICIT_LAC_S = 0.1


def quorums(shape: str) -> Quorums:
    ensemble, write, ack = (int(number) for number in shape.split("/"))
    return Quorums(ensemble=ensemble, write=write, ack=ack)


class TimedHost(RealHost):
    """Knows when the points of a writer were reached last."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.reached_s: dict[str, float] = {}

    def reached(self, point: str, **values: int) -> None:
        self.reached_s[point] = time.monotonic()


class Clients:
    """Of one cluster, all in this process."""

    def __init__(self, cluster: Cluster) -> None:
        self.host = TimedHost("load", cluster.directory / "load", cluster.addresses)
        self.metadata = MetadataClient(self.host, [cluster.metadata_address])
        self._clients: list[LedgerClient] = []

    async def client(self, shape: str = "3/3/2", *, explicit_lac_s: float = 0.0) -> LedgerClient:
        client = LedgerClient(
            self.host, self.metadata, quorums(shape), timeout_s=PATIENCE_S, explicit_lac_s=explicit_lac_s
        )
        await client.start()
        self._clients.append(client)
        return client

    async def stop(self) -> None:
        for client in self._clients:
            await client.stop()
        await self.metadata.stop()
        await self.host.close()


@asynccontextmanager
async def clients_of(cluster: Cluster) -> AsyncIterator[Clients]:
    clients = Clients(cluster)
    try:
        bookies = (await clients.client()).bookies
        end_s = time.monotonic() + PATIENCE_S
        while len(await bookies.writable()) < len(cluster.bookies):
            if time.monotonic() > end_s:
                raise SystemExit("not all bookies are there")
            await asyncio.sleep(0.05)
        yield clients
    finally:
        await clients.stop()


async def node_of(cluster: Cluster, client: LedgerClient, bookie: str) -> str:
    for address in cluster.addresses:
        if await client.bookies.at(address) == bookie:
            return address.partition(":")[0]
    raise SystemExit(f"no node is bookie {bookie}")


async def create(client: LedgerClient) -> OpenLedger:
    return await client.create(lambda: None)


async def add_until(ledger: OpenLedger, end_s: float, outstanding: int) -> list[float]:
    """When each entry was acknowledged."""
    times_s: list[float] = []

    async def one_after_the_other() -> None:
        while time.monotonic() < end_s:
            await ledger.append(PAYLOAD)
            times_s.append(time.monotonic())

    await asyncio.gather(*(one_after_the_other() for _ in range(outstanding)))
    return times_s


async def add(ledger: OpenLedger, entries: int) -> None:
    numbers = iter(range(entries))

    async def one_after_the_other() -> None:
        for _ in numbers:
            await ledger.append(PAYLOAD)

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))


# -- adds


async def adds_in_turns(clusters: dict[str, Cluster], chosen: argparse.Namespace) -> None:
    """Every case has its turn in each round, so that other work on the machine strikes all alike."""
    cases = [(journal, shape, AT_ONCE) for shape in SHAPES for journal in clusters]
    cases += [("synced", "3/3/2", outstanding) for outstanding in OUTSTANDING if outstanding != AT_ONCE]
    found = {case: (0, 0.0, 0.0) for case in cases}
    for number in range(chosen.rounds):
        for case in cases if number % 2 == 0 else reversed(cases):
            journal, shape, outstanding = case
            turn = await one_turn(clusters[journal], shape, outstanding, chosen.seconds)
            found[case] = tuple(one + other for one, other in zip(found[case], turn, strict=True))  # type: ignore[assignment]
    print("E/Qw/Qa journal     outstanding  adds/s  adds a processor second")
    for (journal, shape, outstanding), (count, seconds, processor_s) in found.items():
        print(f"{shape}   {journal:10} {outstanding:12} {count / seconds:7,.0f} {count / processor_s:12,.0f}")


async def one_turn(cluster: Cluster, shape: str, outstanding: int, seconds: float) -> tuple[int, float, float]:
    """Adds, seconds, and processor seconds of all that took part."""
    async with clients_of(cluster) as clients:
        ledger = await create(await clients.client(shape))
        await add(ledger, AT_ONCE)
        used_s, began_s = time.process_time() + cluster.processor_s(), time.monotonic()
        count = len(await add_until(ledger, began_s + seconds, outstanding))
        took_s = time.monotonic() - began_s
        used_s = time.process_time() + cluster.processor_s() - used_s
        await ledger.close()
        return count, took_s, used_s


def measure_adds(chosen: argparse.Namespace) -> None:
    with running(5) as synced, running(5, {"journalSyncData": False}) as unsynced:
        asyncio.run(adds_in_turns({"synced": synced, "not synced": unsynced}, chosen))


# -- a change of the ensemble


async def change(cluster: Cluster, chosen: argparse.Namespace) -> None:
    async with clients_of(cluster) as clients:
        client = await clients.client()
        ledger = await create(client)
        await add(ledger, AT_ONCE)
        for number in range(CHANGES):
            quiet = longest_s(await add_until(ledger, time.monotonic() + 2, FEW))
            adding = asyncio.ensure_future(add_until(ledger, time.monotonic() + 2, FEW))
            await asyncio.sleep(1)
            cluster.kill(await node_of(cluster, client, ledger.metadata.last_fragment.ensemble[0]))
            struck = longest_s(await adding)
            assert len(ledger.metadata.fragments) == number + 2, "the ensemble has changed"
            reached_s = clients.host.reached_s
            pause_s = reached_s["ensemble-published"] - reached_s["about-to-change-ensemble"]
            print(
                f"nothing is acknowledged for {1e3 * pause_s:.1f} ms; longest time without an acknowledgement: "
                f"{1e3 * quiet:.0f} ms, with the change {1e3 * struck:.0f} ms"
            )


def longest_s(times_s: Sequence[float]) -> float:
    return max(later - earlier for earlier, later in pairwise(times_s))


# -- recovery


async def recovery(cluster: Cluster, chosen: argparse.Namespace) -> None:
    print("tail     recovered in s  ms an entry")
    async with clients_of(cluster) as clients:
        writer, other = await clients.client(), await clients.client()
        for tail in TAILS:
            ledger = await create(writer)
            await write_unconfirmed(writer, ledger.metadata, tail)
            began_s = time.monotonic()
            recovered = await other.recover(ledger.ledger)
            took_s = time.monotonic() - began_s
            assert recovered.last_entry == tail - 1
            print(f"{tail:6,} {took_s:16.2f} {1e3 * took_s / tail:12.2f}", flush=True)


async def write_unconfirmed(client: LedgerClient, metadata: LedgerMetadata, entries: int) -> None:
    """To all their bookies, as a writer that heard of no acknowledgement."""
    numbers = iter(range(entries))

    async def one_after_the_other() -> None:
        for number in numbers:
            entry = Entry(metadata.ledger, number, NOTHING, (number + 1) * len(PAYLOAD), PAYLOAD)
            data = encode_entry(entry, Digest())
            for bookie in bookies_of(metadata, number):
                reply, _ = await client.bookies.ask(bookie, AddRequest(bookie=bookie, data=data))
                assert reply is Reply.OK

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))


# -- repair


def measure_repair(chosen: argparse.Namespace) -> None:
    print("entries  repaired in s  copies/s")
    for size in SIZES:
        with running(4) as cluster:
            took_s = asyncio.run(repair(cluster, size))
        print(f"{size:7,} {took_s:14.2f} {size / took_s:9,.0f}", flush=True)


async def repair(cluster: Cluster, size: int) -> float:
    """Seconds from the mark that a ledger lacks copies until its ensemble is published that has them."""
    async with clients_of(cluster) as clients:
        client = await clients.client()
        ledger = await create(client)
        await add(ledger, size)
        await ledger.close()
        cluster.kill(await node_of(cluster, client, ledger.metadata.last_fragment.ensemble[0]))
        while True:
            times_ns = dict(events_of(cluster, ledger.ledger))
            if "fragment_repaired" in times_ns:
                return (times_ns["fragment_repaired"] - times_ns["ledger_marked"]) / 1e9
            await asyncio.sleep(0.2)


def events_of(cluster: Cluster, ledger: int) -> Iterator[tuple[str, int]]:
    """What bookies reported of its repair, and when by the machine's clock."""
    for name in cluster.bookies:
        for line in (cluster.directory / name / "events.jsonl").read_text("utf-8").splitlines():
            if '"ledger_marked"' in line or '"fragment_repaired"' in line:
                event = json.loads(line)
                if event["ledger"] == ledger:
                    yield event["event"], event["time"]


# -- readers at bookies


async def reader(cluster: Cluster, chosen: argparse.Namespace) -> None:
    async with clients_of(cluster) as clients:
        for explicit_lac_s in (0.0, EXPLICIT_LAC_S):
            ledger = await create(await clients.client(explicit_lac_s=explicit_lac_s))
            waits_s = await waits_of_reader(await clients.client(), ledger)
            what = f"every {explicit_lac_s} s" if explicit_lac_s else "never"
            print(
                f"an entry a second, explicit LAC {what}: a reader at the bookies sees an entry after "
                f"{median(waits_s):.2f} s (median; at most {max(waits_s):.2f})"
            )


async def waits_of_reader(reader: LedgerClient, ledger: OpenLedger) -> list[float]:
    """From the acknowledgement of each entry but the last."""
    metadata = await reader.metadata(ledger.ledger)
    acknowledged_s: list[float] = []
    waits_s: list[float] = []

    async def read() -> None:
        while len(waits_s) < ENTRIES_READ:
            lac = await reader.lac(metadata)
            waits_s.extend(time.monotonic() - at_s for at_s in acknowledged_s[len(waits_s) : lac + 1])
            await asyncio.sleep(0.005)

    reading = asyncio.ensure_future(read())
    for _ in range(ENTRIES_READ + 1):
        await ledger.append(PAYLOAD)
        acknowledged_s.append(time.monotonic())
        await asyncio.sleep(1)
    await reading
    return waits_s


def on_cluster(
    bookies: int, part: Callable[[Cluster, argparse.Namespace], Coroutine[Any, Any, None]]
) -> Callable[[argparse.Namespace], None]:
    def measure(chosen: argparse.Namespace) -> None:
        with running(bookies) as cluster:
            asyncio.run(part(cluster, chosen))

    return measure


PARTS = {
    "adds": measure_adds,
    "change": on_cluster(3 + CHANGES, change),
    "recovery": on_cluster(3, recovery),
    "repair": measure_repair,
    "reader": on_cluster(3, reader),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--rounds", type=int, default=4, help="of adds")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn of adds")
    chosen = parser.parse_args(arguments)
    if unknown := [part for part in chosen.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    for part in chosen.parts or PARTS:
        print(f"-- {part}", flush=True)
        PARTS[part](chosen)


if __name__ == "__main__":
    main()
