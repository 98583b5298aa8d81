"""What repair reports of itself, and the points at which faults may strike."""

from __future__ import annotations

from system_under_test.bookkeeper.repair.event import Outcome
from system_under_test.bookkeeper.repair.marks import Mark
from system_under_test.runtime.host import Host


class RepairReports:
    def __init__(self, host: Host) -> None:
        self._host = host

    def auditor(self, *, is_elected: bool) -> None:
        """Elected, or its session is known to be over."""
        self._host.log("auditor", elected=is_elected)
        self._host.log("role", role="auditor" if is_elected else "")
        self._host.reached("auditor-elected" if is_elected else "auditor-over")

    def marked(self, ledger: int, mark: Mark) -> None:
        self._host.log("ledger_marked", ledger=ledger, bookies=list(mark.bookies), every_entry=mark.every_entry)
        self._host.reached("ledger-marked", ledger=ledger)

    def locked(self, ledger: int) -> None:
        self._host.reached("ledger-locked", ledger=ledger)

    def copied(self, ledger: int) -> None:
        """A fragment, whose ensemble is about to be published."""
        self._host.reached("fragment-copied", ledger=ledger)

    def published(self, ledger: int) -> None:
        """And the ledger is still marked."""
        self._host.log("fragment_repaired", ledger=ledger)
        self._host.reached("fragment-published", ledger=ledger)

    def entry_lost(self, ledger: int, entry: int) -> None:
        self._host.log("entry_lost", ledger=ledger, entry=entry)

    def round_ended(self, ledger: int, outcome: Outcome) -> None:
        self._host.log("repair_round", ledger=ledger, outcome=outcome.name.lower())

    def unmarked(self, ledger: int) -> None:
        self._host.log("ledger_unmarked", ledger=ledger)
        self._host.reached("ledger-unmarked", ledger=ledger)

    def left_limbo(self, ledger: int) -> None:
        self._host.log("limbo_left", ledger=ledger)
        self._host.reached("limbo-left", ledger=ledger)
