"""Replicated counters shown to Stormproof: nodes, clients, and what holds of them at every moment.

pip install -e examples/counter
stormproof run counter --nemesis partition,pause,kill
stormproof explore counter --mutant answers-alone
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from replicated_counter import mutants
from replicated_counter.node import ADD, LED, PORT, RAFT_PORT, READ
from stormproof import (
    Bounds,
    Breaches,
    Client,
    ConnectFailed,
    ConnectionClosed,
    Declaration,
    ErrorCode,
    FaultWindow,
    Host,
    LegalLoss,
    Meaning,
    NodeReports,
    NodeSpec,
    Operation,
    OperationError,
    PythonProgram,
)
from system_under_test.node.mutant import find_mutant, mutant_names
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.command import RemotingCommand
from system_under_test.replicated.leader_client import LeaderClient

NODES = ("n1", "n2", "n3")
ADDRESSES = tuple(f"{name}:{PORT}" for name in NODES)
PATIENCE_S = 1.0
"""Of a client."""
DAMAGE = ("bit-rot", "short-files", "lost-disk", "old-disk")
"""Faults by which a disk loses what was synced."""
CANNOT_WRITE = ("full-disk", "failing-fsync", "disk-errors")
"""Faults under which a node ends itself rather than go on."""

INVARIANTS = {
    "stale-read": Meaning(
        says="A read showed less than what had been answered to be added before it was asked for.",
        usually="A deposed leader answers without asking the others whether it still leads.",
    ),
    "diverging-totals": Meaning(
        says="By the same entry of a log two nodes came to different totals.",
        usually="An entry was applied that was not decided, or twice, or a snapshot holds another total.",
    ),
}
POINTS = {
    "became-leader": "a node has won an election of a counter's group; its first entry is not written yet",
    "about-to-append": "a node is about to write entries at the end of a counter's log",
    "read-asked": "a node has taken a read, and has not asked the others yet whether it leads",
}


class CounterInvariants:
    """`stormproof.Invariants`: each counter by itself, over all nodes."""

    def __init__(self, breaches: Breaches) -> None:
        self._says = breaches.says
        self._totals: dict[tuple[int, int], tuple[int, str]] = {}
        """(Counter, index in its log) -> the total there, and the node that first came to it."""
        self._added: dict[int, int] = defaultdict(int)
        """Counter -> the total of what certainly was added."""
        self._asked: dict[tuple[str, int, int], int] = {}
        """(Node, counter, serial) of a read -> that total when it was asked for."""

    def saw(self, node: str, event: str, fields: Mapping[str, object]) -> None:
        """What nodes say of their logs is for the checker of nodes."""

    def observe(self, node: str, point: str, values: Mapping[str, int]) -> None:
        match point, values:
            case "addition-answered", {"counter": counter, "total": total}:
                self._added[counter] = max(self._added[counter], total)
            case "read-asked", {"counter": counter, "serial": serial}:
                self._asked[node, counter, serial] = self._added[counter]
            case "read-answered", {"counter": counter, "serial": serial, "total": total}:
                least = self._asked[node, counter, serial]
                if total < least:
                    self._says("stale-read", (node,), f"{node} showed {total} of c{counter}, which had come to {least}")
            case "added", {"counter": counter, "index": index, "total": total}:
                known, first = self._totals.setdefault((counter, index), (total, node))
                if total != known:
                    because = f"behind entry {index} c{counter} is {known} at {first}, and {total} at {node}"
                    self._says("diverging-totals", (first, node), because)


class CounterClient:
    """`stormproof.Client`: it asks the group of the operation's counter."""

    def __init__(self, host: Host, process: int, counters: int) -> None:
        home = ADDRESSES[process % len(ADDRESSES)]
        self._groups = [LeaderClient(host, ADDRESSES, PATIENCE_S, home) for _ in range(counters)]

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        for group in self._groups:
            group.close()

    async def invoke(self, operation: Operation) -> Operation:
        number, adds = str(operation.key).removeprefix("c"), operation.f == "add"
        body = b"%d" % (operation.value or {})["value"] if adds else b""
        request = RemotingCommand.request(ADD if adds else READ, {"counter": number}, body)
        try:
            answer = await self._groups[int(number)].ask(request)
        except ClientError as error:
            raise OperationError(ErrorCode(error.code, definite=error.definite), error.detail) from error
        value = operation.value if adds else {"value": int(answer.body), "values": None}
        return operation._replace(type="ok", value=value)


@dataclass(frozen=True, kw_only=True)
class CounterSettings:
    counters: Annotated[int, Bounds(1, 20)] = 2


class Counters:
    """`stormproof.System`, which is also `Guarded` and `Advising` (`harness/abilities.py`)."""

    name = "counter"
    settings_type = CounterSettings
    workloads = ("counter",)
    mutants: Mapping[str, str] = {name: find_mutant(mutants, name).breaks for name in mutant_names(mutants)}

    def nodes(self, settings: CounterSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        config: dict[str, Any] = {"peers": [f"{name}:{RAFT_PORT}" for name in NODES], "counters": settings.counters}
        config |= {} if mutant is None else {"mutant": mutant}
        program = PythonProgram(main="replicated_counter.node:node", config=config)
        return tuple(NodeSpec(name=name, groups=("nodes",), program=program, ports=(PORT,)) for name in NODES)

    def cluster(self, settings: CounterSettings) -> Declaration:
        return Declaration(
            groups=("nodes",),
            data=("nodes",),
            voters=("nodes",),
            roles={"leader": "nodes"},
            points=POINTS,
            invariants=INVARIANTS,
            recovers_within_s=20.0,
            may_panic=(*DAMAGE, *CANNOT_WRITE),
            lasting_damage=DAMAGE,
        )

    def invariants(self, settings: CounterSettings, breaches: Breaches) -> CounterInvariants:
        return CounterInvariants(breaches)

    def advised(self, settings: CounterSettings, workload: str) -> Mapping[str, int]:
        return {"counters": settings.counters}

    def client(self, workload: str, settings: CounterSettings, host: Host, process: int) -> Client:
        return CounterClient(host, process, settings.counters)

    async def ready(self, settings: CounterSettings, host: Host, workload: str) -> None:
        while sum([len(led) for led in (await _led(host)).values()]) < settings.counters:
            await host.clock.sleep(0.1)

    async def roles(self, settings: CounterSettings, host: Host) -> Mapping[str, tuple[str, ...]]:
        return {"leader": tuple([node for node, led in (await _led(host)).items() if led])}

    def legal_loss(self, settings: CounterSettings, struck: tuple[FaultWindow, ...], reports: NodeReports) -> LegalLoss:
        damaged = [window.start_ns for window in struck if not set(DAMAGE).isdisjoint(window.kinds)]
        if not damaged:
            return LegalLoss()
        return LegalLoss(anything="a disk lost what Raft had synced", anything_from_ns=min(damaged))


async def _led(host: Host) -> dict[str, list[str]]:
    """Node -> the counters that it leads, of those that answer."""
    remoting, led = RemotingClient(host), {}
    for node, address in zip(NODES, ADDRESSES, strict=True):
        try:
            answer = await remoting.invoke(address, RemotingCommand.request(LED), PATIENCE_S)
            led[node] = answer.body.decode().split()
        except (ConnectFailed, ConnectionClosed, TimeoutError):
            continue
    remoting.close()
    return led


SYSTEM = Counters()
