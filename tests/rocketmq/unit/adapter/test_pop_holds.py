"""Which answers about popped messages count: of Apache RocketMQ those that came in time, of our brokers all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import OperationError
from workloads.systems.rocketmq.clients.holds import MS, Holds
from workloads.systems.rocketmq.settings import RocketmqSettings

ORIGINAL, OURS = RocketmqSettings(release="5.4.0"), RocketmqSettings()


class Clock:
    now_ms = 0

    def monotonic_ns(self) -> int:
        return self.now_ms * MS


def holds_of(settings: RocketmqSettings) -> tuple[Holds, Clock]:
    clock = Clock()
    host: Any = SimpleNamespace(clock=clock)
    holds = Holds(host, settings)
    holds.hold(7, holds.now_ns(), 1_000)
    return holds, clock


def test_success_in_time_counts_and_at_the_last_moment_no_more() -> None:
    holds, clock = holds_of(ORIGINAL)
    clock.now_ms = 999
    holds.acknowledged(7, "b1")
    holds, clock = holds_of(ORIGINAL)
    clock.now_ms = 1_000
    with pytest.raises(OperationError) as late:
        holds.acknowledged(7, "b1")
    assert not late.value.error.definite
    assert late.value.node == "b1"


def test_another_time_counts_from_when_it_was_asked_for() -> None:
    holds, clock = holds_of(ORIGINAL)
    clock.now_ms = 900
    holds.changed(7, 800 * MS, 2_000)
    clock.now_ms = 2_799
    holds.acknowledged(7, None)


def test_a_change_that_came_late_leaves_unknown_what_came_of_it() -> None:
    holds, clock = holds_of(ORIGINAL)
    clock.now_ms = 1_001
    with pytest.raises(OperationError) as late:
        holds.changed(7, 800 * MS, 2_000)
    assert not late.value.error.definite


def test_what_was_acknowledged_is_not_changed_any_more() -> None:
    holds, _ = holds_of(ORIGINAL)
    holds.require_unacknowledged(7)
    holds.acknowledged(7, None)
    with pytest.raises(OperationError) as refused:
        holds.require_unacknowledged(7)
    assert refused.value.error.definite


def test_a_new_delivery_of_an_acknowledged_message_is_held_anew() -> None:
    holds, clock = holds_of(ORIGINAL)
    holds.acknowledged(7, None)
    clock.now_ms = 5_000
    holds.hold(7, holds.now_ns(), 1_000)
    holds.require_unacknowledged(7)


def test_our_brokers_are_taken_at_their_word() -> None:
    holds, clock = holds_of(OURS)
    clock.now_ms = 9_000
    holds.acknowledged(7, None)
    holds.require_unacknowledged(7)
    holds.changed(7, 0, 1)
