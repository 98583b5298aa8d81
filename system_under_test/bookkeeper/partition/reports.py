"""What a broker reports of a partition that it owns, and the points at which faults may strike."""

from __future__ import annotations

from system_under_test.runtime.host import Host


class OwnerRole:
    """Whether a broker is an owner, of however many partitions."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._owned: set[str] = set()

    def owns(self, partition: str) -> None:
        if not self._owned:
            self._host.log("role", role="owner")
        self._owned.add(partition)

    def owns_no_more(self, partition: str) -> None:
        self._owned.remove(partition)
        if not self._owned:
            self._host.log("role", role="")


class PartitionReports:
    def __init__(self, host: Host, partition: str, role: OwnerRole) -> None:
        self._host = host
        self._partition = partition
        self._role = role

    def owns(self) -> None:
        self._host.log("owner", partition=self._partition)
        self._role.owns(self._partition)
        self._host.reached("became-owner")

    def owns_no_more(self) -> None:
        """As far as it knows; it may have been so for long."""
        self._host.log("no_owner", partition=self._partition)
        self._role.owns_no_more(self._partition)
        self._host.reached("lost-ownership")

    def listed(self, ledger: int, length: int) -> None:
        self._host.log("ledger_listed", partition=self._partition, ledger=ledger, length=length)
        self._host.reached("list-changed", ledger=ledger)

    def rolled(self, ledger: int) -> None:
        """It is closed, and the next one is not there yet."""
        self._host.reached("ledger-rolled", ledger=ledger)

    def fenced(self, ledger: int) -> None:
        """The ledger takes no entries any more, though its owner has not closed it."""
        self._host.log("ledger_lost", partition=self._partition, ledger=ledger)
        self._host.reached("ledger-lost", ledger=ledger)
