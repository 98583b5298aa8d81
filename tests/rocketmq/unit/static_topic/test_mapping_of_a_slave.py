"""A slave goes by what its log says of static topics, also when the log was cut and has grown again since it looked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.topics.static_topics import StaticTopics
from system_under_test.rocketmq.static_topic.mapping import StaticTopic, first_queues
from system_under_test.rocketmq.topic import STATIC_TOPIC
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, sync_config


def test_a_slave_whose_log_was_cut_and_has_grown_as_far_again_knows_what_it_says_now() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, sync_config())
        store = await machine.boot()
        nobody: Any = None
        ha: Any = SimpleNamespace(mastership=None)
        config: Any = SimpleNamespace(group="a")
        broker = BrokerContext(host=machine.host(), store=store, config=config, tables=nobody, ha=ha)
        topics = StaticTopics(broker, nobody, nobody, lambda: None)

        def say(queues: int) -> int:
            topic = StaticTopic(name="t", total_queues=queues, queues=first_queues(["a"] * queues))
            end = store.put(STATIC_TOPIC, 0, topic.encode("a")).end_offset
            store.advance_confirm_offset(end)
            return end

        first = say(1)
        say(2)
        assert topics.led("t") == (0, 1)
        await store.truncate(first)
        say(3)
        assert topics.led("t") == (0, 1, 2)

    simulate(body)
