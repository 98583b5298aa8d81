"""A group that gives a queue away keeps that in memory alone.

Its next master, or the same one after a restart, takes messages for the queue again. Broken rule: what freezes a
segment is as safe as an acknowledged message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.topics.static_topics import StaticTopics, TopicRecord
from system_under_test.rocketmq.static_topic.mapping import StaticTopic


class OnlyGained(StaticTopics):
    """Writes down which queues its group gets, not which ones it loses."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._announced: dict[str, StaticTopic] = {}

    def _written(self, mastership: AnyMastership, before: StaticTopic | None, topic: StaticTopic) -> TopicRecord:
        said = self._announced.get(topic.name, before)
        group = self._config.group
        kept = {} if said is None else {q: said.queues[q] for q in said.led_by(group) if q not in topic.led_by(group)}
        self._announced[topic.name] = topic.with_queues(kept)
        return replace(super()._written(mastership, before, self._announced[topic.name]), topic=topic)


MUTANT = Mutant(
    name="freeze-not-replicated",
    breaks="a segment that was frozen stays so",
    parts=(BrokerParts(static_topics=OnlyGained),),
)
