"""Storms drawn from a seed: faults that overlap on purpose, strike the same node twice, and last anything from
milliseconds to the end of the storm.

A storm is made of motifs, each a few faults that belong together. Every fault has a random stream of its own, so that a
storm with some of them taken away, or their times changed, is the same storm otherwise.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.errors import UsageError
from harness.record.scenario import Scenario
from harness.seed import Seed
from harness.system import Declaration
from nemesis.package import Package
from nemesis.schedule import Entry
from nemesis.schedule_file import lines_without_comments
from nemesis.shape import Shape
from nemesis.target import Target
from nemesis.trigger import Trigger
from stormproof.search.points import NOTHING_KNOWN, Points
from stormproof.search.space import THE_NODE, Faults, Space, Tempo, aimed_at, drawn_tempo, faults_of, is_aimable
from stormproof.session import registry

SHORTEST_FAULT_S, LONGEST_FAULT_S = 0.005, 30.0
TOWARDS_LONG = 0.6
"""1 would make all orders of magnitude equally likely."""
SHORTEST_GAP_S, LONGEST_GAP_S = 0.001, 3.0
SECOND_NS = 1_000_000_000
HELD_SHARE = 0.15
"""How often a fault lasts until the end of the storm."""
BLINK_S = (0.005, 0.5)
"""A blink lasts between these two, less than most heartbeats are apart."""
ABSENCE = ("pause", "partition", "held-links")
"""Packages that keep a node from acting, or what it does from arriving, and let it live."""
ABSENT_S = (0.3, 10.0)
"""Such an absence lasts between these two: longer than leases and sessions last that are short."""
SHORTEST_KEPT_S, LONGEST_KEPT_S = 0.05, 10.0
KEEPING, ENDING = ("held-links", "partition"), ("kill", "power", "restarts")
HARMING = "disk", "disk-damage", "misdirected-writes"
"""Packages: of those of each, one keeps what was sent from arriving, ends nodes, or lets disks go wrong."""
TRIGGER_SHARE = 0.45
"""How often a motif strikes when a node reaches a point."""
KNOWN_TRIGGER_SHARE = 0.8
"""The same where it is known which points come."""
AT_IT_SHARE = 0.5
"""How often it strikes that node."""
MOST_MOTIFS = 14
BESIDE = ("administration", "clients", "membership")
"""Packages of what is done to a cluster by those around it: they strike beside all others, in some storms."""
BESIDE_SHARE = 0.2
MOST_BESIDE = 3
"""Faults of a storm."""
UPGRADES = "upgrades"


def drawn_storm(space: Space, root: int, number: int) -> Scenario:
    """Storm `number` of a search with this root seed: everything about it, drawn."""
    seed = Seed(root).child("storm", str(number))
    draw = seed.stream()
    tempo = drawn_tempo(space.environment, draw, has_own_pace=space.has_own_pace)
    scenario = space.varied(space.scenario(seed.integer() >> 1, tempo, draw), seed.child("varied").stream())
    entries = drawn_entries(scenario, space, tempo, draw)
    entries = (*entries, *entries_beside(scenario, space, unused_number(entries), seed.child("beside").stream()))
    upgrades = upgrades_beside(scenario, space, unused_number(entries), seed.child("upgrades").stream())
    return with_entries(scenario, (*entries, *upgrades))


def with_entries(scenario: Scenario, entries: Sequence[Entry]) -> Scenario:
    return replace(scenario, schedule=lines_without_comments(entries))


def faults_for(scenario: Scenario, space: Space, draw: random.Random | None = None) -> Faults:
    """The shapes that can strike this storm; with `draw`, those of some kinds only."""
    system, settings = registry.configured_system(scenario.system, scenario.settings)
    declaration = _declaration(scenario)
    vocabulary = registry.vocabulary(system, settings, scenario.mutant).of_groups(declaration.groups, declaration.roles)
    environment = registry.environment(space.environment)
    applicable = environment.faults - (set() if _can_upgrade(scenario) else {"upgrade"})
    found = faults_of(declaration, vocabulary, applicable, space.nemesis, draw)
    return found if environment.has_moments else replace(found, points=())


def require_faults(space: Space) -> None:
    """Raises UsageError where none of the packages that are named has a fault for storms of a search, in the deployment
    that is given: others could be drawn that have one, but nobody knows which."""
    workload = space.workload or registry.usual_workload(space.system)
    scenario = Scenario(system=space.system, workload=workload, settings=space.settings, mutant=space.mutant)
    if space.nemesis and not faults_for(scenario, space).packages:
        raise UsageError(
            f"no fault of {', '.join(space.nemesis)} can strike in a search of {space.system}: environment "
            f"{space.environment!r} has none, or it asks the system, which takes its time, or it needs another "
            "setting; name other packages, or try one storm: "
            f"stormproof run {space.system} --nemesis {','.join(space.nemesis)}"
        )


def drawn_entries(scenario: Scenario, space: Space, tempo: Tempo, draw: random.Random) -> tuple[Entry, ...]:
    storm_s = scenario.time_limit_s - scenario.liveness_s
    faults = faults_for(scenario, space, draw)
    count = min(MOST_MOTIFS, 1 + int(draw.expovariate(1 / (tempo.motifs_a_second * storm_s))))
    entries: list[Entry] = []
    for _ in range(count):
        motif = draw.choices(MOTIFS, weights=WEIGHTS)[0]
        entries += triggered(motif(faults, storm_s, len(entries), draw), faults, draw)
    return with_one_that_strikes(entries, faults, storm_s, draw)


def entries_beside(scenario: Scenario, space: Space, first: int, draw: random.Random) -> tuple[Entry, ...]:
    """In most storms there are none."""
    return some_beside(scenario, space, first, draw) if draw.random() < BESIDE_SHARE else ()


def some_beside(scenario: Scenario, space: Space, first: int, draw: random.Random) -> tuple[Entry, ...]:
    """Clients are struck, administrators act, and nodes leave and come back, as far as system and environment know
    how."""
    packages = [
        package
        for package in (registry.find("nemeses", name)(_declaration(scenario)) for name in space.nemesis or BESIDE)
        if package.name in BESIDE and package.shapes and registry.can_apply(space.environment, package)
    ]
    return _some_of(packages, scenario, first, draw)


def upgrades_beside(scenario: Scenario, space: Space, first: int, draw: random.Random) -> tuple[Entry, ...]:
    """Nodes become what they are to become, where the scenario has such."""
    package = registry.find("nemeses", UPGRADES)(_declaration(scenario))
    if not _can_upgrade(scenario) or not registry.can_apply(space.environment, package):
        return ()
    if space.nemesis and UPGRADES not in space.nemesis:
        return ()
    return _some_of([package], scenario, first, draw)


def _some_of(packages: Sequence[Package], scenario: Scenario, first: int, draw: random.Random) -> tuple[Entry, ...]:
    if not packages:
        return ()
    storm_s, entries = scenario.time_limit_s - scenario.liveness_s, []
    for number in range(first, first + draw.randint(1, MOST_BESIDE)):
        package = draw.choice(packages)
        weights, shapes = zip(*package.shapes, strict=True)
        (shape,) = draw.choices(shapes, weights=weights)
        at_s = draw.random() * storm_s
        entries.append(entry_of(at_s, fault_length_s(draw, storm_s - at_s), storm_s, number, package.name, shape))
    return tuple(entries)


def _can_upgrade(scenario: Scenario) -> bool:
    system, settings = registry.configured_system(scenario.system, scenario.settings)
    return any(node.upgraded is not None for node in system.nodes(settings, scenario.mutant))


def _declaration(scenario: Scenario) -> Declaration:
    """Without what has no part in the scenario's workload."""
    system, settings = registry.configured_system(scenario.system, scenario.settings)
    declared: Declaration = system.cluster(settings)
    return declared.serving_alone(scenario.workload)


def with_one_that_strikes(
    entries: Sequence[Entry], faults: Faults, storm_s: float, draw: random.Random, points: Points = NOTHING_KNOWN
) -> tuple[Entry, ...]:
    """Where all faults wait for points of which nobody knows that they come, one more that waits for none: a storm in
    which nothing strikes proves nothing."""
    strikes = (entry.trigger is None or points.comes(entry.trigger, entry.at_ns / SECOND_NS) for entry in entries)
    return tuple(entries) if any(strikes) else (*entries, *single(faults, storm_s, unused_number(entries), draw))


def unused_number(entries: Sequence[Entry]) -> int:
    """From this number on, no fault has drawn its stream."""
    return max((entry.number for entry in entries), default=-1) + 1


def triggered(
    entries: Sequence[Entry], faults: Faults, draw: random.Random, points: Points = NOTHING_KNOWN
) -> list[Entry]:
    """Some motifs strike not at a time, but when a node reaches a point; often it is that node which is struck.

    They are armed the earlier, so that it is likelier to come.
    """
    share = KNOWN_TRIGGER_SHARE if points.seconds else TRIGGER_SHARE
    if not entries or not faults.points or draw.random() >= share:
        return list(entries)
    by_ns = round(draw.random() * min(entry.at_ns for entry in entries))
    armed = [replace(entry, at_ns=entry.at_ns - by_ns, until_ns=entry.until_ns - by_ns) for entry in entries]
    trigger = points.trigger(faults.points, armed[0].package, armed[0].at_ns / SECOND_NS, draw)
    return [with_trigger(entry, replace(trigger, nth=trigger.nth + place), draw) for place, entry in enumerate(armed)]


def with_trigger(entry: Entry, trigger: Trigger, draw: random.Random) -> Entry:
    at_it = draw.random() < AT_IT_SHARE and is_aimable(entry.shape)
    return replace(entry, trigger=trigger, shape=aimed_at(entry.shape, THE_NODE) if at_it else entry.shape)


def fault_length_s(draw: random.Random, left_s: float) -> float:
    """The length of a fault: of any order of magnitude, long ones being more likely, or all the time that is left."""
    if draw.random() < HELD_SHARE:
        return left_s
    orders = math.log(LONGEST_FAULT_S / SHORTEST_FAULT_S)
    return min(left_s, SHORTEST_FAULT_S * math.exp(orders * draw.random() ** TOWARDS_LONG))


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def entry_of(at_s: float, length_s: float, storm_s: float, number: int, package: str, shape: Shape) -> Entry:
    """Within the storm, and at least a microsecond long."""
    at_s = min(at_s, storm_s - 1e-5)
    until_s = min(max(at_s + length_s, at_s + 1e-6), storm_s)
    return Entry.between(at_s, until_s, package, number, shape)


def single(faults: Faults, storm_s: float, first: int, draw: random.Random) -> list[Entry]:
    """One fault."""
    package, shape = faults.shape(draw)
    at_s = draw.random() * storm_s
    return [entry_of(at_s, fault_length_s(draw, storm_s - at_s), storm_s, first, package, shape)]


def sequence(faults: Faults, storm_s: float, first: int, draw: random.Random) -> list[Entry]:
    """Faults of any kinds at one target, close behind each other: killed, cut off, killed again.

    A role is played by another node after each of them, perhaps."""
    target = draw.choice(faults.targets)
    at_s = draw.random() * storm_s
    entries = []
    for place in range(draw.randint(2, 4)):
        package, shape = faults.aimed(target, draw)
        length_s = fault_length_s(draw, storm_s - at_s)
        entries.append(entry_of(at_s, length_s, storm_s, first + place, package, shape))
        # From its healing on, or while it lasts.
        at_s += log_uniform(draw, SHORTEST_GAP_S, LONGEST_GAP_S) + (length_s if draw.random() < 0.7 else 0.0)
        if at_s >= storm_s:
            break
    return entries


def repeated(faults: Faults, storm_s: float, first: int, draw: random.Random) -> list[Entry]:
    """The same again and again: a restart loop, a link that flaps."""
    package, shape = faults.shape(draw)
    at_s = draw.random() * storm_s
    length_s = log_uniform(draw, SHORTEST_FAULT_S, LONGEST_GAP_S)
    gap_s = log_uniform(draw, 0.05, 2 * LONGEST_GAP_S)
    entries = []
    for place in range(draw.randint(2, 5)):
        if at_s >= storm_s:
            break
        entries.append(entry_of(at_s, length_s, storm_s, first + place, package, shape))
        at_s += length_s + gap_s
    return entries


def wave(faults: Faults, storm_s: float, first: int, draw: random.Random) -> list[Entry]:
    """Different targets one after the other, each struck before the one before it is back, or just after."""
    at_s = draw.random() * storm_s
    different = sorted(set(faults.targets), key=str)
    targets: list[Target] = draw.sample(different, min(len(different), draw.randint(2, 3)))
    length_s = log_uniform(draw, 0.1, LONGEST_FAULT_S / 2)
    entries = []
    for place, target in enumerate(targets):
        package, shape = faults.aimed(target, draw)
        entries.append(entry_of(at_s, length_s * draw.uniform(0.5, 1.5), storm_s, first + place, package, shape))
        at_s += length_s * draw.uniform(0.3, 1.3)
        if at_s >= storm_s:
            break
    return entries


def late(faults: Faults, storm_s: float, first: int, draw: random.Random) -> list[Entry]:
    """What a node has sent arrives after it has ended and come back: its links keep it for so long."""
    return _until_after_its_end(KEEPING, faults, storm_s, first, draw)


def harmed(faults: Faults, storm_s: float, first: int, draw: random.Random) -> list[Entry]:
    """What a disk did wrong shows once its node has ended: until then it is in memory."""
    return _until_after_its_end(HARMING, faults, storm_s, first, draw)


def _until_after_its_end(
    names: Sequence[str], faults: Faults, storm_s: float, first: int, draw: random.Random
) -> list[Entry]:
    """A fault of one of these packages at a node that ends while it lasts, perhaps twice."""
    target = draw.choice(faults.targets)
    keeping, ending = (faults.of_one(of, target, draw) for of in (names, ENDING))
    if keeping is None or ending is None:
        return sequence(faults, storm_s, first, draw)
    at_s = draw.random() * storm_s
    kept_s = log_uniform(draw, SHORTEST_KEPT_S, LONGEST_KEPT_S)
    entries = [entry_of(at_s, kept_s, storm_s, first, *keeping)]
    for place in range(1, draw.randint(2, 3)):
        ended_s = log_uniform(draw, SHORTEST_FAULT_S, LONGEST_GAP_S)
        entries.append(entry_of(at_s + draw.random() * kept_s, ended_s, storm_s, first + place, *ending))
    return entries


def at_once(faults: Faults, storm_s: float, first: int, draw: random.Random) -> list[Entry]:
    """Several are ended in one moment, as those that share a machine are, and come back together."""
    different = sorted(set(faults.targets), key=str)
    at_s = draw.random() * storm_s
    length_s = log_uniform(draw, SHORTEST_KEPT_S, LONGEST_GAP_S)
    names = draw.choices((("power",), ENDING), weights=(2, 1))[0]
    targets: list[Target] = draw.sample(different, min(len(different), 2))
    chosen = [faults.of_one(names, target, draw) for target in targets]
    entries = [
        entry_of(at_s, length_s, storm_s, first + place, *shape) for place, shape in enumerate(filter(None, chosen))
    ]
    return entries or sequence(faults, storm_s, first, draw)


def blinked(faults: Faults, storm_s: float, first: int, draw: random.Random) -> list[Entry]:
    """A node ends and is back before anybody misses it."""
    ended = faults.of_one(ENDING, draw.choice(faults.targets), draw)
    if ended is None:
        return single(faults, storm_s, first, draw)
    return [entry_of(draw.random() * storm_s, log_uniform(draw, *BLINK_S), storm_s, first, *ended)]


def overtaken(faults: Faults, storm_s: float, first: int, draw: random.Random) -> list[Entry]:
    """A node cannot act for a while, and others end meanwhile: what it knew of them is old once it goes on."""
    absent = faults.of_one(ABSENCE, draw.choice(faults.targets), draw)
    if absent is None:
        return sequence(faults, storm_s, first, draw)
    at_s = draw.random() * storm_s
    absent_s = log_uniform(draw, *ABSENT_S)
    entries = [entry_of(at_s, absent_s, storm_s, first, *absent)]
    for place in range(1, draw.randint(2, 4)):
        ended = faults.of_one(ENDING, draw.choice(faults.targets), draw)
        if ended is not None:
            ended_s = log_uniform(draw, SHORTEST_FAULT_S, LONGEST_GAP_S)
            entries.append(entry_of(at_s + draw.random() * absent_s, ended_s, storm_s, first + place, *ended))
    return entries


Motif = Callable[[Faults, float, int, random.Random], list[Entry]]
MOTIFS: tuple[Motif, ...] = (single, sequence, repeated, wave, late, harmed, at_once, blinked, overtaken)
WEIGHTS = (4.0, 3.0, 1.0, 2.0, 2.0, 1.0, 1.5, 0.7, 2.0)
