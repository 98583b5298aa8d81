"""When RocketMQ's healthy nodes have to serve by themselves: b1 is the master, and all four brokers are in sync."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.record.node_events import TableOfReports, node_events_table
from harness.record.scenario import SettingValue
from harness.record.steady_spans import SteadySpan
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.quorum import must_serve, serves_within_s
from workloads.systems.rocketmq.settings import RocketmqSettings

S = 1_000_000_000
NODES = ("c1", "c2", "c3", "b1", "b2", "b3", "b4")
FOUR = RocketmqSettings(brokers=4)
BEGAN, ENDED = 20 * S, 60 * S


def reports_of(*more: tuple[float, str, Mapping[str, Any]]) -> TableOfReports:
    """(time in s, node, event) after the election of b1 at 1 s, and all having joined by 3 s."""
    events: dict[str, list[dict[str, Any]]] = {
        f"b{number}": [{"time": 0, "event": "identity", "group": "broker-a", "broker_id": number}]
        for number in range(1, 5)
    }
    said = [(1.0, "c1", elected(1)), (2.0, "b1", in_sync(1)), (3.0, "b1", in_sync(1, 2, 3, 4)), *more]
    for time_s, node, event in said:
        events.setdefault(node, []).append({"time": round(time_s * S), **event})
    return TableOfReports(node_events_table(events, {}))


def elected(broker: int) -> dict[str, Any]:
    return {"event": "elected", "group": "broker-a", "master": broker, "master_epoch": 1}


def in_sync(*members: int) -> dict[str, Any]:
    return {"event": "sync_state_set", "members": [*members], "epoch": 1}


def proposed(*members: int) -> dict[str, Any]:
    return {"event": "alter", "proposed": [*members]}


def span(down: str = "", **reached: str) -> SteadySpan:
    """All are healthy but those that are down, and those of which it is said whom they reach."""
    return SteadySpan(
        from_ns=BEGAN,
        until_ns=ENDED,
        healthy=frozenset(NODES) - set(down.split()) - reached.keys(),
        down=frozenset(down.split()),
        reached={node: frozenset(others.split()) for node, others in reached.items()},
    )


@pytest.mark.parametrize(
    ("steady", "has_to"),
    [
        (span(), True),
        (span("b3 b4"), True),
        (span("b2 b3 b4"), False),
        (span("b1"), True),
        (span("c1"), True),
        (span("c1 c2"), False),
        (span(c1=""), False),
        (span(c1="c2 c3"), False),
        (span("b3", b4="c2 c3 b1 b2"), True),
        (span(b1="b2 b3 b4"), True),
        (span(b1="c1 c2 c3 b3"), False),
        (span(b1="c1"), False),
    ],
    ids=[
        "all",
        "two brokers",
        "one broker",
        "all but the master",
        "two controllers",
        "one controller",
        "a NameServer is cut off, and clients ask it",
        "a controller disturbs elections",
        "a slave hears not all controllers",
        "the master is unheard",
        "the master is heard, but not by its slaves",
        "the master is heard by one controller",
    ],
)
def test_enough_nodes_have_to_serve(steady: SteadySpan, has_to: bool) -> None:
    assert must_serve(FOUR, "log", steady, reports_of()) is has_to


def test_a_controller_that_reaches_nobody_disturbs_nobody_if_clients_do_not_ask_it() -> None:
    alone = RocketmqSettings(brokers=4, controllers_alone=True)
    nodes = frozenset((*NODES, "n1", "n2", "n3")) - {"c1"}
    for reached, has_to in (("", True), ("c2", False)):
        steady = SteadySpan(
            from_ns=BEGAN, until_ns=ENDED, healthy=nodes, down=frozenset(), reached={"c1": frozenset(reached.split())}
        )
        assert must_serve(alone, "log", steady, reports_of()) is has_to


@pytest.mark.parametrize(
    "more",
    [
        [(10.0, "b1", in_sync(1, 4))],
        [(10.0, "b1", proposed(1, 4))],
        [(30.0, "b1", proposed(1, 4))],
        [(10.0, "c1", elected(4))],
        [(30.0, "c1", elected(4))],
        [(10.0, "c1", elected(4)), (11.0, "b1", in_sync(1, 2, 3))],
    ],
    ids=["in sync", "proposed", "proposed later", "elected", "elected later", "an old master says otherwise"],
)
def test_who_may_hold_what_was_acknowledged_has_to_be_healthy(more: list[tuple[float, str, dict[str, Any]]]) -> None:
    assert must_serve(FOUR, "log", span("b1 b4"), reports_of()) is True
    assert must_serve(FOUR, "log", span("b1 b4"), reports_of(*more)) is False


def test_what_was_before_the_last_change_is_past() -> None:
    more = [(10.0, "c1", elected(4)), (11.0, "b4", in_sync(4)), (12.0, "b4", in_sync(2, 4)), (70.0, "c1", elected(1))]
    assert must_serve(FOUR, "log", span("b1 b4"), reports_of(*more)) is True


@pytest.mark.parametrize(
    ("changed", "workload", "steady", "has_to"),
    [
        ({"min_in_sync_replicas": 3}, "log", span("b3 b4"), False),
        ({"learners": 2}, "log", span("b2"), False),
        ({"static_queues": 4}, "log", span(), False),
        ({"deployment": "dual-write"}, "log", span(), False),
        ({}, "register", span("b1 b2 b3 b4", c1=""), True),
        ({}, "register", span("c1 c2"), False),
    ],
    ids=["more in sync", "learners", "static", "no NameServer", "not about brokers", "no majority"],
)
def test_what_is_enough_depends_on_settings_and_workload(
    changed: dict[str, Any], workload: str, steady: SteadySpan, has_to: bool
) -> None:
    assert must_serve(RocketmqSettings(**{"brokers": 4, **changed}), workload, steady, reports_of()) is has_to


@pytest.mark.parametrize(("down", "has_to"), [("", True), ("b3", True), ("b2 b3", False), ("b1", False), ("n1", True)])
def test_without_controllers_the_master_has_to_be_healthy_with_a_slave(down: str, has_to: bool) -> None:
    nodes = frozenset(("n1", "n2", "n3", "b1", "b2", "b3"))
    away = frozenset(down.split())
    steady = SteadySpan(from_ns=BEGAN, until_ns=ENDED, healthy=nodes - away, down=away, reached={})
    assert must_serve(RocketmqSettings(deployment="dual-write"), "log", steady, reports_of()) is has_to


def test_who_says_too_little_promises_nothing() -> None:
    settings: dict[str, SettingValue] = {"brokers": 4, "requests": "public"}
    assert must_serve(FOUR, "log", span(), TableOfReports()) is False
    assert SYSTEM.must_serve(RocketmqSettings(**settings), "log", span(), reports_of()) is False  # type: ignore[arg-type]


def test_the_bound_scales_with_all_periods() -> None:
    usual, slow = (serves_within_s(RocketmqSettings(time_scale=scale)) for scale in (0.1, 1.0))
    assert slow - usual == pytest.approx(0.9 * 40)
