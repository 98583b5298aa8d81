"""Which checker judges the history of which workload, and of what Arrow type that history's values are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from checkers.bank import TRANSFER_AND_BALANCES, BankChecker, Overdraft
from checkers.counter import CounterChecker
from checkers.delay import DELAYED, DelayChecker
from checkers.log import LogChecker
from checkers.log.rows import LOG_MESSAGES
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

Options = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A workload whose history can be judged without its run."""

    about: str
    value_type: pa.DataType
    functions: tuple[str, ...]
    checker: Callable[..., Checker]
    anomalies: tuple[str, ...]
    """Names of broken promises; what exactly they are says the checker's module."""
    options: Mapping[str, type[Enum] | type[int]] = field(default_factory=dict)
    """What the checker can be told, by the names of its fields."""


WORKLOADS: Mapping[str, Judged] = {
    "bank": Judged(
        about="money moves between accounts, and none is made or lost",
        value_type=TRANSFER_AND_BALANCES,
        functions=("transfer", "read"),
        checker=BankChecker,
        anomalies=("negative-balance", "null-balance", "unexpected-account", "wrong-total"),
        options={"total": int, "accounts": int, "overdraft": Overdraft},
    ),
    "causal": Judged(
        about="nobody sees an effect without its causes",
        value_type=CAUSAL_OPERATIONS,
        functions=("read", "read-init", "write", "txn"),
        checker=CausalChecker,
        anomalies=("aborted-read", "broken-link", "cyclic-causality", "initial-read", "overwritten-read", "unexpected"),
        options={"initial": int},
    ),
    "causal-reverse": Judged(
        about="who sees a write sees all that were over before it began",
        value_type=ELEMENTS,
        functions=("write", "read"),
        checker=CausalReverseChecker,
        anomalies=("aborted-read", "causal-reverse", "unexpected"),
    ),
    "counter": Judged(
        about="a read lies between what must have been added and what may have been",
        value_type=ELEMENTS,
        functions=("add", "read"),
        checker=CounterChecker,
        anomalies=("out-of-bounds",),
        options={"initial": int},
    ),
    "delay": Judged(
        about="what is due later is delivered then, and not before",
        value_type=DELAYED,
        functions=("send", "deliver"),
        checker=DelayChecker,
        anomalies=("delivered-early", "delivered-late"),
        options={"tolerance_ms": int, "latest_ms": int},
    ),
    "log": Judged(
        about="what was acked is kept, at its offset",
        value_type=LOG_MESSAGES,
        functions=("send", "poll", "final-poll", "caught-up"),
        checker=LogChecker,
        anomalies=(
            "aborted-read",
            "consumer-offset-skip",
            "dirty-read",
            "diverging-replicas",
            "duplicate",
            "inconsistent-offsets",
            "internal-nonmonotonic",
            "internal-skip",
            "lost-write",
            "nonmonotonic-poll",
            "nonmonotonic-send",
            "poll-skip",
            "unexpected-read",
            "unseen",
        ),
    ),
    "long-fork": Judged(
        about="two writes are seen in one order by everybody",
        value_type=TRANSACTION,
        functions=("read", "write", "txn"),
        checker=LongForkChecker,
        anomalies=("aborted-read", "long-fork", "unexpected"),
    ),
    "monotonic": Judged(
        about="what a process has read it never reads smaller again",
        value_type=TOLD_VALUES,
        functions=("read", "inc"),
        checker=MonotonicChecker,
        anomalies=("nonmonotonic-read", "nonmonotonic-timestamp"),
    ),
    "queue": Judged(
        about="what was put in comes out, as often and in the order that is promised",
        value_type=ELEMENTS,
        functions=("enqueue", "dequeue", "ack", "drain"),
        checker=QueueChecker,
        anomalies=("aborted-read", "duplicated", "lost", "out-of-order", "redelivered-after-ack", "unexpected"),
        options={"delivery": Delivery, "order": Order},
    ),
    "set": Judged(
        about="what was added is there, for whoever reads later",
        value_type=ELEMENTS,
        functions=("add", "read"),
        checker=SetChecker,
        anomalies=("aborted-read", "duplicated", "lost", "stale", "unexpected"),
        options={"reads": Reads},
    ),
    "unique-ids": Judged(
        about="no id is given out twice",
        value_type=ELEMENTS,
        functions=("generate",),
        checker=UniqueIdsChecker,
        anomalies=("duplicated",),
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
    return judged.checker(**{name: _told(name, judged.options[name], text) for name, text in options.items()})


def _told(name: str, kind: type[Enum] | type[int], text: str) -> Enum | int:
    """Raises ValueError."""
    try:
        told = kind(text)
        if isinstance(told, Enum) or abs(told) < 1 << 63:
            return told
    except ValueError:
        pass
    raise ValueError(f"option {name} must be {allowed(kind)}, it is {text!r}")


def allowed(kind: type[Enum] | type[int]) -> str:
    """What an option may be, in words."""
    if issubclass(kind, Enum):
        return f"one of {', '.join(member.value for member in kind)}"
    return "a whole number of 64 bits"
