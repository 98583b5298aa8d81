"""What is found of registers is what definitions say; what is inferred holds in every order that assumptions allow."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import FAIL, INFO, OK
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.rw_register import (
    Assumed,
    Assumption,
    key_names,
    register_edges,
    register_findings,
    register_rows,
    resolved,
)
from checkers.transactions.history.committed import NEVER, WRITES, Committed
from checkers.transactions.history.committed_rows import committed
from tests.references.register_transactions import (
    APART,
    Reference,
    Transaction,
    Version,
    micro_rows_of,
    moved,
    random_order,
    random_transactions,
)
from tests.references.thousands import thousands
from tests.references.transaction_histories import committed_of, random_registers


def counts(findings: pa.Table) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in findings.to_pylist():
        if row["bin"] is None:
            found[row["name"]] = found.get(row["name"], 0) + row["count"]
    return found


HISTORIES = 50
"""So many are judged at once, each on keys of its own."""


def random_histories(rng: random.Random) -> list[Reference]:
    histories = (random_transactions(rng) for _ in range(HISTORIES))
    return [Reference([moved(t, number) for t in history]) for number, history in enumerate(histories)]


def rows_of(references: Iterable[Reference]) -> pa.Table:
    return register_rows(micro_rows_of([t for reference in references for t in reference.transactions]), buckets=1)


def local_findings_agree(seed: int) -> None:
    references = random_histories(random.Random(seed))
    rows = rows_of(references)
    found = counts(register_findings(rows, assumed=Assumed()))
    assert found == sum((reference.findings() for reference in references), Counter()), f"seed {seed}"

    rows_resolved = resolved(rows, buckets=1).to_pylist()
    names = key_names(rows, codes=frozenset(row["key"] for row in rows_resolved), buckets=1).to_pylist()
    name = {row["key"]: row["name"] for row in names}
    resolutions = {(row["start"], row["place"], name[row["key"]], row["read_from"]) for row in rows_resolved}
    assert len(resolutions) == len(rows_resolved)
    assert resolutions == set().union(*(reference.resolved() for reference in references)), f"seed {seed}"


def test_local_findings_and_resolution_are_those_of_the_definitions() -> None:
    for seed in range(300 // HISTORIES):
        local_findings_agree(seed)


@thousands()
def test_local_findings_and_resolution_are_those_of_the_definitions_in_many_histories(seeds: range) -> None:
    for seed in seeds[::HISTORIES]:
        local_findings_agree(seed)


Edge = tuple[int, int]

MOST_VERSIONS = 5
"""Of a key whose versions are tried in all orders."""


def inference_agrees(seed: int) -> Counter[str]:
    """Returns what kinds of histories there were."""
    rng = random.Random(seed)
    drawn = (random_transactions(rng) for _ in range(HISTORIES))
    references = [Reference([moved(t, number, "x") for t in history]) for number, history in enumerate(drawn)]
    references = [reference for reference in references if len(reference.versions) <= MOST_VERSIONS]
    assumptions = frozenset(assumption for assumption in Assumption if rng.random() < 0.4)
    order: dict[int, int] = {}
    for reference in references if rng.random() < 0.4 else ():
        order |= random_order(rng, reference.transactions)
    assumed = Assumed(assumptions=assumptions, order=order)

    rows = rows_of(references)
    edges: dict[int, list[tuple[int, int, int]]] = {}
    for row in register_edges(rows, assumed=assumed).to_pylist():
        edges.setdefault(row["source"] // APART, []).append((row["kind"], row["source"], row["target"]))
    kinds: Counter[str] = Counter()
    for reference in references:
        number = reference.transactions[0].start // APART
        certain = reference.certain(assumed)
        kinds["cyclic" if certain is None else "ordered" if any(a for a, _ in certain) else "unordered"] += 1
        if certain is None:
            certain = {(None, version) for version in reference.versions}
        compare(f"history {number} of seed {seed}", reference, edges.get(number, []), certain)
    found = counts(register_findings(rows, assumed=assumed))
    assert found.get("cyclic-versions", 0) == kinds["cyclic"], f"seed {seed}"
    return kinds


def compare(
    message: str, reference: Reference, edges: list[tuple[int, int, int]], certain: set[tuple[Version, Version]]
) -> None:
    """Of a history of one key."""
    assert len(set(edges)) == len(edges), message
    versions = {version[0]: version for version in reference.versions}
    reads: set[tuple[int, Version]] = set()
    for t in reference.transactions:
        for key in reference.keys if t.type == OK else ():
            shown = {reference.version(t, key, value) for _, value in reference.external(t, key)}
            reads |= {(t.start, version) for version in shown if version != 0}
    of_kind = {kind: {(source, target) for k, source, target in edges if k == kind} for kind in Dependency}

    assert of_kind[Dependency.WR] == {(v[0], reader) for reader, v in reads if isinstance(v, tuple)}, message
    assert all((versions[a], versions[b]) in certain for a, b in of_kind[Dependency.WW]), message
    for reader, target in of_kind[Dependency.RW]:
        assert any(r == reader and (v, versions[target]) in certain for r, v in reads), message

    ww = closure(of_kind[Dependency.WW])
    assert ww == {(a[0], b[0]) for a, b in certain if isinstance(a, tuple) and isinstance(b, tuple)}, message
    for reader, version in reads:
        nearest = {target for r, target in of_kind[Dependency.RW] if r == reader}
        behind = nearest | {b for a, b in ww if a in nearest or a == reader}
        expected = {b[0] for a, b in certain if a == version and isinstance(b, tuple)} - {reader}
        assert expected <= behind, message


def closure(pairs: set[Edge]) -> set[Edge]:
    while True:
        more = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
        if not more:
            return pairs
        pairs = pairs | more


def test_what_is_inferred_is_what_holds_in_every_order_of_versions() -> None:
    kinds = sum((inference_agrees(seed) for seed in range(500 // HISTORIES)), Counter())
    assert min(kinds[kind] for kind in ("unordered", "ordered", "cyclic")) > 50


@thousands()
def test_what_is_inferred_is_what_holds_in_every_order_of_versions_of_many_histories(seeds: range) -> None:
    for seed in seeds[::HISTORIES]:
        inference_agrees(seed)


def test_nothing_depends_on_the_order_of_rows() -> None:
    for seed in range(10):
        rng = random.Random(seed)
        rows = rows_of(random_histories(rng))
        mixed = list(range(rows.num_rows))
        rng.shuffle(mixed)
        other = rows.take(mixed)
        for assumed in (Assumed(), Assumed(assumptions=frozenset(Assumption))):
            assert register_findings(other, assumed=assumed) == register_findings(rows, assumed=assumed)
            assert register_edges(other, assumed=assumed) == register_edges(rows, assumed=assumed)
        assert resolved(other, buckets=1) == resolved(rows, buckets=1)


def as_deciders_see_it(transactions: Committed) -> list[tuple[object, ...]]:
    """Of each transaction with operations: its ends, its session, its operations; keys and sessions by their order."""
    keys = np.unique(transactions.key, return_inverse=True)[1].tolist()
    starts, writers = transactions.start.tolist(), transactions.writer.tolist()
    seen = []
    for t in np.flatnonzero(np.diff(transactions.first)).tolist():
        mine = range(transactions.first[t], transactions.first[t + 1])
        operations = [(keys[i], "w" if writers[i] == WRITES else starts[writers[i]]) for i in mine]
        seen.append((starts[t], int(transactions.end[t]), int(transactions.session[t]), operations))
    sessions = {session: i for i, session in enumerate(sorted({session for _, _, session, _ in seen}))}
    return [(start, end, sessions[session], operations) for start, end, session, operations in seen]


TYPE = {"ok": OK, "info": INFO, "fail": FAIL}


def deciders_see_the_same(seed: int) -> None:
    rng = random.Random(seed)
    drawn = [random_registers(rng) for _ in range(HISTORIES)]
    same = [
        moved(
            Transaction(
                start=t.start,
                end=NEVER if t.end is None else t.end,
                process=t.session,
                type=TYPE[t.kind],
                operations=tuple((f, key, value if isinstance(value, int) else None) for f, key, value in t.operations),
            ),
            number,
        )
        for number, history in enumerate(drawn)
        for t in history
    ]
    there = [
        replace(
            t,
            start=moved_t.start,
            end=None if t.end is None else moved_t.end,
            session=moved_t.process,
            operations=moved_t.operations,
        )
        for t, moved_t in zip((t for history in drawn for t in history), same, strict=True)
    ]
    mine, _ = committed([resolved(register_rows(micro_rows_of(same), buckets=1), buckets=1)])
    assert as_deciders_see_it(mine) == as_deciders_see_it(committed_of(there)), f"seed {seed}"


def test_deciders_see_what_a_history_says() -> None:
    for seed in range(300 // HISTORIES):
        deciders_see_the_same(seed)


@thousands()
def test_deciders_see_what_many_histories_say(seeds: range) -> None:
    for seed in seeds[::HISTORIES]:
        deciders_see_the_same(seed)
