"""CMQ's clients of the workload `pop`: they acknowledge by number what they were given, and nothing is left in the
end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment
from harness.errors import OperationError
from harness.generator import invoke
from harness.operation import Operation
from system_under_test.cmq.wire import Request
from tests.unit.workloads.systems.cmq.nodes_on_hosts import SETTINGS, Cluster, play
from workloads.log import queue_key
from workloads.systems.cmq.pop_client import POPPED, PopClient
from workloads.systems.cmq.settings import queue_name

QUEUES = SETTINGS.queue_names("pop")


class Asking:
    def __init__(self, environment: SimulatedEnvironment, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client = PopClient(environment.client_host("client"), SETTINGS, 0)
        for queue in QUEUES:
            cluster.put(queue)

    async def ask(self, f: str, message: int | None = None, queue: int = 0) -> Operation:
        return await self.client.invoke(invoke(f, {"message": message, "deliveries": None}, key=queue_key(queue)))

    async def came(self, f: str) -> list[int]:
        done = await self.ask(f)
        assert done.type == "ok" and done.value is not None
        assert all(one["times"] is None for one in done.value["deliveries"]), "nobody counts them"
        return [one["message"] for one in done.value["deliveries"]]

    async def error(self, f: str, message: int | None = None) -> OperationError:
        with pytest.raises(OperationError) as raised:
            await self.ask(f, message)
        return raised.value


def asking(body: Callable[[Asking], Coroutine[Any, Any, None]]) -> None:
    async def story(environment: SimulatedEnvironment, cluster: Cluster) -> None:
        await body(Asking(environment, cluster))

    play(story)


def test_pops_take_from_one_queue_after_the_other_and_messages_are_acknowledged_where_they_lie() -> None:
    async def body(one: Asking) -> None:
        for message in range(8):
            await one.ask("send", message, queue=message % SETTINGS.queues)
        came = [await one.came("pop") for _ in QUEUES]
        assert sorted(map(tuple, came)) == [(0, 4), (1, 5), (2, 6), (3, 7)]
        await one.ask("ack", 6)
        assert one.cluster.queues[queue_name(2, "pop")].acknowledged == {1}
        error = await one.error("ack", 99)
        assert error.error.code == "precondition-failed" and error.error.definite

    asking(body)


def test_a_pop_takes_no_more_than_a_few() -> None:
    async def body(one: Asking) -> None:
        for queue in QUEUES:
            one.cluster.put(queue, *range(POPPED + 1))
        assert len(await one.came("pop")) == POPPED

    asking(body)


def test_an_acknowledgement_without_an_answer_may_have_happened_and_a_late_one_is_good() -> None:
    async def body(one: Asking) -> None:
        for queue in QUEUES:
            one.cluster.put(queue, 7)
        assert await one.came("pop") == [7]
        for queue in QUEUES:
            one.cluster.queues[queue].acknowledged = {0}
        assert (await one.ask("ack", 7)).type == "ok"
        one.cluster.silent = {Request.ACK}
        assert not (await one.error("ack", 7)).error.definite

    asking(body)


def test_a_drain_finds_nothing_only_where_nothing_is_left_in_any_queue() -> None:
    async def body(one: Asking) -> None:
        last = one.cluster.put(QUEUES[-1], 7)
        assert await one.came("drain") == [7]
        error = await one.error("drain")
        assert error.error.code == "messages-left" and error.error.definite
        last.acknowledged = {0}
        assert await one.came("drain") == []
        assert await one.came("dead-letters") == []

    asking(body)


@pytest.mark.parametrize("f", ["pop", "drain"])
def test_a_pop_without_an_answer_took_nothing(f: str) -> None:
    async def body(one: Asking) -> None:
        one.cluster.silent = {Request.PULL}
        error = await one.error(f)
        assert error.error.code == "pull-unanswered" and error.error.definite

    asking(body)
