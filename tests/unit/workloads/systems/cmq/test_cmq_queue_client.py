"""CMQ's clients of the workload `queue`: a value comes out once, and a drain that fails has taken nothing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment
from harness.errors import OUTCOME_UNKNOWN, OperationError
from harness.generator import invoke
from harness.operation import Operation
from system_under_test.cmq.wire import MOST_MESSAGES, Code, Request
from tests.unit.workloads.systems.cmq.nodes_on_hosts import SETTINGS, Cluster, Queue, play
from workloads.log import queue_key
from workloads.systems.cmq.adapter import SYSTEM
from workloads.systems.cmq.errors import REFUSALS, error_of
from workloads.systems.cmq.queue_client import QueueClient
from workloads.systems.cmq.settings import queue_name

FIRST = queue_name(0, "queue")


class Asking:
    def __init__(self, environment: SimulatedEnvironment, cluster: Cluster, process: int) -> None:
        self.environment, self.cluster = environment, cluster
        self.host = environment.client_host("client")
        self.client = QueueClient(self.host, SETTINGS, process)

    async def ask(self, f: str, value: int | None = None) -> Operation:
        return await self.client.invoke(invoke(f, {"value": value, "values": None}, key=queue_key(0)))

    async def error(self, f: str, value: int | None = None) -> OperationError:
        with pytest.raises(OperationError) as raised:
            await self.ask(f, value)
        return raised.value

    @property
    def queue(self) -> Queue:
        return self.cluster.queues[FIRST]


def asking(body: Callable[[Asking], Coroutine[Any, Any, None]], process: int = 0) -> None:
    async def story(environment: SimulatedEnvironment, cluster: Cluster) -> None:
        await body(Asking(environment, cluster, process))

    play(story)


def test_what_is_enqueued_is_dequeued_and_acknowledged_by_the_leader() -> None:
    async def body(one: Asking) -> None:
        done = await one.ask("enqueue", 7)
        assert done.type == "ok" and done.node == "n2"
        done = await one.ask("dequeue")
        assert done.type == "ok" and done.node == "n2" and done.value == {"value": 7, "values": None}
        assert one.queue.acknowledged == {0}
        done = await one.ask("dequeue")
        assert done.type == "ok" and done.value == {"value": None, "values": None}

    asking(body)


def test_what_another_consumer_acknowledged_meanwhile_was_not_taken() -> None:
    async def body(one: Asking) -> None:
        one.cluster.put(FIRST, 7)
        one.queue.acknowledged = Unseen()
        error = await one.error("dequeue")
        assert error.error.code == "acknowledged-by-another" and error.error.definite

    class Unseen(set[int]):
        """The pull came before it."""

        asked = 0

        def __contains__(self, number: object) -> bool:
            self.asked += 1
            return self.asked > 1

    asking(body)


def test_of_an_acknowledgement_without_an_answer_it_is_shown_what_it_was_for() -> None:
    async def body(one: Asking) -> None:
        one.cluster.put(FIRST, 7)
        one.cluster.silent = {Request.ACK}
        done = await one.ask("dequeue")
        assert (done.type, done.error) == ("info", "client-timeout")
        assert done.value == {"value": 7, "values": None}

    asking(body)


@pytest.mark.parametrize("f", ["dequeue", "drain"])
def test_a_pull_without_an_answer_took_nothing(f: str) -> None:
    async def body(one: Asking) -> None:
        one.cluster.put(FIRST, 7)
        one.cluster.silent = {Request.PULL}
        error = await one.error(f)
        assert error.error.code == "pull-unanswered" and error.error.definite
        assert not one.queue.acknowledged

    asking(body)


def test_an_enqueue_without_an_answer_may_have_happened_and_is_asked_once() -> None:
    async def body(one: Asking) -> None:
        one.cluster.silent = {Request.PRODUCE}
        error = await one.error("enqueue", 7)
        assert error.error.code == "client-timeout" and not error.error.definite
        assert [node for node, request in one.cluster.asked if request is Request.PRODUCE] == ["n1", "n2"]
        assert len(one.queue.bodies) == 1

    asking(body)


@pytest.mark.parametrize("patience_s", [0.3, 2.0])
@pytest.mark.parametrize(("f", "silent"), [("enqueue", Request.PRODUCE), ("dequeue", Request.PULL)])
def test_a_client_waits_for_an_answer_as_long_as_is_set(f: str, silent: Request, patience_s: float) -> None:
    async def body(one: Asking) -> None:
        one.client = QueueClient(one.host, replace(SETTINGS, patience_s=patience_s), 0)
        one.cluster.silent = {silent}
        began_ns = one.host.clock.monotonic_ns()
        await one.error(f, 7 if f == "enqueue" else None)
        assert (one.host.clock.monotonic_ns() - began_ns) / 1e9 == pytest.approx(patience_s, abs=0.01)

    asking(body)


@pytest.mark.parametrize("others", [0, 1])
def test_a_drain_takes_all_that_is_left_those_that_others_hold_among_them(others: int) -> None:
    count = 3 * MOST_MESSAGES + 5

    async def body(one: Asking) -> None:
        queue = one.cluster.put(FIRST, *range(count))
        queue.acknowledged, queue.held = {1, 2}, set(range(10, 10 + others))
        done = await one.ask("drain")
        assert done.type == ("info" if others else "ok") and done.value is not None
        assert done.value["values"] == [value for value in range(count) if value not in (1, 2, 10 if others else 1)]
        if others:
            assert done.error == "cut-short"
            error = await one.error("drain")
            assert error.error.code == "messages-left" and error.error.definite
            queue.held.clear()
            done = await one.ask("drain")
            assert done.type == "ok" and done.value is not None and done.value["values"] == [10]
        assert queue.acknowledged == set(range(count))

    asking(body)


def test_a_drain_shows_what_it_may_have_taken() -> None:
    async def body(one: Asking) -> None:
        one.cluster.put(FIRST, *range(20))
        one.cluster.silent = {Request.ACK}
        done = await one.ask("drain")
        assert (done.type, done.error) == ("info", "cut-short")
        assert done.value is not None and done.value["values"] == [*range(20)]

    asking(body)


def test_a_drain_whose_acknowledgements_are_refused_has_taken_nothing() -> None:
    async def body(one: Asking) -> None:
        one.cluster.put(FIRST, *range(20))
        one.cluster.codes = {Request.ACK: Code.BUSY}
        error = await one.error("drain")
        assert error.error.definite and not one.queue.acknowledged

    asking(body)


def test_an_empty_queue_is_drained_at_once() -> None:
    async def body(one: Asking) -> None:
        done = await one.ask("drain")
        assert done.type == "ok" and done.value == {"value": None, "values": []}

    asking(body)


def test_who_has_a_home_asks_it_first_and_others_whoever_led_last() -> None:
    def asked(process: int) -> list[str]:
        nodes: list[str] = []

        async def body(one: Asking) -> None:
            one.cluster.leader = "n3"
            await one.ask("enqueue", 1)
            await one.ask("enqueue", 2)
            nodes.extend(node for node, _ in one.cluster.asked)

        asking(body, process)
        return nodes

    assert asked(0) == ["n1", "n3", "n3"]
    assert asked(3) == ["n2", "n3", "n2", "n3"]


def test_who_is_down_is_passed_over_and_who_nobody_takes_in_certainly_did_nothing() -> None:
    async def body(one: Asking) -> None:
        await one.environment.kill(["n1"])
        assert (await one.ask("enqueue", 1)).node == "n2"
        await one.environment.kill(["n2"])
        assert (await one.error("enqueue", 2)).error.code == "connection-lost", "it may not have been seen to close"
        error = await one.error("enqueue", 3)
        assert error.error.definite and error.error.code in ("not-leader", "connect-failed")

    asking(body)


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.SUCCESS], ids=lambda code: code.name)
def test_only_a_request_whose_outcome_is_open_may_have_happened(code: Code) -> None:
    assert (error_of(code) is OUTCOME_UNKNOWN) is (code not in REFUSALS)
    assert error_of(code).definite is (code not in (Code.OUTCOME_UNKNOWN, Code.NOT_TAKEN_OVER))


def test_the_system_is_ready_once_every_queue_is_there_and_each_group_is_led() -> None:
    async def body(one: Asking) -> None:
        await SYSTEM.ready(SETTINGS, one.host, "queue")
        assert len(one.cluster.queues) == SETTINGS.queues
        await SYSTEM.resumed(SETTINGS, one.host, "queue")
        assert await SYSTEM.roles(SETTINGS, one.host) == {
            "leader": ("n2",),
            "leader-2": ("n2",),
            "leader-3": ("n2",),
            "spare": ("n2",),
        }

    asking(body)


@pytest.mark.parametrize(
    ("damaged", "serves"), [({"n1"}, True), ({"n2"}, False), ({"n1", "n3"}, False), ({"n1", "n2", "n3"}, False)]
)
def test_the_others_are_enough_where_they_are_a_majority_and_one_of_them_leads(damaged: set[str], serves: bool) -> None:
    async def body(one: Asking) -> None:
        await one.environment.kill(sorted(damaged - {one.cluster.leader}))
        assert await SYSTEM.serves_without(SETTINGS, one.host, "queue", frozenset(damaged)) is serves

    asking(body)
