"""How repair is put together in a bookie's process."""

from __future__ import annotations

from system_under_test.bookkeeper.ledger.driver import LedgerClient
from system_under_test.bookkeeper.ledger.metadata import Quorums
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.repair.config import RepairConfig
from system_under_test.bookkeeper.repair.driver import LocalBookie, Repair
from system_under_test.bookkeeper.repair.parts import RepairParts
from system_under_test.bookkeeper.repair.reports import RepairReports
from system_under_test.bookkeeper.repair.rounds import Rounds
from system_under_test.metadata.access import MetadataAccess
from system_under_test.node.assembly import Assembly, Service
from system_under_test.node.settings import read_config
from system_under_test.runtime.host import Host

NEVER_CREATED = Quorums(ensemble=1, write=1, ack=1)
"""Repair ends ledgers, and creates none."""


def repair_services(host: Host, node: Assembly, access: MetadataAccess, bookie: LocalBookie) -> list[Service]:
    """To be run after `bookie`. Raises ValueError for a wrong setting."""
    config, ledger_parts = read_config(RepairConfig, node.config), node.parts(LedgerParts)
    parts, reports = node.parts(RepairParts), RepairReports(host)
    ledgers = LedgerClient(host, access, NEVER_CREATED, parts=ledger_parts)
    rounds = Rounds(host, access, ledgers, config, parts=parts, ledger_parts=ledger_parts, reports=reports)
    return [ledgers, Repair(host, access, bookie, rounds, config, parts=parts, reports=reports)]
