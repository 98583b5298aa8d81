"""What is wrong with the processors and clocks of containers is seen by the nodes' own programs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from probe_cluster import Cluster, clock_error_s

from harness.environments.impairment import RestartLoop, SlowNode, Strobe

pytestmark = [pytest.mark.docker, pytest.mark.gate]

READINGS, MOST_READINGS = 3, 30
MOST_CLOCK_READINGS = 10_000


def wall_minus_monotonic_ns(cluster: Cluster) -> int:
    asked = cluster.ask("p1", "time")
    difference: int = asked["wall_ns"] - asked["monotonic_ns"]
    return difference


def largest_share(cluster: Cluster, enough: float) -> float:
    """Of a processor, that p1 gets in one of some seconds; asked again until it is enough."""
    shares = [cluster.ask("p1", "burn", seconds=1.0) for _ in range(READINGS)]
    while max(shares) <= enough and len(shares) < MOST_READINGS:
        shares.append(cluster.ask("p1", "burn", seconds=1.0))
    return float(max(shares))


def hours_seen(cluster: Cluster, true_ns: int, wanted: set[int]) -> set[int]:
    """By how many hours p1's clock was ahead, asked again until all that are wanted were seen: a busy machine may keep
    what moves the clock waiting for any number of readings."""
    seen: set[int] = set()
    for _ in range(MOST_CLOCK_READINGS):
        seen.add(round((wall_minus_monotonic_ns(cluster) - true_ns) / 3.6e12))
        if seen >= wanted:
            break
    return seen


@pytest.fixture(autouse=True)
def leaves_nodes_running(probes: Cluster) -> Iterator[None]:
    yield
    probes.do(probes.environment.boot(["p1", "p2", "p3"]))
    probes.do(probes.until_serving("p1", "p2", "p3"))


def test_slow_downs_of_a_processor_add_up(probes: Cluster) -> None:
    environment, slow = probes.environment, SlowNode(callback_us=0, stretch=5)
    # What else runs on the machine takes of a node's share, and adds to none: it may be had sometimes, and never more.
    assert largest_share(probes, enough=0.25) > 0.25, "this machine leaves nothing to take away"
    for change, least, most in (
        (environment.impair, 0.06, 0.25),
        (environment.impair, 0.0, 0.06),
        (environment.relieve, 0.06, 0.25),
        (environment.relieve, 0.25, 1.1),
    ):
        assert probes.do(change(["p1"], slow)).happened
        assert least < largest_share(probes, enough=least) < most
    assert not probes.do(environment.relieve(["p1"], slow)).happened


def test_a_restart_loop_ends_at_any_moment_with_its_nodes_running(probes: Cluster) -> None:
    environment, loop = probes.environment, RestartLoop(down_ms=600_000, up_ms=1)
    assert probes.do(environment.impair(["p1", "p2"], loop)).happened
    assert probes.ask("p3", "reach", to=["p1"]) == {"p1": "ConnectionRefusedError"}
    ended = probes.do(environment.relieve(["p1", "p2"], loop))
    assert ended.happened and "killed 1 times" in ended.evidence
    probes.do(probes.until_serving("p1", "p2"))


def test_a_clock_flips_at_once_for_a_program_that_runs_and_for_one_that_is_started(probes: Cluster) -> None:
    environment, strobe = probes.environment, Strobe(offset_ms=-3_600_000, period_ms=50)
    true_ns = wall_minus_monotonic_ns(probes)
    assert probes.do(environment.impair(["p1"], strobe)).happened
    for _ in range(2):
        assert hours_seen(probes, true_ns, wanted={0, -1}) == {0, -1}
        probes.do(environment.kill(["p1"]))
        probes.do(environment.boot(["p1"]))
        probes.do(probes.until_serving("p1"))
    assert probes.do(environment.relieve(["p1"], strobe)).happened
    assert clock_error_s(probes, "p1").may_be(0.0, 1.0)
