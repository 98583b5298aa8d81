"""What is given to the search for each planted bug, beside the bug: as little as can be.

Free draws get to a workload in one of twelve storms, and to a deployment or a setting of a workload in one of thirty:
where a bug can show there alone, a search would only tell how often it is drawn. The page tells what was given.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.record.scenario import SettingValue
from stormproof.search.space import Space

WORKLOADS: Mapping[str, tuple[str, ...]] = {
    "consumption": (
        "commit-on-pull",
        "dead-letters-dropped",
        "ghost-members",
        "lock-granted-twice",
        "offset-made-up",
        "retry-count-kept",
        "retry-not-stored",
        "retry-queues-kept",
        "retry-unassigned",
        "returns-unreplicated",
        "strict-lock-unnoted",
    ),
    "delayed": (
        "async-skip",
        "no-room-left",
        "progress-first",
        "retry-cap",
        "slave-progress-old",
        "taken-back-forgotten",
        "timer-progress-kept",
        "wheel-wrap",
    ),
    "log": (
        "bogus-ack",
        "dual-write-alone",
        "filter-skips-one",
        "follows-blindly",
        "freeze-not-replicated",
        "index-not-durable",
        "last-file-member",
        "logic-offset-overlap",
        "mapping-epoch-ignored",
        "old-segment-writable",
        "sends-unsynced",
        "stale-epochs-kept",
        "torn-batch",
        "waiting-counts",
        "wall-clock-expiry",
    ),
    "pop": (
        "ack-before-replicated",
        "checkpoint-after-reply",
        "left-over-skipped",
        "order-info-lost",
        "orderly-not-blocked",
        "pop-count-kept",
        "proxy-acks-unasked",
        "proxy-sends-unconfirmed",
        "renew-after-ack",
        "renewal-keeps-old",
        "revival-passes-over",
        "revive-drop",
        "revive-log-not-read",
        "revive-next",
        "stream-keeps-session",
    ),
    "register": ("local-read", "serve-before-noop"),
    "transactional": ("check-ignores-rollback", "end-before-message", "half-visible", "old-halves-unasked"),
}
"""Workload -> bugs that clients see in no other, or hardly."""

STATIC: Mapping[str, SettingValue] = {"groups": 2, "static_queues": 4, "move_share": 0.05}
SETTINGS: Mapping[str, Mapping[str, SettingValue]] = {
    "async-skip": {"delay_delivery": "async"},
    "dual-write-alone": {"deployment": "dual-write"},
    "filter-skips-one": {"tags": 2},
    "follows-blindly": {"deployment": "async-slaves"},
    "freeze-not-replicated": STATIC,
    "index-not-durable": {"tags": 2},
    "last-file-member": {"retention_s": 100.0, "sync_from_last_file": True},
    "learner-elected": {"learners": 1},
    "left-over-skipped": {"orderly": True},
    "lock-granted-twice": {"orderly": True},
    "logic-offset-overlap": STATIC,
    "mapping-epoch-ignored": STATIC,
    "old-segment-writable": STATIC,
    "no-room-left": {"values": "bordering"},
    "order-info-lost": {"orderly": True},
    "orderly-not-blocked": {"orderly": True},
    "poison-unguarded": {"values": "bordering"},
    "proxy-acks-unasked": {"client": "grpc"},
    "proxy-sends-unconfirmed": {"client": "grpc"},
    "retry-unassigned": {"assignment": "broker"},
    "sends-unsynced": {"deployment": "async-slaves"},
    "stale-epochs-kept": {"retention_s": 10.0},
    "stream-keeps-session": {"client": "grpc", "values": "bordering"},
    "strict-lock-unnoted": {"orderly": True, "strict_locks": True},
    "taken-back-forgotten": {"taken_back_share": 0.3},
    "torn-batch": {"batch_share": 0.5, "brokers": 1, "flush": "async", "min_in_sync_replicas": 1},
    "unclean-though-clean-lives": {"unclean_election": True},
    "waiting-counts": {"request_places": 32, "values": "bordering"},
    "wall-clock-expiry": {"retention_s": 100.0},
}
"""Bug -> what has to be set for its code to run at all."""


OF_CONTROLLERS: Mapping[str, SettingValue] = {"deployment": "controller"}
"""For all others: what they break is controller mode, or as well to be seen there."""


OF_DLEDGER: Mapping[str, Mapping[str, SettingValue]] = {
    "ack-not-durable": {"ack_durable": True},
    "batch-ack-all": {"batch_push": True},
    "compare-starts-over": {"store": "memory"},
    "compare-unsynced": {"ack_durable": True},
    "transfer-without-lag-check": {"preferred": 2},
    "wiped-not-pushed": {"send_share": 0.005},
}
"""The same of DLedger's bugs."""

OF_BOOKKEEPER: Mapping[str, Mapping[str, SettingValue]] = {
    "close-without-cas": {"bookies": 3},
    "corrupt-is-absent": {"ack_quorum": 3},
    "deferred-failure": {"ack_quorum": 3},
    "ensemble-overtaken": {"ensemble": 4},
    "fragment-wide-check": {"ensemble": 4},
    "no-limbo": {"journal_sync": False},
    "recover-from-zero": {"ack_quorum": 3},
    "write-set-kept": {"ensemble": 4, "ack_quorum": 3},
}
"""The same of BookKeeper's bugs. In an ensemble of four each change turns the write sets of three, and a bookie's own
first and last entries are not the fragment's. With an ack quorum of three nothing is acknowledged without the bookie
that fails, nor then without the one in its place, and recovery goes by the first answer. Only a writer that finds no
other bookie closes a ledger of which not all is acknowledged."""

OF_CMQ: Mapping[str, Mapping[str, SettingValue]] = {"two-changes": {"nodes": 5}}
"""The same of CMQ's bugs. Of three nodes no two are ever out at once."""

OF_OTHERS = {"bookkeeper": OF_BOOKKEEPER, "cmq": OF_CMQ, "dledger": OF_DLEDGER}


def space_for(mutant: str, system: str = "rocketmq") -> Space:
    """The space in which this bug is searched for."""
    if system in OF_OTHERS:
        workload = "log" if system == "bookkeeper" else None
        return Space(system=system, workload=workload, mutant=mutant, settings=OF_OTHERS[system].get(mutant, {}))
    workload = next((workload for workload, mutants in WORKLOADS.items() if mutant in mutants), None)
    return Space(
        system=system,
        workload=workload,
        mutant=mutant,
        settings=SETTINGS.get(mutant, {} if workload else OF_CONTROLLERS),
    )
