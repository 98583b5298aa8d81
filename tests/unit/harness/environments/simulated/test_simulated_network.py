"""The simulated network: TCP's promises under cuts, loss, crashes and slowness."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from harness.environments.environment import Link
from harness.environments.impairment import FlappingLink, HeldLink, LossyLink, NarrowLink, SlowLink
from harness.environments.simulated.regime import Regime
from harness.errors import HarnessError
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed

BOTH = (Link("a", "b"), Link("b", "a"))


class Accepted:
    """What a host was connected to, newest last."""

    def __init__(self) -> None:
        self.connections: list[Any] = []

    async def __call__(self, connection: Any) -> None:
        self.connections.append(connection)


async def pair(environment, hosts) -> tuple[Any, Any]:
    """A connection from a to b, both ends."""
    accepted = Accepted()
    await hosts["b"].network.listen(1, accepted)
    near = await hosts["a"].network.connect("b:1", 5.0)
    while not accepted.connections:
        await environment.timeline.sleep(0.01)
    return near, accepted.connections[-1]


def now_s(environment) -> float:
    return environment.timeline.now_ns() / 1e9


def test_a_cut_stalls_bytes_which_arrive_in_order_after_healing(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        near.write(b"in flight ")
        effect = await environment.cut(BOTH)
        assert effect.happened
        near.write(b"stalled")
        with pytest.raises(TimeoutError):
            await environment.timeline.within(5, far.read_exactly(1))
        healed = await environment.heal()
        assert healed.happened
        assert await environment.timeline.within(6, far.read_exactly(17)) == b"in flight stalled"
        assert now_s(environment) > 5.1

    simulate(body)


def test_cutting_twice_or_healing_what_is_whole_has_no_effect(simulate):
    async def body(environment, hosts) -> None:
        assert (await environment.cut([Link("a", "b")])).happened
        assert not (await environment.cut([Link("a", "b")])).happened
        partly = await environment.cut(BOTH)
        assert partly.happened
        assert "b→a" in partly.evidence
        assert "a→b" not in partly.evidence
        assert (await environment.heal([Link("a", "b")])).happened
        assert not (await environment.heal([Link("a", "b")])).happened
        assert (await environment.heal()).happened
        assert not (await environment.heal()).happened

    simulate(body)


def test_one_direction_is_cut_alone(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        await environment.cut([Link("b", "a")])
        near.write(b"to b")
        assert await environment.timeline.within(1, far.read_exactly(4)) == b"to b"
        far.write(b"to a")
        with pytest.raises(TimeoutError):
            await environment.timeline.within(3, near.read_exactly(4))
        await environment.heal()
        assert await environment.timeline.within(5, near.read_exactly(4)) == b"to a"

    simulate(body)


def test_a_sender_without_acknowledgements_is_held_back_and_then_gives_up(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        await environment.cut([Link("b", "a")])
        for _ in range(40):
            near.write(bytes(10_000))
        with pytest.raises(TimeoutError):
            await environment.timeline.within(5, near.drain())
        await far.read_exactly(60_000)
        with pytest.raises(TimeoutError):
            await environment.timeline.within(5, far.read_exactly(300_000))
        with pytest.raises(ConnectionClosed, match="timed out"):
            await environment.timeline.within(60, near.drain())
        assert 29 < now_s(environment) < 31

    simulate(body)


def test_a_long_stall_resets_the_sender_and_its_peer_learns_it_when_it_speaks(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        await environment.cut(BOTH)
        near.write(b"never seen")
        with pytest.raises(ConnectionClosed, match="timed out"):
            await environment.timeline.within(60, near.read_exactly(1))
        assert near.closed
        await environment.heal()
        await environment.timeline.sleep(60)
        assert not far.closed
        far.write(b"anybody?")
        with pytest.raises(ConnectionClosed, match="reset"):
            await far.read_exactly(1)

    simulate(body)


def test_connecting_across_a_cut_fails_in_time_and_works_after_healing(simulate):
    async def body(environment, hosts) -> None:
        await hosts["b"].network.listen(1, Accepted())
        for cut in (BOTH, BOTH[:1], BOTH[1:]):
            await environment.cut(cut)
            before_s = now_s(environment)
            with pytest.raises(ConnectFailed, match="timed out"):
                await hosts["a"].network.connect("b:1", 2.0)
            assert now_s(environment) == pytest.approx(before_s + 2.0)
            await environment.heal()
        await environment.cut(BOTH)
        attempt = asyncio.ensure_future(hosts["a"].network.connect("b:1", 20.0))
        await environment.timeline.sleep(5)
        await environment.heal()
        assert (await attempt).remote == "b:1"

    simulate(body)


def test_a_killed_peer_is_noticed_at_once_where_the_link_is_whole(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        far.write(b"last words")
        await environment.kill(["b"])
        assert await near.read_exactly(10) == b"last words"
        with pytest.raises(ConnectionClosed, match="closed by the peer"):
            await environment.timeline.within(1, near.read_exactly(1))
        with pytest.raises(ConnectFailed, match="refused"):
            await hosts["a"].network.connect("b:1", 5.0)
        assert now_s(environment) < 1

    simulate(body)


def test_bytes_left_unread_at_a_kill_reset_the_peer(simulate):
    async def body(environment, hosts) -> None:
        near, _ = await pair(environment, hosts)
        near.write(b"unread")
        await environment.timeline.sleep(1)
        await environment.kill(["b"])
        with pytest.raises(ConnectionClosed, match="reset by the peer"):
            await environment.timeline.within(1, near.read_exactly(1))

    simulate(body)


def test_a_reset_lost_in_a_cut_is_learnt_by_sending_after_it(simulate):
    async def body(environment, hosts) -> None:
        near, _ = await pair(environment, hosts)
        near.write(b"unread")
        await environment.timeline.sleep(1)
        await environment.cut(BOTH)
        await environment.kill(["b"])
        await environment.timeline.sleep(1)
        await environment.heal()
        await environment.timeline.sleep(100)
        assert not near.closed
        near.write(b"still there?")
        with pytest.raises(ConnectionClosed, match="reset by the peer"):
            await environment.timeline.within(1, near.read_exactly(1))

    simulate(body)


def test_a_lost_machine_is_silent_and_resets_old_connections_when_it_is_back(simulate):
    async def body(environment, hosts) -> None:
        near, _ = await pair(environment, hosts)
        idle, _ = near, None
        await environment.power_off(["b"])
        await environment.timeline.sleep(10)
        assert not idle.closed
        with pytest.raises(ConnectFailed, match="timed out"):
            await hosts["a"].network.connect("b:1", 2.0)
        near.write(b"hello?")
        with pytest.raises(TimeoutError):
            await environment.timeline.within(3, near.read_exactly(1))
        await environment.boot(["b"])
        with pytest.raises(ConnectionClosed, match="reset by the peer"):
            await environment.timeline.within(10, near.read_exactly(1))

    simulate(body)


def test_what_a_lost_machine_could_not_send_is_never_sent(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        await environment.cut(BOTH)
        far.write(b"stalled in a buffer that is gone")
        await environment.timeline.sleep(1)
        await environment.power_off(["b"])
        await environment.heal()
        await environment.boot(["b"])
        with pytest.raises(TimeoutError):
            await environment.timeline.within(100, near.read_exactly(1))

    simulate(body)


def test_whatever_happens_a_connection_carries_bytes_in_order_and_once(simulate):
    storm = replace(
        Regime.calm(),
        latency_ms=5.0,
        jitter=1.0,
        spike_probability=0.05,
        spike_factor=20.0,
        loss_probability=0.05,
        split_probability=0.2,
    )

    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        total = 3000

        async def write() -> None:
            for number in range(total):
                near.write(number.to_bytes(4, "big"))
                if number % 10 == 0:
                    await hosts["a"].clock.sleep(0.01)
                await near.drain()
            near.close()

        async def shake() -> None:
            for turn in range(6):
                await environment.timeline.sleep(0.4)
                await environment.cut([BOTH[turn % 2]])
                await environment.timeline.sleep(0.3)
                await environment.heal()

        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            group.create_task(shake())
            for number in range(total):
                assert int.from_bytes(await far.read_exactly(4), "big") == number
            with pytest.raises(ConnectionClosed):
                await far.read_exactly(1)

    for seed in range(5):
        simulate(body, seed=seed, regime=storm)


def test_a_breach_of_the_connection_contract_ends_the_simulation(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        near.write(b"one")
        near.write(b"two")
        arrivals = near.outbound._arrivals
        arrivals[0], arrivals[1] = (arrivals[0][0], *arrivals[1][1:]), (arrivals[1][0], *arrivals[0][1:])
        await far.read_exactly(6)

    with pytest.raises(HarnessError, match=r"byte 3 arrived where 0 was due"):
        simulate(body)


def test_loss_is_delay(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        before_s = now_s(environment)
        await environment.impair_links([Link("a", "b")], LossyLink(share=0.9))
        near.write(b"x")
        assert await far.read_exactly(1) == b"x"
        assert now_s(environment) - before_s >= 0.2
        relieved = await environment.relieve_links([Link("a", "b")], LossyLink(share=0.9))
        assert re.search(r"packets lost: [1-9]", relieved.evidence)

    simulate(body, seed=3)


def test_a_slow_link_is_slow_one_way(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        await environment.impair_links([Link("a", "b")], SlowLink(delay_ms=700, jitter_ms=0))
        assert 0.7 < await took_s(environment, near, far) < 0.8
        assert await took_s(environment, far, near) < 0.1

    simulate(body)


async def took_s(environment, near, far, count: int = 1) -> float:
    before_s = now_s(environment)
    near.write(bytes(count))
    await far.read_exactly(count)
    return now_s(environment) - before_s


def test_impairments_of_a_link_add_up_and_are_taken_away_one_by_one(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        link, slow, slower = [Link("a", "b")], SlowLink(delay_ms=300, jitter_ms=0), SlowLink(delay_ms=500, jitter_ms=0)
        for impairment in (slow, slower, slow):
            assert (await environment.impair_links(link, impairment)).happened
        assert 1.1 < await took_s(environment, near, far) < 1.2
        assert (await environment.relieve_links(link, slow)).happened
        assert 0.8 < await took_s(environment, near, far) < 0.9
        assert (await environment.relieve_links(link, slow)).happened
        assert not (await environment.relieve_links(link, slow)).happened
        assert 0.5 < await took_s(environment, near, far) < 0.6
        assert (await environment.relieve_links(link, slower)).happened
        assert await took_s(environment, near, far) < 0.1

    simulate(body)


def test_a_narrow_link_is_shared_and_what_waits_for_it_comes_at_once_when_it_is_wide_again(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        other = await hosts["a"].network.connect("b:1", 5.0)
        narrow = NarrowLink(bytes_per_s=1000)
        await environment.impair_links([Link("a", "b")], narrow)
        other.write(bytes(2940))
        assert 5.9 < await took_s(environment, near, far, 2940) < 6.3
        near.write(bytes(100_000))
        await environment.timeline.sleep(1)
        await environment.relieve_links([Link("a", "b")], narrow)
        await environment.timeline.within(0.1, far.read_exactly(100_000))
        assert await took_s(environment, near, far) < 0.1

    simulate(body)


def test_a_flapping_link_goes_down_and_up_by_turns_and_leaves_a_cut_alone(simulate):
    flapping = FlappingLink(down_ms=1000, up_ms=2000)

    async def body(environment, hosts) -> None:
        wire = environment._network.wire(*environment._ends(Link("a", "b")))
        await environment.impair_links(BOTH, flapping)
        down_at: list[bool] = []
        for _ in range(6):
            await environment.timeline.sleep(0.5)
            down_at.append(wire.cut)
            await environment.timeline.sleep(0.5)
        assert down_at == [True, False, False, True, False, False]
        await environment.timeline.sleep(0.5)
        assert (await environment.cut([Link("a", "b")])).happened
        assert "went down 3 times" in (await environment.relieve_links(BOTH, flapping)).evidence
        assert wire.cut
        await environment.heal()
        assert not wire.cut
        await environment.timeline.sleep(10)
        assert not wire.cut
        assert not (await environment.relieve_links(BOTH, flapping)).happened

    simulate(body)


@pytest.mark.parametrize("ending", ["kill", "power_off"])
def test_what_a_held_link_keeps_arrives_after_its_sender_died_and_came_back(simulate, ending):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        await environment.impair_links(BOTH, HeldLink())
        near.write(b"from an earlier life")
        await environment.timeline.sleep(1)
        await getattr(environment, ending)(["a"])
        await environment.timeline.sleep(1)
        await environment.boot(["a"])
        with pytest.raises(TimeoutError):
            await environment.timeline.within(3, far.read_exactly(1))
        await environment.relieve_links(BOTH, HeldLink())
        assert await environment.timeline.within(10, far.read_exactly(20)) == b"from an earlier life"

    simulate(body)


def test_a_held_link_that_is_cut_as_well_keeps_nothing_of_a_machine_without_power(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        await environment.impair_links(BOTH, HeldLink())
        await environment.cut(BOTH)
        near.write(b"never left")
        await environment.timeline.sleep(1)
        await environment.power_off(["a"])
        await environment.heal()
        await environment.relieve_links(BOTH, HeldLink())
        with pytest.raises(TimeoutError):
            await environment.timeline.within(60, far.read_exactly(1))

    simulate(body)


def test_bytes_on_a_slow_link_arrive_after_their_sender_was_killed_and_before_the_reset(simulate):
    async def body(environment, hosts) -> None:
        near, far = await pair(environment, hosts)
        far.write(b"unread by a")
        await environment.timeline.sleep(0.1)
        await environment.impair_links([Link("a", "b")], SlowLink(delay_ms=5000, jitter_ms=0))
        near.write(b"late")
        await environment.kill(["a"])
        await environment.boot(["a"])
        await environment.relieve_links([Link("a", "b")], SlowLink(delay_ms=5000, jitter_ms=0))
        before_s = now_s(environment)
        assert await far.read_exactly(4) == b"late"
        assert now_s(environment) - before_s > 4.9
        with pytest.raises(ConnectionClosed):
            await environment.timeline.within(1, far.read_exactly(1))

    simulate(body)


def test_a_client_is_outside_all_partitions_unless_named(simulate):
    async def body(environment, hosts) -> None:
        await hosts["b"].network.listen(1, Accepted())
        client = environment.client_host("client-3")
        everything = [Link(x, y) for x in "abc" for y in "abc" if x != y]
        await environment.cut(everything)
        (await client.network.connect("b:1", 1.0)).close()
        await environment.cut([Link("client-3", "b")])
        with pytest.raises(ConnectFailed):
            await client.network.connect("b:1", 1.0)
        assert environment.client_host("client-3") is client

    simulate(body)
