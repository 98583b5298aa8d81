"""List-append: what follows from one transaction or from one key, where every read shows its key's whole history.

Plans over transactions (`checkers.transactions.history.micro_rows`):

    rows = engine.mapped(micro, partial(rows_with_findings, buckets=buckets), ROWS)
    engine.grouped(rows, ("bucket",), list_outcomes, BUNDLES)           all findings, WW, WR and RW
    rows = engine.mapped(micro, partial(list_rows, buckets=buckets), ROWS)
    engine.grouped(rows, ("bucket",), partial(list_reasons, wanted=wanted), EDGE_REASONS)
    engine.grouped(rows, ("bucket",), bundled_lists, BUNDLES)           for deciders that look at everything at once

Sources: Adya, Liskov, O'Neil, Generalized Isolation Level Definitions, ICDE 2000; Kingsbury, Alvaro, Elle: Inferring
Isolation Anomalies from Experimental Observations, VLDB 2020.
"""

from checkers.transactions.elle.list_append.dependencies import LEFT_OUT, UNORDERED, list_edges
from checkers.transactions.elle.list_append.key_findings import key_findings
from checkers.transactions.elle.list_append.outcomes import list_outcomes
from checkers.transactions.elle.list_append.reasons import list_reasons
from checkers.transactions.elle.list_append.resolved import PLACES, list_resolved
from checkers.transactions.elle.list_append.rows import ROWS, list_rows
from checkers.transactions.elle.list_append.transaction import rows_with_findings, transaction_findings

__all__ = [
    "LEFT_OUT",
    "PLACES",
    "ROWS",
    "UNORDERED",
    "key_findings",
    "list_edges",
    "list_outcomes",
    "list_reasons",
    "list_resolved",
    "list_rows",
    "rows_with_findings",
    "transaction_findings",
]
