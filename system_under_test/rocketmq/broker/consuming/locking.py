"""Gives queues to members of groups that consume in order: of each group one member a queue.

Only the master does, and it alone knows its locks: a master that takes over begins without any. So while masters
change two members may hold a lock of one queue: one from a master that is deposed and does not know it yet, or from one
that died, and one from its successor. A lock is no fence. What orderly consumption promises without exception is that
each member consumes a queue in its order; and that nobody else consumes it meanwhile, while the master stays the same.

Strict locks promise the second without exception, too. The master gives a queue only if most of the group's replicas
give it as well, itself among them; the next master asks most of them again, so one that still keeps the queue
for the first member. A broker that has been up for less than a lock lives gives nothing, unless it never did before: it
may have forgotten locks of an earlier life. The price: without most of the replicas nobody gets a queue.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.consuming.queue_locks import QueueLocks
from system_under_test.rocketmq.broker.consuming.replicas import Replicas
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.request_handler import Answer, Handlers
from system_under_test.rocketmq.consumer_protocol import (
    MessageQueue,
    QueueLockRequest,
    locked_queues,
    locked_queues_answer,
)
from system_under_test.runtime.host import DiskFull
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import RecordFile

Queues = tuple[MessageQueue, ...]


def majority(replicas: int) -> int:
    """Any two of so many have one in common."""
    return replicas // 2 + 1


class Locking:
    """LOCK_BATCH_MQ and UNLOCK_BATCH_MQ."""

    def __init__(self, broker: BrokerContext, locks: QueueLocks, replicas: Replicas) -> None:
        self._host, self._config, self._ha = broker.host, broker.config, broker.ha
        self._locks = locks
        self._replicas = replicas
        self._gave_before = RecordFile(broker.host.disk, f"{broker.config.store_path}/config/strictLocks")
        self._begun_ns = broker.host.clock.monotonic_ns()
        self._first_request = asyncio.Lock()
        self._gives_from_ns: int | None = None
        """None as long as nobody has asked for a strict lock."""
        self._number = 0

    @property
    def handlers(self) -> Handlers:
        return {RequestCode.LOCK_BATCH_MQ: self._lock, RequestCode.UNLOCK_BATCH_MQ: self._unlock}

    def stop(self) -> None:
        self._replicas.close()

    def _lock(self, command: RemotingCommand, _: Peer) -> Answer:
        request = QueueLockRequest.decode(command)
        if self._config.strict_locks and request.only_this_broker:
            return self.lock_for_master(request)
        mastership = self._ha.mastership
        if mastership is None or mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        if self._config.strict_locks:
            return self._lock_at_most(request, mastership)
        return locked_queues_answer(self._locked(request))

    def _unlock(self, command: RemotingCommand, _: Peer) -> Answer:
        request = QueueLockRequest.decode(command)
        mastership = self._ha.mastership
        if self._config.strict_locks and mastership is not None and not request.only_this_broker:
            return self._unlock_at_all(request, mastership)
        self._locks.unlock(request.group, request.client_id, request.queues, request.order)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _locked(self, request: QueueLockRequest) -> Queues:
        now_ns = self._host.clock.monotonic_ns()
        return self._locks.try_lock(request.group, request.client_id, request.queues, now_ns, request.order)

    # strict locks

    async def lock_for_master(self, request: QueueLockRequest) -> RemotingCommand:
        """What this replica has to say, of whatever master asks."""
        return locked_queues_answer(await self._locked_strictly(request))

    async def _lock_at_most(self, request: QueueLockRequest, mastership: AnyMastership) -> RemotingCommand:
        request = self._ordered(request, mastership)
        own = await self._locked_strictly(request)
        given = dict.fromkeys(own, 1)
        if own:
            asked = replace(request, queues=own)
            for queues in await asyncio.gather(
                *(self._locked_at(each, asked) for each in await self._replicas.others())
            ):
                for queue in queues:
                    given[queue] = given.get(queue, 0) + 1
        if mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master any more")
        needed = majority(self._config.total_replicas)
        return locked_queues_answer([queue for queue in own if given[queue] >= needed])

    async def _unlock_at_all(self, request: QueueLockRequest, mastership: AnyMastership) -> RemotingCommand:
        """Those that do not hear it give the queue to nobody else until it has been silent for long enough."""
        request = self._ordered(request, mastership)
        self._locks.unlock(request.group, request.client_id, request.queues, request.order)
        command = request.encode(RequestCode.UNLOCK_BATCH_MQ)
        await asyncio.gather(*(self._replicas.ask(each, command) for each in await self._replicas.others()))
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _ordered(self, request: QueueLockRequest, mastership: AnyMastership) -> QueueLockRequest:
        """As replicas are asked."""
        self._number += 1
        return replace(request, only_this_broker=True, order=(mastership.master_epoch, self._number))

    async def _locked_at(self, address: str, request: QueueLockRequest) -> Queues:
        answer = await self._replicas.ask(address, request.encode(RequestCode.LOCK_BATCH_MQ))
        try:
            return () if answer is None else tuple(dict.fromkeys(locked_queues(answer)))
        except ValueError as error:
            self._host.log("locks_refused", replica=address, reason=str(error))
            return ()

    async def _locked_strictly(self, request: QueueLockRequest) -> Queues:
        async with self._first_request:
            if self._gives_from_ns is None:
                self._gives_from_ns = await self._known_from_ns()
        return self._locked(request) if self._host.clock.monotonic_ns() >= self._gives_from_ns else ()

    async def _known_from_ns(self) -> int:
        """From when on this life knows all locks that this broker has given. Raises RemotingError."""
        try:
            gave_before = self._gave_before.read() is not None
        except StorageCorrupt:
            gave_before = True
        if gave_before:
            return self._begun_ns + int(self._config.lock_lives_s * 1e9)
        try:
            await self._gave_before.write(b"1")
        except DiskFull as error:
            raise RemotingError(ResponseCode.DISK_FULL, str(error)) from error
        return self._begun_ns
