"""The unique-ids checker: no id is given out twice.

Operation, with the source of ids as key and a value {value}:
  generate {} -> {value}   ok: this id is now the caller's

What breaks the promise: duplicated, an id that two ok operations on one key were given.

It does not establish that ids ascend, nor that ids given to operations of unknown outcome are unique.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from checkers.buckets import bucket_count
from checkers.findings import FINDINGS, Findings, gathered_findings, judged
from checkers.history_batches import history_rows
from checkers.kernels.columns import NONE
from checkers.multiset.rows import COLUMNS, ROWS, SPANS, element_groups, is_ok, process_rows, spans
from checkers.plan import CheckRequest, Engine
from checkers.verdict import CheckerResult

FUNCTIONS = ("generate",)
GENERATED = "generated"


@dataclass(frozen=True, kw_only=True)
class UniqueIdsChecker:
    """Judges a history of ids."""

    name: str = "unique-ids"

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        buckets = bucket_count(history_rows(request.history))
        history = engine.history(request.history, COLUMNS)
        rows = engine.mapped(history, partial(process_rows, functions=FUNCTIONS, buckets=buckets), ROWS)
        operations = engine.grouped(rows, ("bucket",), partial(spans, buckets=buckets), SPANS)
        findings = engine.grouped(operations, ("bucket",), unique_id_findings, FINDINGS)
        found = dict(gathered_findings(engine, findings))
        generated = found.pop(GENERATED, None)
        return judged(
            found,
            legal=request.legal,
            undecided=(),
            statistics={GENERATED: generated.count if generated else 0},
        )


def unique_id_findings(table: pa.Table) -> pa.Table:
    """Kernel over all operations that gave ids of a bucket."""
    groups = element_groups(table)
    given = groups.sizes(is_ok(groups, 0) & (groups.element != NONE))
    findings = Findings()
    findings.add(GENERATED, int(given.sum()), ())
    groups.report(findings, "duplicated", given > 1, "was given out more than once")
    return findings.table()
