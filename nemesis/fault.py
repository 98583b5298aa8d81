"""Faults as values: what is done to whom, and how it is undone.

A fault is concrete (nodes and links by name) and knows nothing of any environment but its verbs. `start`
applies it, `stop` heals just what this fault did; both return the effect read back from the world.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from harness.client_names import is_client
from harness.environments.environment import Effect, Environment, Link
from harness.environments.impairment import BitRot, Corruption, LinkImpairment, NodeImpairment, ResetLink


class Fault(Protocol):
    @property
    def kind(self) -> str:
        """As in `Environment.faults`."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes it strikes."""

    async def start(self, environment: Environment) -> Effect: ...

    async def stop(self, environment: Environment) -> Effect: ...

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Partition:
    """No packets on these directions, within connections that exist as well."""

    links: tuple[Link, ...]
    shape: str = "partition"
    kind = "partition"

    @property
    def nodes(self) -> tuple[str, ...]:
        return _ends(self.links)

    async def start(self, environment: Environment) -> Effect:
        return await environment.cut(self.links)

    async def stop(self, environment: Environment) -> Effect:
        return await environment.heal(self.links)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "shape": self.shape, "links": [[link.source, link.target] for link in self.links]}


@dataclass(frozen=True, slots=True)
class ImpairedLinks:
    """Something is wrong with these directions, beside whatever else is; healed by taking just that away."""

    links: tuple[Link, ...]
    impairment: LinkImpairment

    @property
    def kind(self) -> str:
        return self.impairment.kind

    @property
    def nodes(self) -> tuple[str, ...]:
        return _ends(self.links)

    async def start(self, environment: Environment) -> Effect:
        return await environment.impair_links(self.links, self.impairment)

    async def stop(self, environment: Environment) -> Effect:
        if isinstance(self.impairment, ResetLink):
            return Effect(False, "nothing to heal: new connections come about")
        return await environment.relieve_links(self.links, self.impairment)

    def to_json(self) -> dict[str, Any]:
        links = [[link.source, link.target] for link in self.links]
        once = {"once": True} if isinstance(self.impairment, ResetLink) else {}
        return {"kind": self.kind, "links": links, **asdict(self.impairment), **once}


@dataclass(frozen=True, slots=True)
class ImpairedNodes:
    """Something is wrong with the disks, processes or clocks of these nodes; healed by taking just that away."""

    nodes: tuple[str, ...]
    impairment: NodeImpairment

    @property
    def kind(self) -> str:
        return self.impairment.kind

    async def start(self, environment: Environment) -> Effect:
        return await environment.impair(self.nodes, self.impairment)

    async def stop(self, environment: Environment) -> Effect:
        if isinstance(self.impairment, BitRot | Corruption):
            return Effect(False, "nothing to heal: what has rotted stays so")
        return await environment.relieve(self.nodes, self.impairment)

    def to_json(self) -> dict[str, Any]:
        once = {"once": True} if isinstance(self.impairment, BitRot | Corruption) else {}
        return {"kind": self.kind, "nodes": self.nodes, **asdict(self.impairment), **once}


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL; healed by starting the nodes again on their disks."""

    nodes: tuple[str, ...]
    kind = "kill"

    async def start(self, environment: Environment) -> Effect:
        return await environment.kill(self.nodes)

    async def stop(self, environment: Environment) -> Effect:
        return await environment.boot(self.nodes)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Restart:
    """SIGKILL and start again at once; nothing is left to heal."""

    nodes: tuple[str, ...]
    kind = "kill"

    async def start(self, environment: Environment) -> Effect:
        return _together([await environment.kill(self.nodes), await environment.boot(self.nodes)])

    async def stop(self, environment: Environment) -> Effect:
        return Effect(False, "nothing to heal: the nodes were started again at once")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "restart": True, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Ended cleanly, and started as another version; nothing is left to heal, for nobody goes back."""

    nodes: tuple[str, ...]
    kind = "upgrade"

    async def start(self, environment: Environment) -> Effect:
        return await environment.upgrade(self.nodes)

    async def stop(self, environment: Environment) -> Effect:
        return Effect(False, "nothing to heal: the nodes were started again at once")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "once": True, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Compound:
    """Several faults at one moment, healed in the opposite order."""

    faults: tuple[Fault, ...]

    @property
    def kind(self) -> str:
        """The kinds of its parts with `+` between."""
        return "+".join(sorted({fault.kind for fault in self.faults}))

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted({node for fault in self.faults for node in fault.nodes}))

    async def start(self, environment: Environment) -> Effect:
        return _together([await fault.start(environment) for fault in self.faults])

    async def stop(self, environment: Environment) -> Effect:
        return _together([await fault.stop(environment) for fault in reversed(self.faults)])

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "faults": [fault.to_json() for fault in self.faults]}


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """Power is cut: what was not fsynced is gone in whole or in part; healed by booting."""

    nodes: tuple[str, ...]
    kind = "power"

    async def start(self, environment: Environment) -> Effect:
        return await environment.power_off(self.nodes)

    async def stop(self, environment: Environment) -> Effect:
        return await environment.boot(self.nodes)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Pause:
    """SIGSTOP; the kernel's part of the node goes on taking bytes. Healed by SIGCONT."""

    nodes: tuple[str, ...]
    kind = "pause"

    async def start(self, environment: Environment) -> Effect:
        return await environment.pause(self.nodes)

    async def stop(self, environment: Environment) -> Effect:
        return await environment.resume(self.nodes)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Skew:
    """One node's wall clock goes wrong: an offset at once and a rate from then on."""

    node: str
    offset_s: float
    rate: float


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """Wall clocks of some nodes jump or drift; healed by giving them the true time again, or what they go back to."""

    skews: tuple[Skew, ...]
    back_to: tuple[Skew, ...] = ()
    kind = "clock"

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(skew.node for skew in self.skews)

    async def start(self, environment: Environment) -> Effect:
        return await _set(self.skews, environment)

    async def stop(self, environment: Environment) -> Effect:
        back_to = {skew.node: skew for skew in self.back_to}
        return await _set([back_to.get(node, Skew(node, 0.0, 1.0)) for node in self.nodes], environment)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "skews": [asdict(skew) for skew in self.skews]}


async def _set(skews: Iterable[Skew], environment: Environment) -> Effect:
    return _together([await environment.set_clock(one.node, offset_s=one.offset_s, rate=one.rate) for one in skews])


def _together(effects: list[Effect]) -> Effect:
    return Effect(any(effect.happened for effect in effects), "; ".join(effect.evidence for effect in effects))


def _ends(links: tuple[Link, ...]) -> tuple[str, ...]:
    """A link to a client is no harm to the node."""
    ends = [(link.source, link.target) for link in links]
    return tuple(sorted({host for pair in ends for host in (tuple(filter(is_client, pair)) or pair)}))
