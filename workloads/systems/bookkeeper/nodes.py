"""The processes of BookKeeper: nodes of the metadata store, bookies, and brokers of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.program import PythonProgram
from harness.system import NodeSpec
from workloads.systems.bookkeeper.settings import BOOKIES, BROKERS, METADATA, METADATA_NODES, BookkeeperSettings

METADATA_PORT, BOOKIE_PORT, BROKER_PORT = 2281, 3181, 6650
METADATA_ADDRESSES = tuple(f"{node}:{METADATA_PORT}" for node in METADATA_NODES)
PARTITION = "storm-{}"
"""The name of a partition, by its number."""
MAIN = "system_under_test.bookkeeper.node:{}"
FILE_BYTES = 64 * 1024
"""Small, so that a storm fills several journals and entry logs."""
HEARTBEATS_A_TIMEOUT = 4
AUDIT_MS = 5_000
"""The auditor looks at bookies and at ledgers as often, so that copies are back within a storm's calm."""
RETRY_MS = 1_000
"""How soon repair looks again at what it could not mend: within a storm's calm, many times."""
ANSWER_TIMEOUT_MS = 2_000
"""So long a bookie, or a node of the metadata store, is waited for."""


def nodes(settings: BookkeeperSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
    return (
        *(_node(name, METADATA, METADATA_PORT, _metadata(settings, name), mutant) for name in METADATA_NODES),
        *(_node(name, BOOKIES, BOOKIE_PORT, _bookie(settings), mutant) for name in settings.bookie_names),
        *(_node(name, BROKERS, BROKER_PORT, _broker(settings), mutant) for name in settings.broker_names),
    )


def _node(name: str, group: str, port: int, config: Mapping[str, Any], mutant: str | None) -> NodeSpec:
    mains = {METADATA: "metadata", BOOKIES: "bookie", BROKERS: "broker"}
    planted = {} if mutant is None else {"mutant": mutant}
    program = PythonProgram(main=MAIN.format(mains[group]), config={**config, **planted})
    return NodeSpec(name=name, groups=(group,), program=program, ports=(port,), replica=group == BOOKIES)


def _metadata(settings: BookkeeperSettings, name: str) -> Mapping[str, Any]:
    timeout_ms = round(settings.session_timeout_s * 1_000)
    return {
        "metadataSelfId": name,
        "metadataPeers": ";".join(f"{node}-{node}:{METADATA_PORT}" for node in METADATA_NODES),
        "sessionTimeout": timeout_ms,
        "sessionHeartbeat": timeout_ms // HEARTBEATS_A_TIMEOUT,
        "raftHeartbeatInterval": _scaled(100, settings),
        "raftMinElectionTimeout": _scaled(500, settings),
        "raftMaxElectionTimeout": _scaled(1_000, settings),
    }


def _client_of_metadata(settings: BookkeeperSettings) -> Mapping[str, Any]:
    return {
        "metadataServers": list(METADATA_ADDRESSES),
        "metadataAnswerTimeout": _scaled(ANSWER_TIMEOUT_MS, settings),
    }


def _scaled(time_ms: float, settings: BookkeeperSettings) -> int:
    return round(time_ms * settings.time_scale)


def _bookie(settings: BookkeeperSettings) -> Mapping[str, Any]:
    return {
        **_client_of_metadata(settings),
        "bookiePort": BOOKIE_PORT,
        "journalSyncData": settings.journal_sync,
        "journalMaxSize": FILE_BYTES,
        "openLedgerRereplicationGracePeriod": round(settings.open_grace_s * 1_000),
        "auditorReplicasCheckInterval": round(settings.check_entries_s * 1_000),
        "auditorPeriodicBookieCheckInterval": AUDIT_MS,
        "auditorPeriodicCheckInterval": AUDIT_MS,
        "repairRetryInterval": RETRY_MS,
    }


def _broker(settings: BookkeeperSettings) -> Mapping[str, Any]:
    return {
        **_client_of_metadata(settings),
        "brokerPort": BROKER_PORT,
        "bookieTimeout": _scaled(ANSWER_TIMEOUT_MS, settings),
        "partitions": ";".join(PARTITION.format(number) for number in range(settings.partitions)),
        "ensembleSize": settings.ensemble,
        "writeQuorum": settings.write_quorum,
        "ackQuorum": settings.ack_quorum,
        "placement": settings.placement.value,
        "rollEntries": settings.roll_entries,
        "explicitLacInterval": round(settings.explicit_lac_s * 1_000),
    }
