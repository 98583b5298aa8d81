"""The table of legal losses, cell by cell, as far as storms can produce them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import UsageError
from harness.record.fault_log import FaultWindow
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.legal_loss import CATCH_UP_S, LOSS, legal_loss, power_overlapped
from workloads.systems.rocketmq.settings import RocketmqSettings


def struck(*faults: tuple[str, float, float, tuple[str, ...]]) -> tuple[FaultWindow, ...]:
    """Of (kind, start and stop in seconds, nodes)."""
    return tuple(
        FaultWindow(kind=kind, nodes=nodes, start_ns=round(start_s * 1e9), stop_ns=round(stop_s * 1e9))
        for kind, start_s, stop_s, nodes in faults
    )


POWER = ("power", 1, 2, ("b1",))
NOTHING = struck()
KILL, PARTITION, CLOCK = (struck((kind, 1, 2, ("b1",))) for kind in ("kill", "partition", "clock"))
POWER_ONE = struck(POWER)
POWER_ALL = struck(("power", 1, 2, ("b1", "b2")))
POWER_OVERLAPPED = struck(POWER, ("kill", 2 + CATCH_UP_S, 20, ("b2",)))

ALL_ACK_2 = RocketmqSettings()
ALL_ACK_2_ASYNC = RocketmqSettings(flush="async")
ALL_ACK_1 = RocketmqSettings(min_in_sync_replicas=1)
ALL_ACK_1_ASYNC = RocketmqSettings(min_in_sync_replicas=1, flush="async")
SINGLE_SYNC = RocketmqSettings(brokers=1, min_in_sync_replicas=1)
SINGLE_ASYNC = RocketmqSettings(brokers=1, min_in_sync_replicas=1, flush="async")
ONE_ACK = RocketmqSettings(all_ack=False, min_in_sync_replicas=1)
TWO_OF_TWO = RocketmqSettings(all_ack=False, brokers=2, in_sync_replicas=2, min_in_sync_replicas=2)
TWO_OF_THREE = RocketmqSettings(all_ack=False, in_sync_replicas=2)
UNCLEAN = RocketmqSettings(unclean_election=True)


@pytest.mark.parametrize(
    ("settings", "faults", "loss_is_legal"),
    [
        (SINGLE_ASYNC, KILL, False),
        (SINGLE_ASYNC, POWER_ONE, True),
        (SINGLE_ASYNC, PARTITION, False),
        (SINGLE_SYNC, KILL, False),
        (SINGLE_SYNC, POWER_ONE, False),
        (SINGLE_SYNC, POWER_OVERLAPPED, False),
        (ONE_ACK, KILL, True),
        (ONE_ACK, PARTITION, True),
        (ONE_ACK, POWER_ONE, True),
        (TWO_OF_TWO, KILL, False),
        (TWO_OF_TWO, PARTITION, False),
        (TWO_OF_TWO, POWER_ONE, False),
        (TWO_OF_TWO, POWER_OVERLAPPED, True),
        (TWO_OF_TWO, POWER_ALL, True),
        (TWO_OF_THREE, KILL, True),
        (TWO_OF_THREE, PARTITION, True),
        (ALL_ACK_1, KILL, False),
        (ALL_ACK_1, PARTITION, False),
        (ALL_ACK_1, POWER_ONE, False),
        (ALL_ACK_1_ASYNC, POWER_ONE, True),
        (ALL_ACK_1, POWER_OVERLAPPED, True),
        (ALL_ACK_2, KILL, False),
        (ALL_ACK_2, PARTITION, False),
        (ALL_ACK_2, POWER_ONE, False),
        (ALL_ACK_2_ASYNC, POWER_ONE, False),
        (ALL_ACK_2, POWER_OVERLAPPED, True),
        (ALL_ACK_2, POWER_ALL, True),
        (UNCLEAN, KILL, True),
        (UNCLEAN, PARTITION, True),
        *((settings, CLOCK, False) for settings in (SINGLE_ASYNC, ONE_ACK, TWO_OF_THREE, ALL_ACK_2, UNCLEAN)),
        *((settings, NOTHING, False) for settings in (SINGLE_ASYNC, ONE_ACK, TWO_OF_THREE, ALL_ACK_2, UNCLEAN)),
    ],
)
def test_loss_is_legal_exactly_where_the_table_says(
    settings: RocketmqSettings, faults: tuple[FaultWindow, ...], loss_is_legal: bool
) -> None:
    legal = legal_loss(settings, faults)
    expected = (*LOSS, *(("fenced-write",) if settings.unclean_election else ())) if loss_is_legal else ()
    assert legal.anomalies == expected
    assert bool(legal.reason) == loss_is_legal
    assert legal.in_workloads == ({"queue": ("lost",)} if loss_is_legal else {})


@pytest.mark.parametrize(
    ("faults", "is_overlapped"),
    [
        (POWER_ONE, False),
        (struck(POWER, POWER), True),
        (struck(("power+kill", 1, 2, ("b1", "c1"))), True),
        (struck(POWER, ("kill", 2 + CATCH_UP_S, 30, ("b2",))), True),
        (struck(POWER, ("kill", 2.1 + CATCH_UP_S, 30, ("b2",))), False),
        (struck(("kill", 1, 2, ("b2",)), ("power", 2 + CATCH_UP_S, 30, ("b1",))), True),
        (struck(("kill", 1, 2, ("b2",)), ("power", 2.1 + CATCH_UP_S, 30, ("b1",))), False),
        (struck(POWER, ("clock", 1, 2, ("b2",))), False),
        (struck(("kill", 1, 2, ("b1",)), ("partition", 1, 2, ("b2",))), False),
    ],
)
def test_power_losses_overlap_with_what_comes_before_their_replica_has_caught_up(
    faults: tuple[FaultWindow, ...], is_overlapped: bool
) -> None:
    assert power_overlapped(faults) is is_overlapped


def test_diverging_replicas_and_reads_of_what_was_never_sent_are_legal_nowhere() -> None:
    of_messages = {"diverging-replicas", "aborted-read", "duplicate", "unexpected-read"}
    of_nodes = {"diverging-logs", "two-masters", "two-leaders", "epoch-back", "unclean-election", "fenced-write"}
    assert not (of_messages | of_nodes) & set(LOSS)


@pytest.mark.parametrize(
    "wrong",
    [{"brokers": 0}, {"brokers": 1}, {"learners": 3}, {"brokers": 3, "learners": 2}],
    ids=str,
)
def test_settings_under_which_nothing_could_be_sent_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        RocketmqSettings(**wrong)


def test_nodes_are_described_for_every_world() -> None:
    nodes = SYSTEM.nodes(RocketmqSettings(controllers=3, brokers=2), "local-read")
    assert [node.name for node in nodes] == ["c1", "c2", "c3", "b1", "b2"]
    assert [node.name for node in nodes if node.replica] == ["b1", "b2"]
    assert all(node.program.config["mutant"] == "local-read" for node in nodes)
