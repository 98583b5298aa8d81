"""Commands that ask controllers."""

from __future__ import annotations

from collections.abc import Sequence

import click

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.controller.protocol import GroupState, ReplicaState
from workloads.systems.rocketmq.admin.options import (
    CLUSTER,
    CONTROLLERS,
    NAME_SERVERS_IF_NEEDED,
    Address,
    Text,
    admin_command,
    either,
    needed,
)
from workloads.systems.rocketmq.admin.report import Row
from workloads.systems.rocketmq.admin.session import NotFound, Session

BROKER_NAME = click.option(
    "-bn", "--brokerName", "broker_name", type=Text(), required=True, help="The broker group (brokerName)."
)
CONTROLLER_ID = click.option(
    "-d", "--controllerId", "controller_id", type=Text(), required=True, help="The controller, by its id."
)


@admin_command(
    "getControllerMetaData",
    (
        "controllerAddress",
        "group",
        "isLeader",
        "controllerLeaderId",
        "controllerLeaderAddress",
        "term",
        "peers",
        "learners",
    ),
    repeats=True,
)
@CONTROLLERS
async def get_controller_metadata(session: Session, controllers: Sequence[str]) -> Sequence[Row]:
    """What each controller says of its group: who leads, and who belongs to it."""
    client = session.controllers(controllers)

    async def ask(controller: str) -> Sequence[Row]:
        metadata = await client.metadata(controller)
        return [
            {
                "controllerAddress": controller,
                "group": metadata.group,
                "isLeader": metadata.is_active,
                "controllerLeaderId": metadata.leader_id,
                "controllerLeaderAddress": metadata.leader_address,
                "term": metadata.term,
                "peers": [peer for peer in metadata.peers.split(";") if peer],
                "learners": list(metadata.learners),
            }
        ]

    return await session.of_each(controllers, ask)


@admin_command(
    "getSyncStateSet",
    (
        "brokerName",
        "masterBrokerId",
        "masterAddress",
        "masterEpoch",
        "syncStateSetEpoch",
        "brokerId",
        "brokerAddress",
        "inSync",
        "alive",
    ),
    repeats=True,
)
@CONTROLLERS
@click.option(
    "-b", "--brokerName", "broker_names", type=Text(), multiple=True, help="A broker group; may be given repeatedly."
)
@CLUSTER
@NAME_SERVERS_IF_NEEDED
async def get_sync_state_set(
    session: Session,
    controllers: Sequence[str],
    broker_names: Sequence[str],
    cluster: str | None,
    name_servers: Sequence[str] | None,
) -> Sequence[Row]:
    """Each replica of some broker groups: which one is master, who is in the SyncStateSet, who lives."""
    either(broker_names or None, cluster, "-b and -c")
    names = list(broker_names)
    if cluster is not None:
        servers = needed(name_servers, "-n", "NameServers know which broker groups a cluster has")
        names = [group.name for group in await session.groups(servers, cluster=cluster)]
    states = await session.controllers(controllers).sync_state_data(names)
    session.errors += [
        NotFound(f"the controllers know no broker group {name!r}") for name in sorted({*names} - {*states})
    ]
    return [row for _, state in sorted(states.items()) for row in _replicas(state)]


def _replicas(state: GroupState) -> list[Row]:
    def row(replica: ReplicaState, in_sync: bool) -> Row:
        return {
            "brokerName": state.group,
            "masterBrokerId": state.info.master_id,
            "masterAddress": state.info.master_address,
            "masterEpoch": state.info.master_epoch,
            "syncStateSetEpoch": state.info.sync_state_set.epoch,
            "brokerId": replica.broker_id,
            "brokerAddress": replica.address,
            "inSync": in_sync,
            "alive": replica.is_alive,
        }

    return [*(row(replica, True) for replica in state.in_sync), *(row(one, False) for one in state.not_in_sync)]


@admin_command("getControllerConfig", ("controllerAddress", "key", "value"))
@CONTROLLERS
async def get_controller_config(session: Session, controllers: Sequence[str]) -> Sequence[Row]:
    """The settings of each controller."""
    client = session.controllers(controllers)

    async def ask(controller: str) -> Sequence[Row]:
        settings = await client.get_config(controller)
        return [
            {"controllerAddress": controller, "key": key, "value": value} for key, value in sorted(settings.items())
        ]

    return await session.of_each(controllers, ask)


@admin_command("updateControllerConfig", ("controllerAddress", "key", "value"), changes=True)
@CONTROLLERS
@click.option("-k", "--key", type=Text(), required=True, help="The setting.")
@click.option("-v", "--value", type=Text(), required=True, help="What it is to be.")
async def update_controller_config(session: Session, controllers: Sequence[str], key: str, value: str) -> Sequence[Row]:
    """Change a setting of each controller named; it holds at once and after restarts."""
    client = session.controllers(controllers)

    async def ask(controller: str) -> Sequence[Row]:
        await client.update_config(controller, {key: value})
        return [{"controllerAddress": controller, "key": key, "value": value}]

    return await session.of_each(controllers, ask)


@admin_command(
    "electMaster",
    (
        "clusterName",
        "brokerName",
        "masterBrokerId",
        "masterAddress",
        "masterEpoch",
        "syncStateSetEpoch",
        "syncStateSet",
    ),
    changes=True,
)
@CONTROLLERS
@click.option(
    "-b", "--brokerId", "broker_id", type=click.IntRange(1, 2**63 - 1), required=True, help="Who is to be master."
)
@BROKER_NAME
@click.option("-c", "--clusterName", "cluster", type=Text(), required=True, help="The cluster it belongs to.")
async def elect_master(
    session: Session, controllers: Sequence[str], broker_id: int, broker_name: str, cluster: str
) -> Sequence[Row]:
    """Make this broker master of its group, or nobody: it has to live and be in the SyncStateSet."""
    info = await session.controllers(controllers).designate_master(cluster, broker_name, broker_id)
    return [
        {
            "clusterName": cluster,
            "brokerName": broker_name,
            "masterBrokerId": info.master_id,
            "masterAddress": info.master_address,
            "masterEpoch": info.master_epoch,
            "syncStateSetEpoch": info.sync_state_set.epoch,
            "syncStateSet": list(info.sync_state_set.members),
        }
    ]


def _ids(context: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    parts = [part.strip() for part in value.split(";")]
    if not all(part.isascii() and part.isdigit() and len(part) < 19 and int(part) > 0 for part in parts):
        raise click.BadParameter(f"expected ids with semicolons between, got {value[:100]!r}", context, param)
    return tuple(sorted({int(part) for part in parts}))


@admin_command("cleanBrokerMetadata", ("brokerName", "brokerId", "result"), changes=True)
@CONTROLLERS
@click.option(
    "-b",
    "--brokerControllerIdsToClean",
    "broker_ids",
    callback=_ids,
    help="Ids with semicolons between; without it the whole group.",
)
@BROKER_NAME
@CLUSTER
@click.option("-l", "--cleanLivingBroker", "living", is_flag=True, help="Also those that live.")
async def clean_broker_metadata(
    session: Session,
    controllers: Sequence[str],
    broker_ids: Sequence[int] | None,
    broker_name: str,
    cluster: str | None,
    living: bool,
) -> Sequence[Row]:
    """Have the controllers forget replicas that will not come back."""
    if not living:
        needed(cluster, "-c", "living brokers are protected by name and cluster; or give -l")
    client = session.controllers(controllers)
    clean = client.clean_living_broker_data if living else client.clean_broker_data
    await clean(cluster or "", broker_name, broker_ids)
    return [
        {"brokerName": broker_name, "brokerId": broker_id, "result": "forgotten"} for broker_id in broker_ids or (None,)
    ]


MEMBERS = ("controllerId", "result", "peers", "learners")


async def _members(session: Session, controllers: Sequence[str], controller_id: str, result: str) -> list[Row]:
    """After a change that is made, whether or not anybody says so: right now there may be no leader."""
    row: dict[str, object] = {"controllerId": controller_id, "result": result}
    client = session.controllers(controllers)
    try:
        metadata = await client.metadata(await client.find_active())
    except ClientError:
        return [row]
    return [{**row, "peers": [one for one in metadata.peers.split(";") if one], "learners": list(metadata.learners)}]


@admin_command("addController", MEMBERS, changes=True)
@CONTROLLERS
@CONTROLLER_ID
@click.option(
    "-r", "--raftAddress", "raft_address", type=Address(), required=True, help="Where its Raft port is reached."
)
async def add_controller(
    session: Session, controllers: Sequence[str], controller_id: str, raft_address: str
) -> Sequence[Row]:
    """Add a controller that was started with controllerJoinsGroup: it catches up, and then votes. Asking again for the
    same one is waiting for it."""
    await session.controllers(controllers).add_controller(controller_id, raft_address)
    return await _members(session, controllers, controller_id, "added")


@admin_command("removeController", MEMBERS, changes=True)
@CONTROLLERS
@CONTROLLER_ID
async def remove_controller(session: Session, controllers: Sequence[str], controller_id: str) -> Sequence[Row]:
    """Remove a controller from the group; it is to be stopped afterwards."""
    await session.controllers(controllers).remove_controller(controller_id)
    return await _members(session, controllers, controller_id, "removed")


@admin_command("transferLeadership", MEMBERS, changes=True)
@CONTROLLERS
@CONTROLLER_ID
async def transfer_leadership(session: Session, controllers: Sequence[str], controller_id: str) -> Sequence[Row]:
    """Have this controller lead the others."""
    await session.controllers(controllers).transfer_leadership(controller_id)
    return await _members(session, controllers, controller_id, "leads")


COMMANDS = (
    get_controller_metadata,
    get_sync_state_set,
    get_controller_config,
    update_controller_config,
    elect_master,
    clean_broker_metadata,
    add_controller,
    remove_controller,
    transfer_leadership,
)
