"""A metadata store and bookies with repair in their processes, on simulated hosts; a writer makes ledgers by hand."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.bookkeeper.bookie.message import ReadRequest
from system_under_test.bookkeeper.entry import Digest, EntryCorrupt, decode_entry
from system_under_test.bookkeeper.ledger.driver import LedgerClient, OpenLedger
from system_under_test.bookkeeper.ledger.event import Reply
from system_under_test.bookkeeper.ledger.metadata import Quorums
from system_under_test.bookkeeper.ledger.placement import bookies_of
from system_under_test.bookkeeper.repair.marks import AUDITOR, MARKS
from system_under_test.metadata.client import MetadataClient
from tests.unit.system_under_test.metadata.metadata_group import ADDRESSES, SETTINGS
from tests.unit.system_under_test.metadata.metadata_group import NODES as METADATA

BOOKIES = ("b1", "b2", "b3", "b4", "b5")
REPAIR = {
    "auditorPeriodicBookieCheckInterval": 600_000,
    "auditorPeriodicCheckInterval": 600_000,
    "openLedgerRereplicationGracePeriod": 5_000,
    "repairRetryInterval": 1_000,
}


class Cluster:
    def __init__(self, environment: SimulatedEnvironment) -> None:
        self.environment = environment
        host = environment.client_host("writer")
        self.access = MetadataClient(host, ADDRESSES, answer_timeout_s=0.5)
        self.ledgers = LedgerClient(host, self.access, Quorums(ensemble=3, write=3, ack=2), timeout_s=1.0)

    async def sleep(self, seconds: float) -> None:
        await self.environment.timeline.sleep(seconds)

    async def identities(self) -> dict[str, str]:
        """Of the bookies that live, by node; once all of them do."""
        while True:
            found = {}
            for bookie in [key.rpartition("/")[2] for key in await self.access.list("/available/")]:
                registered = await self.access.get(f"/bookies/{bookie}")
                assert registered is not None
                found[json.loads(registered.value)["address"].partition(":")[0]] = bookie
            if len(found) == len(self.environment.running()) - len(METADATA):
                return found
            await self.sleep(0.2)

    async def written(self, entries: int) -> OpenLedger:
        """An open ledger with so many entries, all of which its bookies have."""
        await self.identities()
        ledger = await self.ledgers.create(lambda: None)
        for number in range(entries):
            await ledger.append(b"%d" % number)
        await self.sleep(1.0)
        return ledger

    async def marks(self) -> list[str]:
        return list(await self.access.list(MARKS))

    async def until_repaired(self, within_s: float) -> float:
        """Seconds until no ledger is marked."""
        began_ns = self.environment.timeline.now_ns()
        while await self.marks():
            spent_s = (self.environment.timeline.now_ns() - began_ns) / 1e9
            assert spent_s < within_s, f"still marked after {within_s} s"
            await self.sleep(0.2)
        return (self.environment.timeline.now_ns() - began_ns) / 1e9

    async def copies(self, ledger: int) -> Counter[int]:
        """How many entries of a closed ledger have so many sound copies at bookies that should have them and live."""
        metadata = await self.ledgers.metadata(ledger)
        living = set((await self.identities()).values())
        counted: Counter[int] = Counter()
        for entry in range(metadata.last_entry + 1):
            found = 0
            for bookie in bookies_of(metadata, entry):
                found += bookie in living and await self._has(bookie, ledger, entry)
            counted[found] += 1
        return counted

    async def _has(self, bookie: str, ledger: int, entry: int) -> bool:
        """A connection to a process that has ended is not noticed at once."""
        for _ in range(2):
            request = ReadRequest(bookie=bookie, ledger=ledger, entry=entry)
            reply, answer = await self.ledgers.bookies.ask(bookie, request)
            if reply is not Reply.SILENT:
                return reply is Reply.OK and is_sound(answer.data, ledger, entry)
        return False

    async def node_of(self, ledger: OpenLedger, place: int) -> str:
        """Of the bookie at this place of the ledger's last ensemble."""
        nodes = {bookie: node for node, bookie in (await self.identities()).items()}
        return nodes[ledger.metadata.last_fragment.ensemble[place]]

    async def auditor(self) -> str:
        """The node that is elected."""
        while True:
            found = await self.access.get(AUDITOR)
            for node, bookie in (await self.identities()).items():
                if found is not None and found.value == bookie:
                    return node
            await self.sleep(0.2)

    def kill_at(self, point: str) -> asyncio.Future[str]:
        """The process that reaches it next, in that moment; the node's name."""
        killed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def reached(node: str, at: str) -> None:
            if at == point and node in BOOKIES and not killed.done():
                killed.set_result(node)
                with suppress(StopIteration):
                    self.environment.kill([node]).send(None)

        self.environment.moments.on_point(reached)
        return killed

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """Of all bookies, in the order of time."""
        events = [json.loads(line) for name in BOOKIES for line in self.environment.events()[name]]
        return sorted((event for event in events if event["event"] in kinds), key=lambda event: event["time"])


def is_sound(data: bytes, ledger: int, entry: int) -> bool:
    try:
        decode_entry(data, Digest(), ledger, entry)
    except EntryCorrupt:
        return False
    return True


def play(
    story: Callable[[Cluster], Coroutine[Any, Any, None]],
    *,
    seed: int = 1,
    bookies: int = 5,
    **settings: object,
) -> Trace:
    """On a quiet network; `settings` are of bookies."""
    trace = Trace()
    peers = ";".join(f"{name}-{address}" for name, address in zip(METADATA, ADDRESSES, strict=True))

    def spec(name: str) -> NodeSpec:
        if name in METADATA:
            config = {"metadataPeers": peers, "metadataSelfId": name, **SETTINGS}
        else:
            config = {"metadataServers": list(ADDRESSES), **REPAIR, **settings}
        main = f"system_under_test.bookkeeper.node:{'metadata' if name in METADATA else 'bookie'}"
        return NodeSpec(name=name, groups=("nodes",), program=PythonProgram(main=main, config=config))

    async def whole(environment: SimulatedEnvironment) -> None:
        await environment.start([spec(name) for name in (*METADATA, *BOOKIES[:bookies])], Path(directory))
        cluster = Cluster(environment)
        await cluster.ledgers.start()
        await story(cluster)
        assert environment.panics() == {}
        await cluster.ledgers.stop()
        await environment.stop()

    with tempfile.TemporaryDirectory() as directory:
        run_simulation(whole, Seed(seed), trace, regime=dataclasses.replace(Regime.calm(), fsync_ms=1.0))
    return trace
