"""What who writes or ends ledgers reports of them, and the points at which faults may strike."""

from __future__ import annotations

from system_under_test.bookkeeper.bookie.reports import log_of
from system_under_test.bookkeeper.ledger.event import Reason, Reply
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from system_under_test.runtime.host import Host


class LedgerReports:
    def __init__(self, host: Host) -> None:
        self._host = host

    def acknowledged(self, ledger: int, entry: int) -> None:
        """To who appended it, who has not heard of it yet."""
        self._host.log("entry_acknowledged", ledger=ledger, entry=entry)
        self._host.reached("entry-acknowledged", ledger=ledger, entry=entry)

    def refused(self, ledger: int, entry: int) -> None:
        """For certain, though it was sent."""
        self._host.log("entry_refused", ledger=ledger, entry=entry)

    def held(self, ledger: int, entry: int) -> None:
        self._host.reached("acknowledgement-held", ledger=ledger, entry=entry)

    def closed(self, ledger: int, last_entry: int) -> None:
        """As it knows from the metadata."""
        self._host.log("closed", log=log_of(ledger), end=last_entry + 1)

    def recovery_read(self, ledger: int, entry: int, bookie: str, reply: Reply) -> None:
        """What a bookie answered to a recovery that looked for an entry, before it is known what that is worth."""
        self._host.log("recovery_read", ledger=ledger, entry=entry, bookie=bookie, reply=reply.value)

    def recovery_ends(self, ledger: int, last_entry: int) -> None:
        """It has found the last entry, by what bookies have answered so far."""
        self._host.log("recovery_ends", ledger=ledger, last=last_entry)

    def handle_ended(self, ledger: int, reason: Reason) -> None:
        self._host.log("ledger_handle_ended", ledger=ledger, reason=reason.value)

    def publishes(self, metadata: LedgerMetadata) -> None:
        """Is about to."""
        ledger = metadata.ledger
        if metadata.state is LedgerState.OPEN:
            self._host.reached("about-to-change-ensemble", ledger=ledger)
        elif metadata.state is LedgerState.IN_RECOVERY:
            self._host.reached("about-to-mark-recovery", ledger=ledger)
        else:
            self._host.reached("about-to-close", ledger=ledger)

    def published(self, metadata: LedgerMetadata) -> None:
        """And has done nothing about it yet."""
        ledger = metadata.ledger
        self._host.log("ledger_published", ledger=ledger, state=metadata.state.value)
        if metadata.state is LedgerState.OPEN:
            self._host.reached("ensemble-published", ledger=ledger)
        elif metadata.state is LedgerState.IN_RECOVERY:
            self._host.reached("recovery-marked", ledger=ledger)
        else:
            self._host.reached("ledger-closed", ledger=ledger)
