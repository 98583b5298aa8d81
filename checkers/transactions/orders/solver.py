"""Finds an order of events, or refutes all: a conflict-driven search in which edges must make no cycle.

The search walks through an order that keeps the known edges. Two versions of a key overlap unless one is written, and
read for the last time, before the other one is written. If they overlap, one of their two orders is chosen and becomes
edges, which the order of events keeps from then on (`incremental_topological_order`). An alternative that would close a
cycle with others is refused, and is learned with them as a nogood (`nogoods`). If both alternatives are forbidden, the
others that forbid them cannot all hold: that is one more nogood, and one of them is taken back: the one that was taken
back least often, and of several the one that was taken last.

    T1 writes x = 1,  T2 writes x = 2 and y = 1,  T3 reads y = 1 and x = 1;  they begin in the order T1 T2 T3

    T3 reads what T2 has overwritten.  T1 before T2 brings T3 before T2, which closes a cycle with what T3 read of y;
    so T2 comes before T1:  T2 T1 T3

If transactions take effect in different orders at different places, only versions are put in order. A reader must not
see the writer of the version after the one it read. If it does, along known edges and versions that follow each other,
these orders of versions cannot all hold.

The events are walked through a stretch at a time, so the search repairs an order near to where it is wrong. As long as
no nogood is forgotten the search ends: with an order, or with a nogood without literals, whose reasons refute the
history (`refutation`).

Sources: Gebser, Janhunen, Rintanen, SAT modulo Graphs: Acyclicity, JELIA 2014, for choices modulo acyclicity;
`incremental_topological_order`; `nogoods`. Which choice is taken back is ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import NO_INDEX, Bool, Int8, Int32, Int64
from checkers.transactions.orders.events import Accesses
from checkers.transactions.orders.incremental_topological_order import (
    EARLIEST,
    STEPS,
    TopologicalOrder,
    added,
    has_room,
    labels_between,
    remove_edge,
    topological_order,
    with_also,
)
from checkers.transactions.orders.nogoods import CYCLE, Nogoods, forbidding, learned, nogoods
from checkers.transactions.orders.propagation import OrderKind
from checkers.transactions.orders.time_bounds import Spans
from harness.compiled import compiled, inlined

STRETCH = 2_048
"""How many events are walked through at a time."""
TRIES = 64
"""How often something is taken back for one violation before the next one is looked at."""
CHOICES_AN_EVENT = 4
"""The room for choices, for each event."""
MOST_CHOICES = 1 << 22
"""The most room for choices, unless one for each event is more."""
EDGES_AN_EVENT = 8
"""The room for edges of choices, for each event."""
WAYS = 16
"""How many readers that see too much are looked at at once. Later ways to readers are stale once these are avoided."""

NEITHER = -1
"""Stands in place of an alternative: none is taken."""
UNDER_WAY, FOUND, REFUTED, GIVEN_UP, NO_ROOM = range(5)
TAKEN, FULL, IMPOSSIBLE = -1, -2, -3
"""Stand in place of the nogood that forbids an alternative: it was taken, there is no room, or its spans forbid it."""
LOW, HIGH, CHOICES, CHOSEN = range(4)
"""Places in `progress`: the two ends of the stretch, how many choices there are, and how often one was made."""
ONE_ORDER = int(OrderKind.TOTAL)


class Choices(NamedTuple):
    """Of two versions of a key which one comes first. Alternative 0: `one` does; 1: `other`."""

    one: Int32
    other: Int32
    taken: Int8
    """int8[room]: the alternative that holds, or NEITHER."""
    since: Int64
    """int64[room]: how many alternatives had been taken when this one was."""
    flips: Int32
    """int32[room]: how often an alternative was taken back."""
    edge: Int32
    """int32[room]: an edge of the alternative that holds, or NO_INDEX."""
    next_edge: Int32
    """int32[edges]: another edge of the same alternative, or NO_INDEX."""
    number: Int32
    """int32[a power of two]: choices by a hash of both versions, or NO_INDEX."""


class Search(NamedTuple):
    accesses: Accesses
    width: int
    orders: int
    """An `OrderKind`."""
    spans: Spans
    order: TopologicalOrder
    choices: Choices
    nogoods: Nogoods
    progress: Int64
    conflict: Int32
    """int32[2, room]: literals that are not to hold together, and labels from which literals are made."""


def search(
    accesses: Accesses,
    width: int,
    forced: tuple[Int32, Int32],
    turn: Int64,
    spans: Spans,
    orders: OrderKind,
    nogoods_room: int,
    *,
    scale: int = 1,
    forgets: bool,
) -> Search | None:
    """None if the forced edges (sources, targets) make a cycle. Else events are in the order of their turns, as far as
    these edges allow it."""
    choices = scale * min(CHOICES_AN_EVENT * len(turn), max(MOST_CHOICES, len(turn)))
    edges = scale * EDGES_AN_EVENT * len(turn)
    order = topological_order(*forced, turn, edges)
    if order is None:
        return None
    return Search(
        accesses=accesses,
        width=width,
        orders=int(orders),
        spans=spans,
        order=order,
        choices=_choices(choices, edges),
        nogoods=nogoods(choices, nogoods_room, forgets=forgets),
        progress=np.array([0, min(STRETCH, len(turn)), 0, 0]),
        conflict=np.empty((2, 2 * len(turn)), dtype=np.int32),
    )


def _choices(room: int, edges: int) -> Choices:
    return Choices(
        one=np.empty(room, dtype=np.int32),
        other=np.empty(room, dtype=np.int32),
        taken=np.full(room, NEITHER, dtype=np.int8),
        since=np.zeros(room, dtype=np.int64),
        flips=np.zeros(room, dtype=np.int32),
        edge=np.full(room, NO_INDEX, dtype=np.int32),
        next_edge=np.empty(edges, dtype=np.int32),
        number=np.full(1 << (2 * room).bit_length(), NO_INDEX, dtype=np.int32),
    )


@compiled
def put_in_order(search: Search, most_steps: int, stop: Bool) -> int:
    """FOUND; REFUTED, if no order explains all reads; GIVEN_UP after so many steps; or NO_ROOM."""
    order, progress = search.order, search.progress
    size, last = len(order.place), order.counters[STEPS] + most_steps
    while not stop[0] and order.counters[STEPS] < last:
        order.counters[EARLIEST] = size
        wrong = violations(search, max(progress[LOW] - STRETCH, 0), progress[HIGH])
        for i in range(len(wrong)):
            ended = _resolve_conflict(search, wrong[i, 0], wrong[i, 1])
            if ended != UNDER_WAY:
                return ended
            if stop[0] or order.counters[STEPS] > last:
                return GIVEN_UP
        if len(wrong) > 0:
            progress[LOW] = min(progress[LOW], order.counters[EARLIEST])
        elif progress[HIGH] < size:
            progress[LOW], progress[HIGH] = progress[HIGH], min(progress[HIGH] + STRETCH, size)
        elif progress[LOW] > 0:
            # Versions that follow each other may be further from each other than a stretch.
            progress[LOW] = 0
        else:
            return FOUND
    return GIVEN_UP


@compiled
def violations(search: Search, low: int, high: int) -> Int64:
    """Rows of two versions that follow each other between two places and do not stand apart."""
    accesses, order, width = search.accesses, search.order, search.width
    size, keys = (len(accesses.write_first) - 1) * width, len(accesses.writers_first) - 1
    latest = np.full(keys, NO_INDEX, dtype=np.int64)
    if low == 0:
        latest[:] = len(accesses.version_writer) + np.arange(keys)
    rows = np.empty((16, 2), dtype=np.int64)
    count = 0
    order.counters[STEPS] += high - low
    for place in range(low, high):
        event = order.event_at[place]
        if event >= size or event % width != width - 1:
            continue
        t = event // width
        for version in range(accesses.write_first[t], accesses.write_first[t + 1]):
            former = latest[accesses.write_key[version]]
            latest[accesses.write_key[version]] = version
            if former == NO_INDEX or not _overlap(search, former, version):
                continue
            if count == len(rows):
                rows = np.concatenate((rows, rows))
            rows[count, 0], rows[count, 1] = former, version
            count += 1
    return rows[:count].copy()


@inlined
def _overlap(search: Search, former: int, version: int) -> bool:
    """The former is still being written or read when the version is."""
    accesses, width, place = search.accesses, search.width, search.order.place
    t = accesses.version_writer[version]
    commit = place[t * width + width - 1]
    if (
        width > 1
        and former < len(accesses.version_writer)
        and place[t * width] < place[accesses.version_writer[former] * width + 1]
    ):
        return True
    for i in range(accesses.readers_first[former], accesses.readers_first[former + 1]):
        reader = accesses.readers[i]
        if reader != t and place[reader * width] > commit:
            return True
    return False


@compiled
def _resolve_conflict(search: Search, former: int, version: int) -> int:
    """UNDER_WAY, whether or not it is right now; REFUTED where nothing will do; or NO_ROOM."""
    order, choices = search.order, search.choices
    is_turned = order.place[_commit(search, former)] > order.place[_commit(search, version)]
    if is_turned or not _overlap(search, former, version):
        return UNDER_WAY
    choice = _choice(search, former, version)
    if choice == NO_INDEX:
        return NO_ROOM
    for _ in range(TRIES):
        if choices.taken[choice] != NEITHER:
            return UNDER_WAY
        # What has less far to go is tried first.
        onward = _ended(search, former) - order.place[_begin(search, version)]
        back = _ended(search, version) - order.place[_begin(search, former)]
        ended = _settle(search, choice, int(choices.one[choice] != former) ^ int(back < onward))
        if ended != UNDER_WAY:
            return ended
    return UNDER_WAY


@compiled
def _settle(search: Search, choice: int, preferred: int) -> int:
    """Takes an alternative, or learns that neither may be taken and takes back something else."""
    conflict = search.conflict
    first = _refused(search, choice, preferred)
    if first in (TAKEN, FULL):
        return UNDER_WAY if first == TAKEN else NO_ROOM
    count = _with_others(search, first, 2 * choice + preferred, 0)
    second = _refused(search, choice, 1 - preferred)
    if second in (TAKEN, FULL):
        return UNDER_WAY if second == TAKEN else NO_ROOM
    count = _with_others(search, second, 2 * choice + 1 - preferred, count)
    one, other = (first, second) if preferred == 0 else (second, first)
    if learned(search.nogoods, conflict[0, :count], choice, one, other) == NO_INDEX:
        return NO_ROOM
    if count == 0:
        return REFUTED
    _take_back(search, _least_turned(search, count))
    return UNDER_WAY


@inlined
def _with_others(search: Search, number: int, literal: int, count: int) -> int:
    """So many literals are in the conflict once the other ones of a nogood are."""
    if number == IMPOSSIBLE:
        return count
    for i in range(search.nogoods.first[number], search.nogoods.first[number + 1]):
        if search.nogoods.literals[i] != literal:
            count = with_also(search.conflict[0], count, search.nogoods.literals[i])
    return count


@inlined
def _begin(search: Search, version: int) -> int:
    """Of its writer; of an initial version that of INITIAL."""
    writer = search.accesses.version_writer
    return int(writer[version] * search.width) if version < len(writer) else 0


@inlined
def _commit(search: Search, version: int) -> int:
    return _begin(search, version) + search.width - 1


@inlined
def _ended(search: Search, version: int) -> int:
    """The place where it is written, or read for the last time."""
    accesses, place = search.accesses, search.order.place
    last: int = place[_commit(search, version)]
    for i in range(accesses.readers_first[version], accesses.readers_first[version + 1]):
        last = max(last, place[accesses.readers[i] * search.width])
    return last


@compiled
def _choice(search: Search, former: int, version: int) -> int:
    """The choice between two versions; NO_INDEX if there is no room for another one."""
    choices = search.choices
    one, other, most = min(former, version), max(former, version), len(choices.number) - 1
    mixed = one * 0x9E3779B1 + other * 0x85EBCA6B
    at = (mixed ^ (mixed >> 17)) & most
    while choices.number[at] != NO_INDEX:
        number = choices.number[at]
        if choices.one[number] == one and choices.other[number] == other:
            return int(number)
        at = (at + 1) & most
    number = search.progress[CHOICES]
    if number == len(choices.one):
        return NO_INDEX
    search.progress[CHOICES] = number + 1
    choices.number[at] = number
    choices.one[number], choices.other[number] = one, other
    return int(number)


@compiled
def _refused(search: Search, choice: int, alternative: int) -> int:
    """TAKEN, if it can be; else the nogood that forbids it, IMPOSSIBLE, or FULL."""
    spans, choices, known, conflict = search.spans, search.choices, search.nogoods, search.conflict
    one, other = choices.one[choice], choices.other[choice]
    earlier, later = (one, other) if alternative == 0 else (other, one)
    if spans.begun[later] <= spans.written[earlier] or spans.done[later] <= spans.read[earlier]:
        return IMPOSSIBLE
    literal = 2 * choice + alternative
    number = forbidding(known, choices.taken, literal)
    if number != NO_INDEX:
        return int(number)
    found = _taken(search, choice, earlier, later)
    if found == TAKEN:
        choices.taken[choice] = alternative
        choices.since[choice] = search.progress[CHOSEN]
        search.progress[CHOSEN] += 1
    if found < 0:
        return int(found)
    for i in range(found):
        conflict[1, i] = 2 * conflict[1, i] + choices.taken[conflict[1, i]]
    conflict[1, found] = literal
    number = learned(known, conflict[1, : found + 1], CYCLE, NO_INDEX, NO_INDEX)
    return FULL if number == NO_INDEX else int(number)


@compiled
def _taken(search: Search, choice: int, earlier: int, later: int) -> int:
    """TAKEN, with its edges; FULL; or nothing is changed and so many choices are in `conflict` that refuse it."""
    accesses, order, width = search.accesses, search.order, search.width
    t = _begin(search, later) // width
    first, last = accesses.readers_first[earlier], accesses.readers_first[earlier + 1]
    if not has_room(order, 1 + last - first):
        return FULL
    if earlier < len(accesses.version_writer) and not _kept(search, choice, _commit(search, earlier), t * width):
        return _labels(search, choice, t * width, _commit(search, earlier))
    if search.orders != ONE_ORDER:
        return TAKEN
    for i in range(first, last):
        reader = accesses.readers[i] * width
        if accesses.readers[i] != t and not _kept(search, choice, reader, t * width + width - 1):
            return _labels(search, choice, t * width + width - 1, reader)
    return TAKEN


@compiled
def _kept(search: Search, choice: int, source: int, target: int) -> bool:
    """Whether the order keeps to an edge of the choice from now on."""
    edge = added(search.order, source, target, choice)
    if edge == NO_INDEX:
        return False
    search.choices.next_edge[edge] = search.choices.edge[choice]
    search.choices.edge[choice] = edge
    return True


@compiled
def _labels(search: Search, choice: int, start: int, end: int) -> int:
    count = labels_between(search.order, start, end, choice, search.conflict[1])
    _take_back(search, choice)
    return count


@compiled
def _take_back(search: Search, choice: int) -> None:
    choices = search.choices
    edge = choices.edge[choice]
    while edge != NO_INDEX:
        remove_edge(search.order, edge)
        edge = choices.next_edge[edge]
    choices.edge[choice] = NO_INDEX
    choices.taken[choice] = NEITHER


@compiled
def _least_turned(search: Search, count: int) -> int:
    """The choice of those in conflict that is to be taken back."""
    choices = search.choices
    best = search.conflict[0, 0] >> 1
    for i in range(1, count):
        choice = search.conflict[0, i] >> 1
        fewer = choices.flips[best] - choices.flips[choice]
        if fewer > 0 or (fewer == 0 and choices.since[choice] > choices.since[best]):
            best = choice
    choices.flips[best] += 1
    return int(best)


@compiled
def put_versions_in_order(search: Search, most_steps: int, stop: Bool) -> int:
    """FOUND, if no reader sees too much; REFUTED, if in no order of versions; GIVEN_UP after so many steps; NO_ROOM."""
    last = search.order.counters[STEPS] + most_steps
    while True:
        ends, pairs, is_all = ways_to_readers(search, last)
        if len(ends) == 0:
            return FOUND if is_all else GIVEN_UP
        begin = 0
        for end in ends:
            ended = _avoid(search, pairs[begin:end])
            if ended != UNDER_WAY:
                return ended
            begin = end
        if stop[0] or search.order.counters[STEPS] > last:
            return GIVEN_UP


@compiled
def ways_to_readers(search: Search, last: int) -> tuple[Int64, Int64, bool]:
    """Where ways end among rows of two versions, of which the earlier one comes first: if all of them do, a reader sees
    the writer of the next version, which the last row has. And whether all readers were looked at."""
    accesses, order = search.accesses, search.order
    following, previous = _neighbours(search)
    seen = np.full(len(order.place), NO_INDEX, dtype=np.int32)
    leads_to = np.empty(len(order.place), dtype=np.int32)
    by = np.empty(len(order.place), dtype=np.int64)
    queue = np.empty(len(order.place), dtype=np.int32)
    ends = np.empty(WAYS, dtype=np.int64)
    pairs = np.empty((16, 2), dtype=np.int64)
    found, used = 0, 0
    for read in range(len(accesses.reader)):
        if found == WAYS or order.counters[STEPS] > last:
            return ends[:found].copy(), pairs[:used].copy(), False
        reader, overwriting = accesses.reader[read], following[accesses.read_version[read]]
        if overwriting == NO_INDEX:
            continue
        wanted = accesses.version_writer[overwriting]
        if order.place[wanted] >= order.place[reader]:
            continue
        if not _is_seen(search, previous, seen, leads_to, by, queue, reader, wanted, read):
            continue
        while used + len(order.place) + 1 > len(pairs):
            pairs = np.concatenate((pairs, pairs))
        used = _pairs_on_the_way(search, previous, leads_to, by, reader, wanted, pairs, used)
        pairs[used, 0], pairs[used, 1] = accesses.read_version[read], overwriting
        used += 1
        ends[found] = used
        found += 1
    return ends[:found].copy(), pairs[:used].copy(), True


@compiled
def _neighbours(search: Search) -> tuple[Int64, Int64]:
    """Of each version the next one and the one before, in the order in which they come here; or NO_INDEX."""
    accesses, order, width = search.accesses, search.order, search.width
    written, keys = len(accesses.version_writer), len(accesses.writers_first) - 1
    following = np.full(written + keys, NO_INDEX, dtype=np.int64)
    previous = np.full(written + keys, NO_INDEX, dtype=np.int64)
    latest = written + np.arange(keys)
    for event in order.event_at:
        t = event // width
        if t >= len(accesses.write_first) - 1 or event % width != width - 1:
            continue
        for version in range(accesses.write_first[t], accesses.write_first[t + 1]):
            former = latest[accesses.write_key[version]]
            following[former], previous[version] = version, former
            latest[accesses.write_key[version]] = version
    return following, previous


@compiled
def _is_seen(
    search: Search,
    previous: Int64,
    seen: Int32,
    leads_to: Int32,
    by: Int64,
    queue: Int32,
    reader: int,
    wanted: int,
    stamp: int,
) -> bool:
    """Whether there is a way from the wanted transaction to the reader; the shortest one is in `leads_to`, and in `by`
    what leads on from each event: a version, -2 - choice, or NO_INDEX for a forced edge."""
    accesses, order = search.accesses, search.order
    back, low = order.back, order.place[wanted]
    queue[0], at, count = reader, 0, 1
    seen[reader] = stamp
    while at < count and seen[wanted] != stamp:
        t = queue[at]
        at += 1
        order.counters[STEPS] += 1
        for i in range(back.first[t], back.first[t + 1]):
            count = _reach(order, seen, leads_to, by, queue, count, back.others[i], t, NO_INDEX, low, stamp)
        edge = back.head[t]
        while edge != NO_INDEX:
            by_choice = -2 - order.label[edge]
            count = _reach(order, seen, leads_to, by, queue, count, back.end[edge], t, by_choice, low, stamp)
            edge = back.older[edge]
        for version in range(accesses.write_first[t], accesses.write_first[t + 1]):
            if previous[version] < len(accesses.version_writer):
                u = accesses.version_writer[previous[version]]
                count = _reach(order, seen, leads_to, by, queue, count, u, t, version, low, stamp)
    return bool(seen[wanted] == stamp)


@inlined
def _reach(
    order: TopologicalOrder,
    seen: Int32,
    leads_to: Int32,
    by: Int64,
    queue: Int32,
    count: int,
    event: int,
    onward: int,
    means: int,
    low: int,
    stamp: int,
) -> int:
    if seen[event] == stamp or order.place[event] < low:
        return count
    seen[event], leads_to[event], by[event] = stamp, onward, means
    queue[count] = event
    return count + 1


@compiled
def _pairs_on_the_way(
    search: Search, previous: Int64, leads_to: Int32, by: Int64, reader: int, wanted: int, pairs: Int64, used: int
) -> int:
    choices, event = search.choices, wanted
    while event != reader:
        if by[event] >= 0:
            pairs[used, 0], pairs[used, 1] = previous[by[event]], by[event]
            used += 1
        elif by[event] != NO_INDEX:
            choice = -2 - by[event]
            one, other = choices.one[choice], choices.other[choice]
            is_turned = choices.taken[choice] == 1
            pairs[used, 0], pairs[used, 1] = (other, one) if is_turned else (one, other)
            used += 1
        event = leads_to[event]
    return used


@compiled
def _avoid(search: Search, pairs: Int64) -> int:
    """Not all of the versions are to come before the other ones of their rows; what was read is put behind what comes
    next before anything else is tried. UNDER_WAY, REFUTED or NO_ROOM."""
    conflict, choices = search.conflict, search.choices
    for i in range(-1, len(pairs)):
        earlier, later = pairs[i, 0], pairs[i, 1]
        choice = _choice(search, earlier, later)
        if choice == NO_INDEX:
            return NO_ROOM
        alternative = int(choices.one[choice] != earlier)
        ended = _settle_for(search, choice, alternative if i >= 0 else 1 - alternative, earlier, later)
        if ended != UNDER_WAY:
            return ended
        if choices.taken[choice] != alternative:
            return UNDER_WAY
    count = 0
    for i in range(len(pairs)):
        choice = _choice(search, pairs[i, 0], pairs[i, 1])
        alternative = int(choices.one[choice] != pairs[i, 0])
        if choices.taken[choice] != alternative:
            return UNDER_WAY
        count = with_also(conflict[0], count, 2 * choice + alternative)
    if learned(search.nogoods, conflict[0, :count], CYCLE, NO_INDEX, NO_INDEX) == NO_INDEX:
        return NO_ROOM
    choice = _least_turned(search, count)
    alternative = choices.taken[choice]
    _take_back(search, choice)
    return _settle(search, choice, 1 - alternative)


@compiled
def _settle_for(search: Search, choice: int, preferred: int, earlier: int, later: int) -> int:
    """Takes an alternative as long as the earlier version comes first. UNDER_WAY, REFUTED or NO_ROOM."""
    for _ in range(TRIES):
        is_turned = search.order.place[_commit(search, earlier)] > search.order.place[_commit(search, later)]
        if is_turned or search.choices.taken[choice] != NEITHER:
            break
        ended = _settle(search, choice, preferred)
        if ended != UNDER_WAY:
            return ended
    return UNDER_WAY
