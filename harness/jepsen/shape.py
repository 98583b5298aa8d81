"""What clients of a foreign history did, and the struct that their values become."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

OF_DATA = frozenset(
    (
        *("read", "write", "cas", "add", "remove", "contains", "get", "put", "append", "delete", "update", "insert"),
        *("inc", "dec", "increment", "decrement", "credit", "debit", "transfer", "deposit", "withdraw", "txn", "reset"),
        *("enqueue", "dequeue", "drain", "ack", "push", "pop", "send", "poll", "publish", "consume", "take-back"),
        *("acquire", "release", "lock", "unlock", "generate", "read-init", "final-read", "broadcast", "echo", "change"),
        *("deliver", "assign", "subscribe", "crash", "debug-topic-partitions", "final-poll", "caught-up", "send-batch"),
        *("filtered-poll", "final-filtered-poll", "final-look-up", "move", "final-segments", "dead-letters"),
        *("join", "leave", "finish", "committed", "settled", "clear", "swap", "write-set", "set", "truncate"),
    )
)
"""Functions that read or change data by their name. A client's that are not among its workload's are refused, for what
they do may decide the verdict."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Of one workload or model."""

    value_type: pa.StructType
    functions: tuple[str, ...] = ()
    """The f that clients may use; none for any. Where there is but one, it may be left out."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Functions by the names that clients have for them, and what they are here (`notations`)."""
    by_time: bool = False
    """Whether the times of its rows say in which order they happened, and not their places."""
    passes_others: bool = False
    """Whether clients may do what is neither in `functions` nor known to change or show data; it is passed over."""
    timed: bool = False
    """Whether it is judged by times, which then must not run back."""
    answering: frozenset[str] = frozenset()
    """Those of which it is known that they are invoked without a value: whether they have one shows whether values are
    lifted by their keys."""
    puts: frozenset[str] = frozenset()
    """Those that put their value in as an element, whatever it is."""
    asking: frozenset[str] = frozenset()
    """Those whose completion can only repeat the value that they were invoked with; of what failed or is indefinite
    another value is a reason."""
    any_values: bool = False
    """Values are only compared, and may be anything: what is no integer is numbered (`record.history.named_values`)."""
    lists: frozenset[str] = frozenset()
    """Functions that show a list of elements (of a transaction: micro-operations); elsewhere a list is one value."""
    batches: frozenset[str] = frozenset()
    """Functions that show one element or, where no element is a list, a list of several."""
    keyed: bool | None = None
    """Whether a pair is a key and what belongs to it, and no value; None where the history is to show that."""
