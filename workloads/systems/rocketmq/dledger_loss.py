"""What brokers whose log a group of DLedger replicates may legally lose: the entries that `workloads/systems/dledger`
excuses, each of which is a message or a batch of them, and what is seen of that.

    acknowledged            kill, partition   power, 1 or all            disk lost, 1
    10 ms flush (default)   nothing           what a bare majority had   what a bare majority had
    ack_durable             nothing           nothing                    the same

RocketMQ's own brokers do not report who held what: of these the table holds as it does of members of the public library
(`workloads/systems/dledger/original_loss.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from workloads.systems.dledger.legal_loss import (
    REPLACED,
    LostEntries,
    damaged,
    lost_entries,
    of_damaged_disks,
    voided,
)
from workloads.systems.dledger.original_loss import possibly_lost, promised_nothing
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
    losses = [_of_group(settings, group, struck, reports) for group in broker_groups(settings)]
    why, from_ns = min(
        ((one.anything, one.anything_from_ns) for one in losses if one.anything), key=_when, default=NEVER
    )
    return LegalLoss(
        anything=why, anything_from_ns=from_ns, excuses=tuple(excuse for one in losses for excuse in one.excuses)
    )


NEVER = "", 0


def _when(promised_nothing: tuple[str, int]) -> int:
    return promised_nothing[1]


def _of_group(
    settings: RocketmqSettings, group: BrokerGroup, struck: Sequence[FaultWindow], reports: NodeReports
) -> LegalLoss:
    beneath = group_beneath(settings, group)
    excuses = list(overlaps(settings, group.brokers, reports))
    if settings.is_original:
        why, from_ns = promised_nothing(beneath, struck)
        lost = possibly_lost(beneath, struck)
    else:
        forgot = damaged(beneath, struck)
        why, from_ns = voided(beneath, forgot, reports)
        excuses += of_damaged_disks(forgot)
        lost = lost_entries(beneath, struck, reports)
    for one in lost:
        excuses += _of_lost(settings, one)
    for fault in struck:
        excuses += excuses_of((CLOCKS,), fault, settings, group.brokers)
    return LegalLoss(anything=why, anything_from_ns=from_ns, excuses=tuple(excuses))


def _of_lost(settings: RocketmqSettings, lost: LostEntries) -> Iterator[Excuse]:
    span = lost.written_ns, lost.last_ns
    yield Excuse(anomalies=(*LOST, *LOST_AFTER_READ), reason=lost.reason, from_ns=span[0], until_ns=span[1])
    places = lost.places_ns, lost.last_ns
    yield from traces(settings, lost.reason, *REPLACED, span_ns=places, over_ns=lost.at_ns, for_good=True)
