"""What the kernel of causal consistency knows while it goes through the transactions: who wrote what, clocks, chains of
sessions, and the versions of each key."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from checkers.kernels.columns import NO_INDEX, Bool, Int32, Int64
from checkers.kernels.gap_filling import next_place, require_filled
from checkers.transactions.orders.weak.accesses import Accesses
from harness.compiled import compiled, inlined

VERSION = np.dtype(
    (
        np.record,
        np.dtype(
            [
                (name, np.int32)
                for name in (
                    *("older", "newer", "chain", "place", "stamp"),
                    *("least_stamp", "watermark", "successor", "last_read"),
                )
            ]
            + [("is_deferred", np.bool_)],
            align=True,
        ),
    )
)
"""One version, for each write. Each byte less saves a megabyte in a history of a million writes.

- older, newer: its neighbours in its key's list;
- chain, place: those of its writer;
- stamp: its number among the versions of its key in the order in which these were listed;
- least_stamp: a lower stamp of one of its session's versions counts as this one;
- watermark: all versions of its key with a lower stamp, except deferred ones, come before this one or are this one;
- successor: the first version that it was put before;
- last_read: the last read for which it was put before the version read;
- is_deferred: whether it is in the list of deferred versions, where stamps do not count.
"""
Versions = npt.NDArray[np.void]


class Transactions(NamedTuple):
    """`Accesses` as arrays, indexed by transaction unless another index is named."""

    order: Int32
    """All transactions, each behind those that it reads from and those before it in its session."""
    first: Int64
    key: Int32
    writer: Int32
    """Operations of t are first[t]:first[t + 1]. `key` has their keys, and this the transaction read from, or
    WRITES."""
    definite: Bool
    before: Int32
    """The last definite transaction before it in its session, or NO_INDEX."""
    written_first: Int64
    written: Int32
    """The keys that t wrote are written[written_first[t]:written_first[t + 1]], ascending."""
    public: Bool
    """Whether another session sees it, directly or through a later transaction of its own session."""
    uses: Int32
    """How many transactions will need its clock: the next of its session, and those that read from it."""


class Writes(NamedTuple):
    """All writes sorted by key and turn, so that those visited one after the other are close to each other in
    memory."""

    entry_of: Int32
    """int32[writes]: the place of each write of `Transactions.written`."""
    owner: Int32
    """int32[places]: the transaction of each write."""
    previous: Int32
    """int32[places]: the place of its session's version before it; NO_INDEX for writes of indefinite transactions."""
    jump: Int32
    """int32[places]: a place further back, so that a search takes a logarithm of steps (Myers' jump pointers)."""


class Clocks(NamedTuple):
    """Clocks as rows: each says how much of each chain its holders see. Row 0 has seen nothing and is never freed."""

    clock: Int32
    """int32[rows, chains]: how many places of each chain the row's holders see."""
    holders: Int32
    """int32[rows]: how many transactions hold each row."""
    free: Int32
    free_count: Int64
    """The rows that are not held are free[:free_count[0]]."""
    highest: Int64
    """int64[1]: the last row that was ever held."""
    row_of: Int32
    """int32[transactions]: the row of each transaction's clock."""
    uses_left: Int32
    """int32[transactions]: how many of its `uses` are still to come."""


class Chains(NamedTuple):
    """The chains of this round."""

    chain: Int32
    place: Int32
    """int32[transactions]: the place of each on its chain, from 1. The chain itself is in `chain`, or NO_INDEX."""
    last: Int32
    """int32[transactions]: the last transaction of its session up to itself that is on a chain, or NO_INDEX."""
    followed: Bool
    """bool[transactions]: whether another transaction certainly follows on its chain."""
    length: Int32
    """int32[chains]: how many places are taken."""
    ended: Int32
    ended_count: Int64
    """Chains that another session may take over are ended[:ended_count[0]]."""
    used: Int64
    """int64[1]: how many chains there are."""
    turn: Int32
    """int32[transactions]: the round in which its chain is looked at, from 1; 0 before that."""


class Keys(NamedTuple):
    """What is known of each key: int32[keys] each, except for `reads`."""

    newest: Int32
    """The head of the list of each session's newest version, the one added last. The list goes on with `older`."""
    deferred: Int32
    """The version that was deferred last. The list goes on with `older`."""
    listed: Int32
    """How many versions both lists have: a read forces at most as many edges."""
    stamps: Int32
    """How many stamps were used."""
    last_reader: Int32
    """The transaction that read the key last."""
    last_watermark: Int32
    """The watermark of the version that it read."""
    reads: Int64
    """int64[1]: how many reads of any key there have been."""


class State(NamedTuple):
    transactions: Transactions
    writes: Writes
    clocks: Clocks
    chains: Chains
    keys: Keys
    versions: Versions
    """VERSION[places]: the version of each write."""
    defer_after: int


class Sight(NamedTuple):
    """What a transaction sees. On its own chain a session's clock may lag behind: that saves a copy of it for each of
    the session's transactions."""

    row: int
    own: int
    """The chain of the transaction's session, or NO_INDEX."""
    own_place: int
    """The place of the session's last transaction there, or 0."""


def transactions_of(accesses: Accesses, order: Int32) -> Transactions:
    rows = accesses.committed
    return Transactions(
        order,
        rows.first,
        rows.key,
        rows.writer,
        accesses.definite,
        accesses.before,
        accesses.written_first,
        accesses.written,
        _public(rows.writer, accesses.before),
        _uses(rows.writer, accesses.before),
    )


@compiled
def _uses(writer: Int32, before: Int32) -> Int32:
    result = np.zeros(len(before), dtype=np.int32)
    for t in range(len(before)):
        if before[t] != NO_INDEX:
            result[before[t]] += 1
    for u in writer:
        if u > 0:
            result[u] += 1
    return result


@compiled
def _public(writer: Int32, before: Int32) -> Bool:
    result = np.zeros(len(before), dtype=np.bool_)
    for u in writer:
        if u > 0:
            result[u] = True
    for t in range(len(before) - 1, 0, -1):
        if result[t] and before[t] != NO_INDEX:
            result[before[t]] = True
    return result


@compiled
def clocks_at_once(transactions: Transactions) -> int:
    """The largest number of transactions whose clocks are needed at the same time."""
    first, writer, before = transactions.first, transactions.writer, transactions.before
    left = transactions.uses.copy()
    here = most = 0
    for t in transactions.order:
        here += left[t] > 0
        most = max(most, here)
        if before[t] != NO_INDEX:
            left[before[t]] -= 1
            here -= left[before[t]] == 0
        for i in range(first[t], first[t + 1]):
            if writer[i] > 0:
                left[writer[i]] -= 1
                here -= left[writer[i]] == 0
    return most


@compiled
def sorted_writes(transactions: Transactions, member: Int32, session: Int32, keys: int) -> Writes:
    """`member`: int32[transactions], session by session, each in order."""
    written_first, written, definite = transactions.written_first, transactions.written, transactions.definite
    entry_of = np.empty(len(written), dtype=np.int32)
    owner = np.empty(len(written), dtype=np.int32)
    key_first = np.zeros(keys + 1, dtype=np.int64)
    for k in written:
        key_first[k + 1] += 1
    key_first = np.cumsum(key_first)
    filled = key_first[:-1].copy()
    for t in transactions.order:
        for j in range(written_first[t], written_first[t + 1]):
            at = next_place(filled, key_first, written[j])
            entry_of[j], owner[at] = at, t
    require_filled(filled, key_first)
    previous = np.full(len(written), NO_INDEX, dtype=np.int32)
    jump = np.full(len(written), NO_INDEX, dtype=np.int32)
    depth = np.zeros(len(written), dtype=np.int32)
    latest = np.full(keys, NO_INDEX, dtype=np.int32)
    for t in member:
        for j in range(written_first[t], written_first[t + 1]):
            if not definite[t]:
                continue
            entry = entry_of[j]
            p = latest[written[j]]
            latest[written[j]] = entry
            if p == NO_INDEX or session[owner[p]] != session[t]:
                continue
            q = jump[p]
            previous[entry], depth[entry] = p, depth[p] + 1
            is_twin = q != NO_INDEX and jump[q] != NO_INDEX and depth[p] - depth[q] == depth[q] - depth[jump[q]]
            jump[entry] = jump[q] if is_twin else p
    return Writes(entry_of, owner, previous, jump)


@compiled
def begun(
    transactions: Transactions, writes: Writes, turn: Int32, rows: int, columns: int, keys: int, defer_after: int
) -> State:
    """The state of a round before its first transaction, with `rows` clocks of `columns` chains each."""
    count = len(transactions.first) - 1
    holders = np.zeros(rows, dtype=np.int32)
    holders[0] = 1
    clocks = Clocks(
        np.empty((rows, columns), dtype=np.int32),
        holders,
        np.arange(rows - 1, 0, -1).astype(np.int32),
        np.full(1, rows - 1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(count, dtype=np.int32),
        transactions.uses.copy(),
    )
    followed = np.zeros(count, dtype=np.bool_)
    for t in range(count):
        if transactions.before[t] != NO_INDEX and transactions.definite[t] and transactions.public[t]:
            followed[transactions.before[t]] = True
    chains = Chains(
        np.full(count, NO_INDEX, dtype=np.int32),
        np.zeros(count, dtype=np.int32),
        np.full(count, NO_INDEX, dtype=np.int32),
        followed,
        np.zeros(columns, dtype=np.int32),
        np.empty(columns, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        turn,
    )
    versions = np.zeros(len(writes.owner), dtype=VERSION)
    for entry in range(len(writes.owner)):
        versions[entry].successor = NO_INDEX
    return State(transactions, writes, clocks, chains, _keys(keys), versions, defer_after)


@compiled
def _keys(keys: int) -> Keys:
    nobody = np.full(keys, NO_INDEX, dtype=np.int32)
    zero = np.zeros(keys, dtype=np.int32)
    return Keys(nobody, nobody.copy(), zero, zero.copy(), zero.copy(), zero.copy(), np.zeros(1, dtype=np.int64))


@inlined
def defer(keys: Keys, versions: Versions, key: int, entry: int) -> None:
    unlink(versions, keys.newest, key, entry)
    link(versions, keys.deferred, key, entry)
    versions[entry].is_deferred = True


@inlined
def readmit(keys: Keys, versions: Versions, key: int, entry: int) -> None:
    """Moves a version from the deferred ones back to its key's list, with a new stamp."""
    unlink(versions, keys.deferred, key, entry)
    link(versions, keys.newest, key, entry)
    versions[entry].is_deferred = False
    versions[entry].stamp = versions[entry].least_stamp = keys.stamps[key]
    keys.stamps[key] += 1


@inlined
def link(versions: Versions, top: Int32, key: int, entry: int) -> None:
    """Puts a version at the head of one of its key's lists. `top`: `Keys.newest` or `Keys.deferred`."""
    versions[entry].older, versions[entry].newer = top[key], NO_INDEX
    if top[key] != NO_INDEX:
        versions[top[key]].newer = entry
    top[key] = entry


@inlined
def unlink(versions: Versions, top: Int32, key: int, entry: int) -> None:
    older, newer = versions[entry].older, versions[entry].newer
    if newer != NO_INDEX:
        versions[newer].older = older
    else:
        top[key] = older
    if older != NO_INDEX:
        versions[older].newer = newer
