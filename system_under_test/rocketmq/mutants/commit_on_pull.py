"""A pull commits the offset behind the messages that it answers.

Where the member dies before it has consumed them, the member that takes the queue over passes them over. Broken rule:
only what is consumed is committed, which the consumer alone knows.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.message_protocol import PullRequest


def what_was_given(request: PullRequest, next_offset: int) -> int | None:
    return next_offset


MUTANT = Mutant(
    name="commit-on-pull",
    breaks="a group passes over no message",
    parts=(BrokerParts(committed_by_pull=what_was_given),),
)
