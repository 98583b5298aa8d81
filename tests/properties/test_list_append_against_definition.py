"""The kernels of list-append against their definitions, and what they say whatever way the rows come."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from checkers.api.findings import FINDINGS, gathered_findings
from checkers.api.plan import CheckRequest, Dataset, Kernel
from checkers.in_process.engine import InProcessEngine
from checkers.kernels.bundles import BUNDLES
from checkers.transactions.elle.edges import EDGES, LINKS, Dependency
from checkers.transactions.elle.list_append import (
    ROWS,
    key_findings,
    list_edges,
    list_outcomes,
    list_reasons,
    list_resolved,
    list_rows,
    rows_with_findings,
    transaction_findings,
)
from checkers.transactions.elle.list_append.resolved import PLACES
from checkers.transactions.elle.outcomes import of_outcomes
from checkers.transactions.elle.reasons import EDGE_REASONS, gathered_reasons, wanted_edges
from checkers.transactions.history.committed_rows import RESOLVED
from checkers.transactions.history.micro_rows import micro_rows
from tests.references.list_histories import (
    Edge,
    Resolved,
    Row,
    defined_lists,
    defined_resolved,
    once,
    random_lists,
    transactions_of,
    write_lists,
)
from tests.references.thousands import thousands

LIMIT = 10_000_000


@dataclass
class Many:
    """Histories one behind the other, with keys and processes of their own, and what is in all of them."""

    rows: list[Row] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)
    edges: Counter[Edge] = field(default_factory=Counter)
    resolved: set[Resolved] = field(default_factory=set)


def many(seed: int, histories: int) -> Many:
    all_of = Many()
    for number in range(histories):
        generator = random.Random(f"lists {seed} {number}")
        mine = random_lists(generator, generator.randint(2, 14), generator.choice((0.0, 0.1, 0.3)))
        names, edges = defined_lists(mine)
        base = len(all_of.rows)
        all_of.names += names
        all_of.edges.update({(kind, base + source, base + target): n for (kind, source, target), n in edges.items()})
        for start, key, place, read_from in defined_resolved(mine):
            source = base + read_from if read_from >= 0 else read_from
            all_of.resolved.add((base + start, f"{key}{number}", place, source))
        for row in mine:
            txn = [part | {"key": f"{part['key']}{number}"} for part in row["value"]["txn"]]
            all_of.rows.append(row | {"process": row["process"] + 100 * number, "value": {"txn": txn}})
    return all_of


@dataclass(frozen=True)
class Plans:
    """All of them, over one history."""

    path: Path
    buckets: int
    engine: InProcessEngine = field(default_factory=InProcessEngine)

    def micro(self) -> Dataset:
        with micro_rows(CheckRequest(history=self.path), self.engine) as micro:
            return micro  # In this process they stay of use behind it.

    def rows(self) -> Dataset:
        return self.engine.mapped(self.micro(), partial(list_rows, buckets=self.buckets), ROWS)

    def of_keys(self, kernel: Kernel, schema: pa.Schema) -> Dataset:
        return self.engine.grouped(self.rows(), ("bucket",), kernel, schema)

    def findings(self) -> dict[str, int]:
        found = self.engine.union(
            self.engine.mapped(self.micro(), transaction_findings, FINDINGS), self.of_keys(key_findings, FINDINGS)
        )
        summaries = gathered_findings(self.engine, found).anomalies
        return {name: summary.count for name, summary in summaries.items()}

    def edges(self) -> Counter[Edge]:
        edges = self.engine.gather(self.of_keys(list_edges, EDGES), LIMIT)
        return Counter(zip(*(edges[name].to_pylist() for name in ("kind", "source", "target")), strict=True))

    def resolved(self) -> pa.Table:
        return self.engine.gather(self.of_keys(list_resolved, RESOLVED), LIMIT)

    def reasons(self, edges: Iterable[Edge]) -> list[dict[str, Any]]:
        wanted = wanted_edges(edges)
        reasons: list[dict[str, Any]] = gathered_reasons(
            self.engine, self.of_keys(partial(list_reasons, wanted=wanted), EDGE_REASONS), wanted
        ).to_pylist()
        return reasons


def first_of_keys(rows: list[Row]) -> dict[int, str]:
    """The number of each key -> its name."""
    numbers: dict[str, int] = {}
    for transaction in transactions_of(rows):
        for place, (f, key, *_) in enumerate(transaction.steps):
            if f == "append" or transaction.type == "ok":
                numbers.setdefault(key, transaction.start * PLACES + place)
    return {number: name for name, number in numbers.items()}


def agree(path: Path, seed: int, histories: int) -> Counter[str]:
    made_up = many(seed, histories)
    plans = Plans(write_lists(made_up.rows, path), buckets=3)
    assert plans.findings() == +made_up.names
    assert plans.edges() == made_up.edges
    resolved, names = plans.resolved(), first_of_keys(made_up.rows)
    columns = (resolved[name].to_pylist() for name in ("start", "key", "place", "read_from"))
    reads = [(start, names[key], place, source) for start, key, place, source in zip(*columns, strict=True)]
    assert len(reads) == len(set(reads))
    assert set(reads) == made_up.resolved
    return made_up.names


def test_findings_edges_and_reads_of_a_few_hundred_histories_are_as_defined(tmp_path: Path) -> None:
    names = agree(tmp_path / "h.parquet", 1, 300)
    assert min(names[name] for name in NAMES) > 1, names


@thousands()
def test_findings_edges_and_reads_of_a_thousand_histories_are_as_defined(seeds: range, tmp_path: Path) -> None:
    agree(tmp_path / "h.parquet", seeds.start, len(seeds))


NAMES = ("duplicate-elements", "incompatible-order", "G1a", "G1b", "dirty-update", "garbage-read", "lost-update")
NAMES += ("internal", "future-read")


def test_neither_the_order_of_rows_nor_how_they_are_split_changes_anything(tmp_path: Path) -> None:
    path = write_lists(many(7, 60).rows, tmp_path / "h.parquet")
    engine = InProcessEngine()
    whole = engine.gather(Plans(path, 1).rows(), LIMIT)
    shuffled = whole.take(pa.array(random.Random(3).sample(range(len(whole)), len(whole))))
    assert key_findings(shuffled) == key_findings(whole)
    kernels = ((list_edges, EDGES), (list_resolved, RESOLVED))
    for kernel, schema in kernels:
        by = [(name, "ascending") for name in schema.names]
        assert kernel(shuffled).sort_by(by) == kernel(whole).sort_by(by)
    one, five = Plans(path, 1), Plans(path, 5)
    edges = one.edges()
    assert one.findings() == five.findings()
    assert edges == five.edges()
    assert one.reasons(edges) == five.reasons(edges)


def test_one_pass_finds_all_findings_and_edges(tmp_path: Path) -> None:
    plans = Plans(write_lists(many(10, 60).rows, tmp_path / "h.parquet"), buckets=3)
    engine = plans.engine
    with_findings = engine.mapped(plans.micro(), partial(rows_with_findings, buckets=3), ROWS)
    with engine.kept(engine.grouped(with_findings, ("bucket",), list_outcomes, BUNDLES)) as outcomes:
        found = gathered_findings(engine, of_outcomes(engine, outcomes, "findings"))
        links = engine.gather(of_outcomes(engine, outcomes, "links"), LIMIT)
    of_transactions = engine.mapped(plans.micro(), transaction_findings, FINDINGS)
    assert found == gathered_findings(engine, engine.union(of_transactions, plans.of_keys(key_findings, FINDINGS)))
    assert found.anomalies["internal"].count and found.anomalies["incompatible-order"].count
    assert links == engine.gather(plans.of_keys(list_edges, EDGES), LIMIT).select(LINKS.names)


def test_every_edge_has_a_reason_that_the_history_bears_out(tmp_path: Path) -> None:
    made_up = many(8, 100)
    plans = Plans(write_lists(made_up.rows, tmp_path / "h.parquet"), buckets=3)
    reasons = plans.reasons(made_up.edges)
    assert [(r["kind"], r["source"], r["target"]) for r in reasons] == sorted(made_up.edges)
    by_start = {t.start: t for t in transactions_of(made_up.rows)}

    def appended(start: int, reason: dict[str, Any], value: int) -> bool:
        return any(step[:3] == ("append", reason["key"], value) for step in by_start[start].steps)

    def read(start: int, reason: dict[str, Any]) -> list[list[int]]:
        return [once(step[3]) for step in by_start[start].steps if step[:2] == ("r", reason["key"])]

    for reason in reasons:
        value, following, evidence = (reason[name] for name in ("value", "next_value", "evidence"))
        if reason["kind"] == Dependency.WR:
            assert appended(reason["source"], reason, value) and following is None and evidence == reason["target"]
            assert any(value in shows for shows in read(reason["target"], reason))
            continue
        assert appended(reason["target"], reason, following)
        if reason["kind"] == Dependency.WW:
            assert appended(reason["source"], reason, value)
        else:
            shown = read(reason["source"], reason)
            assert any(value in shows if value is not None else True for shows in shown)
        if evidence is not None:
            orders = [shows for shows in read(evidence, reason) if following in shows]
            assert any(value is None or value in shows[: shows.index(following)] for shows in orders)
