"""Made-up transactions on registers in which everything goes wrong, and what is wrong with them, one by one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import pyarrow as pa

from checkers.kernels.columns import FAIL, INFO, NONE, OK
from checkers.transactions.elle.rw_register import Assumed, Assumption
from checkers.transactions.history.committed import NEVER
from checkers.transactions.history.committed_rows import INITIAL_VERSION, IS_WRITE
from checkers.transactions.history.micro_operations import FUNCTIONS
from checkers.transactions.history.micro_rows import MICRO_ROWS

GARBAGE = (-1, -2)
"""Values that no transaction writes."""

Version = tuple[int, int] | int | None
"""(start of the transaction, place of the write); garbage is its value, the initial version None."""


@dataclass(frozen=True, kw_only=True)
class Transaction:
    start: int
    end: int
    process: int
    type: int
    operations: tuple[tuple[str, str, int | None], ...]
    """(f, key, value)."""

    def of_key(self, key: str, f: str) -> list[tuple[int, int | None]]:
        """(place, value) of each."""
        return [(place, value) for place, (g, k, value) in enumerate(self.operations) if (g, k) == (f, key)]


def random_transactions(rng: random.Random) -> list[Transaction]:
    """At most 7 transactions of at most 3 processes on at most 2 keys."""
    keys = rng.choice(("x", "xy"))
    open_of: dict[int, int] = {}
    ends: dict[int, tuple[int, int]] = {}
    started: list[tuple[int, int]] = []
    life = dict.fromkeys(range(rng.randint(1, 3)), 0)
    clock, left = 0, rng.randint(1, 7)
    while left or open_of:
        client = rng.choice(sorted(life))
        if client not in open_of and left:
            open_of[client] = clock
            started.append((clock, client + 10 * life[client]))
            left -= 1
        elif client in open_of:
            kind = rng.choices((OK, INFO, FAIL), (8, 1, 1))[0]
            lost = kind == INFO and rng.random() < 0.5
            ends[open_of.pop(client)] = kind, NEVER if lost else clock
            # What goes on after an indefinite operation usually has another number, but need not.
            life[client] += lost or (kind == INFO and rng.random() < 0.5)
        clock += 1
    shapes = {start: [(rng.choice("rw"), rng.choice(keys)) for _ in range(rng.randint(1, 4))] for start, _ in started}
    count = 0
    written: dict[str, list[int]] = {key: [] for key in keys}
    values: dict[tuple[int, int], int] = {}
    for start, _ in started:
        for place, (f, key) in enumerate(shapes[start]):
            if f == "w":
                count += 1
                values[start, place] = count
                written[key].append(count)
    sane = rng.random()
    transactions = []
    for start, process in started:
        kind, end = ends[start]
        held: dict[str, int | None] = {}
        operations: list[tuple[str, str, int | None]] = []
        for place, (f, key) in enumerate(shapes[start]):
            if f == "w":
                held[key] = values[start, place]
            elif kind != OK:
                operations.append((f, key, None))
                continue
            elif key not in held or rng.random() > sane:
                held[key] = rng.choice([None, *written[key], *written[key], rng.choice((None, *GARBAGE))])
            operations.append((f, key, held[key]))
        transactions.append(Transaction(start=start, end=end, process=process, type=kind, operations=tuple(operations)))
    return transactions


APART = 1_000
"""Histories that are judged at once lie so many indices apart; none is as long."""


def moved(t: Transaction, number: int, keys: str | None = None) -> Transaction:
    """At the place of this number, with keys and processes of its own; only its operations on `keys`, if given."""
    return Transaction(
        start=t.start + APART * number,
        end=t.end if t.end == NEVER else t.end + APART * number,
        process=t.process + APART * number,
        type=t.type,
        operations=tuple((f, f"{key}{number}", value) for f, key, value in t.operations if keys is None or key in keys),
    )


def random_order(rng: random.Random, transactions: list[Transaction]) -> dict[int, int]:
    """By the end of most ok transactions its place."""
    ends = [t.end for t in transactions if t.type == OK and rng.random() < 0.9]
    places = rng.sample(range(-50, 50), len(ends)) if rng.random() < 0.5 else sorted(ends)
    return dict(zip(ends, places, strict=True))


def micro_rows_of(transactions: list[Transaction]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "start": t.start,
                "end": t.end,
                "process": t.process,
                "type": t.type,
                "place": place,
                "f": FUNCTIONS.index(f),
                "key": key,
                "value": NONE if value is None else value,
            }
            for t in transactions
            for place, (f, key, value) in enumerate(t.operations)
            if f == "w" or t.type == OK
        ],
        schema=MICRO_ROWS,
    )


@dataclass(frozen=True)
class Reference:
    """What definitions say of transactions."""

    transactions: list[Transaction]

    @property
    def keys(self) -> list[str]:
        return sorted({key for t in self.transactions for _, key, _ in t.operations})

    def writer(self, key: str, value: int | None) -> tuple[Transaction, int] | None:
        for t in self.transactions:
            for place, written in t.of_key(key, "w"):
                if written == value:
                    return t, place
        return None

    def reads(self) -> Iterator[tuple[Transaction, int, str, int | None]]:
        """Of ok transactions: (transaction, place, key, value)."""
        for t in self.transactions:
            for place, (f, key, value) in enumerate(t.operations):
                if f == "r" and t.type == OK:
                    yield t, place, key, value

    def findings(self) -> Counter[str]:
        """How many of each; names of none are left out."""
        found: Counter[str] = Counter()
        for t, place, key, value in self.reads():
            wrote = [held for at, held in t.of_key(key, "w") if at < place]
            had_read = [held for at, held in t.of_key(key, "r") if at < place]
            expected = wrote or had_read
            found["internal"] += bool(expected) and expected[-1] != value
            if value is None:
                continue
            writer = self.writer(key, value)
            if writer is None:
                found["garbage-read"] += 1
                continue
            found["future-read"] += writer[0] is t and writer[1] > place
            found["G1a"] += writer[0].type == FAIL
            found["G1b"] += writer[0] is not t and writer[1] != writer[0].of_key(key, "w")[-1][0]
        for key in self.keys:
            updated = Counter(
                t.of_key(key, "r")[0][1]
                for t in self.transactions
                if t.type == OK and t.of_key(key, "w") and t.of_key(key, "r") and self.external(t, key)
            )
            found["lost-update"] += sum(count > 1 for count in updated.values())
        return +found

    def external(self, t: Transaction, key: str) -> list[tuple[int, int | None]]:
        """(place, value) of reads before the transaction wrote the key."""
        writes = t.of_key(key, "w")
        return [(place, value) for place, value in t.of_key(key, "r") if not writes or place < writes[0][0]]

    def resolved(self) -> set[tuple[int, int, str, int]]:
        """(start, place, key, read_from) of external operations."""
        rows = set()
        for t in self.transactions:
            for key in self.keys:
                if t.type != FAIL and t.of_key(key, "w"):
                    rows.add((t.start, t.of_key(key, "w")[-1][0], key, IS_WRITE))
                for place, value in self.external(t, key) if t.type == OK else ():
                    version = self.version(t, key, value)
                    if version is None:
                        rows.add((t.start, place, key, INITIAL_VERSION))
                    elif isinstance(version, tuple):
                        rows.add((t.start, place, key, version[0]))
        return rows

    def version(self, t: Transaction, key: str, value: int | None) -> Version:
        """That a read shows; 0 for what is no version."""
        writer = None if value is None else self.writer(key, value)
        if writer is None:
            return value
        final = writer[1] == writer[0].of_key(key, "w")[-1][0]
        return (writer[0].start, writer[1]) if final and writer[0].type != FAIL and writer[0] is not t else 0

    @property
    def versions(self) -> list[tuple[int, int]]:
        """All that was installed, of a history of one key."""
        return [
            (t.start, t.of_key(key, "w")[-1][0])
            for t in self.transactions
            for key in self.keys
            if t.type != FAIL and t.of_key(key, "w")
        ]

    def touched(self, t: Transaction) -> tuple[list[Version], list[Version]]:
        """(the version that the first read of any shows, the one that is installed), as far as there are any."""
        key = self.keys[0]
        reads = [self.version(t, key, value) for _, value in self.external(t, key)] if t.type == OK else []
        reads = [version for version in reads if version != 0][:1]
        writes = t.of_key(key, "w")
        return reads, [(t.start, writes[-1][0])] if writes else []

    def constraints(self, assumed: Assumed) -> set[tuple[Version, Version]]:
        """(a, b): a certainly precedes b."""
        pairs: set[tuple[Version, Version]] = {(None, version) for version in self.versions}
        possible = [t for t in self.transactions if t.type != FAIL] if self.keys else []
        if Assumption.WFR_KEYS in assumed.assumptions:
            pairs |= {(a, b) for t in possible for a in self.touched(t)[0] for b in self.touched(t)[1]}
        for t in possible:
            for u in possible:
                if t.type != OK or t is u:
                    continue
                before, after = (
                    [v for some in self.touched(each) for v in some if not isinstance(v, int)] for each in (t, u)
                )
                in_process = t.process == u.process and t.start < u.start
                if (Assumption.SEQUENTIAL_KEYS in assumed.assumptions and in_process) or (
                    Assumption.LINEARIZABLE_KEYS in assumed.assumptions and t.end < u.start
                ):
                    pairs |= {(a, b) for a in before for b in after if a != b}
                order = assumed.order
                if u.type == OK and t.end in order and u.end in order and order[t.end] < order[u.end]:
                    pairs |= {(a, b) for a in self.touched(t)[1] for b in self.touched(u)[1]}
        return pairs

    def certain(self, assumed: Assumed) -> set[tuple[Version, Version]] | None:
        """What holds in every order of versions that keeps to the constraints; None without any such order."""
        constraints = self.constraints(assumed)
        everything = sorted({version for pair in constraints for version in pair}, key=str)
        certain: set[tuple[Version, Version]] | None = None
        for order in permutations(everything):
            place = {version: i for i, version in enumerate(order)}
            if all(place[a] < place[b] for a, b in constraints):
                holds = {(a, b) for a in order for b in order if place[a] < place[b]}
                certain = holds if certain is None else certain & holds
        return certain
