"""Which deliveries a proxy renews when, and which brokers hold up which others: none."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.pop_protocol import ChangedInvisibleTime, HandleRequest, ReceiptHandle
from system_under_test.rocketmq.proxy.brokers import Brokers
from system_under_test.rocketmq.proxy.config import ProxyConfig
from system_under_test.rocketmq.proxy.holding import GIVEN_BACK_MS, RETRIES_A_PERIOD, Holding
from system_under_test.rocketmq.proxy.receiving import SIDE_BY_SIDE, Receiving
from system_under_test.rocketmq.proxy.refusals import Refused
from system_under_test.rocketmq.proxy.v2 import Code
from system_under_test.runtime.places import Places
from tests.rocketmq.scenarios.broker_cluster import Cluster, play

PERIOD_NS = 800
INVISIBLE_MS = 60_000


def handle(offset: int, broker: str = "a") -> ReceiptHandle:
    return ReceiptHandle.decode(f"0 1 60000 0 0 {broker} 0 {offset}")


@pytest.fixture
def holding() -> Holding:
    holding = Holding(PERIOD_NS, INVISIBLE_MS)
    for offset in range(3):
        holding.hold(f"client-{offset % 2}", "g", "t", handle(offset), now_ns=offset)
    holding.hold("client-0", "g", "t", handle(7, "b"), now_ns=1)
    return holding


def test_a_broker_is_asked_about_its_own_and_what_waits_longest_comes_first(holding: Holding):
    assert holding.brokers_due(PERIOD_NS - 1) == []
    assert holding.brokers_due(PERIOD_NS + 2) == ["a", "b"]
    assert holding.due("a", PERIOD_NS + 2, 2) == [handle(0).encode(), handle(1).encode()]
    assert holding.due("b", PERIOD_NS + 2, 2) == [handle(7, "b").encode()]


def test_what_was_renewed_is_due_a_period_later_and_what_was_not_is_tried_again_soon(holding: Holding):
    held = holding.get(name := handle(0).encode())
    assert held is not None
    newer = handle(0)._replace(pop_time_ms=9)
    holding.renewed(name, held, newer, INVISIBLE_MS, 1_000)
    assert (holding.current(handle(0)), held.due_ns) == (newer, 1_000 + PERIOD_NS)
    holding.not_renewed(name, held, 2_000)
    assert (holding.current(handle(0)), held.due_ns) == (newer, 2_000 + PERIOD_NS // RETRIES_A_PERIOD)
    holding.let_go(handle(0))
    holding.renewed(name, held, handle(0), INVISIBLE_MS, 3_000)
    assert holding.current(handle(0)) == handle(0) and holding.get(name) is None


def test_what_a_client_held_that_is_gone_is_due_at_once_until_it_comes_again(holding: Holding):
    holding.give_back("client-0", 10)
    assert holding.due("a", 10, 9) == [handle(0).encode(), handle(2).encode()]
    first, second = (holding.get(handle(offset).encode()) for offset in (0, 2))
    assert first is not None and second is not None and first.invisible_ms == GIVEN_BACK_MS
    # This renewal was under way when the client was found to be gone.
    holding.renewed(handle(0).encode(), first, handle(0), INVISIBLE_MS, 20)
    assert holding.due("a", 20, 9) == [handle(0).encode(), handle(2).encode()]
    holding.renewed(handle(0).encode(), first, handle(0), GIVEN_BACK_MS, 20)
    holding.not_renewed(handle(2).encode(), second, INVISIBLE_MS * 1_000_000)
    assert len(holding) == 3
    holding.not_renewed(handle(2).encode(), second, INVISIBLE_MS * 1_000_000 + 11)
    assert len(holding) == 2


class OneSilent(Brokers):
    """Broker `b` never answers, the other one at once."""

    def __init__(self, cluster: Cluster) -> None:
        self._host = cluster.host("p")
        self.renewed: list[int] = []

    async def ask_master(
        self, topic: str, broker_name: str, command: RemotingCommand, timeout_s: float | None = None
    ) -> RemotingCommand:
        if broker_name == "b":
            await self._host.clock.sleep(3.0)
            raise Refused(Code.PROXY_TIMEOUT, "no answer")
        self.renewed.append(HandleRequest.decode(replace(command)).handle.offset)
        return ChangedInvisibleTime(pop_time_ms=2, invisible_ms=INVISIBLE_MS, revive_queue=0).encode()


def test_a_broker_that_does_not_answer_holds_up_no_other():
    async def story(cluster: Cluster) -> None:
        host, brokers = cluster.host("p"), OneSilent(cluster)
        receiving = Receiving(host, ProxyConfig(name_servers=("n:1",)), brokers, Places(9))
        now_ns = host.clock.monotonic_ns()
        for offset in range(SIDE_BY_SIDE * 3):
            receiving.holding.hold("client", "g", "t", handle(offset, "b"), now_ns)
            receiving.holding.hold("client", "g", "t", handle(offset, "a"), now_ns)
        tending = host.spawn(receiving.tend(), "renewals")
        await cluster.sleep(22)
        assert sorted(brokers.renewed) == list(range(SIDE_BY_SIDE * 3))
        tending.cancel()
        await asyncio.wait([tending])

    play(story, brokers=1)
