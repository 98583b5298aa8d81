"""A checkpoint says of the index of keys that it holds all that was dispatched, but its files are not written.

After a restart the keys of what was dispatched before the checkpoint lead nowhere: dispatch goes on behind it. Broken
rule: what a checkpoint vouches for is durable.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.key_index import KeyIndex
from system_under_test.storage.store_config import StorageParts


class InMemory(KeyIndex):
    async def persist(self) -> dict[str, int]:
        return {}


MUTANT = Mutant(
    name="index-not-durable",
    breaks="a message can be found by its key",
    parts=(BrokerParts(storage=StorageParts(key_index=InMemory)),),
)
