"""Schedules come from the seed alone and end healed."""

from __future__ import annotations

import pytest

from harness.generator import Context
from harness.seed import Seed
from nemesis import package
from nemesis.cluster import Cluster
from nemesis.schedule import NemesisSettings, Scheduled, together
from nemesis.shape import Isolate, MajoritiesRing, OneWay, between
from nemesis.target import Majority, Minority, Role
from tests.unit.nemesis.systems import ROCKETMQ

PRIMARY = Role("primary")
PACKAGES = {name: make(ROCKETMQ) for name, make in package.PACKAGES.items()}
GROUPS = {
    "brokers": ("b1", "b2", "b3"),
    "controllers": ("c1", "c2", "c3"),
    "all": ("b1", "b2", "b3", "c1", "c2", "c3"),
}
CLUSTER = Cluster(groups=GROUPS, roles={"primary": ("b2",), "active-controller": ("c1",)})


@pytest.mark.parametrize("name", sorted(PACKAGES))
@pytest.mark.parametrize("seed", range(5))
def test_every_start_has_its_stop_within_the_limit(name: str, seed: int) -> None:
    steps = PACKAGES[name].schedule(Seed(seed), NemesisSettings(), 60.0)
    assert steps
    starts = {step.number: step.at_s for step in steps if step.starts}
    stops = {step.number: step.at_s for step in steps if not step.starts}
    assert starts.keys() == stops.keys()
    assert all(starts[number] <= stops[number] <= 60.0 for number in starts)


def test_a_fault_draws_from_its_own_stream_so_that_its_neighbours_stay_when_it_goes() -> None:
    whole = PACKAGES["kill"].schedule(Seed(7), NemesisSettings(), 60.0)
    shorter = PACKAGES["kill"].schedule(Seed(7), NemesisSettings(), 30.0)
    assert [s.shape for s in shorter] == [s.shape for s in whole][: len(shorter)]
    assert whole != PACKAGES["kill"].schedule(Seed(8), NemesisSettings(), 60.0)


def test_schedules_merge_in_order_of_time() -> None:
    both = together([PACKAGES[name].schedule(Seed(1), NemesisSettings(), 60.0) for name in ("kill", "partition")])
    assert [step.at_s for step in both] == sorted(step.at_s for step in both)


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_every_shape_of_a_package_strikes_a_healthy_cluster(name: str) -> None:
    for number, (_, shape) in enumerate(PACKAGES[name].shapes):
        fault = shape.strike(CLUSTER, Seed(number).stream())
        assert fault is not None, shape
        assert fault.kind == PACKAGES[name].fault
        assert fault.nodes


def test_isolation_cuts_both_directions_to_everybody_else() -> None:
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
def test_in_a_majorities_ring_everybody_sees_a_majority(seed: int) -> None:
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
    steps = PACKAGES["kill"].schedule(Seed(1), NemesisSettings(), 60.0)
    generator = Scheduled(steps, start_ns=1_000)
    early, late = (Context.start(concurrency=1, nemesis=True, time=time) for time in (1_000, 2_000))
    first, second = generator.op(early), generator.op(late)
    assert first is not None
    assert second is not None
    assert first[0].time == second[0].time == 1_000 + round(steps[0].at_s * 1e9)  # type: ignore[union-attr]
