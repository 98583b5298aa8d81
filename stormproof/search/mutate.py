"""Storms made from storms, at the level of what was chosen: a target, a time, a fault more, a setting.

What is not touched stays as it was: faults keep their random streams, so a storm's beginning is its parent's up to the
first change.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from harness.record.scenario import Scenario
from nemesis.able import is_able
from nemesis.asking import ASKING
from nemesis.impair import Impairing, amounts_of, with_drawn_amounts, without_amounts
from nemesis.schedule import Entry
from nemesis.schedule_file import entries_that_fit
from nemesis.shape import Shape
from stormproof.search.points import Points
from stormproof.search.sampling import (
    MOTIFS,
    WEIGHTS,
    entry_of,
    fault_length_s,
    faults_for,
    log_uniform,
    some_beside,
    triggered,
    unused_number,
    with_entries,
    with_one_that_strikes,
    with_trigger,
)
from stormproof.search.space import (
    THE_NODE,
    Faults,
    Space,
    aimed_at,
    aims_at_it,
    drawn_concurrency,
    drawn_rate,
    fits,
    is_aimable,
)
from stormproof.session import registry

Entries = tuple[Entry, ...]
SECOND_NS = 1_000_000_000
NEW_WORLD_SHARE = 0.15
ANY_AMOUNT_SHARE = 0.4
IDLE_SHARE = 0.3
"""How often a fault that waited in vain in a parent goes on to wait for the same."""
MOST_CHANGES = 4


def mutated(parent: Scenario, other: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    """The parent with a few changes; `other` is a storm whose end may follow on the parent's beginning, `points` says
    which points were reached in the parent."""
    scenario = without_idle(parent, space, points, draw)
    for _ in range(min(MOST_CHANGES, 1 + int(draw.expovariate(1.0)))):
        change = draw.choices(CHANGES, weights=CHANGE_WEIGHTS)[0]
        scenario = change(scenario, other, space, points, draw)
    if draw.random() < NEW_WORLD_SHARE:
        scenario = replace(scenario, seed=draw.getrandbits(62))
    storm_s = scenario.time_limit_s - scenario.liveness_s
    entries = entries_in(scenario)
    return with_entries(scenario, with_one_that_strikes(entries, faults_for(scenario, space), storm_s, draw, points))


def without_idle(parent: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    """Some of the faults that waited in vain wait for another point, or are left out."""
    faults, entries = faults_for(parent, space), []
    for entry in entries_in(parent):
        at_s = entry.at_ns / SECOND_NS
        if (
            not points.seconds
            or entry.trigger is None
            or points.comes(entry.trigger, at_s)
            or draw.random() < IDLE_SHARE
        ):
            entries.append(entry)
        elif draw.random() < 0.5:
            entries.append(replace(entry, trigger=points.trigger(faults.points, entry.package, at_s, draw)))
    return with_entries(parent, entries)


def entries_in(scenario: Scenario, storm_s: float | None = None, lines: tuple[str, ...] | None = None) -> Entries:
    """The faults of its schedule, as far as they fit its nodes and its length."""
    system, settings = registry.configured_system(scenario.system, scenario.settings)
    vocabulary = registry.vocabulary(system, settings, scenario.mutant)
    length_s = scenario.time_limit_s - scenario.liveness_s if storm_s is None else storm_s
    entries = entries_that_fit(scenario.schedule if lines is None else lines, vocabulary, length_s)
    return tuple(entry for entry in entries if is_able(entry.shape, system.cluster(settings), vocabulary))


def _one_changed(
    scenario: Scenario,
    space: Space,
    draw: random.Random,
    change: Callable[[Entry, Faults], Entry],
    which: Callable[[Entry], bool] = lambda entry: True,
) -> Scenario:
    entries = list(entries_in(scenario))
    places = [place for place, entry in enumerate(entries) if which(entry)]
    if not places:
        return scenario
    place = draw.choice(places)
    entries[place] = change(entries[place], faults_for(scenario, space))
    return with_entries(scenario, entries)


def retargeted(scenario: Scenario, other: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    def change(entry: Entry, faults: Faults) -> Entry:
        if is_aimable(entry.shape):
            targets = faults.targets if entry.trigger is None else (*faults.targets, THE_NODE)
            shape = aimed_at(entry.shape, draw.choice(targets))
            return replace(entry, shape=shape) if fits(shape, faults.cluster) else entry
        return replace(entry, shape=faults.shape(draw)[1])

    return _one_changed(scenario, space, draw, change)


def shifted(scenario: Scenario, other: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    """Earlier or later, by a little or a lot."""
    storm_s = scenario.time_limit_s - scenario.liveness_s

    def change(entry: Entry, faults: Faults) -> Entry:
        by_s = draw.choice((-1, 1)) * log_uniform(draw, 0.001, storm_s / 2)
        at_s = min(max(0.0, entry.at_ns / SECOND_NS + by_s), storm_s)
        length_s = (entry.until_ns - entry.at_ns) / SECOND_NS
        moved = entry_of(at_s, length_s, storm_s, entry.number, entry.package, entry.shape)
        return replace(entry, at_ns=moved.at_ns, until_ns=moved.until_ns)

    return _one_changed(scenario, space, draw, change)


def stretched(scenario: Scenario, other: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    """Longer or shorter."""
    storm_s = scenario.time_limit_s - scenario.liveness_s

    def change(entry: Entry, faults: Faults) -> Entry:
        at_s = entry.at_ns / SECOND_NS
        length_s = fault_length_s(draw, storm_s - at_s)
        return replace(entry, until_ns=entry_of(at_s, length_s, storm_s, 0, "", entry.shape).until_ns)

    return _one_changed(scenario, space, draw, change)


def resized(scenario: Scenario, other: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    """An impairment of another strength, from a little more or less to anything."""

    def change(entry: Entry, faults: Faults) -> Entry:
        if draw.random() < ANY_AMOUNT_SHARE:
            return replace(entry, shape=with_drawn_amounts(without_amounts(entry.shape), draw))
        return replace(entry, shape=with_changed_amount(entry.shape, draw))

    return _one_changed(scenario, space, draw, change, lambda entry: without_amounts(entry.shape) != entry.shape)


def with_changed_amount(shape: Shape, draw: random.Random) -> Shape:
    """One of them is up to ten times as large, or as small."""
    if not isinstance(shape, Impairing) or shape.amounts is None:
        return shape
    values = list(shape.amounts)
    place = draw.randrange(len(values))
    amount, value = amounts_of(shape)[place], values[place]
    if value is not None:
        values[place] = amount.near(value * log_uniform(draw, 0.1, 10))
    return replace(shape, amounts=tuple(values))


def at_a_point(scenario: Scenario, other: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    """When a node reaches a point, instead of at a time or at another point; or at a time again."""

    def change(entry: Entry, faults: Faults) -> Entry:
        if entry.trigger is not None and draw.random() < 0.4:
            later = max(1, entry.trigger.nth + draw.choice((-1, 1, entry.trigger.nth)))
            return replace(entry, trigger=replace(entry.trigger, nth=later))
        if not faults.points or (entry.trigger is not None and not aims_at_it(entry.shape) and draw.random() < 0.3):
            return replace(entry, trigger=None)
        return with_trigger(entry, points.trigger(faults.points, entry.package, entry.at_ns / SECOND_NS, draw), draw)

    return _one_changed(scenario, space, draw, change, lambda entry: entry.shape.kind not in ASKING)


def shortened(scenario: Scenario, other: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    """One fault less."""
    entries = list(entries_in(scenario))
    if len(entries) < 2:
        return scenario
    del entries[draw.randrange(len(entries))]
    return with_entries(scenario, entries)


def lengthened(scenario: Scenario, other: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    """A motif more."""
    entries = entries_in(scenario)
    motif = draw.choices(MOTIFS, weights=WEIGHTS)[0]
    faults = faults_for(scenario, space, draw if draw.random() < 0.5 else None)
    more = motif(faults, scenario.time_limit_s - scenario.liveness_s, unused_number(entries), draw)
    return with_entries(scenario, (*entries, *triggered(more, faults, draw, points)))


def accompanied(scenario: Scenario, other: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    """More is done to clients, by administrators, and to who belongs to the cluster."""
    entries = entries_in(scenario)
    return with_entries(scenario, (*entries, *some_beside(scenario, space, unused_number(entries), draw)))


def spliced(scenario: Scenario, other: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    """Up to some moment the one, from then on the other."""
    entries, others = entries_in(scenario), entries_in(scenario, lines=other.schedule)
    if not others:
        return scenario
    moment_ns = round(draw.random() * (scenario.time_limit_s - scenario.liveness_s) * SECOND_NS)
    first = unused_number(entries)
    rest = [replace(entry, number=first + place) for place, entry in enumerate(others) if entry.at_ns >= moment_ns]
    return with_entries(scenario, (*(entry for entry in entries if entry.at_ns < moment_ns), *rest))


def reset(scenario: Scenario, other: Scenario, space: Space, points: Points, draw: random.Random) -> Scenario:
    """One setting drawn anew, or, where it cannot be without others, all within the deployment; or the load."""
    if draw.random() < 0.4:
        storm_s = scenario.time_limit_s - scenario.liveness_s
        return replace(scenario, rate=drawn_rate(storm_s, draw), concurrency=drawn_concurrency(scenario.workload, draw))
    drawn = space.settings_within(space.deployment_of(scenario), scenario.workload, scenario.world, draw)
    names = sorted((drawn.keys() | scenario.settings.keys()) - space.settings.keys())
    if not names:
        return scenario
    name = draw.choice(names)
    settings = {key: value for key, value in scenario.settings.items() if key != name}
    if name in drawn:
        settings[name] = drawn[name]
    if not space.is_possible(scenario.workload, settings):
        settings = {**drawn, **space.settings}
    changed = replace(scenario, settings=settings)
    return with_entries(changed, entries_in(changed))


Change = Callable[[Scenario, Scenario, Space, Points, random.Random], Scenario]
CHANGES: tuple[Change, ...] = (
    retargeted,
    shifted,
    stretched,
    resized,
    at_a_point,
    shortened,
    lengthened,
    accompanied,
    spliced,
    reset,
)
CHANGE_WEIGHTS = (3.0, 4.0, 3.0, 2.0, 4.0, 1.0, 8.0, 3.0, 2.0, 1.5)
