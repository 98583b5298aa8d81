"""The versions that transactions touch, and the order of two versions that one transaction touches, or two transactions
that follow each other in a chain.

    T1 writes x = 1 · T2 reads x = 1 and writes x = 2 · T3 reads x = 2 · T2 and T3 are of one process

By wfr-keys T2 puts 1 before 2. By sequential-keys its process does so, too: T2 touches 1, and T3, which follows it,
touches 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Bool, Int8, Int32, Int64, run_starts
from checkers.transactions.elle.rw_register.precedences import Assumption, OrderedBy, Precedences, Versions
from checkers.transactions.elle.rw_register.resolution import Registers
from checkers.transactions.elle.rw_register.rows import RegisterRole
from harness.compiled import compiled


class Touches(NamedTuple):
    """One element for each transaction and key, sorted like rows; -1 stands for no row."""

    row: Int64
    """Any row of the transaction and key."""
    read: Int64
    """The first external read."""
    write: Int64
    """The last write."""


def touches_of(registers: Registers, versions: Versions) -> Touches:
    return _touched(registers.key, registers.start, registers.role, versions.of_row)


def _taken(touches: Touches, which: Int64) -> Touches:
    return Touches(touches.row[which], touches.read[which], touches.write[which])


def writes_follow_reads(versions: Versions, touches: Touches) -> Precedences:
    both = np.flatnonzero((touches.read >= 0) & (touches.write >= 0))
    read, write = touches.read[both], touches.write[both]
    return Precedences.by(OrderedBy.WRITES_FOLLOW_READS, versions.of_row[read], versions.of_row[write], read, write)


def in_processes(
    registers: Registers, versions: Versions, touches: Touches, is_ok: Bool, assumptions: frozenset[Assumption]
) -> Precedences:
    leaving = entering = touches
    if Assumption.WFR_KEYS in assumptions:
        # In transactions that do both, the read precedes the write already.
        both = (touches.read >= 0) & (touches.write >= 0)
        leaving = touches._replace(read=np.where(both, -1, touches.read))
        entering = touches._replace(write=np.where(both, -1, touches.write))
    process = registers.process[touches.row]
    return _in_chains(registers, versions, leaving, entering, process, is_ok, OrderedBy.PROCESS)


def in_given_order(
    registers: Registers, versions: Versions, touches: Touches, is_ok: Bool, order: Mapping[int, int]
) -> Precedences:
    ends = np.array(sorted(order), dtype=np.int64)
    place = np.array([order[end] for end in ends.tolist()], dtype=np.int64)
    end = registers.end[touches.row]
    at = np.minimum(np.searchsorted(ends, end), len(ends) - 1)
    named = np.flatnonzero(is_ok & (ends[at] == end) & (touches.write >= 0))
    named = named[np.lexsort((place[at[named]], registers.key[touches.row[named]]))]
    nothing = np.full(len(named), -1, dtype=np.int64)
    chosen = Touches(touches.row[named], nothing, touches.write[named])
    one = np.zeros(len(named), dtype=np.int32)
    return _in_chains(registers, versions, chosen, chosen, one, is_ok[named], OrderedBy.REPORTED)


def _in_chains(
    registers: Registers,
    versions: Versions,
    leaving: Touches,
    entering: Touches,
    chain: Int32,
    is_ok: Bool,
    why: OrderedBy,
) -> Precedences:
    """The precedences between neighbours of each chain on each key, from the version that one leaves to the version
    that the next one enters. Within a chain transactions keep their order."""
    key = registers.key[leaving.row]
    order = np.lexsort((chain, key))
    begins = run_starts(key[order], chain[order])
    before_row, after_row = _neighbours(
        begins, _taken(leaving, order), _taken(entering, order), is_ok[order], versions.of_row
    )
    return Precedences.by(why, versions.of_row[before_row], versions.of_row[after_row], before_row, after_row)


@compiled
def _touched(key: Int32, start: Int64, role: Int8, of_row: Int64) -> Touches:
    """The touches of rows sorted by key, transaction and place; `of_row` is that of Versions."""
    count = 0
    for fill in range(2):
        row = np.full(count if fill else 0, -1, dtype=np.int64)
        read = np.full(count if fill else 0, -1, dtype=np.int64)
        write = np.full(count if fill else 0, -1, dtype=np.int64)
        count = 0
        last = -1
        for i in range(len(key)):
            if of_row[i] < 0:
                continue
            if last < 0 or key[i] != key[last] or start[i] != start[last]:
                count += 1
            last = i
            if fill:
                row[count - 1] = i
                if role[i] == RegisterRole.WRITE:
                    write[count - 1] = i
                elif read[count - 1] < 0:
                    read[count - 1] = i
    return Touches(row, read, write)


@compiled
def _neighbours(begins: Bool, leaving: Touches, entering: Touches, is_ok: Bool, of_row: Int64) -> tuple[Int64, Int64]:
    """(rows before, rows after): all pairs of a version that an ok transaction left and one that the next one
    enters."""
    before_row = np.empty(4 * len(begins), dtype=np.int64)
    after_row = np.empty(4 * len(begins), dtype=np.int64)
    count = 0
    last = -1
    for i in range(len(begins)):
        if begins[i]:
            last = -1
        if last >= 0:
            for x in (leaving.read[last], leaving.write[last]):
                for y in (entering.read[i], entering.write[i]):
                    if x >= 0 and y >= 0 and of_row[x] != of_row[y]:
                        before_row[count] = x
                        after_row[count] = y
                        count += 1
        if is_ok[i] and (entering.read[i] >= 0 or entering.write[i] >= 0):
            last = i
    return before_row[:count].copy(), after_row[:count].copy()
