"""What batch push gains DLedger's group: a leader that pushes several entries a request against one that pushes each
by itself.

Two groups of three members run side by side as processes on loopback, equal but for `isEnableBatchPush`. This process
appends entries of 1 KiB at the leader of one group after the other, in several rounds, with more and more at once. What
is printed: the most appends a second of each group, and the most while half of them are acknowledged within 10 ms; both
by the clock, and by the processor seconds of all three members of a group. Members and this process share the machine's
processors, so the latter say more. The document reports x1.45 and x1.56 (55,000 to 80,000 and 45,000 to 70,000).

`--profile DIRECTORY` writes there a profile of each member.

python benchmarks/dledger_batch_push.py [--rounds N] [--seconds S] [--at-once N ...] [--batch-bytes N] [--durable]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from processes import Processes, free_ports

from system_under_test.dledger.client_message import AppendAnswer, AppendRequest, MetadataAnswer, MetadataRequest
from system_under_test.dledger.message import Code
from system_under_test.dledger.wire import Addressed, ClientRequest, decode_answer, encode_request
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import ConnectFailed
from system_under_test.runtime.real import RealHost

BODY = b"x" * 1024
MEMBERS = ("n0", "n1", "n2")
WARM_UP = 300
LIMIT_S = 0.010
WAYS = {"single": False, "batch": True}


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a group was sent in one or several turns."""

    appends: int
    seconds: float
    processor_s: float
    """Of all three members."""
    latencies_s: tuple[float, ...]

    @property
    def half_s(self) -> float:
        return sorted(self.latencies_s)[len(self.latencies_s) // 2]

    def rate(self, by_clock: bool) -> float:
        return self.appends / (self.seconds if by_clock else self.processor_s)


def total(loads: Sequence[Load]) -> Load:
    return Load(
        appends=sum(load.appends for load in loads),
        seconds=sum(load.seconds for load in loads),
        processor_s=sum(load.processor_s for load in loads),
        latencies_s=tuple(latency_s for load in loads for latency_s in load.latencies_s),
    )


class Group:
    def __init__(self, name: str, processes: Processes, settings: Mapping[str, object]) -> None:
        self.name = name
        self._processes = processes
        with_ports = zip(MEMBERS, free_ports(len(MEMBERS)), strict=True)
        self._addresses = {node: f"127.0.0.1:{port}" for node, port in with_ports}
        self._leader = MEMBERS[0]
        peers = ";".join(f"{peer}-{address}" for peer, address in self._addresses.items())
        for node in MEMBERS:
            config = {"group": self.name, "selfId": node, "peers": peers, **settings}
            processes.start(f"{name}-{node}", "system_under_test.dledger.node:member", config)

    def processor_s(self) -> float:
        return self._processes.processor_s(f"{self.name}-{node}" for node in MEMBERS)

    async def _ask(self, remoting: RemotingClient, node: str, request: ClientRequest) -> object:
        code, body = encode_request(Addressed(group=self.name, to=node, request=request))
        command = RemotingCommand.request(code, body=body)
        answer = await remoting.invoke(self._addresses[node], command, 30.0)
        return decode_answer(request, answer.body)

    async def make_ready(self, remoting: RemotingClient) -> None:
        """Until there is a leader; caches are warm then."""
        end_s = time.monotonic() + 60
        while True:
            for node in MEMBERS:
                try:
                    answer = await self._ask(remoting, node, MetadataRequest())
                except ConnectFailed:
                    continue
                if isinstance(answer, MetadataAnswer) and answer.leader == node:
                    self._leader = node
                    await asyncio.gather(*(self._append(remoting) for _ in range(WARM_UP)))
                    return
            if time.monotonic() > end_s:
                raise SystemExit(f"nobody leads group {self.name}")
            await asyncio.sleep(0.1)

    async def _append(self, remoting: RemotingClient) -> None:
        answer = await self._ask(remoting, self._leader, AppendRequest((BODY,)))
        if not isinstance(answer, AppendAnswer) or answer.code is not Code.SUCCESS:
            raise SystemExit(f"group {self.name} refuses an append: {answer}")

    async def load(self, remoting: RemotingClient, seconds: float, at_once: int) -> Load:
        """One turn."""
        latencies_s: list[float] = []

        async def append_until(end_s: float) -> None:
            now_s = time.monotonic()
            while now_s < end_s:
                await self._append(remoting)
                began_s, now_s = now_s, time.monotonic()
                latencies_s.append(now_s - began_s)

        used_s, began_s = self.processor_s(), time.monotonic()
        await asyncio.gather(*(append_until(began_s + seconds) for _ in range(at_once)))
        return Load(
            appends=len(latencies_s),
            seconds=time.monotonic() - began_s,
            processor_s=self.processor_s() - used_s,
            latencies_s=tuple(latencies_s),
        )


@contextmanager
def running(settings: Mapping[str, object], profile: Path | None) -> Iterator[tuple[list[Group], Path]]:
    with TemporaryDirectory() as name:
        processes = Processes(Path(name), profile)
        try:
            yield [Group(way, processes, {"isEnableBatchPush": on, **settings}) for way, on in WAYS.items()], Path(name)
        finally:
            processes.stop()


async def in_turns(groups: Sequence[Group], directory: Path, chosen: argparse.Namespace) -> dict[int, dict[str, Load]]:
    """Number at once → group → all its turns; every second round goes the other way, so that none is always first."""
    host = RealHost("load", directory / "load")
    remoting = RemotingClient(host)
    found: dict[int, dict[str, Load]] = {}
    for group in groups:
        await group.make_ready(remoting)
    print("at once way    appends/s  /processor s  half in ms")
    for at_once in chosen.at_once:
        loads: dict[str, list[Load]] = {group.name: [] for group in groups}
        for number in range(chosen.rounds):
            for group in groups if number % 2 == 0 else reversed(groups):
                loads[group.name].append(await group.load(remoting, chosen.seconds, at_once))
        found[at_once] = {name: total(turns) for name, turns in loads.items()}
        for name, load in found[at_once].items():
            print(f"{at_once:7} {name:6} {load.rate(True):9,.0f} {load.rate(False):13,.0f} {load.half_s * 1e3:11.1f}")
    remoting.close()
    await host.close()
    return found


def show(name: str, found: Mapping[int, Mapping[str, Load]], limit_s: float, reported: str) -> None:
    for by_clock in (True, False):
        single, batch = (
            max((one[way].rate(by_clock) for one in found.values() if one[way].half_s <= limit_s), default=0.0)
            for way in WAYS
        )
        gained = f"x{batch / single:.2f}" if single else "no ratio: one of them was never so quick"
        unit = "second" if by_clock else "processor second of all three"
        print(f"{name}: {single:,.0f} to {batch:,.0f} appends a {unit}, {gained} (the document: {reported})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    parser.add_argument("--at-once", type=int, nargs="+", default=[4, 8, 16, 32, 64, 256])
    parser.add_argument("--batch-bytes", type=int, default=4096, help="maxBatchPushSize")
    parser.add_argument("--durable", action="store_true", help="a member counts once it has synced")
    parser.add_argument("--profile", type=Path)
    chosen = parser.parse_args()
    settings = {"maxBatchPushSize": chosen.batch_bytes, "ackDurable": chosen.durable}
    with running(settings, chosen.profile) as (groups, directory):
        found = asyncio.run(in_turns(groups, directory, chosen))
    show("at most", found, float("inf"), "x1.45")
    show("within 10 ms", found, LIMIT_S, "x1.56")


if __name__ == "__main__":
    main()
