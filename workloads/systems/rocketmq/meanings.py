"""What it means that an invariant of RocketMQ does not hold, by the name under which it is reported."""

from __future__ import annotations

from collections.abc import Mapping

from harness.record.meaning import Meaning

MEANINGS: Mapping[str, Meaning] = {
    "unheld-ack": Meaning(
        says="A replica that may be elected lacked what had been acknowledged.",
        usually="It joined the in-sync set too early, or writes were acknowledged without its acknowledgement.",
    ),
    "not-durable": Meaning(
        says="A node that started again lacked what it had vouched for as durable.",
        usually="It answered before the fsync, or took a failed one for a success.",
    ),
    "too-few-in-sync": Meaning(
        says="A write was taken, or acknowledged, while fewer replicas were in sync than it demands.",
        usually="The demand is not checked, or against a set that is not the current one; or the set shrank while "
        "the write waited.",
    ),
    "laggard-in-sync": Meaning(
        says="A replica counted as in sync long after it had fallen behind.",
        usually="Being caught up is measured by a wrong clock, or against less than the whole log.",
    ),
    "beyond-log": Meaning(
        says="A node took more for confirmed, or had more in its queues, than its log held.",
        usually="It believes what it hears of the confirmed offset, or does not cut its queues with its log.",
    ),
    "passing-offset": Meaning(
        says="A consumer's offset stayed beyond the end of its queue when the log had become shorter.",
        usually="Offsets are not lowered where a log is cut, so that the group passes over what is written next.",
    ),
    "diverging-epochs": Meaning(
        says="Two nodes disagreed on where one epoch begins.",
        usually="An epoch was used before it was durable, twice, or without being recorded.",
    ),
    "torn-log": Meaning(
        says="A log that ends within a message was compared with another.",
        usually="The rest of a message that a crash cut short is taken for there, and nobody sends it again.",
    ),
    "wrong-epochs": Meaning(
        says="What a node had noted of epochs did not fit its log.",
        usually="An epoch is not noted, not durably, or not taken back where the log lost its bytes.",
    ),
    "diverging-commands": Meaning(
        says="Two nodes applied different commands at one place of a replicated log.",
        usually="Something counted as committed that a majority did not hold, or that was overwritten later.",
    ),
    "shared-identity": Meaning(
        says="Two living nodes went by one identity.",
        usually="Who applies for an identity is not compared with who has it.",
    ),
    "learner-elected": Meaning(
        says="A replica that may never lead was elected.",
        usually="The election looks at all replicas alike where no other lives.",
    ),
    "dead-newcomer": Meaning(
        says="A replica that counts as dead joined the in-sync set.",
        usually="Whether who is proposed lives is not looked at when the proposal is decided.",
    ),
    "stale-route": Meaning(
        says="Clients were led back to an older master, or to two masters of one epoch.",
        usually="The broker that announced itself as master last is believed, or a deposed one goes on announcing it.",
    ),
    "overrated-candidate": Meaning(
        says="Who was elected was ranked by a log longer than its own.",
        usually="The election goes by what a node reported before it started again with less.",
    ),
    "needlessly-unclean": Meaning(
        says="A replica that was not in sync was elected although one that was in sync lived.",
        usually="Where unclean elections are allowed, all that live are taken for equals.",
    ),
    "needless-shrink": Meaning(
        says="A replica that had just said that it holds everything was put out of the in-sync set.",
        usually="Since when it lags is measured by a clock that jumps.",
    ),
    "stale-change": Meaning(
        says="The in-sync set was replaced by a node that knew an older one, or led no more.",
        usually="The epochs that a proposal rests on are not compared with those that hold when it is decided.",
    ),
    "stale-answer": Meaning(
        says="A request was answered by a state older than what was decided before it was made.",
        usually="A leader answers without asking whether it still leads, or before it knows what others decided.",
    ),
    "deleted-early": Meaning(
        says="A node deleted data before it had kept them for as long as is promised.",
        usually="Ages are measured by a clock that jumps, or by when a file was begun and not by its last write.",
    ),
    "returned-tail": Meaning(
        says="What a node had cut from its log was there again when it started again.",
        usually="The cut is not durable, or only in memory.",
    ),
}
