"""Commands about static topics: making them, moving their queues, and levelling loads by that."""

from __future__ import annotations

from collections.abc import Sequence

import click

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.static_topic_client import StaticTopicClient
from system_under_test.rocketmq.static_topic.mapping import MAX_STATIC_QUEUES, StaticTopic
from system_under_test.rocketmq.static_topic.placement import THRESHOLD, Move, QueueLoad, placed, plan
from system_under_test.rocketmq.static_topic.remapping import BLOCK, CannotMove
from workloads.systems.rocketmq.admin.options import NAME_SERVERS, Text, admin_command
from workloads.systems.rocketmq.admin.report import Row
from workloads.systems.rocketmq.admin.session import NotFound, Session
from workloads.systems.rocketmq.admin.topics import TOPIC

CLUSTER = click.option("-c", "--clusterName", "cluster", type=Text(), required=True, help="The cluster.")
QUEUES = click.option(
    "-qn",
    "--totalQueueNum",
    "total_queues",
    type=click.IntRange(1, MAX_STATIC_QUEUES),
    required=True,
    help="How many queues.",
)
BLOCKS = click.option(
    "--blockSize", "block", type=click.IntRange(2, 1_000_000_000), default=BLOCK, show_default=True,
    help="New segments begin at a multiple of it.",
)  # fmt: skip
SEGMENTS = ("queueId", "generation", "brokerName", "physicalQueueId", "logicOffset", "endOffset")


async def _masters(session: Session, name_servers: Sequence[str], cluster: str) -> dict[str, str]:
    """Of all groups. Raises NotFound."""
    groups = await session.groups(name_servers, cluster=cluster)
    without = [group.name for group in groups if 0 not in group.brokers]
    if without:
        raise NotFound(f"broker group {without[0]!r} has no master now")
    return {group.name: group.brokers[0] for group in groups}


async def _loads(session: Session, masters: dict[str, str]) -> dict[str, float]:
    """Group -> messages a second that its master took of late. Raises ClientError."""
    return {group: put_rate(await session.admin.runtime_info(address), address) for group, address in masters.items()}


def put_rate(info: dict[str, str], address: str) -> float:
    """RocketMQ's brokers say it as three numbers: of 10 seconds, a minute and ten minutes."""
    words = info.get("putTps", "0").split() or ["0"]
    try:
        return float(words[0])
    except ValueError as error:
        detail = f"expected putTps to be numbers, got {info['putTps'][:80]!r}"
        raise ClientError("outcome-unknown", False, detail, address) from error


@admin_command("updateStaticTopic", SEGMENTS, changes=True)
@TOPIC
@QUEUES
@CLUSTER
@NAME_SERVERS
async def update_static_topic(
    session: Session, topic: str, total_queues: int, cluster: str, name_servers: Sequence[str]
) -> Sequence[Row]:
    """Make a static topic, on the least loaded broker groups first; or finish what was begun."""
    masters = await _masters(session, name_servers, cluster)
    groups = placed(total_queues, await _loads(session, masters))
    made = await StaticTopicClient(session.admin).create(masters, topic, groups)
    if made.total_queues != total_queues:
        raise NotFound(f"there is a static topic {topic} already, which has {made.total_queues} queues")
    return _rows(made)


@admin_command("remappingStaticTopic", SEGMENTS, changes=True)
@TOPIC
@click.option("-q", "--queueId", "queue_id", type=click.IntRange(0), help="This queue; all of them unless given.")
@click.option("-b", "--brokerName", "target", type=Text(), help="To this group; only end begun moves unless given.")
@CLUSTER
@BLOCKS
@NAME_SERVERS
async def remapping_static_topic(
    session: Session,
    topic: str,
    queue_id: int | None,
    target: str | None,
    cluster: str,
    block: int,
    name_servers: Sequence[str],
) -> Sequence[Row]:
    """Move queues of a static topic to a broker group, or end moves that were begun."""
    masters = await _masters(session, name_servers, cluster)
    topics = StaticTopicClient(session.admin, block)
    known = (await topics.knowledge(masters, topic)).merged()
    if known is None or queue_id not in (None, *known.queues):
        raise NotFound(f"no broker of cluster {cluster!r} knows a static topic {topic!r} with this queue")
    for one in sorted(known.queues) if queue_id is None else [queue_id]:
        await _move(topics, masters, topic, one, target)
    after = (await topics.knowledge(masters, topic)).merged()
    return [] if after is None else _rows(after)


@admin_command("balanceStaticTopics", ("topic", "queueId", "from", "to", "result"), changes="execute")
@click.option(
    "-l",
    "--load",
    "loads",
    type=(Text(), click.IntRange(0), click.FloatRange(0)),
    multiple=True,
    required=True,
    metavar="TOPIC QUEUE TPS",
    help="Messages a second of a queue; once for each that has any.",
)
@click.option("--threshold", type=click.FloatRange(0), default=THRESHOLD, show_default=True, help="Up to it: nothing.")
@click.option("--execute", is_flag=True, help="Also move the queues, instead of saying which to move.")
@CLUSTER
@BLOCKS
@NAME_SERVERS
async def balance_static_topics(
    session: Session,
    loads: Sequence[tuple[str, int, float]],
    threshold: float,
    execute: bool,
    cluster: str,
    block: int,
    name_servers: Sequence[str],
) -> Sequence[Row]:
    """Level the loads of broker groups by moving queues of static topics."""
    masters = await _masters(session, name_servers, cluster)
    topics = StaticTopicClient(session.admin, block)
    queues = await _placed_loads(topics, masters, loads)
    moves = plan(queues, sorted(masters), threshold)
    rows: list[Row] = []
    for move in moves:
        if execute:
            await _move(topics, masters, move.topic, move.queue_id, move.target)
        rows.append(_moved(move, "moved" if execute else "to be moved"))
    return rows


async def _placed_loads(
    topics: StaticTopicClient, masters: dict[str, str], loads: Sequence[tuple[str, int, float]]
) -> list[QueueLoad]:
    """Of all queues of the topics that are named. Raises ClientError."""
    rates = {(topic, queue_id): rate for topic, queue_id, rate in loads}
    found: list[QueueLoad] = []
    for topic in sorted({topic for topic, _ in rates}):
        known = (await topics.knowledge(masters, topic)).merged()
        if known is None:
            raise NotFound(f"no broker knows a static topic {topic!r}")
        unknown = next((queue_id for name, queue_id in rates if name == topic and queue_id not in known.queues), None)
        if unknown is not None:
            raise NotFound(f"topic {topic!r} has queues 0 to {known.total_queues - 1}, not {unknown}")
        for queue_id, queue in sorted(known.queues.items()):
            load = rates.get((topic, queue_id), 0.0)
            found.append(QueueLoad(topic=topic, queue_id=queue_id, group=queue.last.broker_name, load=load))
    return found


async def _move(
    topics: StaticTopicClient, masters: dict[str, str], topic: str, queue_id: int, target: str | None
) -> None:
    """Raises ClientError."""
    try:
        await topics.move(masters, topic, queue_id, target)
    except CannotMove as error:
        raise NotFound(f"queue {queue_id} of {topic} was not moved: {error}") from error


def _moved(move: Move, result: str) -> Row:
    return {"topic": move.topic, "queueId": move.queue_id, "from": move.source, "to": move.target, "result": result}


def _rows(topic: StaticTopic) -> list[Row]:
    return [
        {
            "queueId": queue_id,
            "generation": segment.generation,
            "brokerName": segment.broker_name,
            "physicalQueueId": segment.queue_id,
            "logicOffset": segment.logic_offset,
            "endOffset": segment.logic(segment.end_offset) if segment.is_frozen else None,
        }
        for queue_id, queue in sorted(topic.queues.items())
        for segment in queue.segments
    ]


COMMANDS = (update_static_topic, remapping_static_topic, balance_static_topics)
