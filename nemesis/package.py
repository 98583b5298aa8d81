"""Packages: a kind of storm by name, with shapes aimed at whatever groups and roles a system declares.

Each function here makes one package from a declaration; `PACKAGES` names them, and entry points in
`stormproof.nemeses` add those of others. Roles come first, in their order of importance: the most important one is
struck most often. Then come groups: nodes and majorities of those that hold data, minorities of those that decide by
majority. Weights are relative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from harness.administration import ADMINISTER
from harness.seed import Seed
from harness.system import Declaration
from nemesis import shape
from nemesis.administration import Administer
from nemesis.impair import LINK_VERBS, NODE_VERBS, ImpairLinks, ImpairLinksOf, ImpairNodes
from nemesis.links import Between, OneDirection
from nemesis.membership import shrink, wipe
from nemesis.schedule import Entry, NemesisSettings, at_random
from nemesis.shape import (
    Apart,
    Bridge,
    ClockShape,
    CutLink,
    CutOneDirection,
    Isolate,
    IsolateWithCompany,
    MajoritiesRing,
    OneWay,
    Shape,
)
from nemesis.target import ALL, Group, MachineOf, Majority, Minority, One, Role, Target
from nemesis.vocabulary import CLIENTS

Weighted = tuple[float, Shape]


@dataclass(frozen=True, kw_only=True)
class Package:
    """A nemesis that `--nemesis NAME` chooses. `fault` is the kind that the environment must be able to apply,
    several with `+` between."""

    name: str
    fault: str
    about: str
    shapes: tuple[Weighted, ...]
    settings_type: type = NemesisSettings
    waits_for_points = False

    def schedule(self, seed: Seed, settings: NemesisSettings, time_limit_s: float) -> tuple[Entry, ...]:
        return at_random(self.name, self.shapes, seed, settings, time_limit_s)


def partition(system: Declaration) -> Package:
    data, groups, first = _data(system), system.groups, tuple(system.roles.items())[:1]
    return Package(
        name="partition",
        fault="partition",
        about="cuts links: single nodes, halves, one way, groups, bridges, rings",
        shapes=(
            *_isolated_roles(system),
            *((1.5, Isolate(One(group))) for group in data),
            *((1.5, Isolate(machine)) for machine in _machines(system)),
            *((1.0, Isolate(Minority(group))) for group in system.voters),
            *((1.0, OneWay(Role(role))) for role, _ in first),
            (1.0, OneWay(One())),
            *((1.0, Apart(Group(a), Group(b))) for place, a in enumerate(groups) for b in groups[place + 1 :]),
            *((1.0, Apart(Role(role), Group(group))) for role, group in first),
            *((1.5, Apart(role, others)) for role, others in _cut_off_from_others(system)),
            (0.7, shape.RandomHalves()),
            *((0.7, Bridge(group)) for group in system.voters),
            *((0.5, MajoritiesRing(group)) for group in data),
        ),
    )


def kill(system: Declaration) -> Package:
    return Package(
        name="kill",
        fault="kill",
        about="kills processes with SIGKILL and starts them again",
        shapes=(
            *_roles(system, shape.kill, 3.0, 1.5),
            *((2.0, shape.kill(One(group))) for group in _data(system)),
            *((1.0, shape.kill(Majority(group))) for group in _data(system)),
            *((1.0, shape.kill(Minority(group))) for group in system.voters),
            *((0.5, shape.kill(Majority(group))) for group in system.voters),
            *((0.7, shape.kill(Group(group))) for group in _data(system)),
            (0.3, shape.kill(ALL)),
        ),
    )


def pause(system: Declaration) -> Package:
    return Package(
        name="pause",
        fault="pause",
        about="stops processes with SIGSTOP and lets them go on",
        shapes=(
            *_roles(system, shape.pause, 3.0, 1.5),
            *((2.0, shape.pause(One(group))) for group in _data(system)),
            *((1.0, shape.pause(Majority(group))) for group in _data(system)),
            *((1.0, shape.pause(Minority(group))) for group in system.voters),
            *((1.0, shape.pause(machine)) for machine in _machines(system)),
        ),
    )


def clock(system: Declaration) -> Package:
    return Package(
        name="clock",
        fault="clock",
        about="makes wall clocks jump and drift",
        shapes=(
            *_roles(system, ClockShape, 2.0, 1.0),
            (2.0, ClockShape(One())),
            (1.0, ClockShape(Minority("all"))),
            (1.0, ClockShape(ALL)),
        ),
    )


def power(system: Declaration) -> Package:
    return Package(
        name="power",
        fault="power",
        about="cuts the power: bytes that were not fsynced are gone in whole or in part",
        shapes=(
            *_roles(system, shape.power_off, 3.0, 1.5),
            *((2.0, shape.power_off(One(group))) for group in _data(system)),
            *((2.0, shape.power_off(machine)) for machine in _machines(system)),
            *((1.0, shape.power_off(Minority(group))) for group in system.voters),
            *((1.0, shape.power_off(Group(group))) for group in system.voters),
            *((0.5, shape.power_off(Group(group))) for group in _data(system)),
        ),
    )


def links(system: Declaration) -> Package:
    places = tuple(_single_links(system))
    both = tuple((weight, CutLink(where.left, where.right)) for weight, where in places if isinstance(where, Between))
    one = tuple(
        (weight, CutOneDirection(where.source, where.target))
        for weight, where in places
        if isinstance(where, OneDirection)
    )
    return Package(
        name="links",
        fault="partition",
        about="cuts single links, both ways or one, while all others live",
        shapes=(*both, *one),
    )


def slow_links(system: Declaration) -> Package:
    return _impaired_links(system, "slow", "makes links slow, by milliseconds to seconds")


def lossy_links(system: Declaration) -> Package:
    return _impaired_links(system, "lossy", "loses packets, up to nearly all: within a connection that is delay")


def narrow_links(system: Declaration) -> Package:
    return _impaired_links(system, "narrow", "lets few bytes a second through links")


def flapping_links(system: Declaration) -> Package:
    return _impaired_links(system, "flapping", "cuts links and heals them by turns, for milliseconds to seconds")


def held_links(system: Declaration) -> Package:
    return _impaired_links(
        system, "hold", "keeps packets in the network and lets them go at the end, after their sender's death too"
    )


def duplicating_links(system: Declaration) -> Package:
    return _impaired_links(system, "duplicating", "delivers packets twice")


def corrupting_links(system: Declaration) -> Package:
    return _impaired_links(system, "corrupting", "flips a bit in packets; what a checksum shows is lost")


def reordering_links(system: Declaration) -> Package:
    return _impaired_links(system, "reordering", "lets packets overtake each other")


def reset(system: Declaration) -> Package:
    return _impaired_links(system, "reset", "ends the connections of links by RST; new ones come about at once")


def disk(system: Declaration) -> Package:
    return _impaired_nodes(
        system,
        "disk",
        "lets disks be slow, fail with EIO, fail to fsync, and be full",
        ("slow disks of", "fail fsyncs of", "fail disks of", "fill disks of"),
    )


def disk_damage(system: Declaration) -> Package:
    return _impaired_nodes(
        system,
        "disk-damage",
        "harms what lies on disks: bits rot, files lose their ends, disks are lost or replaced by an older copy",
        ("rot disks of", "cut files of", "wipe disks of", "roll back disks of"),
    )


def misdirected_writes(system: Declaration) -> Package:
    """No shapes where no group of the system would notice."""
    package = _impaired_nodes(
        system.of_groups(system.verifies_reads),
        "misdirected-writes",
        "lets disks put writes where the write before them went: one record takes the place of another",
        ("misdirect writes of",),
    )
    return package if system.verifies_reads else replace(package, shapes=())


def slow_nodes(system: Declaration) -> Package:
    return _impaired_nodes(
        system, "slow-nodes", "slows nodes down: callbacks take long, and timers are late", ("slow down",)
    )


def memory(system: Declaration) -> Package:
    return _impaired_nodes(
        system, "memory", "leaves programs so little memory that the kernel kills them", ("exhaust memory of",)
    )


def restarts(system: Declaration) -> Package:
    groups = system.groups or ("all",)
    loops = _impaired_nodes(
        system, "restarts", "kills nodes in a loop, and those of a group one after the other", ("restart loop of",)
    )
    rolling = tuple((1.5, ImpairNodes("rolling restart of", Group(group))) for group in groups)
    return replace(loops, fault="restart-loop+rolling-restart", shapes=(*loops.shapes, *rolling))


def upgrades(system: Declaration) -> Package:
    groups = system.groups or ("all",)
    return Package(
        name="upgrades",
        fault="upgrade",
        about="upgrades nodes in place: ends them cleanly and starts them as another version",
        shapes=(
            *((3.0, shape.upgrade(One(group))) for group in groups),
            *((1.0, shape.upgrade(Group(group))) for group in groups),
        ),
    )


def membership(system: Declaration) -> Package:
    """No shapes where the system lets no nodes go."""
    roles = tuple(role for role, group in system.roles.items() if group in system.elastic)
    several = system.elastic if system.elastic_at_once > 1 else ()
    return Package(
        name="membership",
        fault="shrink+wipe",
        about="replaces nodes: one leaves or loses its disk, or several leave, and are let in again empty",
        shapes=(
            *((2.0, shrink(Role(role))) for role in roles),
            *((2.0, shrink(One(group))) for group in system.elastic),
            *((2.0 * (1 + len(roles)), shrink(Group(group))) for group in several),
            *((1.0, wipe(Role(role))) for role in roles),
            *((1.0, wipe(One(group))) for group in system.elastic),
        ),
    )


def administration(system: Declaration) -> Package:
    """No shapes where the system declares no acts."""
    return Package(
        name="administration",
        fault=ADMINISTER,
        about="does what administrators do to a system while it serves, as the system declares it",
        shapes=tuple((1.0, Administer(act)) for act in system.acts),
    )


def clients(system: Declaration) -> Package:
    one, some, first = One(CLIENTS), Minority(CLIENTS), tuple(system.roles)[:1]
    return Package(
        name="clients",
        fault="partition+pause",
        about="cuts clients off, from all nodes or one role, one way as well, and pauses them",
        shapes=(
            (2.0, Isolate(one)),
            (1.0, Isolate(some)),
            *((1.5, CutLink(one, Role(role))) for role in first),
            *((1.0, CutLink(some, Role(role))) for role in first),
            *((1.0, CutOneDirection(Role(role), one)) for role in first),
            (2.0, shape.pause(one)),
            (1.0, shape.pause(some)),
        ),
    )


def strobe(system: Declaration) -> Package:
    return _impaired_nodes(
        system,
        "strobe",
        "lets wall clocks flip between two times again and again",
        ("strobe clocks of",),
    )


def _impaired_nodes(system: Declaration, name: str, about: str, verbs: tuple[str, ...]) -> Package:
    targets: tuple[tuple[float, Target], ...] = (
        *((2.0 if place == 0 else 1.0, Role(role)) for place, role in enumerate(system.roles)),
        *((2.0, One(group)) for group in _data(system)),
        *((1.0, Minority(group)) for group in system.voters),
        *((1.0, machine) for machine in _machines(system)),
    )
    return Package(
        name=name,
        fault="+".join(sorted(NODE_VERBS[verb].of.kind for verb in verbs)),
        about=about,
        shapes=tuple((weight, ImpairNodes(verb, target)) for verb in verbs for weight, target in targets),
    )


def _impaired_links(system: Declaration, verb: str, about: str) -> Package:
    kind = LINK_VERBS[verb].of.kind
    around: tuple[tuple[float, Target], ...] = (
        *((3.0 if place == 0 else 1.5, Role(role)) for place, role in enumerate(system.roles)),
        *((1.5, One(group)) for group in _data(system)),
        *((1.0, Minority(group)) for group in system.voters),
        (0.5, ALL),
    )
    shapes: tuple[Weighted, ...] = (
        *((weight, ImpairLinksOf(verb, target)) for weight, target in around),
        *((weight, ImpairLinks(verb, where)) for weight, where in _single_links(system)),
    )
    return Package(name=kind, fault=kind, about=about, shapes=shapes)


def _single_links(system: Declaration) -> Iterator[tuple[float, Between | OneDirection]]:
    """Between roles, from each role to one of each group, and between any two nodes; then the same one way."""
    roles = tuple(system.roles)
    ends: list[tuple[float, Target, Target]] = [
        *((1.5, Role(a), Role(b)) for place, a in enumerate(roles) for b in roles[place + 1 :]),
        *((1.0, Role(role), One(group)) for role in roles for group in system.groups),
        (1.0, One(), One()),
    ]
    yield from ((weight, Between(a, b)) for weight, a, b in ends)
    yield from ((weight / 2, OneDirection(a, b)) for weight, a, b in ends)
    yield from ((weight / 2, OneDirection(b, a)) for weight, a, b in ends if str(a) != str(b))


def _data(system: Declaration) -> tuple[str, ...]:
    """The groups that hold data; all nodes where the system says of none that it does."""
    return system.data or ("all",)


def _machines(system: Declaration) -> Iterator[Target]:
    """Those on which a role is played or data is held; none where each node has one of its own."""
    if system.shares_machines:
        yield from (MachineOf(Role(role)) for role in system.roles)
        yield from (MachineOf(One(group)) for group in _data(system))


def _roles(
    system: Declaration, shape_of: Callable[[Target], Shape], most_important: float, others: float
) -> Iterator[Weighted]:
    for place, role in enumerate(system.roles):
        yield (others if place else most_important), shape_of(Role(role))


def _cut_off_from_others(system: Declaration) -> Iterator[tuple[Target, Target]]:
    """Where the most important role is played by nodes that hold no data: from each group that it works through, and
    from some or most of those that do hold it."""
    for role, own in tuple(system.roles.items())[:1]:
        if system.data and own not in system.data:
            yield from ((Role(role), Group(group)) for group in system.groups if group not in (*system.data, own))
            yield from ((Role(role), some) for group in system.data for some in (Majority(group), Minority(group)))


def _isolated_roles(system: Declaration) -> Iterator[Weighted]:
    """Alone, and with one node of another group; the most important one with one of its own group as well."""
    for place, (role, own) in enumerate(system.roles.items()):
        others = tuple(group for group in system.groups if group != own)
        yield (1.5 if place else 3.0), Isolate(Role(role))
        for group in others if place else (*others, own):
            yield 1.0, IsolateWithCompany(Role(role), group)


PACKAGES: Mapping[str, Callable[[Declaration], Package]] = {
    "partition": partition,
    "kill": kill,
    "pause": pause,
    "clock": clock,
    "power": power,
    "links": links,
    "slow-links": slow_links,
    "lossy-links": lossy_links,
    "narrow-links": narrow_links,
    "flapping-links": flapping_links,
    "held-links": held_links,
    "disk": disk,
    "disk-damage": disk_damage,
    "misdirected-writes": misdirected_writes,
    "slow-nodes": slow_nodes,
    "memory": memory,
    "restarts": restarts,
    "strobe": strobe,
    "upgrades": upgrades,
    "membership": membership,
    "administration": administration,
    "clients": clients,
    "duplicating-links": duplicating_links,
    "corrupting-links": corrupting_links,
    "reordering-links": reordering_links,
    "reset": reset,
}
"""The packages that come with Stormproof."""
