"""Each fault in containers is real: asked of the nodes themselves, not of the tools that applied it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence

import pytest
from probe_cluster import Cluster, clock_error_s, true_clock_s

from harness.environments.environment import Link
from harness.errors import HarnessError
from tests.between import Between

pytestmark = pytest.mark.docker

NAMES = ("p1", "p2", "p3")

ATTEMPTS = 5
ATTEMPTS_AT_DRIFT = 100
CLOCK_WITHIN_S = 0.01


def both(left: Sequence[str], right: Sequence[str]) -> list[Link]:
    return [link for a in left for b in right for link in (Link(a, b), Link(b, a))]


def reach(cluster: Cluster) -> dict[str, list[str]]:
    """Node -> the nodes that a new connection of it reaches; checks that what fails, fails by silence."""

    async def ask_all() -> list[dict[str, str]]:
        others = [[other for other in NAMES if other != name] for name in NAMES]
        asked = (cluster.asked(name, "reach", to=to) for name, to in zip(NAMES, others, strict=True))
        return await asyncio.gather(*asked)

    answers = dict(zip(NAMES, cluster.do(ask_all()), strict=True))
    assert {how for answer in answers.values() for how in answer.values()} <= {"reached", "silence"}
    return {name: [other for other, how in answer.items() if how == "reached"] for name, answer in answers.items()}


def reaches(cluster: Cluster, expected: dict[str, list[str]]) -> bool:
    """Whether each node reaches these and no other. On a busy machine a connection may come late, so what should be
    reached is asked for again; what is cut off must be silent each time."""
    reached: set[tuple[str, str]] = set()
    wanted = {(name, other) for name, others in expected.items() for other in others}
    for _ in range(ATTEMPTS):
        reached |= {(name, other) for name, others in reach(cluster).items() for other in others}
        if not reached < wanted:
            break
    return reached == wanted


@pytest.fixture(autouse=True)
def leaves_no_fault(probes: Cluster) -> Iterator[None]:
    yield
    environment = probes.environment
    probes.do(environment.heal())
    probes.do(environment.resume(NAMES))
    probes.do(environment.boot(NAMES))
    for name in NAMES:
        probes.do(environment.set_clock(name, offset_s=0.0, rate=1.0))
    probes.do(probes.until_serving(*NAMES))


ALL_REACHED = {"p1": ["p2", "p3"], "p2": ["p1", "p3"], "p3": ["p1", "p2"]}


def test_a_partition_by_groups_stops_packets_both_ways_and_heals(probes: Cluster) -> None:
    assert reaches(probes, ALL_REACHED)
    effect = probes.do(probes.environment.cut(both(["p1", "p2"], ["p3"])))
    assert effect.happened
    assert reaches(probes, {"p1": ["p2"], "p2": ["p1"], "p3": []})
    assert not probes.do(probes.environment.cut(both(["p1"], ["p3"]))).happened
    healed = probes.do(probes.environment.heal())
    assert healed.happened and "p1→p3 (0 packets" not in healed.evidence
    assert reaches(probes, ALL_REACHED)
    assert not probes.do(probes.environment.heal()).happened


def test_healing_some_links_leaves_the_others_cut(probes: Cluster) -> None:
    probes.do(probes.environment.cut(both(["p1"], ["p2", "p3"])))
    probes.do(probes.environment.heal(both(["p1"], ["p2"])))
    assert reaches(probes, {"p1": ["p2"], "p2": ["p1", "p3"], "p3": ["p2"]})


def test_one_way_means_that_packets_of_the_other_direction_arrive(probes: Cluster) -> None:
    probes.ask("p1", "hold", to="p2")
    assert probes.ask("p1", "say", to="p2") == "hello\n"
    probes.do(probes.environment.cut([Link("p2", "p1")]))
    # What p1 says arrives at p2 and is counted there no less; only the way back is closed.
    assert probes.ask("p1", "say", to="p2") == "silence"
    healed = probes.do(probes.environment.heal([Link("p2", "p1")]))
    assert "p2→p1 (0 packets" not in healed.evidence
    assert probes.ask("p1", "say", to="p2", timeout_s=15) == "hello\n"


def test_connections_that_exist_fall_silent_and_go_on_after_healing(probes: Cluster) -> None:
    probes.ask("p1", "hold", to="p2")
    assert probes.ask("p1", "say", to="p2") == "hello\n"
    probes.do(probes.environment.cut(both(["p1"], ["p2"])))
    assert probes.ask("p1", "say", to="p2") == "silence"
    probes.do(probes.environment.heal())
    assert probes.ask("p1", "say", to="p2", timeout_s=15) == "hello\n"


def test_a_client_reaches_a_node_that_is_cut_off_from_all_others(probes: Cluster) -> None:
    probes.do(probes.environment.cut(both(["p1"], ["p2", "p3"])))
    assert probes.ask("p1", "time")["pid"] > 1


def test_a_killed_node_keeps_its_data_and_refuses_connections(probes: Cluster) -> None:
    probes.ask("p1", "write", text="before the kill")
    before = probes.ask("p1", "time")["pid"]
    assert probes.do(probes.environment.kill(["p1"])).happened
    assert not probes.do(probes.environment.kill(["p1"])).happened
    assert probes.ask("p2", "reach", to=["p1"]) == {"p1": "ConnectionRefusedError"}
    assert probes.do(probes.environment.boot(["p1"])).happened
    assert not probes.do(probes.environment.boot(["p1"])).happened
    probes.do(probes.until_serving("p1"))
    assert probes.ask("p1", "time")["pid"] != before
    assert probes.ask("p1", "read") == "before the kill"
    assert probes.environment.panics() == {}


def test_a_node_boots_with_the_cuts_and_the_clock_still_in_force(probes: Cluster) -> None:
    probes.do(probes.environment.cut(both(["p1"], ["p2"])))
    probes.do(probes.environment.set_clock("p1", offset_s=100.0, rate=1.0))
    probes.do(probes.environment.kill(["p1"]))
    probes.do(probes.environment.boot(["p1"]))
    probes.do(probes.until_serving("p1"))
    assert reaches(probes, {"p1": ["p3"], "p2": ["p3"], "p3": ["p1", "p2"]})
    assert clock_error_s(probes, "p1").may_be(100.0, CLOCK_WITHIN_S)


def test_a_paused_node_is_silent_not_dead_and_takes_cuts_and_clocks_meanwhile(probes: Cluster) -> None:
    probes.ask("p2", "hold", to="p1")
    before = probes.ask("p1", "time")["pid"]
    assert probes.do(probes.environment.pause(["p1"])).happened
    assert not probes.do(probes.environment.pause(["p1"])).happened
    assert probes.ask("p2", "say", to="p1") == "silence"
    probes.do(probes.environment.cut(both(["p1"], ["p3"])))
    probes.do(probes.environment.set_clock("p1", offset_s=-50.0, rate=1.0))
    assert probes.do(probes.environment.resume(["p1"])).happened
    assert not probes.do(probes.environment.resume(["p1"])).happened
    assert probes.ask("p2", "say", to="p1") == "hello\n"
    assert probes.ask("p1", "time")["pid"] == before
    assert probes.ask("p1", "reach", to=["p2", "p3"]) == {"p2": "reached", "p3": "silence"}
    assert clock_error_s(probes, "p1").may_be(-50.0, CLOCK_WITHIN_S)


@pytest.mark.parametrize("offset_s", [75.25, -3600.5])
def test_a_clock_jumps_inside_and_neither_outside_nor_in_other_nodes(probes: Cluster, offset_s: float) -> None:
    outside_s = true_clock_s()
    effect = probes.do(probes.environment.set_clock("p1", offset_s=offset_s, rate=1.0))
    assert effect.happened
    assert clock_error_s(probes, "p1").may_be(offset_s, CLOCK_WITHIN_S)
    assert clock_error_s(probes, "p2").may_be(0.0, CLOCK_WITHIN_S)
    assert true_clock_s().may_be(outside_s, 0.05)
    asked_ns = time.monotonic_ns()
    assert asked_ns <= probes.ask("p1", "time")["monotonic_ns"] <= time.monotonic_ns()
    probes.do(probes.environment.set_clock("p1", offset_s=0.0, rate=1.0))
    assert clock_error_s(probes, "p1").may_be(0.0, CLOCK_WITHIN_S)


@pytest.mark.parametrize("rate", [0.5, 1.5])
def test_a_clock_drifts_and_timers_on_monotonic_time_do_not(probes: Cluster, rate: float) -> None:
    asked_s = time.monotonic()
    probes.do(probes.environment.set_clock("p1", offset_s=10.0, rate=rate))
    answered_s = time.monotonic()
    slept_s = shortest_sleep_s(probes)
    assert 1.0 <= slept_s < 1.4
    # When the drift began lies somewhere within the call; by then that is little of the time since.
    while time.monotonic() - answered_s < 6 * (answered_s - asked_s):
        time.sleep(0.1)

    def drift_s() -> tuple[Between, Between]:
        """What it should be, and what it is."""
        from_s = time.monotonic()
        error_s = clock_error_s(probes, "p1").minus(10.0)
        passed_s = Between(from_s - answered_s, time.monotonic() - asked_s)
        return passed_s.times(abs(rate - 1.0)), error_s.times(1.0 if rate > 1.0 else -1.0)

    # A busy machine may let what moves the clock wait, so that it lags for a while; never is it ahead.
    for _ in range(ATTEMPTS_AT_DRIFT):
        expected_s, drifted_s = drift_s()
        assert drifted_s.least <= expected_s.most + CLOCK_WITHIN_S
        if drifted_s.may_be(expected_s, 2 * CLOCK_WITHIN_S):
            break
    else:
        raise AssertionError(f"the clock drifted by {drifted_s} s, and should have by {expected_s} s")
    assert clock_error_s(probes, "p2").may_be(0.0, CLOCK_WITHIN_S)


def shortest_sleep_s(probes: Cluster) -> float:
    """What a timer of one second takes in an idle loop: libfaketime's own rates would stretch each of them, a busy
    machine makes some late."""
    slept_s: list[float] = []
    while len(slept_s) < ATTEMPTS and min(slept_s, default=9.0) >= 1.4:
        slept_s.append(probes.ask("p1", "sleep", seconds=1.0)["slept_ns"] / 1e9)
    return min(slept_s)


def test_a_verb_names_a_node_that_is_not_there(probes: Cluster) -> None:
    with pytest.raises(HarnessError, match="no node is called 'p9'; there are p1, p2, p3"):
        probes.do(probes.environment.kill(["p9"]))
    with pytest.raises(HarnessError, match="no node is called 'client'"):
        probes.do(probes.environment.cut([Link("client", "p1")]))


def test_power_is_refused_where_it_was_not_announced(probes: Cluster) -> None:
    with pytest.raises(HarnessError, match="no fault of disks was announced"):
        probes.do(probes.environment.power_off(["p1"]))


def test_verbs_do_not_hold_up_the_event_loop(probes: Cluster) -> None:
    async def longest_gap_s() -> float:
        verb = asyncio.ensure_future(probes.environment.pause(NAMES))
        longest, last = 0.0, time.monotonic()
        while not verb.done():
            await asyncio.sleep(0.005)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        await verb
        return longest

    # A verb that held the loop up would do so each time, a busy machine does sometimes.
    gaps_s: list[float] = []
    while len(gaps_s) < ATTEMPTS and min(gaps_s, default=1.0) >= 0.2:
        gaps_s.append(probes.do(longest_gap_s()))
        probes.do(probes.environment.resume(NAMES))
    assert min(gaps_s) < 0.2
