"""Which checker judges the history of which workload, and of what Arrow type that history's values are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from checkers.bank import TRANSFER_AND_BALANCES, BankChecker, Overdraft
from checkers.counter import CounterChecker
from checkers.log import LogChecker
from checkers.multiset.queue import Delivery, QueueChecker
from checkers.multiset.rows import ELEMENTS
from checkers.multiset.set import Reads, SetChecker
from checkers.multiset.unique_ids import UniqueIdsChecker
from checkers.plan import Checker

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
    options: tuple[str, ...]
    checker: Callable[[Options], Checker]


WORKLOADS: Mapping[str, Judged] = {
    "bank": Judged(
        value_type=TRANSFER_AND_BALANCES,
        functions=("transfer", "read"),
        options=("total", "overdraft"),
        checker=lambda options: BankChecker(
            total=int(options["total"]) if "total" in options else None,
            overdraft=Overdraft(options.get("overdraft", Overdraft.FORBIDDEN.value)),
        ),
    ),
    "counter": Judged(
        value_type=ELEMENTS,
        functions=("add", "read"),
        options=("initial",),
        checker=lambda options: CounterChecker(initial=int(options.get("initial", 0))),
    ),
    "log": Judged(
        value_type=LOG_MESSAGES,
        functions=("send", "poll", "final-poll", "caught-up"),
        options=(),
        checker=lambda options: LogChecker(),
    ),
    "queue": Judged(
        value_type=ELEMENTS,
        functions=("enqueue", "dequeue", "ack", "drain"),
        options=("delivery",),
        checker=lambda options: QueueChecker(
            delivery=Delivery(options.get("delivery", Delivery.AT_LEAST_ONCE.value)),
        ),
    ),
    "set": Judged(
        value_type=ELEMENTS,
        functions=("add", "read"),
        options=("reads",),
        checker=lambda options: SetChecker(reads=Reads(options.get("reads", Reads.EVENTUAL.value))),
    ),
    "unique-ids": Judged(
        value_type=ELEMENTS, functions=("generate",), options=(), checker=lambda options: UniqueIdsChecker()
    ),
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
    return judged.checker(options)
