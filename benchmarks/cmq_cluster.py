"""Three nodes of CMQ as processes on loopback, with their files on real disks, and who asks them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from processes import PATIENCE_S, Processes, free_ports

from system_under_test.cmq import wire
from system_under_test.cmq.routing import group_of
from system_under_test.cmq.wire import Code
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host
from system_under_test.runtime.real import RealHost

NODES = ("n1", "n2", "n3")
PAYLOAD = bytes(1024)
SETTINGS = {"reportsEntries": False, "minElectionTimeout": 1_500, "maxElectionTimeout": 3_000}
"""A leader that gets no processor for a moment, as all share few, goes on leading."""


class Cluster(Processes):
    def __init__(self, directory: Path, settings: Mapping[str, Any], profile: Path | None) -> None:
        super().__init__(directory, profile)
        ports = free_ports(len(NODES))
        self.addresses = dict(zip(NODES, (f"127.0.0.1:{port}" for port in ports), strict=True))
        self.settings = {**SETTINGS, **settings}
        for name in NODES:
            self.start_node(name)

    @property
    def groups(self) -> int:
        return int(self.settings.get("groups", 3))

    def start_node(self, name: str) -> None:
        peers = ";".join(f"{node}-{address}" for node, address in self.addresses.items())
        self.start(name, "system_under_test.cmq.node:node", {"peers": peers, "selfId": name, **self.settings})


@contextmanager
def running(settings: Mapping[str, Any] | None = None, profile: Path | None = None) -> Iterator[Cluster]:
    with TemporaryDirectory() as directory:
        cluster = Cluster(Path(directory), settings or {}, profile)
        try:
            yield cluster
        finally:
            cluster.stop()


class Asker:
    """Asks the leaders of queues, which it looks for."""

    def __init__(self, host: Host, addresses: Mapping[str, str], groups: int) -> None:
        """`addresses`: where each node is reached from this host."""
        self._host = host
        self._addresses = addresses
        self.groups = groups
        self._remoting = RemotingClient(host)
        self._leaders: dict[int, str] = {}

    def close(self) -> None:
        self._remoting.close()

    async def ask(self, queue: str, command: RemotingCommand) -> RemotingCommand:
        """The answer of the leader, which is a success."""
        group = group_of(queue, self.groups)
        end_s = self._now_s() + PATIENCE_S
        while self._now_s() < end_s:
            leader = self._leaders.get(group) or await self._leader(group)
            if leader is not None:
                self._leaders[group] = leader
                answer = await self._remoting.invoke(leader, command, PATIENCE_S)
                if answer.code == Code.SUCCESS:
                    return answer
                if answer.code != Code.NOT_LEADER:
                    raise SystemExit(f"{answer.code}: {answer.remark}")
                self._leaders.pop(group, None)
            await self._host.clock.sleep(0.05)
        raise SystemExit(f"nobody leads group {group}")

    async def _leader(self, group: int) -> str | None:
        for address in self._addresses.values():
            try:
                answer = await self._remoting.invoke(address, wire.status(), 1.0)
            except (ConnectFailed, ConnectionClosed, TimeoutError):
                continue
            if any(one["group"] == group and one["leads"] for one in wire.decode_status(answer.body)):
                return address
        return None

    def leader_name(self, queue: str) -> str:
        """Who answered last for it."""
        address = self._leaders[group_of(queue, self.groups)]
        return next(name for name, at in self._addresses.items() if at == address)

    async def produce(self, queue: str, seconds: float, at_once: int) -> list[float]:
        """How many seconds each message took."""
        return await self._again_and_again(queue, wire.produce(queue, [PAYLOAD]), seconds, at_once)

    async def pull(self, queue: str, seconds: float, at_once: int) -> list[float]:
        """The same of pulls that do not wait; for what they cost by themselves, from a queue that is empty."""
        return await self._again_and_again(queue, wire.pull(queue, 1, 0), seconds, at_once)

    async def _again_and_again(self, queue: str, command: RemotingCommand, seconds: float, at_once: int) -> list[float]:
        latencies_s: list[float] = []

        async def ask_until(end_s: float) -> None:
            now_s = self._now_s()
            while now_s < end_s:
                await self.ask(queue, RemotingCommand.request(command.code, command.ext_fields, command.body))
                began_s, now_s = now_s, self._now_s()
                latencies_s.append(now_s - began_s)

        end_s = self._now_s() + seconds
        await asyncio.gather(*(ask_until(end_s) for _ in range(at_once)))
        return latencies_s

    def _now_s(self) -> float:
        return self._host.clock.monotonic_ns() / 1e9


@asynccontextmanager
async def asking(cluster: Cluster) -> AsyncIterator[Asker]:
    host = RealHost("load", cluster.directory / "load")
    asker = Asker(host, cluster.addresses, cluster.groups)
    try:
        yield asker
    finally:
        asker.close()
        await host.close()


def queues_of(groups: int) -> list[str]:
    """A queue of each group."""
    names = [f"q{number}" for number in range(64 * groups)]
    return [next(name for name in names if group_of(name, groups) == group) for group in range(1, groups + 1)]
