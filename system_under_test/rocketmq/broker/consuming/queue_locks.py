"""Which member of a group alone may consume a queue in order, until it gives the queue up or is silent for a while.

The locks are in memory, at each broker for itself; where they are strict, most of the replicas have each. A lock ends
`live_s` after it was last asked for; a member itself stops to begin anything with it after half of that, and asks again
long before. What a change of masters does to them says `broker/locking.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from system_under_test.rocketmq.consumer_protocol import MessageQueue

MAX_LOCKS = 1_000_000
Order = tuple[int, int]
"""The order in which a group's masters have asked: epoch, number. Where they do not ask each other, all are equal."""
UNORDERED: Order = (0, 0)


@dataclass(slots=True)
class _Lock:
    client_id: str
    asked_ns: int
    order: Order


class QueueLocks:
    def __init__(self, live_s: float) -> None:
        self._live_ns = int(live_s * 1e9)
        self._locks: dict[tuple[str, MessageQueue], _Lock] = {}
        self._tidy_ns = 0

    def try_lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue], now_ns: int, order: Order = UNORDERED
    ) -> tuple[MessageQueue, ...]:
        """Those of the queues that this member has from now on."""
        if now_ns - self._tidy_ns > self._live_ns:
            self._locks = {key: lock for key, lock in self._locks.items() if not self._is_over(lock, now_ns)}
            self._tidy_ns = now_ns
        return tuple(queue for queue in queues if self._try_one(group, client_id, queue, now_ns, order))

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue], order: Order = UNORDERED) -> None:
        """The member gives them up; those that are another one's stay so, and those that it asked for later: what a
        master passes on may come late."""
        for queue in queues:
            lock = self._locks.get((group, queue))
            if lock is not None and lock.client_id == client_id and lock.order <= order:
                del self._locks[group, queue]

    def may_take(self, lock_holder: str, client_id: str, is_over: bool) -> bool:
        """Whether a member may have a queue that this holder has had up to now."""
        return lock_holder == client_id or is_over

    def _try_one(self, group: str, client_id: str, queue: MessageQueue, now_ns: int, order: Order) -> bool:
        lock = self._locks.get((group, queue))
        if lock is None:
            if len(self._locks) >= MAX_LOCKS:
                return False
        elif not self.may_take(lock.client_id, client_id, self._is_over(lock, now_ns)):
            return False
        self._locks[group, queue] = _Lock(client_id, now_ns, order)
        return True

    def _is_over(self, lock: _Lock, now_ns: int) -> bool:
        return now_ns - lock.asked_ns > self._live_ns
