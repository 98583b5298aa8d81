"""What a controller makes of its Raft log: the broker groups, and the key-value store; and the entries of that log."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from system_under_test.replicated import key_value
from system_under_test.replicated.key_value import KeyValueStore
from system_under_test.rocketmq.controller import events
from system_under_test.rocketmq.controller.events import Event
from system_under_test.rocketmq.controller.state_machine import ControllerStateMachine, Group, Replica, Rules

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

    def snapshot(self) -> bytes:
        """The same bytes on every controller that has applied the same entries."""
        groups = [_described(group) for _, group in sorted(self.brokers.groups.items())]
        return json.dumps({"groups": groups, "values": self.values.items()}, separators=(",", ":")).encode()

    def restore(self, snapshot: bytes) -> None:
        """Become what gave that snapshot."""
        fields = json.loads(snapshot)
        self.brokers.groups = {group["name"]: _group(group) for group in fields["groups"]}
        self.values.become((key, value) for key, value in fields["values"])

    def apply(self, entry: bytes) -> Any:
        """A Result for a command of the key-value store; for an event the group as it is now, None if it is gone."""
        command = command_of(entry)
        return self.brokers.apply(events.decode(entry[1:])) if command is None else self.values.apply(command)


def _described(group: Group) -> dict[str, Any]:
    # JSON knows no numbers as keys, so replicas become a list.
    replicas = [[broker_id, asdict(replica)] for broker_id, replica in sorted(group.replicas.items())]
    return {**asdict(group), "replicas": replicas}


def _group(fields: dict[str, Any]) -> Group:
    replicas = {broker_id: Replica(**replica) for broker_id, replica in fields["replicas"]}
    return Group(**{**fields, "replicas": replicas, "sync_state_set": tuple(fields["sync_state_set"])})
