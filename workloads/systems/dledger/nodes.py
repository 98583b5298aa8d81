"""The processes of a group: a member each, ours or one of the public library."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.errors import UsageError
from harness.program import PythonProgram
from harness.system import NodeSpec
from workloads.systems.dledger.original import original_member
from workloads.systems.dledger.settings import NEWEST_VERSION, DledgerSettings

GROUP = "storm"
PORT = 20911
MEMBERS = "members"
"""The group of nodes."""
TIMES_MS = {"heartBeatTimeIntervalMs": 2_000, "checkPointInterval": 3_000}
"""DLedger's own times, which `time_scale` multiplies."""
ANSWERED_WITHIN_MS = {
    "minVoteIntervalMs": 300,
    "maxVoteIntervalMs": 1_000,
    "maxWaitAckTimeMs": 2_500,
    "maxPushTimeOutMs": 1_000,
    "leadershipTransferWaitTimeout": 1_000,
}
"""These bound how long answers may be under way, so they are made longer by `time_scale`, and never shorter."""
DATA_FILE_BYTES, INDEX_FILE_BYTES = 64 * 1024, 32 * 512
"""Small, so that a storm fills several files; the same in all members, whose positions have to agree."""


def members(settings: DledgerSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
    """Members of the public library are no replicas: they show their log only while they lead."""
    if mutant is not None and settings.release:
        raise UsageError(f"nothing is planted beside the public DLedger; leave mutant {mutant} out, or release")
    return tuple(_member(settings, mutant, name) for name in settings.names)


def _member(settings: DledgerSettings, mutant: str | None, name: str) -> NodeSpec:
    config: dict[str, Any] = {
        "group": GROUP,
        "selfId": name,
        "peers": ";".join(f"{one}-{one}:{PORT}" for one in settings.names),
        "storeType": settings.store.name,
        "isEnableBatchPush": settings.batch_push,
        "ackDurable": settings.ack_durable,
        # A disk that runs full is refused, and takes nothing away that was acknowledged.
        "enableDiskForceClean": False,
        "mappedFileSizeForEntryData": DATA_FILE_BYTES,
        "mappedFileSizeForEntryIndex": INDEX_FILE_BYTES,
        **{key: max(1, round(ms * settings.time_scale)) for key, ms in TIMES_MS.items()},
        **{key: round(ms * max(1.0, settings.time_scale)) for key, ms in ANSWERED_WITHIN_MS.items()},
    }
    if settings.preferred:
        config["preferredLeaderIds"] = settings.names[settings.preferred - 1]
    if mutant is not None:
        config["mutant"] = mutant
    if name in settings.public:
        return NodeSpec(name=name, groups=(MEMBERS,), program=original_member(settings.release, config), ports=(PORT,))
    kept = "dledger" if settings.release else ""
    program = PythonProgram(main="system_under_test.dledger.node:member", config=config, logs=kept)
    node = NodeSpec(name=name, groups=(MEMBERS,), program=program, ports=(PORT,), replica=True)
    if settings.begins_as_version == NEWEST_VERSION:
        return node
    older = {**config, "version": settings.begins_as_version, "isEnableBatchPush": False}
    return replace(node, program=replace(program, config=older), upgraded=program)
