"""Elements of queues and stacks: who put one there, and who needs it."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from checkers.linearizable.model import Call


def element_put(call: Call) -> Hashable:
    return ("element", call.argument) if call.f in ("enqueue", "push") else None


def element_needed(call: Call) -> Collection[Hashable] | None:
    return (("element", call.result),) if call.f in ("dequeue", "pop") else ()
