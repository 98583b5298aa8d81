"""Commands about topics and groups of consumers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import click

from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.consumer_group import check_name as check_group_name
from system_under_test.rocketmq.nameserver.route import TopicRoute
from system_under_test.rocketmq.topic import READ_WRITE, TopicConfig
from system_under_test.rocketmq.topic import check_name as check_topic_name
from workloads.systems.rocketmq.admin.options import (
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


def _topic(context: click.Context, param: click.Parameter, value: str) -> str:
    try:
        check_topic_name(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, param) from error
    return value


def _group(context: click.Context, param: click.Parameter, value: str) -> str:
    try:
        check_group_name(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, param) from error
    return value


TOPIC = click.option("-t", "--topic", type=Text(), callback=_topic, required=True, help="The topic.")
GROUP = click.option("-g", "--groupName", "group", type=Text(), callback=_group, required=True, help="The group.")
BROKER = click.option("-b", "--brokerAddr", "broker", type=Address(), help="On this broker alone, a master.")
CLUSTER = click.option("-c", "--clusterName", "cluster", type=Text(), help="On all masters of this cluster.")
DONE = ("address", "result")


async def _on_masters(
    session: Session,
    broker: str | None,
    cluster: str | None,
    name_servers: Sequence[str] | None,
    change: Callable[[str], Awaitable[None]],
    result: str,
) -> list[Row]:
    either(broker, cluster, "-b and -c")
    masters = [] if broker is None else [broker]
    if cluster is not None:
        servers = needed(name_servers, "-n", "NameServers know which masters a cluster has")
        masters = await session.masters(servers, cluster)
    return await _of_each(session, masters, change, result)


async def _of_each(
    session: Session, nodes: Sequence[str], change: Callable[[str], Awaitable[None]], result: str
) -> list[Row]:
    async def ask(node: str) -> Sequence[Row]:
        await change(node)
        return [{"address": node, "result": result}]

    return await session.of_each(nodes, ask)


async def _route(session: Session, name_servers: Sequence[str], topic: str) -> TopicRoute:
    return await session.of_any(name_servers, lambda server: session.admin.route(server, topic))


@admin_command("updateTopic", DONE, changes=True)
@TOPIC
@BROKER
@CLUSTER
@click.option("-r", "--readQueueNums", "read_queues", type=click.IntRange(1, 65536), default=8, show_default=True)
@click.option("-w", "--writeQueueNums", "write_queues", type=click.IntRange(1, 65536), default=8, show_default=True)
@click.option(
    "-p",
    "--perm",
    "permission",
    type=click.IntRange(0, 7),
    default=READ_WRITE,
    show_default=True,
    help="2 writing, 4 reading, 6 both.",
)
@click.option("-o", "--order", "is_ordered", type=bool, default=False, help="Whether it is ordered (true, false).")
@NAME_SERVERS_IF_NEEDED
async def update_topic(
    session: Session,
    topic: str,
    broker: str | None,
    cluster: str | None,
    read_queues: int,
    write_queues: int,
    permission: int,
    is_ordered: bool,
    name_servers: Sequence[str] | None,
) -> Sequence[Row]:
    """Make a topic, or change it."""
    config = TopicConfig(
        name=topic,
        read_queues=read_queues,
        write_queues=write_queues,
        permission=permission,
        is_ordered=is_ordered,
    )

    async def change(address: str) -> None:
        await session.admin.put_topic(address, config)

    return await _on_masters(session, broker, cluster, name_servers, change, "updated")


@admin_command("deleteTopic", DONE, changes=True)
@TOPIC
@click.option("-c", "--clusterName", "cluster", type=Text(), required=True, help="From all masters of this cluster.")
@NAME_SERVERS
async def delete_topic(session: Session, topic: str, cluster: str, name_servers: Sequence[str]) -> Sequence[Row]:
    """Delete a topic with its messages, from brokers and then from NameServers."""

    async def delete(address: str) -> None:
        await session.admin.delete_topic(address, topic)

    async def forget(address: str) -> None:
        await session.admin.forget_topic(address, topic)

    rows = await _on_masters(session, None, cluster, name_servers, delete, "deleted")
    if not session.errors:
        rows += await _of_each(session, name_servers, forget, "forgotten")
    return rows


@admin_command("topicList", ("topic", "clusters"))
@click.option("-c", "--clusterModel", "with_clusters", is_flag=True, help="Also say which clusters have each.")
@NAME_SERVERS
async def topic_list(session: Session, with_clusters: bool, name_servers: Sequence[str]) -> Sequence[Row]:
    """All topics that NameServers know."""
    rows: list[Row] = []
    for topic in await session.of_any(name_servers, session.admin.topics):
        clusters: list[str] | None = None
        if with_clusters:
            route = await _route(session, name_servers, topic)
            clusters = sorted({group.cluster for group in route.groups})
        rows.append({"topic": topic, "clusters": clusters})
    return rows


@admin_command(
    "topicRoute",
    ("clusterName", "brokerName", "brokerAddresses", "readQueueNums", "writeQueueNums", "perm"),
    repeats=True,
)
@TOPIC
@NAME_SERVERS
async def topic_route(session: Session, topic: str, name_servers: Sequence[str]) -> Sequence[Row]:
    """Which broker groups have a topic, with how many queues."""
    route = await _route(session, name_servers, topic)
    return [
        {
            "clusterName": group.cluster,
            "brokerName": group.broker_name,
            "brokerAddresses": [f"{broker_id}-{address}" for broker_id, address in group.brokers.items()],
            "readQueueNums": group.read_queues,
            "writeQueueNums": group.write_queues,
            "perm": group.permission,
        }
        for group in route.groups
    ]


@admin_command("topicStatus", ("brokerName", "brokerAddress", "queueId", "minOffset", "maxOffset"), repeats=True)
@TOPIC
@NAME_SERVERS
async def topic_status(session: Session, topic: str, name_servers: Sequence[str]) -> Sequence[Row]:
    """How far each queue of a topic reaches, as the master says, or a slave where there is none."""
    route = await _route(session, name_servers, topic)
    rows: list[Row] = []
    for group in route.groups:
        queues = max(group.read_queues, group.write_queues)

        async def ask(address: str, name: str = group.broker_name, queues: int = queues) -> Sequence[Row]:
            ranges = [await session.admin.queue_range(address, topic, queue_id) for queue_id in range(queues)]
            return [
                {
                    "brokerName": name,
                    "brokerAddress": address,
                    "queueId": queue_id,
                    "minOffset": least,
                    "maxOffset": end,
                }
                for queue_id, (least, end) in enumerate(ranges)
            ]

        rows += await session.of_each([*group.brokers.values()][:1], ask)
    return rows


@admin_command("updateSubGroup", DONE, changes=True)
@GROUP
@BROKER
@CLUSTER
@click.option("-s", "--consumeEnable", "may_consume", type=bool, default=True, help="Whether it may consume.")
@click.option("-m", "--consumeFromMinEnable", "may_consume_from_min", type=bool, default=True)
@click.option("-d", "--consumeBroadcastEnable", "may_broadcast", type=bool, default=True)
@click.option("-o", "--consumeMessageOrderly", "consumes_in_order", type=bool, default=False)
@click.option("-q", "--retryQueueNums", "retry_queues", type=click.IntRange(0, 65536), default=1, show_default=True)
@click.option("-r", "--retryMaxTimes", "retry_max_times", type=click.IntRange(-1), default=16, show_default=True)
@click.option("-i", "--brokerId", "broker_id", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "-w", "--whichBrokerWhenConsumeSlowly", "broker_id_when_slow", type=click.IntRange(0), default=1, show_default=True
)
@click.option("-a", "--notifyConsumerIdsChanged", "tells_changes_of_ids", type=bool, default=True)
@NAME_SERVERS_IF_NEEDED
async def update_consumer_group(
    session: Session,
    group: str,
    broker: str | None,
    cluster: str | None,
    name_servers: Sequence[str] | None,
    **settings: bool | int,
) -> Sequence[Row]:
    """Make a group of consumers, or change it."""
    try:
        config = ConsumerGroup(name=group, **settings)  # type: ignore[arg-type]
    except ValueError as error:
        raise click.UsageError(str(error), click.get_current_context()) from error

    async def change(address: str) -> None:
        await session.admin.put_consumer_group(address, config)

    return await _on_masters(session, broker, cluster, name_servers, change, "updated")


@admin_command("deleteSubGroup", DONE, changes=True)
@GROUP
@BROKER
@CLUSTER
@click.option("-r", "--removeOffset", "with_offsets", type=bool, default=False, help="Also how far it has come.")
@NAME_SERVERS_IF_NEEDED
async def delete_consumer_group(
    session: Session,
    group: str,
    broker: str | None,
    cluster: str | None,
    with_offsets: bool,
    name_servers: Sequence[str] | None,
) -> Sequence[Row]:
    """Delete a group of consumers."""

    async def change(address: str) -> None:
        await session.admin.delete_consumer_group(address, group, with_offsets=with_offsets)

    return await _on_masters(session, broker, cluster, name_servers, change, "deleted")


COMMANDS = (
    update_topic,
    delete_topic,
    topic_list,
    topic_route,
    topic_status,
    update_consumer_group,
    delete_consumer_group,
)
