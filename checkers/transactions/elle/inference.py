"""What follows from a history of lists, or of registers: the plan up to where both are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from checkers.api.plan import CheckRequest, Dataset, Engine, Kernel
from checkers.buckets import bucket_count
from checkers.history_batches import history_rows
from checkers.kernels.bundles import BUNDLES, bundled
from checkers.kernels.columns import FAIL, Int64, run_starts
from checkers.transactions.elle import list_append, rw_register
from checkers.transactions.elle.edges import NODES
from checkers.transactions.elle.outcomes import of_outcomes, resolved_in
from checkers.transactions.elle.reasons import EDGE_REASONS, rows_of_keys
from checkers.transactions.elle.rw_register import Assumed
from checkers.transactions.history.committed_rows import TOGETHER
from checkers.transactions.history.micro_rows import ENDS, micro_rows

FIRST_USES = pa.schema([pa.field("number", pa.int64()), pa.field("key", pa.string())])


@dataclass(frozen=True, kw_only=True)
class VersionSteps:
    """The reasons for cycles of registers, as VERSION_STEPS of `rw_register`."""

    of_edges: Callable[[pa.Table], Dataset]
    """The steps for wanted edges."""
    of_versions: Callable[[str], Dataset]
    """The steps of the cycle of this key's versions."""


@dataclass(frozen=True, kw_only=True)
class Inference:
    """What is inferred from micro-operations, as datasets."""

    nodes: Dataset
    findings: Dataset
    links: Dataset
    resolved: Dataset
    """BUNDLES of RESOLVED, which deciders take as TOGETHER."""
    reasons: Callable[[pa.Table, frozenset[str]], Dataset]
    """EDGE_REASONS of wanted edges, between transactions that have these keys."""
    key_names: Callable[[Sequence[int]], Mapping[int, str]]
    """The names of keys by their numbers among RESOLVED rows."""
    version_steps: VersionSteps | None = None
    """The reasons for cycles, where the history is one of registers."""


@contextmanager
def of_lists(request: CheckRequest, engine: Engine) -> Iterator[Inference]:
    buckets = _buckets(request)
    with _read(request, engine) as (micro, transactions):
        rows_and_findings = engine.mapped(
            micro, partial(list_append.rows_with_findings, buckets=buckets), list_append.ROWS
        )
        rows = engine.mapped(micro, partial(list_append.list_rows, buckets=buckets), list_append.ROWS)

        def reasons(wanted: pa.Table, keys: frozenset[str]) -> Dataset:
            near = engine.mapped(rows, partial(rows_of_keys, keys=keys), list_append.ROWS)
            return engine.grouped(near, ("bucket",), partial(list_append.list_reasons, wanted=wanted), EDGE_REASONS)

        with engine.kept(
            engine.grouped(rows_and_findings, ("bucket",), list_append.list_outcomes, BUNDLES)
        ) as outcomes:
            yield Inference(
                nodes=transactions,
                findings=of_outcomes(engine, outcomes, "findings"),
                links=of_outcomes(engine, outcomes, "links"),
                resolved=engine.grouped(rows, ("bucket",), bundled_lists, BUNDLES),
                reasons=reasons,
                key_names=partial(_keys_of_first_uses, engine, micro),
            )


def of_registers(request: CheckRequest, engine: Engine, assumed: Assumed) -> AbstractContextManager[Inference]:
    kernel = partial(rw_register.register_outcomes, assumed=assumed, buckets=_buckets(request))
    return _of_registers(request, engine, assumed, kernel)


def of_reads_of_registers(request: CheckRequest, engine: Engine) -> AbstractContextManager[Inference]:
    """The inference for registers when only deciders are asked: without links, and nothing is assumed."""
    kernel = partial(rw_register.register_reads, buckets=_buckets(request))
    return _of_registers(request, engine, Assumed(), kernel)


def _buckets(request: CheckRequest) -> int:
    return bucket_count(history_rows(request.history))


@contextmanager
def _of_registers(request: CheckRequest, engine: Engine, assumed: Assumed, kernel: Kernel) -> Iterator[Inference]:
    """The inference for registers. `kernel` finds what concerns a bucket of them."""
    buckets = _buckets(request)
    with _read(request, engine) as (micro, transactions):
        rows_and_findings = engine.mapped(
            micro, partial(rw_register.rows_with_findings, buckets=buckets), rw_register.ROWS
        )
        rows = engine.mapped(micro, partial(rw_register.register_rows, buckets=buckets), rw_register.ROWS)

        def reasons(wanted: pa.Table, keys: frozenset[str]) -> Dataset:
            near = engine.mapped(rows, partial(rows_of_keys, keys=keys), rw_register.ROWS)
            of_edges = partial(rw_register.register_reasons, wanted=wanted, assumed=assumed)
            return engine.grouped(near, ("bucket",), of_edges, EDGE_REASONS)

        def key_names(numbers: Sequence[int]) -> Mapping[int, str]:
            of_keys = partial(rw_register.key_names, codes=frozenset(numbers), buckets=buckets)
            names = engine.gather(engine.grouped(rows, ("bucket",), of_keys, rw_register.NAMES), len(numbers))
            return dict(zip(names["key"].to_pylist(), names["name"].to_pylist(), strict=True))

        def edge_steps(wanted: pa.Table) -> Dataset:
            of_edges = partial(rw_register.edge_steps, wanted=wanted, assumed=assumed)
            return engine.grouped(rows, ("bucket",), of_edges, rw_register.VERSION_STEPS)

        def cycle_steps(key: str) -> Dataset:
            of_versions = partial(rw_register.cycle_steps, key=key, assumed=assumed)
            return engine.grouped(rows, ("bucket",), of_versions, rw_register.VERSION_STEPS)

        with engine.kept(engine.grouped(rows_and_findings, ("bucket",), kernel, BUNDLES)) as outcomes:
            yield Inference(
                nodes=transactions,
                findings=of_outcomes(engine, outcomes, "findings"),
                links=of_outcomes(engine, outcomes, "links"),
                resolved=resolved_in(engine, outcomes),
                reasons=reasons,
                key_names=key_names,
                version_steps=VersionSteps(of_edges=edge_steps, of_versions=cycle_steps),
            )


def bundled_lists(rows: pa.Table) -> pa.Table:
    """Kernel over all rows of a bucket of lists: BUNDLES of RESOLVED."""
    return bundled({TOGETHER: list_append.list_resolved(rows)})


@contextmanager
def _read(request: CheckRequest, engine: Engine) -> Iterator[tuple[Dataset, Dataset]]:
    """The MICRO_ROWS and NODES of a history."""
    with micro_rows(request, engine) as micro, micro_rows(request, engine, ENDS) as ends:
        yield micro, engine.mapped(ends, nodes, NODES)


def nodes(rows: pa.Table) -> pa.Table:
    """Kernel over MICRO_ROWS: NODES."""
    begins = run_starts(rows["start"].to_numpy()) & (rows["type"].to_numpy() != FAIL)
    return rows.select(NODES.names).filter(pa.array(begins))


def _keys_of_first_uses(engine: Engine, micro: Dataset, numbers: Sequence[int]) -> Mapping[int, str]:
    """Names of keys that are numbered by the first micro-operation on them."""
    found = engine.mapped(micro, partial(first_uses, numbers=np.array(numbers, dtype=np.int64)), FIRST_USES)
    names = engine.gather(found, len(numbers))
    return dict(zip(names["number"].to_pylist(), names["key"].to_pylist(), strict=True))


def first_uses(rows: pa.Table, *, numbers: Int64) -> pa.Table:
    """Kernel over MICRO_ROWS: FIRST_USES of the micro-operations that keys are numbered by."""
    number = rows["start"].to_numpy() * list_append.PLACES + rows["place"].to_numpy()
    chosen = pa.array(np.isin(number, numbers) & (rows["f"].to_numpy() >= 0))
    keys = rows["key"].filter(chosen).cast(pa.string())
    return pa.Table.from_arrays([pa.array(number).filter(chosen), keys], schema=FIRST_USES)
