"""What each configuration of RocketMQ may legally lose under the faults that struck: the table as code."""

from __future__ import annotations

from harness.record.fault_log import Storm
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
DIRTY = ("dirty-read", "inconsistent-offsets")


def legal_loss(settings: RocketmqSettings, storm: Storm) -> LegalLoss:
    """The row of the table of legal losses for this configuration, cut down to the storm that struck."""
    kinds = set(storm.kinds)
    power = "power" in kinds
    if settings.unclean_election and kinds & {"kill", "power", "partition", "pause"}:
        return LegalLoss(
            anomalies=(*LOSS, "fenced-write"), reason="unclean election is on: a replica that lags may be elected"
        )
    if settings.brokers - settings.learners == 1:
        if settings.flush == "async" and power:
            return LegalLoss(anomalies=LOSS, reason="one broker with asynchronous flush lost power")
        return LegalLoss()
    if settings.all_ack:
        if power and (storm.power_several or storm.power_overlapped):
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
    if power and (settings.flush == "async" or storm.power_several or storm.power_overlapped):
        return LegalLoss(
            anomalies=LOSS, reason="every replica acknowledges, and power losses overlapped or flush is asynchronous"
        )
    return LegalLoss()
