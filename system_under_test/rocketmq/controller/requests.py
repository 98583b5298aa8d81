"""From remoting commands to the requests that the state machine decides."""

from __future__ import annotations

from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.controller.protocol import (
    BrokerReport,
    Fields,
    MalformedRequest,
    SyncStateSet,
    flag,
    number,
    text,
)
from system_under_test.rocketmq.controller.state_machine import (
    AlterSyncStateSet,
    ApplyBrokerId,
    CleanBrokerData,
    DesignateMaster,
    ElectMaster,
    GiveUpMastership,
    RegisterBroker,
    Request,
)


def parse_request(command: RemotingCommand) -> Request | None:
    """None for a code that is no request of this kind. Raises MalformedRequest."""
    fields = command.ext_fields
    code = command.code
    if code == RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET:
        return AlterSyncStateSet(
            group=text(fields, "brokerName"),
            master_id=number(fields, "masterBrokerId"),
            master_epoch=number(fields, "masterEpoch"),
            proposed=SyncStateSet.from_body(command.body),
            withdraws=flag(fields, "withdraws"),
        )
    if code == RequestCode.CONTROLLER_ELECT_MASTER:
        return _election(fields)
    if code == RequestCode.CONTROLLER_REGISTER_BROKER:
        return RegisterBroker(report=BrokerReport.from_fields(fields))
    if code == RequestCode.CONTROLLER_APPLY_BROKER_ID:
        return ApplyBrokerId(
            cluster=fields.get("clusterName", ""),
            group=text(fields, "brokerName"),
            broker_id=number(fields, "appliedBrokerId"),
            check_code=text(fields, "registerCheckCode"),
        )
    if code == RequestCode.CLEAN_BROKER_DATA:
        return CleanBrokerData(
            group=text(fields, "brokerName"),
            broker_ids=_broker_ids(fields),
            protects_living=not flag(fields, "isCleanLivingBroker"),
            cluster=fields.get("clusterName", ""),
        )
    return None


def _election(fields: Fields) -> Request:
    group = text(fields, "brokerName")
    broker_id = number(fields, "brokerId", -1)
    if flag(fields, "giveUp"):
        return GiveUpMastership(group=group, broker_id=broker_id, master_epoch=number(fields, "masterEpoch"))
    if flag(fields, "designateElect"):
        return DesignateMaster(group=group, broker_id=broker_id, cluster=fields.get("clusterName", ""))
    return ElectMaster(group=group, broker_id=None if broker_id < 0 else broker_id)


def _broker_ids(fields: Fields) -> tuple[int, ...] | None:
    name = "brokerControllerIdsToClean"
    wanted = fields.get(name)
    if not wanted:
        return None
    try:
        return tuple(sorted({number({name: part.strip()}, name) for part in wanted.split(";")}))
    except MalformedRequest as error:
        raise MalformedRequest(f"{name}: expected ids with semicolons, got {wanted[:100]!r}") from error
