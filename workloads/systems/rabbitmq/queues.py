"""The queues of a run, which are declared before the storm, and what each kind of them promises.

Quorum queues (https://www.rabbitmq.com/docs/3.10/quorum-queues): a confirm says that most replicas have the message on
their disks; what is confirmed survives as long as most replicas do. Classic mirrored queues
(https://www.rabbitmq.com/docs/3.10/ha): a confirm says that all mirrors that are in sync have it; where mirrors are
parted, or one that is not in sync takes over, messages may be lost, depending on how partitions are handled
(https://www.rabbitmq.com/docs/3.10/partitions): with `ignore` and `autoheal` the losing side is thrown away with
what it had confirmed. A classic queue without mirrors is where it was declared. All kinds deliver at least once.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

MOST_QUEUES = 4


class Kind(Enum):
    QUORUM = "quorum"
    MIRRORED = "mirrored"
    CLASSIC = "classic"


class PartitionHandling(Enum):
    IGNORE = "ignore"
    PAUSE_MINORITY = "pause_minority"
    AUTOHEAL = "autoheal"


LOST_BY_POLICY = (
    "classic mirrored queues may lose what was confirmed where nodes are parted or a mirror takes over (the vendor's "
    "pages on mirroring and on partitions)"
)
TAKEN_BACK = (
    "what is not acknowledged is taken back from a client that is not reached any more, and given to the next, so a "
    "message held back is no lock (the vendor's page on acknowledgements)"
)
KEPT_BY_ONE = "a classic queue is kept by one node alone (the vendor's page on classic queues)"


def queue_name(key: str) -> str:
    """Of the queue with this key."""
    return "storm." + key.rpartition("/")[2]


async def declare(channel: Any, key: str, kind: Kind) -> None:
    """Durable; one that is there already, as it is."""
    await channel.declare_queue(queue_name(key), durable=True, arguments=arguments_of(kind))


def arguments_of(kind: Kind) -> Mapping[str, str]:
    """With which a queue of this kind is declared."""
    return {"x-queue-type": "quorum" if kind is Kind.QUORUM else "classic"}
