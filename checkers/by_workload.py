"""Which checker judges the history of which workload, and of what Arrow type that history's values are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from checkers.bank import TRANSFER_AND_BALANCES, BankChecker, Overdraft
from checkers.counter import CounterChecker
from checkers.log import LogChecker
from checkers.monotonic import TOLD_VALUES, MonotonicChecker
from checkers.multiset.causal_reverse import CausalReverseChecker
from checkers.multiset.order import Order
from checkers.multiset.queue import Delivery, QueueChecker
from checkers.multiset.rows import ELEMENTS
from checkers.multiset.set import Reads, SetChecker
from checkers.multiset.unique_ids import UniqueIdsChecker
from checkers.plan import Checker
from checkers.transactions.causal import CAUSAL_OPERATIONS, CausalChecker
from checkers.transactions.long_fork import LongForkChecker
from checkers.transactions.micro_operations import TRANSACTION

LOG_MESSAGES = pa.struct(
    [
        pa.field("message", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("messages", pa.list_(pa.struct([pa.field("offset", pa.int64()), pa.field("message", pa.int64())]))),
    ]
)

Options = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A workload whose history can be judged without its run."""

    value_type: pa.DataType
    functions: tuple[str, ...]
    checker: Callable[..., Checker]
    options: Mapping[str, type[Enum] | type[int]] = field(default_factory=dict)
    """What the checker can be told, by the names of its fields."""


WORKLOADS: Mapping[str, Judged] = {
    "bank": Judged(
        value_type=TRANSFER_AND_BALANCES,
        functions=("transfer", "read"),
        checker=BankChecker,
        options={"total": int, "overdraft": Overdraft},
    ),
    "causal": Judged(
        value_type=CAUSAL_OPERATIONS,
        functions=("read", "read-init", "write", "txn"),
        checker=CausalChecker,
        options={"initial": int},
    ),
    "causal-reverse": Judged(value_type=ELEMENTS, functions=("write", "read"), checker=CausalReverseChecker),
    "counter": Judged(value_type=ELEMENTS, functions=("add", "read"), checker=CounterChecker, options={"initial": int}),
    "log": Judged(value_type=LOG_MESSAGES, functions=("send", "poll", "final-poll", "caught-up"), checker=LogChecker),
    "long-fork": Judged(value_type=TRANSACTION, functions=("read", "write", "txn"), checker=LongForkChecker),
    "monotonic": Judged(value_type=TOLD_VALUES, functions=("read", "inc"), checker=MonotonicChecker),
    "queue": Judged(
        value_type=ELEMENTS,
        functions=("enqueue", "dequeue", "ack", "drain"),
        checker=QueueChecker,
        options={"delivery": Delivery, "order": Order},
    ),
    "set": Judged(value_type=ELEMENTS, functions=("add", "read"), checker=SetChecker, options={"reads": Reads}),
    "unique-ids": Judged(value_type=ELEMENTS, functions=("generate",), checker=UniqueIdsChecker),
}
"""By name, in order."""


def checker_for(workload: str, options: Options) -> Checker:
    """Raises ValueError if there is no such workload, no such option, or an option's value means nothing."""
    if workload not in WORKLOADS:
        raise ValueError(f"no checker for workload {workload!r}; there are: {', '.join(WORKLOADS)}")
    judged = WORKLOADS[workload]
    unknown = sorted(set(options) - set(judged.options))
    if unknown:
        known = ", ".join(judged.options) or "none"
        raise ValueError(f"workload {workload} has no option {unknown[0]!r}; there are: {known}")
    return judged.checker(**{name: _told(name, judged.options[name], text) for name, text in options.items()})


def _told(name: str, kind: type[Enum] | type[int], text: str) -> Enum | int:
    """Raises ValueError."""
    expected = "a whole number of 64 bits"
    if issubclass(kind, Enum):
        expected = f"one of {', '.join(member.value for member in kind)}"
    try:
        told = kind(text)
        if isinstance(told, Enum) or abs(told) < 1 << 63:
            return told
    except ValueError:
        pass
    raise ValueError(f"option {name} must be {expected}, it is {text!r}")
