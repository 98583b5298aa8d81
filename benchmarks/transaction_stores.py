"""Histories of made-up transaction stores, valid at a level or with one violation planted, the same for the same seed.

    python benchmarks/transaction_stores.py [--transactions 1000000] [--level snapshot] [--lists] [--write FILE]

A store is simulated, not its answers: sessions take random turns; each has one transaction open at a time, of one to
four operations, half of them reads, on keys drawn uniformly from those alive. A transaction takes effect between its
invocation and its completion: at one moment (serializable), at a snapshot and a later commit which finds nothing of
its own overwritten since (snapshot), or at one of three replicas, which exchange all that they have seen and settle
on the later commit (causal). A store that lags answers from snapshots up to so many commits old, which are never older
than what the session has seen: transactions that write stay serializable because they do not lag there; replicas
exchange the less often. What a transaction has written it does not read.

A violation is planted in the middle of the history, in transactions that are ordinary else: they take effect right
after each other, have no keys in common but two that no other ones use, and answers from these that cannot be. Nothing
else in the history is wrong, and what is planted breaks no lower level than it names.

Memory is bounded by the sessions and the keys alive, but for `committed`, whose arrays it returns. To be imported under
this name and no longer one: what was compiled is found again by it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from checkers.kernels.columns import FAIL, INFO, INVOKE, OK, TYPES, Bool, Int8, Int64
from checkers.transactions.history.committed import INITIAL, NEVER, NO_SESSION, WRITES, Committed
from checkers.transactions.history.micro_operations import MICRO_OPERATION, TRANSACTION
from harness.compiled import compiled
from harness.record.history import history_schema

ROW_GROUP_ROWS = 65_536
LONGEST = 4
"""Operations of a transaction."""
LONGEST_PLANTED = LONGEST + 2
REPLICAS = 3
REMEMBERED = 16
"""Versions of a key that the store keeps, where keys are not retired."""
FOR_EVER = 1 << 62

UInt64 = npt.NDArray[np.uint64]


SERIALIZABLE, SNAPSHOT, CAUSAL = range(3)


class Level(IntEnum):
    SERIALIZABLE = SERIALIZABLE
    SNAPSHOT = SNAPSHOT
    CAUSAL = CAUSAL


class Values(Enum):
    LISTS = "append"
    REGISTERS = "w"


class Violation(Enum):
    """What transactions in the middle do with keys a and b, in order of effect: `r a 1` reads the first version."""

    WRITE_SKEW = "r a 0, w b; r b 0, w a; r a 1, r b 1"
    """Serializable forbids it."""
    LOST_UPDATE = "r a 0, w a; r a 0, w a; r a 2"
    """Snapshot isolation forbids it, and parallel snapshot isolation."""
    LONG_FORK = "w a; w b; r a 1, r b 0; r b 1, r a 0"
    """Snapshot isolation forbids it."""
    CAUSALITY = "w a; r a 1, w b; r b 1, r a 0"
    """Causal consistency forbids it."""


@dataclass(frozen=True, kw_only=True)
class Keys:
    alive: int = 1_000
    writes: int = FOR_EVER
    """After so many a key is retired, and another one takes its place."""


RETIRED = Keys(alive=10, writes=32)


@dataclass(frozen=True, kw_only=True)
class Store:
    """Lists that are never retired can be had as `committed` only: as rows each read would repeat the whole list."""

    level: Level
    values: Values
    transactions: int
    sessions: int = 20
    keys: Keys = RETIRED
    lag: int = 0
    """Commits that a snapshot may be behind, or that are between two exchanges of a replica on average."""
    failed: float = 0.0
    """Share of transactions that fail, without effect."""
    indefinite: float = 0.0
    """Share of those that end with info; half of them took effect. The session goes on as another process."""
    violation: Violation | None = None
    seed: int = 1


def rows(store: Store) -> Iterator[pa.Table]:
    """The history, in row groups. Raises ValueError for lists that grow for ever."""
    if store.values is Values.LISTS and store.keys.writes == FOR_EVER:
        raise ValueError("a list that is never retired would be repeated by each read of it")
    index = 0
    most_shown = ROW_GROUP_ROWS * LONGEST_PLANTED * store.keys.writes if store.values is Values.LISTS else 0
    for events in _events(store, most_shown):
        yield _table(store.values, events, index)
        index += len(events.type)


def write(store: Store, path: Path) -> int:
    """Returns the number of rows."""
    written = 0
    with pq.ParquetWriter(path, history_schema(TRANSACTION), compression="zstd", version="2.6") as writer:
        for table in rows(store):
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
            written += table.num_rows
    return written


def committed(store: Store) -> Committed:
    """What stands of the history, with the orders of lists that reads have shown."""
    parts = list(_events(store, 0))
    kind, process, number = (np.concatenate([getattr(part, name) for part in parts]) for name in Events._fields[:3])
    sizes = np.concatenate([np.diff(part.first) for part in parts])
    operations = Operations(*(np.concatenate([getattr(part.operations, name) for part in parts]) for name in OF_EACH))
    del parts
    # Of each transaction, by its number: its two rows.
    ended = np.flatnonzero(kind != INVOKE)
    ended = ended[np.argsort(number[ended], kind="stable")]
    begun = np.flatnonzero(kind == INVOKE)
    kind = kind[ended]
    first = np.concatenate(([0], np.cumsum(sizes)))[ended]
    sizes = sizes[ended]
    at = np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    operations = Operations(*(column[at] for column in operations))
    owner = np.repeat(np.arange(len(kind)), sizes)

    is_read = ~operations.is_write & (kind[owner] == OK)
    # Of registers nothing shows in which order they were written.
    known, is_shown = _neighbours(operations, owner, is_read & (store.values is Values.LISTS))
    stands = kind == OK
    seen = operations.writer[is_read]
    seen = np.concatenate((seen[seen >= 0], owner[is_shown]))
    stands[seen[kind[seen] == INFO]] = True
    names = np.where(stands, np.cumsum(stands), -1).astype(np.int32)

    kept = stands[owner] & (operations.is_last | is_read)
    keys, key = np.unique(operations.key[kept], return_inverse=True)
    known = np.stack((np.searchsorted(keys, known[:, 0]), names[known[:, 1]], names[known[:, 2]]), axis=1)
    is_write = operations.is_write[kept]
    writer = np.where(operations.writer[kept] < 0, INITIAL, names[operations.writer[kept]])
    counts = np.bincount(owner[kept], minlength=len(kind))[stands]
    _, session = np.unique(process[ended][stands], return_inverse=True)
    return Committed(
        start=np.concatenate(([-1], begun[stands])),
        end=np.concatenate(([-1], np.where(kind == OK, ended, NEVER)[stands])),
        session=np.concatenate(([NO_SESSION], session)).astype(np.int32),
        first=np.concatenate(([0, 0], np.cumsum(counts))),
        key=key.astype(np.int32),
        writer=np.where(is_write, WRITES, writer).astype(np.int32),
        version_edges=known.astype(np.int32),
    )


class Operations(NamedTuple):
    """One an element."""

    is_write: Bool
    is_last: Bool
    """Of its transaction's writes to this key."""
    key: Int64
    value: Int64
    """Written, or read from a register; of a register never written, 0."""
    writer: Int64
    """Number of the transaction whose write was read; -1 for none."""
    version: Int64
    """How many writes of its key had taken effect, this one included; 0 where it took no effect."""


OF_EACH = Operations._fields


class Events(NamedTuple):
    """One a row of the history."""

    type: Int8
    process: Int64
    number: Int64
    """Of the transaction, by its invocation."""
    first: Int64
    """Operations of row i are first[i]:first[i + 1]."""
    operations: Operations
    elements: Int64
    """Elements of lists that were read, one behind the other: `version` is how many of them each read shows."""


def _neighbours(operations: Operations, owner: Int64, is_read: Bool) -> tuple[Int64, Bool]:
    """Neighbours in lists, as (key, transaction, transaction), as far as reads have shown them; and which writes."""
    shown_key, which = np.unique(operations.key, return_inverse=True)
    longest = np.zeros(len(shown_key), dtype=np.int64)
    np.maximum.at(longest, which[is_read], operations.version[is_read])
    is_shown = operations.is_write & (operations.version > 0) & (operations.version <= longest[which])
    rows = np.flatnonzero(is_shown)
    rows = rows[np.lexsort((operations.version[rows], operations.key[rows]))]
    key, by = operations.key[rows], owner[rows]
    neighbours = np.flatnonzero((key[1:] == key[:-1]) & (by[1:] != by[:-1]))
    return np.stack((key[neighbours], by[neighbours], by[neighbours + 1]), axis=1), is_shown


def _table(values: Values, events: Events, index: int) -> pa.Table:
    n = len(events.type)
    operations = events.operations
    kind = np.repeat(events.type, np.diff(events.first))
    is_answer = ~operations.is_write & (kind == OK)
    is_list = is_answer & (values is Values.LISTS)
    has_value = operations.is_write | (is_answer & ~is_list & (operations.version > 0))
    sizes = np.where(is_list, operations.version, 0)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    lists = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(events.elements), mask=pa.array(~is_list | (sizes == 0))
    )
    parts = pa.StructArray.from_arrays(
        [
            pa.array(["r", values.value]).take(pa.array(operations.is_write.astype(np.int8))),
            pa.array(operations.key).cast(pa.string()),
            pa.array(operations.value, mask=~has_value),
            lists,
        ],
        fields=list(MICRO_OPERATION),
    )
    txn = pa.ListArray.from_arrays(pa.array(events.first, pa.int32()), parts).cast(TRANSACTION.field("txn").type)
    none = pa.nulls(n, pa.string())
    schema = history_schema(TRANSACTION)
    at = np.arange(index, index + n)
    return pa.Table.from_arrays(
        [
            pa.array(at),
            pa.array(at * 1_000),
            pa.array(events.process, pa.int32()),
            pa.DictionaryArray.from_arrays(pa.array(events.type, pa.int32()), pa.array(TYPES)),
            pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["txn"])),
            none,
            pa.StructArray.from_arrays([txn], fields=list(TRANSACTION)),
            none,
            none,
        ],
        schema=schema,
    )


INVOKED, ENDED, COMMITS, NAMES, UNUSED, WAIT = range(6)
"""In `counts`."""

IDLE, BEGUN, READ, WAITING, DONE = range(5)
"""Phases of a session. WAITING: for the others that a violation needs."""

NO_ROLE, NOBODY, FORGOTTEN = -1, -1, -1
WITH_EFFECT = -1
"""A fate beside those of TYPES: indefinite, and took effect."""


SESSION = np.dtype(
    [(name, np.int64) for name in ("phase", "process", "number", "fate", "role", "size", "snapshot", "seen")]
)
OPERATION = np.dtype(
    [("key", np.int64), ("is_write", np.bool_), ("is_last", np.bool_)]
    + [(name, np.int64) for name in ("value", "writer", "version")]
)
KEY = np.dtype([(name, np.int64) for name in ("name", "tried", "versions", "held")])
"""Writes tried and done, and operations of open transactions that are on it."""
VERSION = np.dtype([(name, np.int64) for name in ("value", "writer", "commit", "replica", "local")])
"""`local`: the number of the commit at its replica."""
ROW = np.dtype([("type", np.int8)] + [(name, np.int64) for name in ("process", "number", "size")])
RECORDED = np.dtype([(name, np.bool_ if name.startswith("is_") else np.int64) for name in OF_EACH])
Records = npt.NDArray[np.void]


COUNTS, RANDOM, SESSIONS, OPERATIONS, KEYS, VERSIONS, ALIVE, FREE, CLOCK, SCRIPT = range(10)
State = tuple[Int64, UInt64, Records, Records, Records, Records, Int64, Int64, Int64, Int64]
"""All that changes from event to event, and the script of what is planted. Keys have places, which others take after
them: ALIVE are those of keys alive, the first so many of FREE belong to none. OPERATIONS are those of each session,
VERSIONS of each key as many as kept. CLOCK is how many commits of each replica each has seen."""

SHAPE = np.dtype(
    [(name, np.int64) for name in ("level", "transactions", "writes", "lag", "planted_from", "roles")]
    + [(name, np.float64) for name in ("failed", "indefinite")]
)
"""All that does not change."""


def _events(store: Store, most_shown: int) -> Iterator[Events]:
    """A row group at a time; `most_shown` is 0 where what lists held is not asked for."""
    script = _script("" if store.violation is None else store.violation.value)
    roles = int(script[:, 0].max()) + 1 if len(script) else 0
    if roles > min(store.sessions, store.transactions):
        raise ValueError(f"{store.violation} needs {roles} sessions, and as many transactions")
    shape = np.zeros(1, SHAPE)[0]
    for name in ("level", "transactions", "lag", "failed", "indefinite"):
        shape[name] = getattr(store, name)
    shape["writes"], shape["roles"], shape["planted_from"] = store.keys.writes, roles, (store.transactions - roles) // 2
    state = _beginning(store, script)
    while state[COUNTS][ENDED] < store.transactions:
        yield _played(state, shape, ROW_GROUP_ROWS, most_shown)


def _script(text: str) -> Int64:
    """Rows (which transaction, writes, key, version read)."""
    operations = [
        (role, operation.startswith("w"), "ab".index(operation[2]), int(operation[3:] or 0))
        for role, transaction in enumerate(text.split("; "))
        for operation in transaction.split(", ")
        if operation
    ]
    return np.array(operations, dtype=np.int64).reshape(-1, 4)


def _beginning(store: Store, script: Int64) -> State:
    sessions, alive = store.sessions, store.keys.alive
    places = alive + sessions * LONGEST + 3
    # A list is read with all that was ever appended to it.
    whole = store.values is Values.LISTS and store.keys.writes < FOR_EVER
    depth = max(store.keys.writes, 2) if whole else REMEMBERED

    counts = np.zeros(6, dtype=np.int64)
    # The last two places are those of what is planted, the ones between are free.
    counts[NAMES], counts[UNUSED] = alive + 2, places - alive - 2
    begun, keys = np.zeros(sessions, SESSION), np.zeros(places, KEY)
    begun["process"] = np.arange(sessions)
    keys["name"][:alive], keys["name"][-2:] = np.arange(alive), (alive, alive + 1)
    return (
        counts,
        np.array([store.seed], dtype=np.uint64),
        begun,
        np.zeros((sessions, LONGEST_PLANTED), OPERATION),
        keys,
        np.zeros((places, depth), VERSION),
        np.arange(alive),
        np.arange(places - 3, alive - 1, -1),
        np.zeros((REPLICAS, REPLICAS), dtype=np.int64),
        script,
    )


def _played(state: State, shape: np.void, most: int, most_shown: int) -> Events:
    rows, operations = np.empty(most, ROW), np.empty(most * LONGEST_PLANTED, RECORDED)
    shown = np.empty(most_shown, np.int64)
    count, elements = _play(state, shape, rows, operations, shown)
    first = np.concatenate(([0], np.cumsum(rows["size"][:count])))
    return Events(
        *(rows[name][:count].copy() for name in Events._fields[:3]),
        first,
        Operations(*(operations[name][: first[-1]].copy() for name in OF_EACH)),
        shown[:elements].copy(),
    )


@compiled
def _play(s: State, shape: np.void, rows: Records, operations: Records, read_elements: Int64) -> tuple[int, int]:
    """Until the rows are full or nothing is left to do; how many rows, and elements in `read_elements`."""
    count = recorded = elements = 0
    while count < len(rows) and s[COUNTS][ENDED] < shape.transactions:
        i = _drawn(s[RANDOM], len(s[SESSIONS]))
        session = s[SESSIONS][i]
        if session.phase == IDLE:
            if s[COUNTS][INVOKED] == shape.transactions:
                continue
            _invoke(s, shape, i)
            recorded = _record(s, i, INVOKE, rows, count, operations, recorded)
            count += 1
            session.phase = BEGUN
        elif session.phase == BEGUN and session.role != NO_ROLE:
            session.phase = WAITING
            s[COUNTS][WAIT] += 1
            if s[COUNTS][WAIT] == shape.roles:
                _plant(s, shape)
        elif session.phase == BEGUN:
            _read(s, shape, i)
            session.phase = READ
            if shape.level == SERIALIZABLE:
                _commit(s, shape, i)
                session.phase = DONE
        elif session.phase == READ:
            _commit(s, shape, i)
            session.phase = DONE
        elif session.phase == DONE:
            ended = INFO if session.fate == WITH_EFFECT else session.fate
            recorded = _record(s, i, ended, rows, count, operations, recorded)
            count += 1
            if ended == OK and len(read_elements):
                elements = _show(s, i, read_elements, elements)
            if ended == INFO:
                session.process += len(s[SESSIONS])
            _release(s, shape, i)
            s[COUNTS][ENDED] += 1
            session.phase = IDLE
    return count, elements


@compiled
def _drawn(random: UInt64, bound: int) -> int:
    """The next number below the bound (splitmix64)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int(((z ^ (z >> np.uint64(31))) >> np.uint64(33)) % np.uint64(bound))


@compiled
def _invoke(s: State, shape: np.void, i: int) -> None:
    session = s[SESSIONS][i]
    session.number = s[COUNTS][INVOKED]
    s[COUNTS][INVOKED] += 1
    role = session.number - shape.planted_from
    session.role = role if 0 <= role < shape.roles else NO_ROLE
    luck = _drawn(s[RANDOM], 1 << 30) / (1 << 30)
    session.fate = OK
    if session.role == NO_ROLE and luck < shape.failed:
        session.fate = FAIL
    elif session.role == NO_ROLE and luck < shape.failed + shape.indefinite:
        session.fate = INFO if _drawn(s[RANDOM], 2) else WITH_EFFECT
    session.size = 0
    for _ in range(1 + _drawn(s[RANDOM], LONGEST)):
        at = _drawn(s[RANDOM], len(s[ALIVE]))
        key = s[ALIVE][at]
        is_write = _drawn(s[RANDOM], 2) == 0
        for j in range(session.size):
            is_write |= s[OPERATIONS][i, j].key == key and s[OPERATIONS][i, j].is_write
        if session.role != NO_ROLE and _is_taken(s, i, key):
            continue
        _add(s, i, key, is_write)
        if is_write and s[KEYS][key].tried == shape.writes:
            s[COUNTS][UNUSED] -= 1
            fresh = s[FREE][s[COUNTS][UNUSED]]
            s[KEYS][fresh].name = s[COUNTS][NAMES]
            s[KEYS][fresh].tried = s[KEYS][fresh].versions = 0
            s[COUNTS][NAMES] += 1
            s[ALIVE][at] = fresh
    for k in range(len(s[SCRIPT])):
        if s[SCRIPT][k, 0] == session.role:
            s[OPERATIONS][i, session.size].version = s[SCRIPT][k, 3]
            _add(s, i, len(s[KEYS]) - 2 + s[SCRIPT][k, 2], s[SCRIPT][k, 1] == 1)


@compiled
def _is_taken(s: State, i: int, key: int) -> bool:
    """Whether another transaction that is part of what is planted has to do with it."""
    for other in range(len(s[SESSIONS])):
        session = s[SESSIONS][other]
        if other != i and session.phase in (BEGUN, WAITING) and session.role != NO_ROLE:
            for j in range(session.size):
                if s[OPERATIONS][other, j].key == key:
                    return True
    return False


@compiled
def _add(s: State, i: int, key: int, is_write: bool) -> None:
    session = s[SESSIONS][i]
    operation = s[OPERATIONS][i, session.size]
    operation.key = key
    operation.is_write = operation.is_last = is_write
    operation.writer = NOBODY
    s[KEYS][key].held += 1
    if is_write:
        s[KEYS][key].tried += 1
        operation.value = s[KEYS][key].tried
        operation.version = 0
        for j in range(session.size):
            if s[OPERATIONS][i, j].key == key:
                s[OPERATIONS][i, j].is_last = False
    session.size += 1


@compiled
def _read(s: State, shape: np.void, i: int) -> None:
    """Answers from one snapshot."""
    session = s[SESSIONS][i]
    if shape.level == CAUSAL:
        if _drawn(s[RANDOM], shape.lag + 1) == 0:
            _exchange(s, i % REPLICAS, _drawn(s[RANDOM], REPLICAS))
    else:
        session.snapshot = max(s[COUNTS][COMMITS] - _drawn(s[RANDOM], shape.lag + 1), session.seen)
        for j in range(session.size):
            if shape.level == SERIALIZABLE and s[OPERATIONS][i, j].is_write:
                session.snapshot = s[COUNTS][COMMITS]
    for j in range(session.size):
        if not s[OPERATIONS][i, j].is_write:
            version = _visible(s, shape, i, s[OPERATIONS][i, j].key)
            if version == FORGOTTEN:
                _read_latest(s, i)
                return
            _answer(s, i, j, version)


@compiled
def _read_latest(s: State, i: int) -> None:
    s[SESSIONS][i].snapshot = s[COUNTS][COMMITS]
    for j in range(s[SESSIONS][i].size):
        if not s[OPERATIONS][i, j].is_write:
            _answer(s, i, j, s[KEYS][s[OPERATIONS][i, j].key].versions)


@compiled
def _visible(s: State, shape: np.void, i: int, key: int) -> int:
    """The latest version that the session may be shown; or FORGOTTEN."""
    depth = s[VERSIONS].shape[1]
    latest = s[KEYS][key].versions
    for version in range(latest, 0, -1):
        if version <= latest - depth:
            return FORGOTTEN
        shown = s[VERSIONS][key, (version - 1) % depth]
        if shape.level == CAUSAL:
            if shown.local <= s[CLOCK][i % REPLICAS, shown.replica]:
                return version
        elif shown.commit <= s[SESSIONS][i].snapshot:
            return version
    return 0


@compiled
def _answer(s: State, i: int, j: int, version: int) -> None:
    operation = s[OPERATIONS][i, j]
    operation.version, operation.value, operation.writer = version, 0, NOBODY
    if version:
        shown = s[VERSIONS][operation.key, (version - 1) % s[VERSIONS].shape[1]]
        operation.value, operation.writer = shown.value, shown.writer


@compiled
def _commit(s: State, shape: np.void, i: int) -> None:
    session = s[SESSIONS][i]
    if session.fate not in (OK, WITH_EFFECT):
        return
    depth = s[VERSIONS].shape[1]
    home = i % REPLICAS
    if shape.level == SNAPSHOT and _is_overwritten(s, i):
        _read_latest(s, i)
    s[COUNTS][COMMITS] += 1
    s[CLOCK][home, home] += 1
    session.seen = s[COUNTS][COMMITS]
    for j in range(session.size):
        operation = s[OPERATIONS][i, j]
        if operation.is_write:
            key = s[KEYS][operation.key]
            version = s[VERSIONS][operation.key, key.versions % depth]
            key.versions += 1
            operation.version = key.versions
            version.value, version.writer, version.commit = operation.value, session.number, s[COUNTS][COMMITS]
            version.replica, version.local = home, s[CLOCK][home, home]
            if key.versions >= depth:
                # What is remembered must do for the replica that has seen least.
                oldest = s[VERSIONS][operation.key, key.versions % depth]
                for other in range(REPLICAS):
                    if oldest.local > s[CLOCK][other, oldest.replica]:
                        _exchange_all(s)


@compiled
def _is_overwritten(s: State, i: int) -> bool:
    """Whether another transaction wrote a key of its writes behind its snapshot."""
    for j in range(s[SESSIONS][i].size):
        operation = s[OPERATIONS][i, j]
        versions = s[KEYS][operation.key].versions
        if operation.is_write and versions:
            latest = s[VERSIONS][operation.key, (versions - 1) % s[VERSIONS].shape[1]]
            if latest.commit > s[SESSIONS][i].snapshot:
                return True
    return False


@compiled
def _exchange(s: State, to: int, source: int) -> None:
    for replica in range(REPLICAS):
        s[CLOCK][to, replica] = max(s[CLOCK][to, replica], s[CLOCK][source, replica])


@compiled
def _exchange_all(s: State) -> None:
    for to in range(REPLICAS):
        for source in range(REPLICAS):
            # Each knows all of its own.
            s[CLOCK][to, source] = s[CLOCK][source, source]


@compiled
def _plant(s: State, shape: np.void) -> None:
    """All that wait take effect, one right after the other."""
    for role in range(shape.roles):
        for i in range(len(s[SESSIONS])):
            session = s[SESSIONS][i]
            if session.phase == WAITING and session.role == role:
                _exchange_all(s)
                session.snapshot = s[COUNTS][COMMITS]
                for j in range(session.size):
                    operation = s[OPERATIONS][i, j]
                    if not operation.is_write:
                        is_planted = operation.key >= len(s[KEYS]) - 2
                        _answer(s, i, j, operation.version if is_planted else s[KEYS][operation.key].versions)
                _commit(s, shape, i)
                session.phase = DONE


@compiled
def _record(s: State, i: int, ended: int, rows: Records, row: int, operations: Records, recorded: int) -> int:
    session = s[SESSIONS][i]
    rows[row].type, rows[row].process, rows[row].number, rows[row].size = (
        ended,
        session.process,
        session.number,
        session.size,
    )
    for j in range(session.size):
        entry, operation = operations[recorded + j], s[OPERATIONS][i, j]
        entry.is_write, entry.is_last = operation.is_write, operation.is_last
        entry.key = s[KEYS][operation.key].name
        entry.value, entry.writer, entry.version = operation.value, operation.writer, operation.version
    return recorded + session.size


@compiled
def _show(s: State, i: int, read_elements: Int64, elements: int) -> int:
    for j in range(s[SESSIONS][i].size):
        operation = s[OPERATIONS][i, j]
        if not operation.is_write:
            for version in range(operation.version):
                read_elements[elements] = s[VERSIONS][operation.key, version].value
                elements += 1
    return elements


@compiled
def _release(s: State, shape: np.void, i: int) -> None:
    for j in range(s[SESSIONS][i].size):
        at = s[OPERATIONS][i, j].key
        s[KEYS][at].held -= 1
        if s[KEYS][at].held == 0 and s[KEYS][at].tried >= shape.writes and at < len(s[KEYS]) - 2:
            s[FREE][s[COUNTS][UNUSED]] = at
            s[COUNTS][UNUSED] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transactions", type=int, default=1_000_000)
    parser.add_argument("--level", choices=[level.name.lower() for level in Level], default="serializable")
    parser.add_argument("--lists", action="store_true", help="instead of registers")
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--keys", type=int, help="so many that are never retired, instead of ten that are")
    parser.add_argument("--lag", type=int, default=0)
    parser.add_argument("--violation", choices=[violation.name.lower() for violation in Violation])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help="as a history; without it, only what stands is made")
    arguments = parser.parse_args()
    store = Store(
        level=Level[arguments.level.upper()],
        values=Values.LISTS if arguments.lists else Values.REGISTERS,
        transactions=arguments.transactions,
        sessions=arguments.sessions,
        keys=RETIRED if arguments.keys is None else Keys(alive=arguments.keys),
        lag=arguments.lag,
        violation=None if arguments.violation is None else Violation[arguments.violation.upper()],
        seed=arguments.seed,
    )
    begun = time.perf_counter()
    made = len(committed(store)) - 1 if arguments.write is None else write(store, arguments.write) // 2
    seconds = time.perf_counter() - begun
    print(f"{made:,} transactions in {seconds:.1f} s, {made / seconds:,.0f} a second")


if __name__ == "__main__":
    import transaction_stores

    transaction_stores.main()
