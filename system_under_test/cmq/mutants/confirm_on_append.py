from __future__ import annotations

from typing import Any

from system_under_test.cmq.entry import Produce, decode
from system_under_test.cmq.parts import CmqParts, StateMachine
from system_under_test.cmq.state_machine import Produced
from system_under_test.node.mutant import Mutant
from system_under_test.raft.driver import RaftNode


class ConfirmsAtOnce:
    """`Propose`."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        """By queue, the number of the message after the last one."""

    async def __call__(self, raft: RaftNode, machine: StateMachine, entry: bytes) -> Any:
        applied = raft.propose(entry)
        command = decode(entry)
        if not isinstance(command, Produce) or command.queue not in machine.state.queues:
            return await applied
        first = max(machine.state.queues[command.queue].next_number, self._next.get(command.queue, 0))
        self._next[command.queue] = first + len(command.bodies)
        return Produced(first, len(command.bodies))


MUTANT = Mutant(
    name="confirm-on-append",
    breaks="a confirmed message is never lost",
    parts=(CmqParts(propose=ConfirmsAtOnce()),),
)
