"""An order of events found by rearranging one: they begin in the order of their deadlines, and wherever a read does not
see the last write before, two versions are put into one order or the other, until all reads are explained.

Each event gets a window of time, taken that the store went by real time (`time_bounds`). Two versions of a key stand
apart if one is written, and read for the last time, before the other one is written. Where they do not, one of the two
alternatives is chosen and becomes edges, which the order keeps to from then on (`incremental_topological_order`). An
alternative that would close a cycle with others is refused, and those others are learned as what forbids it
(`nogoods`). Where both are forbidden, so are the others together: one of them, the one that was taken back least often
and of these the last, is taken back.

    T1 writes x = 1,  T2 writes x = 2 and y = 1,  T3 reads y = 1 and x = 1;  they begin in the order T1 T2 T3

    T3 reads what T2 has overwritten.  T1 before T2 brings T3 before T2, which closes a cycle with what T3 read of y;
    so T2 comes before T1:  T2 T1 T3

The events are walked through a stretch at a time, so what is wrong is put right near to where it is, and nothing has to
be done again elsewhere. It is a search without an end: bounded by the steps that it takes, it finds orders where there
are many, as there are in what stores leave behind, and proves nothing where it finds none.

Sources: `time_bounds`, `incremental_topological_order`, `nogoods`; which choice is taken back is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from checkers import search_budget
from checkers.api.verdict import Verdict
from checkers.kernels.columns import NO_INDEX, Bool, Int8, Int32, Int64
from checkers.transactions.evidence.proof import Decision
from checkers.transactions.orders.events import Accesses, Events, ExternalOrder, moments
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
from checkers.transactions.orders.nogoods import Nogoods, forbidding, learned, nogoods
from checkers.transactions.orders.schedule import explains
from checkers.transactions.orders.time_bounds import Spans, Windows, windows
from harness.compiled import compiled, inlined

FEW_STEPS = 40
"""So many events are looked at for each that there is, where clocks, which would be next, are cheap. Enough where few
sessions are busy at once."""
STRETCH = 2_048
"""Events that are walked through at a time."""
TRIES = 64
"""So often something is taken back for one violation before the next one is looked at."""

CHOICES_AN_EVENT = 4
EDGES_AN_EVENT = 8
NOGOODS_AN_EVENT = 64
"""Room for them (in literals), for each event that there is, and for LEAST_ROOM events more,"""
LEAST_ROOM = 16
MOST_CHOICES = 1 << 22
"""up to so many choices, or one for each event,"""
MOST_NOGOODS = 1 << 24
"""and so many literals, or two for each event."""

NEITHER = -1
"""No alternative is taken."""
UNDER_WAY, FOUND, REFUTED, GIVEN_UP = range(4)
TAKEN, NO_ROOM = -1, -2
LOW, HIGH, CHOICES, CHOSEN = range(4)
"""In `progress`: the stretch, how many choices there are, and how often one was made."""


class _Choices(NamedTuple):
    """Of two versions of a key which one comes first. Alternative 0: `one` does; 1: `other`."""

    one: Int32
    other: Int32
    taken: Int8
    """int8[room]: the alternative, or NEITHER;"""
    since: Int64
    """when it was taken, by how many were before;"""
    flips: Int32
    """how often one was taken back;"""
    edge: Int32
    """and an edge of the taken one, or NO_INDEX."""
    next_edge: Int32
    """int32[edges]: another one of the same."""
    number: Int32
    """int32[a power of two]: by a hash of both versions, or NO_INDEX."""


class _Search(NamedTuple):
    accesses: Accesses
    width: int
    spans: Spans
    order: TopologicalOrder
    choices: _Choices
    nogoods: Nogoods
    progress: Int64
    conflict: Int32
    """int32[2, room]: literals that are not to hold together, and labels that are to become some."""


@dataclass(frozen=True, kw_only=True)
class OrderSearch:
    """A history whose order is sought."""

    events: Events
    behind: int
    """Reads may be of a past so far before their invocation."""
    search: _Search

    @classmethod
    def of(cls, events: Events, least: int = 0) -> OrderSearch | None:
        """None if no store that goes by real time can have left the history, or time was up before that was known.

        The reads of a store that does not keep real time may be late, as little as the history allows, and not less
        than `least`, in history indices."""
        for behind in (0,) if events.kept is ExternalOrder.REALTIME else _delays(len(events.committed)):
            if search_budget.is_over():
                break
            narrowed = windows(events, behind=behind) if behind >= least else None
            if narrowed is not None:
                search = _search(events, *narrowed)
                return None if search is None else cls(events=events, behind=behind, search=search)
        return None

    def decision(self, steps_an_event: int) -> Decision | None:
        """VALID with an order that a store may have gone by, or None if none was found in so many steps."""
        with search_budget.stopping() as stop:
            ended = _rearranged(self.search, steps_an_event * len(self.search.order.place), stop)
        events = self.events
        if ended == REFUTED and events.kept is not ExternalOrder.REALTIME:
            # Windows that did not contradict each other were too narrow all the same.
            return rearranged(events, steps_an_event, self.behind + 1)
        if ended != FOUND:
            return None
        order = self.search.order.event_at
        order = order[order < len(events.committed) * events.width]
        assert explains(events.accesses, events.width, order), "an order without a violation explains all"
        return Decision(verdict=Verdict.VALID, order=order)


def rearranged(events: Events, steps_an_event: int, least: int = 0) -> Decision | None:
    """VALID with an order that a store may have gone by, or None if there can be none or none was found; `least` as in
    `OrderSearch.of`."""
    rearrangement = OrderSearch.of(events, least)
    return rearrangement.decision(steps_an_event) if rearrangement else None


def _delays(transactions: int) -> list[int]:
    """In history indices: none, and from a few on each twice the one before, until they reach over everything."""
    return [0, *(1 << power for power in range(4, (4 * transactions).bit_length()))]


def _search(events: Events, of_events: Windows, forced: Int32) -> _Search | None:
    """None if what the windows force makes a cycle."""
    size = len(of_events.high)
    inside = (events.base.source < size) & (events.base.target < size)
    earlier, later, count = _moments(of_events, events.width)
    source = np.concatenate((events.base.source[inside], forced[0], earlier))
    target = np.concatenate((events.base.target[inside], forced[1], later))
    # A moment comes as soon as it can: all that may begin after it waits for it.
    urgency = np.concatenate((of_events.high, np.full(count, -1)))
    turn = np.empty(size + count, dtype=np.int64)
    turn[np.argsort(urgency, kind="stable")] = np.arange(size + count)
    room = len(turn) + LEAST_ROOM
    choices = min(CHOICES_AN_EVENT * room, max(MOST_CHOICES, room))
    order = topological_order(source, target, turn, EDGES_AN_EVENT * room)
    if order is None:
        return None
    return _Search(
        accesses=events.accesses,
        width=events.width,
        spans=_spans(events.accesses, of_events, events.width),
        order=order,
        choices=_choices(choices, EDGES_AN_EVENT * room),
        nogoods=nogoods(choices, max(min(NOGOODS_AN_EVENT * room, MOST_NOGOODS), 2 * room)),
        progress=np.array([0, min(STRETCH, len(turn)), 0, 0]),
        conflict=np.empty((2, 2 * room), dtype=np.int32),
    )


def _moments(of_events: Windows, width: int) -> tuple[Int32, Int32, int]:
    """Edges (sources, targets) that keep all events in their windows, and how many moments they lead through."""
    low, high = (side[width - 1 :] for side in of_events)
    by_low = np.argsort(low, kind="stable")
    source, target, count = moments(low[by_low], high[by_low], np.argsort(high[by_low], kind="stable"), 1)
    event_of = np.concatenate((by_low, np.arange(len(low), len(low) + count))).astype(np.int32) + np.int32(width - 1)
    return event_of[source], event_of[target], count


def _spans(accesses: Accesses, of_events: Windows, width: int) -> Spans:
    low, high = of_events
    begin = accesses.version_writer.astype(np.int64) * width
    commit = begin + width - 1
    read = np.full(len(begin) + accesses.keys, NO_INDEX, dtype=np.int64)
    np.maximum.at(read, accesses.read_version, low[accesses.reader.astype(np.int64) * width])
    initial = np.full(accesses.keys, NO_INDEX, dtype=np.int64)
    return Spans(
        begun=np.concatenate((high[begin], initial)),
        done=np.concatenate((high[commit], initial)),
        written=np.concatenate((low[commit], initial)),
        read=read,
    )


def _choices(room: int, edges: int) -> _Choices:
    return _Choices(
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
def _rearranged(search: _Search, most_steps: int, stop: Bool) -> int:
    """FOUND; REFUTED, if no order keeps all events in their windows; or GIVEN_UP."""
    order, progress = search.order, search.progress
    size, last = len(order.place), order.counters[STEPS] + most_steps
    while not stop[0] and order.counters[STEPS] < last:
        order.counters[EARLIEST] = size
        wrong = _violations(search, max(progress[LOW] - STRETCH, 0), progress[HIGH])
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
def _violations(search: _Search, low: int, high: int) -> Int64:
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
def _overlap(search: _Search, former: int, version: int) -> bool:
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
def _resolve_conflict(search: _Search, former: int, version: int) -> int:
    """UNDER_WAY, whether or not it is right now; REFUTED where nothing will do; GIVEN_UP where there is no room."""
    order, choices = search.order, search.choices
    is_turned = order.place[_commit(search, former)] > order.place[_commit(search, version)]
    if is_turned or not _overlap(search, former, version):
        return UNDER_WAY
    choice = _choice(search, former, version)
    if choice == NO_INDEX:
        return GIVEN_UP
    for _ in range(TRIES):
        if choices.taken[choice] != NEITHER:
            return UNDER_WAY
        # What has less far to go is tried first.
        onward = _ended(search, former) - order.place[_begin(search, version)]
        back = _ended(search, version) - order.place[_begin(search, former)]
        alternative = int(choices.one[choice] != former) ^ int(back < onward)
        count = _refused(search, choice, alternative, 0)
        if count >= 0:
            count = _refused(search, choice, 1 - alternative, count)
        if count == TAKEN:
            return UNDER_WAY
        if count == NO_ROOM:
            return GIVEN_UP
        if count == 0:
            return REFUTED
        learned(search.nogoods, search.conflict[0, :count])
        _take_back(search, _least_turned(search, count))
    return UNDER_WAY


@inlined
def _begin(search: _Search, version: int) -> int:
    """Of its writer; of an initial version that of INITIAL."""
    writer = search.accesses.version_writer
    return int(writer[version] * search.width) if version < len(writer) else 0


@inlined
def _commit(search: _Search, version: int) -> int:
    return _begin(search, version) + search.width - 1


@inlined
def _ended(search: _Search, version: int) -> int:
    """The place where it is written, or read for the last time."""
    accesses, place = search.accesses, search.order.place
    last: int = place[_commit(search, version)]
    for i in range(accesses.readers_first[version], accesses.readers_first[version + 1]):
        last = max(last, place[accesses.readers[i] * search.width])
    return last


@compiled
def _choice(search: _Search, former: int, version: int) -> int:
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
def _refused(search: _Search, choice: int, alternative: int, count: int) -> int:
    """TAKEN, if it can be; else so many literals are in the conflict now, those that forbid it included; or NO_ROOM."""
    spans, choices, known, conflict = search.spans, search.choices, search.nogoods, search.conflict
    one, other = choices.one[choice], choices.other[choice]
    earlier, later = (one, other) if alternative == 0 else (other, one)
    if spans.begun[later] <= spans.written[earlier] or spans.done[later] <= spans.read[earlier]:
        return count
    literal = 2 * choice + alternative
    number = forbidding(known, choices.taken, literal)
    if number == NO_INDEX:
        found = _taken(search, choice, earlier, later)
        if found < 0:
            if found == TAKEN:
                choices.taken[choice] = alternative
                choices.since[choice] = search.progress[CHOSEN]
                search.progress[CHOSEN] += 1
            return found
        for i in range(found):
            conflict[1, i] = 2 * conflict[1, i] + choices.taken[conflict[1, i]]
        conflict[1, found] = literal
        number = learned(known, conflict[1, : found + 1])
    for i in range(known.first[number], known.first[number + 1]):
        if known.literals[i] != literal:
            count = with_also(conflict[0], count, known.literals[i])
    return count


@compiled
def _taken(search: _Search, choice: int, earlier: int, later: int) -> int:
    """TAKEN, with its edges; NO_ROOM; or nothing is changed and so many choices are in `conflict` that refuse it."""
    accesses, order, width = search.accesses, search.order, search.width
    t = _begin(search, later) // width
    first, last = accesses.readers_first[earlier], accesses.readers_first[earlier + 1]
    if not has_room(order, 1 + last - first):
        return NO_ROOM
    if earlier < len(accesses.version_writer) and not _kept(search, choice, _commit(search, earlier), t * width):
        return _labels(search, choice, t * width, _commit(search, earlier))
    for i in range(first, last):
        reader = accesses.readers[i] * width
        if accesses.readers[i] != t and not _kept(search, choice, reader, t * width + width - 1):
            return _labels(search, choice, t * width + width - 1, reader)
    return TAKEN


@compiled
def _kept(search: _Search, choice: int, source: int, target: int) -> bool:
    """Whether the order keeps to an edge of the choice from now on."""
    edge = added(search.order, source, target, choice)
    if edge == NO_INDEX:
        return False
    search.choices.next_edge[edge] = search.choices.edge[choice]
    search.choices.edge[choice] = edge
    return True


@compiled
def _labels(search: _Search, choice: int, start: int, end: int) -> int:
    count = labels_between(search.order, start, end, choice, search.conflict[1])
    _take_back(search, choice)
    return count


@compiled
def _take_back(search: _Search, choice: int) -> None:
    choices = search.choices
    edge = choices.edge[choice]
    while edge != NO_INDEX:
        remove_edge(search.order, edge)
        edge = choices.next_edge[edge]
    choices.edge[choice] = NO_INDEX
    choices.taken[choice] = NEITHER


@compiled
def _least_turned(search: _Search, count: int) -> int:
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
