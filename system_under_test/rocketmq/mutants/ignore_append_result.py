"""ignore-append-result: what became of an append is not looked at; the answer was ready before it.

An entry that no majority acknowledged in time, or whose leader was deposed, is answered as though it were applied:
with what the state here would be by it. Broken rule: a change is answered after it is applied.
"""

from __future__ import annotations

import copy
from typing import Any

from system_under_test.node.mutant import Mutant
from system_under_test.raft.driver import LeadershipLost, RaftNode
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.replicated_state import ReplicatedState
from system_under_test.runtime.host import Host

QUORUM_WAIT_S = 2.5


async def append_and_answer(host: Host, raft: RaftNode, state: ReplicatedState, entry: bytes) -> Any:
    try:
        return await host.clock.within(QUORUM_WAIT_S, raft.propose(entry))
    except (LeadershipLost, TimeoutError):
        return copy.deepcopy(state).apply(entry)


MUTANT = Mutant(
    name="ignore-append-result",
    breaks="what was answered as done is done, and stays",
    parts=(ControllerParts(propose=append_and_answer),),
)
