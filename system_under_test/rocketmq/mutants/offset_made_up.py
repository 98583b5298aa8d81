"""A group that has committed nothing that this broker knows of is told that it has come to the end of the queue.

After a failover in which its offset was not copied yet, it goes on behind messages that it never consumed. Broken rule:
an offset that was lost means that messages come again.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts


def at_the_end(committed: int | None, end: int) -> int | None:
    return end if committed is None else committed


MUTANT = Mutant(
    name="offset-made-up", breaks="a group passes over no message", parts=(BrokerParts(known_progress=at_the_end),)
)
