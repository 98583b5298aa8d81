"""A configured slave follows its master from where its own log ends, whatever the master's log holds before that.

So does RocketMQ. A master that lost the end of its log with its power, and wrote on, sends from the slave's end as soon
as its own log has passed it: from there on the two differ before it. Broken rule: a slave follows only where its log is
a part of its master's.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.remoting.client import RemotingClient
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.message_store import MessageStore


async def as_if_equal(store: MessageStore, remoting: RemotingClient, master: str, timeout_s: float) -> int | None:
    return store.max_offset


MUTANT = Mutant(
    name="follows-blindly",
    breaks="a slave holds what its master holds",
    parts=(BrokerParts(end_in_common=as_if_equal),),
)
