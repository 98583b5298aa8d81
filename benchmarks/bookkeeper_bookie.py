"""What a bookie does in a second of a processor, how many adds share an fsync, and how its memory grows with entries.

One bookie with its files on a real disk takes entries of 1 KiB, with so many adds outstanding at a time; at first
without a network, then by remoting from a client in the same process, whose work is counted as well. For memory it
takes entries of 100 bytes. Growth is that of the second half, by entry, when caches are warm. Meanwhile checkpoints let
the journal go that is not needed any more; the most that it ever had on the disk is printed.

python benchmarks/bookkeeper_bookie.py [--adds N] [--entries N]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from system_under_test.bookkeeper.bookie.bookie import Bookie
from system_under_test.bookkeeper.bookie.client import BookieClient
from system_under_test.bookkeeper.bookie.config import BookieConfig
from system_under_test.bookkeeper.bookie.identity import Identity
from system_under_test.bookkeeper.bookie.message import AddRequest, BookieAnswer, BookieRequest, Code
from system_under_test.bookkeeper.bookie.registration import Willing
from system_under_test.bookkeeper.bookie.wire import decode_request, encode_answer
from system_under_test.bookkeeper.entry import NOTHING, Digest, Entry, encode_entry
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer, RemotingServer
from system_under_test.runtime.real import RealHost

ME = "00000000000000b1"
PORT = 23181
OUTSTANDING = (1, 64, 512)
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
LEDGERS = 100
STEPS = 40
"""So often memory and journal are looked at."""

Ask = Callable[[BookieRequest], Awaitable[BookieAnswer]]


class Nobody:
    """An `Availability` that nobody reads."""

    async def say(self, willing: Willing) -> None:
        print(f"the bookie is {willing.value}")


class CountingBookie(Bookie):
    """With the number of its fsyncs."""

    fsyncs = 0

    async def begin(self) -> None:
        await self.open()
        journal = self._store.journal
        flush = journal.flush

        async def counted() -> int:
            self.fsyncs += 1
            return await flush()

        journal.flush = counted  # type: ignore[method-assign]
        await self.start(Identity(ME), Nobody(), [])

    @property
    def journaled(self) -> int:
        """Bytes of all that was ever written to its journal."""
        return self._store.journal.max_offset

    async def asked(self, request: BookieRequest) -> BookieAnswer:
        answer = self.answer(request)
        return answer if isinstance(answer, BookieAnswer) else await answer

    async def by_remoting(self, command: RemotingCommand, peer: Peer) -> RemotingCommand:
        request = decode_request(command)
        return encode_answer(request, await self.asked(request))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * PAGE_BYTES


async def add(ask: Ask, first: int, count: int, outstanding: int, payload: bytes) -> None:
    """Entries from `first` on, dealt to the ledgers."""
    digest, numbers = Digest(), iter(range(first, first + count))

    async def one_after_the_other() -> None:
        for number in numbers:
            ledger, entry = number % LEDGERS, number // LEDGERS
            encoded = encode_entry(Entry(ledger, entry, NOTHING, (entry + 1) * len(payload), payload), digest)
            answer = await ask(AddRequest(bookie=ME, data=encoded))
            assert answer.code is Code.OK

    await asyncio.gather(*(one_after_the_other() for _ in range(outstanding)))


async def rates(bookie: CountingBookie, ask: Ask, what: str, adds: int, first: int) -> int:
    """Prints a line for each number of outstanding adds; returns the number of the next entry."""
    for outstanding in OUTSTANDING:
        count = max(500, adds * outstanding // OUTSTANDING[-1])
        fsyncs, processor, begun = bookie.fsyncs, time.process_time(), time.monotonic()
        await add(ask, first, count, outstanding, bytes(1024))
        processor, begun = time.process_time() - processor, time.monotonic() - begun
        first += count
        print(
            f"{what}, {outstanding:3} outstanding: {count / processor:7,.0f} adds a processor second, "
            f"{count / begun:7,.0f} a second, {count / (bookie.fsyncs - fsyncs):6.1f} adds an fsync",
            flush=True,
        )
    return first


async def measure_rates(directory: Path, adds: int) -> None:
    host = RealHost("localhost", directory, events=lambda line: None)
    bookie = CountingBookie(host, BookieConfig(), Digest())
    await bookie.begin()
    server = RemotingServer(host, bookie.by_remoting)
    await server.start(PORT)
    client = BookieClient(host)
    first = await rates(bookie, bookie.asked, "alone", adds, 0)
    await rates(bookie, lambda request: client.ask(f"localhost:{PORT}", request, 60.0), "by remoting", adds, first)
    client.close()
    server.close()
    await bookie.stop()
    await host.close()


async def measure_memory(directory: Path, entries: int) -> None:
    host = RealHost("localhost", directory, events=lambda line: None)
    bookie = CountingBookie(host, BookieConfig(), Digest())
    await bookie.begin()
    found, most_journal = [], 0
    for number in range(STEPS):
        await add(bookie.asked, number * entries // STEPS, entries // STEPS, 512, bytes(100))
        most_journal = max(most_journal, sum(file.stat().st_size for file in (directory / "bookie/journal").iterdir()))
        found.append(resident_bytes())
        if (number + 1) % (STEPS // 4) == 0:
            print(f"{(number + 1) * entries // STEPS:9,} entries: {found[-1] / 2**20:6.1f} MiB", flush=True)
    grown = found[-1] - found[STEPS // 2 - 1]
    print(f"{grown / (entries / 2):+.1f} bytes an entry over the second half")
    print(f"the journal had at most {most_journal / 2**20:.1f} MiB, and was written {bookie.journaled / 2**20:.0f} MiB")
    await bookie.stop()
    await host.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--adds", type=int, default=20_000, help="with 512 outstanding; fewer with less")
    parser.add_argument("--entries", type=int, default=1_000_000)
    chosen = parser.parse_args()
    with TemporaryDirectory() as directory:
        asyncio.run(measure_rates(Path(directory), chosen.adds))
    with TemporaryDirectory() as directory:
        asyncio.run(measure_memory(Path(directory), chosen.entries))


if __name__ == "__main__":
    main()
