"""The controller's decisions, pure: a request against the state gives a refusal, an answer, or an event.

`evaluate` looks and decides, and changes nothing; `apply` changes the state by an event that Raft has
committed, alike on every controller. Between the two nothing else may be decided: one event at a time.

Invariants: at most one master per master epoch; epochs only grow; the master is in the SyncStateSet; no
learner is ever in it or master.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from system_under_test.remoting.codes import ResponseCode
from system_under_test.rocketmq.controller.events import (
    BrokerDataCleaned,
    BrokerIdApplied,
    BrokerRegistered,
    Event,
    MasterElected,
    SyncStateSetAltered,
)
from system_under_test.rocketmq.controller.heartbeat import Liveness
from system_under_test.rocketmq.controller.protocol import BrokerReport, ReplicaInfo, SyncStateSet

MAX_GROUPS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    address: str
    check_code: str
    incarnation: str
    """The process that registered last; no other one lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One broker group."""

    name: str
    cluster: str
    replicas: Mapping[int, Replica]
    next_id: int = 1
    master: int | None = None
    master_epoch: int = 0
    sync_state_set: tuple[int, ...] = ()
    sync_state_set_epoch: int = 0

    @property
    def info(self) -> ReplicaInfo:
        replica = None if self.master is None else self.replicas.get(self.master)
        return ReplicaInfo(
            master_id=self.master,
            master_address=None if replica is None else replica.address,
            master_epoch=self.master_epoch,
            sync_state_set=SyncStateSet(members=self.sync_state_set, epoch=self.sync_state_set_epoch),
        )

    def living(self, broker_id: int, liveness: Liveness) -> BrokerReport | None:
        replica = self.replicas.get(broker_id)
        return None if replica is None else liveness.living(self.name, broker_id, replica.incarnation)

    def may_judge(self, broker_id: int, liveness: Liveness) -> bool:
        """Whether it may be taken for dead if it does not live."""
        replica = self.replicas.get(broker_id)
        return replica is None or liveness.may_judge(self.name, broker_id, replica.incarnation)


# -- requests


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyBrokerId:
    cluster: str
    group: str
    broker_id: int
    check_code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBroker:
    report: BrokerReport


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSyncStateSet:
    group: str
    master_id: int
    master_epoch: int
    proposed: SyncStateSet
    """The members wished for, and the epoch of the set they are to replace."""
    withdraws: bool = False
    """Leave the members alone, and fence all requests to replace this epoch's set that may still be under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectMaster:
    """By a broker for itself, or by an administrator (None)."""

    group: str
    broker_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignateMaster:
    """By an administrator."""

    group: str
    broker_id: int
    cluster: str = ""
    """The cluster that the group is to belong to; empty: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUpMastership:
    """By a master that came back after an unclean stop, perhaps with less than it had acknowledged."""

    group: str
    broker_id: int
    master_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceDeadMaster:
    """By the controller itself."""

    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanBrokerData:
    group: str
    broker_ids: tuple[int, ...] | None
    """Which brokers of the group; None is all."""
    protects_living: bool
    cluster: str = ""
    """The cluster that the group is to belong to; empty: any."""


Request = (
    ApplyBrokerId
    | RegisterBroker
    | AlterSyncStateSet
    | ElectMaster
    | DesignateMaster
    | GiveUpMastership
    | ReplaceDeadMaster
    | CleanBrokerData
)


def group_of(request: Request) -> str:
    return request.report.group if isinstance(request, RegisterBroker) else request.group


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    code: ResponseCode
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """Granted, and nothing is to be changed."""


Decision = Refusal | Nothing | Event

Candidates = Callable[[Group, Liveness, bool], tuple[BrokerReport, ...]]
"""Who may become master: (group, liveness, is unclean election on) → their reports."""


def living_candidates(group: Group, liveness: Liveness, unclean: bool) -> tuple[BrokerReport, ...]:
    """The living members of the SyncStateSet; only if there is none and unclean election is on, all living replicas.

    One that came back as a learner is taken where no other member lives: it holds everything, and nobody else may.
    """
    members = living_replicas(group, group.sync_state_set, liveness)
    if voters := without_who_learns(members):
        return voters
    if members or not unclean:
        return members
    return all_living_candidates(group, liveness)


def all_living_candidates(group: Group, liveness: Liveness) -> tuple[BrokerReport, ...]:
    """Members of the SyncStateSet or not; none that learns."""
    return without_who_learns(living_replicas(group, tuple(sorted(group.replicas)), liveness))


def living_replicas(group: Group, broker_ids: tuple[int, ...], liveness: Liveness) -> tuple[BrokerReport, ...]:
    """The reports of those of `broker_ids` that live."""
    reports = (group.living(broker_id, liveness) for broker_id in broker_ids)
    return tuple(report for report in reports if report is not None)


def without_who_learns(reports: tuple[BrokerReport, ...]) -> tuple[BrokerReport, ...]:
    return tuple(report for report in reports if not report.is_learner)


Awaited = Callable[[Group, Liveness], tuple[int, ...]]
"""Members of the SyncStateSet without whose word nobody may be elected: (group, liveness) → their ids."""


def unheard_members(group: Group, liveness: Liveness) -> tuple[int, ...]:
    """Those that neither live nor may be taken for dead yet: one that holds everything could be passed over."""
    return tuple(
        member
        for member in group.sync_state_set
        if group.living(member, liveness) is None and not group.may_judge(member, liveness)
    )


AwaitedByNewborn = Callable[[Group, Liveness, int], tuple[int, ...]]
"""The same where a master gives up that came back: (group, liveness, its id) → their ids."""


def members_without_a_word_since(group: Group, liveness: Liveness, newborn: int) -> tuple[int, ...]:
    """Those that have not reported since it came back and are not silent for the whole time-out either, though their
    channels may have closed; itself, if this controller has not heard it since. An older report would be lower than
    what that member holds, and the shorter log of the one that came back could win over it, or over nobody: what both
    had acknowledged would be cut."""

    def is_awaited(member: int) -> bool:
        replica = group.replicas.get(member)
        if replica is None or liveness.is_silent(group.name, member, replica.incarnation):
            return False
        if group.living(member, liveness) is None:
            return True
        return member != newborn and not liveness.has_reported_since_birth(group.name, member, newborn)

    return tuple(member for member in group.sync_state_set if is_awaited(member))


def best(candidates: tuple[BrokerReport, ...]) -> BrokerReport:
    """The newest log wins: by epoch, then by max offset; among equals the priority, then the lower id."""
    return min(
        candidates, key=lambda report: (-report.master_epoch, -report.max_offset, report.priority, report.broker_id)
    )


def owns_id(group: Group, request: ApplyBrokerId) -> bool:
    """Whether the id, which is taken, was applied for by the same broker; it asks again after a lost answer."""
    return group.replicas[request.broker_id].check_code == request.check_code


AlterCheck = Callable[[Group, AlterSyncStateSet, Liveness], "Refusal | None"]
"""One reason for which an Alter is refused."""


def changes_the_set(group: Group, request: AlterSyncStateSet, liveness: Liveness) -> Refusal | None:
    if (request.proposed.members == group.sync_state_set) is request.withdraws:
        return None
    how = "not " if request.withdraws else ""
    return _refuse(ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, f"the set is {how}the same as before")


def by_the_master(group: Group, request: AlterSyncStateSet, liveness: Liveness) -> Refusal | None:
    if request.master_id == group.master:
        return None
    return _refuse(ResponseCode.CONTROLLER_INVALID_MASTER, f"master is {group.master}, not {request.master_id}")


def under_the_master_epoch(group: Group, request: AlterSyncStateSet, liveness: Liveness) -> Refusal | None:
    if request.master_epoch == group.master_epoch:
        return None
    return _refuse(ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH, f"the master epoch is {group.master_epoch}")


def of_the_current_set(group: Group, request: AlterSyncStateSet, liveness: Liveness) -> Refusal | None:
    if request.proposed.epoch == group.sync_state_set_epoch:
        return None
    return _refuse(
        ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH, f"the set's epoch is {group.sync_state_set_epoch}"
    )


def to_living_replicas(group: Group, request: AlterSyncStateSet, liveness: Liveness) -> Refusal | None:
    """A member of the set may stay, dead or not: it has all that is confirmed, and if it could not stay, a
    dead member would keep another one in."""
    for member in request.proposed.members:
        if member not in group.replicas:
            return unknown_member(member)
        if member not in group.sync_state_set and group.living(member, liveness) is None:
            return _refuse(ResponseCode.CONTROLLER_BROKER_NOT_ALIVE, f"broker {member} is not alive")
    return None


def with_the_master(group: Group, request: AlterSyncStateSet, liveness: Liveness) -> Refusal | None:
    if group.master in request.proposed.members:
        return None
    return _refuse(ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, "the master is not in the set")


def without_learners(group: Group, request: AlterSyncStateSet, liveness: Liveness) -> Refusal | None:
    """A member may have come back as one since; a request that withdraws changes nothing. The master itself stays until
    it has been replaced."""
    if request.withdraws:
        return None
    for member in request.proposed.members:
        report = group.living(member, liveness)
        if report is not None and report.is_learner and member != group.master:
            return _refuse(ResponseCode.CONTROLLER_INVALID_REPLICAS, f"broker {member} is a learner")
    return None


def elected(group: Group, master: int | None) -> Group:
    """The group after an election: the master epoch grows by one, and the set is the new master alone."""
    group = replace(group, master=master, master_epoch=group.master_epoch + 1)
    if master is None:
        return group
    return replace(group, sync_state_set=(master,), sync_state_set_epoch=group.sync_state_set_epoch + 1)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The decisions of which the state machine is composed."""

    candidates: Candidates = living_candidates
    awaited: Awaited = unheard_members
    awaited_by_newborn: AwaitedByNewborn = members_without_a_word_since
    owns_id: Callable[[Group, ApplyBrokerId], bool] = owns_id
    alter_checks: tuple[AlterCheck, ...] = (
        changes_the_set,
        by_the_master,
        under_the_master_epoch,
        of_the_current_set,
        to_living_replicas,
        with_the_master,
        without_learners,
    )
    """Asked in this order; the first one that refuses is what the master is answered."""
    elected: Callable[[Group, int | None], Group] = elected


class ControllerStateMachine:
    """All broker groups, by name."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.groups: dict[str, Group] = {}
        self._rules = rules or Rules()

    def next_broker_id(self, group: str) -> int:
        known = self.groups.get(group)
        return 1 if known is None else known.next_id

    def evaluate(self, request: Request, liveness: Liveness, *, unclean: bool) -> Decision:
        if isinstance(request, ApplyBrokerId):
            return self._apply_broker_id(request)
        name = group_of(request)
        group = self.groups.get(name)
        if group is None:
            return _refuse(ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST, f"broker group {name!r} is unknown")
        if isinstance(request, RegisterBroker):
            return _register(group, request.report)
        if isinstance(request, AlterSyncStateSet):
            return self._alter(group, request, liveness)
        if isinstance(request, ElectMaster):
            return self._elect(group, request, liveness, unclean)
        if isinstance(request, DesignateMaster | CleanBrokerData) and request.cluster not in ("", group.cluster):
            return _refuse(
                ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST,
                f"broker group {name!r} belongs to cluster {group.cluster!r}, not {request.cluster!r}",
            )
        if isinstance(request, DesignateMaster):
            return self._designate(group, request, liveness, unclean)
        if isinstance(request, GiveUpMastership):
            return self._give_up(group, request, liveness)
        if isinstance(request, ReplaceDeadMaster):
            return self._replace_dead_master(group, liveness, unclean)
        return _clean(group, request, liveness)

    # -- decisions

    def _apply_broker_id(self, request: ApplyBrokerId) -> Decision:
        group = self.groups.get(request.group)
        if group is not None and request.broker_id in group.replicas:
            if self._rules.owns_id(group, request):
                return Nothing()
            return _refuse(ResponseCode.CONTROLLER_BROKER_ID_INVALID, f"id {request.broker_id} is taken")
        if group is None and len(self.groups) >= MAX_GROUPS:
            return _refuse(ResponseCode.CONTROLLER_INVALID_REQUEST, f"there are {MAX_GROUPS} groups already")
        expected = self.next_broker_id(request.group)
        if request.broker_id != expected:
            return _refuse(ResponseCode.CONTROLLER_BROKER_ID_INVALID, f"the next id is {expected}")
        return BrokerIdApplied(
            cluster=request.cluster,
            group=request.group,
            broker_id=request.broker_id,
            check_code=request.check_code,
        )

    def _alter(self, group: Group, request: AlterSyncStateSet, liveness: Liveness) -> Decision:
        for check in self._rules.alter_checks:
            refusal = check(group, request, liveness)
            if refusal is not None:
                return refusal
        return SyncStateSetAltered(group=group.name, members=request.proposed.members)

    def _elect(self, group: Group, request: ElectMaster, liveness: Liveness, unclean: bool) -> Decision:
        if request.broker_id is not None and request.broker_id not in group.replicas:
            return _unregistered(request.broker_id)
        if group.master_epoch == 0:
            return _first_master(group, request.broker_id, liveness)
        if group.master is not None and group.living(group.master, liveness) is not None:
            return _refuse(ResponseCode.CONTROLLER_MASTER_STILL_EXIST, f"master {group.master} lives")
        awaited = self._rules.awaited(group, liveness)
        if awaited:
            return _unheard(awaited)
        candidates = self._rules.candidates(group, liveness, unclean)
        if not candidates:
            return _refuse(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, "nobody who may become master lives")
        return MasterElected(group=group.name, master=best(candidates).broker_id)

    def _designate(self, group: Group, request: DesignateMaster, liveness: Liveness, unclean: bool) -> Decision:
        if request.broker_id not in group.replicas:
            return _unregistered(request.broker_id)
        if group.master_epoch == 0:
            return _first_master(group, request.broker_id, liveness)
        if request.broker_id == group.master and group.living(group.master, liveness) is not None:
            return _refuse(ResponseCode.CONTROLLER_MASTER_STILL_EXIST, f"{group.master} is master and lives")
        awaited = self._rules.awaited(group, liveness)
        if awaited:
            return _unheard(awaited)
        if all(report.broker_id != request.broker_id for report in self._rules.candidates(group, liveness, unclean)):
            return _refuse(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, f"{request.broker_id} may not become master")
        return MasterElected(group=group.name, master=request.broker_id)

    def _replace_dead_master(self, group: Group, liveness: Liveness, unclean: bool) -> Decision:
        if group.master_epoch == 0:
            return Nothing()
        if group.master is not None and group.living(group.master, liveness) is not None:
            return Nothing()
        if self._rules.awaited(group, liveness):
            return Nothing()
        candidates = self._rules.candidates(group, liveness, unclean)
        if candidates:
            return MasterElected(group=group.name, master=best(candidates).broker_id)
        return Nothing() if group.master is None else MasterElected(group=group.name, master=None)

    def _give_up(self, group: Group, request: GiveUpMastership, liveness: Liveness) -> Decision:
        """Elect anew, the one that gives up included, but only by reports made since it came back."""
        if request.broker_id != group.master:
            return _refuse(ResponseCode.CONTROLLER_INVALID_MASTER, f"master is {group.master}, not {request.broker_id}")
        if request.master_epoch != group.master_epoch:
            return _refuse(ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH, f"the master epoch is {group.master_epoch}")
        awaited = self._rules.awaited_by_newborn(group, liveness, request.broker_id)
        if awaited:
            return _refuse(
                ResponseCode.CONTROLLER_ELECT_MASTER_FAILED,
                f"broker {awaited[0]} has not reported since {request.broker_id} came back",
            )
        candidates = living_candidates(group, liveness, False)
        if not candidates:
            return _refuse(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, "no member of the SyncStateSet lives")
        return MasterElected(group=group.name, master=best(candidates).broker_id)

    # -- events

    def apply(self, event: Event) -> Group | None:
        """Change the state by a committed event. Returns the group as it is now, None if it is gone."""
        if isinstance(event, BrokerIdApplied):
            group = self.groups.get(event.group) or Group(name=event.group, cluster=event.cluster, replicas={})
            if event.broker_id not in group.replicas:
                replica = Replica(address="", check_code=event.check_code, incarnation="")
                group = replace(
                    group,
                    replicas={**group.replicas, event.broker_id: replica},
                    next_id=max(group.next_id, event.broker_id + 1),
                )
            self.groups[event.group] = group
            return group
        known = self.groups.get(event.group)
        if known is None:
            return None
        if isinstance(event, BrokerDataCleaned) and event.broker_ids is None:
            del self.groups[event.group]
            return None
        group = self._rules.elected(known, event.master) if isinstance(event, MasterElected) else _changed(known, event)
        self.groups[event.group] = group
        return group


def _changed(group: Group, event: BrokerRegistered | SyncStateSetAltered | BrokerDataCleaned) -> Group:
    if isinstance(event, BrokerRegistered):
        replica = replace(group.replicas[event.broker_id], address=event.address, incarnation=event.incarnation)
        return replace(group, replicas={**group.replicas, event.broker_id: replica})
    if isinstance(event, SyncStateSetAltered):
        return replace(group, sync_state_set=event.members, sync_state_set_epoch=group.sync_state_set_epoch + 1)
    gone = event.broker_ids or ()
    members = tuple(member for member in group.sync_state_set if member not in gone)
    changes = 0 if members == group.sync_state_set else 1
    return replace(
        group,
        replicas={broker_id: replica for broker_id, replica in group.replicas.items() if broker_id not in gone},
        master=None if group.master in gone else group.master,
        sync_state_set=members,
        sync_state_set_epoch=group.sync_state_set_epoch + changes,
    )


def _refuse(code: ResponseCode, remark: str) -> Refusal:
    return Refusal(code=code, remark=remark)


def unknown_member(broker_id: int) -> Refusal:
    return _refuse(ResponseCode.CONTROLLER_INVALID_REPLICAS, f"broker {broker_id} is unknown")


def _unregistered(broker_id: int) -> Refusal:
    return _refuse(ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, f"broker {broker_id} is not registered")


def _unheard(awaited: tuple[int, ...]) -> Refusal:
    return _refuse(
        ResponseCode.CONTROLLER_ELECT_MASTER_FAILED,
        f"broker {awaited[0]}, of the SyncStateSet, was not heard of yet, and may live",
    )


def _register(group: Group, report: BrokerReport) -> Decision:
    replica = group.replicas.get(report.broker_id)
    if replica is None:
        return _unregistered(report.broker_id)
    if (replica.address, replica.incarnation) == (report.address, report.incarnation):
        return Nothing()
    return BrokerRegistered(
        group=group.name, broker_id=report.broker_id, address=report.address, incarnation=report.incarnation
    )


def _first_master(group: Group, broker_id: int | None, liveness: Liveness) -> Decision:
    """A group that never had a master: there is nothing to lose, so the broker that asks first gets it."""
    if broker_id is None:
        return _refuse(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, "no broker has asked to be the first master yet")
    report = group.living(broker_id, liveness)
    if report is None:
        # It may be a learner, too: only a report says so.
        return _refuse(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, f"broker {broker_id} is not alive")
    if report.is_learner:
        return _refuse(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, f"broker {broker_id} is a learner")
    return MasterElected(group=group.name, master=broker_id)


def _clean(group: Group, request: CleanBrokerData, liveness: Liveness) -> Decision:
    broker_ids = tuple(sorted(group.replicas)) if request.broker_ids is None else request.broker_ids
    for broker_id in broker_ids:
        if broker_id not in group.replicas:
            return _refuse(ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA, f"broker {broker_id} is unknown")
        if request.protects_living and group.living(broker_id, liveness) is not None:
            return _refuse(ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA, f"broker {broker_id} lives")
        if request.protects_living and not group.may_judge(broker_id, liveness):
            return _refuse(
                ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA,
                f"broker {broker_id} was not heard of yet, and may live",
            )
    is_last = bool(group.sync_state_set) and set(group.sync_state_set) <= set(broker_ids) < set(group.replicas)
    if request.protects_living and is_last:
        # Nobody could be elected any more, as if all that was acknowledged had never been.
        return _refuse(
            ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA,
            "no member of the SyncStateSet would be left: clean the whole group, or living brokers, too",
        )
    return BrokerDataCleaned(group=group.name, broker_ids=request.broker_ids)
