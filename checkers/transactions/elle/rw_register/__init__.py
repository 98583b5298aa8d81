"""Rw-register: what follows from one key whose reads show a single value, and nothing of earlier ones.

Plans over transactions (`checkers.transactions.history.micro_rows`):

    rows = engine.mapped(micro, partial(rows_with_findings, buckets=buckets), ROWS)
    engine.grouped(rows, ("bucket",), partial(register_outcomes, assumed=assumed, buckets=buckets), BUNDLES)
    engine.grouped(rows, ("bucket",), partial(register_reads, buckets=buckets), BUNDLES)
    rows = engine.mapped(micro, partial(register_rows, buckets=buckets), ROWS)
    engine.grouped(rows, ("bucket",), partial(register_reasons, wanted=wanted, assumed=assumed), EDGE_REASONS)
    engine.grouped(rows, ("bucket",), partial(edge_steps, wanted=wanted, assumed=assumed), VERSION_STEPS)
    engine.grouped(rows, ("bucket",), partial(cycle_steps, key=key, assumed=assumed), VERSION_STEPS)
    engine.grouped(rows, ("bucket",), partial(key_names, codes=codes, buckets=buckets), NAMES)

Sources: Adya, Liskov, O'Neil, "Generalized Isolation Level Definitions" (ICDE 2000); Kingsbury, Alvaro, "Elle:
Inferring Isolation Anomalies from Experimental Observations" (VLDB 2020).
"""

from checkers.transactions.elle.rw_register.dependencies import register_edges
from checkers.transactions.elle.rw_register.outcomes import register_outcomes, register_reads
from checkers.transactions.elle.rw_register.precedences import Assumed, Assumption
from checkers.transactions.elle.rw_register.reasons import register_reasons
from checkers.transactions.elle.rw_register.register_findings import MISSING, READS, register_findings
from checkers.transactions.elle.rw_register.resolution import NAMES, key_names, resolved
from checkers.transactions.elle.rw_register.rows import ROWS, register_rows, rows_with_findings
from checkers.transactions.elle.rw_register.version_steps import VERSION_STEPS, cycle_steps, edge_steps

__all__ = [
    "MISSING",
    "NAMES",
    "READS",
    "ROWS",
    "VERSION_STEPS",
    "Assumed",
    "Assumption",
    "cycle_steps",
    "edge_steps",
    "key_names",
    "register_edges",
    "register_findings",
    "register_outcomes",
    "register_reads",
    "register_reasons",
    "register_rows",
    "resolved",
    "rows_with_findings",
]
