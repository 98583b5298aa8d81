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
from workloads.systems.rocketmq.damage import (
    LAST_NS,
    Damage,
    Event,
    Takes,
    damages,
    end_at,
    left_ns,
    logs_of,
    reached_ns,
)
from workloads.systems.rocketmq.lock_changes import overlaps
from workloads.systems.rocketmq.loss_tables import (
    APART,
    AT_LAST,
    AWAY,
    GIVEN_AGAIN,
    PASSED_OVER,
    READ,
    READ_TRACES,
    TAKEN,
    UNASKED_FOR,
    UNFOUND,
    UNREAD,
    UNREAD_TRACES,
    catch_up_ns,
    learned_ns,
    lost,
    of_damaged_disks,
    of_rot,
    of_wrong_clocks,
)
from workloads.systems.rocketmq.settings import BrokerGroup, RocketmqSettings

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

PARTED = ("diverging-replicas", "diverging-logs")
"""What is seen of a slave that has something else than its master, until a human decides."""
OF_TWO_LOGS = ("filtered-skip", "key-not-found", "key-misleads", "torn-batch")
"""What is seen of filters, keys and batches of one replica where another one has other messages at the same places."""
WITHOUT_A_SLAVE = ("no-progress", "delivered-late", "stuck-consumer")
"""What becomes of what a master of dual write takes whose slaves are parted from it: it is never safe."""


@dataclass(frozen=True)
class ConfiguredTable:
    """Of one group."""

    settings: RocketmqSettings
    group: BrokerGroup
    struck: tuple[FaultWindow, ...]
    reports: NodeReports

    def excuses(self) -> Iterator[Excuse]:
        yield from overlaps(self.settings, self.group.brokers, self.reports)
        for fault in self.struck:
            yield from of_damaged_disks(fault, self.group.brokers)
            yield from of_rot(fault, self.group.brokers)
            yield from of_wrong_clocks(fault, self.group.brokers)
        margin_ns = catch_up_ns(self.settings)
        brokers = self.group.brokers
        found = tuple(damages(self.struck, TAKEN, AT_LAST, brokers, brokers, self.reports, unknown_s=margin_ns / 1e9))
        logs = logs_of(brokers, self.reports) if found else {}
        for damage in found:
            if damage.node != self._master or self._is_durable(damage):
                continue
            for reason, from_ns, until_ns in self._losses(damage, found, logs):
                yield Excuse(anomalies=(*UNREAD, *READ), reason=reason, from_ns=from_ns, until_ns=until_ns)
            yield from self._kept_by_slaves(damage, logs)
            if "bit-rot" in damage.fault.kinds and self._parted_ns(damage, found) is not None:
                reason = f"{lost(damage)}, and its slaves were parted from it already"
                yield Excuse(anomalies=UNFOUND, reason=reason, from_ns=damage.from_ns, until_ns=LAST_NS)
            if self._slaves and damage.takes is not Takes.UNSYNCED:
                yield from self._shown_alone(damage)
            yield from self._traces(damage, damage.over_ns + margin_ns)

    @property
    def _master(self) -> str:
        return self.group.brokers[0]

    @property
    def _slaves(self) -> Sequence[str]:
        return self.group.brokers[1:]

    def _is_durable(self, damage: Damage) -> bool:
        """Whether all that was acknowledged, shown or sent to a slave was safe from this."""
        return damage.takes is Takes.UNSYNCED and self.settings.flush == "sync"

    def _traces(self, damage: Damage, caught_up_ns: int) -> Iterator[Excuse]:
        """What else is seen of a loss: until all have caught up, or for good."""
        # A slave of a master that has nothing left is parted from it for good.
        is_parted = damage.takes is not Takes.UNSYNCED or self._parts(damage)
        for anomalies, from_ns, until_ns in (
            ((*UNREAD_TRACES, *READ_TRACES, *PARTED), damage.from_ns, LAST_NS if is_parted else caught_up_ns),
            (GIVEN_AGAIN, damage.until_ns, damage.over_ns + learned_ns(self.settings)),
            (PASSED_OVER, damage.from_ns, LAST_NS),
        ):
            yield Excuse(anomalies=anomalies, reason=lost(damage), from_ns=from_ns, until_ns=until_ns)

    def _losses(
        self, damage: Damage, found: Sequence[Damage], logs: Mapping[str, Sequence[Event]]
    ) -> Iterator[tuple[str, int, int]]:
        """(why, from when, until when) of what the master's damage may have cost."""
        words, whole = lost(damage), (damage.from_ns, damage.until_ns)
        parted_ns = self._parted_ns(damage, found)
        if parted_ns is not None and self._slaves:
            yield f"{words}, and its slaves were parted from it already", parted_ns, damage.until_ns
            return
        slaves_lost = [other for other in found if other.node in self._slaves and self._meets(other, damage)]
        if slaves_lost:
            yield f"{words} and {' and '.join(sorted({lost(other) for other in slaves_lost}))}", *whole
        elif not self._slaves:
            yield words, *whole
        elif self.settings.deployment == "dual-write":
            for node, end in self._reported_offsets("set_aside", damage):
                until_ns = min(reached_ns(end, self._master, damage.until_ns, logs), damage.until_ns)
                yield f"{words}, and {node} kept it beside its log", damage.from_ns, until_ns
        elif damage.takes is Takes.UNSYNCED:
            yield words, *whole
        else:
            held = max(end_at(slave, damage.until_ns, logs) for slave in self._slaves)
            from_ns = max(left_ns(held, self._master, damage.until_ns, logs), damage.from_ns)
            yield f"{words}, and no slave had it yet", from_ns, damage.until_ns
            for node, end in self._reported_offsets("set_aside", damage):
                until_ns = min(reached_ns(end, self._master, damage.until_ns, logs), damage.until_ns)
                yield f"{words}, and {node} kept it beside its log", damage.from_ns, until_ns

    def _meets(self, other: Damage, damage: Damage) -> bool:
        """Whether a slave lost of the same, and could not have copied it again before the master lost it."""
        margin_ns = catch_up_ns(self.settings)
        if other.takes is Takes.UNSYNCED and self.settings.ack_durable:
            return False
        return (
            other.from_ns <= damage.until_ns
            and damage.from_ns <= other.until_ns
            and (damage.until_ns <= other.over_ns + margin_ns)
        )

    def _kept_by_slaves(self, damage: Damage, logs: Mapping[str, Sequence[Event]]) -> Iterator[Excuse]:
        """Of what slaves have whose logs are parted from the master's: it is not lost, and consumers do not see it."""
        for node, end in self._reported_offsets("parted", damage):
            reason = f"{lost(damage)}, and {node} keeps what it has for a human"
            until_ns = min(reached_ns(end, self._master, damage.until_ns, logs), damage.until_ns)
            yield Excuse(anomalies=UNASKED_FOR, reason=reason, from_ns=damage.from_ns, until_ns=until_ns)
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
        """Of what the master showed while a fault kept slaves from it: nobody else has it, acknowledged or not."""
        reason = f"{lost(damage)}, and it may have been shown while no slave was there to have it"
        away = [
            fault
            for fault in self.struck
            if fault.start_ns <= damage.until_ns
            and not set(self.group.brokers).isdisjoint(fault.nodes)
            and not {*AWAY, *APART}.isdisjoint(fault.kinds)
            and fault != damage.fault
        ]
        if away:
            yield Excuse(anomalies=READ, reason=reason, from_ns=damage.from_ns, until_ns=damage.until_ns)
        for fault in away:
            # What was read counts as lost as well; where no slave was there, it cannot have been acknowledged.
            if not set(AWAY).isdisjoint(fault.kinds) and set(self._slaves) <= set(fault.nodes):
                from_ns, until_ns = max(damage.from_ns, fault.start_ns), min(damage.until_ns, fault.stop_ns)
                yield Excuse(anomalies=("lost-write",), reason=reason, from_ns=from_ns, until_ns=until_ns)

    def _reported_offsets(self, name: str, damage: Damage) -> Iterator[tuple[str, int]]:
        """(slave, up to which offset) of what slaves have of it, as they told in events of this name."""
        for node, events in self.reports.of(name).items():
            for event in events:
                if node in self._slaves and event["time"] >= damage.until_ns and event["end"] is not None:
                    yield node, event["end"]
