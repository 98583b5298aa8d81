"""The processes of CMQ: each node is one, with its part of every group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.program import PythonProgram
from harness.system import NodeSpec
from workloads.systems.cmq.settings import NODES, CmqSettings

PORT = 9300
MAIN = "system_under_test.cmq.node:node"
KIB = 1024
LOG_MEMORY_BYTES = 64 * KIB
"""Small, so that a storm goes beyond what is in memory of a log."""
DIGEST_ENTRIES = 50
"""So often nodes report a digest of their state, by which they are held against each other."""
SPREAD_AFTER_MS = 1_000
"""Leaders hand over within a storm."""
REQUEST_TIMEOUT_MS = 3_000
"""Sooner than clients give up, which then know more than that nobody answered."""


def address(node: str) -> str:
    return f"{node}:{PORT}"


def nodes(settings: CmqSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
    planted = {} if mutant is None else {"mutant": mutant}
    return tuple(
        NodeSpec(
            name=name,
            groups=(NODES,),
            program=PythonProgram(main=MAIN, config={**_config(settings), "selfId": name, **planted}),
            ports=(PORT,),
            replica=True,
        )
        for name in settings.names
    )


def _config(settings: CmqSettings) -> Mapping[str, Any]:
    return {
        "peers": ";".join(f"{name}-{address(name)}" for name in settings.names),
        "groups": settings.groups,
        "mostQueues": settings.most_queues,
        "visibility": settings.invisible_ms,
        "messageBytes": settings.message_bytes,
        "fileBytes": settings.file_bytes,
        "snapshotInterval": _milliseconds(settings.snapshot_interval_s),
        "snapshotEntries": settings.snapshot_entries,
        "snapshotLogBytes": settings.snapshot_log_kib * KIB,
        "digestEntries": DIGEST_ENTRIES,
        "logKeptBytes": settings.log_kept_kib * KIB,
        "logMemoryBytes": LOG_MEMORY_BYTES,
        "segmentBytes": settings.segment_kib * KIB,
        "windowEntries": settings.window_entries,
        "batchEntries": settings.batch_entries,
        "batchBytes": settings.batch_kib * KIB,
        "gatheredEntries": settings.gathered_entries,
        "promotionLag": settings.promotion_lag,
        "heartbeatInterval": _milliseconds(settings.heartbeat_s),
        "minElectionTimeout": _milliseconds(settings.election_s),
        "maxElectionTimeout": _milliseconds(settings.longest_election_s),
        "readsByLease": settings.reads_by_lease,
        "spread": settings.spread,
        "spreadAfter": SPREAD_AFTER_MS,
        "requestTimeout": REQUEST_TIMEOUT_MS,
    }


def _milliseconds(time_s: float) -> int:
    return round(time_s * 1_000)
