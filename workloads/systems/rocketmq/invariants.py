"""What holds of RocketMQ at every moment, held against what its nodes say and do.

The rule on which all else rests: every broker that may be elected, by the SyncStateSet that the controllers have agreed
on, holds all that was acknowledged (where all of the set must acknowledge). It is looked at whenever a message is
acknowledged and whenever the set becomes another one, whether or not anybody is elected then.

Logs are compared by where they end; that the same offsets hold the same bytes is for the checker of node events. What
a loss of power took is legal to lack: a broker that starts again with a shorter log may be in the set, and may even be
elected; from then on what it lacks counts as lost, and is judged where clients see it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from harness.invariants import Breaches
from harness.watch import BOOTED, ENDED, RESUMED
from workloads.systems.rocketmq.settings import BrokerGroup, RocketmqSettings, broker_groups, node_of

CAUGHT_UP_S = 15.0
"""A member that was not caught up for so long has to leave, at time scale 1."""
LOOKS_S = 5.0
"""So often a master looks at its set, at time scale 1."""
PATIENCE, PATIENCE_S = 2.0, 1.0
"""How much longer all that may take: clocks of nodes may be slow."""
KEPT = 0.99
"""Share of the retention time that must have passed; clocks of brokers are not quite right."""
PIECES = 4_096
"""Times are remembered of so many pieces of a master's log."""


@dataclass(slots=True)
class _Broker:
    """What is known of one broker."""

    broker_id: int | None = None
    is_up: bool = False
    end: int = 0
    """Where its log ends, whole messages or not."""
    begin: int = 0
    """Where its log began when it started last."""
    incoming: int = 0
    """Where its log ends once what it has received is written, which may be some time before it says so."""
    had: int = 0
    """Where its log ended before it started again with less, until it has as much as was acknowledged."""
    cutting: int = 0
    """Where its log ended before the cut that is under way, or was the last."""
    cut_from: int = 0
    """Where its log ended before it was cut; what was beyond must not come back."""
    has_reported: bool = False
    """Whether the controllers know of the end of its log since it started, and it was not cut since."""
    epoch: tuple[int, int] | None = None
    """The newest that it has noted durably, and where it begins."""
    vouched: int = 0
    """It has answered, as a master with synchronous flush, that all before this is durable."""
    members: tuple[int, ...] = ()
    """The SyncStateSet as this master knows it."""
    is_altering: bool = False
    is_settling: bool = False
    """A proposal failed, and until another one it asks the controllers what holds, however long they are silent."""
    pieces: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=PIECES))
    """(end of the log, time in ns) of each message that it appended as a master."""
    grown: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=PIECES))
    """(end of its log, time in ns) of whatever was appended."""
    late_ns: dict[str, int] = field(default_factory=dict)
    """Members that have lagged for too long, where it is a master -> since when that was seen."""

    @property
    def ever_held(self) -> int:
        return max(self.end, self.had)

    def grows(self, end: int, now_ns: int) -> None:
        self.end = end
        self.grown.append((end, now_ns))

    def shrinks(self, end: int) -> None:
        self.end = min(self.end, end)
        while self.grown and self.grown[-1][0] > end:
            self.grown.pop()

    def begin_life(self) -> None:
        self.members, self.is_altering, self.is_settling = (), False, False
        self.pieces.clear()
        self.late_ns.clear()


class RocketmqInvariants:
    """`Invariants` of the harness: those of each group of brokers, which know nothing of each other."""

    def __init__(self, settings: RocketmqSettings, breaches: Breaches) -> None:
        groups = broker_groups(settings)
        self._groups = {group.name: _GroupInvariants(settings, breaches, group) for group in groups}
        self._of_broker = {broker: self._groups[group.name] for group in groups for broker in group.brokers}
        self._first = self._groups[groups[0].name]
        """It is told of what concerns no group, too."""

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        if event == BOOTED:
            for group in self._groups.values():
                group.saw(node, event, fields)
        else:
            named = self._groups.get(str(fields.get("group")), self._first)
            self._of_broker.get(node, named).saw(node, event, fields)

    def observe(self, node: str, point: str, values: Mapping[str, int]) -> None:
        self._of_broker.get(node, self._first).observe(node, point, values)


class _GroupInvariants:
    def __init__(self, settings: RocketmqSettings, breaches: Breaches, group: BrokerGroup) -> None:
        names = group.brokers
        self._settings = settings
        self._says = breaches.says
        self._now_ns = breaches.now_ns
        self._brokers = {name: _Broker() for name in names}
        self._learners = frozenset(names) - frozenset(group.voters)
        self._all_ack = settings.has_controllers and settings.all_ack and not settings.unclean_election
        self._is_dual_write = settings.deployment == "dual-write"
        self._demanded = settings.min_in_sync_replicas if settings.has_controllers else 1
        self._index = -1
        """Of the controllers' log, where the set was last changed."""
        self._agreed: tuple[int, ...] = ()
        self._agreed_epoch = 0
        self._acknowledged = 0
        """All before this offset was acknowledged, and not legally lost since."""
        self._epochs: dict[int, tuple[int, str]] = {}
        """Master epoch -> where it begins, and who said so first."""
        self._beginnings: set[int] = {0}
        """Offsets at which some broker's log began: where it deleted files, or was told to begin."""
        self._commands: dict[int, tuple[int, str]] = {}
        """Index in the controllers' log -> the term of what was applied there, and who was first."""
        self._newest_command = 0
        """The last index of it that anybody has applied."""
        self._routes: dict[str, tuple[str | None, int | None]] = {}
        """NameServer -> the master to whom it leads clients, and the version of its claim."""
        self._asked: dict[tuple[str, int], int] = {}
        """(Controller, serial) of a request that it took up -> the last index that any had applied by then."""
        self._claims: dict[int, str] = {}
        """Version of a claim -> the master that was first led to under it."""
        self._lag_ns = round(PATIENCE * CAUGHT_UP_S * settings.time_scale * 1e9)
        self._kept_ns = round(KEPT * settings.retention_s * settings.time_scale * 1e9)
        self._look_ns = round((PATIENCE * LOOKS_S * settings.time_scale + PATIENCE_S) * 1e9)

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        handle = _EVENTS.get(event)
        if handle is not None:
            handle(self, node, fields)

    def observe(self, node: str, point: str, values: Mapping[str, int]) -> None:
        handle = _POINTS.get(point)
        if handle is not None:
            handle(self, node, **values)

    # Events -----------------------------------------------------------------------------------------------------

    def _booted(self, node: str, fields: Mapping[str, Any]) -> None:
        self._routes.pop(node, None)
        self._asked = {request: index for request, index in self._asked.items() if request[0] != node}
        if node in self._brokers:
            self._brokers[node].is_up = True

    def _ended(self, node: str, fields: Mapping[str, Any]) -> None:
        if node in self._brokers:
            self._brokers[node].is_up = False
            self._brokers[node].begin_life()

    def _identity(self, node: str, fields: Mapping[str, Any]) -> None:
        broker_id = fields["broker_id"]
        for name, other in self._brokers.items():
            if name != node and other.is_up and other.broker_id == broker_id:
                self._says("shared-identity", (name, node), f"both {name} and {node} are broker {broker_id}")
        self._brokers[node].broker_id = broker_id

    def _resumed(self, node: str, fields: Mapping[str, Any]) -> None:
        if node in self._brokers:
            self._brokers[node].late_ns.clear()

    def _recovered(self, node: str, fields: Mapping[str, Any]) -> None:
        broker, end = self._brokers[node], int(fields["end"])
        broker.begin = int(fields["start"])
        self._recovered_epochs(node, broker, end, fields["epoch"], fields["epoch_start"])
        if end < broker.vouched:
            self._says(
                "not-durable",
                (node,),
                f"{node} started again with its log up to {end}, though as master with synchronous flush it had "
                f"answered that all before {broker.vouched} is safe",
            )
            broker.vouched = end
        if max(broker.end, broker.incoming) < broker.cut_from <= end:
            self._says(
                "returned-tail",
                (node,),
                f"{node} started again with its log up to {end}, though it had been cut durably and ended at "
                f"{broker.end}",
            )
        broker.has_reported = False
        broker.had = broker.ever_held if end < broker.ever_held else 0
        broker.cut_from = 0
        broker.shrinks(end)
        broker.end, broker.incoming = end, 0

    def _recovered_epochs(self, node: str, broker: _Broker, end: int, epoch: int | None, start: int | None) -> None:
        before, broker.epoch = broker.epoch, None if epoch is None or start is None else (epoch, start)
        if end == broker.begin:
            return  # Nothing is left of any epoch.
        if before is not None and before[1] < end and (epoch is None or epoch < before[0]):
            self._says(
                "wrong-epochs",
                (node,),
                f"{node} started again with epoch {epoch or 'none'} as its newest, though it had noted that epoch "
                f"{before[0]} begins at {before[1]}, and its log goes on to {end}",
            )

    def _truncated(self, node: str, fields: Mapping[str, Any]) -> None:
        broker, end = self._brokers[node], int(fields["to"])
        broker.cutting = int(fields["from_"])
        broker.shrinks(end)
        broker.vouched = min(broker.vouched, end)
        broker.had = broker.incoming = 0
        broker.has_reported = False
        if broker.epoch is not None and end <= broker.epoch[1]:
            broker.epoch = None

    def _begun(self, node: str, fields: Mapping[str, Any]) -> None:
        """An empty log begins elsewhere."""
        broker = self._brokers[node]
        self._beginnings.add(fields["at"])
        broker.end, broker.cut_from = fields["at"], 0

    def _deleted(self, node: str, fields: Mapping[str, Any]) -> None:
        to = fields["to"]
        self._beginnings.add(to)
        # The end of a file may be a blank that nobody reports: the last message in it counts.
        written_ns = next((time for end, time in reversed(self._brokers[node].grown) if end <= to), None)
        if written_ns is None or fields["forced"]:
            return
        kept_ns = self._now_ns() - written_ns
        if kept_ns < self._kept_ns:
            self._says(
                "deleted-early",
                (node,),
                f"{node} deleted all before {to}, of which it had written the last {kept_ns / 1e9:.2f} s before",
            )

    def _own_set(self, node: str, fields: Mapping[str, Any]) -> None:
        self._brokers[node].members = tuple(fields["members"])
        self._brokers[node].is_settling = False
        self._brokers[node].late_ns.clear()

    def _alter(self, node: str, fields: Mapping[str, Any]) -> None:
        broker = self._brokers[node]
        broker.is_altering = fields["proposed"] is not None
        broker.is_settling = broker.is_settling and not broker.is_altering

    def _alter_failed(self, node: str, fields: Mapping[str, Any]) -> None:
        """It wants to look, and cannot before it knows what holds; whom the controllers refuse may look at once."""
        if fields.get("refused"):
            return
        self._brokers[node].is_settling = True
        self._brokers[node].late_ns.clear()

    def _deposed(self, node: str, fields: Mapping[str, Any]) -> None:
        self._brokers[node].begin_life()

    def _set_agreed(self, node: str, fields: Mapping[str, Any]) -> None:
        """The set holds from the moment at which the first controller applies it."""
        if fields["index"] <= self._index:
            return
        self._index = fields["index"]
        before, self._agreed = self._agreed, tuple(fields["members"])
        is_election = fields["master_epoch"] > self._agreed_epoch
        self._agreed_epoch = fields["master_epoch"]
        master = self._named(fields["master"])
        if is_election and master in self._learners:
            self._says("learner-elected", (master,), f"the controllers elected {master}, which is a learner")
        if not self._all_ack:
            return
        newcomers = self._agreed if is_election else tuple(set(self._agreed) - set(before))
        for name in self._lacking(newcomers, self._acknowledged):
            how = "were elected" if is_election else "joined the SyncStateSet"
            self._says(
                "unheld-ack",
                (name,),
                f"{self._agreed} {how}, though the log of {name} ends at {self._brokers[name].end} and all before "
                f"{self._acknowledged} was acknowledged",
            )
        if is_election and master is not None:
            # What it lacks is lost, legally or not, and its offsets are given out again.
            self._acknowledged = min(self._acknowledged, self._brokers[master].end)

    def _elected(self, node: str, fields: Mapping[str, Any]) -> None:
        living, master = fields["in_sync_alive"], self._named(fields["master"])
        if fields["unclean_allowed"] and master is not None and living and fields["master"] not in fields["in_sync"]:
            self._says(
                "needlessly-unclean",
                (master,),
                f"{node} had {master} elected, which was not in sync, though {living} of {fields['in_sync']} lived",
            )
        ranked = fields["max_offset"]
        if master is None or ranked is None or not self._brokers[master].has_reported:
            return
        if ranked > max(self._brokers[master].end, self._brokers[master].incoming):
            self._says(
                "overrated-candidate",
                (master,),
                f"{node} had {master} elected for a log up to {ranked}, though it ends at "
                f"{self._brokers[master].end}, and {master} has reported so since it started",
            )

    def _route(self, node: str, fields: Mapping[str, Any]) -> None:
        master, version = fields["master"], fields["version"]
        before, before_version = self._routes.get(node, (None, None))
        self._routes[node] = (master, version)
        if master is None or version is None:
            return
        first = self._claims.setdefault(version, master)
        if first != master:
            self._says(
                "stale-route",
                (node, node_of(first), node_of(master)),
                f"{node} leads clients to {master} as the master of version {version}, under which {first} was master",
            )
        elif before not in (None, master) and before_version is not None and version < before_version:
            self._says(
                "stale-route",
                (node, node_of(master)),
                f"{node} led clients to {before}, whose claim has version {before_version}, and then back to {master}, "
                f"whose claim has {version}",
            )

    # Points -----------------------------------------------------------------------------------------------------

    def _registered(self, node: str, end: int) -> None:
        self._brokers[node].has_reported = True

    def _put_appended(self, node: str, end: int, in_sync: int) -> None:
        broker, demanded = self._brokers[node], self._demanded
        broker.grows(end, self._now_ns())
        broker.pieces.append((end, self._now_ns()))
        if in_sync < demanded:
            self._says(
                "too-few-in-sync", (node,), f"{node} wrote a message with {in_sync} in sync, though {demanded} must be"
            )
        self._look_for_laggards(node, broker)

    def _batch_appended(self, node: str, end: int) -> None:
        broker = self._brokers[node]
        broker.grows(end, self._now_ns())
        if broker.had and end >= self._acknowledged:
            broker.had = 0

    def _put_confirmed(self, node: str, end: int, in_sync: int) -> None:
        demanded = self._demanded
        if in_sync < demanded:
            self._says(
                "too-few-in-sync",
                (node,),
                f"{node} acknowledged a message with {in_sync} in sync, though {demanded} must be",
            )
        if self._settings.flush == "sync":
            self._brokers[node].vouched = max(self._brokers[node].vouched, end)
        if self._is_dual_write:
            self._require_on_a_slave(node, end)
        if not self._all_ack:
            return
        for name in self._lacking(self._agreed, end):
            self._says(
                "unheld-ack",
                (node, name),
                f"{node} acknowledged a message that ends at {end}, though {name}, which may be elected, holds only "
                f"what is before {self._brokers[name].end}",
            )
        self._acknowledged = max(self._acknowledged, end)

    def _require_on_a_slave(self, node: str, end: int) -> None:
        held = {name: broker.ever_held for name, broker in self._brokers.items() if name != node}
        if max(held.values()) < end:
            self._says(
                "unheld-ack",
                (node, *held),
                f"{node} acknowledged a message that ends at {end}, though of its slaves none holds more than what is "
                f"before {max(held.values())}",
            )

    def _batch_received(self, node: str, end: int, confirmed: int, until: int) -> None:
        self._brokers[node].incoming = until
        self._holds(node, end, confirmed)

    def _holds(self, node: str, end: int, confirmed: int) -> None:
        if confirmed > end:
            self._says("beyond-log", (node,), f"{node} takes all before {confirmed} for confirmed, and holds {end}")

    def _follows(self, node: str, end: int, whole: int) -> None:
        if whole < end:
            self._says(
                "torn-log",
                (node,),
                f"{node} began to follow a master with a log up to {end}, of which only all before {whole} is whole "
                "messages",
            )

    def _cut(self, node: str, end: int, begun: int, queued: int, passing: int) -> None:
        broker = self._brokers[node]
        broker.cut_from = broker.cutting if broker.cutting > end else 0
        self._is_whole(node, end, begun, queued, passing)

    def _is_whole(self, node: str, end: int, begun: int, queued: int, passing: int) -> None:
        if begun > end:
            self._says(
                "wrong-epochs", (node,), f"{node} has noted that an epoch begins at {begun}, and its log ends at {end}"
            )
        if queued > end:
            self._says("beyond-log", (node,), f"the queues of {node} lead to {queued}, and its log ends at {end}")
        if passing:
            self._says(
                "passing-offset", (node,), f"{passing} consumers' offsets at {node} lie beyond the ends of their queues"
            )

    def _shrinks(self, node: str, whole: int) -> None:
        if whole:
            self._says(
                "needless-shrink",
                (node,),
                f"{node} puts {whole} out of its SyncStateSet that reported a moment ago that they hold the whole log",
            )

    def _alter_decided(self, node: str, dead: int, stale: int) -> None:
        if dead:
            self._says("dead-newcomer", (node,), f"{node} let {dead} join the SyncStateSet that it takes for dead")
        if stale:
            self._says(
                "stale-change",
                (node,),
                f"{node} let a SyncStateSet be replaced by a master that knew an older set, or was deposed",
            )

    def _taken_up(self, node: str, serial: int) -> None:
        self._asked[node, serial] = self._newest_command

    def _answers(self, node: str, serial: int, applied: int) -> None:
        before = self._asked.pop((node, serial), 0)
        if applied < before:
            self._says(
                "stale-answer",
                (node,),
                f"{node} answers by what it has applied up to {applied}, though {before} was applied before it was "
                "asked",
            )

    def _became_master(self, node: str, end: int, confirmed: int, epoch: int, noted: int) -> None:
        self._holds(node, end, confirmed)
        if noted != epoch:
            self._says(
                "wrong-epochs", (node,), f"{node} became master of epoch {epoch}, and has noted {noted} as newest"
            )

    def _epoch_begins(self, node: str, epoch: int, start: int) -> None:
        self._brokers[node].epoch = (epoch, start)
        known, by = self._epochs.setdefault(epoch, (start, node))
        if known != start and not (known < start and start in self._beginnings):
            self._says(
                "diverging-epochs",
                (by, node),
                f"{node} noted that master epoch {epoch} begins at {start}, and {by} had noted {known}",
            )

    def _command(self, node: str, index: int, term: int) -> None:
        self._newest_command = max(self._newest_command, index)
        known, by = self._commands.setdefault(index, (term, node))
        if known != term:
            self._says(
                "diverging-commands",
                (by, node),
                f"{node} applied a command of term {term} at {index}, and {by} one of term {known}",
            )

    # Aids -------------------------------------------------------------------------------------------------------

    def _named(self, broker_id: int | None) -> str | None:
        """The broker that goes by this id now."""
        if broker_id is None:
            return None
        return next((name for name, broker in self._brokers.items() if broker.broker_id == broker_id), None)

    def _lacking(self, members: tuple[int, ...], end: int) -> list[str]:
        """Of these members, those whose log never reached so far."""
        names = (self._named(member) for member in sorted(members))
        return [name for name in names if name is not None and self._brokers[name].ever_held < end]

    def _look_for_laggards(self, node: str, master: _Broker) -> None:
        """A member that lags must be proposed to leave, once its master has had time to look."""
        now_ns = self._now_ns()
        for name, broker in self._brokers.items():
            if name == node or broker.broker_id not in master.members:
                continue
            lacking = bisect_right(master.pieces, broker.end, key=itemgetter(0))
            behind_since = master.pieces[lacking][1] if lacking < len(master.pieces) else now_ns
            if now_ns - behind_since <= self._lag_ns:
                master.late_ns.pop(name, None)
            elif now_ns - master.late_ns.setdefault(name, now_ns) > self._look_ns and not (
                master.is_altering or master.is_settling
            ):
                self._says(
                    "laggard-in-sync",
                    (node, name),
                    f"{name} is in the SyncStateSet of {node}, and has lagged behind it for "
                    f"{(now_ns - behind_since) / 1e9:.1f} s",
                )


_EVENTS: Mapping[str, Callable[[_GroupInvariants, str, Mapping[str, Any]], None]] = {
    BOOTED: _GroupInvariants._booted,
    ENDED: _GroupInvariants._ended,
    RESUMED: _GroupInvariants._resumed,
    "identity": _GroupInvariants._identity,
    "recovered": _GroupInvariants._recovered,
    "truncated": _GroupInvariants._truncated,
    "begun": _GroupInvariants._begun,
    "deleted": _GroupInvariants._deleted,
    "sync_state_set": _GroupInvariants._own_set,
    "alter": _GroupInvariants._alter,
    "alter_failed": _GroupInvariants._alter_failed,
    "set_unsettled": _GroupInvariants._alter_failed,
    "deposed": _GroupInvariants._deposed,
    "set_agreed": _GroupInvariants._set_agreed,
    "elected": _GroupInvariants._elected,
    "route": _GroupInvariants._route,
}
_POINTS: Mapping[str, Callable[..., None]] = {
    "registered-with-controller": _GroupInvariants._registered,
    "put-appended": _GroupInvariants._put_appended,
    "batch-appended": _GroupInvariants._batch_appended,
    "put-confirmed": _GroupInvariants._put_confirmed,
    "batch-received": _GroupInvariants._batch_received,
    "became-master": _GroupInvariants._became_master,
    "recovered": _GroupInvariants._is_whole,
    "truncated": _GroupInvariants._cut,
    "handshake-sent": _GroupInvariants._follows,
    "shrink-begins": _GroupInvariants._shrinks,
    "alter-decided": _GroupInvariants._alter_decided,
    "request-taken-up": _GroupInvariants._taken_up,
    "request-decided": _GroupInvariants._answers,
    "epoch-persisted": _GroupInvariants._epoch_begins,
    "epoch-learnt": _GroupInvariants._epoch_begins,
    "epochs-taken-over": _GroupInvariants._epoch_begins,
    "about-to-apply": _GroupInvariants._command,
}
