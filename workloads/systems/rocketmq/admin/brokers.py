"""Commands that ask brokers about themselves, and NameServers about brokers."""

from __future__ import annotations

from collections.abc import Sequence

import click

from workloads.systems.rocketmq.admin.options import (
    CLUSTER,
    NAME_SERVERS,
    NAME_SERVERS_IF_NEEDED,
    Address,
    Text,
    admin_command,
    either,
    needed,
)
from workloads.systems.rocketmq.admin.report import Row
from workloads.systems.rocketmq.admin.session import Session


@admin_command(
    "getBrokerEpoch",
    (
        "clusterName",
        "brokerName",
        "brokerAddress",
        "brokerId",
        "epoch",
        "startOffset",
        "endOffset",
        "confirmOffset",
    ),
    repeats=True,
)
@click.option("-b", "--brokerName", "broker_name", type=Text(), help="A broker group.")
@CLUSTER
@NAME_SERVERS
async def get_broker_epoch(
    session: Session, broker_name: str | None, cluster: str | None, name_servers: Sequence[str]
) -> Sequence[Row]:
    """The epochs of each replica's log: where each begins and ends."""
    either(broker_name, cluster, "-b and -c")
    groups = await session.groups(name_servers, cluster=cluster, broker_name=broker_name)

    async def ask(broker: str) -> Sequence[Row]:
        epochs = await session.admin.epochs(broker)
        shared = {
            "clusterName": epochs.cluster,
            "brokerName": epochs.group,
            "brokerAddress": broker,
            "brokerId": epochs.broker_id,
            "confirmOffset": epochs.confirm_offset,
        }
        rows = [
            {**shared, "epoch": one.master_epoch, "startOffset": one.start_offset, "endOffset": one.end_offset}
            for one in epochs.entries
        ]
        return rows or [shared]

    return await session.of_each([address for group in groups for address in group.brokers.values()], ask)


@admin_command("clusterList", ("clusterName", "brokerName", "brokerId", "brokerAddress", "role"), repeats=True)
@CLUSTER
@NAME_SERVERS
async def cluster_list(session: Session, cluster: str | None, name_servers: Sequence[str]) -> Sequence[Row]:
    """All brokers that NameServers know; the one with the id 0 is the master."""
    return [
        {
            "clusterName": group.cluster,
            "brokerName": group.name,
            "brokerId": broker_id,
            "brokerAddress": address,
            "role": "slave" if broker_id else "master",
        }
        for group in await session.groups(name_servers, cluster=cluster)
        for broker_id, address in group.brokers.items()
    ]


@admin_command("brokerStatus", ("brokerAddress", "key", "value"), repeats=True)
@click.option("-b", "--brokerAddr", "broker", type=Address(), help="A broker, by its address.")
@CLUSTER
@NAME_SERVERS_IF_NEEDED
async def broker_status(
    session: Session, broker: str | None, cluster: str | None, name_servers: Sequence[str] | None
) -> Sequence[Row]:
    """What brokers say of themselves: role, epoch, offsets."""
    either(broker, cluster, "-b and -c")
    brokers = [] if broker is None else [broker]
    if cluster is not None:
        servers = needed(name_servers, "-n", "NameServers know which brokers a cluster has")
        groups = await session.groups(servers, cluster=cluster)
        brokers = [address for group in groups for address in group.brokers.values()]

    async def ask(address: str) -> Sequence[Row]:
        info = await session.admin.runtime_info(address)
        return [{"brokerAddress": address, "key": key, "value": value} for key, value in info.items()]

    return await session.of_each(brokers, ask)


COMMANDS = (get_broker_epoch, cluster_list, broker_status)
