"""The unique-ids checker: no id is given out twice.

Operation, with the source of ids as key and a value {value}:
  generate {} -> {value}   ok: this id is now the caller's

What breaks the promise: duplicated, an id that two ok operations on one key were given.

It does not establish that ids ascend, nor that ids given to operations of unknown outcome are unique.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pyarrow as pa

from checkers.api.findings import Findings, found_in_buckets, judge
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import CheckerResult
from checkers.buckets import in_buckets
from checkers.elements.rows import COLUMNS, ROWS, SPANS, element_groups, is_ok, process_rows, spans
from checkers.kernels.columns import NONE
from checkers.prefix import Finals, by_their_names
from harness.record.meaning import Meaning

FUNCTIONS = ("generate",)
GENERATED = "generated"


MEANINGS: Mapping[str, Meaning] = {
    "duplicated": Meaning(
        says="One id was given to two callers.",
        usually="Two nodes took themselves for the owner of a range of ids, or a counter went back after a failover "
        "or a clock jump.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class UniqueIdsChecker:
    """Judges a history of ids."""

    name: str = "unique-ids"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS
    final_on_a_prefix: ClassVar[Finals] = by_their_names("duplicated")

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        rows = partial(process_rows, functions=FUNCTIONS), ROWS
        operations = in_buckets(request, engine, COLUMNS, rows, (spans, SPANS))
        found = found_in_buckets(request, engine, operations, unique_id_findings)
        return judge(found.anomalies, legal=request.legal, undecided=(), statistics=found.counts(GENERATED))


def unique_id_findings(table: pa.Table) -> pa.Table:
    """Kernel over all operations that gave ids of a bucket."""
    groups = element_groups(table)
    given = groups.sizes(is_ok(groups, 0) & (groups.element != NONE))
    findings = Findings()
    findings.tally(GENERATED, int(given.sum()))
    groups.report(findings, "duplicated", given > 1, "was given out more than once")
    return findings.table()
