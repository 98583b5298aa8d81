"""The outcome of one pass over a bucket of keys, as BUNDLES: findings, links, and external operations."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from checkers.api.findings import FINDINGS
from checkers.api.plan import Dataset, Engine
from checkers.kernels.bundles import BUNDLES, bundled, named, unbundled
from checkers.transactions.elle.edges import LINKS
from checkers.transactions.history.committed_rows import TOGETHER

_SCHEMAS = {"findings": FINDINGS, "links": LINKS}


def outcome(*, findings: pa.Table, edges: pa.Table | None = None, resolved: pa.Table | None = None) -> pa.Table:
    """The BUNDLES of these tables."""
    tables = {"findings": findings, "links": None if edges is None else edges.select(LINKS.names), TOGETHER: resolved}
    return bundled({name: table for name, table in tables.items() if table is not None})


def of_outcomes(engine: Engine, outcomes: Dataset, name: str) -> Dataset:
    """The FINDINGS or LINKS among outcomes; `name` is one of the names above."""
    return engine.mapped(outcomes, partial(unbundled, name=name, schema=_SCHEMAS[name]), _SCHEMAS[name])


def resolved_in(engine: Engine, outcomes: Dataset) -> Dataset:
    """The BUNDLES of RESOLVED among outcomes, still bundled."""
    return engine.mapped(outcomes, partial(named, name=TOGETHER), BUNDLES)
