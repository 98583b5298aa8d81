"""What brokers whose log a group of DLedger replicates may legally lose: the entries that `workloads/systems/dledger`
excuses, each of which is a message or a batch of them, and what is seen of that.

    acknowledged            kill, partition   power, 1 or all            disk lost, 1
    10 ms flush (default)   nothing           what a bare majority had   what a bare majority had
    ack_durable             nothing           nothing                    the same
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from workloads.systems.dledger.legal_loss import REPLACED, damaged, lost_entries, of_damaged_disks, voided
from workloads.systems.dledger.settings import Store
from workloads.systems.rocketmq.lock_changes import overlaps
from workloads.systems.rocketmq.loss_tables import CLOCKS, LOST, LOST_AFTER_READ, excuses_of, traces
from workloads.systems.rocketmq.settings import BrokerGroup, RocketmqSettings, broker_groups

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports


@dataclass(frozen=True, kw_only=True)
class GroupBeneath:
    """`GroupOnTrial`: the members are the brokers of one group."""

    names: tuple[str, ...]
    ack_durable: bool
    preferred: int = 0
    store: Store = Store.FILE


def group_beneath(settings: RocketmqSettings, group: BrokerGroup) -> GroupBeneath:
    return GroupBeneath(names=group.brokers, ack_durable=settings.ack_durable, preferred=settings.preferred)


def dledger_loss(settings: RocketmqSettings, struck: Sequence[FaultWindow], reports: NodeReports) -> LegalLoss:
    anything, from_ns, excuses = "", 0, list[Excuse]()
    for group in broker_groups(settings):
        beneath = group_beneath(settings, group)
        forgot = damaged(beneath, struck)
        why, since_ns = voided(beneath, forgot, reports)
        if why and (not anything or since_ns < from_ns):
            anything, from_ns = why, since_ns
        excuses += [*of_damaged_disks(forgot), *overlaps(settings, group.brokers, reports)]
        excuses += _of_lost_entries(settings, beneath, struck, reports)
        for fault in struck:
            excuses += excuses_of((CLOCKS,), fault, settings, group.brokers)
    return LegalLoss(anything=anything, anything_from_ns=from_ns, excuses=tuple(excuses))


def _of_lost_entries(
    settings: RocketmqSettings, beneath: GroupBeneath, struck: Sequence[FaultWindow], reports: NodeReports
) -> Iterator[Excuse]:
    for lost in lost_entries(beneath, struck, reports):
        span = lost.written_ns, lost.last_ns
        yield Excuse(anomalies=(*LOST, *LOST_AFTER_READ), reason=lost.reason, from_ns=span[0], until_ns=span[1])
        yield from traces(settings, lost.reason, *REPLACED, span_ns=span, over_ns=lost.at_ns, for_good=True)
