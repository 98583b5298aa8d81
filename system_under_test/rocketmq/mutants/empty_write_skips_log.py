"""empty-write-skips-log: a write that changes nothing is answered from the state here, without the log.

That is a transaction that only reads, a compare-and-set that finds another value, and a request of a broker that is
refused or brings no event. A controller that was cut off and still takes itself for the leader answers it from a state
that others have gone beyond. Broken rule: writes are answered through the log or behind a read barrier, whatever they
change.
"""

from __future__ import annotations

import json
from typing import Any

from system_under_test.node.mutant import Mutant
from system_under_test.raft.driver import NotLeader, RaftNode
from system_under_test.replicated.key_value import KeyValueStore, Result
from system_under_test.replicated.key_value_service import KeyValueParts
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.replicated_state import ReplicatedState, command_of
from system_under_test.runtime.host import Host


async def believed_leadership(raft: RaftNode) -> None:
    if not raft.believes_itself_leader:
        raise NotLeader(raft.leader)


def found_instead(store: KeyValueStore, command: bytes) -> Result | None:
    """The result of a compare-and-set that would change nothing, None for every other command."""
    ((kind, arguments),) = json.loads(command).items()
    if kind != "cas":
        return None
    key, expected, _ = arguments
    found = store.get(key)
    return None if found == expected else Result(succeeded=False, value=found)


async def append_what_changes(host: Host, raft: RaftNode, state: ReplicatedState, entry: bytes) -> Any:
    command = command_of(entry)
    unchanged = None if command is None else found_instead(state.values, command)
    return await raft.propose(entry) if unchanged is None else unchanged


MUTANT = Mutant(
    name="empty-write-skips-log",
    breaks="an answer shows every write completed before it",
    parts=(
        ControllerParts(
            unchanged_barrier=believed_leadership,
            values=KeyValueParts(transaction_barrier=believed_leadership),
            propose=append_what_changes,
        ),
    ),
)
