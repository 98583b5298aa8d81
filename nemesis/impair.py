"""Shapes that impair links and nodes: which ones, and how badly, which is drawn when they strike unless their text says
it.

Verbs draw over orders of magnitude: a delay of 5 ms is a far rack, one of 3 s outlasts an election.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from harness.environments.impairment import (
    BitRot,
    CorruptingLink,
    Corruption,
    DiskErrors,
    DuplicatingLink,
    FailingFsync,
    FlappingLink,
    FullDisk,
    HeldLink,
    KilledProcesses,
    LinkImpairment,
    LossyLink,
    LostDisk,
    MisdirectedWrites,
    NarrowLink,
    NodeImpairment,
    OldDisk,
    PausedProcesses,
    ReorderingLink,
    ResetLink,
    RestartLoop,
    RollingRestart,
    ScarceMemory,
    ShortFiles,
    SlowDisk,
    SlowedProcesses,
    SlowLink,
    SlowNode,
    Strobe,
)
from nemesis.cluster import Cluster
from nemesis.fault import Fault, ImpairedLinks, ImpairedNodes
from nemesis.links import Links, between
from nemesis.parameters import AMOUNTS, Amount, Value
from nemesis.shape import Shape, Together
from nemesis.target import Target

Amounts = tuple[Value, ...] | None
"""The values of a verb's amounts, in their order; None: they are drawn when it strikes."""


@dataclass(frozen=True, slots=True)
class ImpairLinks:
    """A verb of `LINK_VERBS` and the links that it strikes."""

    verb: str
    links: Links
    amounts: Amounts = None

    @property
    def kind(self) -> str:
        return LINK_VERBS[self.verb].of.kind

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        links = self.links.pick(cluster, draw)
        return ImpairedLinks(links, LINK_VERBS[self.verb].impairment(self.amounts, draw)) if links else None

    def __str__(self) -> str:
        return f"{self.verb} {self.links}{_in_words(LINK_VERBS[self.verb].amounts, self.amounts)}"


@dataclass(frozen=True, slots=True)
class ImpairLinksOf:
    """A verb of `LINK_VERBS`, and the target whose links to everybody it strikes, in both directions."""

    verb: str
    target: Target
    amounts: Amounts = None

    @property
    def kind(self) -> str:
        return LINK_VERBS[self.verb].of.kind

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        links = between(self.target.pick(cluster, draw), cluster.nodes)
        return ImpairedLinks(links, LINK_VERBS[self.verb].impairment(self.amounts, draw)) if links else None

    def __str__(self) -> str:
        return f"{self.verb} links of {self.target}{_in_words(LINK_VERBS[self.verb].amounts, self.amounts)}"


@dataclass(frozen=True, slots=True)
class LinkVerb:
    """What a verb makes of links, and how badly it strikes."""

    of: type[LinkImpairment]
    drawn: Callable[[random.Random], LinkImpairment]

    @property
    def amounts(self) -> tuple[Amount, ...]:
        return _amounts_of(self.of)

    def impairment(self, amounts: Amounts, draw: random.Random) -> LinkImpairment:
        return self.drawn(draw) if amounts is None else self.of(**_by_name(self.amounts, amounts))


def _slow(draw: random.Random) -> SlowLink:
    delay_ms = log_uniform(draw, 5, 3000)
    return SlowLink(delay_ms=delay_ms, jitter_ms=round(delay_ms * draw.random(), 1))


def _reordering(draw: random.Random) -> ReorderingLink:
    return ReorderingLink(share=log_uniform(draw, 0.02, 0.5), delay_ms=log_uniform(draw, 1, 300))


def _flapping(draw: random.Random) -> FlappingLink:
    return FlappingLink(down_ms=log_uniform(draw, 20, 3000), up_ms=log_uniform(draw, 20, 3000))


LINK_VERBS: Mapping[str, LinkVerb] = {
    "slow": LinkVerb(SlowLink, _slow),
    "lossy": LinkVerb(LossyLink, lambda draw: LossyLink(share=log_uniform(draw, 0.02, 0.9))),
    "narrow": LinkVerb(NarrowLink, lambda draw: NarrowLink(bytes_per_s=int(log_uniform(draw, 2e3, 2e6)))),
    "flapping": LinkVerb(FlappingLink, _flapping),
    "hold": LinkVerb(HeldLink, lambda draw: HeldLink()),
    "duplicating": LinkVerb(DuplicatingLink, lambda draw: DuplicatingLink(share=log_uniform(draw, 0.02, 0.9))),
    "corrupting": LinkVerb(CorruptingLink, lambda draw: CorruptingLink(share=log_uniform(draw, 0.02, 0.5))),
    "reordering": LinkVerb(ReorderingLink, _reordering),
    "reset": LinkVerb(ResetLink, lambda draw: ResetLink()),
}


@dataclass(frozen=True, slots=True)
class ImpairNodes:
    """A verb of `NODE_VERBS` and the nodes that it strikes: those that nothing holds down, if it ends processes."""

    verb: str
    target: Target
    amounts: Amounts = None

    @property
    def kind(self) -> str:
        return NODE_VERBS[self.verb].of.kind

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        verb = NODE_VERBS[self.verb]
        held = cluster.unavailable if verb.of.stops_process else ()
        nodes = tuple(node for node in self.target.pick(cluster, draw) if node not in held)
        return ImpairedNodes(nodes, verb.impairment(self.amounts, draw)) if nodes else None

    def __str__(self) -> str:
        return f"{self.verb} {self.target}{_in_words(NODE_VERBS[self.verb].amounts, self.amounts)}"


BYTES: Mapping[str, int] = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}


@dataclass(frozen=True, slots=True)
class Corrupt:
    """One bit in so many bytes of the files that a pattern names, on the disks of the target's nodes."""

    target: Target
    pattern: str
    bytes_per_bit: int
    kind = Corruption.kind

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        nodes = self.target.pick(cluster, draw)
        corruption = Corruption(pattern=self.pattern, bytes_per_bit=self.bytes_per_bit, draw=_number(draw))
        return ImpairedNodes(nodes, corruption) if nodes else None

    def __str__(self) -> str:
        unit = next(unit for unit in reversed(list(BYTES)) if self.bytes_per_bit % BYTES[unit] == 0)
        return f"corrupt {self.target} '{self.pattern}' one bit in {self.bytes_per_bit // BYTES[unit]} {unit}"


OfProcesses = KilledProcesses | PausedProcesses | SlowedProcesses


@dataclass(frozen=True, slots=True)
class ProcessVerb:
    """What a verb makes of processes, whose name comes last."""

    of: type[OfProcesses]
    drawn: Callable[[random.Random], OfProcesses]

    @property
    def amounts(self) -> tuple[Amount, ...]:
        return _amounts_of(self.of)

    def impairment(self, name: str, amounts: Amounts, draw: random.Random) -> OfProcesses:
        given = {} if amounts is None else _by_name(self.amounts, amounts)
        return replace(self.drawn(draw), name=name, **given)


PROCESS_VERBS: Mapping[str, ProcessVerb] = {
    "kill": ProcessVerb(KilledProcesses, lambda draw: KilledProcesses(name="")),
    "pause": ProcessVerb(PausedProcesses, lambda draw: PausedProcesses(name="")),
    "slow down": ProcessVerb(SlowedProcesses, lambda draw: SlowedProcesses(name="", stretch=log_uniform(draw, 2, 50))),
}


@dataclass(frozen=True, slots=True)
class StrikeProcesses:
    """A verb of `PROCESS_VERBS`, the name of processes, and the target whose nodes they are of, as far as nothing holds
    these down."""

    verb: str
    name: str
    target: Target
    amounts: Amounts = None

    @property
    def kind(self) -> str:
        return PROCESS_VERBS[self.verb].of.kind

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        nodes = tuple(node for node in self.target.pick(cluster, draw) if node not in cluster.unavailable)
        impairment = PROCESS_VERBS[self.verb].impairment(self.name, self.amounts, draw)
        return ImpairedNodes(nodes, impairment) if nodes else None

    def __str__(self) -> str:
        amounts = _in_words(PROCESS_VERBS[self.verb].amounts, self.amounts)
        return f"{self.verb} process '{self.name}' of {self.target}{amounts}"


@dataclass(frozen=True, slots=True)
class NodeVerb:
    """What a verb makes of nodes, and how badly it strikes."""

    of: type[NodeImpairment]
    drawn: Callable[[random.Random], NodeImpairment]

    @property
    def amounts(self) -> tuple[Amount, ...]:
        return _amounts_of(self.of)

    def impairment(self, amounts: Amounts, draw: random.Random) -> NodeImpairment:
        if amounts is None:
            return self.drawn(draw)
        is_drawn = any(field.name == "draw" for field in fields(self.of))
        drawn: dict[str, Any] = {"draw": _number(draw)} if is_drawn else {}
        return self.of(**_by_name(self.amounts, amounts), **drawn)


def _number(draw: random.Random) -> int:
    """What the environment draws from in turn."""
    return draw.getrandbits(32)


def _disk_errors(draw: random.Random) -> DiskErrors:
    reads, writes = draw.choice(((True, False), (False, True), (True, True)))
    share = log_uniform(draw, 0.001, 1)
    return DiskErrors(reads=share if reads else 0.0, writes=share if writes else 0.0)


def _misdirected(draw: random.Random) -> MisdirectedWrites:
    return MisdirectedWrites(one_in=draw.choice((2, 5, 20)), draw=_number(draw))


def _strobe(draw: random.Random) -> Strobe:
    offset_ms = draw.choice((-1, 1)) * log_uniform(draw, 1, 200_000)
    return Strobe(offset_ms=offset_ms, period_ms=log_uniform(draw, 5, 2000))


def _restart_loop(draw: random.Random) -> RestartLoop:
    return RestartLoop(down_ms=log_uniform(draw, 1, 1000), up_ms=log_uniform(draw, 50, 5000))


NODE_VERBS: Mapping[str, NodeVerb] = {
    "slow disks of": NodeVerb(SlowDisk, lambda draw: SlowDisk(factor=log_uniform(draw, 3, 1000))),
    "fail fsyncs of": NodeVerb(FailingFsync, lambda draw: FailingFsync(most=draw.choice((1, None)))),
    "fail disks of": NodeVerb(DiskErrors, _disk_errors),
    "fill disks of": NodeVerb(FullDisk, lambda draw: FullDisk(room_bytes=int(log_uniform(draw, 1, 1e5)))),
    "misdirect writes of": NodeVerb(MisdirectedWrites, _misdirected),
    "rot disks of": NodeVerb(BitRot, lambda draw: BitRot(bits=draw.choice((1, 1, 3, 30)), draw=_number(draw))),
    "cut files of": NodeVerb(ShortFiles, lambda draw: ShortFiles(files=draw.choice((1, 1, 3)), draw=_number(draw))),
    "wipe disks of": NodeVerb(LostDisk, lambda draw: LostDisk()),
    "roll back disks of": NodeVerb(OldDisk, lambda draw: OldDisk(after_s=log_uniform(draw, 0.1, 10))),
    "slow down": NodeVerb(
        SlowNode,
        lambda draw: SlowNode(callback_us=log_uniform(draw, 10, 3000), stretch=log_uniform(draw, 1, 8)),
    ),
    "exhaust memory of": NodeVerb(ScarceMemory, lambda draw: ScarceMemory(left_mb=log_uniform(draw, 0.5, 16))),
    "restart loop of": NodeVerb(RestartLoop, _restart_loop),
    "rolling restart of": NodeVerb(
        RollingRestart,
        lambda draw: RollingRestart(down_ms=log_uniform(draw, 1, 3000), gap_ms=log_uniform(draw, 1, 5000)),
    ),
    "strobe clocks of": NodeVerb(Strobe, _strobe),
}


Impairing = ImpairLinks | ImpairLinksOf | ImpairNodes | StrikeProcesses


def _verb_of(shape: Impairing) -> LinkVerb | NodeVerb | ProcessVerb:
    match shape:
        case ImpairNodes():
            return NODE_VERBS[shape.verb]
        case StrikeProcesses():
            return PROCESS_VERBS[shape.verb]
    return LINK_VERBS[shape.verb]


def amounts_of(shape: Impairing) -> tuple[Amount, ...]:
    """Those that its text names, or could."""
    return _verb_of(shape).amounts


def with_drawn_amounts(shape: Shape, draw: random.Random) -> Shape:
    """The same where it impairs nothing, or says how badly."""
    if isinstance(shape, Together):
        return Together(tuple(with_drawn_amounts(part, draw) for part in shape.shapes))
    if not isinstance(shape, Impairing) or shape.amounts is not None or not amounts_of(shape):
        return shape
    verb = _verb_of(shape)
    impairment = verb.drawn(draw)
    return replace(shape, amounts=tuple(getattr(impairment, amount.name) for amount in verb.amounts))


def without_amounts(shape: Shape) -> Shape:
    if isinstance(shape, Together):
        return Together(tuple(without_amounts(part) for part in shape.shapes))
    return replace(shape, amounts=None) if isinstance(shape, Impairing) else shape


def _amounts_of(impairment: type[LinkImpairment] | type[NodeImpairment]) -> tuple[Amount, ...]:
    """Its fields, but for what the environment draws from, and the name of processes."""
    return tuple(AMOUNTS[field.name] for field in fields(impairment) if field.name not in ("draw", "name"))


def _by_name(amounts: tuple[Amount, ...], values: tuple[Value, ...]) -> dict[str, Any]:
    return {amount.name: value for amount, value in zip(amounts, values, strict=True)}


def _in_words(amounts: tuple[Amount, ...], values: Amounts) -> str:
    return "" if values is None else "".join(f" {a.text(value)}" for a, value in zip(amounts, values, strict=True))


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    """To three digits, so that it is read with ease."""
    return float(f"{math.exp(draw.uniform(math.log(low), math.log(high))):.3g}")
