"""What each configuration of RocketMQ may legally lose under the faults that struck: the table as code.

A message is lost legally if every broker that had to hold it when it was acknowledged lost it with its disk, or was
taken away by another fault meanwhile (`damage` says who lost what). Or it has expired: whoever deletes files says so,
and nothing may go that was written less than the retention time before. Where fewer acknowledgements than replicas are
asked for, or an election may be unclean, what was acknowledged around a fault that took a broker away may be lost.
Slow disks and clocks excuse nothing, nor does a full disk, nor do links where all had to acknowledge. A controller
whose disk loses what was synced may vote twice, or for one that lacks what was decided: once a leader of controllers
that owes its election to such a vote does, nothing is promised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from workloads.systems.rocketmq.classic_loss import ConfiguredTable
from workloads.systems.rocketmq.damage import (
    LAST_NS,
    Damage,
    Holders,
    Takes,
    damages,
    elected_meanwhile,
    holders,
    led_from_ns,
    whole_again_ns,
)
from workloads.systems.rocketmq.expiry import expiries
from workloads.systems.rocketmq.lock_changes import overlaps
from workloads.systems.rocketmq.loss_tables import (
    ALL,
    APART,
    AT_LAST,
    AWAY,
    CATCH_UP_S,
    DELAYING,
    GIVEN_AGAIN,
    OF_DISKS,
    PASSED_OVER,
    READ,
    READ_TRACES,
    TAKEN,
    UNREAD,
    UNREAD_TRACES,
    catch_up_ns,
    learned_ns,
    lost,
    of_rot,
    of_wrong_clocks,
    seconds,
    synced_taken,
)
from workloads.systems.rocketmq.mapping_loss import lost_mappings
from workloads.systems.rocketmq.settings import BrokerGroup, RocketmqSettings, broker_groups, controller_names

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports


def legal_loss(settings: RocketmqSettings, struck: Sequence[FaultWindow], reports: NodeReports) -> LegalLoss:
    """The row of the table of legal losses for this configuration, cut down to the faults that had an effect."""
    table = _Table if settings.has_controllers else ConfiguredTable
    tables = [table(settings, group, tuple(struck), reports) for group in broker_groups(settings)]
    of_groups = tuple(excuse for table in tables for excuse in table.excuses())
    of_mappings = lost_mappings(of_groups, reports) if settings.static_queues else ()
    damaged = _damaged_controllers(settings, struck)
    forgotten = _forgotten(damaged, reports)
    return LegalLoss(
        anything="" if forgotten is None else forgotten.words,
        anything_from_ns=0 if forgotten is None else forgotten.from_ns,
        excuses=(*expiries(settings, struck, reports), *of_groups, *of_mappings, *map(_of_terms, damaged)),
    )


def _holding(damage: Damage, spans: Sequence[Holders]) -> Holders | None:
    """Who held what was written in the first of these spans when the damaged broker came to hold it: then, or when it
    joined later, as who joins the set has all that was written before. None: it never did before the damage."""
    return next((span for span in spans if damage.node in span.nodes and span.from_ns <= damage.until_ns), None)


@dataclass(frozen=True, kw_only=True)
class _Forgotten:
    """What consensus rests on was gone when a leader was elected."""

    words: str
    from_ns: int


@dataclass(frozen=True, kw_only=True, order=True)
class _Damaged:
    """A controller lost votes and decisions that it had synced."""

    from_ns: int
    node: str
    words: str


def _damaged_controllers(settings: RocketmqSettings, struck: Sequence[FaultWindow]) -> list[_Damaged]:
    return [
        _Damaged(
            from_ns=fault.start_ns,
            node=node,
            words=f"{node} lost votes and decisions that it had synced ({kind} at {seconds(fault.start_ns)})",
        )
        for fault in struck
        for kind, node in synced_taken(fault, controller_names(settings))
    ]


def _of_terms(damaged: _Damaged) -> Excuse:
    """It begins again in the term that its disk still knows."""
    return Excuse(
        anomalies=("epoch-back",),
        reason=damaged.words,
        from_ns=damaged.from_ns,
        until_ns=LAST_NS,
        nodes=(damaged.node,),
    )


def _forgotten(damaged: Sequence[_Damaged], reports: NodeReports) -> _Forgotten | None:
    """The first election of a leader of the controllers that needed the vote of one which had lost what it had synced,
    and lacked what was decided, or was the second one of its term.

    As long as every leader has a majority without such votes, each of them had, among those who voted for it, somebody
    who still holds what was decided. A leader whose last entry is not before the last one decided has it as well. Where
    controllers do not say who voted, each election may be the one.
    """
    if not damaged:
        return None
    events = reports.of("voted_in", "raft_committed")
    told = [(event["time"], node, event) for node, of in events.items() for event in of if _is_whole(event)]
    told.sort(key=lambda one: one[:2])
    if not any(event["event"] == "voted_in" for _, _, event in told):
        first = min(damaged)
        return _Forgotten(words=first.words, from_ns=first.from_ns)
    decided, leaders = (0, 0), dict[int, str]()
    for at_ns, node, event in told:
        if event["event"] == "raft_committed":
            decided = max(decided, (event["epoch"], event["end"]))
            continue
        voters = event["names"]
        lost = [one for one in damaged if one.from_ns <= at_ns and one.node in voters]
        is_needed = bool(lost) and len(set(voters) - {one.node for one in lost}) < event["start"]
        if is_needed and (tuple(event["members"]) < decided or leaders.get(event["epoch"], node) != node):
            elected = f"{node} was elected with its vote at {seconds(at_ns)}, and lacked what was decided"
            return _Forgotten(words=f"{lost[0].words}, and {elected}", from_ns=at_ns)
        leaders[event["epoch"]] = node
    return None


def _is_whole(event: Mapping[str, Any]) -> bool:
    needed = ("epoch", "end") if event["event"] == "raft_committed" else ("epoch", "names", "start", "members")
    return all(event[column] is not None for column in needed)


@dataclass(frozen=True)
class _Table:
    settings: RocketmqSettings
    group: BrokerGroup
    struck: tuple[FaultWindow, ...]
    reports: NodeReports

    def excuses(self) -> Iterator[Excuse]:
        settings = self.settings
        yield from self._of_states()
        yield from overlaps(settings, self.group.brokers, self.reports)
        yield from self._of_disks()
        if settings.unclean_election:
            unclean = "unclean election is on, and a replica that lags may be elected"
            yield from self._around(unclean, (*ALL, "fenced-write"))
            return
        if not settings.all_ack and settings.in_sync_replicas < len(self._voters):
            few = f"inSyncReplicas is {settings.in_sync_replicas} of {len(self._voters)}, and a laggard may be elected"
            yield from self._around(few, (*UNREAD, *UNREAD_TRACES))
            yield from self._around(few, (*READ, *READ_TRACES), kinds=tuple(TAKEN))

        if settings.read_uncommitted:
            shown = "readUnCommitted lets consumers read what may still be cut"
            yield from self._around(shown, ("lost-write", *READ, *UNREAD_TRACES, *READ_TRACES))

    def _of_states(self) -> Iterator[Excuse]:
        """Whoever lost what was synced may lack anything from there on; whoever is slow may be slow to notice; whose
        clock is wrong may be early."""
        for fault in self.struck:
            yield from self._of_damaged_disks(fault)
            yield from of_rot(fault, self._voters)
            yield from of_wrong_clocks(fault, self._voters)
            until_ns = fault.stop_ns + catch_up_ns(self.settings)
            if not {"slow-nodes", "slow-process"}.isdisjoint(fault.kinds):
                reason = f"nodes were slow at {seconds(fault.start_ns)}"
                yield Excuse(anomalies=("laggard-in-sync",), reason=reason, from_ns=fault.start_ns, until_ns=until_ns)
            if not set(DELAYING).isdisjoint(fault.kinds) and not set(self._voters).isdisjoint(fault.nodes):
                reason = f"acknowledgements may come late ({fault.name} at {seconds(fault.start_ns)})"
                until_ns = fault.stop_ns + round(CATCH_UP_S * self.settings.time_scale * 1e9)
                yield Excuse(anomalies=("needless-shrink",), reason=reason, from_ns=fault.start_ns, until_ns=until_ns)

    def _of_damaged_disks(self, fault: FaultWindow) -> Iterator[Excuse]:
        """A broker that lost what was synced may lack anything until it is in the SyncStateSet again after it had left
        it; if it is master before that, so may all."""
        for kind, node in synced_taken(fault, self._voters):
            until_ns = LAST_NS if kind == "bit-rot" else whole_again_ns(node, fault.stop_ns, self._voters, self.reports)
            reason = f"{kind} at {seconds(fault.start_ns)} took what was synced"
            yield Excuse(
                anomalies=OF_DISKS,
                reason=f"{reason} by {node}",
                from_ns=fault.start_ns,
                until_ns=until_ns,
                nodes=(node,),
            )
            led_ns = led_from_ns(node, fault.start_ns, self.reports, ended=node in fault.down)
            if led_ns is not None and led_ns <= until_ns:
                reason = f"{reason} by {node}, which was master at {seconds(led_ns)}"
                yield Excuse(anomalies=OF_DISKS, reason=reason, from_ns=led_ns, until_ns=LAST_NS)

    @property
    def _voters(self) -> tuple[str, ...]:
        return self.group.voters

    def _around(
        self, why: str, anomalies: tuple[str, ...], kinds: tuple[str, ...] = (*AWAY, *TAKEN, *APART)
    ) -> Iterator[Excuse]:
        """Around each fault of these kinds on a broker."""
        margin = catch_up_ns(self.settings)
        for fault in self.struck:
            if not set(kinds).isdisjoint(fault.kinds) and not set(self._voters).isdisjoint(fault.nodes):
                reason, from_ns = f"{why} ({fault.name} at {seconds(fault.start_ns)})", max(fault.start_ns - margin, 0)
                yield Excuse(anomalies=anomalies, reason=reason, from_ns=from_ns, until_ns=fault.stop_ns + margin)
                learned = fault.stop_ns + learned_ns(self.settings)
                yield Excuse(anomalies=GIVEN_AGAIN, reason=reason, from_ns=from_ns, until_ns=learned)

    def _of_disks(self) -> Iterator[Excuse]:
        margin = catch_up_ns(self.settings)
        found = tuple(
            damages(self.struck, TAKEN, AT_LAST, self._voters, self.group.brokers, self.reports, unknown_s=margin / 1e9)
        )
        spans = holders(self._voters, self.reports) if found else ()
        for damage in found:
            for number, span in enumerate(spans):
                from_ns, until_ns = max(damage.from_ns, span.from_ns), min(damage.until_ns, span.until_ns)
                holding = _holding(damage, spans[number:])
                if from_ns > until_ns or holding is None:
                    continue
                others = self._others(damage, holding, found)
                if others is None:
                    continue
                reason = " while ".join(filter(None, (lost(damage), " and ".join(words for words, _ in others))))
                ended_ns = max((damage.over_ns, *(fault.stop_ns for _, fault in others)))
                yield Excuse(anomalies=(*UNREAD, *READ), reason=reason, from_ns=from_ns, until_ns=until_ns)
                yield Excuse(
                    # Who was away may tell late what the master of an older epoch had confirmed.
                    anomalies=(*UNREAD_TRACES, *READ_TRACES, "fenced-write"),
                    reason=reason,
                    from_ns=from_ns,
                    until_ns=ended_ns + margin,
                )
                learned = ended_ns + learned_ns(self.settings)
                yield Excuse(anomalies=GIVEN_AGAIN, reason=reason, from_ns=until_ns, until_ns=learned)
                yield Excuse(anomalies=PASSED_OVER, reason=reason, from_ns=from_ns, until_ns=LAST_NS)

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
        reasons = [self._lost_too(node, damage, span, found) or self._away(node, damage) for node in others]
        kept_away = [reason for reason in reasons if reason is not None]
        if damage.takes is Takes.UNSYNCED and settings.flush == "async" and kept_away:
            # One other suffices: who lost its power counts as living for a while, and if it is elected then, it alone
            # is in the SyncStateSet from there on.
            return kept_away
        return kept_away if len(kept_away) == len(others) else None

    def _lost_too(
        self, node: str, damage: Damage, span: Holders, found: Sequence[Damage]
    ) -> tuple[str, FaultWindow] | None:
        for other in found:
            meets = other.from_ns <= min(damage.until_ns, span.until_ns) and other.until_ns >= damage.from_ns
            if other.node == node and meets:
                return lost(other), other.fault
        return None

    def _away(self, node: str, damage: Damage) -> tuple[str, FaultWindow] | None:
        """A fault that took the node away until the damaged one had caught up; a disk that is empty is never chosen."""
        if damage.takes is Takes.EVERYTHING:
            return None
        margin = catch_up_ns(self.settings)
        for fault in self.struck:
            meets = fault.start_ns <= damage.over_ns + margin and damage.fault.start_ns <= fault.stop_ns + margin
            words = [AWAY[kind] for kind in fault.kinds if kind in AWAY]
            if words and meets and node in (fault.aimed_at or fault.nodes):
                return f"{node} was {words[0]} at {seconds(fault.start_ns)}", fault
        return None
