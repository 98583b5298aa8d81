"""Which objects have a decider, by the name of their model."""

from __future__ import annotations

from collections.abc import Mapping

from checkers.linearizable.objects.append_log import APPEND_LOG
from checkers.linearizable.objects.fifo_queue import FifoQueue
from checkers.linearizable.objects.priority_queue import PRIORITY_QUEUE
from checkers.linearizable.objects.register import Register
from checkers.linearizable.objects.set import SET
from checkers.linearizable.objects.spans import Decider
from checkers.linearizable.objects.stack import STACK
from checkers.linearizable.objects.unordered_queue import UnorderedQueue

DECIDERS: Mapping[str, Decider] = {
    "append-log": APPEND_LOG,
    "fifo-queue": FifoQueue(),
    "priority-queue": PRIORITY_QUEUE,
    "register": Register(),
    "set": SET,
    "stack": STACK,
    "unordered-queue": UnorderedQueue(),
}
