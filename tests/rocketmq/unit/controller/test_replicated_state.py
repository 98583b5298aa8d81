"""A controller's snapshot: the state as it was, in bytes that do not depend on how it came about."""

from __future__ import annotations

import json
import random

from system_under_test.replicated import key_value
from system_under_test.rocketmq.controller import events
from system_under_test.rocketmq.controller.events import Event
from system_under_test.rocketmq.controller.replicated_state import ReplicatedState, command_entry, event_entry
from system_under_test.rocketmq.controller.state_machine import Rules


def an_entry(draw: random.Random) -> bytes:
    group, broker = draw.choice(("g", "h", "ü")), draw.randint(1, 4)
    kinds: list[Event] = [
        events.BrokerIdApplied(cluster="c", group=group, broker_id=broker, check_code=f"code {draw.random()}"),
        events.SyncStateSetAltered(group=group, members=tuple(sorted(draw.sample(range(1, 5), 2)))),
        events.MasterElected(group=group, master=draw.choice((None, broker))),
        events.BrokerDataCleaned(group=group, broker_ids=draw.choice((None, (broker,)))),
    ]
    commands = [
        key_value.put(draw.choice("abc"), draw.choice((1, None, [True, 1.5], {"b": 1, "a": [None]}, "\ud800", 2**70))),
        key_value.transaction([["append", draw.choice("de"), draw.randint(0, 9)], ["add", "f", 3]]),
    ]
    return draw.choice([*map(event_entry, kinds), *map(command_entry, commands)])


def test_a_state_restored_from_a_snapshot_goes_on_as_the_one_that_gave_it():
    groups = 0
    for seed in range(50):
        draw = random.Random(seed)
        state = ReplicatedState(Rules())
        for _ in range(draw.randint(0, 30)):
            state.apply(an_entry(draw))
        restored = ReplicatedState(Rules())
        restored.apply(an_entry(draw))
        brokers, values = restored.brokers, restored.values
        restored.restore(state.snapshot())
        assert (restored.brokers, restored.values) == (brokers, values), "others hold on to these"
        assert restored.brokers.groups == state.brokers.groups
        for _ in range(20):
            entry = an_entry(draw)
            assert restored.apply(entry) == state.apply(entry)
        assert restored.snapshot() == state.snapshot()
        groups += len(state.brokers.groups)
    assert groups > 50


def test_equal_states_give_equal_bytes_whatever_led_to_them():
    left, right = ReplicatedState(Rules()), ReplicatedState(Rules())
    first, second = (command_entry(key_value.put(key, {"z": 1, "a": 2})) for key in ("x", "y"))
    for state, entries in ((left, (first, second)), (right, (second, second, first))):
        for entry in entries:
            state.apply(entry)
    assert left.snapshot() == right.snapshot()
    shown = right.values.get("x")
    right.restore(left.snapshot())
    assert json.dumps(right.values.get("x")) == json.dumps(shown), "a client's own order of fields stays"
