from __future__ import annotations

from typing import Any

from system_under_test.cmq.parts import CmqParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.core import Raft
from system_under_test.raft.message import Append


class AnswersEach(Raft):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._ahead: dict[int, Append] = {}
        """By the index before their entries, appends of this term that came before what they follow."""

    def _on_append(self, message: Append, now_ns: int) -> None:
        if message.term == self.term and message.entries and message.previous_index > self.last_index:
            self._follow(message.sender, now_ns)
            self._ahead[message.previous_index] = message
            self._accept(message, message.previous_index + len(message.entries))
            return
        super()._on_append(message, now_ns)
        following = self._ahead.pop(self.last_index, None)
        if following is not None and following.term == self.term:
            self._on_append(following, now_ns)


MUTANT = Mutant(
    name="window-max-ack",
    breaks="a majority has what is committed",
    parts=(CmqParts(raft_core=AnswersEach),),
)
