"""Nodes in containers: real processes, packets and disks, on one machine with a Docker engine.

The engine and its threads stay off the event loop, so that no verb holds up a client. Packets are dropped where
they arrive, in the target's own network namespace, before anything else is asked of them: connections that
exist fall silent as well. Clients come in through ports published on 127.0.0.1 and are outside of all partitions.

Not here: loss of power, for a container shares the page cache of its machine, and impairments; the simulator has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from harness.environments.docker import leftovers
from harness.environments.docker.container import Container, Place
from harness.environments.docker.engine import LABEL_LOGS, LABEL_START, SAME_CLOCK_NS, labels
from harness.environments.docker.network import make_network
from harness.environments.environment import Effect, Link
from harness.environments.impairment import LinkImpairment, NodeImpairment
from harness.environments.monotonic_timeline import MonotonicTimeline
from harness.environments.remote.launch import launch_of
from harness.environments.remote.node import RemoteNode
from harness.errors import HarnessError
from harness.lifetime import scratch
from harness.system import NodeSpec

T = TypeVar("T")

ClientHosts = Callable[[str, Path, Mapping[str, str]], Any]
"""(name, directory for its files, where nodes are reached) -> a `Host` that has `await close()`."""
THREADS = 16
CLOCK_NOTICED_S = 0.0005
READY_TIMEOUT_S = 60.0
PROBE_EVERY_S = 0.1


class DockerEnvironment:
    """`Environment` of the harness. `run` names everything it makes."""

    name = "docker"
    faults = frozenset({"partition", "kill", "pause", "clock"})
    moments = None

    def __init__(
        self,
        client: Any,
        *,
        image_of: Callable[[str], str],
        client_hosts: ClientHosts,
        run: str,
        say: Callable[[str], None],
    ) -> None:
        """`image_of`: node -> the image of its container."""
        self.timeline = MonotonicTimeline()
        self.run = run
        self._client = client
        self._image_of = image_of
        self._client_hosts = client_hosts
        self._say = say
        self._labels = labels(run, datetime.now(UTC).isoformat(timespec="seconds"))
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="docker")
        self._open = contextlib.ExitStack()
        self._scratch: Path | None = None
        self._containers: dict[str, Container] = {}
        self._nodes: dict[str, RemoteNode] = {}
        self._names: dict[str, str] = {}
        self._hosts: dict[str, Any] = {}
        self._logs: Path | None = None
        self._cut: set[Link] = set()
        self._dropped: dict[Link, int] = {}
        self._rates: dict[str, float] = {}
        self._clock_ahead_ns = 0

    # Life of the nodes ----------------------------------------------------------------------------------------

    async def start(self, nodes: Sequence[NodeSpec], logs: Path | None) -> None:
        if logs is None:
            raise HarnessError("containers leave logs, so they need a directory for them")
        if self._containers:
            raise HarnessError("an environment of containers is started once")
        names = [spec.name for spec in nodes]
        if len(set(names)) < len(names):
            raise HarnessError(f"two nodes have the same name among {', '.join(names)}")
        self._logs = logs
        network, ips = await self._in_thread(lambda: make_network(self._client, self.run, self._labels, names))
        self._names = {ip: name for name, ip in ips.items()}
        place = Place(run=self.run, labels=self._home(logs), network=network.name, ips=ips)
        self._containers = {
            spec.name: Container(
                client=self._client,
                place=place,
                name=spec.name,
                image=self._image_of(spec.name),
                ports=spec.ports,
                say=self._say,
            )
            for spec in nodes
        }
        clocks = await self._together([partial(self._prepare, spec) for spec in nodes])
        self._clock_ahead_ns = min(clocks, key=abs, default=0)
        if abs(self._clock_ahead_ns) < SAME_CLOCK_NS:
            self._clock_ahead_ns = 0
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

    def _prepare(self, spec: NodeSpec) -> int:
        """Start a node's container; returns how far its CLOCK_MONOTONIC is ahead of this machine's, in ns."""
        shell = self._containers[spec.name].start()
        addresses = {name: ip for ip, name in self._names.items()}
        self._nodes[spec.name] = node = RemoteNode(name=spec.name, shell=shell, launch=launch_of(spec, addresses))
        return node.prepare() - time.monotonic_ns()

    def _home(self, logs: Path) -> dict[str, str]:
        """Labels by which clean-up brings logs home, if this process cannot."""
        return {**self._labels, LABEL_LOGS: str(logs.absolute()), LABEL_START: str(self.timeline.start_ns)}

    async def stop(self) -> None:
        try:
            for host in self._hosts.values():
                await host.close()
        finally:
            self._hosts.clear()
            await self._end_nodes()

    async def _end_nodes(self) -> None:
        self._open.close()
        # A start that was cancelled may still be making containers in its threads.
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="docker")
        try:
            await self._on(list(self._nodes), self._end)
        finally:
            self._nodes.clear()
            self._containers.clear()
            await asyncio.to_thread(self.remove)
            self._threads.shutdown(wait=False)

    def remove(self) -> None:
        """Remove whatever there still is of this run, at once; blocks. Raises HarnessError."""
        self._threads.shutdown(cancel_futures=True)
        self._open.close()
        leftovers.remove_run(self._client, self.run)

    def client_host(self, name: str) -> Any:
        if name in self._containers:
            raise HarnessError(f"{name!r} is a node; a client needs a name of its own")
        if name not in self._hosts:
            if self._scratch is None:
                self._scratch = self._open.enter_context(scratch.directory())
            addresses = {known: here for one in self._containers.values() for known, here in one.addresses.items()}
            self._hosts[name] = self._client_hosts(name, self._scratch / name, addresses)
        return self._hosts[name]

    def panics(self) -> Mapping[str, str]:
        """Asks the engine, a few milliseconds a node: not for use while clients are served."""
        for node in self._nodes.values():
            node.look()
        return {name: "\n".join(node.deaths) for name, node in sorted(self._nodes.items()) if node.deaths}

    def _end(self, node: RemoteNode) -> None:
        try:
            node.terminate()
        finally:
            assert self._logs is not None
            zero_ns = self.timeline.start_ns + self._clock_ahead_ns
            node.bring_logs_home(self._logs / node.name, zero_ns=zero_ns)

    # Verbs ----------------------------------------------------------------------------------------------------

    async def cut(self, links: Sequence[Link]) -> Effect:
        self._known(name for link in links for name in (link.source, link.target))
        newly = [link for link in links if link not in self._cut]
        self._cut.update(newly)
        await self._enforce({link.target for link in newly})
        words = ", ".join(f"{link.source}→{link.target}" for link in newly)
        return _effect(f"packets are dropped: {words}" if newly else "", "no link that was open")

    async def heal(self, links: Sequence[Link] | None = None) -> Effect:
        newly = sorted(self._cut if links is None else self._cut.intersection(links))
        self._cut.difference_update(newly)
        await self._enforce({link.target for link in newly})
        words = ", ".join(
            f"{link.source}→{link.target} ({self._dropped.pop(link, 0)} packets had been dropped)" for link in newly
        )
        return _effect(f"packets pass again: {words}" if newly else "", "no link that was cut")

    async def kill(self, nodes: Sequence[str]) -> Effect:
        return await self._apply(nodes, RemoteNode.kill, "killed", "no process that was running")

    async def power_off(self, nodes: Sequence[str]) -> Effect:
        raise HarnessError("containers cannot lose power: they share the page cache of their machine")

    async def boot(self, nodes: Sequence[str]) -> Effect:
        return await self._apply(nodes, RemoteNode.boot, "booted", "no node that was down")

    async def pause(self, nodes: Sequence[str]) -> Effect:
        return await self._apply(nodes, RemoteNode.pause, "paused", "no process that was running")

    async def resume(self, nodes: Sequence[str]) -> Effect:
        return await self._apply(nodes, RemoteNode.resume, "resumed", "no process that was paused")

    async def set_clock(self, node: str, *, offset_s: float, rate: float) -> Effect:
        answer = (await self._on([node], lambda one: one.set_clock(offset_s, rate)))[node]
        before_s, after_s, was = answer["before_s"], answer["after_s"], self._rates.get(node, 1.0)
        if answer["drifts"] != (rate != 1.0):
            raise HarnessError(f"the clock of {node} does not drift as it should: {answer}")
        self._rates[node] = rate
        if answer["unreached"]:
            return _effect("", f"{node} reads the true time: {', '.join(answer['unreached'])}")
        return Effect(
            abs(before_s - after_s) > CLOCK_NOTICED_S or was != rate,
            f"{node}: {before_s:+.6f} s at rate {was} became {after_s:+.6f} s at rate {rate}",
        )

    async def impair_links(self, links: Sequence[Link], impairment: LinkImpairment) -> Effect:
        raise HarnessError(f"there is no {impairment.kind} of containers; the simulator has it")

    async def relieve_links(self, links: Sequence[Link], impairment: LinkImpairment) -> Effect:
        raise HarnessError(f"there is no {impairment.kind} of containers; the simulator has it")

    async def impair(self, nodes: Sequence[str], impairment: NodeImpairment) -> Effect:
        raise HarnessError(f"there is no {impairment.kind} of containers; the simulator has it")

    async def relieve(self, nodes: Sequence[str], impairment: NodeImpairment) -> Effect:
        raise HarnessError(f"there is no {impairment.kind} of containers; the simulator has it")

    # Threads --------------------------------------------------------------------------------------------------

    async def _enforce(self, targets: set[str]) -> None:
        """Let each target drop what the cuts now say, and count what it has dropped so far."""

        def drop(node: RemoteNode) -> Mapping[str, Any]:
            ips = {name: ip for ip, name in self._names.items()}
            return node.drop([ips[link.source] for link in sorted(self._cut) if link.target == node.name])

        for target, answer in (await self._on(sorted(targets), drop)).items():
            for ip, packets in answer["counted"].items():
                link = Link(self._names[ip], target)
                self._dropped[link] = self._dropped.get(link, 0) + packets

    async def _apply(self, nodes: Sequence[str], verb: Callable[[RemoteNode], str], done: str, nothing: str) -> Effect:
        words = ", ".join(word for word in (await self._on(nodes, verb)).values() if word)
        return _effect(f"{done}: {words}" if words else "", nothing)

    async def _on(self, names: Sequence[str], verb: Callable[[RemoteNode], T]) -> dict[str, T]:
        """Carry a verb out on several nodes at once; all are waited for, then the first failure is raised."""
        self._known(names)
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

    def _known(self, names: Any) -> None:
        for name in names:
            if name not in self._nodes:
                raise HarnessError(f"no node is called {name!r}; there are {', '.join(self._containers)}")


def _effect(words: str, nothing: str) -> Effect:
    return Effect(bool(words), words or f"nothing: {nothing}")
