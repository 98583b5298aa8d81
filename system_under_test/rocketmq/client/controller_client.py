"""How brokers, administrators and the harness talk to the controllers.

The client finds the active controller by asking any of them for its metadata and remembers it until
another one is named. One call sends at most one request that can take effect; after a failure the next call
looks for the active controller again. Errors say whether the request may have taken effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.properties import decode_properties, encode_properties
from system_under_test.rocketmq.controller.protocol import (
    BrokerReport,
    ControllerMetadata,
    GroupState,
    KnownControllers,
    ReplicaInfo,
    ReplicaState,
    SyncStateSet,
    flag,
    json_body,
    number,
    parse_json,
)
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host

T = TypeVar("T")

MAX_PULSE = 64
"""Characters of a pulse that are brought back."""
_INDEFINITE = frozenset(
    {ResponseCode.CONTROLLER_APPLY_TIMEOUT, ResponseCode.SYSTEM_ERROR, ResponseCode.FLUSH_DISK_TIMEOUT}
)


class ControllerRefusal(ClientError):
    """The controller answered, but not with success."""

    def __init__(self, response_code: int, detail: str, node: str) -> None:
        if response_code == ResponseCode.CONTROLLER_NOT_LEADER:
            code = "not-leader"
        elif response_code in _INDEFINITE:
            code = "outcome-unknown"
        else:
            code = "precondition-failed"
        super().__init__(code, response_code not in _INDEFINITE, f"{response_code}: {detail}", node)
        self.response_code = response_code


class ControllerClient:
    """`controllers`: addresses `name:port` of all of them, or of some from which the others can be learned."""

    def __init__(self, host: Host, controllers: Sequence[str], timeout_s: float = 3.0) -> None:
        if not controllers:
            raise ValueError("at least one controller address is needed")
        self.controllers = tuple(controllers)
        """As far as controllers have told."""
        self._version = -1
        self._configured = self.controllers
        self.active: str | None = None
        """The address that is believed to be the active controller's."""
        self._timeout_s = timeout_s
        self._remoting = RemotingClient(host)
        self._pulses: dict[tuple[str, str, int], str] = {}
        self._asked = 0

    def close(self) -> None:
        self._remoting.close()

    async def metadata(self, controller: str) -> ControllerMetadata:
        """Answered by any controller."""
        command = RemotingCommand.request(RequestCode.CONTROLLER_GET_METADATA_INFO)
        answer = await self._invoke(controller, command)
        metadata = _decoded(lambda: ControllerMetadata.from_fields(answer.ext_fields))
        self._learn(metadata.controllers)
        return metadata

    async def find_active(self) -> str:
        """The active controller's address, by asking each in turn. Raises ClientError `not-leader`."""
        if self.active is not None:
            return self.active
        return await self.look_for_active()

    async def look_for_active(self) -> str:
        """As `find_active`, and also where one is believed to be it. Raises ClientError `not-leader`; then the one that
        was believed to be it is so still."""
        hint: str | None = None
        unanswered = ""
        candidates = [*self.controllers, *(one for one in self._configured if one not in self.controllers)]
        for _ in candidates:
            controller = candidates[self._asked % len(candidates)]
            self._asked += 1
            try:
                metadata = await self.metadata(controller)
            except ClientError as error:
                unanswered = f"; {controller}: {error}"
                continue
            if metadata.is_active:
                self.active = controller
                return controller
            hint = metadata.leader_address or hint
        if hint is not None and hint in candidates:
            self.active = hint
            return hint
        if hint is not None and await self._leads(hint):
            # It was added since this client was started.
            self.active = hint
            return hint
        raise ClientError("not-leader", True, f"no controller says it is active{unanswered}")

    async def _leads(self, controller: str) -> bool:
        try:
            return (await self.metadata(controller)).is_active
        except ClientError:
            return False

    async def get_next_broker_id(self, cluster: str, group: str) -> int:
        """Step 1 of registration: the id to apply for."""
        fields = {"clusterName": cluster, "brokerName": group}
        answer = await self._ask(RemotingCommand.request(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, fields))
        return _decoded(lambda: number(answer.ext_fields, "nextBrokerId"))

    async def apply_broker_id(self, cluster: str, group: str, broker_id: int, check_code: str) -> None:
        """Step 2, after (id, check code) is durable. Raises ControllerRefusal CONTROLLER_BROKER_ID_INVALID
        when another broker has the id: begin again at step 1. Repeating a success is a success."""
        fields = {
            "clusterName": cluster,
            "brokerName": group,
            "appliedBrokerId": str(broker_id),
            "registerCheckCode": check_code,
        }
        await self._ask(RemotingCommand.request(RequestCode.CONTROLLER_APPLY_BROKER_ID, fields))

    async def register_broker(self, report: BrokerReport) -> ReplicaInfo:
        """Step 3, at every start of the process: from now on only this incarnation's heartbeats count.

        It is a first heartbeat as well. The master is None in the answer unless it lives.
        """
        fields = report.to_fields()
        answer = await self._ask(RemotingCommand.request(RequestCode.CONTROLLER_REGISTER_BROKER, fields))
        return _replica_info(answer)

    async def heartbeat(self, controller: str, report: BrokerReport) -> bool:
        """To be sent to every controller each second; each keeps its own account of who lives.

        Returns whether the broker counts; it does not where the active controller knows another process of it as the
        one that registered last. Then it has to register again.
        """
        fields = report.to_fields()
        speaker = (controller, report.group, report.broker_id)
        fields["pulse"] = self._pulses.get(speaker, "")
        answer = await self._invoke(controller, RemotingCommand.request(RequestCode.BROKER_HEARTBEAT, fields))
        self._learn(_decoded(lambda: KnownControllers.from_fields(answer.ext_fields)))
        self._pulses[speaker] = answer.ext_fields.get("pulse", "")[:MAX_PULSE]
        return not flag(answer.ext_fields, "unregistered")

    async def get_replica_info(self, group: str) -> ReplicaInfo:
        command = RemotingCommand.request(RequestCode.CONTROLLER_GET_REPLICA_INFO, {"brokerName": group})
        return _replica_info(await self._ask(command))

    async def alter_sync_state_set(
        self, group: str, master_id: int, master_epoch: int, members: Iterable[int], sync_state_set_epoch: int
    ) -> SyncStateSet:
        """Ask for another SyncStateSet; `sync_state_set_epoch` is that of the set to be replaced."""
        return await self._alter(group, master_id, master_epoch, SyncStateSet.of(members, sync_state_set_epoch), {})

    async def withdraw_alter(
        self, group: str, master_id: int, master_epoch: int, unchanged: SyncStateSet
    ) -> SyncStateSet:
        """Raise the epoch of this set and leave its members alone: no earlier request to replace it can take effect
        any more. Raises ControllerRefusal CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH where one has taken effect."""
        return await self._alter(group, master_id, master_epoch, unchanged, {"withdraws": "true"})

    async def _alter(
        self, group: str, master_id: int, master_epoch: int, proposed: SyncStateSet, extra: Mapping[str, str]
    ) -> SyncStateSet:
        fields = {"brokerName": group, "masterBrokerId": str(master_id), "masterEpoch": str(master_epoch), **extra}
        command = RemotingCommand.request(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, fields, proposed.to_body())
        return _sync_state_set(await self._ask(command))

    async def elect_master(self, cluster: str, group: str, broker_id: int | None) -> ReplicaInfo:
        """Ask for an election; `broker_id` is the broker that asks for itself, None for an administrator.

        Where the master lives this raises ControllerRefusal CONTROLLER_MASTER_STILL_EXIST.
        """
        return await self._elect(cluster, group, broker_id, {})

    async def designate_master(self, cluster: str, group: str, broker_id: int) -> ReplicaInfo:
        """An administrator's wish: this broker or nobody, even though the master lives."""
        return await self._elect(cluster, group, broker_id, {"designateElect": "true"})

    async def give_up_mastership(self, cluster: str, group: str, broker_id: int, master_epoch: int) -> ReplicaInfo:
        """The master of this epoch says that its log may be shorter than what it acked.

        The controller elects anew among the living members of the SyncStateSet, this broker included, by
        what each has reported since this incarnation's first report, and always under a new epoch. As long as
        a living member has not reported since, it raises ControllerRefusal CONTROLLER_ELECT_MASTER_FAILED:
        go on with heartbeats, and ask again after one.
        """
        fields = {"giveUp": "true", "masterEpoch": str(master_epoch)}
        return await self._elect(cluster, group, broker_id, fields)

    async def sync_state_data(self, groups: Iterable[str]) -> dict[str, GroupState]:
        """For administrators: everything about these broker groups; unknown ones are left out."""
        command = RemotingCommand.request(RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, {}, json_body(sorted(groups)))
        answer = await self._ask(command)
        return _decoded(lambda: group_states(answer.body))

    async def clean_broker_data(self, cluster: str, group: str, broker_ids: Iterable[int] | None) -> None:
        """Forget these replicas (None: the whole group). Refused while one of them lives."""
        await self._clean(cluster, group, broker_ids, {})

    async def clean_living_broker_data(self, cluster: str, group: str, broker_ids: Iterable[int] | None) -> None:
        """Forget these replicas (None: the whole group), even though they live."""
        await self._clean(cluster, group, broker_ids, {"isCleanLivingBroker": "true"})

    async def get_config(self, controller: str) -> dict[str, str]:
        """This controller's settings, by name."""
        answer = await self._invoke(controller, RemotingCommand.request(RequestCode.GET_CONTROLLER_CONFIG))
        return _decoded(lambda: decode_properties(answer.body))

    async def update_config(self, controller: str, settings: Mapping[str, str]) -> None:
        """Change settings of this controller alone; it keeps them over restarts."""
        command = RemotingCommand.request(RequestCode.UPDATE_CONTROLLER_CONFIG, {}, encode_properties(settings))
        await self._invoke(controller, command)

    async def add_controller(self, node: str, raft_address: str) -> None:
        """Have this one, which has to be running, catch up and vote. Repeating it is waiting for the same."""
        fields = {"controllerId": node, "controllerAddress": raft_address}
        await self._ask(RemotingCommand.request(RequestCode.CONTROLLER_ADD_MEMBER, fields))

    async def remove_controller(self, node: str) -> None:
        await self._ask(RemotingCommand.request(RequestCode.CONTROLLER_REMOVE_MEMBER, {"controllerId": node}))

    async def transfer_leadership(self, node: str) -> None:
        """Have this controller be the active one."""
        await self._ask(RemotingCommand.request(RequestCode.CONTROLLER_TRANSFER_LEADERSHIP, {"controllerId": node}))

    def _learn(self, controllers: KnownControllers | None) -> None:
        if controllers is not None and controllers.version > self._version:
            self.controllers, self._version = controllers.addresses, controllers.version

    async def _clean(
        self, cluster: str, group: str, broker_ids: Iterable[int] | None, extra: Mapping[str, str]
    ) -> None:
        fields = {"clusterName": cluster, "brokerName": group, **extra}
        if broker_ids is not None:
            fields["brokerControllerIdsToClean"] = ";".join(str(broker_id) for broker_id in sorted(broker_ids))
        await self._ask(RemotingCommand.request(RequestCode.CLEAN_BROKER_DATA, fields))

    async def _elect(self, cluster: str, group: str, broker_id: int | None, extra: Mapping[str, str]) -> ReplicaInfo:
        fields = {
            "clusterName": cluster,
            "brokerName": group,
            "brokerId": str(-1 if broker_id is None else broker_id),
            **extra,
        }
        return _replica_info(await self._ask(RemotingCommand.request(RequestCode.CONTROLLER_ELECT_MASTER, fields)))

    async def _ask(self, command: RemotingCommand) -> RemotingCommand:
        """Ask the active controller, once."""
        controller = await self.find_active()
        try:
            return await self._invoke(controller, command)
        except ClientError as error:
            if not isinstance(error, ControllerRefusal) or error.code == "not-leader":
                self.active = None
            raise

    async def _invoke(self, controller: str, command: RemotingCommand) -> RemotingCommand:
        try:
            answer = await self._remoting.invoke(controller, command, self._timeout_s)
        except ConnectFailed as error:
            raise ClientError("connect-failed", True, str(error), controller) from error
        except ConnectionClosed as error:
            raise ClientError("connection-lost", False, str(error), controller) from error
        except TimeoutError as error:
            raise ClientError("client-timeout", False, str(error), controller) from error
        if answer.code != ResponseCode.SUCCESS:
            raise ControllerRefusal(answer.code, answer.remark or "", controller)
        return answer


def _decoded(read: Callable[[], T]) -> T:
    try:
        return read()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClientError("outcome-unknown", False, f"malformed answer: {error!r}") from error


def _replica_info(answer: RemotingCommand) -> ReplicaInfo:
    return _decoded(lambda: ReplicaInfo.from_answer(answer.ext_fields, answer.body))


def _sync_state_set(answer: RemotingCommand) -> SyncStateSet:
    return _decoded(lambda: SyncStateSet.from_body(answer.body))


def group_states(body: bytes) -> dict[str, GroupState]:
    """The answer to getSyncStateSet. Raises ValueError, KeyError, TypeError, AttributeError."""
    table = parse_json(body)["replicasInfoTable"]
    return {group: _group_state(group, value) for group, value in sorted(table.items())}


def _group_state(group: str, value: Mapping[str, Any]) -> GroupState:
    """RocketMQ 5.1.0 says neither who lives, so that all count as living, nor the master's id beside its address."""

    def replicas(name: str) -> tuple[ReplicaState, ...]:
        return tuple(
            ReplicaState(
                broker_id=int(row["brokerId"]),
                address=str(row["brokerAddress"] if "brokerAddress" in row else row["address"]),
                is_alive=row.get("alive", True) is True,
            )
            for row in value[name]
        )

    in_sync = replicas("inSyncReplicas")
    master, address = value.get("masterBrokerId"), value.get("masterAddress") or None
    if master is None and address is not None:
        master = next((replica.broker_id for replica in in_sync if replica.address == address), None)
    info = ReplicaInfo(
        master_id=None if master is None else int(master),
        master_address=None if address is None else str(address),
        master_epoch=int(value["masterEpoch"]),
        sync_state_set=SyncStateSet.of((replica.broker_id for replica in in_sync), int(value["syncStateSetEpoch"])),
    )
    return GroupState(group=group, info=info, in_sync=in_sync, not_in_sync=replicas("notInSyncReplicas"))
