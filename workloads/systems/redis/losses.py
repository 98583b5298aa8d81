"""What Redis under Sentinel may legally lose, by its vendor's own pages.

Replication (https://redis.io/docs/latest/operate/oss_and_stack/management/replication/): replicas are written to
asynchronously, and a primary waits for none of them before it answers. Sentinel
(https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/): the whole is eventually consistent, the last
failover wins, and what an old primary had taken alone is thrown away; `min-replicas-to-write` bounds for how long it
goes on taking writes, and so how many are lost, but lets some be lost all the same.
"""

from __future__ import annotations

from checkers.transactions.meanings import OF_LISTS as OF_LIST_APPEND
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss

HARMLESS = frozenset({"clock", "strobe", "none"})
"""No failover comes of these: sentinels count with a clock that does not jump."""
REASON = (
    "Redis answers writes before its replicas have them, and a failover throws away what the old primary alone had "
    "taken (the vendor's pages on replication and Sentinel)"
)
OF_SETS = ("lost", "stale")
OF_REGISTERS = ("nonlinearizable",)
NEVER_LEGAL = frozenset({"G1a", "G1b", "duplicate-elements", "future-read", "garbage-read", "internal"})
"""Of lists: appends vanish with the old primary and others stand in their place, but a MULTI is still one step, and
what was refused is never there."""
OF_LISTS = tuple(sorted(OF_LIST_APPEND.keys() - NEVER_LEGAL))


def legal_loss(struck: tuple[FaultWindow, ...]) -> LegalLoss:
    """Nothing, unless something struck that can bring a failover."""
    if not any(kind not in HARMLESS for window in struck for kind in window.kinds):
        return LegalLoss()
    return LegalLoss(reason=REASON, in_workloads={"set": OF_SETS, "register": OF_REGISTERS, "list-append": OF_LISTS})
