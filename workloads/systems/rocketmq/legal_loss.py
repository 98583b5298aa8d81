"""What each configuration of RocketMQ may legally lose under the faults that struck: the table as code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.record.fault_log import FaultWindow, kinds_of
from harness.system import LegalLoss
from workloads.systems.rocketmq.settings import RocketmqSettings

LOSS = (
    "lost-write",
    "unseen",
    "dirty-read",
    "inconsistent-offsets",
    "nonmonotonic-send",
    "nonmonotonic-poll",
    "poll-skip",
    "consumer-offset-skip",
    "confirmed-lost",
    "rewritten-log",
)
"""What a client sees where acknowledged messages may be lost: their offsets are then given out again."""
CATCH_UP_S = 15.0
"""How long after a power loss its replica may still be catching up."""


def legal_loss(settings: RocketmqSettings, struck: Sequence[FaultWindow]) -> LegalLoss:
    """The row of the table of legal losses for this configuration, cut down to the faults that had an effect.

    What the controllers' store keeps is never lost legally: `lost` is legal of queues alone, not of sets.
    """
    legal = _of_messages(settings, struck)
    return replace(legal, in_workloads={"queue": ("lost",)}) if legal.anomalies else legal


def _of_messages(settings: RocketmqSettings, struck: Sequence[FaultWindow]) -> LegalLoss:
    kinds = set(kinds_of(struck))
    power = "power" in kinds
    overlapped = power_overlapped(struck)
    if settings.unclean_election and kinds & {"kill", "power", "partition", "pause"}:
        return LegalLoss(
            anomalies=(*LOSS, "fenced-write"), reason="unclean election is on: a replica that lags may be elected"
        )
    if settings.brokers - settings.learners == 1:
        if settings.flush == "async" and power:
            return LegalLoss(anomalies=LOSS, reason="one broker with asynchronous flush lost power")
        return LegalLoss()
    if settings.all_ack:
        if overlapped:
            return LegalLoss(anomalies=LOSS, reason="several replicas lost power together, or one under another fault")
        if power and settings.min_in_sync_replicas == 1 and settings.flush == "async":
            return LegalLoss(anomalies=LOSS, reason="minInSyncReplicas 1 with asynchronous flush under power loss")
        return LegalLoss()
    if not kinds & {"kill", "power", "partition", "pause"}:
        return LegalLoss()
    voters = settings.brokers - settings.learners
    if settings.in_sync_replicas == 1:
        return LegalLoss(anomalies=LOSS, reason="inSyncReplicas 1: sends are acknowledged before they are replicated")
    if settings.in_sync_replicas < voters:
        return LegalLoss(
            anomalies=LOSS,
            reason=f"inSyncReplicas {settings.in_sync_replicas} of {voters}: a laggard of the set may be elected",
        )
    if power and (settings.flush == "async" or overlapped):
        return LegalLoss(
            anomalies=LOSS, reason="every replica acknowledges, and power losses overlapped or flush is asynchronous"
        )
    return LegalLoss()


def power_overlapped(struck: Sequence[FaultWindow]) -> bool:
    """Whether replicas may have lost power that were not caught up with each other.

    Either several nodes lost power at once, or a power loss and another fault (clocks aside) came together or within
    CATCH_UP_S of each other.
    """
    catch_up_ns = round(CATCH_UP_S * 1e9)
    power = [window for window in struck if "power" in window.kinds]
    return any(len(window.nodes) > 1 for window in power) or any(
        other is not window
        and other.kind != "clock"
        and other.start_ns <= window.stop_ns + catch_up_ns
        and window.start_ns <= other.stop_ns + catch_up_ns
        for window in power
        for other in struck
    )
