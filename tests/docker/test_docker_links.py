"""What is wrong with links of containers is wrong with their packets: asked of the nodes themselves."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from probe_cluster import Cluster

from harness.environments.environment import Link
from harness.environments.impairment import (
    CorruptingLink,
    DuplicatingLink,
    FlappingLink,
    HeldLink,
    LinkImpairment,
    LossyLink,
    NarrowLink,
    ReorderingLink,
    ResetLink,
    SlowLink,
)
from harness.environments.remote import relay
from harness.errors import HarnessError

pytestmark = [pytest.mark.docker, pytest.mark.gate]

THERE, BACK, ELSEWHERE = Link("p1", "p2"), Link("p2", "p1"), Link("p3", "p2")
MANY = 300
PATIENCE_S = 20.0


@pytest.fixture
def impaired(probes: Cluster) -> Iterator[Cluster]:
    """Of which no impairment may be left by a test."""
    yield probes
    for name in ("p1", "p2", "p3"):
        node = probes.environment._nodes[name]
        assert node.relay({}) == {}, f"{name} still relays"


def impair(cluster: Cluster, impairment: LinkImpairment, *links: Link) -> None:
    assert cluster.do(cluster.environment.impair_links(links, impairment)).happened


def struck(cluster: Cluster, impairment: LinkImpairment, link: Link) -> int:
    """Take it away again; the number of packets that it says to have struck."""
    effect = cluster.do(cluster.environment.relieve_links([link], impairment))
    assert effect.happened
    return int(effect.evidence.partition("(")[2].partition(" ")[0])


def round_trip_s(cluster: Cluster, timeout_s: float = 20.0) -> float:
    start = time.monotonic()
    assert cluster.ask("p1", "say", to="p2", timeout_s=timeout_s) == "hello\n"
    return time.monotonic() - start


def counted(cluster: Cluster, expected: int = 0) -> list[int]:
    """What came to p2 of the numbers that p1 sent, once nothing more has come for a while; where so many are expected,
    a busy machine may let them wait for longer."""
    cluster.ask("p2", "counted")
    cluster.ask("p1", "count", to="p2", most=MANY)
    came: list[int] = []
    deadline = time.monotonic() + PATIENCE_S
    while True:
        time.sleep(0.5)
        more = cluster.ask("p2", "counted")
        came += more
        if not more and (len(came) >= expected or time.monotonic() > deadline):
            return came


def test_packets_of_a_slow_link_come_later_and_in_their_order(impaired: Cluster) -> None:
    slow = SlowLink(delay_ms=200, jitter_ms=100)
    impaired.ask("p1", "hold", to="p2")
    impair(impaired, slow, THERE)
    assert round_trip_s(impaired) > 0.2
    assert counted(impaired, MANY) == list(range(MANY))
    assert struck(impaired, slow, THERE) > MANY


def test_a_delay_of_one_direction_and_pair_is_none_of_others(impaired: Cluster) -> None:
    hanging = SlowLink(delay_ms=600_000, jitter_ms=0)
    impaired.ask("p1", "hold", to="p3")
    impair(impaired, hanging, THERE)
    assert impaired.ask("p1", "say", to="p3", timeout_s=20) == "hello\n"
    assert impaired.ask("p3", "reach", to=["p2"]) == {"p2": "reached"}
    assert struck(impaired, hanging, THERE) == 0


def test_a_lossy_link_loses_its_share_of_packets(impaired: Cluster) -> None:
    lossy = LossyLink(share=0.5)
    impair(impaired, lossy, THERE)
    came = counted(impaired)
    assert 0.3 * MANY < len(came) < 0.7 * MANY
    assert len(came) + struck(impaired, lossy, THERE) >= MANY


def test_a_narrow_link_lets_so_many_bytes_a_second_through(impaired: Cluster) -> None:
    narrow = NarrowLink(bytes_per_s=20_000)
    impair(impaired, narrow, THERE)
    start = time.monotonic()
    assert len(counted(impaired, MANY)) == MANY
    assert time.monotonic() - start > MANY * 29 / 20_000  # 28 bytes of headers and a digit each at least
    struck(impaired, narrow, THERE)


def test_a_flapping_link_is_cut_and_open_by_turns(impaired: Cluster) -> None:
    flapping = FlappingLink(down_ms=100, up_ms=100)
    impair(impaired, flapping, THERE)
    from_s = time.monotonic()
    came = counted(impaired)
    turns = (time.monotonic() - from_s) / 0.2
    gaps = sum(after != before + 1 for before, after in itertools.pairwise(came))
    assert 0 < len(came) < MANY and gaps <= turns + 2, f"{gaps} gaps in {came}, which took {turns} turns"
    struck(impaired, flapping, THERE)


def test_what_is_held_comes_at_the_end(impaired: Cluster) -> None:
    held = HeldLink()
    impair(impaired, held, THERE)
    assert counted(impaired) == []
    assert struck(impaired, held, THERE) >= MANY
    deadline = time.monotonic() + 60
    came: list[int] = []
    while len(came) < MANY and time.monotonic() < deadline:
        came += impaired.ask("p2", "counted")
    assert came == list(range(MANY))


def test_packets_come_twice(impaired: Cluster) -> None:
    twice = DuplicatingLink(share=0.5)
    impair(impaired, twice, THERE)
    came = counted(impaired, MANY)
    assert sorted(set(came)) == list(range(MANY))
    assert 1.3 * MANY < len(came) < 1.7 * MANY
    assert struck(impaired, twice, THERE) >= len(came) - MANY


def test_flipped_bits_are_noticed_by_checksums(impaired: Cluster) -> None:
    corrupting = CorruptingLink(share=0.5)
    wrong = impaired.ask("p2", "wrong_checksums")
    impair(impaired, corrupting, THERE)
    came = counted(impaired)
    assert 0.3 * MANY < len(came) < 0.7 * MANY
    assert impaired.ask("p2", "wrong_checksums") - wrong > 0.2 * MANY
    assert struck(impaired, corrupting, THERE) > 0.3 * MANY


def test_packets_overtake_each_other(impaired: Cluster) -> None:
    reordering = ReorderingLink(share=0.3, delay_ms=50)
    impair(impaired, reordering, THERE)
    came = counted(impaired, MANY)
    assert sorted(came) == list(range(MANY)) != came
    assert struck(impaired, reordering, THERE) > 0.1 * MANY


def test_connections_of_a_link_are_reset_at_both_ends_and_those_of_others_are_not(impaired: Cluster) -> None:
    impaired.do(impaired.environment.impair_links([BACK], ResetLink()))  # whatever earlier tests hold
    for to in ("p2", "p3"):
        impaired.ask("p1", "hold", to=to)
    effect = impaired.do(impaired.environment.impair_links([BACK], ResetLink()))
    assert effect.happened and "p2→p1 (1)" in effect.evidence
    assert impaired.ask("p1", "is_held", to="p2", timeout_s=20) in ("ConnectionResetError", "ConnectionAbortedError")
    assert impaired.ask("p1", "say", to="p3", timeout_s=20) == "hello\n"
    assert impaired.ask("p1", "reach", to=["p2"]) == {"p2": "reached"}
    impaired.ask("p2", "hold", to="p1")
    assert impaired.do(impaired.environment.impair_links([BACK], ResetLink())).happened
    assert impaired.ask("p2", "is_held", to="p1", timeout_s=20) == "ConnectionResetError"


def test_a_relay_that_ended_is_no_healing_in_silence(impaired: Cluster) -> None:
    lossy = LossyLink(share=0.9)
    impair(impaired, lossy, THERE)
    node = impaired.environment._nodes["p2"]
    node.place.shell.run(["sh", "-c", f"kill -9 $(cut -d' ' -f1 {relay.RELAY})"])
    assert impaired.ask("p1", "reach", to=["p2"]) == {"p2": "reached"}
    with pytest.raises(HarnessError, match="the relay of p2 has ended"):
        impaired.do(impaired.environment.impair_links([ELSEWHERE], lossy))
    for link in (THERE, ELSEWHERE):
        impaired.do(impaired.environment.relieve_links([link], lossy))
