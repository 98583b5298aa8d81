"""Long fork: two writes are seen in one order by everybody.

Operations, each a transaction of micro-operations: `write` of one register, which no other operation writes, and `read`
of several registers at one moment. In a run the registers come in pairs: both are written while others read them.
"""

from __future__ import annotations

from checkers.api.evidence import reading
from checkers.completions import parts
from checkers.elements.long_fork import LongForkChecker
from checkers.transactions.history.micro_operations import TRANSACTION
from harness.draw import Draw
from harness.generator import Generator, as_generator, drawn, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import NoSettings, Workload
from workloads.final_reads import OK_SHARE
from workloads.random_transactions import micro_operation

FUNCTIONS = ("read", "write", "txn")
OPERATIONS_OF_A_PAIR = 12
"""Two of them are writes, half of these apart; the others read this pair or the one before."""


def generator(settings: NoSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        pair, place = divmod(number, OPERATIONS_OF_A_PAIR)
        register, is_read = divmod(place, OPERATIONS_OF_A_PAIR // 2)
        if not is_read:
            return invoke("write", {"txn": [micro_operation("w", f"p{pair}-{register}", number)]})
        of = max(0, pair - draw.below(2))
        order = (0, 1) if draw.below(2) else (1, 0)
        return invoke("read", {"txn": [micro_operation("r", f"p{of}-{register}") for register in order]})

    return drawn(seed, operation)


def final_generator(settings: NoSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    """Nothing: a fork shows while only one of two registers is written."""
    return as_generator(None)


WORKLOAD = Workload(
    name="long-fork",
    about="two writes are seen in one order by everybody",
    value_type=TRANSACTION,
    functions=FUNCTIONS,
    any_values=True,
    repeats=(parts(*FUNCTIONS, written=("w",)),),
    evidence=tuple(reading(f, "r") for f in FUNCTIONS),
    checkers=lambda settings: {"long-fork": LongForkChecker()},
    generator=generator,
    final_generator=final_generator,
    required_ok={"read": 20, "write": 10},
    required_share={"read": OK_SHARE, "write": OK_SHARE},
)
