"""Schedules come from the seed alone and end healed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from harness.administration import ADMINISTER
from harness.generator import Context
from harness.membership import Membership
from harness.operation import Operation
from harness.seed import Seed
from nemesis import package
from nemesis.cluster import Cluster
from nemesis.schedule import Entry, NemesisSettings, Schedule, Scheduled
from nemesis.shape import Isolate, MajoritiesRing, OneWay, RandomHalves, between, kill
from nemesis.target import Majority, Minority, Role
from tests.unit.nemesis.systems import ROCKETMQ


class Done:
    """An act that nobody refuses."""

    async def begin(self) -> str:
        return "begun"

    async def end(self) -> str:
        return "ended"


PRIMARY = Role("primary")
ALL_DECLARED = replace(ROCKETMQ, verifies_reads=("brokers",))
PACKAGES = {name: make(ALL_DECLARED) for name, make in package.PACKAGES.items()}
GROUPS = {
    "brokers": ("b1", "b2", "b3"),
    "controllers": ("c1", "c2", "c3"),
    "clients": ("client-0", "client-1", "client-2"),
    "all": ("b1", "b2", "b3", "c1", "c2", "c3"),
}
CLUSTER = Cluster(
    groups=GROUPS,
    roles={"primary": ("b2",), "active-controller": ("c1",)},
    acts=lambda name: Done(),
    membership=Membership(lambda node: asyncio.sleep(0, node), lambda node, start: asyncio.sleep(0, node)),
)


@pytest.mark.parametrize("name", sorted(PACKAGES))
@pytest.mark.parametrize("seed", range(5))
def test_every_fault_ends_after_its_start_and_within_the_limit(name: str, seed: int) -> None:
    entries = PACKAGES[name].schedule(Seed(seed), NemesisSettings(), 60.0)
    assert entries
    assert all(0 <= entry.at_ns < entry.until_ns <= 60e9 for entry in entries)
    assert [entry.number for entry in entries] == list(range(len(entries)))


def test_a_fault_draws_from_its_own_stream_so_that_its_neighbours_stay_when_it_goes() -> None:
    whole = PACKAGES["kill"].schedule(Seed(7), NemesisSettings(), 60.0)
    shorter = PACKAGES["kill"].schedule(Seed(7), NemesisSettings(), 30.0)
    assert [s.shape for s in shorter] == [s.shape for s in whole][: len(shorter)]
    assert whole != PACKAGES["kill"].schedule(Seed(8), NemesisSettings(), 60.0)


def test_starts_and_stops_of_all_packages_are_due_in_order_of_time() -> None:
    entries = [
        entry for name in ("kill", "partition") for entry in PACKAGES[name].schedule(Seed(1), NemesisSettings(), 60.0)
    ]
    due = Schedule(tuple(entries)).due()
    assert [one.at_ns for one in due] == sorted(time for entry in entries for time in (entry.at_ns, entry.until_ns))
    for entry in entries:
        assert [one.starts for one in due if one.entry == entry] == [True, False]


def test_a_stop_comes_before_a_start_at_the_same_instant() -> None:
    first = Entry.between(1.0, 2.0, "a", 0, RandomHalves())
    second = Entry.between(2.0, 3.0, "a", 1, RandomHalves())
    assert [(one.starts, one.entry.number) for one in Schedule((second, first)).due()] == [
        (True, 0), (False, 0), (True, 1), (False, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_every_shape_of_a_package_strikes_a_healthy_cluster(name: str) -> None:
    for number, (_, shape) in enumerate(PACKAGES[name].shapes):
        fault = shape.strike(CLUSTER, Seed(number).stream())
        assert fault is not None, shape
        assert fault.kind in PACKAGES[name].fault.split("+")
        assert fault.nodes or fault.kind == ADMINISTER


def test_isolation_cuts_both_directions_to_every_other_node() -> None:
    fault = Isolate(PRIMARY).strike(CLUSTER, Seed(0).stream())
    assert fault is not None
    assert set(fault.links) == set(between(["b2"], ["b1", "b3", "c1", "c2", "c3"]))  # type: ignore[attr-defined]


def test_one_way_cuts_one_direction_only() -> None:
    fault = OneWay(PRIMARY).strike(CLUSTER, Seed(0).stream())
    assert fault is not None
    links = set(fault.links)  # type: ignore[attr-defined]
    assert len(links) == 5
    assert not any((link.target, link.source) in {(a.source, a.target) for a in links} for link in links)


@pytest.mark.parametrize("seed", range(10))
def test_in_a_majorities_ring_every_node_reaches_a_majority(seed: int) -> None:
    nodes = tuple(f"n{i}" for i in range(5))
    fault = MajoritiesRing("all").strike(Cluster(groups={"all": nodes}), Seed(seed).stream())
    assert fault is not None
    cut = {(link.source, link.target) for link in fault.links}  # type: ignore[attr-defined]
    seen = {node: frozenset(other for other in nodes if (node, other) not in cut) for node in nodes}
    assert all(len(view) == 3 for view in seen.values())
    assert len(set(seen.values())) == 5


def test_minorities_and_majorities_are_what_they_say() -> None:
    for seed in range(20):
        assert len(Minority("brokers").pick(CLUSTER, Seed(seed).stream())) == 1
        assert len(Majority("controllers").pick(CLUSTER, Seed(seed).stream())) == 2


def test_no_process_fault_is_sent_to_a_node_that_is_down() -> None:
    down = Cluster(groups=GROUPS, roles=CLUSTER.roles, unavailable=frozenset({"b2"}))
    for _, shape in PACKAGES["pause"].shapes:
        fault = shape.strike(down, Seed(3).stream())
        assert fault is None or "b2" not in fault.nodes


def test_asking_a_schedule_twice_does_not_put_it_off() -> None:
    due = Schedule(PACKAGES["kill"].schedule(Seed(1), NemesisSettings(), 60.0)).due()
    generator = Scheduled(due, start_ns=1_000)
    early, late = (Context.start(concurrency=1, nemesis=True, time=time) for time in (1_000, 2_000))
    first, second = generator.op(early), generator.op(late)
    assert first is not None
    assert second is not None
    assert first[0].time == second[0].time == 1_000 + due[0].at_ns  # type: ignore[union-attr]


def test_a_fault_whose_end_has_passed_is_left_out_with_its_stop() -> None:
    entries = tuple(
        Entry(at_ns=at, until_ns=until, package="kill", number=number, shape=kill(PRIMARY))
        for number, (at, until) in enumerate(((100, 200), (150, 900), (300, 400), (950, 990)))
    )
    due = Schedule(entries, 1_000).due()
    generator, times = Scheduled(due, start_ns=0), []
    context = Context.start(concurrency=1, nemesis=True, time=0)
    while (emission := generator.op(context)) is not None:
        operation, generator = emission
        assert isinstance(operation, Operation) and operation.value is not None
        one = due[operation.value["due"]]
        times.append((one.entry.number, one.starts))
        # Each takes so long that the next one's time has come.
        context = context.at(max(operation.time, context.time) + 350)
    assert times == [(0, True), (1, True), (0, False), (1, False)]
