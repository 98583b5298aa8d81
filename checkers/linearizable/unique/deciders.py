"""Which objects have a decider, by the name of their model."""

from __future__ import annotations

from collections.abc import Mapping

from checkers.linearizable.unique.append_log import APPEND_LOG
from checkers.linearizable.unique.fifo_queue import FifoQueue
from checkers.linearizable.unique.priority_queue import PRIORITY_QUEUE
from checkers.linearizable.unique.register import Register
from checkers.linearizable.unique.set import SET
from checkers.linearizable.unique.spans import Decider
from checkers.linearizable.unique.stack import STACK
from checkers.linearizable.unique.unordered_queue import UnorderedQueue

DECIDERS: Mapping[str, Decider] = {
    "append-log": APPEND_LOG,
    "fifo-queue": FifoQueue(),
    "priority-queue": PRIORITY_QUEUE,
    "register": Register(),
    "set": SET,
    "stack": STACK,
    "unordered-queue": UnorderedQueue(),
}
