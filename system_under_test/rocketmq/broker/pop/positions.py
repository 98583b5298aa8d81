"""Where groups go on in queues: what is given out next, and how much of that their committed offsets may say.

A position runs ahead of the committed offset, which follows once the log is confirmed. Where the committed offset is
another than it was left, somebody else has moved the group (a consumer that pulls, or an administrator), and the
position follows that instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.rocketmq.broker.pop.ledger import Commit
from system_under_test.rocketmq.broker.pop.queue_read import QueueKey
from system_under_test.storage.consumer_offsets import ConsumerOffsets


@dataclass(slots=True)
class Position:
    next_offset: int
    committed: int | None
    """The group's committed offset as it was left; None where it had none."""


class Positions:
    def __init__(self, offsets: ConsumerOffsets) -> None:
        self._offsets = offsets
        self._positions: dict[QueueKey, Position] = {}

    def of(self, key: QueueKey) -> int | None:
        """Where the group goes on; None where it has never begun."""
        stored = self._offsets.get(*key)
        position = self._positions.get(key)
        if position is not None and position.committed == stored:
            return position.next_offset
        return stored

    def move(self, key: QueueKey, next_offset: int) -> None:
        stored = self._offsets.get(*key)
        position = self._positions.get(key)
        if position is None or position.committed != stored:
            self._positions[key] = Position(next_offset, stored)
        else:
            position.next_offset = next_offset

    def commit(self, commit: Commit) -> None:
        """The log is confirmed so far. Where somebody else has moved the group meanwhile, it stays there."""
        key = commit.group, commit.topic, commit.queue_id
        position = self._positions.get(key)
        if position is not None and position.committed == self._offsets.get(*key):
            self._offsets.commit(*commit)
            position.committed = commit.offset

    def raise_to(self, key: QueueKey, offset: int) -> None:
        """The confirmed log says that the group has come so far; the committed offset may say less, or more."""
        stored = self._offsets.get(*key)
        position = self._positions.setdefault(key, Position(stored or 0, stored))
        position.next_offset = max(position.next_offset, offset)

    def commit_all(self) -> None:
        """All that they were raised to is confirmed."""
        for (group, topic, queue_id), position in self._positions.items():
            if position.next_offset > (position.committed or 0):
                self.commit(Commit(group, topic, queue_id, position.next_offset))
