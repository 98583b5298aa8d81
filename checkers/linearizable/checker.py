"""The linearizability checker for registers: each register behaves as if its operations happened one by one.

It claims that the operations on each key can be put in a row in which a read gives the value written last (before the
first write the initial one, null unless another is given), a cas succeeds exactly on the value that it expects, and
whatever ended before something else began comes before it. Registers are independent: where each of them is
linearizable, all of them together are.

It takes histories of the register workload: `read`, `write` and `cas`, with the register as key. What failed did not
happen; a cas that found another value is such a failure, and tells nothing unless `FailedCas.ANSWER` says so. Where
the initial value is not null and nobody writes null, a read of null tells nothing. What is indefinite, or never
completed, may have taken effect at any time after its invocation, or never.

What breaks it: `nonlinearizable`, one anomaly a register, with the operations that contradict each other. A register
that could not be decided within bounds makes the result UNKNOWN, with how far it came.

It does not establish anything about operations on several registers at once.

Registers to which no value is written twice are decided in O(n log n) (`unique.register`), others by a bounded search
(`search`).

Mutants it kills: vote-not-durable, local-read, ignore-append-result, serve-before-noop, empty-write-skips-log.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from checkers.buckets import bucket_count
from checkers.findings import FINDINGS, Example, Findings, gathered_findings, judged
from checkers.history_batches import history_rows
from checkers.kernels.columns import NONE
from checkers.linearizable.models import FailedCas
from checkers.linearizable.operations import (
    CAS_MISS,
    COLUMNS,
    INITIAL,
    READ,
    ROWS,
    Operations,
    operations_by_key,
    register_rows,
    shown,
)
from checkers.linearizable.search import NOT_LINEARIZABLE, UNDECIDED, Searched, search
from checkers.linearizable.unique.register import Register
from checkers.linearizable.unique.spans import Contradiction, Open, Spans
from checkers.plan import CheckRequest, Engine
from checkers.verdict import EXAMPLES, CheckerResult

CONFIGURATIONS = 5_000_000
"""At most so many are explored for one register: some seconds. The option `max_configurations` replaces it."""

NONLINEARIZABLE = "nonlinearizable"
UNDECIDED_REGISTER = "undecided"


@dataclass(frozen=True, kw_only=True)
class LinearizableRegister:
    """Judges a register workload's history, register by register."""

    initial: int = NONE
    """What each register holds before anything is written; NONE for null."""
    failed_cas: FailedCas = FailedCas.IGNORED
    name: str = "linearizable"

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        buckets = bucket_count(history_rows(request.history))
        limit = int(request.options.get("max_configurations", CONFIGURATIONS))
        history = engine.history(request.history, COLUMNS)
        rows = engine.mapped(history, partial(register_rows, buckets=buckets, failed_cas=self.failed_cas), ROWS)
        kernel = partial(register_findings, limit=limit, initial=self.initial)
        findings = engine.grouped(rows, ("bucket",), kernel, FINDINGS)
        found = dict(gathered_findings(engine, findings))

        registers = found.pop(REGISTERS, None)
        undecided = found.pop(UNDECIDED_REGISTER, None)
        reasons = [anomaly.because for anomaly in undecided.examples] if undecided else []
        if undecided and undecided.count > len(reasons):
            reasons.append(f"{undecided.count - len(reasons)} more registers are undecided")
        return judged(
            found,
            legal=request.legal,
            undecided=reasons,
            statistics={"registers": registers.count if registers else 0},
        )


REGISTERS = "registers"
"""Travels with the findings, as a count without examples."""


@dataclass(frozen=True)
class _Verdicts:
    """Of the registers of a bucket."""

    broken: list[Example]
    undecided: list[Example]


def register_findings(rows: pa.Table, *, limit: int, initial: int) -> pa.Table:
    """Kernel over all rows of a bucket of registers."""
    verdicts = _Verdicts([], [])
    registers = operations_by_key(rows, initial)
    for key, operations in registers:
        _judge(key, operations, limit, verdicts)
    findings = Findings()
    findings.add(REGISTERS, len(registers), [])
    for name, examples in ((NONLINEARIZABLE, verdicts.broken), (UNDECIDED_REGISTER, verdicts.undecided)):
        chosen = sorted(examples, key=lambda example: (example.operations, example.key))[:EXAMPLES]
        findings.add(name, len(examples), chosen)
    return findings.table()


def _judge(key: str, operations: Operations, limit: int, verdicts: _Verdicts) -> None:
    outcome = Register().decide(spans_of(operations), (int(operations.values[INITIAL]),))
    found = outcome if isinstance(outcome, Contradiction) else None
    if isinstance(outcome, Open):
        searched = search(operations, limit=limit)
        found = _stuck(operations, searched) if searched.outcome == NOT_LINEARIZABLE else None
        if searched.outcome == UNDECIDED:
            verdicts.undecided.append(_given_up(key, operations, searched))
    if found is not None:
        verdicts.broken.append(
            Example(key=key, operations=operations.witnesses(set(found.operations)), because=f"{key}: {found.because}")
        )


def spans_of(operations: Operations) -> Spans:
    value = operations.values[operations.value]
    expected = operations.values[operations.expected]
    reads = operations.f == READ
    return Spans(
        start=operations.start,
        end=operations.end,
        f=operations.f,
        argument=np.where(reads, NONE, value),
        result=np.where(reads, value, np.where(operations.expected < 0, NONE, expected)),
    )


def _stuck(operations: Operations, searched: Searched) -> Contradiction:
    """The operation that fits nowhere, what was open with it, and who had written what could be there."""
    stuck = searched.stuck_at
    end = operations.end[stuck]
    is_open = (operations.start < end) & (operations.end >= end) & operations.definite
    witnesses = {stuck, *(int(number) for number in is_open.nonzero()[0])}
    for value in searched.possible:
        writers = (
            (operations.value == value) & ~np.isin(operations.f, (READ, CAS_MISS)) & (operations.start < end)
        ).nonzero()[0]
        witnesses |= {int(number) for number in writers[-1:]}
    possible = " or ".join(shown(operations.values[value]) for value in searched.possible)
    return Contradiction(
        frozenset(witnesses),
        f"{operations.describe(stuck)} fits nowhere: with all that had completed before, the register held {possible}, "
        "and nothing that was open meanwhile explains the difference",
    )


def _given_up(key: str, operations: Operations, searched: Searched) -> Example:
    total = len(operations.f)
    done = int((operations.start < operations.start[searched.stuck_at]).sum()) if searched.stuck_at >= 0 else 0
    window = {searched.stuck_at} - {-1}
    return Example(
        key=key,
        operations=operations.witnesses(window),
        because=f"register {key} is undecided after {done} of its {total} operations: {searched.reason}",
    )
