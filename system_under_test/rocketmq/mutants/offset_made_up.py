"""A group that has committed nothing that this broker knows of is told that it has come to the end of the queue.

After a failover in which its offset was not copied yet, it goes on behind messages that it never consumed. Broken rule:
an offset that was lost means that messages come again.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.mutants.mutant import Mutant


def at_the_end(committed: int | None, end: int) -> int | None:
    return end if committed is None else committed


def _broker(parts: BrokerParts) -> BrokerParts:
    return replace(parts, known_progress=at_the_end)


MUTANT = Mutant(name="offset-made-up", breaks="a group passes over no message", broker=_broker)
