"""What Redis may legally lose, alone and under Sentinel, by its vendor's own pages.

Persistence (https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/), of a server's log of writes:
`appendfsync always` makes what is written durable before it answers; under `everysec` a disaster may take one second of
data, and under `no` what the operating system had not yet written. Latency
(https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/latency/): under `everysec` a write waits up
to two seconds in the server's own memory while the fsync before it takes its time. A log that is broken in the middle
keeps the server from starting; `redis-check-aof --fix` cuts off all from there on.

Replication (https://redis.io/docs/latest/operate/oss_and_stack/management/replication/): replicas are written to
asynchronously, and a primary waits for none of them before it answers. Sentinel
(https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/): the whole is eventually consistent, the last
failover wins, and what an old primary had taken alone is thrown away; `min-replicas-to-write` bounds for how long it
goes on taking writes, and so how many are lost, but lets some be lost all the same.
"""

from __future__ import annotations

from enum import Enum

from checkers.transactions.meanings import OF_LISTS as OF_LIST_APPEND
from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss


class Fsync(Enum):
    """`appendfsync`."""

    ALWAYS = "always"
    EVERYSEC = "everysec"
    NO = "no"


HARMLESS = frozenset({"clock", "strobe", "none"})
"""No failover comes of these: sentinels count with a clock that does not jump."""
REASON = (
    "Redis answers writes before its replicas have them, and a failover throws away what the old primary alone had "
    "taken (the vendor's pages on replication and Sentinel)"
)
OF_SETS = ("lost", "stale")
OF_REGISTERS = ("nonlinearizable",)
NEVER_LEGAL = frozenset({"G1a", "G1b", "duplicate-elements", "future-read", "garbage-read", "internal"})
"""Anomalies of lists that no loss explains: appends vanish with the old primary and others stand in their place, but a
MULTI is still one step, and what was refused is never there."""
OF_LISTS = tuple(sorted(OF_LIST_APPEND.keys() - NEVER_LEGAL))

POWER = frozenset({"power"})
IN_MEMORY = frozenset({"power", "kill", "restart-loop", "rolling-restart"})
"""Kinds of faults that take what a server has not yet written."""
HINDERS_FSYNC = frozenset(
    {"slow-disk", "failing-fsync", "disk-errors", "full-disk", "slow-nodes", "slow-process", "pause"}
)
"""Kinds of faults under which the last fsync may be longer ago than it should."""
NO_DISK = frozenset({"lost-disk", "old-disk", "short-files", "bit-rot"})
"""Kinds of faults that take what was durable."""
SECOND_NS = 10**9
AT_RISK_NS = 5 * SECOND_NS
"""How long before a fault is in the log of faults a write may be lost under `everysec`: it may wait two seconds in
memory, and then one more for the next fsync; the fault is put down once it has struck, which may take two seconds on a
busy machine."""
EVERY_SECOND = (
    "with appendfsync everysec the last second of data may go in a disaster, and two more while an fsync takes its "
    "time (the vendor's pages on persistence and latency)"
)
NEVER = "with appendfsync no the disk has what the operating system wrote by itself (the vendor's page on persistence)"
WITHOUT_DISK = "a fault took from the only server what was durable on its disk"


def of_failover(struck: tuple[FaultWindow, ...]) -> LegalLoss:
    """Under Sentinel: nothing, unless something struck that can bring a failover. What a disk loses is within it."""
    if not any(kind not in HARMLESS for window in struck for kind in window.kinds):
        return LegalLoss()
    return LegalLoss(reason=REASON, in_workloads={"set": OF_SETS, "register": OF_REGISTERS, "list-append": OF_LISTS})


def of_disk(struck: tuple[FaultWindow, ...], appendfsync: Fsync) -> LegalLoss:
    """Alone: what was not durable when the server ended; of sets only what was added shortly before."""
    if any(NO_DISK & set(window.kinds) for window in struck):
        return LegalLoss(anything=WITHOUT_DISK)
    takes, reason = {
        Fsync.ALWAYS: (frozenset[str](), ""),
        Fsync.EVERYSEC: (IN_MEMORY, EVERY_SECOND),
        Fsync.NO: (POWER, NEVER),
    }[appendfsync]
    ends = [window for window in struck if takes & set(window.kinds)]
    if not ends:
        return LegalLoss()
    excuses = tuple(
        Excuse(
            anomalies=("lost",),
            reason=reason,
            from_ns=0 if appendfsync is Fsync.NO else _at_risk_from(end, struck),
            until_ns=end.stop_ns,
        )
        for end in ends
    )
    return LegalLoss(reason=reason, in_workloads={"register": OF_REGISTERS, "list-append": OF_LISTS}, excuses=excuses)


def _at_risk_from(end: FaultWindow, struck: tuple[FaultWindow, ...]) -> int:
    """Since when what was written may not have been durable."""
    hindered = [one.start_ns for one in struck if HINDERS_FSYNC & set(one.kinds) and one.start_ns <= end.start_ns]
    return max(0, min([end.start_ns, *hindered]) - AT_RISK_NS)
