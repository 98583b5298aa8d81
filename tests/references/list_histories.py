"""Random histories of transactions on lists, of a store that lies now and then, and what is wrong by definition."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from checkers.transactions.elle.edges import Dependency
from checkers.transactions.history.committed_rows import INITIAL_VERSION, IS_WRITE, KNOWN, KNOWN_IF_BOTH
from checkers.transactions.history.micro_operations import TRANSACTION
from harness.record.history import history_schema

Row = dict[str, Any]
Step = tuple[str, str, int | None, list[int] | None]
"""f, key, what was appended, what was read."""
Edge = tuple[int, int, int]
"""kind, source, target."""
Resolved = tuple[int, str, int, int]
"""start, key, place (or how an order is known), read from whom."""


def random_lists(generator: random.Random, transactions: int = 8, lies: float = 0.15) -> list[Row]:
    keys = "xyz"[: generator.randint(1, 3)]
    store: dict[str, list[int]] = defaultdict(list)
    fresh: Counter[str] = Counter()
    running: dict[int, list[Step]] = {}
    begun: dict[int, dict[str, list[int]]] = {}
    rows: list[Row] = []
    free = list(range(4))
    for _ in range(transactions):
        while free and (not running or generator.random() < 0.6):
            process = free.pop(generator.randrange(len(free)))
            running[process] = []
            begun[process] = {key: list(values) for key, values in store.items()}
            for _ in range(generator.choice((1, 2, 2, 3, 4))):
                key = generator.choice(keys)
                if generator.random() < 0.5:
                    running[process].append(("r", key, None, None))
                else:
                    fresh[key] += 1
                    running[process].append(
                        ("append", key, fresh[key] * 7 % 23 if fresh[key] < 23 else fresh[key], None)
                    )
            rows.append(row(process, "invoke", running[process]))
        process = generator.choice(sorted(running))
        steps = running.pop(process)
        kind = generator.choices(("ok", "fail", "info", ""), (8, 1, 1, 0.3))[0]
        happens = kind == "ok" or generator.random() < (0.15 if kind == "fail" else 0.5)
        late = generator.random() < lies
        done = []
        for f, key, value, _ in steps:
            if f == "append":
                if happens and generator.random() > lies / 3:
                    at = len(store[key]) if generator.random() > lies / 3 else generator.randint(0, len(store[key]))
                    store[key].insert(at, value)
                done.append((f, key, value, None))
            else:
                seen = list(begun[process].get(key, []) if late else store[key])
                if generator.random() < lies:
                    coming = [step[2] for step in steps if step[:2] == ("append", key)]
                    seen = [*seen, *coming] if generator.random() < 0.1 else lie(generator, seen)
                done.append((f, key, None, seen if seen or generator.random() < 0.5 else None))
        if kind:
            rows.append(row(process, kind, done if kind == "ok" else steps))
        free.append(process if kind in ("ok", "fail") else process + 4)
    return rows


def lie(generator: random.Random, seen: list[int]) -> list[int]:
    kind = generator.choice(("cut", "again", "swap", "garbage", "without"))
    if kind == "cut":
        return seen[: generator.randint(0, len(seen))]
    if kind == "garbage" or not seen:
        return [*seen, 99] if generator.random() < 0.5 else [99, *seen]
    at = generator.randrange(len(seen))
    if kind == "again":
        return [*seen[:at], seen[generator.randrange(len(seen))], *seen[at:]]
    if kind == "without":
        return [*seen[:at], *seen[at + 1 :]]
    seen = list(seen)
    generator.shuffle(seen)
    return seen


def row(process: int, kind: str, steps: list[Step]) -> Row:
    txn = [{"f": f, "key": key, "value": value, "values": read} for f, key, value, read in steps]
    named = {"process": process, "type": kind, "f": "txn", "key": None, "value": {"txn": txn}}
    return named | {"error": None, "node": None}


def write_lists(rows: list[Row], path: Path) -> Path:
    numbered = [row | {"index": i, "time": 1_000 * i} for i, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(numbered, schema=history_schema(TRANSACTION)), path, row_group_size=1_000)
    return path


@dataclass(frozen=True)
class Transaction:
    start: int
    type: str
    steps: list[Step]


@dataclass(frozen=True)
class Read:
    by: Transaction
    place: int
    shows: list[int]


def transactions_of(rows: list[Row]) -> Iterator[Transaction]:
    for start, invoked in enumerate(rows):
        if invoked["type"] != "invoke":
            continue
        behind = (row for row in rows[start + 1 :] if row["process"] == invoked["process"])
        ended = next(behind, None)
        if ended is None or ended["type"] == "invoke":
            ended = invoked | {"type": "info"}
        shown = ended if ended["type"] == "ok" else invoked
        steps = [(part["f"], part["key"], part["value"], part["values"]) for part in shown["value"]["txn"]]
        yield Transaction(start, ended["type"], steps)


def once(values: list[int] | None) -> list[int]:
    return list(dict.fromkeys(values or []))


def defined_lists(rows: list[Row]) -> tuple[Counter[str], Counter[Edge]]:
    """(how often each anomaly is there; of each edge in how many keys it is), by definition."""
    found: Counter[str] = Counter()
    edges: Counter[Edge] = Counter()
    transactions = list(transactions_of(rows))
    for transaction in transactions:
        if transaction.type == "ok":
            found += of_transaction(transaction)
    for key in sorted({step[1] for transaction in transactions for step in transaction.steps}):
        names, mine = of_key(key, transactions)
        found += names
        edges.update(mine)
    return found, edges


def of_transaction(transaction: Transaction) -> Counter[str]:
    found: Counter[str] = Counter()
    steps = transaction.steps
    for at, (f, key, value, read) in enumerate(steps):
        before = [step for step in steps[:at] if step[1] == key]
        if f == "append":
            found["future-read"] += any(value in (step[3] or []) for step in before)
            continue
        reads = [i for i, step in enumerate(before) if step[0] == "r"]
        own = [step[2] for step in (before[reads[-1] + 1 :] if reads else before)]
        if reads:
            wrong = (read or []) != (before[reads[-1]][3] or []) + own
        else:
            wrong = bool(own) and (read or [])[-len(own) :] != own
        found["internal"] += wrong
    return found


def of_key(key: str, transactions: list[Transaction]) -> tuple[Counter[str], set[Edge]]:
    found: Counter[str] = Counter()
    edges: set[Edge] = set()
    writer = {
        value: transaction
        for transaction in transactions
        for f, k, value, _ in transaction.steps
        if (f, k) == ("append", key)
    }
    own = {t.start: [value for f, k, value, _ in t.steps if (f, k) == ("append", key)] for t in transactions}
    raw = [
        Read(t, place, list(read or []))
        for t in transactions
        if t.type == "ok"
        for place, (f, k, _, read) in enumerate(t.steps)
        if (f, k) == ("r", key)
    ]
    reads = [Read(read.by, read.place, once(read.shows)) for read in raw]
    shown = {element for read in reads for element in read.shows}
    longest = min((read.shows for read in reads), key=lambda shows: (-len(shows), shows), default=[])

    def committed(element: int) -> bool:
        return element in writer and (
            writer[element].type == "ok" or (writer[element].type == "info" and element in shown)
        )

    def external(read: Read) -> bool:
        return not any(f == "append" and k == key for f, k, _, _ in read.by.steps[: read.place])

    def edge(kind: Dependency, source: Transaction, target: Transaction) -> None:
        if source is not target:
            edges.add((int(kind), source.start, target.start))

    found["duplicate-elements"] = sum(len(read.shows) != len(once(read.shows)) for read in raw)
    found["incompatible-order"] = sum(read.shows != longest[: len(read.shows)] for read in reads)
    found["G1a"] = sum(element in writer and writer[element].type == "fail" for element in shown)
    found["garbage-read"] = len(shown - set(writer))
    for read in reads:
        if read.shows and read.shows[-1] in writer:
            other = writer[read.shows[-1]]
            found["G1b"] += other is not read.by and own[other.start][-1] != read.shows[-1]
    known = [element for element in longest if element in writer]
    for one, two in pairwise(known):
        found["dirty-update"] += writer[one].type == "fail" and committed(two)

    updates = defaultdict(set)
    for t in transactions:
        mine = [(f, read) for f, k, _, read in t.steps if k == key]
        if t.type == "ok" and mine and mine[0][0] == "r" and own[t.start]:
            updates[tuple(once(mine[0][1]))].add(t.start)
    found["lost-update"] = sum(len(group) > 1 for group in updates.values())

    order = [element for element in longest if committed(element)]
    for one, two in pairwise(order):
        edge(Dependency.WW, writer[one], writer[two])
    unshown = [
        element
        for element in writer
        if element not in shown
        and (
            writer[element].type == "ok"
            or (
                writer[element].type == "info"
                and any(f == "append" and k != key for f, k, _, _ in writer[element].steps)
            )
        )
    ]
    for element in unshown:
        if order:
            edge(Dependency.WW, writer[order[-1]], writer[element])
    for read in reads:
        seen = [element for element in read.shows if committed(element)]
        if seen:
            edge(Dependency.WR, writer[seen[-1]], read.by)
        if external(read) and read.shows == longest[: len(read.shows)]:
            behind = [element for element in longest[len(read.shows) :] if committed(element)]
            for element in behind[:1] or unshown:
                edge(Dependency.RW, read.by, writer[element])
    return found, edges


def defined_resolved(rows: list[Row]) -> set[Resolved]:
    """What deciders get of a history, by definition."""
    transactions = list(transactions_of(rows))
    by_start = {t.start: t for t in transactions}
    resolved: set[Resolved] = set()
    for key in sorted({step[1] for transaction in transactions for step in transaction.steps}):
        writer = {step[2]: t for t in transactions for step in t.steps if step[:2] == ("append", key)}
        own = {t.start: [step[2] for step in t.steps if step[:2] == ("append", key)] for t in transactions}
        reads = [
            Read(t, place, list(step[3] or []))
            for t in transactions
            if t.type == "ok"
            for place, step in enumerate(t.steps)
            if step[:2] == ("r", key)
        ]
        shown = {element for read in reads for element in read.shows}
        longest = min((once(read.shows) for read in reads), key=lambda shows: (-len(shows), shows), default=[])
        for t in transactions:
            if own[t.start] and t.type != "fail":
                place = max(i for i, step in enumerate(t.steps) if step[:2] == ("append", key))
                resolved.add((t.start, key, place, IS_WRITE))
        for read in reads:
            fits = read.shows == longest[: len(read.shows)] and len(set(read.shows)) == len(read.shows)
            if not fits or any(step[:2] == ("append", key) for step in read.by.steps[: read.place]):
                continue
            if not read.shows:
                resolved.add((read.by.start, key, read.place, INITIAL_VERSION))
                continue
            last = read.shows[-1]
            by = writer.get(last, read.by)
            if by.type != "fail" and by is not read.by and own[by.start][-1] == last:
                resolved.add((read.by.start, key, read.place, by.start))
        for kind, before, behind in of_key(key, transactions)[1]:
            if kind == Dependency.WW:
                certain = by_start[behind].type == "ok" or not shown.isdisjoint(own[behind])
                resolved.add((behind, key, KNOWN if certain else KNOWN_IF_BOTH, before))
    return resolved
