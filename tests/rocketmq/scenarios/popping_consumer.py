"""A consumer that pops, for stories. What it is given it shows as `letter`, or `letter×times` where it came before."""

from __future__ import annotations

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.client.pop_client import PopClient, PoppedMessage, PopResult
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster

OK = "SUCCESS"
INVISIBLE_MS = 5_000


class Consumer:
    """One of a group, with a client of its own. What it is given it shows as `letter` or `letter×times it came`."""

    def __init__(self, cluster: Cluster, group: str = "readers", *, is_ordered: bool = False) -> None:
        self._client: MessageClient = cluster.client()
        self.pops = PopClient(self._client._host, self._client, group)
        self._is_ordered = is_ordered
        self.held: dict[str, PoppedMessage] = {}

    async def pop(self, count: int = 32, invisible_ms: int = INVISIBLE_MS, poll_ms: int = 0) -> list[str]:
        try:
            popped = await self._popped(count, invisible_ms, poll_ms)
        except ClientError as error:
            if not error.definite:
                raise
            # Whoever was master is not any more: the route is looked up anew.
            popped = await self._popped(count, invisible_ms, poll_ms)
        self.held |= {message.body.decode(): message for message in popped.messages}
        return [
            message.body.decode() + (f"×{message.reconsume_times}" if message.reconsume_times else "")
            for message in popped.messages
        ]

    async def _popped(self, count: int, invisible_ms: int, poll_ms: int) -> PopResult:
        return await self.pops.pop(TOPIC, invisible_ms, max_count=count, poll_ms=poll_ms, is_ordered=self._is_ordered)

    async def ack(self, letter: str) -> str:
        try:
            await self.pops.ack(self.held[letter])
        except ClientError as error:
            return error.code
        return OK

    async def keep(self, letter: str, invisible_ms: int) -> str:
        try:
            self.held[letter] = await self.pops.change_invisible_time(self.held[letter], invisible_ms)
        except ClientError as error:
            return error.code
        return OK
