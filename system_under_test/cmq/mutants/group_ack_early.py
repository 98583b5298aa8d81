from __future__ import annotations

from system_under_test.cmq.parts import CmqParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.driver import RaftNode
from system_under_test.raft.event import Event
from system_under_test.raft.message import AppendAccepted


class RepliesFirst(RaftNode):
    def _step(self, event: Event) -> None:
        super()._step(event)
        now_ns = self._host.clock.monotonic_ns()
        for _, messages in self._held:
            for reply in [message for message in messages if isinstance(message, AppendAccepted)]:
                messages.remove(reply)
                self._transport.send(reply, now_ns)


MUTANT = Mutant(
    name="group-ack-early",
    breaks="what a node said that it has outlives a loss of power",
    parts=(CmqParts(raft_node=RepliesFirst),),
)
