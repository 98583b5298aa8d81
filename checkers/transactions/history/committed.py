"""The committed transactions of a history as flat arrays: what every complete decider looks at.

Only what crosses transactions is in here: each read of what another transaction (or the initial one) wrote, and the
last write of each key. Reads of own writes, aborted, intermediate and unwritten reads have been judged before, where
the rows of a key or of a transaction were together, and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from checkers.kernels.columns import Int32, Int64

INITIAL = 0
"""The transaction that wrote every key's initial version. It precedes all others, at every level."""

WRITES = -1
"""In `writer`: this operation is a write."""

NO_SESSION = -1

NEVER = int(np.iinfo(np.int64).max)
"""`end` of transactions whose end was not recorded."""


def _no_orders() -> Int32:
    return np.zeros((0, 3), dtype=np.int32)


@dataclass(frozen=True, kw_only=True)
class Committed:
    """Transactions numbered from 0 (INITIAL) ascending by `start`: all that completed with ok, and of the indefinite
    ones those whose writes were read. All others may be taken not to have happened.

    Session order: a transaction that completed with ok precedes all later ones of its session; an indefinite one
    precedes none of them, for it may take effect at any time. Realtime order: t precedes u if end[t] < start[u].
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
    """Of each operation, dense."""
    writer: Int32
    """Of each operation: WRITES, or the transaction that this read's value is from."""
    version_edges: Int32 = field(default_factory=_no_orders)
    """Rows (key, u, v): the version that u wrote of the key certainly precedes v's. Empty for registers without
    assumptions; of lists, neighbours in the order that reads have shown. Not transitively closed."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def transaction(self) -> Int32:
        """Of each operation."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.first))
