"""Gives queues to members of groups that consume in order: of each group one member a queue.

Only the master does, and it alone knows its locks: a master that takes over begins without any. So while masters
change two members may hold a lock of one queue: one from a master that is deposed and does not know it yet, or from one
that died, and one from its successor. A lock is no fence. What orderly consumption promises without exception is that
each member consumes a queue in its order; and that nobody else consumes it meanwhile, while the master stays the same.
"""

from __future__ import annotations

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.ha.replication import Replication
from system_under_test.rocketmq.broker.queue_locks import QueueLocks
from system_under_test.rocketmq.broker.request_handler import Handlers
from system_under_test.rocketmq.consumer_protocol import QueueLockRequest, locked_queues_answer
from system_under_test.runtime.host import Host


class Locking:
    """LOCK_BATCH_MQ and UNLOCK_BATCH_MQ."""

    def __init__(self, host: Host, ha: Replication, locks: QueueLocks) -> None:
        self._host = host
        self._ha = ha
        self._locks = locks

    @property
    def handlers(self) -> Handlers:
        return {RequestCode.LOCK_BATCH_MQ: self._lock, RequestCode.UNLOCK_BATCH_MQ: self._unlock}

    def _lock(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        request = QueueLockRequest.decode(command)
        mastership = self._ha.mastership
        if mastership is None or mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        now_ns = self._host.clock.monotonic_ns()
        return locked_queues_answer(self._locks.try_lock(request.group, request.client_id, request.queues, now_ns))

    def _unlock(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        request = QueueLockRequest.decode(command)
        self._locks.unlock(request.group, request.client_id, request.queues)
        return RemotingCommand.response(ResponseCode.SUCCESS)
