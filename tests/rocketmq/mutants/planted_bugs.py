"""Planted bugs with a storm that exposes each, and the anomalies that name the broken guarantee.

The healthy system must come through the same storms on the same seeds. Where a storm's configuration may
legally lose messages, the adapter's table says so, and such a run is no violation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.record.scenario import Scenario, SettingValue

LOST = frozenset({"lost-write", "unseen"})
DIRTY = frozenset({"dirty-read"})
DIVERGED = frozenset({"diverging-replicas"})
NOT_LINEARIZABLE = frozenset({"nonlinearizable"})
WHOLE_STORM_S = 60.0


@dataclass(frozen=True, kw_only=True)
class PlantedBug:
    mutant: str
    guarantee: str
    """The promise that it breaks."""
    anomalies: frozenset[str]
    """At least one of them must be found for the bug to count as caught."""
    nemesis: tuple[str, ...]
    shown_by_nodes: frozenset[str] = frozenset()
    """What the nodes themselves show of it, by their events or where invariants are watched, whatever clients noticed;
    empty for a bug that they do not show."""
    first_seed: int = 0
    """Of a storm that exposes it and costs little: `make gate` begins with this one, `make mutants` with 0."""
    first_storm_s: float = WHOLE_STORM_S
    """So long `make gate` lets that first storm last, for it exposes the bug so early."""
    workload: str = "log"
    settings: Mapping[str, SettingValue] = field(default_factory=dict)

    concurrency: int = 10

    def scenario(self, seed: int, *, planted: bool, storm_s: float = WHOLE_STORM_S) -> Scenario:
        return Scenario(
            system="rocketmq",
            workload=self.workload,
            nemesis=self.nemesis,
            settings=self.settings,
            mutant=self.mutant if planted else None,
            rate=200.0,
            concurrency=self.concurrency,
            time_limit_s=storm_s,
            seed=seed,
        )


ALTERNATELY = ("kill one of brokers every 9 for 7", "kill brokers every 8 for 1")
"""With two brokers: often too few are in sync to write anything, and then the master starts anew."""
LOST_ELEMENT = frozenset({"lost"})

FORGETFUL_VOTERS = (
    "bridge in controllers every 10 for 9",
    "power off controllers every 2.1 for 0.05",
    "power off one of controllers every 1.3 for 0.05",
)
LATE_READERS = ("isolate active-controller every 6 for 3",)
"""With many clients, of which most read: one that writes to a cut-off leader waits, and asks it nothing more."""

PLANTED_BUGS = (
    PlantedBug(
        mutant="flush-lie",
        guarantee="acknowledged messages survive (LA)",
        anomalies=LOST,
        shown_by_nodes=frozenset({"confirmed-lost", "rewritten-log"}),
        first_storm_s=10,
        nemesis=("power off primary every 10 for 2",),
        settings={"brokers": 1, "min_in_sync_replicas": 1},
    ),
    PlantedBug(
        mutant="ack-before-append",
        guarantee="acknowledged messages survive (LA)",
        anomalies=LOST,
        shown_by_nodes=frozenset({"confirmed-lost"}),
        first_seed=22,
        first_storm_s=30,
        nemesis=("isolate primary and restart brokers every 15 for 8",),
    ),
    PlantedBug(
        mutant="unheard-is-dead",
        guarantee="acknowledged messages survive (LA)",
        anomalies=LOST,
        shown_by_nodes=frozenset({"confirmed-lost", "rewritten-log"}),
        first_seed=12,
        nemesis=("power off controllers and power off primary every 25 for 2",),
        settings={"flush": "async", "time_scale": 1.0},
    ),
    PlantedBug(
        mutant="dispatch-to-max",
        guarantee="no uncommitted message is read (DR)",
        anomalies=DIRTY,
        shown_by_nodes=frozenset({"fenced-write", "confirmed-lost"}),
        first_storm_s=15,
        nemesis=("isolate primary every 12 for 6",),
    ),
    PlantedBug(
        mutant="silent-unclean",
        guarantee="acknowledged messages survive (LA)",
        anomalies=LOST,
        shown_by_nodes=frozenset({"unclean-election"}),
        first_storm_s=20,
        nemesis=("isolate one of brokers every 14 for 9", "kill majority of brokers every 6 for 4"),
    ),
    PlantedBug(
        mutant="vote-not-durable",
        guarantee="metadata is linearizable (NL)",
        anomalies=NOT_LINEARIZABLE,
        shown_by_nodes=frozenset({"two-leaders", "epoch-back"}),
        first_seed=11,
        nemesis=FORGETFUL_VOTERS,
        workload="register",
    ),
    PlantedBug(
        mutant="ignore-demotion",
        guarantee="one master at a time, acknowledged messages survive (DM, LA)",
        anomalies=LOST,
        shown_by_nodes=frozenset({"fenced-write"}),
        nemesis=("isolate primary every 15 for 8",),
    ),
    PlantedBug(
        mutant="demotion-acks",
        guarantee="acknowledged messages survive (LA)",
        anomalies=LOST,
        shown_by_nodes=frozenset({"unheld-ack"}),
        first_seed=4,
        first_storm_s=10,
        nemesis=("partition", "kill", "pause"),
    ),
    PlantedBug(
        mutant="shrink-first",
        guarantee="acknowledged messages survive (LA)",
        anomalies=LOST,
        shown_by_nodes=frozenset({"fenced-write", "confirmed-lost"}),
        first_storm_s=20,
        nemesis=("isolate primary with one of controllers every 20 for 10", "isolate primary every 13 for 8"),
        settings={"min_in_sync_replicas": 1},
    ),
    PlantedBug(
        mutant="truncate-by-epoch-only",
        guarantee="replicas hold the same messages at the same offsets (DIV)",
        anomalies=DIVERGED,
        shown_by_nodes=frozenset({"diverging-logs"}),
        first_seed=12,
        first_storm_s=15,
        nemesis=("isolate primary every 12 for 6",),
        # With one queue what follows the dirty tail goes on in the queue's order, so the replica serves it; with
        # several it mostly finds a gap in its consume queues and stops, which is no proof of anything.
        settings={"queues": 1},
    ),
    PlantedBug(
        mutant="wall-clock-expiry",
        guarantee="acknowledged messages are kept for as long as is promised (LA)",
        # What went too early has expired by the time of the final reads.
        anomalies=LOST | {"deleted-early"},
        nemesis=("clock",),
        settings={"retention_s": 40.0},
    ),
    PlantedBug(
        mutant="local-read",
        guarantee="a read sees every write completed before it (ST)",
        anomalies=NOT_LINEARIZABLE,
        nemesis=("isolate active-controller every 10 for 5",),
        workload="register",
    ),
    PlantedBug(
        mutant="local-read",
        guarantee="a read sees every write completed before it (ST)",
        anomalies=frozenset({"out-of-bounds"}),
        first_storm_s=30,
        nemesis=LATE_READERS,
        workload="counter",
        settings={"read_share": 0.9},
        concurrency=50,
    ),
    PlantedBug(
        mutant="vote-not-durable",
        guarantee="what the controllers agreed on stays (LA)",
        anomalies=frozenset({"incompatible-order"}),
        shown_by_nodes=frozenset({"two-leaders", "epoch-back"}),
        first_seed=41,
        first_storm_s=30,
        nemesis=FORGETFUL_VOTERS,
        workload="list-append",
    ),
    PlantedBug(
        mutant="fractured-read",
        guarantee="a transaction happens at one moment",
        anomalies=frozenset({"wrong-total"}),
        first_storm_s=10,
        nemesis=("partition",),
        workload="bank",
    ),
    PlantedBug(
        mutant="fractured-read",
        guarantee="two writes are seen in one order by everybody",
        anomalies=frozenset({"long-fork"}),
        first_seed=22,
        first_storm_s=10,
        nemesis=("partition",),
        workload="long-fork",
    ),
    PlantedBug(
        mutant="local-read",
        guarantee="what a process has read it never reads smaller again",
        anomalies=frozenset({"nonmonotonic-read"}),
        first_storm_s=10,
        nemesis=LATE_READERS,
        workload="monotonic",
        settings={"read_share": 0.9},
        concurrency=50,
    ),
    *(
        PlantedBug(
            mutant=mutant,
            guarantee=guarantee,
            anomalies=frozenset(anomalies),
            first_seed=first_seed,
            first_storm_s=first_storm_s,
            nemesis=("partition", "kill"),
            workload="pop",
        )
        for mutant, first_seed, first_storm_s, guarantee, anomalies in (
            ("checkpoint-after-reply", 12, 10, "what was popped comes until it is acknowledged (LA)", {"lost"}),
            ("revive-drop", 0, 15, "what was popped comes until it is acknowledged (LA)", {"lost"}),
            ("revival-passes-over", 0, 15, "what was popped comes until it is acknowledged (LA)", {"lost"}),
            ("revive-log-not-read", 0, WHOLE_STORM_S, "what was popped comes until it is acknowledged (LA)", {"lost"}),
            (
                "revive-next",
                0,
                15,
                "the message that was not acknowledged comes again (LA, DUP)",
                {"lost", "redelivered-after-ack"},
            ),
            ("renew-after-ack", 0, 15, "what was acknowledged does not come again (DUP)", {"redelivered-after-ack"}),
            (
                "ack-before-replicated",
                11,
                30,
                "what was acknowledged does not come again (DUP)",
                {"redelivered-after-ack"},
            ),
            (
                "renewal-keeps-old",
                0,
                15,
                "a changed invisible time counts (DUP)",
                {"redelivered-early", "redelivered-after-ack"},
            ),
            ("pop-count-kept", 0, 15, "a message says how often it came", {"times-not-risen"}),
        )
    ),
    *(
        PlantedBug(
            mutant=mutant,
            guarantee=guarantee,
            anomalies=frozenset({anomaly}),
            first_storm_s=first_storm_s,
            nemesis=("partition", "kill"),
            workload="pop",
            settings={"client": "grpc"},
        )
        for mutant, first_storm_s, guarantee, anomaly in (
            ("proxy-acks-unasked", 10, "what was acknowledged does not come again (DUP)", "redelivered-after-ack"),
            ("proxy-sends-unconfirmed", WHOLE_STORM_S, "what was sent comes until it is acknowledged (LA)", "lost"),
        )
    ),
    *(
        PlantedBug(
            mutant=mutant,
            guarantee=guarantee,
            anomalies=frozenset(anomalies),
            first_storm_s=15,
            nemesis=("partition", "kill"),
            workload="pop",
            settings={"orderly": True},
        )
        for mutant, guarantee, anomalies in (
            ("orderly-not-blocked", "in order, a queue waits for whoever has of it", {"redelivered-early"}),
            ("left-over-skipped", "in order, nothing comes before what lies before it", {"overtaken"}),
            (
                "order-info-lost",
                "a new master knows what was popped in order (DUP)",
                {"redelivered-early", "redelivered-after-ack", "overtaken"},
            ),
        )
    ),
    PlantedBug(
        mutant="strict-lock-unnoted",
        guarantee="in order, with strict locks a queue is one member's at a time under all masters",
        anomalies=frozenset({"overlap"}),
        first_seed=3,
        first_storm_s=20,
        nemesis=("isolate primary every 10 for 6",),
        workload="consumption",
        settings={"orderly": True, "strict_locks": True},
    ),
    PlantedBug(
        mutant="retry-unassigned",
        guarantee="what a group failed to consume comes again (LA)",
        anomalies=frozenset({"lost-retry", "stuck-consumer"}),
        first_storm_s=15,
        nemesis=("kill primary every 15 for 3",),
        workload="consumption",
        settings={"assignment": "broker"},
    ),
    PlantedBug(
        mutant="revive-drop",
        guarantee="what was popped comes until it is acknowledged (LA)",
        anomalies=frozenset({"unconsumed", "lost-retry"}),
        first_storm_s=10,
        nemesis=("partition", "kill"),
        workload="consumption",
        settings={"popping": True},
    ),
    *(
        PlantedBug(
            mutant=mutant,
            guarantee=guarantee,
            anomalies=frozenset(anomalies),
            first_seed=first_seed,
            first_storm_s=first_storm_s,
            nemesis=("kill primary every 6 for 2",),
            settings={"groups": 2, "static_queues": 4, "move_share": 0.02},
        )
        for mutant, first_seed, first_storm_s, guarantee, anomalies in (
            (
                "old-segment-writable",
                0,
                WHOLE_STORM_S,
                "a queue that moves stays one queue (RO, LA)",
                {"lost-write", "stray-offset"},
            ),
            ("logic-offset-overlap", 0, WHOLE_STORM_S, "an offset is used once (DIV)", {"inconsistent-offsets"}),
            (
                "freeze-not-replicated",
                12,
                20,
                "a segment that was frozen stays so (RO, LA)",
                {"poll-skip", "stray-offset"},
            ),
            (
                "mapping-epoch-ignored",
                26,
                WHOLE_STORM_S,
                "an old change takes no queue back (LA)",
                {"lost-write", "segment-overlap"},
            ),
        )
    ),
    PlantedBug(
        mutant="flush-lie",
        guarantee="what was enqueued comes out (LA)",
        anomalies=frozenset({"lost"}),
        shown_by_nodes=frozenset({"confirmed-lost", "rewritten-log"}),
        first_storm_s=10,
        nemesis=("power off primary every 10 for 2",),
        workload="queue",
        settings={"brokers": 1, "min_in_sync_replicas": 1},
    ),
    PlantedBug(
        mutant="progress-first",
        guarantee="acknowledged messages survive, delayed ones as well (LA)",
        anomalies=LOST_ELEMENT,
        nemesis=ALTERNATELY,
        workload="delayed",
        settings={"brokers": 2, "by": "level"},
    ),
    PlantedBug(
        mutant="retry-cap",
        guarantee="acknowledged messages survive, delayed ones as well (LA)",
        anomalies=LOST_ELEMENT,
        first_storm_s=30,
        nemesis=("kill one of brokers every 6 for 3",),
        workload="delayed",
        settings={"brokers": 2},
    ),
    PlantedBug(
        mutant="async-skip",
        guarantee="acknowledged messages survive, delayed ones as well (LA)",
        anomalies=LOST_ELEMENT,
        first_storm_s=30,
        nemesis=("kill one of brokers every 6 for 3",),
        workload="delayed",
        settings={"brokers": 2, "delay_delivery": "async"},
    ),
    PlantedBug(
        mutant="slave-progress-old",
        guarantee="what was delivered long ago is not delivered again (DUP)",
        anomalies=frozenset({"delivered-again"}),
        nemesis=("kill primary every 20 for 3",),
        workload="delayed",
    ),
    PlantedBug(
        mutant="taken-back-forgotten",
        guarantee="what was taken back in time does not come out",
        anomalies=frozenset({"delivered-though-taken-back"}),
        first_storm_s=20,
        nemesis=("kill primary every 10 for 3",),
        workload="delayed",
        settings={"taken_back_share": 0.3},
    ),
    PlantedBug(
        mutant="wheel-wrap",
        guarantee="no message comes out before it is due",
        anomalies=frozenset({"delivered-early"}),
        first_storm_s=15,
        nemesis=(),
        workload="delayed",
    ),
    PlantedBug(
        mutant="half-visible",
        guarantee="a message of a transaction is seen only if it commits",
        anomalies=frozenset({"aborted-read"}),
        first_storm_s=15,
        nemesis=(),
        workload="transactional",
    ),
    PlantedBug(
        mutant="check-ignores-rollback",
        guarantee="a message of a transaction is seen only if it commits",
        anomalies=frozenset({"aborted-read"}),
        first_storm_s=15,
        nemesis=(),
        workload="transactional",
    ),
    PlantedBug(
        mutant="old-halves-unasked",
        guarantee="a message that its producer commits is seen (LA)",
        anomalies=LOST_ELEMENT,
        first_storm_s=30,
        nemesis=("kill primary every 8 for 3",),
        workload="transactional",
    ),
    PlantedBug(
        mutant="end-before-message",
        guarantee="a message that its producer commits is seen (LA)",
        anomalies=LOST_ELEMENT,
        first_storm_s=15,
        nemesis=("kill primary every 4 for 2",),
        workload="transactional",
    ),
    PlantedBug(
        mutant="torn-batch",
        guarantee="a batch is there as a whole or not at all (AB)",
        anomalies=frozenset({"torn-batch"}),
        first_seed=12,
        nemesis=("power off primary every 6 for 1",),
        settings={"brokers": 1, "min_in_sync_replicas": 1, "flush": "async", "batch_share": 0.5},
    ),
    PlantedBug(
        mutant="filter-skips-one",
        guarantee="a filter takes away nothing that its reader wants (FR)",
        anomalies=frozenset({"filtered-skip"}),
        nemesis=("kill primary every 15 for 3",),
        settings={"tags": 2},
    ),
    PlantedBug(
        mutant="index-not-durable",
        guarantee="a message can be found by its key (KL)",
        anomalies=frozenset({"key-not-found"}),
        first_storm_s=15,
        nemesis=("kill brokers every 15 for 3",),
        settings={"tags": 2},
    ),
    *(
        PlantedBug(
            mutant=mutant,
            guarantee=guarantee,
            anomalies=frozenset(anomalies),
            first_seed=first_seed,
            first_storm_s=15,
            nemesis=("kill",),
            workload="consumption",
            settings=settings,
        )
        for mutant, first_seed, guarantee, anomalies, settings in (
            ("lock-granted-twice", 0, "in order, a queue is one member's at a time", {"overlap"}, {"orderly": True}),
            ("retry-count-kept", 0, "a message is tried as often as its group says", {"wrong-retry-count"}, {}),
            ("retry-not-stored", 0, "what failed comes again, or is a dead letter", {"lost-retry"}, {}),
            ("dead-letters-dropped", 12, "what failed comes again, or is a dead letter", {"lost-retry"}, {}),
            ("ghost-members", 12, "every group consumes all queues", {"stuck-consumer"}, {}),
            ("commit-on-pull", 0, "a group passes over no message", {"passed-over", "unconsumed"}, {}),
            ("offset-made-up", 0, "a group passes over no message", {"passed-over", "unconsumed"}, {}),
        )
    ),
    PlantedBug(
        mutant="returns-unreplicated",
        guarantee="what failed comes again, or is a dead letter",
        anomalies=frozenset({"lost-retry"}),
        first_storm_s=15,
        nemesis=("isolate primary every 12 for 6",),
        workload="consumption",
    ),
    PlantedBug(
        mutant="retry-queues-kept",
        guarantee="what failed comes again, or is a dead letter",
        anomalies=frozenset({"lost-retry"}),
        first_storm_s=15,
        nemesis=("administer more-retry-queues every 12 for 1",),
        workload="consumption",
    ),
    PlantedBug(
        mutant="former-master-followed",
        guarantee="who is well and connected comes back",
        anomalies=frozenset({"no-progress", "stuck-replica"}),
        first_storm_s=30,
        nemesis=("pause primary every 20 for 8",),
    ),
    PlantedBug(
        mutant="dual-write-alone",
        guarantee="acknowledged messages survive (LA)",
        anomalies=LOST,
        first_storm_s=15,
        nemesis=("isolate primary every 10 for 5", "power off primary every 12 for 2"),
        settings={"deployment": "dual-write", "flush": "async"},
    ),
    PlantedBug(
        mutant="follows-blindly",
        guarantee="replicas hold the same messages at the same offsets (DIV)",
        anomalies=DIVERGED | {"panicked", "stuck-replica"},
        first_storm_s=15,
        nemesis=("power off primary every 10 for 2",),
        settings={"deployment": "async-slaves", "flush": "async", "brokers": 2},
    ),
    PlantedBug(
        mutant="sends-unsynced",
        guarantee="no uncommitted message is read (DR)",
        anomalies=DIRTY,
        first_storm_s=15,
        nemesis=("slow disks of primary every 4 for 3", "power off primary every 7 for 1"),
        settings={"deployment": "async-slaves"},
    ),
    PlantedBug(
        mutant="no-room-left",
        guarantee="acknowledged messages survive, delayed ones as well (LA)",
        anomalies=LOST_ELEMENT,
        first_seed=12,
        first_storm_s=15,
        nemesis=("kill one of brokers every 12 for 3",),
        workload="delayed",
        settings={"values": "bordering"},
    ),
    PlantedBug(
        mutant="poison-unguarded",
        guarantee="no node dies of itself",
        anomalies=frozenset({"panicked"}),
        first_seed=12,
        first_storm_s=15,
        nemesis=("kill one of brokers every 12 for 3",),
        workload="queue",
        settings={"values": "bordering"},
    ),
    PlantedBug(
        mutant="stream-keeps-session",
        guarantee="acknowledged messages survive (LA)",
        anomalies=LOST_ELEMENT,
        first_storm_s=15,
        nemesis=("kill one of brokers every 12 for 3",),
        workload="pop",
        settings={"client": "grpc", "values": "bordering"},
    ),
)
