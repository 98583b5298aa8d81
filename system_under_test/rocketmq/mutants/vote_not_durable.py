"""vote-not-durable: term and vote are written but never fsynced.

Breaks the rule that (term, vote) are durable before a vote is answered. A voter that loses power forgets:
it votes a second time in a term, or follows a leader it had already turned away from, and what a majority
had agreed on is overwritten.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.raft.storage import RaftStorage
from system_under_test.rocketmq.controller.parts import ControllerParts


class ForgetfulStorage(RaftStorage):
    async def sync_vote(self) -> None:
        """Leave it in the page cache."""


MUTANT = Mutant(
    name="vote-not-durable",
    breaks="what the controllers agreed on is linearizable",
    parts=(ControllerParts(raft_storage=ForgetfulStorage),),
)
