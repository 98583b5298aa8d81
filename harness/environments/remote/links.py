"""What is wrong with the links between nodes that run somewhere else: who drops whose packets, who relays them.

Packets are struck where they arrive, in the target's own network namespace, before anything else is asked of them:
connections that exist are struck as well. Clients are no nodes, and outside of all of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict

from harness.environments.environment import Link
from harness.environments.impairment import LinkImpairment
from harness.environments.remote.node import RemoteNode

Struck = tuple[int, LinkImpairment]
"""The number of an impairment, and what it is."""
Counts = Mapping[str, int]
OnNodes = Callable[[Sequence[str], Callable[[RemoteNode], Counts]], Awaitable[dict[str, Counts]]]
"""Carries a verb out on several nodes at once; raises HarnessError."""


class RemoteLinks:
    """Blocks nobody: what nodes do is done through `on_nodes`."""

    def __init__(self, addresses: Mapping[str, str], on_nodes: OnNodes) -> None:
        """`addresses`: node -> where other nodes reach it."""
        self._addresses = addresses
        self._names = {address: name for name, address in addresses.items()}
        self._on = on_nodes
        self._cut: set[Link] = set()
        self._dropped: dict[Link, int] = {}
        self._impaired: dict[Link, list[Struck]] = {}
        self._numbers = itertools.count()

    async def cut(self, links: Sequence[Link]) -> list[Link]:
        """The links that are newly cut."""
        newly = [link for link in links if link not in self._cut]
        self._cut.update(newly)
        await self._filter({link.target for link in newly})
        return newly

    async def heal(self, links: Sequence[Link] | None) -> dict[Link, int]:
        """The links that were cut and are no more -> how many packets had been dropped."""
        newly = sorted(self._cut if links is None else self._cut.intersection(links))
        self._cut.difference_update(newly)
        await self._filter({link.target for link in newly})
        return {link: self._dropped.pop(link, 0) for link in newly}

    async def impair(self, links: Sequence[Link], impairment: LinkImpairment) -> None:
        for link in links:
            self._impaired.setdefault(link, []).append((next(self._numbers), impairment))
        targets = {link.target for link in links}
        # The relay first: it must know what to do with the packets that come to it.
        await self._relay(targets)
        await self._filter(targets)

    async def relieve(self, links: Sequence[Link], impairment: LinkImpairment) -> dict[Link, int]:
        """The links that had one -> how many packets it has struck."""
        relieved: dict[Link, int] = {}
        for link in links:
            found = next((number for number, one in self._impaired.get(link, ()) if one == impairment), None)
            if found is not None:
                left = [(number, one) for number, one in self._impaired[link] if number != found]
                self._impaired[link] = left
                relieved[link] = found
                if not left:
                    del self._impaired[link]
        targets = {link.target for link in relieved}
        await self._filter(targets)
        struck = {
            int(number): count for counts in (await self._relay(targets)).values() for number, count in counts.items()
        }
        return {link: struck.get(number, 0) for link, number in relieved.items()}

    async def reset(self, links: Sequence[Link]) -> dict[Link, int]:
        """Links -> how many connections were ended; none of those without any."""
        sources: dict[str, list[str]] = {}
        for link in links:
            sources.setdefault(link.target, []).append(self._addresses[link.source])
        ended = await self._on(sorted(sources), lambda node: node.reset(sources[node.name]))
        return {
            Link(self._names[address], target): count
            for target, counts in ended.items()
            for address, count in counts.items()
        }

    async def _filter(self, targets: set[str]) -> None:
        """Let each target drop and relay what the links now say, and count what it has dropped so far."""

        def filter_packets(node: RemoteNode) -> Counts:
            return node.filter_packets(
                dropped=self._sources(self._cut, node.name), relayed=self._sources(self._impaired, node.name)
            )

        for target, counted in (await self._on(sorted(targets), filter_packets)).items():
            for address, packets in counted.items():
                link = Link(self._names[address], target)
                self._dropped[link] = self._dropped.get(link, 0) + packets

    async def _relay(self, targets: set[str]) -> dict[str, Counts]:
        def relay(node: RemoteNode) -> Counts:
            return node.relay(
                {
                    self._addresses[link.source]: [
                        {"number": number, "kind": one.kind, **asdict(one)} for number, one in ones
                    ]
                    for link, ones in sorted(self._impaired.items())
                    if link.target == node.name
                }
            )

        return await self._on(sorted(targets), relay)

    def _sources(self, links: set[Link] | dict[Link, list[Struck]], target: str) -> list[str]:
        return [self._addresses[link.source] for link in sorted(links) if link.target == target]
