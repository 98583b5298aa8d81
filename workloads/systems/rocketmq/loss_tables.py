"""What faults take from brokers, and what is seen then: the words that all tables of legal losses have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from workloads.systems.rocketmq.damage import LAST_NS, Damage, Takes
from workloads.systems.rocketmq.settings import RocketmqSettings

TAKEN = {
    "power": Takes.UNSYNCED,
    "failing-fsync": Takes.UNSYNCED,
    "short-files": Takes.SYNCED,
    "bit-rot": Takes.SYNCED,
    "old-disk": Takes.SYNCED,
    "lost-disk": Takes.EVERYTHING,
}
"""Kind of fault -> what it takes from the disks of its nodes."""
AT_LAST = ("failing-fsync", "bit-rot", "old-disk")
"""Of these, kinds that take it not when they strike, but once the node starts again."""
AWAY = {
    "kill": "killed",
    "power": "without power",
    "pause": "paused",
    "partition": "cut off",
    "kill-process": "killed",
    "scarce-memory": "killed",
    "pause-process": "paused",
    "restart-loop": "killed again and again",
    "rolling-restart": "restarted",
    "upgrade": "restarted",
    "short-files": "killed",
    "old-disk": "killed",
    "lost-disk": "killed",
    "failing-fsync": "unable to write",
    "disk-errors": "unable to write",
    "full-disk": "unable to write",
}
"""Kinds of faults that take a broker away for a while, in words."""

APART = ("slow-links", "lossy-links", "narrow-links", "flapping-links", "held-links", "slow-nodes", "slow-process")
"""Kinds that let a broker lag, or count as dead, without taking it away: what only some have may be lost under them."""

UNREAD = ("lost-write", "unseen", "lost", "unconsumed", "lost-retry", "delivered-though-taken-back")
"""What becomes of messages that are lost; one of them may have taken another one back."""
UNASKED_FOR = ("lost", "unconsumed", "lost-retry", "delivered-late", "delivered-though-taken-back")
"""What becomes of messages that a slave alone has: consumers ask its master for them as long as that lives."""
READ = ("dirty-read",)
"""What becomes of them if they were readable before."""
UNREAD_TRACES = (
    *("inconsistent-offsets", "nonmonotonic-send"),
    *("redelivered-early", "redelivered-after-ack", "times-not-risen"),
    "delivered-again",
)
GIVEN_AGAIN = ("unconsumed", "lost-retry")
"""What becomes of messages that get offsets which a group had read already: its members learn at their next pull that
the log has become shorter, and go on at its end."""
PASSED_OVER = ("consumer-offset-skip", "poll-skip")
"""What consumers do that had read farther than the log reached then, and go on from there once it has grown."""
READ_TRACES = (
    *("nonmonotonic-poll", "poll-skip", "consumer-offset-skip", "passed-over", "overtaken"),
    *("wrong-retry-count", "early-dead-letter"),
    *("confirmed-lost", "rewritten-log"),
)
"""What else is seen then: offsets are given out again."""
ALL = (*UNREAD, *READ, *UNREAD_TRACES, *READ_TRACES)

DELAYING = (*APART, "partition", "pause", "pause-process", "slow-disk", "full-disk", "disk-errors", "failing-fsync")
"""Kinds under which what a slave says of its log may be old when its master hears it."""

OF_DISKS = (
    "not-durable",
    "unheld-ack",
    "beyond-log",
    "diverging-epochs",
    "wrong-epochs",
    "overrated-candidate",
    "returned-tail",
    "fenced-write",
)
"""What a broker does legally that lost what it had synced, its noted epochs among it."""

MISPLACED = ("internal-skip", "poll-skip")
"""What a rotten entry of a consume queue leads to, which may be another message than the one it was made for."""

COPIED = ("rewritten-log",)
"""What a rotten byte of the log leads to that nobody has read before another replica copies it anew."""
UNFOUND = (*UNREAD, *READ, "torn-batch")
"""What becomes of that message where no other replica has an entry of it."""

OF_CLOCKS = ("delivered-early", "delivered-though-taken-back")
"""What a broker does whose clock is ahead, or by whose clock it was not too late yet."""
WRONG_CLOCKS = ("clock", "strobe", "slow-nodes", "slow-process")
"""Kinds under which the wall clock of a node is not the true one."""

CATCH_UP_S = 15.0
"""How long after a fault its replica may still be catching up, at time scale 1."""
LEAST_CATCH_UP_S = 5.0
PULLS_LATE_S = 15.0


def catch_up_ns(settings: RocketmqSettings) -> int:
    return round(max(CATCH_UP_S * settings.time_scale, LEAST_CATCH_UP_S) * 1e9)


def learned_ns(settings: RocketmqSettings) -> int:
    """How long after a loss members may go on without knowing of it: who has much to consume pulls late."""
    return catch_up_ns(settings) + round(PULLS_LATE_S * 1e9)


def synced_taken(fault: FaultWindow, brokers: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(kind, broker) of what a fault took that had been synced."""
    for kind in fault.kinds:
        if TAKEN.get(kind, Takes.UNSYNCED) is not Takes.UNSYNCED:
            yield from ((kind, node) for node in fault.nodes_of(kind) if node in brokers)


def of_damaged_disks(fault: FaultWindow, brokers: Sequence[str]) -> Iterator[Excuse]:
    """Where nobody is elected: whoever lost what was synced may lack anything from there on, and so may who copies."""
    taken = dict.fromkeys(kind for kind, _ in synced_taken(fault, brokers))
    if taken:
        reason = f"{' and '.join(taken)} at {seconds(fault.start_ns)} took what was synced"
        yield Excuse(anomalies=OF_DISKS, reason=reason, from_ns=fault.start_ns, until_ns=LAST_NS)


def of_rot(fault: FaultWindow, brokers: Sequence[str]) -> Iterator[Excuse]:
    """What rotten entries of queues lead to, which have no checksums."""
    if "bit-rot" in fault.kinds and not set(brokers).isdisjoint(fault.nodes):
        reason = f"consume queues have no checksums, and bits of disks rotted at {seconds(fault.start_ns)}"
        copied = f"bits of disks rotted at {seconds(fault.start_ns)}, and replicas copy what stands there"
        for anomalies, words in ((MISPLACED, reason), (COPIED, copied)):
            # What was written before rots, and nothing shows before that.
            yield Excuse(
                anomalies=anomalies, reason=words, from_ns=0, until_ns=fault.stop_ns, seen_from_ns=fault.start_ns
            )
        if len(brokers) == 1:
            yield Excuse(anomalies=UNFOUND, reason=reason, from_ns=0, until_ns=fault.stop_ns)


def of_wrong_clocks(fault: FaultWindow, brokers: Sequence[str]) -> Iterator[Excuse]:
    """Delays are added to wall clocks: what was taken by a wrong one, or waited while one was wrong, is early."""
    if not set(WRONG_CLOCKS).isdisjoint(fault.kinds) and not set(brokers).isdisjoint(fault.nodes):
        reason = f"clocks of brokers were wrong ({fault.name} at {seconds(fault.start_ns)})"
        yield Excuse(anomalies=OF_CLOCKS, reason=reason, from_ns=fault.start_ns, until_ns=fault.stop_ns)


def lost(damage: Damage) -> str:
    if "power" in damage.fault.kinds:
        return f"{damage.node} lost power at {seconds(damage.fault.start_ns)}"
    return f"{damage.node} lost {damage.takes.value} at {seconds(damage.fault.start_ns)} ({damage.fault.name})"


def seconds(time_ns: int) -> str:
    return f"{time_ns / 1e9:.1f} s"
