"""Brokers, their logs and the controller's state machine, with every request, answer and ack under way by itself.

What holds is one sentence: whatever a master has confirmed, each member of the set that is in effect has. The set in
effect is the controller's, for it elects from there. All decisions are the system's own (`sync_state_set.py`,
`confirm_offset.py`, `state_machine.py`, `epoch_file.py`); what stands here is only how they are asked. A log is a list
of master epochs, one for each message. Processes die and keep their logs; nobody loses power.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from system_under_test.rocketmq.broker.ha.confirm_offset import least_acked_offset, master_confirm_offset
from system_under_test.rocketmq.broker.ha.sync_state_set import (
    SetView,
    SlaveProgress,
    alter_refused,
    begin_alter,
    controller_says,
    wanted_members,
)
from system_under_test.rocketmq.controller.events import BrokerIdApplied, BrokerRegistered
from system_under_test.rocketmq.controller.protocol import BrokerReport, SyncStateSet
from system_under_test.rocketmq.controller.state_machine import (
    AlterSyncStateSet,
    ControllerStateMachine,
    ElectMaster,
    GiveUpMastership,
    Group,
    Nothing,
    Refusal,
    ReplaceDeadMaster,
    Request,
    Rules,
)
from system_under_test.storage.epoch_file import EpochMap, truncation_point

NAME = "g"
BROKERS = (1, 2, 3)
LONG_AGO, NOW, MAX_LAG = 0, 1_000, 10


class PromiseBroken(AssertionError):
    """A member of the set in effect lacks what was confirmed."""


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What of the system is asked; a planted mistake replaces one."""

    begin_alter: Callable[[SetView, tuple[int, ...]], SetView] = begin_alter
    must_ack: Callable[[SetView], tuple[int, ...]] = lambda view: view.must_ack
    least_acked: Callable[..., int | None] = least_acked_offset
    wanted_members: Callable[..., tuple[int, ...] | None] = wanted_members
    controller_says: Callable[[SetView, SyncStateSet], SetView] = controller_says
    rules: Rules = field(default_factory=Rules)


@dataclass(eq=False)
class Office:
    """A term of a master, as it knows it."""

    master: int
    epoch: int
    start: int
    view: SetView
    confirm: int
    acked: dict[int, int] = field(default_factory=dict)
    slaves: dict[int, Connection] = field(default_factory=dict)
    waits_for: Alter | None = None
    """The Alter that it has not given up."""
    has_to_learn: bool = False
    ended: bool = False


@dataclass(eq=False)
class Connection:
    """Of a slave to a master; acks under way arrive in their order."""

    slave: int
    office: Office
    acks: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Alter:
    """A request to the controller, and later its answer."""

    office: Office
    request: AlterSyncStateSet
    answer: SyncStateSet | Refusal | None = None


@dataclass(eq=False)
class Broker:
    log: list[int] = field(default_factory=list)
    epochs: EpochMap = field(default_factory=EpochMap)
    confirm: int = 0
    alive: bool = True
    acted_epoch: int = 0
    follows: int | None = None
    office: Office | None = None
    connection: Connection | None = None

    def stop(self) -> None:
        if self.office is not None:
            self.office.ended = True
        if self.connection is not None:
            leave(self.connection)
        self.office = self.connection = self.follows = None


def leave(connection: Connection) -> None:
    """The master sees its end; acks under way on it count no more."""
    office = connection.office
    if office.slaves.get(connection.slave) is connection:
        del office.slaves[connection.slave]
        office.acked.pop(connection.slave, None)


class PromisedLog:
    """The world; each method is something that may happen, and does nothing where it cannot."""

    def __init__(self, decisions: Decisions) -> None:
        self.decide = decisions
        self.controller = ControllerStateMachine(decisions.rules)
        self.brokers = {broker_id: Broker() for broker_id in BROKERS}
        self.believed_dead: set[int] = set()
        self.under_way: list[Alter] = []
        self.answers: list[Alter] = []
        self.promised: dict[int, int] = {}
        """Offset -> the epoch of the message confirmed there."""
        self.elections = self.expansions = self.shrinks = 0
        for broker_id in BROKERS:
            code = f"code {broker_id}"
            self.controller.apply(BrokerIdApplied(cluster="k", group=NAME, broker_id=broker_id, check_code=code))
            self.controller.apply(
                BrokerRegistered(group=NAME, broker_id=broker_id, address=f"b{broker_id}", incarnation="")
            )

    @property
    def group(self) -> Group:
        return self.controller.groups[NAME]

    # Liveness, as the controller's decisions ask it

    def living(self, group: str, broker_id: int, incarnation: str) -> BrokerReport | None:
        broker = self.brokers[broker_id]
        if broker_id in self.believed_dead:
            return None
        newest = broker.epochs.last
        return BrokerReport(
            cluster="k",
            group=group,
            broker_id=broker_id,
            address="",
            master_epoch=newest.master_epoch if newest else 0,
            max_offset=len(broker.log),
        )

    def is_silent(self, group: str, broker_id: int, incarnation: str) -> bool:
        return self.living(group, broker_id, incarnation) is None

    def may_judge(self, group: str, broker_id: int, incarnation: str) -> bool:
        return True

    def has_reported_since_birth(self, group: str, broker_id: int, newborn: int) -> bool:
        return True

    def decided(self, request: Request) -> Group | Refusal | None:
        """What the controller makes of a request: it is decided, and the event applied."""
        before = self.group
        decision = self.controller.evaluate(request, self, unclean=False)
        if isinstance(decision, Refusal):
            return decision
        if isinstance(decision, Nothing):
            return self.group
        after = self.controller.apply(decision)
        assert after is not None
        self.elections += after.master_epoch > before.master_epoch
        self.expansions += after.master_epoch == before.master_epoch and len(after.sync_state_set) > len(
            before.sync_state_set
        )
        self.shrinks += after.master_epoch == before.master_epoch and len(after.sync_state_set) < len(
            before.sync_state_set
        )
        return after

    def elect(self, broker_id: int) -> None:
        """By the controller, or, where there never was a master, for the broker that asks."""
        if self.group.master_epoch == 0:
            self.decided(ElectMaster(group=NAME, broker_id=broker_id))
        else:
            self.decided(ReplaceDeadMaster(group=NAME))

    # Brokers

    def die(self, broker_id: int) -> None:
        broker = self.brokers[broker_id]
        broker.stop()
        broker.alive = False
        for other in self.brokers.values():
            if other.connection is not None and other.connection.office.master == broker_id:
                other.connection = None

    def boot(self, broker_id: int) -> None:
        """What it was is forgotten, its log is not; a master of the epoch that goes on gives it up."""
        broker = self.brokers[broker_id]
        if broker.alive:
            return
        broker.alive, broker.acted_epoch = True, 0
        self.believed_dead.discard(broker_id)
        if self.group.master == broker_id:
            epoch = self.group.master_epoch
            self.decided(GiveUpMastership(group=NAME, broker_id=broker_id, master_epoch=epoch))
            if self.group.master_epoch == epoch:
                broker.alive = False

    def hear(self, broker_id: int) -> None:
        """Who is master now."""
        broker, group = self.brokers[broker_id], self.group
        if not broker.alive or group.master is None or group.master_epoch <= broker.acted_epoch:
            return
        broker.stop()
        broker.acted_epoch = group.master_epoch
        if group.master != broker_id:
            broker.follows = group.master
            return
        start = len(broker.log)
        broker.epochs = broker.epochs.append(group.master_epoch, start)
        view = SetView(confirmed=SyncStateSet.of(group.sync_state_set, group.sync_state_set_epoch))
        broker.office = Office(broker_id, group.master_epoch, start, view, broker.confirm)
        self.advance(broker.office)

    def connect(self, broker_id: int) -> None:
        """Shake hands with the master that it follows, cut, and send the first ack."""
        slave = self.brokers[broker_id]
        office = self.brokers[slave.follows].office if slave.follows is not None else None
        if not slave.alive or office is None or office.epoch != slave.acted_epoch:
            return
        master = self.brokers[office.master]
        point = truncation_point(slave.epochs, len(slave.log), master.epochs, len(master.log)) or 0
        del slave.log[point:]
        slave.epochs = master.epochs.entries_up_to(point)
        office.acked.pop(broker_id, None)
        slave.connection = office.slaves[broker_id] = Connection(broker_id, office, [point])

    def disconnect(self, broker_id: int) -> None:
        connection = self.brokers[broker_id].connection
        if connection is not None:
            leave(connection)
            self.brokers[broker_id].connection = None

    def copy(self, broker_id: int, count: int) -> None:
        """Some messages come, and an ack goes back."""
        slave = self.brokers[broker_id]
        if slave.connection is None or slave.connection.office.ended:
            return
        office = slave.connection.office
        master = self.brokers[office.master]
        for epoch in master.log[len(slave.log) : len(slave.log) + count]:
            slave.log.append(epoch)
        slave.epochs = master.epochs.entries_up_to(len(slave.log))
        slave.confirm = max(slave.confirm, min(office.confirm, len(slave.log)))
        slave.connection.acks.append(len(slave.log))

    def connections(self, slave: int) -> list[Connection]:
        """Those that a master holds for open."""
        return [office.slaves[slave] for office in self.offices() if slave in office.slaves]

    def ack_arrives(self, broker_id: int) -> None:
        for connection in self.connections(broker_id):
            if connection.acks:
                connection.office.acked[broker_id] = connection.acks.pop(0)
                self.advance(connection.office)

    def offices(self) -> list[Office]:
        return [broker.office for broker in self.brokers.values() if broker.office is not None]

    def write(self, broker_id: int, count: int) -> None:
        office = self.brokers[broker_id].office
        if office is not None:
            self.brokers[broker_id].log += [office.epoch] * count
            self.advance(office)

    def advance(self, office: Office) -> None:
        """What everybody has acked that must is confirmed: from now on it must never be gone."""
        log = self.brokers[office.master].log
        least = self.decide.least_acked(self.decide.must_ack(office.view), {**office.acked, office.master: len(log)})
        office.confirm = master_confirm_offset(office.confirm, least)
        self.brokers[office.master].confirm = office.confirm
        for offset, epoch in enumerate(log[: office.confirm]):
            known = self.promised.setdefault(offset, epoch)
            if known != epoch:
                raise PromiseBroken(f"at {offset} epoch {known} was confirmed, and now {epoch} by {office.master}")

    # Changes of the set

    def look(self, broker_id: int, lagging: set[int]) -> None:
        """The master looks who should be in the set, and proposes that; it has one open question at a time."""
        office = self.brokers[broker_id].office
        if office is None or office.waits_for is not None or office.has_to_learn:
            return
        slaves: Mapping[int, SlaveProgress] = {
            slave: SlaveProgress(
                acked_offset=office.acked[slave], caught_up_ns=LONG_AGO if slave in lagging else NOW, electable=True
            )
            for slave in sorted(office.acked)
            if slave in office.slaves
        }
        wanted = self.decide.wanted_members(
            office.view,
            slaves,
            own_id=broker_id,
            confirm_offset=office.confirm,
            epoch_start_offset=office.start,
            now_ns=NOW,
            max_time_not_caught_up_ns=MAX_LAG,
        )
        if wanted is None:
            return
        proposed = SyncStateSet.of(wanted, office.view.confirmed.epoch)
        office.view = self.decide.begin_alter(office.view, wanted)
        self.ask(office, proposed)
        self.advance(office)

    def ask(self, office: Office, proposed: SyncStateSet, *, withdraws: bool = False) -> None:
        """Send the controller a request, which is under way from now on."""
        request = AlterSyncStateSet(
            group=NAME, master_id=office.master, master_epoch=office.epoch, proposed=proposed, withdraws=withdraws
        )
        office.waits_for = Alter(office, request)
        self.under_way.append(office.waits_for)

    def alter_arrives(self, place: int) -> None:
        alter = self.under_way.pop(place)
        decision = self.decided(alter.request)
        if isinstance(decision, Group):
            alter.answer = decision.info.sync_state_set
        else:
            alter.answer = decision
        self.answers.append(alter)

    def answer_arrives(self, place: int) -> None:
        """At a master that has given the request up, nobody waits for it any more."""
        alter = self.answers.pop(place)
        office = alter.office
        if office.ended or office.waits_for is not alter:
            return
        office.waits_for = None
        if isinstance(alter.answer, SyncStateSet):
            office.view = self.decide.controller_says(office.view, alter.answer)
        else:
            if not alter.request.withdraws:
                office.view = alter_refused(office.view)
            office.has_to_learn = True
        self.advance(office)

    def give_up(self, broker_id: int) -> None:
        """No answer came in time; the request may be under way all the same."""
        office = self.brokers[broker_id].office
        if office is not None and office.waits_for is not None:
            office.waits_for, office.has_to_learn = None, True

    def learn(self, broker_id: int) -> None:
        """What the controller says of the set may decide, after a question that was given up or refused; where it does
        not, the question is withdrawn."""
        office = self.brokers[broker_id].office
        if office is None or not office.has_to_learn:
            return
        office.has_to_learn = False
        if self.group.master_epoch == office.epoch:
            told = SyncStateSet.of(self.group.sync_state_set, self.group.sync_state_set_epoch)
            office.view = self.decide.controller_says(office.view, told)
            self.advance(office)
        if office.view.proposed is not None:
            self.ask(office, office.view.confirmed, withdraws=True)

    # What holds

    def check(self) -> None:
        group = self.group
        for member in group.sync_state_set:
            log = self.brokers[member].log
            for offset, epoch in self.promised.items():
                if offset >= len(log) or log[offset] != epoch:
                    raise PromiseBroken(
                        f"{member} is in the set {group.sync_state_set}, and lacks the message of epoch {epoch} "
                        f"that was confirmed at {offset}: its log is {log}"
                    )
        if group.master is not None and group.master not in group.sync_state_set:
            raise PromiseBroken(f"master {group.master} is not in the set {group.sync_state_set}")
