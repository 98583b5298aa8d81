"""List-append: what follows from one transaction or from one key, where every read tells its key's whole history.

Plans over the transactions of a history, as MICRO_ROWS or as `checkers.transactions.spans` has them:

    engine.mapped(transactions, transaction_findings, FINDINGS)         internal, future-read, malformed
    rows = engine.mapped(transactions, partial(list_rows, buckets=buckets), ROWS)
    engine.grouped(rows, ("bucket",), key_findings, FINDINGS)           all that concerns one key, malformed
    engine.grouped(rows, ("bucket",), list_edges, EDGES)                WW, WR, RW
    engine.grouped(rows, ("bucket",), list_outcomes, OUTCOMES)          both at once: outcome_findings, outcome_edges
    engine.grouped(rows, ("bucket",), partial(list_reasons, wanted=wanted), EDGE_REASONS)
    engine.grouped(rows, ("bucket",), list_resolved, RESOLVED)          for deciders that look at everything at once

Sources: Adya, Liskov, O'Neil, Generalized Isolation Level Definitions, ICDE 2000; Kingsbury, Alvaro, Elle: Inferring
Isolation Anomalies from Experimental Observations, VLDB 2020.
"""

from checkers.elle.list_append.dependencies import LEFT_OUT, UNORDERED, list_edges
from checkers.elle.list_append.key_findings import key_findings
from checkers.elle.list_append.outcomes import OUTCOMES, list_outcomes, outcome_edges, outcome_findings
from checkers.elle.list_append.reasons import list_reasons
from checkers.elle.list_append.resolved import PLACES, list_resolved
from checkers.elle.list_append.rows import ROWS, list_rows
from checkers.elle.list_append.transaction import transaction_findings

__all__ = [
    "LEFT_OUT",
    "OUTCOMES",
    "PLACES",
    "ROWS",
    "UNORDERED",
    "key_findings",
    "list_edges",
    "list_outcomes",
    "list_reasons",
    "list_resolved",
    "list_rows",
    "outcome_edges",
    "outcome_findings",
    "transaction_findings",
]
