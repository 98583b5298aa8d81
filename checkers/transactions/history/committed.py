"""The committed transactions of a history as flat arrays: what every complete decider looks at.

It has only external operations: each read of what another transaction (or the initial one) wrote, and the last write of
each key. Reads of own writes, and aborted, intermediate and unwritten reads are left out. They have been judged before,
when the rows of a key or of a transaction were together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from checkers.kernels.columns import Int32, Int64

INITIAL = 0
"""The transaction that wrote every key's initial version. It precedes all others, at every level."""

WRITES = -1
"""The `writer` of an operation that is a write."""

NO_SESSION = -1

NEVER = int(np.iinfo(np.int64).max)
"""The `end` of transactions whose end was not recorded."""


def _no_orders() -> Int32:
    return np.zeros((0, 3), dtype=np.int32)


@dataclass(frozen=True, kw_only=True)
class Committed:
    """Transactions, numbered from 0 (INITIAL) ascending by `start`: all that completed with ok, and the indefinite ones
    whose writes were read. All others need not have happened.

    Session order: a transaction that completed with ok precedes all later ones of its session; an indefinite one
    precedes none of them, because it may take effect at any time. Realtime order: t precedes u if end[t] < start[u].
    """

    start: Int64
    """History index of the invocation; -1 for INITIAL."""
    end: Int64
    """History index of the completion with ok; NEVER if indefinite; -1 for INITIAL."""
    session: Int32
    """Dense numbers; NO_SESSION for INITIAL."""
    first: Int64
    """Operations of t are first[t]:first[t + 1], in program order. One longer than `start`."""
    key: Int32
    """The key of each operation; numbers are dense."""
    writer: Int32
    """By operation: WRITES, or the transaction that wrote what it read."""
    version_edges: Int32 = field(default_factory=_no_orders)
    """Rows (key, u, v): the version that u wrote of the key certainly precedes v's. For registers without assumptions
    there are none; for lists they are neighbours in the order that reads have shown. They are not transitively
    closed."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def transaction(self) -> Int32:
        """The transaction of each operation."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.first))
