"""Who has which message: the state that POP derives from the revive log, without a clock, a disk or a network.

Records are applied in the order of the log, by the master that writes them and by the one that reads them after it, so
both have the same ledger. What a master has written and not yet confirmed counts: whatever replaces this master
replaces its ledger as well.

- `holds` is what every decision about a handle rests on: each message has at most one checkpoint that holds it, so a
  message that was acknowledged cannot come again for the sake of another one.
- An invisible time is measured on the monotonic clock, from when the checkpoint was applied. After a change of master,
  or a restart, it begins anew: clocks of two hosts say nothing of each other, and late is legal where early is not.

`Progress` follows the confirmed log: how far the groups have come, and before which place of the revive log all is
settled. It never runs ahead: an offset that a slave copies must not outlive the checkpoint that stands for it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from system_under_test.rocketmq.broker.pop.records import Checkpoint, CheckpointKey


class RevivePosition(NamedTuple):
    """Of a record in the revive log."""

    queue_id: int
    offset: int


@dataclass(slots=True)
class OpenCheckpoint:
    """One that is not settled: `left` are the offsets that may come again, ascending."""

    checkpoint: Checkpoint
    place: RevivePosition
    due_ns: int
    left: list[int]
    invisible_ms: dict[int, int]
    dues_ns: dict[int, int]
    """Both of what is popped in order, by offset: each may have been given another invisible time."""

    @property
    def last_due_ns(self) -> int:
        """When nothing of it is invisible any more."""
        return max((self.dues_ns[offset] for offset in self.left), default=self.due_ns)

    def is_blocking(self, now_ns: int) -> bool:
        """Whether any message is still invisible."""
        return any(self.dues_ns[offset] > now_ns for offset in self.left)

    def times(self, offset: int) -> int:
        """How often it has come, of what is popped in order; 0 for what this checkpoint does not have."""
        checkpoint = self.checkpoint
        if checkpoint.ordered is None or offset not in checkpoint.offsets:
            return 0
        return checkpoint.ordered.times[checkpoint.offsets.index(offset)] + 1


class Ledger:
    """All open checkpoints of one broker."""

    def __init__(self) -> None:
        self._open: dict[CheckpointKey, OpenCheckpoint] = {}
        self._due: list[tuple[int, RevivePosition, CheckpointKey]] = []
        self._ordered: dict[tuple[str, str, int], CheckpointKey] = {}
        self.messages = 0
        """That were given out and are not settled."""

    def __contains__(self, key: CheckpointKey) -> bool:
        return key in self._open

    def holds(self, key: CheckpointKey, offset: int) -> bool:
        """Whether this delivery still stands: not acknowledged, not replaced, and it has not come again."""
        found = self._open.get(key)
        return found is not None and offset in found.left

    def all_open(self) -> list[OpenCheckpoint]:
        """In the order of the log, in each of its queues."""
        return list(self._open.values())

    def open(self, key: CheckpointKey) -> OpenCheckpoint | None:
        return self._open.get(key)

    def add(self, checkpoint: Checkpoint, place: RevivePosition, now_ns: int) -> list[RevivePosition]:
        """A checkpoint was written. Returns the places of checkpoints that it settles."""
        settled: list[RevivePosition] = []
        if checkpoint.replaces is not None:
            settled = self.settle(checkpoint.replaces, checkpoint.offsets)
        due_ns = now_ns + checkpoint.invisible_ms * 1_000_000
        known = self._open.get(checkpoint.key)
        if not checkpoint.offsets or known is not None:
            if known is not None and checkpoint.ordered is not None:
                known.invisible_ms |= dict.fromkeys(checkpoint.offsets, checkpoint.invisible_ms)
                known.dues_ns |= dict.fromkeys(checkpoint.offsets, due_ns)
                self.put_off(known, known.last_due_ns)
            return [*settled, place]
        if checkpoint.ordered is not None:
            settled += self._end_ordered(checkpoint.key)
        self._open[checkpoint.key] = OpenCheckpoint(
            checkpoint,
            place,
            due_ns,
            list(checkpoint.offsets),
            dict.fromkeys(checkpoint.offsets, checkpoint.invisible_ms),
            dict.fromkeys(checkpoint.offsets, due_ns),
        )
        self.messages += len(checkpoint.offsets)
        heapq.heappush(self._due, (due_ns, place, checkpoint.key))
        return settled

    def _end_ordered(self, key: CheckpointKey) -> list[RevivePosition]:
        """This checkpoint takes the place of the last one of its queue."""
        last = self.ordered(key.group, key.topic, key.queue_id)
        self._ordered[key.group, key.topic, key.queue_id] = key
        return [] if last is None else self.settle(last.checkpoint.key, list(last.left))

    def ordered(self, group: str, topic: str, queue_id: int) -> OpenCheckpoint | None:
        """What was popped in order of this queue and is not settled."""
        key = self._ordered.get((group, topic, queue_id))
        return None if key is None else self._open.get(key)

    def settle(self, key: CheckpointKey, offsets: Iterable[int]) -> list[RevivePosition]:
        """These messages are. Returns the place of their checkpoint if nothing of it is left."""
        found = self._open.get(key)
        if found is None:
            return []
        done = [offset for offset in offsets if offset in found.left]
        found.left = [offset for offset in found.left if offset not in done]
        self.messages -= len(done)
        if found.left:
            return []
        del self._open[key]
        return [found.place]

    def begin_anew(self, now_ns: int) -> None:
        """All invisible times begin now: the log was read, nobody knows how long ago it was written."""
        for found in self._open.values():
            found.dues_ns = {offset: now_ns + time_ms * 1_000_000 for offset, time_ms in found.invisible_ms.items()}
            found.due_ns = found.last_due_ns
        self._due = [(found.due_ns, found.place, key) for key, found in self._open.items()]
        heapq.heapify(self._due)

    def due(self, now_ns: int) -> OpenCheckpoint | None:
        """The one that has been due for the longest time, if any is. It stays until it is settled or put off."""
        while self._due:
            due_ns, place, key = self._due[0]
            found = self._open.get(key)
            if found is not None and found.place == place and found.due_ns == due_ns:
                return found if due_ns <= now_ns else None
            heapq.heappop(self._due)
        return None

    def forget_due(self) -> None:
        """The one that is due is not looked at again before its time changes."""
        heapq.heappop(self._due)

    def put_off(self, found: OpenCheckpoint, due_ns: int) -> None:
        """It cannot come again now."""
        found.due_ns = due_ns
        heapq.heappush(self._due, (due_ns, found.place, found.checkpoint.key))

    def next_due_ns(self) -> int | None:
        """When the next one is due; it may be settled by then."""
        return self._due[0][0] if self._due else None


class Commit(NamedTuple):
    """A group has come so far in a queue."""

    group: str
    topic: str
    queue_id: int
    offset: int


class Progress:
    """What of the revive log is confirmed, and so may be built upon."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Commit | RevivePosition]] = deque()
        self._unsettled: dict[int, dict[int, None]] = {}
        """Queue of the revive log -> offsets of checkpoints, ascending: they are written in that order."""

    def written(self, end_offset: int, place: RevivePosition, commit: Commit | None) -> None:
        """A checkpoint was appended, and moves its group so far, if at all; it ends at `end_offset` of the log."""
        self.found(place)
        if commit is not None:
            self._waiting.append((end_offset, commit))

    def moved(self, end_offset: int, commit: Commit) -> None:
        """A group has come so far once the log is confirmed up to `end_offset`."""
        self._waiting.append((end_offset, commit))

    def passed(self, commit: Commit) -> None:
        """A group has passed over what it does not want."""
        self._waiting.append((0, commit))

    def queues(self) -> tuple[int, ...]:
        """Of the revive log, those that have been written to."""
        return tuple(self._unsettled)

    def found(self, place: RevivePosition) -> None:
        """A checkpoint is in the confirmed log."""
        self._unsettled.setdefault(place.queue_id, {})[place.offset] = None

    def settled(self, end_offset: int, places: Iterable[RevivePosition]) -> None:
        """Nothing is left of these checkpoints once the log is confirmed up to `end_offset`."""
        self._waiting.extend((end_offset, place) for place in places)

    def confirmed(self, offset: int) -> list[Commit]:
        """The log is confirmed up to there: how far groups have come, in the order of the log."""
        commits = []
        while self._waiting and self._waiting[0][0] <= offset:
            step = self._waiting.popleft()[1]
            if isinstance(step, Commit):
                commits.append(step)
            else:
                self._unsettled.get(step.queue_id, {}).pop(step.offset, None)
        return commits

    def revive_offset(self, queue_id: int, end: int) -> int:
        """All before it is settled, in a queue of the revive log that is confirmed up to `end`."""
        return min(end, next(iter(self._unsettled.get(queue_id, {})), end))
