"""What administrators do with static topics: make them, and move their queues, step by step.

Every step is asked of one group's master, and safe there before the next one begins. Whatever fails leaves a state from
which the next administrator goes on (`static_topic/remapping.py`): nothing is taken back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.admin_client import AdminClient
from system_under_test.rocketmq.static_topic.logic_queue import LogicQueue, newest
from system_under_test.rocketmq.static_topic.mapping import StaticTopic, first_queues
from system_under_test.rocketmq.static_topic.remapping import BLOCK, CannotMove, Freeze, Moved, Open, next_step

MOST_STEPS = 6
"""A move that began earlier is ended first: open, freeze, open, and a look in the end."""

Masters = Mapping[str, str]
"""Group of brokers -> the address of its master."""


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What groups know of a topic, and which did not answer."""

    topics: Mapping[str, StaticTopic | None]
    failed: Mapping[str, ClientError]

    def merged(self) -> StaticTopic | None:
        """Of each queue the newest state that any of them knows; None where none knows the topic."""
        known = [topic for topic in self.topics.values() if topic is not None]
        if not known:
            return None
        states = {
            queue_id: newest([topic.queues[queue_id] for topic in known if queue_id in topic.queues])
            for queue_id in range(known[0].total_queues)
        }
        return known[0].with_queues({queue_id: state for queue_id, state in states.items() if state is not None})

    def of_queue(self, queue_id: int) -> dict[str, LogicQueue | None]:
        return {
            group: None if topic is None else topic.queues.get(queue_id) for group, topic in sorted(self.topics.items())
        }


class StaticTopicClient:
    """`block`: where segments may begin, as `static_topic/remapping.py` says."""

    def __init__(self, admin: AdminClient, block: int = BLOCK) -> None:
        self._admin = admin
        self._block = block

    async def knowledge(self, masters: Masters, topic: str) -> Knowledge:
        """Raises ClientError where nobody answers."""
        topics: dict[str, StaticTopic | None] = {}
        failed: dict[str, ClientError] = {}
        for group, address in sorted(masters.items()):
            try:
                topics[group] = await self._admin.static_topic(address, topic)
            except ClientError as error:
                failed[group] = error
        if not topics:
            raise next(iter(failed.values()), ClientError("no-route", True, "there is no broker group to ask"))
        return Knowledge(topics=topics, failed=failed)

    async def create(self, masters: Masters, topic: str, placement: Sequence[str]) -> StaticTopic:
        """Make a topic whose queue i begins on the i-th group; or make known everywhere what is known of it already.

        Raises ClientError.
        """
        knowledge = await self.knowledge(masters, topic)
        for error in knowledge.failed.values():
            raise error
        wanted = knowledge.merged() or StaticTopic(
            name=topic, total_queues=len(placement), queues=first_queues([*placement])
        )
        # Always in this order: of two who make it at once, the first group takes the one's, and refuses the other's.
        for group, address in sorted(masters.items()):
            if knowledge.topics[group] != wanted:
                await self._admin.change_static_topic(address, group, wanted)
        return wanted

    async def move(self, masters: Masters, topic: str, queue_id: int, target: str | None) -> LogicQueue:
        """Have `target` lead the queue, or only end a move that has begun; a begun one is ended first.

        Raises ClientError; CannotMove, if nothing was changed.
        """
        if target is not None and target not in masters:
            raise CannotMove(f"group {target} has no master that is known")
        for number in range(MOST_STEPS):
            try:
                moved = await self._step(masters, topic, queue_id, target)
            except (CannotMove, ClientError) as error:
                if number == 0:
                    raise
                detail = f"the move has begun, and is not over: {error}"
                raise ClientError("outcome-unknown", False, detail, getattr(error, "node", None)) from error
            if moved is not None:
                return moved
        raise ClientError("outcome-unknown", False, f"queue {queue_id} is moved by others at the same time")

    async def _step(self, masters: Masters, topic: str, queue_id: int, target: str | None) -> LogicQueue | None:
        """The next one; the queue's state where it was the last."""
        knowledge = await self.knowledge(masters, topic)
        merged = knowledge.merged()
        if merged is None:
            raise CannotMove(f"nobody knows a static topic {topic}")
        step = next_step(knowledge.of_queue(queue_id), queue_id, target, merged.total_queues, self._block)
        if isinstance(step, Moved):
            await self._tell(masters, merged, queue_id, step)
            return step.queue
        await self._take(masters, merged, queue_id, step)
        return None

    async def _take(self, masters: Masters, topic: StaticTopic, queue_id: int, step: Freeze | Open) -> None:
        address = masters.get(step.group)
        if address is None:
            raise ClientError("no-route", True, f"{step.group} has no master that is known")
        await self._admin.change_static_topic(address, step.group, topic.only(queue_id, step.queue))

    async def _tell(self, masters: Masters, topic: StaticTopic, queue_id: int, moved: Moved) -> None:
        """A group that is not reached hears of it when the queue moves next, and misleads no client meanwhile."""
        for group in moved.behind:
            await self._admin.change_static_topic(masters[group], group, topic.only(queue_id, moved.queue))
