"""Small histories of transactions: from a line a session, and at random; as history rows and as `Committed`.

    w(x,1) r(y,-) | r(x,1)      a session of two transactions: wrote x and read y as never written; read x
    a(x,1) r(y,[1,2])           the same of lists: appended to x, read y
    w(x,1) ?                    whether this happened is not known
    w(x,1) !                    this certainly did not
    [0,3] w(x,1)                invoked at history index 0, completed at 3

Without intervals all sessions take the same time, and each of their transactions the same share of it; what begins in
one line when something ends in a line below overlaps with that. Transactions are numbered from 1 as they begin, those
that begin together by lines. A value names its writer, so no key is written twice with the same one.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from checkers.transactions.history.committed import INITIAL, NEVER, NO_SESSION, WRITES, Committed

Value = int | tuple[int, ...] | None
"""What was written or read; None: nothing was there, or no answer came."""
Operation = tuple[str, str, Value]
"""r, w or append; key; value."""


@dataclass(frozen=True, kw_only=True)
class Transaction:
    session: int
    kind: str
    """ok, fail or info."""
    start: int
    """History index of the invocation."""
    end: int | None
    """Of the completion; None if there is none."""
    operations: tuple[Operation, ...]


def committed(text: str) -> Committed:
    """Raises ValueError if something was read that no transaction can have left there."""
    return committed_of(parsed(text))


def parsed(text: str) -> list[Transaction]:
    """In the order of their invocations."""
    lines = [line.split("|") for line in text.splitlines() if line.strip()]
    moments = {
        (Fraction(turn + later, len(line)), session, later, turn)
        for session, line in enumerate(lines)
        for turn in range(len(line))
        for later in (0, 1)
    }
    index = {
        (session, turn, later): place
        for place, (_, session, later, turn) in enumerate(sorted(moments, key=lambda m: (m[0], m[1], -m[2])))
    }
    found = [
        _transaction(words, session, index[session, turn, 0], index[session, turn, 1])
        for session, line in enumerate(lines)
        for turn, words in enumerate(line)
    ]
    rows = [index for transaction in found for index in (transaction.start, transaction.end)]
    assert len(set(rows)) == len(rows), "two rows of a history at one index"
    return sorted(found, key=lambda transaction: transaction.start)


def _transaction(words: str, session: int, start: int, end: int) -> Transaction:
    operations: list[Operation] = []
    kind = "ok"
    for word in words.split():
        if match := re.fullmatch(r"\[(\d+),(\d+)\]", word):
            start, end = int(match[1]), int(match[2])
        elif match := re.fullmatch(r"(r|w|a)\((\w+),(-|\d+|\[[\d,]*\])\)", word):
            f, key, value = match.groups()
            operations.append(("append" if f == "a" else f, key, _value(value)))
        else:
            kind = {"?": "info", "!": "fail"}[word]
    return Transaction(session=session, kind=kind, start=start, end=end, operations=tuple(operations))


def _value(text: str) -> Value:
    if text.startswith("["):
        return tuple(int(element) for element in text[1:-1].split(",") if element)
    return None if text == "-" else int(text)


def committed_of(transactions: list[Transaction]) -> Committed:
    """What completed with ok, and what it read from that is indefinite.

    Raises ValueError for reads of what was never written, aborted, intermediate, or against the order of a list.
    """
    writer_of = {}
    """(key, value) -> the transaction whose last write of the key it is."""
    for transaction in transactions:
        last = {key: value for f, key, value in transaction.operations if f != "r"}
        writer_of |= {(key, value): transaction for key, value in last.items()}
    answered = [transaction for transaction in transactions if transaction.kind == "ok"]
    sources = {t.start: _sources(t, writer_of) for t in answered}
    appender = {(key, value): t for t in transactions for f, key, value in t.operations if f == "append"}
    shown = [writer for reads in sources.values() for _, writer in reads if writer is not None]
    shown += [
        appender[key, e] for t in answered for _, key, value in t.operations if isinstance(value, tuple) for e in value
    ]
    if any(writer.kind == "fail" for writer in shown):
        raise ValueError("an aborted transaction was read")
    there = {t.start: t for t in [*answered, *shown]}
    nodes = [there[start] for start in sorted(there)]
    number = {t.start: i for i, t in enumerate(nodes, start=1)}
    keys = {key: i for i, key in enumerate(sorted({key for t in transactions for _, key, _ in t.operations}))}
    first, key_of, writers = [0, 0], [], []
    for t in nodes:
        reads = iter(sources.get(t.start, []))
        last_write = {key: place for place, (f, key, _) in enumerate(t.operations) if f != "r"}
        for place, (f, key, _) in enumerate(t.operations):
            if f == "r" and t.kind == "ok":
                own, writer = next(reads)
                if not own:
                    key_of.append(keys[key])
                    writers.append(number[writer.start] if writer else INITIAL)
            elif f != "r" and last_write[key] == place:
                key_of.append(keys[key])
                writers.append(WRITES)
        first.append(len(key_of))
    known = [(keys[key], number[u], number[v]) for key, u, v in _list_orders(nodes, writer_of)]
    sessions = {session: i for i, session in enumerate(sorted({t.session for t in nodes}))}
    return Committed(
        start=np.array([-1, *(t.start for t in nodes)], dtype=np.int64),
        end=np.array([-1, *(t.end if t.kind == "ok" else NEVER for t in nodes)], dtype=np.int64),
        session=np.array([NO_SESSION, *(sessions[t.session] for t in nodes)], dtype=np.int32),
        first=np.array(first, dtype=np.int64),
        key=np.array(key_of, dtype=np.int32),
        writer=np.array(writers, dtype=np.int32),
        version_edges=np.array(known, dtype=np.int32).reshape(-1, 3),
    )


def _sources(
    transaction: Transaction, writer_of: dict[tuple[str, Value], Transaction]
) -> list[tuple[bool, Transaction | None]]:
    """Of each read, whether it is of the reader's own write, and whose value it is; None: the initial one."""
    found: list[tuple[bool, Transaction | None]] = []
    written: set[tuple[str, Value]] = set()
    for f, key, value in transaction.operations:
        last = (value[-1] if value else None) if isinstance(value, tuple) else value
        if f != "r":
            written.add((key, last))
        elif (key, last) in written:
            found.append((True, transaction))
        elif last is None:
            found.append((False, None))
        elif (key, last) in writer_of and writer_of[key, last] is not transaction:
            found.append((False, writer_of[key, last]))
        else:
            raise ValueError(f"no transaction left {last} at {key}")
    return found


def _list_orders(
    nodes: list[Transaction], writer_of: dict[tuple[str, Value], Transaction]
) -> list[tuple[str, int, int]]:
    """(key, start of u, start of v): neighbours in the longest read, and its last one before all that it lacks."""
    longest: dict[str, tuple[int, ...]] = defaultdict(tuple)
    for transaction in nodes:
        for f, key, value in transaction.operations:
            if f == "r" and transaction.kind == "ok" and isinstance(value, tuple):
                short, long = sorted((longest[key], value), key=len)
                if long[: len(short)] != short:
                    raise ValueError(f"{key} was read as {short} and as {long}")
                longest[key] = long
    writer = {(key, v): t.start for t in nodes for f, key, v in t.operations if f == "append"}
    found = []
    for key, elements in sorted(longest.items()):
        order = [writer[key, element] for element in elements]
        later = sorted({start for (k, v), start in writer.items() if k == key} - set(order))
        found += [(key, u, v) for u, v in pairwise(order) if u != v]
        found += [(key, order[-1], v) for v in later if order]
    return found


def history_rows(transactions: list[Transaction]) -> list[dict[str, Any]]:
    """Invocations and completions, without index and time: in order."""
    rows = []
    for t in transactions:
        row = {"process": t.session, "f": "txn", "key": None, "node": None, "error": None}
        rows.append((t.start, row | {"type": "invoke", "value": {"txn": _parts(t, answered=False)}}))
        if t.end is not None:
            value = {"txn": _parts(t, answered=t.kind == "ok")}
            rows.append((t.end, row | {"type": t.kind, "value": value}))
    return [row for _, row in sorted(rows, key=lambda numbered: numbered[0])]


def _parts(transaction: Transaction, *, answered: bool) -> list[dict[str, Any]]:
    parts = []
    for f, key, value in transaction.operations:
        shown = value if answered or f != "r" else None
        of_list = isinstance(shown, tuple)
        parts.append({"f": f, "key": key, "value": None if of_list else shown, "values": shown if of_list else None})
    return parts


Plan = list[list[tuple[str, str]]]


def random_registers(rng: random.Random, *, most: int = 6) -> list[Transaction]:
    """At most so many transactions of 1 to 4 sessions on 2 to 4 registers; they read what was left there."""
    schedule = _Schedule.drawn(rng, "w", most)
    return [schedule.registers(rng, place) for place in schedule.by_start()]


def random_lists(rng: random.Random, *, most: int = 6) -> list[Transaction]:
    """The same on lists, which grow in one order: every read is a prefix of what its key became."""
    schedule = _Schedule.drawn(rng, "append", most)
    return [schedule.lists(rng, place) for place in schedule.by_start()]


def random_committed(rng: random.Random, *, most: int = 6) -> Committed:
    draw = rng.choice((random_registers, random_registers, random_lists))
    return committed_of(draw(rng, most=most))


@dataclass(frozen=True, kw_only=True)
class _Schedule:
    """Transactions without answers, and the order in which they took effect."""

    bare: list[Transaction]
    """Operations with what they write; None for reads."""
    effects: list[int]
    """Places in `bare`: neither those that failed nor those without effect."""
    seen: dict[int, int]
    """How many effects there had been when the transaction was invoked."""
    style: str
    """Which effects reads see: all before that of the transaction (serial), before some moment since its invocation
    (snapshot), before any moment (stale), any of them (forked), or others for each read (loose)."""
    disorder: float
    """So many reads are of anything at all."""

    @classmethod
    def drawn(cls, rng: random.Random, write: str, most: int) -> _Schedule:
        clients = rng.randint(1, 4)
        keys = "xyzw"[: rng.choice((2, 2, 3, 4))]
        bare: list[Transaction] = []
        effects: list[int] = []
        seen: dict[int, int] = {}
        open_of: dict[int, int] = {}
        lives = dict.fromkeys(range(clients), 0)
        left = rng.randint(2, most) if rng.random() < 0.3 else most
        writing = rng.choice((0.3, 0.4, 0.5))
        clock = counter = 0
        while left or open_of:
            client = rng.randrange(clients)
            place = open_of.get(client)
            if place is None:
                if not left:
                    continue
                left -= 1
                operations: list[Operation] = []
                for _ in range(rng.choice((1, 2, 3, 3, 4, 5))):
                    counter += 1
                    f = write if rng.random() < writing else "r"
                    operations.append((f, rng.choice(keys), counter if f == write else None))
                kind = rng.choices(("ok", "info", "fail"), (16, 3, 1))[0]
                session = client + clients * lives[client]
                seen[len(bare)] = len(effects)
                open_of[client] = len(bare)
                bare.append(
                    Transaction(session=session, kind=kind, start=clock, end=None, operations=tuple(operations))
                )
                clock += 1
            elif place not in effects and bare[place].kind == "ok":
                effects.append(place)
            else:
                kind = bare[place].kind
                if kind == "info" and rng.random() < 0.5:
                    effects.append(place)
                if kind != "info" or rng.random() < 0.5:
                    bare[place] = replace(bare[place], end=clock)
                    clock += 1
                lives[client] += kind == "info"
                del open_of[client]
        style = rng.choice(("serial", "snapshot", "stale", "forked", "forked", "loose"))
        disorder = rng.choice((0.0, 0.0, 0.1, 0.3, 0.7))
        return cls(bare=bare, effects=effects, seen=seen, style=style, disorder=disorder)

    def by_start(self) -> list[int]:
        return sorted(range(len(self.bare)), key=lambda place: self.bare[place].start)

    def states(self, rng: random.Random, place: int) -> list[list[int]]:
        """For each operation the effects that it sees, if it is a read."""
        last = self.effects.index(place) if place in self.effects else len(self.effects)
        least = {"serial": last, "snapshot": min(self.seen[place], last)}.get(self.style, 0)

        def drawn() -> list[int]:
            if self.style == "forked":
                return [p for p in self.effects[:last] if rng.random() < 0.6]
            return self.effects[: rng.randint(least, last)]

        count = len(self.bare[place].operations)
        return [drawn() for _ in range(count)] if self.style == "loose" else [drawn()] * count

    def writers(self, key: str) -> list[int]:
        """In the order of their effects."""
        return [place for place in self.effects if self.last_write(place, key) is not None]

    def last_write(self, place: int, key: str) -> int | None:
        written = [value for f, k, value in self.bare[place].operations if f != "r" and k == key]
        return written[-1] if written else None  # type: ignore[return-value]

    def registers(self, rng: random.Random, place: int) -> Transaction:
        transaction = self.bare[place]
        states = self.states(rng, place)
        read: list[Operation] = []
        held: dict[str, Value] = {}
        for (f, key, value), state in zip(transaction.operations, states, strict=True):
            if f == "r" and (key not in held or (held[key] is None and rng.random() < self.disorder)):
                shown = [p for p in state if self.last_write(p, key) is not None]
                drawn = shown[-1] if shown else None
                if rng.random() < self.disorder:
                    drawn = rng.choice([None, *(p for p in self.writers(key) if p != place)])
                value = None if drawn is None else self.last_write(drawn, key)
            elif f == "r":
                value = held[key]
            held[key] = value
            read.append((f, key, value))
        return replace(transaction, operations=tuple(read))

    def lists(self, rng: random.Random, place: int) -> Transaction:
        transaction = self.bare[place]
        states = self.states(rng, place)
        read: list[Operation] = []
        held: dict[str, tuple[int, ...]] = {}
        last = self.effects.index(place) if place in self.effects else len(self.effects)
        appends = {key for f, key, _ in transaction.operations if f != "r"}
        for (f, key, value), state in zip(transaction.operations, states, strict=True):
            if key not in held:
                # Who appends as well saw what was there at its effect; otherwise lists would not grow in one order.
                count = last if key in appends else len(state)
                if key not in appends and rng.random() < self.disorder:
                    count = rng.randint(0, len(self.effects))
                held[key] = tuple(
                    element
                    for p in self.effects[:count]
                    for f, k, element in self.bare[p].operations
                    if f != "r" and k == key and p != place
                )
            if f != "r":
                held[key] = (*held[key], value)  # type: ignore[arg-type]
            read.append((f, key, held[key] if f == "r" else value))
        return replace(transaction, operations=tuple(read))
