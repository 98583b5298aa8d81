"""What may come of a request to a ledger instead of what was asked for."""

from __future__ import annotations


class LedgerError(Exception):
    """`is_definite`: certainly nothing came of what was asked, and nothing ever will."""

    def __init__(self, reason: str, *, is_definite: bool) -> None:
        super().__init__(reason)
        self.is_definite = is_definite


class EntryAbsent(LedgerError):
    """No bookie that should have the entry has it, by what the metadata store says now."""

    def __init__(self, ledger: int, entry: int) -> None:
        super().__init__(f"no bookie has entry {entry} of ledger {ledger}", is_definite=False)


class EntryHarmed(LedgerError):
    """All bookies that should have the entry have answered, and none has it whole: one has it harmed."""

    def __init__(self, ledger: int, entry: int) -> None:
        super().__init__(f"entry {entry} of ledger {ledger} is harmed, and no bookie has it whole", is_definite=False)
