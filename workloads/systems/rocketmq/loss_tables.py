"""What faults do to brokers, and what may legally be seen of it: the tables, and the function that reads their rows.

FAULTS has a row for each kind of fault. STATES and WEAKNESSES have a row for each excuse that follows from the fault
and the configuration alone; what needs the nodes' own events is decided in `legal_loss` and `classic_loss`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from workloads.systems.rocketmq.settings import RocketmqSettings

LAST_NS = 1 << 62
CATCH_UP_S = 15.0
"""How long after a fault its replica may still be catching up, at time scale 1."""
LEAST_CATCH_UP_S = 5.0
"""How long it may be catching up at any time scale."""
PULLS_LATE_S = 15.0
"""How long a busy member may wait before it pulls again and learns that the log has become shorter."""


class Takes(Enum):
    """What a kind of fault takes from a disk."""

    UNSYNCED = "what was not synced"
    SYNCED = "what was synced as well"
    EVERYTHING = "everything"


@dataclass(frozen=True, kw_only=True)
class FaultEffects:
    """What a kind of fault does to a broker."""

    away: str = ""
    """Why the broker cannot serve meanwhile, as in `b1 was killed`; empty: it can."""
    takes: Takes | None = None
    at_restart: bool = False
    """Whether the loss shows at each start that follows, and not at once."""
    lags: bool = False
    """Whether the broker may fall behind or be taken for dead although it serves."""
    delays: bool = False
    """Whether its master may hear late how far its log reaches."""
    wrong_clock: bool = False


FAULTS = {
    "kill": FaultEffects(away="killed"),
    "kill-process": FaultEffects(away="killed"),
    "scarce-memory": FaultEffects(away="killed"),
    "restart-loop": FaultEffects(away="killed again and again"),
    "rolling-restart": FaultEffects(away="restarted"),
    "upgrade": FaultEffects(away="restarted"),
    "pause": FaultEffects(away="paused", delays=True),
    "pause-process": FaultEffects(away="paused", delays=True),
    "partition": FaultEffects(away="cut off", delays=True),
    "disk-errors": FaultEffects(away="unable to write", delays=True),
    "full-disk": FaultEffects(away="unable to write", delays=True),
    "failing-fsync": FaultEffects(away="unable to write", delays=True, takes=Takes.UNSYNCED, at_restart=True),
    "power": FaultEffects(away="without power", takes=Takes.UNSYNCED),
    "short-files": FaultEffects(away="killed", takes=Takes.SYNCED),
    "old-disk": FaultEffects(away="killed", takes=Takes.SYNCED, at_restart=True),
    "lost-disk": FaultEffects(away="killed", takes=Takes.EVERYTHING),
    "bit-rot": FaultEffects(takes=Takes.SYNCED, at_restart=True),
    "slow-disk": FaultEffects(delays=True),
    "slow-links": FaultEffects(lags=True, delays=True),
    "lossy-links": FaultEffects(lags=True, delays=True),
    "narrow-links": FaultEffects(lags=True, delays=True),
    "flapping-links": FaultEffects(lags=True, delays=True),
    "held-links": FaultEffects(lags=True, delays=True),
    "slow-nodes": FaultEffects(lags=True, delays=True, wrong_clock=True),
    "slow-process": FaultEffects(lags=True, delays=True, wrong_clock=True),
    "clock": FaultEffects(wrong_clock=True),
    "strobe": FaultEffects(wrong_clock=True),
}
TAKING = frozenset(kind for kind, effects in FAULTS.items() if effects.takes)
AWAY = frozenset(kind for kind, effects in FAULTS.items() if effects.away)
AWAY_OR_LAGGING = AWAY | {kind for kind, effects in FAULTS.items() if effects.lags}


def seconds(time_ns: int) -> str:
    return f"{time_ns / 1e9:.1f} s"


def catch_up_ns(settings: RocketmqSettings) -> int:
    return round(max(CATCH_UP_S * settings.time_scale, LEAST_CATCH_UP_S) * 1e9)


def noticed_ns(settings: RocketmqSettings) -> int:
    """How long after a loss members may go on without knowing of it."""
    return catch_up_ns(settings) + round(PULLS_LATE_S * 1e9)


# What is seen of a loss -----------------------------------------------------------------------------------------------

LOST = ("lost-write", "unseen", "lost", "unconsumed", "lost-retry", "delivered-though-taken-back")
"""A message is gone; it may have been the one that takes another one back."""
LOST_AFTER_READ = ("dirty-read",)
"""A message is gone that somebody had read."""
ONLY_AT_A_SLAVE = ("lost", "unconsumed", "lost-retry", "delivered-late", "delivered-though-taken-back")
"""A message is at a slave only: consumers ask the master for it as long as that lives."""
REUSED_OFFSETS = (
    *("inconsistent-offsets", "nonmonotonic-send"),
    *("redelivered-early", "redelivered-after-ack", "times-not-risen"),
    "delivered-again",
)
"""Later messages get the offsets of those that are gone."""
REUSED_OFFSETS_AFTER_READ = (
    *("nonmonotonic-poll", "poll-skip", "consumer-offset-skip", "passed-over", "overtaken"),
    *("wrong-retry-count", "early-dead-letter"),
    *("confirmed-lost", "rewritten-log"),
)
"""Later messages get offsets that somebody had read."""
ALL = (*LOST, *LOST_AFTER_READ, *REUSED_OFFSETS, *REUSED_OFFSETS_AFTER_READ)
SKIPPED_BY_A_GROUP = ("unconsumed", "lost-retry")
"""A message gets an offset that a group had read already: its members learn at their next pull that the log has become
shorter, and go on at its end."""
SKIPPED_BY_CONSUMERS = ("consumer-offset-skip", "poll-skip")
"""A consumer that had read farther than the log now reaches goes on from there once the log has grown."""
WRONG_AFTER_DISK_DAMAGE = (
    *("not-durable", "unheld-ack", "beyond-log", "diverging-epochs"),
    *("wrong-epochs", "overrated-candidate", "returned-tail", "fenced-write"),
)
"""A broker goes on without what it had synced, its noted epochs among it."""
UNREADABLE = (*LOST, *LOST_AFTER_READ, "torn-batch")
"""A message has no sound entry in the consume queue of any replica."""

# What is legal of each single fault -----------------------------------------------------------------------------------

Margin = Callable[[RocketmqSettings], int]


@dataclass(frozen=True, kw_only=True)
class Row:
    """Around a fault of one of these kinds that strikes a broker of the group, these anomalies are legal."""

    kinds: Collection[str]
    anomalies: tuple[str, ...]
    reason: str
    """Its text has {fault}, {at}, {in_sync} and {replicas}."""
    holds: Callable[[RocketmqSettings, Sequence[str]], bool] = lambda settings, brokers: True
    """Whether it holds in this configuration, for these brokers of a group."""
    before_ns: Margin = lambda settings: 0
    after_ns: Margin = lambda settings: 0
    is_seen_after: bool = False
    """Whether it was written at any time, and shows only after the fault struck."""
    strikes_others: bool = False
    """Whether a fault counts that strikes none of the group's brokers."""


def excuses_of(
    rows: Iterable[Row], fault: FaultWindow, settings: RocketmqSettings, brokers: Sequence[str]
) -> Iterator[Excuse]:
    """What these rows say of one fault."""
    names = {"fault": fault.name, "at": seconds(fault.start_ns)}
    names |= {"in_sync": str(settings.in_sync_replicas), "replicas": str(len(brokers))}
    for row in rows:
        struck = row.strikes_others or not set(brokers).isdisjoint(fault.nodes)
        if struck and not set(row.kinds).isdisjoint(fault.kinds) and row.holds(settings, brokers):
            yield Excuse(
                anomalies=row.anomalies,
                reason=row.reason.format_map(names),
                from_ns=max(fault.start_ns - row.before_ns(settings), 0),
                until_ns=fault.stop_ns + row.after_ns(settings),
                seen_from_ns=fault.start_ns if row.is_seen_after else 0,
            )


ROTTEN = Row(
    kinds=("bit-rot",),
    anomalies=("internal-skip", "poll-skip"),  # An entry leads to another message than the one it was made for.
    reason="consume queues have no checksums, and bits of disks rotted at {at}",
    before_ns=lambda settings: LAST_NS,
    is_seen_after=True,
)
CLOCKS = Row(
    # Delays end at times of wall clocks: a message that was taken, or waited, under a wrong one may be early.
    kinds=[kind for kind, effects in FAULTS.items() if effects.wrong_clock],
    anomalies=("delivered-early", "delivered-though-taken-back"),
    reason="clocks of brokers were wrong ({fault} at {at})",
)
STATES = (
    ROTTEN,
    replace(
        ROTTEN,
        anomalies=("rewritten-log",),
        reason="bits of disks rotted at {at}, and replicas copy what stands there",
    ),
    replace(ROTTEN, anomalies=UNREADABLE, holds=lambda settings, brokers: len(brokers) == 1, is_seen_after=False),
    CLOCKS,
)
"""What follows from the state of disks and clocks, in every deployment."""
STATES_UNDER_CONTROLLERS = (
    *STATES,
    Row(
        kinds=("slow-nodes", "slow-process"),
        anomalies=("laggard-in-sync",),
        reason="nodes were slow at {at}",
        after_ns=catch_up_ns,
        strikes_others=True,
    ),
    Row(
        kinds=[kind for kind, effects in FAULTS.items() if effects.delays],
        anomalies=("needless-shrink",),
        reason="acknowledgements may come late ({fault} at {at})",
        after_ns=lambda settings: round(CATCH_UP_S * settings.time_scale * 1e9),
    ),
)


def _elects_laggards(settings: RocketmqSettings, brokers: Sequence[str]) -> bool:
    return not (settings.unclean_election or settings.all_ack) and settings.in_sync_replicas < len(brokers)


AROUND = Row(kinds=TAKING | AWAY_OR_LAGGING, anomalies=(), reason="", before_ns=catch_up_ns, after_ns=catch_up_ns)
FEW_IN_SYNC = replace(
    AROUND,
    anomalies=(*LOST, *REUSED_OFFSETS),
    reason="inSyncReplicas is {in_sync} of {replicas}, and a laggard may be elected ({fault} at {at})",
    holds=_elects_laggards,
)
WEAKNESSES = tuple(
    (row, replace(row, anomalies=SKIPPED_BY_A_GROUP, after_ns=noticed_ns))
    for row in (
        replace(
            AROUND,
            anomalies=(*ALL, "fenced-write"),
            reason="unclean election is on, and a replica that lags may be elected ({fault} at {at})",
            holds=lambda settings, brokers: settings.unclean_election,
        ),
        FEW_IN_SYNC,
        replace(FEW_IN_SYNC, kinds=TAKING, anomalies=(*LOST_AFTER_READ, *REUSED_OFFSETS_AFTER_READ)),
        replace(
            AROUND,
            anomalies=("lost-write", *LOST_AFTER_READ, *REUSED_OFFSETS, *REUSED_OFFSETS_AFTER_READ),
            reason="readUnCommitted lets consumers read what may still be cut ({fault} at {at})",
            holds=lambda settings, brokers: settings.read_uncommitted and not settings.unclean_election,
        ),
    )
)
"""Configurations under controllers that promise less than all others, each with what follows until groups notice it."""


def traces(
    settings: RocketmqSettings,
    reason: str,
    *more: str,
    span_ns: tuple[int, int],
    over_ns: int,
    for_good: bool = False,
) -> Iterator[Excuse]:
    """What is seen of a loss besides that messages of this span are missing, until all have caught up, or for good."""
    from_ns, until_ns = span_ns
    caught_up_ns = LAST_NS if for_good else over_ns + catch_up_ns(settings)
    for anomalies, first_ns, last_ns in (
        ((*REUSED_OFFSETS, *REUSED_OFFSETS_AFTER_READ, *more), from_ns, caught_up_ns),
        (SKIPPED_BY_A_GROUP, until_ns, over_ns + noticed_ns(settings)),
        (SKIPPED_BY_CONSUMERS, from_ns, LAST_NS),
    ):
        yield Excuse(anomalies=anomalies, reason=reason, from_ns=first_ns, until_ns=last_ns)


def synced_taken(fault: FaultWindow, nodes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(kind, node) of what a fault took from these nodes that had been synced."""
    for kind in fault.kinds:
        if kind in TAKING and FAULTS[kind].takes is not Takes.UNSYNCED:
            yield from ((kind, node) for node in fault.nodes_of(kind) if node in nodes)
