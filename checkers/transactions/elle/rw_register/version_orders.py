"""Which versions of a register certainly follow which, as far as assumptions tell.

Reads of a register do not show what was there before, so that without any assumption the initial version comes first
and that is all. What a system is known to promise of each single key tells more. A transaction touches the version that
its first external read of the key shows, and the one that it installs; of versions a and b:

  wfr-keys           a transaction that reads a and writes b: a < b
  sequential-keys    T came before U in a process, and T touches a, U touches b: a ≤ b
  linearizable-keys  T ended before U began, and T touches a, U touches b: a ≤ b
  a given order      T precedes U in it, and T installs a, U installs b: a < b

A value that nobody wrote may have been there from the beginning; such versions count by wfr-keys alone. An indefinite
transaction precedes nothing; it may follow. Versions that precede each other are an anomaly (`cyclic-versions`), after
which nothing is inferred of the key but that the initial version comes first.

What follows by way of a third version is left out, as far as that costs little: never by way of a process, often by
way of several. What is inferred is sound if the assumptions are; it is not all that follows from them.

Source: Kingsbury, Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations" (VLDB 2020), 4.2.3; the
orders of transactions that it makes version orders of are per key here, so that nothing is searched through others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

import numpy as np

from checkers.kernels.columns import OK, Bool, Int8, Int32, Int64, run_starts
from checkers.transactions.elle.rw_register.resolution import NOBODY, NOTHING, Registers
from checkers.transactions.elle.rw_register.rows import RegisterRole
from checkers.transactions.history.committed import NEVER
from harness.compiled import compiled


class Assumption(Enum):
    """What is taken for granted of each key."""

    WFR_KEYS = "wfr-keys"
    SEQUENTIAL_KEYS = "sequential-keys"
    LINEARIZABLE_KEYS = "linearizable-keys"


@dataclass(frozen=True, kw_only=True)
class Assumed:
    assumptions: frozenset[Assumption] = frozenset()
    order: Mapping[int, int] = field(default_factory=dict)
    """Of transactions, by history index of the completion: place in a total order that the system told."""


class OrderedBy(IntEnum):
    """Why one version precedes another."""

    INITIAL = 0
    WRITES_FOLLOW_READS = 1
    PROCESS = 2
    REALTIME = 3
    GIVEN = 4


@dataclass(frozen=True, kw_only=True)
class Versions:
    """Those of all keys of a bucket: of each key the initial one, then what was installed, or read although nobody
    wrote it, in the order of rows."""

    first: Int64
    """Versions of key k are first[k]:first[k + 1]."""
    row: Int64
    """The write; -1 for what nobody wrote."""
    of_row: Int64
    """What a row reads or installs; -1 for rows that do neither."""

    @classmethod
    def of(cls, registers: Registers) -> Versions:
        keys = len(registers.names)
        installed = registers.installed
        garbage = np.flatnonzero((registers.role == RegisterRole.READ) & (registers.writer == NOBODY))
        garbage = garbage[np.lexsort((registers.value[garbage], registers.key[garbage]))]
        new = run_starts(registers.key[garbage], registers.value[garbage])
        shown = np.sort(np.concatenate((np.flatnonzero(installed), garbage[new])))
        key = registers.key[shown]
        first = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(1 + np.bincount(key, minlength=keys))))
        version = np.arange(len(shown)) + key + 1
        row = np.full(first[-1], -1, dtype=np.int64)
        row[version] = np.where(installed[shown], shown, -1)
        of_row = np.full(len(registers.key), -1, dtype=np.int64)
        of_row[shown] = version
        of_row[garbage] = of_row[garbage[new]][np.cumsum(new) - 1]
        reads = np.flatnonzero(registers.resolved)
        by = registers.writer[reads]
        of_row[reads] = np.where(by == NOTHING, first[registers.key[reads]], of_row[np.maximum(by, 0)])
        return cls(first=first, row=row, of_row=of_row)

    def __len__(self) -> int:
        return len(self.row)

    @property
    def key(self) -> Int64:
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


@dataclass(frozen=True, kw_only=True)
class Precedences:
    """Version `before[i]` precedes `after[i]`, because of what two rows are, or one. Sorted, without repetition."""

    before: Int64
    after: Int64
    evidence: Int8
    before_row: Int64
    """-1 where the evidence is INITIAL."""
    after_row: Int64

    def part(self, which: Int64 | Bool) -> Precedences:
        return Precedences(
            before=self.before[which],
            after=self.after[which],
            evidence=self.evidence[which],
            before_row=self.before_row[which],
            after_row=self.after_row[which],
        )


@dataclass(frozen=True, kw_only=True)
class InferredOrders:
    versions: Versions
    orders: Precedences
    """Acyclic, and whatever is after was written."""
    cycles: tuple[tuple[int, Precedences], ...]
    """(key, a cycle of its versions) for each key with `cyclic-versions`."""


@dataclass(frozen=True, kw_only=True)
class _Touches:
    """One element a transaction and key, sorted like rows; rows are -1 where it has none."""

    row: Int64
    """Any."""
    read: Int64
    """The first external read."""
    write: Int64
    """The last write."""

    @classmethod
    def of(cls, registers: Registers, versions: Versions) -> _Touches:
        row, read, write = _touched(registers.key, registers.start, registers.role, versions.of_row)
        return cls(row=row, read=read, write=write)


def inferred_orders(registers: Registers, assumed: Assumed) -> InferredOrders:
    versions = Versions.of(registers)
    touches = _Touches.of(registers, versions)
    found = [_writes_follow_reads(versions, touches)] if Assumption.WFR_KEYS in assumed.assumptions else []
    unwritten = registers.writer[touches.read] == NOBODY
    touches = replace(touches, read=np.where(unwritten, -1, touches.read))
    is_ok = registers.type[touches.row] == OK
    realtime = Assumption.LINEARIZABLE_KEYS in assumed.assumptions
    # What a process did before has ended before.
    if Assumption.SEQUENTIAL_KEYS in assumed.assumptions and not realtime:
        found.append(_in_processes(registers, versions, touches, is_ok, assumed.assumptions))
    if assumed.order:
        found.append(_in_given_order(registers, versions, touches, is_ok, assumed.order))
    spread = _spread(registers, versions, touches, is_ok) if realtime else _no_spread(len(versions))
    links = _distinct(found, len(versions))
    cyclic, cycles = _cycles(registers, versions, links, spread) if found or realtime else (_no_key(versions), ())
    if realtime:
        links = _distinct([links, _nearest(registers, versions, spread, cyclic)], len(versions))
    links = links.part(~cyclic[versions.key[links.before]])
    return InferredOrders(versions=versions, orders=_with_initial(versions, links), cycles=cycles)


def _no_key(versions: Versions) -> Bool:
    return np.zeros(len(versions.first) - 1, dtype=np.bool_)


def _orders(before: Int64, after: Int64, evidence: OrderedBy, before_row: Int64, after_row: Int64) -> Precedences:
    return Precedences(
        before=before,
        after=after,
        evidence=np.full(len(before), evidence, dtype=np.int8),
        before_row=before_row,
        after_row=after_row,
    )


def _joined(parts: list[Precedences]) -> Precedences:
    names = ("before", "after", "evidence", "before_row", "after_row")
    return Precedences(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _distinct(parts: list[Precedences], versions: int) -> Precedences:
    """Of each pair of versions the first evidence."""
    none = np.zeros(0, dtype=np.int64)
    whole = _joined([_orders(none, none, OrderedBy.INITIAL, none, none), *parts])
    order = np.argsort(whole.before * versions + whole.after, kind="stable")
    return whole.part(order[run_starts(whole.before[order], whole.after[order])])


def _writes_follow_reads(versions: Versions, touches: _Touches) -> Precedences:
    both = np.flatnonzero((touches.read >= 0) & (touches.write >= 0))
    read, write = touches.read[both], touches.write[both]
    return _orders(versions.of_row[read], versions.of_row[write], OrderedBy.WRITES_FOLLOW_READS, read, write)


def _in_processes(
    registers: Registers, versions: Versions, touches: _Touches, is_ok: Bool, assumptions: frozenset[Assumption]
) -> Precedences:
    leaving = entering = touches
    if Assumption.WFR_KEYS in assumptions:
        # Of those that do both, the read is before the write already.
        both = (touches.read >= 0) & (touches.write >= 0)
        leaving = replace(touches, read=np.where(both, -1, touches.read))
        entering = replace(touches, write=np.where(both, -1, touches.write))
    process = registers.process[touches.row]
    return _in_chains(registers, versions, leaving, entering, process, is_ok, OrderedBy.PROCESS)


def _in_given_order(
    registers: Registers, versions: Versions, touches: _Touches, is_ok: Bool, order: Mapping[int, int]
) -> Precedences:
    ends = np.array(sorted(order), dtype=np.int64)
    place = np.array([order[end] for end in ends.tolist()], dtype=np.int64)
    end = registers.end[touches.row]
    at = np.minimum(np.searchsorted(ends, end), len(ends) - 1)
    named = np.flatnonzero(is_ok & (ends[at] == end) & (touches.write >= 0))
    named = named[np.lexsort((place[at[named]], registers.key[touches.row[named]]))]
    nothing = np.full(len(named), -1, dtype=np.int64)
    chosen = _Touches(row=touches.row[named], read=nothing, write=touches.write[named])
    one = np.zeros(len(named), dtype=np.int32)
    return _in_chains(registers, versions, chosen, chosen, one, is_ok[named], OrderedBy.GIVEN)


def _in_chains(
    registers: Registers,
    versions: Versions,
    leaving: _Touches,
    entering: _Touches,
    chain: Int32,
    is_ok: Bool,
    evidence: OrderedBy,
) -> Precedences:
    """Between neighbours of each chain on each key, from what the one leaves to what the other enters; within a chain
    they keep their order."""
    key = registers.key[leaving.row]
    order = np.lexsort((chain, key))
    before_row, after_row = _neighbours(
        run_starts(key[order], chain[order]),
        leaving.read[order],
        leaving.write[order],
        entering.read[order],
        entering.write[order],
        is_ok[order],
        versions.of_row,
    )
    return _orders(versions.of_row[before_row], versions.of_row[after_row], evidence, before_row, after_row)


def _with_initial(versions: Versions, links: Precedences) -> Precedences:
    """Besides, initial versions precede what nothing else does."""
    first = versions.row >= 0
    # What nobody wrote leads nowhere from the initial version.
    initial = np.zeros(len(versions), dtype=np.bool_)
    initial[versions.first[:-1]] = True
    leading = (versions.row >= 0) | initial
    first[links.after[leading[links.before]]] = False
    after = np.flatnonzero(first)
    nothing = np.full(len(after), -1, dtype=np.int64)
    from_initial = _orders(versions.first[versions.key[after]], after, OrderedBy.INITIAL, nothing, nothing)
    return _distinct([links, from_initial], len(versions))


@compiled
def _touched(key: Int32, start: Int64, role: Int8, of_row: Int64) -> tuple[Int64, Int64, Int64]:
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
    return row, read, write


@compiled
def _neighbours(
    begins: Bool, left_read: Int64, left_write: Int64, read: Int64, write: Int64, is_ok: Bool, of_row: Int64
) -> tuple[Int64, Int64]:
    """(row before, row after) of all pairs of what an ok transaction left and what the next one enters."""
    before_row = np.empty(4 * len(read), dtype=np.int64)
    after_row = np.empty(4 * len(read), dtype=np.int64)
    count = 0
    last = -1
    for i in range(len(read)):
        if begins[i]:
            last = -1
        if last >= 0:
            for x in (left_read[last], left_write[last]):
                for y in (read[i], write[i]):
                    if x >= 0 and y >= 0 and of_row[x] != of_row[y]:
                        before_row[count] = x
                        after_row[count] = y
                        count += 1
        if is_ok[i] and (read[i] >= 0 or write[i] >= 0):
            last = i
    return before_row[:count].copy(), after_row[:count].copy()


@dataclass(frozen=True, kw_only=True)
class _Spread:
    """When each version was touched: where one was, by a transaction that ended, before another one, by one that began
    later, it precedes that."""

    end: Int64
    """The first end of an ok transaction that touched it; NEVER without one."""
    end_row: Int64
    start: Int64
    """The last start of a transaction that touched it; -1 without one."""
    start_row: Int64


def _no_spread(versions: int) -> _Spread:
    nothing = np.full(versions, -1, dtype=np.int64)
    return _Spread(end=np.full(versions, NEVER), end_row=nothing, start=nothing, start_row=nothing)


def _spread(registers: Registers, versions: Versions, touches: _Touches, is_ok: Bool) -> _Spread:
    end = np.where(is_ok, registers.end[touches.row], NEVER)
    start = registers.start[touches.row]
    of_end, of_start = _extremes(end, start, touches.read, touches.write, versions.of_row, len(versions))

    def rows(of: Int64) -> Int64:
        """Of these transactions, what touches the version."""
        read, write = touches.read[of], touches.write[of]
        reads = (read >= 0) & (versions.of_row[read] == np.arange(len(versions)))
        return np.where(of < 0, -1, np.where(reads, read, write))

    return _Spread(
        end=np.where(of_end < 0, NEVER, end[of_end]) if len(end) else np.full(len(versions), NEVER),
        end_row=rows(of_end) if len(end) else of_end,
        start=np.where(of_start < 0, -1, start[of_start]) if len(end) else of_start,
        start_row=rows(of_start) if len(end) else of_start,
    )


@compiled
def _extremes(end: Int64, start: Int64, read: Int64, write: Int64, of_row: Int64, versions: int) -> tuple[Int64, Int64]:
    """Of each version, the transaction that touched it and ended first, and the one that began last."""
    ended = np.full(versions, -1, dtype=np.int64)
    began = np.full(versions, -1, dtype=np.int64)
    for i in range(len(end)):
        for row in (read[i], write[i]):
            if row < 0:
                continue
            v = of_row[row]
            if end[i] != NEVER and (ended[v] < 0 or end[i] < end[ended[v]]):
                ended[v] = i
            if began[v] < 0 or start[i] > start[began[v]]:
                began[v] = i
    return ended, began


def _nearest(registers: Registers, versions: Versions, spread: _Spread, cyclic: Bool) -> Precedences:
    """Of each version those that realtime puts before it without one between."""
    by_end = np.lexsort((spread.end, versions.key))
    by_start = np.lexsort((spread.start, versions.key))
    before, after = _without_between(versions.first, by_end, by_start, spread.end, spread.start, cyclic)
    return _orders(before, after, OrderedBy.REALTIME, spread.end_row[before], spread.start_row[after])


@compiled
def _without_between(
    first: Int64, by_end: Int64, by_start: Int64, end: Int64, start: Int64, cyclic: Bool
) -> tuple[Int64, Int64]:
    count = 0
    for fill in range(2):
        before = np.empty(count if fill else 0, dtype=np.int64)
        after = np.empty(count if fill else 0, dtype=np.int64)
        count = 0
        for k in range(len(first) - 1):
            if cyclic[k]:
                continue
            # Those that ended before b began: how many, and the three that were begun last.
            ended = first[k]
            latest = np.full(3, -1, dtype=np.int64)
            for at in range(first[k], first[k + 1]):
                b = by_start[at]
                while ended < first[k + 1] and end[by_end[ended]] < start[b]:
                    new = by_end[ended]
                    for n in range(3):
                        if latest[n] < 0 or start[new] > start[latest[n]]:
                            latest[n], new = new, latest[n]
                            if new < 0:
                                break
                    ended += 1
                # Between a and b is c if c began after a had ended, and had ended before b began.
                near, next_near = -1, -1
                for n in range(3):
                    if latest[n] >= 0 and latest[n] != b:
                        if near < 0:
                            near = latest[n]
                        elif next_near < 0:
                            next_near = latest[n]
                if near < 0:
                    continue
                if end[near] < start[near] and (next_near < 0 or end[near] >= start[next_near]):
                    if fill:
                        before[count] = near
                        after[count] = b
                    count += 1
                i = ended - 1
                while i >= first[k] and end[by_end[i]] >= start[near]:
                    if by_end[i] != b:
                        if fill:
                            before[count] = by_end[i]
                            after[count] = b
                        count += 1
                    i -= 1
    return before, after


def _cycles(
    registers: Registers, versions: Versions, links: Precedences, spread: _Spread
) -> tuple[Bool, tuple[tuple[int, Precedences], ...]]:
    """(whether versions of each key precede each other, a cycle for each key where they do)."""
    by_end = np.lexsort((spread.end, versions.key))
    by_start = np.lexsort((spread.start, versions.key))
    out = np.searchsorted(links.before, np.arange(len(versions) + 1))
    sorted_ = _sorted(versions.first, out, links.after, by_end, by_start, spread.end, spread.start)
    stuck = np.flatnonzero(~sorted_)
    cyclic = _no_key(versions)
    cyclic[versions.key[stuck]] = True
    if not len(stuck):
        return cyclic, ()
    cause = np.full(len(versions), -1, dtype=np.int64)
    told = np.flatnonzero(~sorted_[links.before] & ~sorted_[links.after])
    cause[links.after[told[::-1]]] = told[::-1]
    cycles = []
    for k in np.flatnonzero(cyclic).tolist():
        mine = stuck[(stuck >= versions.first[k]) & (stuck < versions.first[k + 1])]
        cycles.append((k, _cycle(mine, versions, links, cause, spread)))
    return cyclic, tuple(cycles)


def _cycle(stuck: Int64, versions: Versions, links: Precedences, cause: Int64, spread: _Spread) -> Precedences:
    """Of versions none of which comes first, each the cause of the next."""
    by_end = stuck[np.argsort(spread.end[stuck], kind="stable")]
    steps: dict[int, Precedences] = {}
    at = int(stuck[0])
    while at not in steps:
        if cause[at] >= 0:
            steps[at] = links.part(cause[at : at + 1])
        else:
            earlier = by_end[:2][by_end[:2] != at][:1]
            if len(earlier) and spread.end[earlier[0]] < spread.start[at]:
                rows = spread.end_row[earlier], spread.start_row[at : at + 1]
                steps[at] = _orders(earlier, np.array([at]), OrderedBy.REALTIME, *rows)
            else:
                nothing = np.array([-1])
                steps[at] = _orders(stuck[:1], np.array([at]), OrderedBy.INITIAL, nothing, nothing)
        at = int(steps[at].before[0])
    last, cycle = at, []
    while True:
        cycle.append(steps[at])
        at = int(steps[at].before[0])
        if at == last:
            return _joined(cycle[::-1])


@compiled
def _sorted(first: Int64, out: Int64, after: Int64, by_end: Int64, by_start: Int64, end: Int64, start: Int64) -> Bool:
    """Which versions can be put in order, the initial one of each key first.

    Realtime needs no links: what is not in order yet and ended first holds back all that began later.
    """
    done = np.zeros(len(end), dtype=np.bool_)
    free = np.zeros(len(end), dtype=np.bool_)
    causes = np.ones(len(end), dtype=np.int64)
    for i in range(len(after)):
        causes[after[i]] += 1
    for k in range(len(first) - 1):
        stop = first[k + 1]
        causes[first[k]] -= 1
        ready = np.empty(stop - first[k], dtype=np.int64)
        count = 0
        earliest, second, begun = first[k], first[k] + 1, first[k]
        while True:
            # By realtime, all are free that began before the first end of those that are left, and its own version
            # if that began before the second one.
            while earliest < stop and done[by_end[earliest]]:
                earliest += 1
            if earliest == stop:
                break
            second = max(second, earliest + 1)
            while second < stop and done[by_end[second]]:
                second += 1
            own = by_end[earliest]
            if not free[own] and (second == stop or start[own] <= end[by_end[second]]):
                free[own] = True
                if causes[own] == 0:
                    ready[count] = own
                    count += 1
            while begun < stop and start[by_start[begun]] <= end[own]:
                v = by_start[begun]
                if not free[v]:
                    free[v] = True
                    if causes[v] == 0:
                        ready[count] = v
                        count += 1
                begun += 1
            if count == 0:
                break
            while count:
                count -= 1
                v = ready[count]
                done[v] = True
                if v == first[k]:
                    for u in range(first[k] + 1, stop):
                        causes[u] -= 1
                        if causes[u] == 0 and free[u]:
                            ready[count] = u
                            count += 1
                for i in range(out[v], out[v + 1]):
                    u = after[i]
                    causes[u] -= 1
                    if causes[u] == 0 and free[u]:
                        ready[count] = u
                        count += 1
    return done
