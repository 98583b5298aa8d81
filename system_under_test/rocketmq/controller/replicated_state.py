"""What a controller makes of its Raft log: the broker groups, and the key-value store; and the entries of that log."""

from __future__ import annotations

from typing import Any

from system_under_test.rocketmq.controller import events, key_value
from system_under_test.rocketmq.controller.events import Event
from system_under_test.rocketmq.controller.key_value import KeyValueStore
from system_under_test.rocketmq.controller.state_machine import ControllerStateMachine, Rules

_EVENT = b"E"
_KEY_VALUE = b"K"


def event_entry(event: Event) -> bytes:
    return _EVENT + events.encode(event)


def command_entry(command: bytes) -> bytes:
    """`command` is one of the key-value store."""
    return _KEY_VALUE + command


def command_of(entry: bytes) -> bytes | None:
    """The key-value command of an entry, None if it holds an event."""
    return entry[1:] if entry[:1] == _KEY_VALUE else None


def check(entry: bytes) -> None:
    """Raises ValueError for bytes that neither of the two above made."""
    command = command_of(entry)
    if command is not None:
        key_value.check(command)
    elif entry[:1] == _EVENT:
        events.decode(entry[1:])
    else:
        raise ValueError(f"no entry begins with {entry[:1]!r}")


class ReplicatedState:
    """The same on every controller that has applied the same entries."""

    def __init__(self, rules: Rules) -> None:
        self.brokers = ControllerStateMachine(rules)
        self.values = KeyValueStore()

    def apply(self, entry: bytes) -> Any:
        """A Result for a command of the key-value store; for an event the group as it is now, None if it is gone."""
        command = command_of(entry)
        return self.brokers.apply(events.decode(entry[1:])) if command is None else self.values.apply(command)
