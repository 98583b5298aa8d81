"""What a configured master and its slaves may legally lose: the rows of the table that have no controllers.

    deployment      flush   power, 1 node               power, all   disk lost, 1 node
    single,masters  async   what was not synced         the same     all of it
                    sync    nothing                     nothing      all of it
    async-slaves    async   what was not synced         the same     what no slave had yet
                    sync    nothing                     nothing      what no slave had yet
    dual-write      async   at the master; the slave    the same,    nothing: the slave has it
                            kept it beside its log      at both
                    sync    nothing                     nothing      nothing: the slave has it

A kill, a partition, slow disks and clocks excuse no loss. A slave loses nothing that its master has not. Where a master
lost messages, offsets are given out again, and its slaves' logs may differ from its own for good.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from workloads.systems.rocketmq.damage import Damage, Event, damages, end_at, left_ns, logs_of, reached_ns
from workloads.systems.rocketmq.lock_changes import overlaps
from workloads.systems.rocketmq.loss_tables import (
    AWAY,
    AWAY_OR_LAGGING,
    LAST_NS,
    LOST,
    LOST_AFTER_READ,
    ONLY_AT_A_SLAVE,
    STATES,
    UNREADABLE,
    WRONG_AFTER_DISK_DAMAGE,
    Takes,
    catch_up_ns,
    excuses_of,
    seconds,
    synced_taken,
    traces,
)
from workloads.systems.rocketmq.settings import BrokerGroup, RocketmqSettings

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

PARTED = ("diverging-replicas", "diverging-logs")
"""A slave has something else than its master, until a human decides."""
OF_TWO_LOGS = ("filtered-skip", "key-not-found", "key-misleads", "torn-batch")
"""Filters, keys and batches of one replica meet other messages at the same offsets of another one."""
WITHOUT_A_SLAVE = ("no-progress", "delivered-late", "stuck-consumer")
"""Nothing that a dual-write master takes is safe while its slaves are parted from it."""


@dataclass(frozen=True)
class ConfiguredGroup:
    """A group with a configured master, its first broker."""

    settings: RocketmqSettings
    group: BrokerGroup
    struck: tuple[FaultWindow, ...]
    reports: NodeReports

    def excuses(self) -> Iterator[Excuse]:
        brokers, margin_ns = self.group.brokers, catch_up_ns(self.settings)
        yield from overlaps(self.settings, brokers, self.reports)
        for fault in self.struck:
            yield from _of_damaged_disks(fault, brokers)
            yield from excuses_of(STATES, fault, self.settings, brokers)
        found = damages(self.struck, brokers, brokers, self.reports, unknown_ns=margin_ns)
        logs = logs_of(brokers, self.reports) if found else {}
        for damage in found:
            if damage.node == self._master and not self._is_durable(damage):
                yield from self._of(damage, found, logs)

    def _of(self, damage: Damage, found: Sequence[Damage], logs: Mapping[str, Sequence[Event]]) -> Iterator[Excuse]:
        for reason, from_ns, until_ns in self._losses(damage, found, logs):
            yield Excuse(anomalies=(*LOST, *LOST_AFTER_READ), reason=reason, from_ns=from_ns, until_ns=until_ns)
        yield from self._kept_by_slaves(damage, logs)
        if "bit-rot" in damage.fault.kinds and self._parted_ns(damage, found) is not None:
            reason = f"{damage}, and its slaves were parted from it already"
            yield Excuse(anomalies=UNREADABLE, reason=reason, from_ns=damage.from_ns, until_ns=LAST_NS)
        if self._slaves and damage.takes is not Takes.UNSYNCED:
            yield from self._shown_alone(damage)
        # The slaves of a master that has nothing left are parted from it for good.
        yield from traces(
            self.settings,
            str(damage),
            *PARTED,
            span_ns=(damage.from_ns, damage.until_ns),
            over_ns=damage.over_ns,
            for_good=damage.takes is not Takes.UNSYNCED or self._parts(damage),
        )

    @property
    def _master(self) -> str:
        return self.group.brokers[0]

    @property
    def _slaves(self) -> Sequence[str]:
        return self.group.brokers[1:]

    def _is_durable(self, damage: Damage) -> bool:
        """Whether all that was acknowledged, shown or sent to a slave was safe from this."""
        return damage.takes is Takes.UNSYNCED and self.settings.flush == "sync"

    def _losses(
        self, damage: Damage, found: Sequence[Damage], logs: Mapping[str, Sequence[Event]]
    ) -> Iterator[tuple[str, int, int]]:
        """(why, from when, until when) of what the master's damage may have cost."""
        whole, is_dual = (damage.from_ns, damage.until_ns), self.settings.deployment == "dual-write"
        parted_ns = self._parted_ns(damage, found)
        lost_by_slaves = {str(other) for other in found if other.node in self._slaves and self._meets(other, damage)}
        if parted_ns is not None and self._slaves:
            yield f"{damage}, and its slaves were parted from it already", parted_ns, damage.until_ns
        elif lost_by_slaves:
            yield f"{damage} and {' and '.join(sorted(lost_by_slaves))}", *whole
        elif not self._slaves or (damage.takes is Takes.UNSYNCED and not is_dual):
            yield str(damage), *whole
        else:
            if not is_dual:
                held = max(end_at(slave, damage.until_ns, logs) for slave in self._slaves)
                from_ns = max(left_ns(held, self._master, damage.until_ns, logs), damage.from_ns)
                yield f"{damage}, and no slave had it yet", from_ns, damage.until_ns
            for node, until_ns in self._held_by_slaves("set_aside", damage, logs):
                yield f"{damage}, and {node} kept it beside its log", damage.from_ns, until_ns

    def _meets(self, other: Damage, damage: Damage) -> bool:
        """Whether a slave lost of the same, and could not have copied it again before the master lost it."""
        if other.takes is Takes.UNSYNCED and self.settings.ack_durable:
            return False
        is_same = other.from_ns <= damage.until_ns and damage.from_ns <= other.until_ns
        return is_same and damage.until_ns <= other.over_ns + catch_up_ns(self.settings)

    def _kept_by_slaves(self, damage: Damage, logs: Mapping[str, Sequence[Event]]) -> Iterator[Excuse]:
        """Of what slaves have whose logs are parted from the master's: it is not lost, and consumers do not see it."""
        for node, until_ns in self._held_by_slaves("parted", damage, logs):
            reason = f"{damage}, and {node} keeps what it has for a human"
            yield Excuse(anomalies=ONLY_AT_A_SLAVE, reason=reason, from_ns=damage.from_ns, until_ns=until_ns)
            yield Excuse(anomalies=OF_TWO_LOGS, reason=reason, from_ns=damage.from_ns, until_ns=LAST_NS)
            if self.settings.deployment == "dual-write":
                alone = f"{reason}, and without a slave nothing is acknowledged"
                yield Excuse(anomalies=WITHOUT_A_SLAVE, reason=alone, from_ns=damage.until_ns, until_ns=LAST_NS)

    def _parted_ns(self, damage: Damage, found: Sequence[Damage]) -> int | None:
        """Since when the master's slaves had nothing in common with it when this was done; None: they had. It began
        anew then, and wrote what no slave copied."""
        return max(
            (other.until_ns for other in found if other.until_ns < damage.until_ns and self._parts(other)), default=None
        )

    def _parts(self, damage: Damage) -> bool:
        """Whether a master has nothing left after it, so that its slaves have nothing in common with it."""
        is_all = damage.takes is Takes.EVERYTHING or damage.from_ns == 0
        return damage.node == self._master and is_all and not self._is_durable(damage)

    def _shown_alone(self, damage: Damage) -> Iterator[Excuse]:
        """Of what the master showed while a fault kept slaves from it: no other broker has it, acknowledged or not."""
        reason = f"{damage}, and it may have been shown while no slave was there to have it"
        away = [
            fault
            for fault in self.struck
            if fault.start_ns <= damage.until_ns
            and not set(self.group.brokers).isdisjoint(fault.nodes)
            and not AWAY_OR_LAGGING.isdisjoint(fault.kinds)
            and fault != damage.fault
        ]
        if away:
            yield Excuse(anomalies=LOST_AFTER_READ, reason=reason, from_ns=damage.from_ns, until_ns=damage.until_ns)
        for fault in away:
            # What was read counts as lost as well; where no slave was there, it cannot have been acknowledged.
            if not AWAY.isdisjoint(fault.kinds) and set(self._slaves) <= set(fault.nodes):
                from_ns, until_ns = max(damage.from_ns, fault.start_ns), min(damage.until_ns, fault.stop_ns)
                yield Excuse(anomalies=("lost-write",), reason=reason, from_ns=from_ns, until_ns=until_ns)

    def _held_by_slaves(
        self, name: str, damage: Damage, logs: Mapping[str, Sequence[Event]]
    ) -> Iterator[tuple[str, int]]:
        """(slave, until when the master wrote what it has of it), as slaves reported in events of this name."""
        for node, events in self.reports.of(name).items():
            for event in events:
                if node in self._slaves and event["time"] >= damage.until_ns and event["end"] is not None:
                    reached = reached_ns(event["end"], self._master, damage.until_ns, logs)
                    yield node, min(reached, damage.until_ns)


def _of_damaged_disks(fault: FaultWindow, brokers: Sequence[str]) -> Iterator[Excuse]:
    """Without elections a broker that lost what was synced may lack anything from there on, and so may its copies."""
    taken = dict.fromkeys(kind for kind, _ in synced_taken(fault, brokers))
    if taken:
        reason = f"{' and '.join(taken)} at {seconds(fault.start_ns)} took what was synced"
        yield Excuse(anomalies=WRONG_AFTER_DISK_DAMAGE, reason=reason, from_ns=fault.start_ns, until_ns=LAST_NS)
