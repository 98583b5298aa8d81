"""Who lives, as one controller knows it: from heartbeats and closed channels, replicated to nobody.

Liveness belongs to a process, not to a broker: only reports of the incarnation that registered last count.
So a broker that lost power and came back is dead until it has said what its log holds now, however fresh
the boasts of its former life are.

A pulse is a counter that goes out with every answer and comes back with the next report. It orders reports
by cause, not by time: a report that brings a pulse back was made after that pulse went out. The counter begins anew in
each life of a controller, so a pulse names the life, and one of another life orders nothing.

Unheard is not dead. A controller that has only just started has heard nobody, and a broker that has just registered may
have been heard by another one alone: silence is death once it has lasted for the whole time-out, to this controller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from system_under_test.rocketmq.controller.protocol import MAX_DIGITS, BrokerReport

MAX_BROKERS = 65536


class Channel(Protocol):
    """The connection a broker speaks on; compared by identity."""


class Liveness(Protocol):
    """What decisions ask."""

    def living(self, group: str, broker_id: int, incarnation: str) -> BrokerReport | None:
        """The last report of this incarnation, if it lives."""

    def is_silent(self, group: str, broker_id: int, incarnation: str) -> bool:
        """Was nothing heard of this incarnation for the whole time-out?"""

    def may_judge(self, group: str, broker_id: int, incarnation: str) -> bool:
        """May this incarnation be taken for dead if it does not live? It was heard of once, or is silent."""

    def has_reported_since_birth(self, group: str, broker_id: int, newborn: int) -> bool:
        """Was the last report of `broker_id` made after the first one of the process that is `newborn` now?"""


@dataclass(slots=True)
class _Account:
    report: BrokerReport
    channel: Channel
    heard_ns: int
    birth_pulse: int
    seen_pulse: int
    is_alive: bool = True


def pulse_text(life: str, pulse: int) -> str:
    """What goes out; `life` is the name of the controller's process."""
    return f"{life}.{pulse}"


SeenPulse = Callable[[str, str], int]
"""(the life of this controller, what a broker brought back) → the pulse of this life that it has seen, 0 for none."""


def seen_pulse(life: str, brought: str) -> int:
    of_life, _, pulse = brought.partition(".")
    return int(pulse) if of_life == life and pulse.isascii() and pulse.isdigit() and len(pulse) <= MAX_DIGITS else 0


NotedReport = Callable[["BrokerReport | None", BrokerReport], BrokerReport]
"""(what was noted of this broker before, None for nothing; its report of now) → what is noted from now on."""


def newest_report(before: BrokerReport | None, report: BrokerReport) -> BrokerReport:
    return report


class LivenessTable:
    """Who is silent for `timeout_ns` (it may be changed), or for the time that it named itself, is dead, once `expire`
    is called: do so before every decision."""

    def __init__(self, *, timeout_ns: int, started_ns: int, noted_report: NotedReport = newest_report) -> None:
        self.timeout_ns = timeout_ns
        self._started_ns = self._now_ns = started_ns
        self._noted_report = noted_report
        self._accounts: dict[tuple[str, int], _Account] = {}
        self._expected: dict[tuple[str, int], tuple[str, int]] = {}
        """The incarnation that registered last, and since when this controller knows."""
        self._pulse = 0

    def record(
        self, report: BrokerReport, *, registered: str | None, channel: Channel, seen_pulse: int, now_ns: int
    ) -> int:
        """Note a report; `registered` is the incarnation that registered last. Returns the pulse to answer with."""
        self._pulse += 1
        key = (report.group, report.broker_id)
        account = self._accounts.get(key)
        if account is not None and account.report.incarnation == report.incarnation:
            account.report = self._noted_report(account.report, report)
            account.channel = channel
            account.heard_ns = now_ns
            account.seen_pulse = seen_pulse
            account.is_alive = True
        elif account is not None and account.is_alive and account.report.incarnation == registered:
            # Stalled bytes of a former life must not bury the present one.
            pass
        elif account is not None or len(self._accounts) < MAX_BROKERS:
            noted = self._noted_report(None if account is None else account.report, report)
            self._accounts[key] = _Account(noted, channel, now_ns, self._pulse, seen_pulse)
        return self._pulse

    def expect(self, group: str, broker_id: int, incarnation: str, now_ns: int) -> None:
        """This incarnation has registered, perhaps with another controller."""
        key = (group, broker_id)
        if self._expected.get(key, ("", 0))[0] != incarnation:
            self._expected[key] = (incarnation, now_ns)

    def closed(self, channel: Channel) -> bool:
        """The broker that spoke on this channel last is dead at once. Returns whether there was one."""
        dead = [account for account in self._accounts.values() if account.is_alive and account.channel is channel]
        for account in dead:
            account.is_alive = False
        return bool(dead)

    def expire(self, now_ns: int) -> bool:
        """Brokers that have been silent for too long are dead. Returns whether one is since this call."""
        self._now_ns = now_ns
        silent = [
            account
            for account in self._accounts.values()
            if account.is_alive and now_ns - account.heard_ns > self._patience_ns(account.report)
        ]
        for account in silent:
            account.is_alive = False
        return bool(silent)

    def _patience_ns(self, report: BrokerReport) -> int:
        return self.timeout_ns if report.timeout_ms is None else report.timeout_ms * 1_000_000

    def is_silent(self, group: str, broker_id: int, incarnation: str) -> bool:
        account = self._account(group, broker_id, incarnation)
        if account is not None:
            return self._now_ns - account.heard_ns > self._patience_ns(account.report)
        expected, since_ns = self._expected.get((group, broker_id), (incarnation, self._started_ns))
        return self._now_ns - (since_ns if expected == incarnation else self._started_ns) > self.timeout_ns

    def may_judge(self, group: str, broker_id: int, incarnation: str) -> bool:
        was_heard = self._account(group, broker_id, incarnation) is not None
        return was_heard or self.is_silent(group, broker_id, incarnation)

    def _account(self, group: str, broker_id: int, incarnation: str) -> _Account | None:
        account = self._accounts.get((group, broker_id))
        return None if account is None or account.report.incarnation != incarnation else account

    def heard_ns(self, group: str, broker_id: int) -> int | None:
        """When this broker was heard of last; None: never."""
        account = self._accounts.get((group, broker_id))
        return None if account is None else account.heard_ns

    def living(self, group: str, broker_id: int, incarnation: str) -> BrokerReport | None:
        account = self._account(group, broker_id, incarnation)
        return None if account is None or not account.is_alive else account.report

    def has_reported_since_birth(self, group: str, broker_id: int, newborn: int) -> bool:
        account = self._accounts.get((group, broker_id))
        other = self._accounts.get((group, newborn))
        return account is not None and other is not None and account.seen_pulse >= other.birth_pulse
