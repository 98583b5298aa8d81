"""Long fork: two writes are seen in one order by everybody.

Operations, each a transaction of micro-operations: `write` of one register, written once, and `read` of several.
"""

from __future__ import annotations

from checkers.causal.long_fork import LongForkChecker
from checkers.evidence import reading
from checkers.repeats import parts
from checkers.transactions.history.micro_operations import TRANSACTION
from harness.workload import Workload

FUNCTIONS = ("read", "write", "txn")

WORKLOAD = Workload(
    name="long-fork",
    about="two writes are seen in one order by everybody",
    value_type=TRANSACTION,
    functions=FUNCTIONS,
    repeats=(parts(*FUNCTIONS, written=("w",)),),
    evidence=tuple(reading(f, "r") for f in FUNCTIONS),
    checkers=lambda settings: {"long-fork": LongForkChecker()},
    anomalies=("aborted-read", "long-fork", "unexpected"),
)
