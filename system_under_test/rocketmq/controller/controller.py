"""The controller: answers requests, decides one event at a time through Raft, watches who lives.

Only the active controller (leader, own no-op applied) answers, save for its metadata and its settings; it
alone scans for dead masters and tells brokers their roles. A request whose event is not seen applied in
time ends with CONTROLLER_APPLY_TIMEOUT: it may have happened. Every other refusal means that nothing was
changed, and no answer is given from a state that may be stale: where nothing is appended, a read barrier
stands in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from system_under_test.raft.driver import LeadershipLost, NotLeader, RaftNode
from system_under_test.raft.membership import UnfitChange
from system_under_test.raft.message import Entry
from system_under_test.raft.snapshot import Snapshot
from system_under_test.raft.transport import PeerTransport
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.properties import encode_properties
from system_under_test.remoting.server import Answer, Peer, RemotingServer
from system_under_test.replicated.answers import Answers, Busy, not_leader, outcome_unknown
from system_under_test.replicated.key_value import MalformedCommand
from system_under_test.replicated.key_value_service import KeyValueService
from system_under_test.replicated.members import NotTakenOver
from system_under_test.replicated.shared_port import SharedPort
from system_under_test.rocketmq.controller import events
from system_under_test.rocketmq.controller.changed_settings import ChangedSettings, parse_changes
from system_under_test.rocketmq.controller.config import ControllerConfig
from system_under_test.rocketmq.controller.describe import describe
from system_under_test.rocketmq.controller.heartbeat import LivenessTable, pulse_text
from system_under_test.rocketmq.controller.membership import (
    AddController,
    ControllerMembership,
    MemberRequest,
    parse_member_request,
)
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.protocol import (
    BrokerReport,
    MalformedRequest,
    ReplicaInfo,
    json_body,
    parse_names,
    text,
)
from system_under_test.rocketmq.controller.replicated_state import ReplicatedState, check, command_entry, event_entry
from system_under_test.rocketmq.controller.requests import parse_request
from system_under_test.rocketmq.controller.state_machine import (
    AlterSyncStateSet,
    Group,
    Nothing,
    Refusal,
    RegisterBroker,
    ReplaceDeadMaster,
    Request,
    group_of,
)
from system_under_test.runtime.host import ConnectFailed, DiskFull, Host

MAX_QUEUED = 1024
"""Requests that wait to be decided; those beyond are answered SYSTEM_BUSY."""
MAX_NOTICES = 256
"""Role notices under way; those beyond are dropped, as brokers poll anyway."""


@dataclass(slots=True)
class _Undecided:
    request: Request
    outcome: asyncio.Future[Refusal | Group | None]


class Controller:
    """`handle` and `on_close` are for the RemotingServer that listens for it."""

    def __init__(self, host: Host, config: ControllerConfig, parts: ControllerParts) -> None:
        self._host = host
        self._settings = ChangedSettings(host.disk, config)
        self._parts = parts
        self._replicated = ReplicatedState(parts.rules)
        self._state = self._replicated.brokers
        self._liveness = LivenessTable(
            timeout_ns=int(config.broker_timeout_s * 1e9),
            started_ns=host.clock.monotonic_ns(),
            noted_report=parts.noted_report,
        )
        self._life = f"{host.random.getrandbits(64):016x}"
        self._leading_since_ns = 0
        raft = config.raft()
        self._raft_transport = PeerTransport(
            host,
            node=config.self_id,
            address=config.peers[config.self_id],
            silence_s=config.raft_max_election_timeout_s,
        )
        self._raft = RaftNode(
            host,
            raft,
            core=parts.raft_core,
            storage=parts.raft_storage(host.disk, raft.directory),
            transport=self._raft_transport,
            check=check,
            apply=self._apply,
            snapshot=self._replicated.snapshot,
            restore=self._restore,
            on_leadership=self._on_leadership,
        )
        self._remoting = RemotingClient(host)
        self._membership = ControllerMembership(host, self._raft, config, self._remoting)
        self._answers = Answers(host, lambda: self._config.apply_timeout_s, self._not_leader)
        self._values = KeyValueService(
            host,
            self._raft,
            self._replicated.values,
            self._answers,
            lambda command: self._propose(command_entry(command)),
            parts.values,
        )
        self._queue: deque[_Undecided] = deque()
        self._asked = asyncio.Event()
        self._look_now = asyncio.Event()
        self._notices: dict[int, asyncio.Task[None]] = {}
        self._notice_serial = 0
        self._agreed: dict[str, tuple[object, ...]] = {}
        """Group -> its master and SyncStateSet as they were told last."""
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, requests: RemotingServer) -> None:
        """Recover, take part in Raft, and take requests. Raises OSError if a port is taken, StorageCorrupt."""
        self._settings.load()
        self._go_by_settings()
        await self._raft.start()
        config = self._config
        if config.listen_port is None:
            await SharedPort(self._host, requests, self._raft_transport).start(config.raft_port)
        else:
            await self._raft_transport.start(config.raft_port)
        self._tasks = [
            self._host.spawn(self._decide_in_turn(), "controller decisions"),
            self._host.spawn(self._scan(), "controller scan"),
        ]
        if config.listen_port is not None:
            await requests.start(config.listen_port)

    async def stop(self) -> None:
        for task in [*self._tasks, *self._notices.values()]:
            task.cancel()
        self._membership.stop()
        await self._raft.stop()
        self._raft_transport.close()
        self._remoting.close()

    @property
    def is_active(self) -> bool:
        return self._raft.is_active

    # -- requests

    def handle(self, command: RemotingCommand, peer: Peer) -> Answer | Coroutine[Any, Any, Answer]:
        code = command.code
        try:
            answer = self._values.handle(command)
            if answer is not None:
                return answer
            if code == RequestCode.BROKER_HEARTBEAT:
                return self._on_heartbeat(command, peer)
            if code == RequestCode.CONTROLLER_GET_METADATA_INFO:
                return RemotingCommand.response(ResponseCode.SUCCESS, self._membership.metadata().to_fields())
            if code == RequestCode.GET_CONTROLLER_CONFIG:
                return RemotingCommand.response(ResponseCode.SUCCESS, body=encode_properties(self._config.public()))
            if code == RequestCode.UPDATE_CONTROLLER_CONFIG:
                return self._update_config(parse_changes(command.body))
            if code == RequestCode.CONTROLLER_GET_REPLICA_INFO:
                name = text(command.ext_fields, "brokerName")
                return self._read(lambda: self._replica_info(name))
            if code == RequestCode.CONTROLLER_GET_SYNC_STATE_DATA:
                names = parse_names(command.body)
                return self._read(lambda: self._sync_state_data(names))
            if code == RequestCode.CONTROLLER_GET_NEXT_BROKER_ID:
                name = text(command.ext_fields, "brokerName")
                return self._read(lambda: self._next_broker_id(name))
            member_request = parse_member_request(command)
            if member_request is not None:
                return self._change_members(member_request)
            request = parse_request(command)
        except (MalformedRequest, MalformedCommand) as error:
            return RemotingCommand.response(ResponseCode.CONTROLLER_INVALID_REQUEST, remark=str(error))
        if request is None:
            return RemotingCommand.response(
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=f"a controller does not know request {code}"
            )
        if isinstance(request, RegisterBroker):
            return self._register(request, peer)
        if isinstance(request, AlterSyncStateSet):
            self._host.reached("alter-received")
        return self._decide(request)

    def on_close(self, peer: Peer) -> None:
        """A broker whose channel closes is dead at once."""
        if self._liveness.closed(peer):
            self._host.reached("broker-connection-closed")
            self._look_now.set()

    @property
    def _config(self) -> ControllerConfig:
        return self._settings.config

    async def _update_config(self, changes: Mapping[str, str]) -> RemotingCommand:
        try:
            await self._settings.update(changes)
        except MalformedRequest as error:
            return RemotingCommand.response(ResponseCode.CONTROLLER_INVALID_REQUEST, remark=str(error))
        except DiskFull as error:
            return RemotingCommand.response(ResponseCode.DISK_FULL, remark=str(error))
        self._host.log("settings_changed", **changes)
        self._go_by_settings()
        self._look_now.set()
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _go_by_settings(self) -> None:
        self._liveness.timeout_ns = int(self._config.broker_timeout_s * 1e9)

    async def _change_members(self, request: MemberRequest) -> RemotingCommand:
        try:
            refusal = await self._answers.wait(self._membership.carry_out, request)
        except UnfitChange as error:
            return RemotingCommand.response(ResponseCode.CONTROLLER_UNFIT_CHANGE, remark=str(error))
        except NotTakenOver as error:
            return RemotingCommand.response(ResponseCode.CONTROLLER_NOT_TAKEN_OVER, remark=str(error))
        is_learner = isinstance(request, AddController) and request.node in self._raft.membership.learners
        if is_learner and refusal and refusal.code == ResponseCode.CONTROLLER_APPLY_TIMEOUT:
            return outcome_unknown(
                f"{request.node} has not caught up yet: it votes as soon as it has; ask again to wait for it"
            )
        return refusal or RemotingCommand.response(ResponseCode.SUCCESS)

    def _on_heartbeat(self, command: RemotingCommand, peer: Peer) -> RemotingCommand:
        report = BrokerReport.from_fields(command.ext_fields)
        pulse = self._record(report, peer, self._parts.seen_pulse(self._life, command.ext_fields.get("pulse", "")))
        fields = {"pulse": pulse_text(self._life, pulse)}
        if self._raft.is_active and self._registered(report) != report.incarnation:
            fields["unregistered"] = "true"
        controllers = self._membership.announced()
        if controllers is not None:
            fields |= controllers.to_fields()
        return RemotingCommand.response(ResponseCode.SUCCESS, fields)

    def _registered(self, report: BrokerReport) -> str | None:
        """The process of this broker that registered last."""
        group = self._state.groups.get(report.group)
        replica = None if group is None else group.replicas.get(report.broker_id)
        return None if replica is None else replica.incarnation

    def _record(self, report: BrokerReport, peer: Peer, seen_pulse: int) -> int:
        return self._liveness.record(
            report,
            registered=self._registered(report),
            channel=peer,
            seen_pulse=seen_pulse,
            now_ns=self._host.clock.monotonic_ns(),
        )

    # -- reads

    async def _read(self, look: Callable[[], RemotingCommand]) -> RemotingCommand:
        """What `look` finds once the applied state may be read."""
        return await self._answers.wait(self._parts.read_barrier, self._raft) or look()

    def _replica_info(self, name: str) -> RemotingCommand:
        group = self._state.groups.get(name)
        if group is None:
            return RemotingCommand.response(
                ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST, remark=f"broker group {name!r} is unknown"
            )
        return _info_response(ResponseCode.SUCCESS, group.info)

    def _next_broker_id(self, name: str) -> RemotingCommand:
        fields = {"brokerName": name, "nextBrokerId": str(self._state.next_broker_id(name))}
        return RemotingCommand.response(ResponseCode.SUCCESS, fields)

    def _sync_state_data(self, names: Sequence[str]) -> RemotingCommand:
        self._liveness.expire(self._host.clock.monotonic_ns())
        known = self._state.groups
        wanted = [known[name] for name in names if name in known]
        table = {group.name: describe(group, self._liveness) for group in wanted}
        return RemotingCommand.response(ResponseCode.SUCCESS, body=json_body({"replicasInfoTable": table}))

    def _not_leader(self, leader: str | None) -> RemotingCommand:
        node = self._config.self_id
        address = self._membership.request_address(leader)
        return not_leader(node, leader, address, f"{node} is not the active controller")

    # -- decisions, one at a time

    async def _decide(self, request: Request) -> RemotingCommand:
        outcome = await self._answers.wait(self._enqueue, request)
        if isinstance(outcome, Refusal):
            return self._refuse(request, outcome)
        if isinstance(outcome, Group):
            return _info_response(ResponseCode.SUCCESS, outcome.info)
        return outcome or RemotingCommand.response(ResponseCode.SUCCESS)

    async def _register(self, request: RegisterBroker, peer: Peer) -> RemotingCommand:
        outcome = await self._answers.wait(self._enqueue, request)
        if isinstance(outcome, Refusal):
            return self._refuse(request, outcome)
        if not isinstance(outcome, Group):
            return outcome or RemotingCommand.response(ResponseCode.SUCCESS)
        self._host.reached("registered")
        # From now on this incarnation is the one that counts, and this is its first report.
        self._record(request.report, peer, 0)
        return _info_response(ResponseCode.SUCCESS, self._parts.registration_answer(outcome, self._liveness))

    def _refuse(self, request: Request, refusal: Refusal) -> RemotingCommand:
        group = self._state.groups.get(group_of(request))
        if refusal.code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST and group is not None:
            return _info_response(refusal.code, group.info, refusal.remark)
        return RemotingCommand.response(refusal.code, remark=refusal.remark)

    def _enqueue(self, request: Request) -> asyncio.Future[Refusal | Group | None]:
        """Raises NotLeader, Busy."""
        future: asyncio.Future[Refusal | Group | None] = asyncio.get_running_loop().create_future()
        if not self._raft.is_active:
            raise NotLeader(self._raft.leader)
        if len(self._queue) >= MAX_QUEUED:
            raise Busy
        self._queue.append(_Undecided(request, future))
        self._asked.set()
        return future

    async def _decide_in_turn(self) -> None:
        """An event is decided on a state in which the one before it is applied, or will never be by this
        leadership. So this waits however long that takes, while those who asked may give up waiting."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            while self._queue:
                undecided = self._queue.popleft()
                if undecided.outcome.done():
                    continue
                try:
                    outcome = await self._evaluate(undecided.request)
                except (NotLeader, LeadershipLost) as error:
                    if not undecided.outcome.done():
                        undecided.outcome.set_exception(error)
                else:
                    if not undecided.outcome.done():
                        undecided.outcome.set_result(outcome)

    async def _evaluate(self, request: Request) -> Refusal | Group | None:
        self._liveness.expire(self._host.clock.monotonic_ns())
        decision = self._state.evaluate(request, self._liveness, unclean=self._config.enable_elect_unclean_master)
        if isinstance(decision, Refusal | Nothing):
            await self._parts.unchanged_barrier(self._raft)
            if isinstance(decision, Refusal):
                return decision
            return self._state.groups.get(group_of(request))
        before = self._state.groups.get(group_of(request))
        grounds: dict[str, object] = {}
        if isinstance(decision, events.MasterElected):
            self._host.reached("election-decided")
            if before is not None:
                grounds = self._grounds(before, decision.master)
        elif isinstance(request, AlterSyncStateSet) and isinstance(decision, events.SyncStateSetAltered) and before:
            newcomers = set(decision.members) - set(before.sync_state_set)
            dead = sum(before.living(member, self._liveness) is None for member in newcomers)
            stale = (request.master_epoch, request.proposed.epoch) != (before.master_epoch, before.sync_state_set_epoch)
            self._host.reached("alter-decided", dead=dead, stale=stale)
        group: Group | None = await self._propose(event_entry(decision))
        if isinstance(decision, events.MasterElected) and group is not None and before is not None:
            self._host.log("elected", group=group.name, master=group.master, master_epoch=group.master_epoch, **grounds)
            self._host.reached("elected-master")
            self._notify(group)
        elif isinstance(decision, events.SyncStateSetAltered):
            self._host.reached("alter-applied")
        return group

    def _grounds(self, group: Group, master: int | None) -> dict[str, object]:
        """On which this one, or nobody, is elected: who was in sync and lived, and by which end of its log it ranks."""
        report = None if master is None else group.living(master, self._liveness)
        return {
            "in_sync": list(group.sync_state_set),
            "in_sync_alive": [member for member in group.sync_state_set if group.living(member, self._liveness)],
            "max_offset": None if report is None else report.max_offset,
            "unclean_allowed": self._config.enable_elect_unclean_master,
        }

    def _propose(self, entry: bytes) -> Awaitable[Any]:
        return self._parts.propose(self._host, self._raft, self._replicated, entry)

    def _apply(self, entry: Entry) -> Any:
        self._answers.applied = entry.index
        applied = self._replicated.apply(entry.data)
        if isinstance(applied, Group):
            self._expect(applied)
            self._tell_agreed(entry.index, applied)
        return applied

    def _restore(self, snapshot: Snapshot) -> None:
        self._answers.applied = snapshot.index
        self._replicated.restore(snapshot.data)
        for _, group in sorted(self._state.groups.items()):
            self._expect(group)
            self._tell_agreed(snapshot.index, group)

    def _expect(self, group: Group) -> None:
        """From now on heartbeats of those that registered last have to come here, too."""
        now_ns = self._host.clock.monotonic_ns()
        for broker_id, replica in group.replicas.items():
            self._liveness.expect(group.name, broker_id, replica.incarnation, now_ns)

    def _tell_agreed(self, index: int, group: Group) -> None:
        agreed = (group.master, group.master_epoch, group.sync_state_set, group.sync_state_set_epoch)
        if self._agreed.get(group.name) == agreed:
            return
        self._agreed[group.name] = agreed
        self._host.log(
            "set_agreed",
            group=group.name,
            index=index,
            master=group.master,
            master_epoch=group.master_epoch,
            members=list(group.sync_state_set),
            epoch=group.sync_state_set_epoch,
        )

    # -- the active controller's own business

    def _on_leadership(self, is_active: bool) -> None:
        if is_active:
            self._leading_since_ns = self._host.clock.monotonic_ns()
            self._membership.promote_learners()
        self._host.log("leader" if is_active else "follower", term=self._raft.term)
        self._look_now.set()

    async def _scan(self) -> None:
        """Look for dead masters, at once when a channel closed, otherwise at intervals; silent brokers are found on the
        way, so this is done as often as the one or the other is to be."""
        while True:
            config = self._config
            try:
                await self._host.clock.within(
                    min(config.scan_interval_s, config.expiry_interval_s), self._look_now.wait()
                )
            except TimeoutError:
                self._host.reached("looked-for-dead-masters")
            self._look_now.clear()
            for name in sorted(self._state.groups):
                if self._raft.is_active and self._needs_master(self._state.groups[name]):
                    await self._replace_dead_master(name)

    def _needs_master(self, group: Group) -> bool:
        if self._liveness.expire(self._host.clock.monotonic_ns()):
            self._host.reached("heartbeat-expired")
        return self._parts.needs_master(group, self._liveness, self._leading_since_ns)

    async def _replace_dead_master(self, name: str) -> None:
        self._host.reached("found-master-dead")
        for _ in range(self._config.election_tries):
            try:
                await self._host.clock.within(
                    self._config.apply_timeout_s, self._enqueue(ReplaceDeadMaster(group=name))
                )
                return
            except TimeoutError:
                continue
            except (NotLeader, LeadershipLost, Busy):
                return

    def _notify(self, group: Group) -> None:
        if not self._config.notify_broker_role_changed:
            return
        info = group.info
        for broker_id in sorted(group.replicas):
            if group.living(broker_id, self._liveness) is None or len(self._notices) >= MAX_NOTICES:
                continue
            self._notice_serial += 1
            notice = self._send_notice(self._notice_serial, group.replicas[broker_id].address, group.name, info)
            self._notices[self._notice_serial] = self._host.spawn(notice, f"role notice to broker {broker_id}")

    async def _send_notice(self, serial: int, address: str, group: str, info: ReplicaInfo) -> None:
        fields = {"brokerName": group, **info.to_fields()}
        command = RemotingCommand.oneway(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, fields, info.to_body())
        try:
            self._host.reached("about-to-notify")
            await self._remoting.oneway(address, command)
        except ConnectFailed as error:
            self._host.log("role_notice_lost", address=address, reason=str(error))
        finally:
            self._notices.pop(serial, None)


def _info_response(code: int, info: ReplicaInfo, remark: str | None = None) -> RemotingCommand:
    return RemotingCommand.response(code, info.to_fields(), info.to_body(), remark)
