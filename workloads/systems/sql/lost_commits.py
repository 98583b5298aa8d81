"""What a history shows where a database has lost transactions that it had answered: whole ones, the newest first.

Elements are lost from sets; they vanish from lists, and others stand in their place; registers show old values again.
What was rolled back is never shown all the same, nor what nobody wrote, nor half a transaction; money is neither made
nor lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from checkers.transactions.meanings import OF_LISTS, OF_REGISTERS

NEVER_LEGAL = frozenset({"G1a", "G1b", "duplicate-elements", "future-read", "garbage-read", "internal"})
LOST_COMMITS: Mapping[str, tuple[str, ...]] = {
    "list-append": tuple(sorted(OF_LISTS.keys() - NEVER_LEGAL)),
    "rw-register": tuple(sorted(OF_REGISTERS.keys() - NEVER_LEGAL)),
    "set": ("lost", "stale"),
}
"""Workload -> the anomalies that come of it."""
OF_BANK = ("wrong-total", "negative-balance")
OF_LONG_FORK = ("long-fork",)
PROCESSES_ALONE = frozenset({"kill", "kill-process", "restart-loop", "rolling-restart", "scarce-memory"})
"""Kinds of faults that take what a database keeps in the memory of its process."""
ENDS_PROCESSES = PROCESSES_ALONE | {"power", "lost-disk", "old-disk", "short-files"}
"""These, and kinds that take more than that."""
