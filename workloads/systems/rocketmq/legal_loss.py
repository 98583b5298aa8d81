"""What each configuration of RocketMQ may legally lose under the faults that struck.

A message is lost legally if every broker that had to hold it when it was acknowledged lost it with its disk, or was
taken away by another fault meanwhile (`damage` finds which broker lost what), or if it has expired (`expiry`). What
follows from a fault and the configuration alone has a row in `loss_tables`. Slow disks and clocks excuse no loss, nor
does a full disk, nor do links where all had to acknowledge. A controller whose disk loses what was synced may vote
twice, or for a candidate that lacks what was decided: once a leader owes its election to such a vote, nothing is
promised any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from workloads.systems.rocketmq.classic_loss import ConfiguredGroup
from workloads.systems.rocketmq.damage import (
    Damage,
    Holders,
    damages,
    elected_meanwhile,
    holders,
    led_from_ns,
    whole_again_ns,
)
from workloads.systems.rocketmq.dledger_loss import dledger_loss
from workloads.systems.rocketmq.expiry import expiries
from workloads.systems.rocketmq.lock_changes import overlaps
from workloads.systems.rocketmq.loss_tables import (
    ALL,
    AWAY,
    FAULTS,
    LAST_NS,
    LOST,
    LOST_AFTER_READ,
    STATES_UNDER_CONTROLLERS,
    WEAKNESSES,
    WRONG_AFTER_DISK_DAMAGE,
    Takes,
    catch_up_ns,
    excuses_of,
    seconds,
    synced_taken,
    traces,
)
from workloads.systems.rocketmq.settings import BrokerGroup, RocketmqSettings, broker_groups, controller_names

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

WITHOUT_A_MAPPING = (*ALL, "diverging-replicas", "stray-offset", "segment-overlap", "no-progress")
"""The mapping of a static topic is a record in a group's log. Without its newest one a group takes messages for a queue
that it had given away, or no longer serves one that it had got: queues begin anew at offsets that were used, segments
overlap, or no broker takes messages until an administrator makes the mapping again."""


def legal_loss(settings: RocketmqSettings, struck: Sequence[FaultWindow], reports: NodeReports) -> LegalLoss:
    """What this configuration may lose, cut down to the faults that had an effect."""
    if settings.has_dledger:
        return dledger_loss(settings, struck, reports)
    group_rules = ControlledGroup if settings.has_controllers else ConfiguredGroup
    of_groups = tuple(
        excuse
        for group in broker_groups(settings)
        for excuse in group_rules(settings, group, tuple(struck), reports).excuses()
    )
    of_mappings = _lost_mappings(of_groups, reports) if settings.static_queues else ()
    damaged = _damaged_controllers(settings, struck)
    # A damaged controller begins again in the term that its disk still knows.
    of_terms = (
        Excuse(anomalies=("epoch-back",), reason=one.words, from_ns=one.from_ns, until_ns=LAST_NS, nodes=(one.node,))
        for one in damaged
    )
    anything, anything_from_ns = _voided(damaged, reports)
    return LegalLoss(
        anything=anything,
        anything_from_ns=anything_from_ns,
        excuses=(*expiries(settings, struck, reports), *of_groups, *of_mappings, *of_terms),
    )


def _lost_mappings(losses: Sequence[Excuse], reports: NodeReports) -> Iterator[Excuse]:
    """One for each span whose messages may be lost and in which a mapping was written."""
    written = [event["time"] for events in reports.of("mapped").values() for event in events]
    for loss in losses:
        if "lost-write" in loss.anomalies and any(loss.from_ns <= at_ns <= loss.until_ns for at_ns in written):
            reason = f"{loss.reason}, and the mapping of a static topic was written then"
            yield Excuse(anomalies=WITHOUT_A_MAPPING, reason=reason, from_ns=0, until_ns=LAST_NS)


class _Damaged(NamedTuple):
    """A controller lost votes and decisions that it had synced."""

    from_ns: int
    node: str
    words: str


def _damaged_controllers(settings: RocketmqSettings, struck: Sequence[FaultWindow]) -> list[_Damaged]:
    lost = "lost votes and decisions that it had synced"
    return [
        _Damaged(fault.start_ns, node, f"{node} {lost} ({kind} at {seconds(fault.start_ns)})")
        for fault in struck
        for kind, node in synced_taken(fault, controller_names(settings))
    ]


def _voided(damaged: Sequence[_Damaged], reports: NodeReports) -> tuple[str, int]:
    """Why nothing is promised, and from when on: since the first election of a leader of the controllers that needed
    the vote of a damaged one, and that lacked what was decided or was the second one of its term.

    As long as every leader has a majority without such votes, one of its voters still holds what was decided. A leader
    whose last entry is not before the last one decided has it as well. Where controllers do not report who voted, each
    election may be the one.
    """
    if not damaged:
        return "", 0
    events = reports.of("voted_in", "raft_committed")
    in_order = [(event["time"], node, event) for node, of in events.items() for event in of if _is_whole(event)]
    in_order.sort(key=lambda one: one[:2])
    if not any(event["event"] == "voted_in" for _, _, event in in_order):
        return min(damaged).words, min(damaged).from_ns
    decided, leaders = (0, 0), dict[int, str]()
    for at_ns, node, event in in_order:
        if event["event"] == "raft_committed":
            decided = max(decided, (event["epoch"], event["end"]))
            continue
        voters = event["names"]
        lost = [one for one in damaged if one.from_ns <= at_ns and one.node in voters]
        is_needed = bool(lost) and len(set(voters) - {one.node for one in lost}) < event["start"]
        if is_needed and (tuple(event["members"]) < decided or leaders.get(event["epoch"], node) != node):
            elected = f"{node} was elected with its vote at {seconds(at_ns)}, and lacked what was decided"
            return f"{lost[0].words}, and {elected}", at_ns
        leaders[event["epoch"]] = node
    return "", 0


def _is_whole(event: Mapping[str, Any]) -> bool:
    needed = ("epoch", "end") if event["event"] == "raft_committed" else ("epoch", "names", "start", "members")
    return all(event[column] is not None for column in needed)


@dataclass(frozen=True)
class ControlledGroup:
    """A group whose masters are elected by controllers."""

    settings: RocketmqSettings
    group: BrokerGroup
    struck: tuple[FaultWindow, ...]
    reports: NodeReports

    def excuses(self) -> Iterator[Excuse]:
        for fault in self.struck:
            yield from self._of_damaged_disks(fault)
            yield from excuses_of(STATES_UNDER_CONTROLLERS, fault, self.settings, self.group.voters)
        yield from overlaps(self.settings, self.group.brokers, self.reports)
        yield from self._of_lost_messages()
        for rows in WEAKNESSES:
            for fault in self.struck:
                yield from excuses_of(rows, fault, self.settings, self.group.voters)

    def _of_damaged_disks(self, fault: FaultWindow) -> Iterator[Excuse]:
        """A broker that lost what was synced may lack anything until it is in the SyncStateSet again after it had left
        it; if it is master before that, so may all."""
        for kind, node in synced_taken(fault, self.group.voters):
            until_ns = LAST_NS
            if kind != "bit-rot":
                until_ns = whole_again_ns(node, fault.stop_ns, self.group.voters, self.reports)
            reason = f"{kind} at {seconds(fault.start_ns)} took what was synced by {node}"
            yield Excuse(
                anomalies=WRONG_AFTER_DISK_DAMAGE,
                reason=reason,
                from_ns=fault.start_ns,
                until_ns=until_ns,
                nodes=(node,),
            )
            led_ns = led_from_ns(node, fault.start_ns, self.reports, ended=node in fault.down)
            if led_ns is not None and led_ns <= until_ns:
                reason = f"{reason}, which was master at {seconds(led_ns)}"
                yield Excuse(anomalies=WRONG_AFTER_DISK_DAMAGE, reason=reason, from_ns=led_ns, until_ns=LAST_NS)

    def _of_lost_messages(self) -> Iterator[Excuse]:
        group, margin_ns = self.group, catch_up_ns(self.settings)
        found = damages(self.struck, group.voters, group.brokers, self.reports, unknown_ns=margin_ns)
        spans = holders(group.voters, self.reports) if found else ()
        for damage in found:
            for number, span in enumerate(spans):
                from_ns, until_ns = max(damage.from_ns, span.from_ns), min(damage.until_ns, span.until_ns)
                holding = _holding(damage, spans[number:])
                if from_ns > until_ns or holding is None:
                    continue
                others = self._others(damage, holding, found)
                if others is None:
                    continue
                reason = " while ".join(filter(None, (str(damage), " and ".join(words for words, _ in others))))
                yield Excuse(anomalies=(*LOST, *LOST_AFTER_READ), reason=reason, from_ns=from_ns, until_ns=until_ns)
                over_ns = max((damage.over_ns, *(fault.stop_ns for _, fault in others)))
                # A broker that was away may report late what the master of an older epoch had confirmed.
                yield from traces(self.settings, reason, "fenced-write", span_ns=(from_ns, until_ns), over_ns=over_ns)

    def _others(self, damage: Damage, span: Holders, found: Sequence[Damage]) -> list[tuple[str, FaultWindow]] | None:
        """What kept each other holder from saving it; None where one could have, or where nothing may be lost."""
        settings, others = self.settings, sorted(span.nodes - {damage.node})
        if damage.takes is Takes.UNSYNCED and settings.flush == "sync":
            # The master syncs before it acknowledges, and slaves do so if they have to.
            if settings.ack_durable or not others:
                return None
        elif damage.takes is Takes.UNSYNCED and (not settings.all_ack or settings.min_in_sync_replicas == 1):
            return []
        if damage.takes is not Takes.EVERYTHING and elected_meanwhile(damage, self.group.name, self.reports):
            return [(f"{damage.node} was elected before it was known to be damaged", damage.fault)]
        reasons = [_lost_too(node, damage, span, found) or self._away(node, damage) for node in others]
        kept_away = [reason for reason in reasons if reason is not None]
        if damage.takes is Takes.UNSYNCED and settings.flush == "async" and kept_away:
            # One other suffices: a broker that lost its power counts as living for a while, and if it is elected then,
            # it alone is in the SyncStateSet from there on.
            return kept_away
        return kept_away if len(kept_away) == len(others) else None

    def _away(self, node: str, damage: Damage) -> tuple[str, FaultWindow] | None:
        """A fault that took the node away until the damaged one had caught up; a disk that is empty is never chosen."""
        if damage.takes is Takes.EVERYTHING:
            return None
        margin_ns = catch_up_ns(self.settings)
        for fault in self.struck:
            meets = fault.start_ns <= damage.over_ns + margin_ns and damage.fault.start_ns <= fault.stop_ns + margin_ns
            words = [FAULTS[kind].away for kind in fault.kinds if kind in AWAY]
            if words and meets and node in (fault.aimed_at or fault.nodes):
                return f"{node} was {words[0]} at {seconds(fault.start_ns)}", fault
        return None


def _holding(damage: Damage, spans: Sequence[Holders]) -> Holders | None:
    """Which brokers held what was written in the first of these spans when the damaged one came to hold it: then, or
    when it joined later, as a broker that joins the set has all that was written before. None: it never did before the
    damage."""
    return next((span for span in spans if damage.node in span.nodes and span.from_ns <= damage.until_ns), None)


def _lost_too(node: str, damage: Damage, span: Holders, found: Sequence[Damage]) -> tuple[str, FaultWindow] | None:
    for other in found:
        meets = other.from_ns <= min(damage.until_ns, span.until_ns) and other.until_ns >= damage.from_ns
        if other.node == node and meets:
            return str(other), other.fault
    return None
