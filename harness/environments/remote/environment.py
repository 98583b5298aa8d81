"""Nodes that run somewhere else: real processes, packets and disks, in containers or on machines.

The ways to them and their threads stay off the event loop, so that no verb holds up a client.

What is done to disks is the business of machines that have disks of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from harness.environments.environment import Effect, Link, Usage
from harness.environments.impairment import (
    LINK_IMPAIRMENTS,
    OF_CLOCKS,
    LinkImpairment,
    NodeImpairment,
    ResetLink,
    Strobe,
)
from harness.environments.monotonic_timeline import MonotonicTimeline
from harness.environments.remote.impaired_disks import OnDisk
from harness.environments.remote.impaired_nodes import TREATED, RemoteImpairedNodes, World
from harness.environments.remote.links import RemoteLinks
from harness.environments.remote.machines import Home, Machines, Squeezed
from harness.environments.remote.node import RemoteNode, remote_node
from harness.errors import HarnessError
from harness.program import Program
from harness.system import NodeSpec

T = TypeVar("T")

ClientHosts = Callable[[str, Path, Mapping[str, str]], Any]
"""(name, directory for its files, where nodes are reached) -> a `Host` that has `await close()`."""
THREADS = 16
CLOCK_NOTICED_S = 0.0005
READY_TIMEOUT_S = 60.0
PROBE_EVERY_S = 0.1
BYTES_IN_MB = 10**6
RELAYED = frozenset(one.kind for one in LINK_IMPAIRMENTS if one is not ResetLink)
"""The kinds for which packets are relayed."""


class RemoteEnvironment:
    """`Environment` of the harness, on machines of any kind."""

    faults = RELAYED.union(
        ("partition", "kill", "pause", "clock", "upgrade", ResetLink.kind), (one.kind for one in TREATED)
    )
    moments = None

    def __init__(
        self,
        machines: Machines,
        *,
        client_hosts: ClientHosts,
        wanted: frozenset[str] | None = None,
        captures: bool = False,
    ) -> None:
        """`wanted`: the kinds of faults that the run may bring; where a machine cannot do one, nothing starts. None:
        any for which nothing has to be made before.

        `captures`: whether nodes keep their packets.
        """
        self.faults = RemoteEnvironment.faults | machines.own_faults
        self.timeline = MonotonicTimeline()
        self.machines = machines
        self._client_hosts = client_hosts
        self._wanted = wanted or frozenset()
        self._moves_clocks = wanted is None or not wanted.isdisjoint(OF_CLOCKS)
        self._captures = captures
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix=machines.name)
        self._nodes: dict[str, RemoteNode] = {}
        self._addresses: Mapping[str, str] = {}
        self._links = RemoteLinks({}, self._on)
        self._impaired = RemoteImpairedNodes(
            World(
                timeline=self.timeline,
                kill=self.kill,
                boot=self.boot,
                strobe=self._strobe,
                limit_processor=self._limit_processor,
                squeeze=self._squeeze,
                throttle=self._throttle,
                unthrottle=self._unthrottle,
                on_disks=self._on_disks,
                on_nodes=self._on,
            )
        )
        self._hosts: dict[str, Any] = {}
        self._logs: Path | None = None
        self._rates: dict[str, float] = {}
        self._clocks_ahead_ns: dict[str, int] = {}

    @property
    def name(self) -> str:
        return self.machines.name

    # Life of the nodes ----------------------------------------------------------------------------------------

    async def start(self, nodes: Sequence[NodeSpec], logs: Path | None) -> None:
        if logs is None:
            raise HarnessError(f"{self.machines.kind} leave logs, so they need a directory for them")
        if self._addresses:
            raise HarnessError(f"an environment of {self.machines.kind} is started once")
        names = [spec.name for spec in nodes]
        if len(set(names)) < len(names):
            raise HarnessError(f"two nodes have the same name among {', '.join(names)}")
        self._logs = logs
        home = Home(logs=logs, start_ns=self.timeline.start_ns)
        self._addresses = await self._in_thread(lambda: self.machines.take(nodes, home))
        self._links = RemoteLinks(self._addresses, self._on)
        await self._together([partial(self._prepare, spec) for spec in nodes])
        await self._on(names, RemoteNode.boot)
        await asyncio.gather(*map(self._until_ready, self._nodes.values()))

    async def _until_ready(self, node: RemoteNode) -> None:
        """Wait for the probe of the node's program. Raises HarnessError."""

        async def ready() -> None:
            while True:
                if await self._in_thread(node.is_ready):
                    return
                await self.timeline.sleep(PROBE_EVERY_S)

        try:
            await self.timeline.within(READY_TIMEOUT_S, ready())
        except TimeoutError:
            raise HarnessError(f"{node.name} is not ready after {READY_TIMEOUT_S:g} s: {node.launch.ready}") from None

    def _prepare(self, spec: NodeSpec) -> None:
        """Make a node's machine ready, and bring its agent there."""
        place = self.machines.open(spec)
        node = remote_node(spec, place, self._addresses, has_own_clock=self._moves_clocks)
        self._nodes[spec.name] = node
        self._clocks_ahead_ns[spec.name] = self.machines.clock_ahead_ns(spec.name, node.prepare())
        if self._wanted & RELAYED:
            node.require_relay()
        if self._captures:
            node.capture_packets()

    async def stop(self) -> None:
        try:
            await self._impaired.stop()
            for host in self._hosts.values():
                await host.close()
            if self._logs is not None:
                _remove_empty(files_of_clients(self._logs))
        finally:
            self._hosts.clear()
            await self._end_nodes()

    async def _end_nodes(self) -> None:
        # A start that was cancelled may still be making machines ready in its threads.
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix=self.name)
        try:
            await self._together([partial(self._end, node) for node in self._nodes.values()])
        finally:
            self._nodes.clear()
            await asyncio.to_thread(self.remove)
            self._threads.shutdown(wait=False)

    def remove(self) -> None:
        """Remove whatever there still is of this run, at once; blocks. Raises HarnessError."""
        self._threads.shutdown(cancel_futures=True)
        self.machines.release()

    def client_host(self, name: str) -> Any:
        if name in self._addresses:
            raise HarnessError(f"{name!r} is a node; a client needs a name of its own")
        if name not in self._hosts:
            assert self._logs is not None, "clients come after nodes"
            self._hosts[name] = self._client_hosts(name, files_of_clients(self._logs) / name, self.machines.reached())
        return self._hosts[name]

    def panics(self) -> Mapping[str, str]:
        """Asks each node, a few milliseconds a node: not for use while clients are served."""
        self.machines.require_kept()
        for node in self._nodes.values():
            node.look()
        return {name: "\n".join(node.deaths) for name, node in sorted(self._nodes.items()) if node.deaths}

    async def usage(self) -> Mapping[str, Usage]:
        held = await self._on(list(self._nodes), RemoteNode.usage)
        return {name: usage for name, usage in held.items() if usage is not None}

    def _end(self, node: RemoteNode) -> None:
        try:
            node.end()
        finally:
            assert self._logs is not None
            # None is known of a node that could not even be prepared.
            zero_ns = self.timeline.start_ns + self._clocks_ahead_ns.get(node.name, 0)
            node.bring_logs_home(self._logs / node.name, zero_ns=zero_ns)

    # Verbs ----------------------------------------------------------------------------------------------------

    async def cut(self, links: Sequence[Link]) -> Effect:
        self._known_ends(links)
        words = ", ".join(map(_arrow, await self._links.cut(links)))
        return _effect(f"packets are dropped: {words}" if words else "", "no link that was open")

    async def heal(self, links: Sequence[Link] | None = None) -> Effect:
        healed = (await self._links.heal(links)).items()
        words = ", ".join(f"{_arrow(link)} ({dropped} packets had been dropped)" for link, dropped in healed)
        return _effect(f"packets pass again: {words}" if words else "", "no link that was cut")

    async def kill(self, nodes: Sequence[str]) -> Effect:
        return await self._apply(nodes, RemoteNode.kill, "killed", "no process that was running")

    async def power_off(self, nodes: Sequence[str]) -> Effect:
        self._require_nodes(nodes)
        for name in nodes:
            self.machines.disk(name)  # before anything is killed
        killed = await self._on(nodes, RemoteNode.power_off)
        lost = await self._on_disks(nodes, lambda _, disk: str(disk.lose_power()))
        words = ", ".join(f"{killed[name] or f'{name} (gone)'}: {lost[name]}" for name in nodes)
        return _effect(f"power lost: {words}" if any(killed.values()) else "", "no process that was running")

    async def boot(self, nodes: Sequence[str]) -> Effect:
        return await self._apply(nodes, RemoteNode.boot, "booted", "no node that was down")

    async def upgrade(self, nodes: Sequence[str]) -> Effect:
        return await self._apply(nodes, RemoteNode.upgrade, "upgraded", "no node with another version to run")

    async def replace_program(self, node: str, program: Program) -> Effect:
        return await self._apply(
            [node], lambda one: one.replace_program(program, self._addresses), "has another program", "the same program"
        )

    async def pause(self, nodes: Sequence[str]) -> Effect:
        return await self._apply(nodes, RemoteNode.pause, "paused", "no process that was running")

    async def resume(self, nodes: Sequence[str]) -> Effect:
        return await self._apply(nodes, RemoteNode.resume, "resumed", "no process that was paused")

    async def set_clock(self, node: str, *, offset_s: float, rate: float) -> Effect:
        answer = (await self._on([node], lambda one: one.set_clock(offset_s, rate)))[node]
        before_s, after_s, was = answer["before_s"], answer["after_s"], self._rates.get(node, 1.0)
        self._rates[node] = rate
        if answer["unreached"]:
            return _effect("", f"{node} reads the true time: {', '.join(answer['unreached'])}")
        return Effect(
            abs(before_s - after_s) > CLOCK_NOTICED_S or was != rate,
            f"{node}: {before_s:+.6f} s at rate {was} became {after_s:+.6f} s at rate {rate}",
        )

    async def impair_links(self, links: Sequence[Link], impairment: LinkImpairment) -> Effect:
        self._known_ends(links)
        if isinstance(impairment, ResetLink):
            ended = (await self._links.reset(links)).items()
            words = ", ".join(f"{_arrow(link)} ({count})" for link, count in ended if count)
            return _effect(f"connections ended by RST: {words}" if words else "", "no connection on these links")
        await self._links.impair(links, impairment)
        words = ", ".join(map(_arrow, links))
        return _effect(f"{words}: {impairment}" if words else "", "no link")

    async def relieve_links(self, links: Sequence[Link], impairment: LinkImpairment) -> Effect:
        relieved = (await self._links.relieve(links, impairment)).items()
        words = ", ".join(f"{_arrow(link)} ({struck} packets were struck)" for link, struck in relieved)
        return _effect(f"no longer {impairment.kind}: {words}" if words else "", f"no link with {impairment}")

    async def impair(self, nodes: Sequence[str], impairment: NodeImpairment) -> Effect:
        self._require_nodes(nodes)
        self._require_treated(impairment)
        return Effect(*await self._impaired.impair(nodes, impairment))

    async def relieve(self, nodes: Sequence[str], impairment: NodeImpairment) -> Effect:
        self._require_nodes(nodes)
        self._require_treated(impairment)
        words = await self._impaired.relieve(nodes, impairment)
        return _effect(f"end of {impairment.kind}: {words}" if words else "", "no node had it")

    def _require_treated(self, impairment: NodeImpairment) -> None:
        if impairment.kind not in self.faults:
            raise HarnessError(f"there is no {impairment.kind} of {self.machines.kind}; the simulator has it")

    async def _strobe(self, nodes: Sequence[str], strobes: Sequence[Strobe]) -> str:
        return "; ".join(filter(None, (await self._on(nodes, lambda node: node.strobe(strobes))).values()))

    async def _limit_processor(self, nodes: Sequence[str], share: float) -> str:
        await self._on(nodes, lambda node: self.machines.limit_processor(node, share))
        return f"{share:.1%} of a processor" if share else "whole processors"

    async def _throttle(self, node: str, number: int, pids: Sequence[int], share: float) -> None:
        await self._on([node], lambda one: self.machines.throttle(one, number, pids, share))

    async def _unthrottle(self, nodes: Sequence[str], number: int) -> dict[str, int]:
        return await self._on(nodes, lambda node: self.machines.unthrottle(node, number))

    async def _squeeze(self, nodes: Sequence[str], left_mb: float | None) -> dict[str, Squeezed]:
        if left_mb is None:
            return await self._on(nodes, self.machines.release_memory)
        left_bytes = round(left_mb * BYTES_IN_MB)
        return await self._on(nodes, lambda node: self.machines.squeeze_memory(node, left_bytes))

    async def _on_disks(self, nodes: Sequence[str], act: OnDisk) -> dict[str, str]:
        self._require_nodes(nodes)
        disks = {name: self.machines.disk(name) for name in nodes}
        return await self._on(nodes, lambda node: act(node, disks[node.name]))

    # Threads --------------------------------------------------------------------------------------------------

    async def _apply(self, nodes: Sequence[str], verb: Callable[[RemoteNode], str], done: str, nothing: str) -> Effect:
        words = ", ".join(word for word in (await self._on(nodes, verb)).values() if word)
        return _effect(f"{done}: {words}" if words else "", nothing)

    async def _on(self, names: Sequence[str], verb: Callable[[RemoteNode], T]) -> dict[str, T]:
        """Carry a verb out on several nodes at once; all are waited for, then the first failure is raised."""
        self._require_nodes(names)
        self.machines.require_kept()
        results = await self._together([partial(verb, self._nodes[name]) for name in names])
        return dict(zip(names, results, strict=True))

    async def _together(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Several at once, each in a thread; all are waited for, then the first failure is raised."""
        results = await asyncio.gather(*map(self._in_thread, works), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _known_ends(self, links: Sequence[Link]) -> None:
        self._require_nodes(name for link in links for name in (link.source, link.target))

    def _require_nodes(self, names: Any) -> None:
        for name in names:
            if name not in self._nodes:
                raise HarnessError(f"no node is called {name!r}; there are {', '.join(self._addresses)}")


def files_of_clients(logs: Path) -> Path:
    """Beside those of the nodes: one folder a client that left anything."""
    return logs.with_name("clients")


def _arrow(link: Link) -> str:
    return f"{link.source}→{link.target}"


def _remove_empty(directory: Path) -> None:
    """It and the folders in it, so far as nothing is in them."""
    for folder in (*(directory.iterdir() if directory.is_dir() else ()), directory):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _effect(words: str, nothing: str) -> Effect:
    return Effect(bool(words), words or f"nothing: {nothing}")
